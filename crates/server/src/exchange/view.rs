//! How variables see a request: as it is, or as the cache does, for which some arguments
//! and cookies do not count.

use std::sync::{Arc, LazyLock};

use http1::RequestHead;
use shared_request::NameSet;

/// How variables see a request.
#[derive(Clone)]
pub enum View {
    /// As it is.
    Plain,
    /// As the cache does: without the arguments and cookies that do not count.
    Cache(Arc<site::CacheRules>),
}

impl View {
    /// Do all arguments count?
    #[inline]
    pub fn counts_all_arguments(&self) -> bool {
        match self {
            View::Plain => true,
            View::Cache(rules) => rules.ignored_arguments.is_empty(),
        }
    }

    /// The arguments that do not count.
    pub fn ignored_arguments(&self) -> &NameSet {
        static NONE: LazyLock<NameSet> = LazyLock::new(NameSet::default);
        match self {
            View::Plain => &NONE,
            View::Cache(rules) => &rules.ignored_arguments,
        }
    }
}

/// Cookies of a request: name and value.
pub fn cookies(head: &RequestHead) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.field_all(b"cookie")
        .flat_map(|value| value.split(|&byte| byte == b';'))
        .filter_map(|pair| {
            let pair = pair.trim_ascii();
            let equals = pair.iter().position(|&byte| byte == b'=')?;
            Some((&pair[..equals], &pair[equals + 1..]))
        })
}

/// `*` at the end stands for anything.
pub fn matches_glob(glob: &[u8], name: &[u8]) -> bool {
    match glob.strip_suffix(b"*") {
        Some(prefix) => name.starts_with(prefix),
        None => glob == name,
    }
}

/// Appends the cookies that count, as they would stand in a Cookie field.
pub fn put_counted_cookies(head: &RequestHead, ignored: &[Box<[u8]>], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    for (name, value) in cookies(head) {
        if ignored.iter().any(|glob| matches_glob(glob, name)) {
            continue;
        }
        if out.len() > start {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(name);
        out.push(b'=');
        out.extend_from_slice(value);
    }
    out.len() > start
}
