//! Explanations for people: the foreseen answer to a request, and the stored responses. They answer
//! `mayfly explain` over the control socket.
//!
//! ```text
//! explanation   from a request to its foreseen answer
//!   way         the request through all stages but the content: no upstream is asked
//!   parts       the effect of each part of it on the way, the key and the variant, by trying
//!   seen        the evidence about a page that visitors share (`cache_shared`)
//!   trying      the page made again with one thing altered at a time
//!   learned     the inputs of a page, and why they are not known
//!   lifetime    the origin of a stored response's lifetime
//!   turn        whose turn it would be at the upstream
//!   asking      the request, really made
//! reference     the page that lists the reasons
//! looking       searches, and single stored responses
//!   shown       a stored response as it is shown: no cookies, values of arguments masked
//! ```
//!
//! The decisions are those of the stages (`pipeline::serve_internal`, `content/through_cache/outlook.rs`):
//! nothing here decides anything.

mod asking;
mod explanation;
mod learned;
mod lifetime;
mod looking;
mod parts;
mod reference;
mod seen;
mod shown;
mod trying;
mod turn;
mod way;

pub use explanation::explain;
pub use looking::{entry, search, stored};
pub use reference::reference;
