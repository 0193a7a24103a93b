//! Prepares an upstream's response for a client, following the directives: X-Accel fields,
//! error pages in its place, fields that are hidden or written anew.

use bytes::Bytes;
use http_cache::KnownField;
use http_semantics::{Fields, list_members, same_name};
use site::{Pass, Protocol};

use super::fetch_spec::rate;
use super::passed_body::PassedBody;
use super::tunnel::UpgradedUpstream;
use super::turn;
use crate::content::proxy;
use crate::exchange::client_facts::ClientFacts;
use crate::exchange::handled::{Diversion, StageEnd};
use crate::exchange::reply::{Body, PassedLines, Reply, ReplyHead, ReplySource};
use crate::exchange::request::Request;
use crate::route::rewrite::parse_rate;
use upstream_fetch::{FetchError, FetchedResponse, FileCopy};

/// Completes a stored response with the fields that are written anew for each client.
#[inline]
pub fn of_cache(request: &Request, pass: &Pass, mut reply: Box<Reply>) -> StageEnd {
    let head = &mut reply.head;
    if head.stored.is_none() {
        return StageEnd::Reply(reply);
    }
    if intercepts(request, pass, head.status) {
        head.unpack();
        return intercepted(head.status, head.fields.as_slice());
    }
    if let Some(stored) = &head.stored {
        head.passed.date = stored.fields.has(KnownField::Date);
        head.passed.server = stored.fields.has(KnownField::Server);
    }
    rewrite_fields(request, pass, head);
    StageEnd::Reply(reply)
}

/// `*_intercept_errors`: does an error page take the response's place?
fn intercepts(request: &Request, pass: &Pass, status: u16) -> bool {
    pass.exchange.intercept_errors && status >= 300 && request.may_intercept(status)
}

fn intercepted(status: u16, fields: &[(Bytes, Bytes)]) -> StageEnd {
    let is_challenge = |name: &Bytes| name.eq_ignore_ascii_case(b"www-authenticate");
    let kept = fields
        .iter()
        .filter(|(name, _)| status == 401 && is_challenge(name))
        .cloned()
        .collect();
    StageEnd::StatusWith(status, kept)
}

/// Returns the answer to a client whose fetch failed.
pub fn failed(error: FetchError) -> StageEnd {
    match error {
        FetchError::Overloaded(overload) => {
            let mut fields = Fields::new();
            fields.append("Retry-After", overload.retry_after.to_string());
            StageEnd::StatusWith(overload.status, fields)
        }
        error => StageEnd::Status(error.status()),
    }
}

/// A response for this client alone, as the directives want it sent; kept as a file as well
/// where that is planned.
pub fn into_handled(
    request: &Request,
    pass: &Pass,
    mut fetched: FetchedResponse,
    file_copy: Option<FileCopy>,
) -> StageEnd {
    let exchange = &pass.exchange;
    turn::note_cookies(request, &fetched.fields);
    if let Some(target) = accel_redirect(&fetched.fields, exchange) {
        let target = target.to_vec();
        return diverted(fetched, &target, exchange);
    }
    if intercepts(request, pass, fetched.status) {
        return intercepted(fetched.status, &fetched.fields);
    }
    if fetched.status == 404 && matches!(pass.protocol, Protocol::Memcached(_)) {
        return StageEnd::Status(404);
    }
    fetched.body.set_rate(rate(request, pass));
    let mut head = ReplyHead::new(fetched.status);
    head.source = ReplySource::Upstream;
    head.reason = Some(std::mem::take(&mut fetched.reason)).filter(|reason| !reason.is_empty());
    head.content_length = fetched.content_length;
    let (facts, keeps_charset) = client_facts(&fetched.fields, exchange);
    head.keeps_charset = keeps_charset;
    let options = connection_options(&fetched.fields, fetched.is_upgrade);
    let mut passed = PassedLines::default();
    let mut last_modified = None;
    let is_passed = |(name, value): &(Bytes, Bytes)| {
        let is_option = |option: &Bytes| option.eq_ignore_ascii_case(name);
        if !is_sent(name, exchange) || options.iter().any(is_option) {
            return false;
        }
        match name.len() {
            4 => passed.date |= same_name(name, b"date"),
            6 => passed.server |= same_name(name, b"server"),
            13 if last_modified.is_none() && same_name(name, b"last-modified") => {
                last_modified = Some(http_semantics::date::parse(value));
            }
            _ => {}
        }
        true
    };
    head.fields = fetched.fields.into_iter().filter(is_passed).collect();
    head.passed = passed;
    head.last_modified = last_modified.flatten();
    head.form.accepts_ranges = exchange.force_ranges;
    rewrite_fields(request, pass, &mut head);
    let mut body = fetched.body;
    let is_buffered = facts.as_ref().and_then(|facts| facts.is_buffered);
    let is_buffered = is_buffered.or(request.delivery.accel_buffering);
    let is_buffered = is_buffered.unwrap_or(exchange.buffering);
    head.facts = facts;
    // Without buffering the response is the client's alone, as in nginx.
    if let Some(file_copy) = file_copy.filter(|_| is_buffered && !fetched.is_upgrade) {
        body.copy_to(file_copy);
    }
    StageEnd::Reply(Box::new(Reply {
        head,
        body: match fetched.is_upgrade {
            true => Body::Tunnel(Box::new(UpgradedUpstream(body))),
            false => Body::arriving(PassedBody { body, is_buffered }),
        },
    }))
}

