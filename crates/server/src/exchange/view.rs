//! How variables see a request: as it is, or as the cache does, for which some arguments
//! and cookies do not count.

use std::sync::{Arc, LazyLock};

use http1::{RequestHead, is_spelt};
use shared_request::NameSet;

use crate::exchange::request::Request;
use crate::exchange::value::put;

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

/// Appends a request field by the name a variable gives it: lower case, `_` for `-`.
/// Several fields of the name are joined by `, ` (`; ` for Cookie). False where there is
/// none.
pub fn put_field(request: &Request, name: &[u8], out: &mut Vec<u8>) -> bool {
    if let View::Cache(rules) = &request.view
        && !rules.ignored_cookies.is_empty()
        && name == b"cookie"
    {
        return put_counted_cookies(&request.head, &rules.ignored_cookies, out);
    }
    if !request.head.view().may_have_spelt(name) {
        return false;
    }
    let mut fields = request.head.fields();
    let Some((_, first)) = fields.find(|(field, _)| is_spelt(name, field)) else {
        return false;
    };
    out.extend_from_slice(first);
    // Fields that may stand only once, as nginx reads them.
    if matches!(
        name,
        b"host" | b"content_length" | b"user_agent" | b"content_type"
    ) {
        return true;
    }
    let separator = if name == b"cookie" { b"; " } else { b", " };
    for (_, value) in fields.filter(|(field, _)| is_spelt(name, field)) {
        out.extend_from_slice(separator);
        out.extend_from_slice(value);
    }
    true
}

/// The value of the first argument called `name` (no case), as sent. An argument
/// without a name is none.
pub fn argument<'a>(args: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    if name.is_empty() {
        return None;
    }
    args.split(|&byte| byte == b'&').find_map(|pair| {
        let (key, value) = pair.split_at_checked(name.len())?;
        if !key.eq_ignore_ascii_case(name) {
            return None;
        }
        value.strip_prefix(b"=")
    })
}

/// Appends the cookie called `name`; false where none counts.
pub fn put_cookie(request: &Request, name: &[u8], out: &mut Vec<u8>) -> bool {
    if let View::Cache(rules) = &request.view {
        let mut ignored = rules.ignored_cookies.iter();
        if ignored.any(|glob| matches_glob(glob, name)) {
            return false;
        }
    }
    put(http1::cookie::find(&request.head, name), out)
}
