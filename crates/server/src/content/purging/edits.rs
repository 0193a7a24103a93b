//! Edits that an application has to announce by a purge (`cache_max_valid ... purges=`). If none comes, its purges go
//! elsewhere: stored pages are removed, and none is kept for long until a purge arrives.
//!
//! MediaWiki's answers to an edit: its form sets a cookie that has the new revision in its name
//! (`EditPage::setPostEditCookie`), unless nothing was changed. To any POST that changed the database it sets
//! `UseCDNCache=false` (`MediaWiki::preOutputCommit`); the request's address then decides whether that was a page. Its
//! API sets `MediaWiki-API-Error` to refuse an edit, and answers `nochange` to an edit that changes nothing.
//!
//! Protecting a page, and merging histories, are not among them: MediaWiki purges nothing when a page is protected.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http_cache::{Millis, PurgeMode, PurgeTarget, Zone};
use http_semantics::same_name;
use site::{CacheRules, LiftedByPurges, LogLevel};
use transport::request_body::RequestBody;

use crate::exchange::request::{Method, Request};
use crate::exchange::request_route::RequestRoute;
use upstream_fetch::FetchedResponse;

/// How long the purge of an edit may take. MediaWiki sends it before it answers.
const AWAITED: Duration = Duration::from_secs(5);

/// A part of the name of the cookie that MediaWiki's form sets.
const FORM_COOKIE: &[u8] = b"PostEditRevision";
/// The cookie of a POST that has changed the database.
const CHANGE_COOKIE: &[u8] = b"UseCDNCache=false";
/// Actions of its API that purge the page.
const API_ACTIONS: [&[u8]; 9] = [
    b"edit",
    b"delete",
    b"undelete",
    b"move",
    b"rollback",
    b"revisiondelete",
    b"purge",
    b"visualeditoredit",
    b"discussiontoolsedit",
];
/// Actions of its forms that do, beside edits.
const FORM_ACTIONS: [&[u8]; 3] = [b"delete", b"rollback", b"purge"];
/// Fields that only the forms have which move or restore a page. The names of their addresses differ by language.
const FORM_FIELDS: [&[u8]; 2] = [b"wpOldTitle=", b"restore="];
/// The API's marks of an edit that changed nothing, in JSON and in XML. Other texts in its answer are escaped.
const NO_CHANGE: [&[u8]; 2] = [b"\"nochange\":", b" nochange=\""];
/// More of a form in a file, or of an answer, is not read.
const MAX_LOOKED_AT_BYTES: u64 = 16 << 10;

/// An edit may have succeeded: then its purge has to arrive soon. The request came at `began`.
pub async fn await_purge(
    request: &Request,
    (rules, zone): (&Option<Arc<CacheRules>>, &Arc<Zone>),
    fetched: &mut FetchedResponse,
    began: Millis,
) {
    let most = rules.as_ref().and_then(|rules| rules.max_valid);
    let is_lifted = most.is_some_and(|most| most.lifted != LiftedByPurges::Never);
    if !is_lifted || !is_edit(request, fetched) || changes_nothing(&request.route, fetched).await {
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
fn is_edit(request: &Request, fetched: &FetchedResponse) -> bool {
    if request.route.method != Method::Post || !(200..400).contains(&fetched.status) {
        return false;
    }
    let cookies = || values(&fetched.fields, b"set-cookie");
    let names_revision = cookies().any(|cookie| {
        let mut parts = cookie.split(|&byte| byte == b'=');
        parts.next().is_some_and(|name| has(name, FORM_COOKIE))
    });
    names_revision
        || cookies().any(|cookie| cookie.starts_with(CHANGE_COOKIE)) && {
            let form = form(&request.body);
            let action = in_form(&request.route.args)
                .or_else(|| in_form(&form))
                .or_else(|| in_parts(&form));
            let is_of = |actions: &[&[u8]]| action.is_some_and(|action| actions.contains(&action));
            let mut fields = form.split(|&byte| byte == b'&');
            match is_api(&request.route) {
                true => !has_field(&fetched.fields, b"mediawiki-api-error") && is_of(&API_ACTIONS),
                false => {
                    let is_one = |field: &[u8]| FORM_FIELDS.iter().any(|it| field.starts_with(it));
                    is_of(&FORM_ACTIONS) || fields.any(is_one)
                }
            }
        }
}

/// Does the API say so in the first bytes of its answer?
async fn changes_nothing(route: &RequestRoute, fetched: &mut FetchedResponse) -> bool {
    if !is_api(route) {
        return false;
    }
    let is_gzip = values(&fetched.fields, b"content-encoding").any(|coding| coding == b"gzip");
    let Some(bytes) = fetched.body.first_bytes().await else {
        return false;
    };
    let mut said = Vec::new();
    let _ = match is_gzip {
        true => GzDecoder::new(&bytes[..])
            .take(MAX_LOOKED_AT_BYTES)
            .read_to_end(&mut said),
        false => (&bytes[..])
            .take(MAX_LOOKED_AT_BYTES)
            .read_to_end(&mut said),
    };
    NO_CHANGE.iter().any(|mark| has(&said, mark))
}

fn is_api(route: &RequestRoute) -> bool {
    route.path.ends_with(b"/api.php")
}

fn has(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

fn has_field(fields: &[(Bytes, Bytes)], name: &[u8]) -> bool {
    values(fields, name).next().is_some()
}

fn values<'f>(fields: &'f [(Bytes, Bytes)], name: &[u8]) -> impl Iterator<Item = &'f [u8]> {
    let fields = fields
        .iter()
        .filter(move |(known, _)| same_name(known, name));
    fields.map(|(_, value)| &value[..])
}

/// The form that was sent, or how it begins.
fn form(body: &RequestBody) -> Bytes {
    match body {
        RequestBody::Memory(bytes) => bytes.clone(),
        RequestBody::Spooled(spooled) => {
            let length = spooled.length().min(MAX_LOOKED_AT_BYTES);
            let mut start = vec![0; usize::try_from(length).unwrap_or_default()];
            let is_read = spooled.read_exact_at(&mut start, 0).is_ok();
            start.truncate(if is_read { start.len() } else { 0 });
            start.into()
        }
        _ => Bytes::new(),
    }
}

/// `action=edit` of a form in the coding of URLs.
fn in_form(form: &[u8]) -> Option<&[u8]> {
    let mut pairs = form.split(|&byte| byte == b'&');
    pairs.find_map(|pair| pair.strip_prefix(b"action="))
}

/// Returns the value of `action` in a form of the type `multipart/form-data`.
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
