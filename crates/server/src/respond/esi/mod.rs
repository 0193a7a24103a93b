//! Edge Side Includes: pages put together from fragments, each with a lifetime, tags and a key of
//! its own (<https://www.w3.org/TR/esi-lang/>).
//!
//! ```text
//! body ─► parts::Source: text and tags ─► run ─► text, and bodies of fragments
//!                                          ├► fragment: a URL becomes a request
//!                                          └► values: the values of variables
//! ```
//!
//! A page is run only if it asks for it itself, by `Surrogate-Control: content="ESI/1.0"`, or if the
//! location demands it (`esi always`). Tags in a page or in a fragment that did not ask are text.

mod fragment;
mod run;
mod values;

pub use run::Page;

use http_semantics::same_name;
use site::EsiMode;

use crate::exchange::reply::{Body, Reply};
use crate::exchange::request::Request;
use crate::log::error_log;

/// Decides whether the body is run, and changes the fields accordingly.
///
/// `Surrogate-Control` is for servers in front of the application, not for the client.
pub fn choose(request: &Request, reply: &mut Reply) -> bool {
    let settings = &request.settings().esi;
    if !settings.is_on() {
        return false;
    }
    let has_surrogate_control = reply.head.has("surrogate-control");
    let asks = has_surrogate_control && asks_for_esi(reply);
    let is_run = asks || (settings.mode == EsiMode::Always && is_of_types(request, reply));
    if !has_surrogate_control && !is_run {
        return false;
    }
    reply.head.unpack();
    reply.head.fields.remove("surrogate-control");
    if !is_run || !has_content(reply) || reply.head.status == 206 {
        return false;
    }
    if reply.head.has("content-encoding") {
        error_log::request(
            request,
            site::LogLevel::Error,
            format_args!(
                "ESI is not run because the response is compressed: have the application send it plain"
            ),
        );
        return false;
    }
    reply.head.content_length = None;
    reply.head.form.accepts_ranges = false;
    reply.head.last_modified = None;
    for name in ["accept-ranges", "etag", "last-modified", "expires"] {
        reply.head.fields.remove(name);
    }
    limit_to_client(reply);
    true
}

/// Forbids caches behind us to keep the page: it may hold parts for this visitor alone, and each
/// fragment has a lifetime of its own.
fn limit_to_client(reply: &mut Reply) {
    let says_no_store =
        |value: &[u8]| items(value).any(|item| item.eq_ignore_ascii_case(b"no-store"));
    let control = match reply
        .head
        .fields
        .get("cache-control")
        .is_some_and(says_no_store)
    {
        true => "private, no-store",
        false => "private, no-cache",
    };
    reply.head.fields.set("Cache-Control", control);
}

/// `Surrogate-Control: content="ESI/1.0"` (<https://www.w3.org/TR/edge-arch/>, section 3).
fn asks_for_esi(reply: &Reply) -> bool {
    let stored = reply.head.stored_fields();
    let mut fields = stored.chain(reply.head.fields.iter());
    fields.any(|(name, value)| same_name(name, b"surrogate-control") && items(value).any(names_esi))
}

/// The members of a list (RFC 9110 section 5.6.1). None of those looked for has a comma.
fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

fn names_esi(directive: &[u8]) -> bool {
    // Behind a `;` stands for which server it is meant.
    let directive = directive
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default();
    let Some((name, value)) = directive.split_at_checked("content=".len()) else {
        return false;
    };
    let value = value.trim_ascii();
    let quoted = value
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    name.eq_ignore_ascii_case(b"content=")
        && quoted
            .unwrap_or(value)
            .split(u8::is_ascii_whitespace)
            .any(|language| language.eq_ignore_ascii_case(b"ESI/1.0"))
}

fn is_of_types(request: &Request, reply: &Reply) -> bool {
    let media_type = reply.head.field("content-type");
    media_type.is_some_and(|value| request.settings().esi.types.contains(value))
}

fn has_content(reply: &Reply) -> bool {
    reply.head.content_length != Some(0) && !matches!(reply.body, Body::Empty | Body::Tunnel(_))
}

#[cfg(test)]
mod tests {
    use super::names_esi;

    #[test]
    fn the_language_is_asked_for_by_its_name() {
        for (directive, wanted) in [
            ("content=\"ESI/1.0\"", true),
            ("Content=ESI/1.0", true),
            ("content=\"ESI/1.0 ESI-Inline/1.0\"", true),
            ("content=\"ESI/1.0\";abc", true),
            ("content=\"ORAESI/9.0.4\"", false),
            ("max-age=600", false),
            ("content=", false),
        ] {
            assert_eq!(names_esi(directive.as_bytes()), wanted, "{directive}");
        }
    }
}
