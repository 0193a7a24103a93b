//! Edits that an application has to tell of by a purge (`cache_max_valid ... purges=`). If none comes, its purges
//! go elsewhere: what is stored goes, and nothing is kept for long until a purge arrives.
//!
//! What MediaWiki answers to an edit: its form sets a cookie that has the new revision in its name
//! (`EditPage::setPostEditCookie`), unless nothing was changed. Its API sets `UseCDNCache=false` where the database
//! was changed (`MediaWiki::preOutputCommit`), and `MediaWiki-API-Error` where it refuses.

use std::sync::Arc;
use std::time::Duration;

use http_cache::{Millis, PurgeMode, PurgeTarget, Zone};
use site::{CacheRules, LiftedByPurges, LogLevel};
use transport::request_body::RequestBody;

use crate::exchange::reply::ReplyHead;
use crate::exchange::request::{Method, Request};

/// How long the purge of an edit may take. MediaWiki sends it before it answers.
const AWAITED: Duration = Duration::from_secs(5);

/// A part of the name of the cookie that MediaWiki's form sets.
const FORM_COOKIE: &[u8] = b"PostEditRevision";
/// The cookie of its API.
const API_COOKIE: &[u8] = b"UseCDNCache=false";
/// Actions of its API that purge the page.
const API_ACTIONS: [&[u8]; 7] = [
    b"edit",
    b"delete",
    b"undelete",
    b"move",
    b"rollback",
    b"visualeditoredit",
    b"discussiontoolsedit",
];

/// An edit may have succeeded: then its purge has to arrive soon. The request came at `began`.
pub fn await_purge(
    request: &Request,
    (rules, zone): (&Option<Arc<CacheRules>>, &Arc<Zone>),
    head: &ReplyHead,
    began: Millis,
) {
    let most = rules.as_ref().and_then(|rules| rules.max_valid);
    let is_lifted = most.is_some_and(|most| most.lifted != LiftedByPurges::Never);
    if !is_lifted || !is_edit(request, head) {
        return;
    }
    let Some(awaited) = zone.purge_arrivals().note_edit(began) else {
        return;
    };
    let zone = zone.clone();
    let configuration = request.configuration.shared().clone();
    tokio::spawn(async move {
        tokio::time::sleep(AWAITED).await;
        if zone.purge_arrivals().end_wait(awaited) {
            let now = Millis(clock::now());
            zone.purge(PurgeTarget::Everything, PurgeMode::Hard, now);
            let logs = &configuration.site.process.error_logs;
            let message = format_args!(
                "no purge came within 5 seconds of an edit: all of cache \"{}\" is removed, and \
                 \"cache_max_valid\" holds until a purge arrives",
                zone.config().name
            );
            let error_logs = &configuration.live.error_logs;
            error_logs.write(logs, LogLevel::Warn, 0, message, "");
        }
    });
}

/// Has the application changed a page?
fn is_edit(request: &Request, head: &ReplyHead) -> bool {
    if request.method != Method::Post || !(200..400).contains(&head.status) {
        return false;
    }
    let cookies = || head.fields.get_all(b"set-cookie");
    let is_by_form = cookies().any(|cookie| {
        let name = cookie
            .split(|&byte| byte == b'=')
            .next()
            .unwrap_or_default();
        memchr::memmem::find(name, FORM_COOKIE).is_some()
    });
    let is_by_api = || {
        request.path.ends_with(b"/api.php")
            && head.fields.get("mediawiki-api-error").is_none()
            && cookies().any(|cookie| cookie.starts_with(API_COOKIE))
            && api_action(request).is_some_and(|action| API_ACTIONS.contains(&action))
    };
    is_by_form || is_by_api()
}

/// What the API was asked to do, in its arguments or in a form that is in memory.
fn api_action(request: &Request) -> Option<&[u8]> {
    let form = match &request.body {
        RequestBody::Memory(bytes) => &bytes[..],
        _ => b"",
    };
    in_form(&request.args)
        .or_else(|| in_form(form))
        .or_else(|| in_parts(form))
}

/// `action=edit` of a form in the coding of URLs.
fn in_form(form: &[u8]) -> Option<&[u8]> {
    let mut pairs = form.split(|&byte| byte == b'&');
    pairs.find_map(|pair| pair.strip_prefix(b"action="))
}

/// The same of `multipart/form-data`.
fn in_parts(form: &[u8]) -> Option<&[u8]> {
    const BEGIN: &[u8] = b"name=\"action\"\r\n\r\n";
    let at = memchr::memmem::find(form, BEGIN)? + BEGIN.len();
    form.get(at..)?.split(|&byte| byte == b'\r').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_action_of_a_form_is_found_in_both_codings() {
        for (form, action) in [
            ("action=edit&title=A", Some("edit")),
            ("title=A&action=delete", Some("delete")),
            ("title=action=edit", None),
            ("", None),
        ] {
            assert_eq!(
                in_form(form.as_bytes()),
                action.map(str::as_bytes),
                "{form}"
            );
        }
        let parts = "--x\r\nContent-Disposition: form-data; name=\"action\"\r\n\r\nedit\r\n--x";
        assert_eq!(in_parts(parts.as_bytes()), Some(&b"edit"[..]));
        assert_eq!(in_parts(b"name=\"actions\"\r\n\r\nedit"), None);
    }
}
