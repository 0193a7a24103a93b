//! Fields that directives add: `expires`, `add_header`, `charset`.

use bytes::Bytes;
use http_semantics::Fields;
use site::{Expires, FieldChange, FieldEdit, LogLevel};

use crate::exchange::compiled_location::adds_fields;
use crate::exchange::delivery::CarriedToResponse;
use crate::exchange::reply::{Reply, ReplySource};
use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::log::error_log;
use crate::respond::{by_htaccess, charset, user_id};
use recoding::Transcoder;

/// Statuses for which `add_header` without `always` and `expires` count.
const ADDED_TO: [u16; 10] = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308];

/// Furthest `Expires` and longest `max-age` of `expires max`, as nginx writes them.
const MAX_EXPIRES: &str = "Thu, 31 Dec 2037 23:55:55 GMT";
const MAX_AGE: &str = "max-age=315360000";
const EPOCH: &str = "Thu, 01 Jan 1970 00:00:01 GMT";

/// Applies the directives of the request's location. Returns the transcoder from the body's charset to
/// that of the directives, if one is needed.
pub fn add(request: &Request, reply: &mut Reply, carried: CarriedToResponse) -> Option<Transcoder> {
    if reply.head.is_final || adds_nothing(request, &carried) {
        return None;
    }
    let settings = request.settings();
    let headers = &settings.headers;
    let rules = carried.rules;
    edit(request, reply, &headers.edits);
    let now = i64::try_from(clock::wall(request.now()) / 1000).unwrap_or(0);
    let has_lifetime = rules
        .as_ref()
        .is_some_and(|rules| by_htaccess::apply_lifetime(rules, reply, now));
    let is_usual = ADDED_TO.contains(&reply.head.status);
    if is_usual && headers.expires != Expires::Off && !has_lifetime {
        expires(request, reply, &headers.expires);
    }
    if let Some(user_id) = &headers.user_id {
        user_id::add(request, reply, user_id);
    }
    if !headers.add.is_empty() {
        for added in &headers.add {
            if !is_usual && !added.always {
                continue;
            }
            let value = match &added.constant {
                Some(constant) => constant.clone(),
                None => {
                    let sent = Some(&reply.head);
                    Bytes::from(variable::evaluate_sent(request, sent, &added.value))
                }
            };
            put(reply, &added.name, on_one_line(value));
        }
    }
    let transcoder = charset(request, reply, &settings.charset, carried.accel_charset);
    if let Some(rules) = rules {
        by_htaccess::apply_fields(&rules, reply);
    }
    transcoder
}

/// `more_set_headers` and `more_clear_headers`, ahead of all that adds, as in the module headers-more.
fn edit(request: &Request, reply: &mut Reply, edits: &[FieldEdit]) {
    for edit in edits {
        if !holds_for(edit, reply) {
            continue;
        }
        match &edit.change {
            FieldChange::RemoveFamily => {
                reply.head.unpack();
                let fields = &mut reply.head.fields;
                fields.retain(|name, _| !begins_with(name, &edit.name));
            }
            FieldChange::Set(value) => {
                let value = variable::evaluate_sent(request, Some(&reply.head), value);
                set(reply, &edit.name, on_one_line(value.into()));
            }
        }
    }
}

fn holds_for(edit: &FieldEdit, reply: &Reply) -> bool {
    let is_of_status = edit.statuses.is_empty() || edit.statuses.contains(&reply.head.status);
    is_of_status
        && (edit.types.is_empty() || {
            let media_type = reply.head.field("content-type").unwrap_or_default();
            let end = media_type.iter().position(|&byte| byte == b';');
            let bare = media_type[..end.unwrap_or(media_type.len())].trim_ascii();
            edit.types.iter().any(|one| one.eq_ignore_ascii_case(bare))
        })
}

fn begins_with(name: &[u8], start: &[u8]) -> bool {
    name.get(..start.len())
        .is_some_and(|beginning| beginning.eq_ignore_ascii_case(start))
}

fn adds_nothing(request: &Request, carried: &CarriedToResponse) -> bool {
    !adds_fields(request.settings()) && carried.accel_charset.is_none() && carried.rules.is_none()
}

/// A value with line breaks or NUL, with spaces in their place (RFC 9110 §5.5):
/// the operator may write one by mistake, a variable may bring one, and no
/// response is split by either.
pub(super) fn on_one_line(value: Bytes) -> Bytes {
    let breaks = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    if !value.iter().any(breaks) {
        return value;
    }
    let spaced: Vec<u8> = value
        .iter()
        .map(|byte| if breaks(byte) { b' ' } else { *byte })
        .collect();
    Bytes::copy_from_slice(spaced.trim_ascii())
}

