//! Rules of `.htaccess` files for a response: fields (`Header`), lifetimes (`Expires*`), types of files, pages of
//! errors. They are evaluated for one request, and applied to the response to its client only: a stored response has
//! nothing of them.

use bytes::Bytes;
use htaccess::{ErrorDocument, FieldEffect, FieldLine, FileType, ResponseRules};
use http_semantics::{Fields, same_name, split_query};

use super::fields::{on_one_line, relative};
use super::pages::page_with;
use crate::exchange::reply::{Reply, ReplySource};
use crate::exchange::request::Request;

/// Protects visitors from files that they have uploaded, so it is in no hand that writes a `.htaccess`.
const KEPT_FIELD: &[u8] = b"x-content-type-options";

/// Applies type and lifetime, ahead of the directives. Returns whether a lifetime was set.
pub fn apply_lifetime(rules: &ResponseRules, reply: &mut Reply, now: i64) -> bool {
    set_type(&rules.file_type, reply);
    if reply.head.status >= 400 || reply.head.has("expires") {
        return false;
    }
    let media_type = reply.head.field("content-type").unwrap_or_default();
    let Some(lifetime) = rules.lifetime(media_type) else {
        return false;
    };
    let changed = reply.head.last_modified.or_else(|| {
        let changed = reply.head.field("last-modified")?;
        http_semantics::date::parse(changed)
    });
    let begin = match (lifetime.from_change, changed) {
        (false, _) => now,
        (true, Some(changed)) => changed,
        (true, None) => return false,
    };
    let expires = begin.saturating_add(lifetime.seconds);
    let (date, _) = relative(expires, 0);
    let seconds = expires.saturating_sub(now).max(0);
    reply.head.unpack();
    let fields = &mut reply.head.fields;
    fields.set("Expires", date);
    let own = format!("max-age={seconds}");
    let joined = match fields.get("cache-control") {
        Some(before) => [before, b", ", own.as_bytes()].concat(),
        None => own.into_bytes(),
    };
    fields.set("Cache-Control", joined);
    true
}

/// A page of the server's own, for an error or a redirect.
fn is_made_here(reply: &Reply) -> bool {
    let status = reply.head.status;
    reply.head.source == ReplySource::Server && status >= 300 && status != 304
}

fn set_type(of_file: &FileType, reply: &mut Reply) {
    let is_file = reply.head.source == ReplySource::Server && !is_made_here(reply);
    let before = reply.head.field("content-type").map(<[u8]>::to_vec);
    let mut media_type = before.clone().unwrap_or_default();
    if is_file {
        if let Some(own) = &of_file.media_type {
            media_type = own.clone().into_bytes();
        }
        if let Some(charset) = &of_file.charset {
            media_type = with_charset(&media_type, charset);
        }
    }
    if let Some(charset) = &of_file.default_charset {
        let is_text = media_type.starts_with(b"text/html") || media_type.starts_with(b"text/plain");
        let is_named = super::charset::of_content_type(&media_type).is_some();
        if is_text && !is_named {
            media_type = with_charset(&media_type, charset);
        }
    }
    if !media_type.is_empty() && before.as_deref() != Some(&media_type) {
        reply.head.unpack();
        reply.head.fields.set("Content-Type", media_type);
    }
}

fn with_charset(media_type: &[u8], charset: &str) -> Vec<u8> {
    let bare = media_type.split(|byte| *byte == b';').next();
    let bare = bare.unwrap_or_default().trim_ascii();
    [bare, b"; charset=", charset.as_bytes()].concat()
}

/// Applies the lines of `Header`, behind the fields of directives. Like in Apache, lines for all answers have a table
/// of their own, which other lines do not see. Its fields take the place of those with their names, unless a line adds
/// one.
pub fn apply_fields(rules: &ResponseRules, reply: &mut Reply) {
    if rules.fields.is_empty() {
        return;
    }
    reply.head.unpack();
    let is_made_here = is_made_here(reply);
    let fields = &mut reply.head.fields;
    let is_kept = fields.contains(KEPT_FIELD);
    let is_free = |line: &&FieldLine| !is_kept || !same_name(line.name.as_bytes(), KEPT_FIELD);
    let (always, others): (Vec<&FieldLine>, Vec<&FieldLine>) = rules
        .fields
        .iter()
        .filter(is_free)
        .partition(|it| it.is_always);
    let mut for_all = Fields::new();
    for line in &always {
        match for_all.contains(&line.name) || !line.takes_away() {
            true => apply_line(line, &mut for_all),
            // It may apply to a field that a script sets.
            false => apply_line(line, fields),
        }
    }
    for line in others.iter().filter(|_| !is_made_here) {
        apply_line(line, fields);
    }
    let replaces = |line: &&&FieldLine| !line.adds() && for_all.contains(&line.name);
    for line in always.iter().filter(replaces) {
        fields.remove(&line.name);
    }
    for (name, value) in for_all.as_slice() {
        fields.append(name.clone(), value.clone());
    }
    let changed = fields.get("last-modified");
    let changed = changed.and_then(http_semantics::date::parse);
    reply.head.last_modified = changed.or(reply.head.last_modified);
}

fn apply_line(line: &FieldLine, fields: &mut Fields) {
    let before: Vec<Bytes> = {
        let own = fields.as_slice().iter();
        let own = own.filter(|(own, _)| same_name(own, line.name.as_bytes()));
        own.map(|(_, value)| value.clone()).collect()
    };
    let before: Vec<&[u8]> = before.iter().map(|value| &value[..]).collect();
    let one_line = |value: Vec<u8>| on_one_line(value.into());
    match line.change.effect(&before) {
        FieldEffect::Keep => {}
        FieldEffect::Added(value) => fields.append(line.name.clone(), one_line(value)),
        FieldEffect::Lines(lines) => {
            fields.remove(&line.name);
            for value in lines {
                fields.append(line.name.clone(), one_line(value));
            }
        }
    }
}

/// The answer in the place of an error page.
pub enum ErrorAnswer {
    Reply(Reply),
    /// Another path of this site.
    Path {
        path: Vec<u8>,
        args: Vec<u8>,
    },
}

/// Returns the answer of `ErrorDocument` to an error; `None` if there is no such rule. The page is requested as a
/// visitor would, so that it shows nothing that a visitor may not see.
pub fn error_answer(request: &Request, status: u16, fields: &Fields) -> Option<ErrorAnswer> {
    let rules = request.delivery.carried.as_ref()?.rules.as_ref()?;
    Some(match rules.error_document(status)?.clone() {
        ErrorDocument::Default => ErrorAnswer::Reply(page_with(request, status, fields)),
        ErrorDocument::Text(text) => {
            let mut page = Reply::new(status, b"text/html", text);
            for (name, value) in fields.as_slice() {
                page.head.fields.append(name.clone(), value.clone());
            }
            ErrorAnswer::Reply(page)
        }
        ErrorDocument::Address(address) => {
            let mut fields = Fields::new();
            fields.append("Location", on_one_line(address.into()));
            ErrorAnswer::Reply(page_with(request, 302, &fields))
        }
        ErrorDocument::Path(target) => {
            let (path, args) = split_query(target.as_bytes());
            let path = htaccess::resolved(path)?;
            if request.route.is_subrequest() || !request.route.may_redirect() {
                return None;
            }
            let args = args.unwrap_or_default().to_vec();
            ErrorAnswer::Path { path, args }
        }
    })
}
