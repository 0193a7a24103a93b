//! Values that version 2 of the PROXY protocol carries beside addresses, and their names in
//! `$proxy_protocol_tlv_NAME`.

/// A value of version 2 of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyExtra {
    /// By type.
    Of(u8),
    /// By type, among the values about the proxy's TLS connection.
    OfTls(u8),
    /// The outcome of verifying the client's certificate, as a number.
    TlsVerify,
}

impl ProxyExtra {
    /// The value for a name after `$proxy_protocol_tlv_`: `alpn`, `ssl_cn`, `0x05`, `ssl_0x21`
    /// and others.
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
