//! Values with variables in them, parsed once.

use super::builtin::Builtin;
use super::ids::{GeoId, MapId, SlotId, SplitClientsId};
use super::proxy_protocol::ProxyExtra;

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

/// What `$name` stands for, resolved when the configuration is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    Builtin(Builtin),
    /// `$1` to `$9` of the last pattern that matched.
    Capture(u8),
    /// Written by `set` or by a named capture.
    Slot(SlotId),
    /// Made by `map`, `geo` or `split_clients`, and written by `set` as well: what `set`
    /// wrote in this request, else what is made.
    SetOver(SlotId, Box<Variable>),
    /// What nginx has over TLS only: `$ssl_NAME`.
    WithoutTls,
    Map(MapId),
    Geo(GeoId),
    SplitClients(SplitClientsId),
    /// `$arg_NAME`: names compare without case.
    Argument(Box<[u8]>),
    /// `$http_NAME`: the field name, lower case, `_` for `-`.
    RequestField(Box<[u8]>),
    /// `$sent_http_NAME`, spelt likewise.
    SentField(Box<[u8]>),
    /// `$sent_trailer_NAME`, spelt likewise.
    SentTrailer(Box<[u8]>),
    /// `$upstream_http_NAME`, spelt likewise.
    UpstreamField(Box<[u8]>),
    /// `$upstream_trailer_NAME`, spelt likewise.
    UpstreamTrailer(Box<[u8]>),
    /// `$cookie_NAME`: spelling kept, compared without case.
    Cookie(Box<[u8]>),
    /// `$upstream_cookie_NAME`.
    UpstreamCookie(Box<[u8]>),
    /// `$proxy_protocol_tlv_NAME`.
    ProxyProtocolExtra(ProxyExtra),
}
