//! The kind of a request for the cache: one for a page that may be stored, or the reason not to
//! store it.

use crate::entry::{CacheStatus, Entry};

/// The statuses of answers that may be stored, as in the configuration of `mayfly serve`. A 304 and
/// a 206 are answers about such a page.
pub const STORED_STATUSES: [u16; 11] = [200, 203, 206, 301, 302, 304, 307, 308, 404, 410, 499];
/// Statuses that a server gives without asking PHP.
const REFUSED_STATUSES: [u16; 11] = [400, 405, 408, 413, 414, 429, 431, 444, 494, 495, 497];
/// Endings of files that are sent without PHP.
const FILES: &str = "\
    css js mjs map gif jpg jpeg jfif png apng webp avif svg ico cur bmp woff woff2 ttf otf eot mp3 \
    m4a aac ogg oga opus wav flac mp4 m4v mov webm vtt pdf zip gz txt wasm webmanifest doc docx \
    xlsx csv";

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// A request for a page that may be stored.
    Page,
    /// A request for a page that is for one visitor.
    Personal,
    /// It writes: another method than GET and HEAD.
    Write,
    /// The answer is of a status that is not stored: 403, 500.
    NotStored,
    /// A file, which PHP does not make.
    File,
    /// Refused by the server itself.
    Refused,
}

impl Visit {
    /// Classifies an entry. `is_personal` is the verdict on its path and its cookies.
    #[must_use]
    pub fn of(entry: &Entry<'_>, is_personal: bool) -> Visit {
        let reached_php = entry.upstream_ms.is_some() || entry.cache_status.is_some();
        if !reached_php && is_file(path(entry.target)) {
            return Visit::File;
        }
        if !reached_php && REFUSED_STATUSES.contains(&entry.status) {
            return Visit::Refused;
        }
        if !matches!(entry.method, b"GET" | b"HEAD") {
            return Visit::Write;
        }
        if is_personal || entry.cache_status == Some(CacheStatus::Bypass) {
            return Visit::Personal;
        }
        match STORED_STATUSES.contains(&entry.status) {
            true => Visit::Page,
            false => Visit::NotStored,
        }
    }

    /// Whether PHP runs for it, whatever is stored.
    #[must_use]
    pub fn always_runs(self) -> bool {
        matches!(self, Visit::Personal | Visit::Write | Visit::NotStored)
    }
}

/// A target without its query.
#[must_use]
pub fn path(target: &[u8]) -> &[u8] {
    let end = memchr::memchr2(b'?', b'#', target).unwrap_or(target.len());
    target.get(..end).unwrap_or(target)
}

fn is_file(path: &[u8]) -> bool {
    let Some(dot) = memchr::memrchr(b'.', path) else {
        return false;
    };
    let ending = path.get(dot + 1..).unwrap_or_default();
    FILES
        .split(' ')
        .any(|it| ending.eq_ignore_ascii_case(it.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_that_all_may_see_are_stored() {
        let entry = |method: &'static str, target: &'static str, status| Entry {
            method: method.as_bytes(),
            target: target.as_bytes(),
            status,
            ..Entry::default()
        };
        let cases = [
            (entry("GET", "/", 200), Visit::Page),
            (entry("HEAD", "/?a=b.css", 304), Visit::Page),
            (entry("GET", "/none", 404), Visit::Page),
            (entry("GET", "/a.CSS?ver=1", 200), Visit::File),
            (entry("GET", "/private", 403), Visit::NotStored),
            (entry("GET", "/broken", 500), Visit::NotStored),
            (entry("GET", "/", 400), Visit::Refused),
            (entry("POST", "/", 200), Visit::Write),
        ];
        for (entry, expected) in cases {
            assert_eq!(Visit::of(&entry, false), expected, "{entry:?}");
        }
        assert_eq!(Visit::of(&entry("GET", "/", 200), true), Visit::Personal);
        let bypass = Entry {
            cache_status: Some(CacheStatus::Bypass),
            ..entry("GET", "/image.png", 200)
        };
        assert_eq!(Visit::of(&bypass, false), Visit::Personal);
    }
}