/// Fills in the trailers of a response: those of `add_trailer`, evaluated now that
/// the body is out, and the upstream's.
pub fn add_trailers(request: &mut Request, of_upstream: Fields) {
    let settings = request.settings_held();
    let is_usual = ADDED_TO.contains(&request.delivery.status);
    let own = settings.headers.trailers.iter();
    // Each may be made of those before it (`$sent_trailer_*`).
    for trailer in own.filter(|trailer| is_usual || trailer.always) {
        let value = on_one_line(variable::evaluate(request, &trailer.value).into());
        if !value.is_empty() {
            let trailers = &mut request.delivery.trailers;
            trailers.append(trailer.name.clone(), value);
        }
    }
    for (name, value) in of_upstream.as_slice() {
        let trailers = &mut request.delivery.trailers;
        trailers.append(name.clone(), value.clone());
    }
}

/// nginx replaces these two and adds everything else; nothing is sent for an
/// empty value.
fn put(reply: &mut Reply, name: &Bytes, value: Bytes) {
    if http_semantics::same_name(name, b"last-modified") || http_semantics::same_name(name, b"etag")
    {
        set(reply, name, value);
    } else if !value.is_empty() {
        reply.head.fields.append(name.clone(), value);
    }
}

/// Sets a field in place of those with its name; an empty value removes it.
fn set(reply: &mut Reply, name: &Bytes, value: Bytes) {
    reply.head.unpack();
    if http_semantics::same_name(name, b"last-modified") {
        reply.head.last_modified = http_semantics::date::parse(&value);
    }
    if value.is_empty() {
        reply.head.fields.remove(name);
    } else {
        reply.head.fields.set(name.clone(), value);
    }
}

fn expires(request: &Request, reply: &mut Reply, rule: &Expires) {
    let now = i64::try_from(clock::wall(request.now()) / 1000).unwrap_or(0);
    let rule = match rule {
        Expires::Variable { value, modified } => {
            // Usually a map of `$sent_http_content_type`.
            let value = variable::evaluate_sent(request, Some(&reply.head), value);
            match parse(&value, *modified) {
                Some(rule) => rule,
                None => return,
            }
        }
        known => known.clone(),
    };
    let (date, cache_control) = match rule {
        Expires::Off | Expires::Variable { .. } => return,
        Expires::Epoch => (EPOCH.to_owned(), "no-cache".to_owned()),
        Expires::Max => (MAX_EXPIRES.to_owned(), MAX_AGE.to_owned()),
        Expires::Daily(at) => {
            let local = clock::local(now);
            let midnight = local
                .start_of_day()
                .map_or(now, |day| day.timestamp().as_second());
            let mut expires = midnight.saturating_add(i64::try_from(at).unwrap_or(0));
            if expires <= now {
                expires += 24 * 60 * 60;
            }
            (
                http_date(expires),
                format!("max-age={}", expires.saturating_sub(now)),
            )
        }
        Expires::Access(seconds) => relative(now.saturating_add(seconds), seconds),
        Expires::Modified(seconds) => {
            let modified = reply.head.last_modified.or_else(|| {
                reply
                    .head
                    .field("last-modified")
                    .and_then(http_semantics::date::parse)
            });
            match modified {
                Some(modified) => {
                    let date = modified.saturating_add(seconds);
                    relative(date, date.saturating_sub(now))
                }
                None => relative(now.saturating_add(seconds), seconds),
            }
        }
    };
    reply.head.unpack();
    reply.head.fields.set("Expires", date);
    reply.head.fields.remove("cache-control");
    reply.head.fields.append("Cache-Control", cache_control);
}

pub(super) fn relative(date: i64, seconds: i64) -> (String, String) {
    let cache_control = if seconds < 0 {
        "no-cache".to_owned()
    } else {
        format!("max-age={seconds}")
    };
    (http_date(date), cache_control)
}

fn http_date(seconds: i64) -> String {
    String::from_utf8_lossy(&http_semantics::date::format(seconds)).into_owned()
}