/// Rewrites the fields of a response that the protocol changes for this client.
pub fn rewrite_fields(request: &Request, pass: &Pass, head: &mut ReplyHead) {
    if let Protocol::Http(proxy) = &pass.protocol {
        proxy::rewrite_fields(request, proxy, head);
    }
}

/// X-Accel-Redirect, unless the configuration ignores it.
pub fn accel_redirect<'f>(
    fields: &'f [(Bytes, Bytes)],
    exchange: &site::Exchange,
) -> Option<&'f [u8]> {
    if exchange.ignored_fields.x_accel_redirect {
        return None;
    }
    let (_, value) = fields
        .iter()
        .find(|(name, _)| same_name(name, b"x-accel-redirect"))?;
    Some(value)
}

/// Fields that come along when the response's place is taken by another
/// location's: nginx copies these.
const KEPT_ON_REDIRECT: [&str; 6] = [
    "content-type",
    "content-disposition",
    "accept-ranges",
    "set-cookie",
    "cache-control",
    "expires",
];

fn diverted(fetched: FetchedResponse, target: &[u8], exchange: &site::Exchange) -> StageEnd {
    let mut kept = Fields::new();
    for (name, value) in &fetched.fields {
        if KEPT_ON_REDIRECT
            .iter()
            .any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
        {
            kept.append(name.clone(), value.clone());
        }
    }
    let (facts, _) = client_facts(&fetched.fields, exchange);
    let diversion = Diversion {
        facts: ClientFacts {
            fields: kept,
            ..facts.map(|facts| *facts).unwrap_or_default()
        },
        then: end_at(target),
    };
    fetched.body.give_up(upstream::Outcome::Success);
    StageEnd::Diverted(Box::new(diversion))
}

/// Returns the end of a round that goes on at this location or path.
fn end_at(target: &[u8]) -> StageEnd {
    if target.first() == Some(&b'@') {
        return StageEnd::Named(target.to_vec());
    }
    let (path, args) = http_semantics::split_query(target);
    // An application does not mean to leave a folder that way: refused, as in nginx.
    let leaves_folder = http_semantics::escape::unescape(path)
        .split(|&byte| byte == b'/')
        .any(|segment| segment == b"..");
    let path = match http_semantics::Target::parse(path, true) {
        Ok(target) if !leaves_folder => target.path.into_owned(),
        _ => return StageEnd::Status(404),
    };
    StageEnd::Redirect {
        path,
        args: args.unwrap_or_default().to_vec(),
    }
}

/// Returns the facts that X-Accel fields say, if there are any, and whether the response stays in the charset that
/// it is in.
fn client_facts(
    fields: &[(Bytes, Bytes)],
    exchange: &site::Exchange,
) -> (Option<Box<ClientFacts>>, bool) {
    let ignored = &exchange.ignored_fields;
    let (mut facts, mut keeps_charset) = (None::<Box<ClientFacts>>, false);
    for (name, value) in fields {
        if same_name(name, b"x-accel-limit-rate") && !ignored.x_accel_limit_rate {
            facts.get_or_insert_default().limit_rate = parse_rate(value);
        } else if same_name(name, b"x-accel-charset") && !ignored.x_accel_charset {
            match value.eq_ignore_ascii_case(b"off") {
                true => keeps_charset = true,
                false => facts.get_or_insert_default().charset = Some(value.to_vec()),
            }
        } else if same_name(name, b"x-accel-buffering") && !ignored.x_accel_buffering {
            let is_buffered = value.eq_ignore_ascii_case(b"yes");
            facts.get_or_insert_default().is_buffered = Some(is_buffered);
        }
    }
    (facts, keeps_charset)
}

/// Does a field of the upstream's response go on to clients?
pub fn is_sent(name: &[u8], exchange: &site::Exchange) -> bool {
    !is_of_connection(name) && !exchange.hidden_fields.has(name)
}

/// Returns the names of the fields that `Connection` limits to this connection (RFC 9110
/// §7.6.1). `Upgrade` is passed on when the connection switches to another protocol.
fn connection_options(fields: &[(Bytes, Bytes)], is_upgrade: bool) -> Vec<Bytes> {
    let lists = fields
        .iter()
        .filter(|(name, _)| same_name(name, b"connection"));
    lists
        .flat_map(|(_, list)| list_members(list).map(|it| list.slice_ref(it)))
        .filter(|option| !(is_upgrade && option.eq_ignore_ascii_case(b"upgrade")))
        .collect()
}

/// Fields that are written anew for each response, or that concern only the
/// connection to the upstream.
fn is_of_connection(name: &[u8]) -> bool {
    let is = |field: &str| same_name(name, field.as_bytes());
    match name.len() {
        7 => is("trailer"),
        10 => is("connection") || is("keep-alive"),
        14 => is("content-length"),
        17 => is("transfer-encoding"),
        _ => false,
    }
}
