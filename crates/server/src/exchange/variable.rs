//! Templates and variables: this file evaluates, and knows the value of none.
//!
//! ```text
//! template ─► variable ─► table of the configuration ─► the module that owns the value
//! ```
//!
//! Each function appends to the caller's buffer; those for one variable also say whether
//! it has a value at all: logs show `-` for those without, everything else the empty text.
//! Functions that end in `_sent` see the head of a response: `$sent_http_*`.

use site::{Part, SlotId, Template, Variable};
use transport::proxy_protocol;

use crate::exchange::functions;
use crate::exchange::reply::ReplyHead;
use crate::exchange::request::Request;
use crate::exchange::request_fields;
use crate::exchange::request_values::{Values, VariableValues, put_value};
use crate::exchange::sent_fields;
use crate::exchange::value::put;
use crate::exchange::variable_table::Value;
use crate::exchange::view::View;
use server_base::field_list::write_field_called;
use upstream_fetch::Trace;

/// The place of a table's values among those of a request.
type Table = fn(&mut VariableValues) -> &mut Values;

/// Room for most values: growing there in steps would cost more than the value.
const USUAL_BYTES: usize = 64;

/// The value of a template, in a buffer of its own.
pub fn evaluate(request: &Request, template: &Template) -> Vec<u8> {
    evaluate_sent(request, None, template)
}

/// Like [`evaluate`], with a response.
pub fn evaluate_sent(request: &Request, sent: Option<&ReplyHead>, template: &Template) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL_BYTES);
    append_sent(request, sent, template, &mut out);
    out
}

/// The value of the variable called `name`; `None` if the name is unknown or the variable has no
/// value.
pub fn named(request: &Request, name: &str) -> Option<Vec<u8>> {
    let variable = request.configuration.site.http.variable(name)?;
    let mut value = Vec::new();
    write(request, &variable, &mut value).then_some(value)
}

/// Appends the value of a template.
pub fn append(request: &Request, template: &Template, out: &mut Vec<u8>) {
    append_sent(request, None, template, out);
}

/// Like [`append`], with a response.
#[inline]
pub fn append_sent(
    request: &Request,
    sent: Option<&ReplyHead>,
    template: &Template,
    out: &mut Vec<u8>,
) {
    for part in &template.parts {
        match part {
            Part::Literal(text) => out.extend_from_slice(text),
            Part::Variable(variable) => {
                write_sent(request, sent, variable, out);
            }
        }
    }
}

/// The value of a `map`.
pub fn evaluate_map(request: &Request, id: site::MapId) -> Vec<u8> {
    let mut out = Vec::new();
    write(request, &Variable::Map(id), &mut out);
    out
}

/// Neither empty nor `0`: how nginx reads conditions.
pub fn is_true(request: &Request, template: &Template) -> bool {
    is_true_sent(request, None, template)
}

/// Like [`is_true`], with a response.
pub fn is_true_sent(request: &Request, sent: Option<&ReplyHead>, template: &Template) -> bool {
    if let Some(text) = template.as_constant() {
        return !text.is_empty() && text != b"0";
    }
    let value = evaluate_sent(request, sent, template);
    !value.is_empty() && value != b"0"
}

/// Is one of the conditions true?
pub fn is_any_true(request: &Request, conditions: &[Template]) -> bool {
    conditions
        .iter()
        .any(|condition| is_true(request, condition))
}

/// Appends the value of `variable`; false if it has none.
#[inline]
pub fn write(request: &Request, variable: &Variable, out: &mut Vec<u8>) -> bool {
    write_sent(request, None, variable, out)
}

/// Like [`write()`], with a response.
#[inline]
pub fn write_sent(
    request: &Request,
    sent: Option<&ReplyHead>,
    variable: &Variable,
    out: &mut Vec<u8>,
) -> bool {
    let Variable::Builtin(builtin) = variable else {
        return write_of_name(request, sent, variable, out);
    };
    match functions::table().variables.value(*builtin) {
        Value::Received(write) => write(&request.received, out),
        Value::Cache(write) => write(&request.cache, out),
        Value::Delivery(write) => write(&request.delivery, out),
        Value::Request(write) => write(request, out),
        Value::Reply(write) => write(request, sent, out),
        Value::Upstream(write) => of_upstream(request, |trace| write(trace, out)),
    }
}

