//! Advice for a cache from access logs: finds by simulation of this engine's rules which lifetime
//! spares how much.
//!
//! ```text
//! files ─► lines ─► Entry ─► Visit: a page, or why it is not ─► Timeline ─► Pages ─► Advice
//! input     line, format      study                (order of starts)   (16 lifetimes)   text, JSON
//! ```
//!
//! The rules: a page is found by host, target without ignored arguments, and class of visitor; it is
//! fresh for its lifetime, which begins when PHP has made it; however many visitors ask meanwhile,
//! PHP makes it once. Facts that the log does not have are assumed, and the advice names them: an
//! answer with one of [`visit::STORED_STATUSES`] may be stored, and a request is personal if its
//! path, its cookies (if they are logged) or its logged cache status show it.
//!
//! Lines come from strangers: one that cannot be read is counted and named, and memory is bounded
//! for any content. No clock, and no output but the texts that are returned.

mod advice;
mod date;
mod entry;
mod format;
mod input;
mod line;
mod names;
mod pages;
mod patterns;
mod study;
mod text;
mod timeline;
pub mod visit;

pub use advice::{Advice, BadLines, Lifetime, Name, Pattern, Requests, Split};
pub use entry::{CacheStatus, Entry, Fault};
pub use format::{Format, FormatError};
pub use input::{Input, InputError};
pub use pages::LIFETIMES_MS;
pub use study::{Keys, Rules, Study};
pub use text::lifetime as lifetime_text;

/// A line that a stranger may have shaped is read, and advice is made of it.
pub fn fuzz_line(bytes: &[u8]) {
    let mut study = Study::new(Rules::default());
    if let Ok(entry) = line::parse(bytes) {
        study.take(&entry);
    }
    if let Ok(format) = Format::parse("$msec $request_uri $status $http_cookie")
        && let Ok(entry) = format.entry(bytes)
    {
        study.take(&entry);
    }
    let _ = study.advice().to_text();
}
