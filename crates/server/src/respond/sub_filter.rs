//! `sub_filter`: strings of a body replaced on their way to the client
//! (<https://nginx.org/en/docs/http/ngx_http_sub_module.html>).
//!
//! ```text
//! cache ─► sub_filter ─► SSI, ESI ─► added texts ─► charset, compression ─► client
//! ```
//!
//! The cache stores the upstream's body; each request gets its own replacements.

use bytes::Bytes;
use http_cache::KnownField;
use recoding::{SubstitutedBody, Substitution};
use site::{Settings, SubFilter, SubFilterPair};

use crate::exchange::reply::{Body, Reply, ReplyHead};
use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::respond::{parts, recode};

/// A string with variables that is longer is not looked for: a visitor's value in it must not make
/// the search long.
const MAX_VARIABLE_STRING_BYTES: usize = 256;

/// Puts the replacements of the location around the body of `reply`, where it has any for it, and
/// changes the fields accordingly. Gives whether there are any.
pub fn apply(request: &Request, reply: &mut Reply) -> bool {
    let Some(filter) = request.settings().sub_filter.clone() else {
        return false;
    };
    if !is_text_of(&filter, reply) {
        return false;
    }
    let expander = recode::expand_first(request, reply);
    if reply.head.has("content-encoding") {
        return false;
    }
    let strings = filter.pairs.iter().map(|pair| string(request, reply, pair));
    let strings: Vec<Vec<u8>> = strings.collect();
    let body = std::mem::replace(&mut reply.body, Body::Empty);
    let body = match is_put_together(request.settings()) {
        true => parts::read_ahead(body, None),
        false => body,
    };
    reply.body = recode::around(body, expander);
    let Some(substitution) = Substitution::new(strings, filter.once) else {
        return false;
    };
    change_fields(&mut reply.head, filter.last_modified);
    let body = std::mem::replace(&mut reply.body, Body::Empty).into_arriving();
    // Each is made when it is needed for the first time.
    let mut known: Vec<Option<Bytes>> = vec![None; filter.pairs.len()];
    let replacement = move |request: &Request, number: usize| {
        let (Some(known), Some(pair)) = (known.get_mut(number), filter.pairs.get(number)) else {
            return Bytes::new();
        };
        let value = known.get_or_insert_with(|| match pair.replacement.as_constant() {
            Some(constant) => Bytes::copy_from_slice(constant),
            None => variable::evaluate(request, &pair.replacement).into(),
        });
        value.clone()
    };
    reply.body = Body::Arriving(SubstitutedBody::around(body, substitution, replacement));
    true
}

/// The lengths of a part of a body would no longer be right.
fn is_text_of(filter: &SubFilter, reply: &Reply) -> bool {
    let content_type = reply.head.known(KnownField::ContentType);
    let is_of_types = match content_type {
        Some(value) => filter.types.contains(value),
        None => filter.types.all,
    };
    !matches!(reply.body, Body::Empty)
        && reply.head.status != 206
        && reply.head.content_length != Some(0)
        && is_of_types
}

/// Is the body part of a page for which other requests are made?
fn is_put_together(settings: &Settings) -> bool {
    settings.ssi.enabled
        || settings.esi.is_on()
        || settings.addition.before.is_some()
        || settings.addition.after.is_some()
}

fn string(request: &Request, reply: &Reply, pair: &SubFilterPair) -> Vec<u8> {
    if let Some(constant) = pair.string.as_constant() {
        return constant.to_vec();
    }
    let mut value = variable::evaluate_sent(request, Some(&reply.head), &pair.string);
    if value.len() > MAX_VARIABLE_STRING_BYTES {
        value.clear();
    }
    value
}

/// The body will have another length and other bytes.
fn change_fields(head: &mut ReplyHead, keeps_validators: bool) {
    head.unpack();
    head.content_length = None;
    head.form.accepts_ranges = false;
    head.fields.remove("accept-ranges");
    if keeps_validators {
        recode::weaken_tag(head);
        return;
    }
    head.fields.remove("last-modified");
    head.fields.remove("etag");
    head.last_modified = None;
}
