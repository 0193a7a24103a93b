//! Values with variables in them, parsed once.

use super::Builtin;

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
    Slot(super::SlotId),
    /// Made by `map`, `geo` or `split_clients`, and written by `set` as well: what `set`
    /// wrote in this request, else what is made.
    SetOver(super::SlotId, Box<Variable>),
    /// What nginx has over TLS only: `$ssl_NAME`.
    WithoutTls,
    Map(super::MapId),
    Geo(super::GeoId),
    SplitClients(super::SplitClientsId),
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

/// What version 2 of the PROXY protocol may say beyond addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyExtra {
    /// By type.
    Of(u8),
    /// By type, among what is said of the proxy's own TLS.
    OfTls(u8),
    /// The outcome of verifying the client's certificate, as a number.
    TlsVerify,
}

impl ProxyExtra {
    /// `alpn`, `ssl_cn`, `0x05`, `ssl_0x21` and so on: what stands behind
    /// `$proxy_protocol_tlv_`.
    pub fn from_name(name: &str) -> Option<ProxyExtra> {
        let number = |text: &str| {
            let digits = text.strip_prefix("0x")?;
            u8::from_str_radix(digits, 16).ok()
        };
        let of = |known: &[(&str, u8)], name: &str| {
            let known = known.iter().find(|(text, _)| *text == name);
            known.map(|(_, kind)| *kind).or_else(|| number(name))
        };
        match name.strip_prefix("ssl_") {
            Some("verify") => Some(ProxyExtra::TlsVerify),
            Some(name) => of(TLS_EXTRAS, name).map(ProxyExtra::OfTls),
            None => of(EXTRAS, name).map(ProxyExtra::Of),
        }
    }
}

const EXTRAS: &[(&str, u8)] = &[
    ("alpn", 0x01),
    ("authority", 0x02),
    ("unique_id", 0x05),
    ("ssl", 0x20),
    ("netns", 0x30),
];

const TLS_EXTRAS: &[(&str, u8)] = &[
    ("version", 0x21),
    ("cn", 0x22),
    ("cipher", 0x23),
    ("sig_alg", 0x24),
    ("key_alg", 0x25),
];
