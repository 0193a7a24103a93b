//! Values with variables in them, parsed once when the configuration is read.
//!
//! Also lists the variables whose names have a free part, such as `$arg_NAME`.

use super::builtin::Builtin;
use super::ids::{GeoId, MapId, SlotId, SplitClientsId};

use transport_settings::ProxyExtra;

/// A configuration value: literal pieces and variables, in order.
///
/// Neighbouring literals are joined, so that a value without variables is one
/// literal or nothing at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Literal(Box<[u8]>),
    Variable(Variable),
}

impl Template {
    pub fn literal(text: impl AsRef<[u8]>) -> Template {
        let text = text.as_ref();
        let parts = if text.is_empty() {
            Vec::new()
        } else {
            vec![Part::Literal(text.into())]
        };
        Template { parts }
    }

    /// The whole value where it holds no variable.
    pub fn as_constant(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(b""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

/// A variable, resolved when the configuration is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    Builtin(Builtin),
    /// `$1` to `$9` of the last pattern that matched.
    Capture(u8),
    /// Written by `set` or by a named capture.
    Slot(SlotId),
    /// Defined by `map`, `geo` or `split_clients`, and also written by `set`: the value that `set`
    /// wrote in this request, else the defined one.
    SetOver(SlotId, Box<Variable>),
    /// A variable about TLS that nginx has and rustls does not tell: no value.
    Missing,
    Map(MapId),
    Geo(GeoId),
    SplitClients(SplitClientsId),
    /// `$arg_NAME`: names compare without case.
    Argument(Box<[u8]>),
    /// `$http_NAME`: the field name, lower case, `_` for `-`.
    RequestField(Box<[u8]>),
    /// `$sent_http_NAME`, spelt as in `$http_NAME`.
    SentField(Box<[u8]>),
    /// `$sent_trailer_NAME`, spelt as in `$http_NAME`.
    SentTrailer(Box<[u8]>),
    /// `$upstream_http_NAME`, spelt as in `$http_NAME`.
    UpstreamField(Box<[u8]>),
    /// `$upstream_trailer_NAME`, spelt as in `$http_NAME`.
    UpstreamTrailer(Box<[u8]>),
    /// `$cookie_NAME`: as written, compared without case.
    Cookie(Box<[u8]>),
    /// `$upstream_cookie_NAME`.
    UpstreamCookie(Box<[u8]>),
    /// `$proxy_protocol_tlv_NAME`.
    ProxyProtocolExtra(ProxyExtra),
}

impl Variable {
    /// Returns the variable of a name. `set` and named captures may fill (`slot`) a variable that
    /// `map`, `geo` or `split_clients` defines (`made`), or one with a free part in its name; a
    /// request in which they do not has the variable's value without them, like in nginx.
    pub(crate) fn named(
        written: &str,
        made: Option<Variable>,
        slot: Option<SlotId>,
    ) -> Option<Variable> {
        let builtin = || Builtin::from_name(&written.to_ascii_lowercase()).map(Variable::Builtin);
        let free = || Variable::with_free_name(written);
        match (made, slot) {
            (made, None) => made.or_else(builtin).or_else(free),
            (made, Some(slot)) => Some(match made.or_else(free) {
                Some(below) => Variable::SetOver(slot, Box::new(below)),
                None => Variable::Slot(slot),
            }),
        }
    }

    /// `$arg_NAME`, `$http_NAME` and the others of [`PREFIXED`]. Like in nginx the name may be
    /// empty; such a variable has no value.
    pub(crate) fn with_free_name(name: &str) -> Option<Variable> {
        PREFIXED.iter().find_map(|(prefix, variable, _)| {
            let (start, rest) = name.split_at_checked(prefix.len())?;
            let has_prefix = start.eq_ignore_ascii_case(prefix);
            has_prefix.then(|| variable(rest)).flatten()
        })
    }
}

/// A prefix of names, the variable for the rest of a name, and a line for the reference page.
type PrefixedVariable = (&'static str, fn(&str) -> Option<Variable>, &'static str);

/// Variables whose names end in a free part, such as the name of a field.
#[rustfmt::skip]
pub(crate) const PREFIXED: &[PrefixedVariable] = &[
    ("arg_", |name| Some(Variable::Argument(as_written(name))),
        "the argument NAME of the request; names compare without case"),
    ("cookie_", |name| Some(Variable::Cookie(as_written(name))),
        "the cookie NAME of the request"),
    ("http_", |name| Some(Variable::RequestField(in_lower_case(name))),
        "the request field NAME: in lower case, with `_` for `-`"),
    ("proxy_protocol_tlv_", |name| ProxyExtra::from_name(&name.to_ascii_lowercase()).map(Variable::ProxyProtocolExtra),
        "the value NAME of the PROXY protocol, version 2: `alpn`, `authority`, `unique_id`, `ssl_cn` and others, or its type, as in `0x05`"),
    ("sent_http_", |name| Some(Variable::SentField(in_lower_case(name))),
        "the response field NAME, spelt as in `$http_NAME`"),
    ("sent_trailer_", |name| Some(Variable::SentTrailer(in_lower_case(name))),
        "the field NAME that is sent behind the response body"),
    ("upstream_cookie_", |name| Some(Variable::UpstreamCookie(as_written(name))),
        "the cookie NAME that the upstream's response sets"),
    ("upstream_http_", |name| Some(Variable::UpstreamField(in_lower_case(name))),
        "the field NAME of the upstream's response"),
    ("upstream_trailer_", |name| Some(Variable::UpstreamTrailer(in_lower_case(name))),
        "the field NAME behind the body of the upstream's response"),
];

fn as_written(name: &str) -> Box<[u8]> {
    name.as_bytes().into()
}

fn in_lower_case(name: &str) -> Box<[u8]> {
    name.to_ascii_lowercase().into_bytes().into()
}