/// A variable that has a part of its name, or a number, from the configuration.
fn write_of_name(
    request: &Request,
    sent: Option<&ReplyHead>,
    variable: &Variable,
    out: &mut Vec<u8>,
) -> bool {
    match variable {
        Variable::Builtin(_) => write_sent(request, sent, variable, out),
        Variable::Capture(group) => {
            let group = usize::from(*group);
            let values = &request.values;
            values.read(|values| put(values.captures.group(group), out))
        }
        // Like in nginx: a variable of `set` that was not written is empty, a capture that
        // was not made has no value.
        Variable::Slot(slot) => {
            put_slot(request, *slot, out)
                || request.configuration.site.http.slots_of_set.contains(slot)
        }
        Variable::SetOver(slot, made) => {
            put_slot(request, *slot, out) || write_sent(request, sent, made, out)
        }
        Variable::Missing => false,
        Variable::Map(_) | Variable::Geo(_) | Variable::SplitClients(_) => {
            write_looked_up(request, sent, variable, out)
        }
        Variable::Argument(name) => put(request_fields::argument(&request.route.args, name), out),
        Variable::RequestField(name) => request_fields::put_field(request, name, out),
        Variable::SentField(name) => {
            let sent = sent.or(request.delivery.reply.as_ref().map(|reply| &reply.head));
            sent.is_some_and(|head| sent_fields::write(request, head, name, out))
        }
        Variable::SentTrailer(name) => {
            write_field_called(name, request.delivery.trailers.as_slice(), out)
        }
        Variable::UpstreamTrailer(name) => {
            of_upstream(request, |trace| trace.write_trailer(name, out))
        }
        Variable::UpstreamField(name) => of_upstream(request, |trace| trace.write_field(name, out)),
        Variable::UpstreamCookie(name) => {
            of_upstream(request, |trace| trace.write_cookie(name, out))
        }
        Variable::Cookie(name) => request_fields::put_cookie(request, name, out),
        Variable::ProxyProtocolExtra(wanted) => match &request.received.connection().proxy {
            Some(proxy) => proxy_protocol::write_extra(&proxy.extras, *wanted, out),
            None => false,
        },
    }
}

fn put_slot(request: &Request, slot: SlotId, out: &mut Vec<u8>) -> bool {
    let values = &request.values;
    values.read(|values| put(values.slots.get(slot.0).and_then(Option::as_deref), out))
}

/// Returns whether `write` finds a value in the trace of upstreams; false if no upstream was
/// asked.
fn of_upstream(request: &Request, write: impl FnOnce(&Trace) -> bool) -> bool {
    let trace = request.trace.get();
    trace.is_some_and(|trace| write(&trace.lock()))
}

/// Appends the value that a table gives. The table is searched once for a request that remembers
/// it; the cache's view of a request has values of its own.
#[inline(never)]
fn write_looked_up(
    request: &Request,
    sent: Option<&ReplyHead>,
    variable: &Variable,
    out: &mut Vec<u8>,
) -> bool {
    let http = &request.configuration.site.http;
    let (table, at, is_volatile): (Table, usize, bool) = match variable {
        Variable::Map(id) => (|own| &mut own.maps, id.0, http.maps[id.0].volatile),
        Variable::Geo(id) => (|own| &mut own.geo, id.0, http.geos[id.0].volatile),
        Variable::SplitClients(id) => (|own| &mut own.splits, id.0, false),
        _ => return false,
    };
    let remembers = matches!(request.cache.view, View::Plain) && !is_volatile;
    let values = &request.values;
    if remembers {
        let known =
            |own: &mut VariableValues| put(table(own).get(at).and_then(Option::as_deref), out);
        if values.write_given(known) == Some(true) {
            return true;
        }
    }
    let start = out.len();
    let tables = &functions::table().variables.tables;
    match variable {
        Variable::Map(_) => (tables.map)(request, sent, &http.maps[at], out),
        Variable::Geo(_) => (tables.geo)(request, sent, &http.geos[at], out),
        _ => (tables.split_clients)(request, sent, &http.split_clients[at], out),
    };
    if remembers {
        let value = Some(out[start..].to_vec());
        values.write(|own| put_value(table(own), at, value));
    }
    true
}