/// The words of `expires`, met at run time.
fn parse(value: &[u8], modified: bool) -> Option<Expires> {
    let text = std::str::from_utf8(value).ok()?.trim();
    match text {
        "" | "off" => return Some(Expires::Off),
        // Only a time can be counted from the last change.
        "epoch" if !modified => return Some(Expires::Epoch),
        "max" if !modified => return Some(Expires::Max),
        _ => {}
    }
    if let Some(at) = text.strip_prefix('@').filter(|_| !modified) {
        return Some(Expires::Daily(seconds(at)?.unsigned_abs()));
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let seconds = seconds(rest)? * sign;
    Some(if modified {
        Expires::Modified(seconds)
    } else {
        Expires::Access(seconds)
    })
}

/// `1h30m` and the like, in seconds.
fn seconds(text: &str) -> Option<i64> {
    let mut total = 0i64;
    let mut number: Option<i64> = None;
    for character in text.chars() {
        if let Some(digit) = character.to_digit(10) {
            number = Some(
                number
                    .unwrap_or(0)
                    .checked_mul(10)?
                    .checked_add(i64::from(digit))?,
            );
            continue;
        }
        let unit = match character {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            'M' => 30 * 86_400,
            'y' => 365 * 86_400,
            _ => return None,
        };
        total = total.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    total.checked_add(number.unwrap_or(0))
}

/// Adds `; charset=...` to the media types that `charset_types` names. A body
/// in another charset needs a table; without one the response stays as it is.
fn charset(
    request: &Request,
    reply: &mut Reply,
    settings: &site::CharsetSettings,
    accel: Option<Vec<u8>>,
) -> Option<Transcoder> {
    // Like in nginx: old browsers took the charset of a redirect for that of the next page.
    if matches!(reply.head.status, 301 | 302) {
        return None;
    }
    // The upstream's own X-Accel-Charset overrides the charset of its media type.
    let overrides = settings.overrides || accel.is_some();
    let wanted = match accel {
        Some(charset) => charset,
        None if settings.charset.is_empty() || reply.head.keeps_charset => return None,
        None => variable::evaluate_sent(request, Some(&reply.head), &settings.charset),
    };
    if wanted.is_empty() || wanted == b"off" {
        return None;
    }
    let content_type = reply.head.field("content-type")?;
    let named = charset::of_content_type(content_type);
    let is_upstream = reply.head.source != ReplySource::Server;
    if named.is_some() && !(overrides && is_upstream) {
        return None;
    }
    if !settings.types.contains(content_type) && !content_type.starts_with(b"text/html") {
        return None;
    }
    let source = named.unwrap_or(&settings.source);
    let mut transcoder = None;
    let is_encoded = reply.head.has("content-encoding");
    if !source.is_empty() && !source.eq_ignore_ascii_case(&wanted) {
        if is_encoded {
            // The text within the coding stays in its own charset.
            return None;
        }
        transcoder = request.configuration.charsets.find(source, &wanted);
        if transcoder.is_none() && named.is_none() {
            let (source, wanted) = (
                String::from_utf8_lossy(source),
                String::from_utf8_lossy(&wanted),
            );
            let message = format_args!(
                "no \"charset_map\" between the charsets \"{source}\" and \"{wanted}\""
            );
            error_log::request(request, LogLevel::Error, message);
            return None;
        }
    }
    let end = content_type
        .iter()
        .position(|&byte| byte == b';')
        .unwrap_or(content_type.len());
    let mut value = content_type[..end].trim_ascii_end().to_vec();
    value.extend_from_slice(b"; charset=");
    value.extend_from_slice(&wanted);
    reply.head.unpack();
    reply.head.fields.set("Content-Type", Bytes::from(value));
    transcoder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_several_lines_is_sent_on_one() {
        for (value, wanted) in [
            (&b"plain  text "[..], &b"plain  text "[..]),
            (b"x:1\n", b"x:1"),
            (b"a\r\nB: c\0d", b"a  B: c d"),
            (b"\n", b""),
        ] {
            assert_eq!(on_one_line(Bytes::copy_from_slice(value)), wanted);
        }
    }

    #[test]
    fn expires_words_are_read_at_run_time_as_in_the_file() {
        for (text, wanted) in [
            ("off", Some(Expires::Off)),
            ("epoch", Some(Expires::Epoch)),
            ("1h30m", Some(Expires::Access(5400))),
            ("-10", Some(Expires::Access(-10))),
            ("@15h30m", Some(Expires::Daily(55_800))),
            ("soon", None),
        ] {
            assert_eq!(parse(text.as_bytes(), false), wanted, "{text}");
        }
        for (text, wanted) in [
            ("2048", Some(Expires::Modified(2048))),
            ("off", Some(Expires::Off)),
            ("epoch", None),
            ("max", None),
            ("@15h30m", None),
        ] {
            assert_eq!(parse(text.as_bytes(), true), wanted, "modified {text}");
        }
    }
}
