//! Requests that the server makes itself for a page (`exchange/own_visit.rs`): by which listener a visitor
//! would come, and the request of a visitor who has never been here.

use std::net::{IpAddr, SocketAddr};

use control::Refusal;
use http1::{HeadLimits, parse_head};
use site::{ListenAddress, Listener, ListenerId};
use transport::facts::{ConnectionFacts, LocalAddress, TlsFacts};
use transport::request_body::RequestBody;
use transport::service::{BodyLength, ReceivedHead};

use super::validate::validate;
use super::{RequestTerms, tls};
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::host_name::HostName;
use crate::exchange::own_visit::{OwnVisit, Purpose};
use crate::exchange::request::Request;
use crate::route;

/// The client's address of the server's own requests, unless set otherwise: the IPv4 dummy address (RFC
/// 7600), which no machine has. So no `allow`, `geo` or `set_real_ip_from` means it by chance, and it
/// has none of the rights of this machine.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(shared_request::left_out::DUMMY), 0);

/// A longer URL is refused: a visitor's would be as well.
const MAX_TARGET_BYTES: usize = 8 << 10;

/// A page that the server is to ask itself for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPageRequest {
    pub listener: ListenerId,
    /// `http` or `https`, as the URL has it.
    pub scheme: &'static str,
    /// Name and perhaps port, as the Host field has them.
    pub host: String,
    /// Path and arguments, as they are sent.
    pub target: String,
    pub method: String,
    /// `None`: the request comes from no address.
    pub client: Option<IpAddr>,
    /// More fields.
    pub fields: Vec<(String, Vec<u8>)>,
}

/// A request of the server's own, named by its URL.
pub struct AskedUrl<'a> {
    pub url: &'a str,
    pub method: &'a str,
    /// The address that the request comes from; `None`: no address.
    pub client: Option<IpAddr>,
    /// More fields; a Host among them is the host that is asked for.
    pub fields: Vec<(String, Vec<u8>)>,
}

/// Why there is no request for a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unaskable {
    #[error("expected an absolute URL such as https://example.org/news/5")]
    NotAbsolute,
    #[error("the host of this URL is not valid")]
    InvalidHost,
    #[error("the Host field is not valid")]
    InvalidHostField,
    #[error("this server has no site {0}")]
    UnknownSite(String),
    #[error("this URL is not valid")]
    Invalid,
    /// A visitor like this would be refused, with this status.
    #[error("a visitor without a history is answered {0}")]
    Refused(u16),
}

impl From<Unaskable> for Refusal {
    fn from(why: Unaskable) -> Refusal {
        Refusal::field("url", why.to_string())
    }
}

/// The listeners by which visitors come to this host, the most likely one first. If none knows the name,
/// listeners whose default server has no name of its own serve it.
pub fn listeners(
    configuration: &ConfigurationHandle,
    host: &[u8],
    scheme: &str,
    port: Option<u16>,
) -> Vec<ListenerId> {
    let http = &configuration.site.http;
    let usual = if scheme == "https" { 443 } else { 80 };
    let port = port.unwrap_or(usual);
    let listeners = http.listeners.iter().enumerate();
    let mut known: Vec<((bool, bool, bool), ListenerId)> = listeners
        .filter(|(_, listener)| !listener.options.quic)
        .filter_map(|(at, listener)| {
            let is_named = route::named_server(listener, host).is_some();
            let default = &http.servers[listener.default_server.0].name;
            let is_open = matches!(default.as_str(), "" | "_");
            let rank = (
                is_named,
                listener.options.ssl == (scheme == "https"),
                port_of(listener) == Some(port),
            );
            (is_named || is_open).then_some((rank, ListenerId(at)))
        })
        .collect();
    if known.iter().any(|((is_named, ..), _)| *is_named) {
        known.retain(|((is_named, ..), _)| *is_named);
    }
    known.sort_by_key(|(rank, at)| (std::cmp::Reverse(*rank), at.0));
    known.into_iter().map(|(_, listener)| listener).collect()
}

/// The port of a listener; `None`: a unix socket has none.
pub fn port_of(listener: &Listener) -> Option<u16> {
    match &listener.address {
        ListenAddress::Tcp(address) | ListenAddress::Udp(address) => Some(address.port()),
        ListenAddress::Unix(_) => None,
    }
}

/// The request for a page.
///
/// # Errors
/// [`Unaskable`]
pub fn request(
    configuration: &ConfigurationHandle,
    asked: &OwnPageRequest,
    purpose: Purpose,
) -> Result<Box<Request>, Unaskable> {
    let head = parse_head(head(asked)?, &HeadLimits::default());
    let head = head.map_err(|_| Unaskable::Invalid)?;
    let listener = &configuration.site.http.listeners[asked.listener.0];
    let terms = RequestTerms {
        server: listener.default_server,
        configuration: configuration.clone(),
        listener: asked.listener,
    };
    let client = asked
        .client
        .map_or(NOBODY, |client| SocketAddr::new(client, 0));
    let connection = connection(&terms, listener, &asked.host, client);
    let now = clock::now();
    let received = ReceivedHead::made(connection, head, now);
    let mut request = Request::new(terms.configuration, received, None, terms.server, now);
    request.class = upstream::Class::Refresh;
    request.own_visit = Some(Box::new(OwnVisit::new(purpose)));
    let is_dry = request.is_dry();
    let body_of = |head: http_semantics::RequestView<'_>, _| {
        let has_body = |name: &[u8]| head.field(name).is_some_and(|value| value != b"0");
        match is_dry && (has_body(b"content-length") || has_body(b"transfer-encoding")) {
            true => Ok(BodyLength::Unknown),
            false => Ok(BodyLength::None),
        }
    };
    let last = &mut HostName::default();
    match validate(asked.listener, &mut request, last, body_of) {
        Ok(BodyLength::None) => {}
        // The request is only explained.
        Ok(_) => request.body = RequestBody::Unread,
        Err(refusal) => return Err(Unaskable::Refused(refusal.status)),
    }
    if request.settings().real_ip.believes_forwarded {
        // The proxy in front would say so.
        request.received.believe_scheme(asked.scheme);
    }
    Ok(request)
}

/// The request for a URL.
///
/// # Errors
/// Why the URL gives no request.
pub fn of_url(
    configuration: &ConfigurationHandle,
    asked: &AskedUrl<'_>,
    purpose: Purpose,
) -> Result<Box<Request>, Unaskable> {
    let Url {
        scheme,
        authority,
        target,
    } = Url::parse(asked.url).ok_or(Unaskable::NotAbsolute)?;
    let host = http_semantics::parse_host(authority.as_bytes());
    let host = host.ok_or(Unaskable::InvalidHost)?;
    let (hosts, fields): (Vec<_>, Vec<_>) = asked
        .fields
        .iter()
        .cloned()
        .partition(|(name, _)| name.eq_ignore_ascii_case("host"));
    let (named, name) = match hosts.first() {
        None => (authority.to_owned(), host.name),
        Some((_, value)) => {
            let named = String::from_utf8_lossy(value).into_owned();
            let host = http_semantics::parse_host(value).ok_or(Unaskable::InvalidHostField)?;
            (named, host.name.into_owned().into())
        }
    };
    let listeners = listeners(configuration, &name, scheme, host.port);
    let Some(&listener) = listeners.first() else {
        let name = String::from_utf8_lossy(&name);
        return Err(Unaskable::UnknownSite(name.into_owned()));
    };
    let asked = OwnPageRequest {
        listener,
        scheme,
        host: named,
        target,
        method: asked.method.to_owned(),
        client: asked.client,
        fields,
    };
    request(configuration, &asked, purpose)
}

fn head(asked: &OwnPageRequest) -> Result<Vec<u8>, Unaskable> {
    let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let is_value = |value: &[u8]| value.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let is_name = |name: &str| {
        let is_letter =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !name.is_empty() && name.bytes().all(is_letter)
    };
    let is_valid = asked.target.starts_with('/')
        && is_name(&asked.method)
        && asked.target.len() <= MAX_TARGET_BYTES
        && is_visible(&asked.target)
        && is_visible(&asked.host)
        && asked
            .fields
            .iter()
            .all(|(name, value)| is_name(name) && is_value(value));
    if !is_valid {
        return Err(Unaskable::Invalid);
    }
    let mut head = format!(
        "{} {} HTTP/1.1\r\nHost: {}\r\n",
        asked.method, asked.target, asked.host
    )
    .into_bytes();
    for (name, value) in &asked.fields {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Ok(head)
}

/// The connection that a visitor would have come by.
fn connection(
    terms: &RequestTerms,
    listener: &Listener,
    host: &str,
    client: SocketAddr,
) -> ConnectionFacts {
    let local = match &listener.address {
        ListenAddress::Tcp(address) | ListenAddress::Udp(address) => LocalAddress::Ip(*address),
        ListenAddress::Unix(path) => LocalAddress::Unix(path.clone()),
    };
    let mut facts = ConnectionFacts::new(Some(client), local, clock::now());
    if listener.options.ssl {
        facts.scheme = "https";
        let name = http_semantics::parse_host(host.as_bytes());
        let name = name.and_then(|host| String::from_utf8(host.name.into_owned()).ok());
        let mut tls_facts = TlsFacts::of_name(name);
        // A server that asks for certificates of clients refuses the one who has none.
        tls::judge(terms, &mut tls_facts);
        facts.tls = Some(Box::new(tls_facts));
    }
    facts
}

/// The parts of an absolute URL that a request is made of.
#[derive(Debug, PartialEq, Eq)]
struct Url<'a> {
    scheme: &'static str,
    authority: &'a str,
    target: String,
}

impl<'a> Url<'a> {
    fn parse(url: &'a str) -> Option<Url<'a>> {
        let is = |scheme: &str| {
            let start = url.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        let scheme = ["https", "http"]
            .into_iter()
            .find(|scheme| is(&format!("{scheme}://")))?;
        let rest = url.get(scheme.len() + 3..)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        // An empty path is `/` (RFC 9110 §4.2.3).
        let slash = if target.starts_with('/') { "" } else { "/" };
        Some(Url {
            scheme,
            authority,
            target: slash.to_owned() + &encoded(target),
        })
    }
}

/// Sitemaps and lists are written by people: bytes that a browser would encode are encoded.
fn encoded(target: &str) -> String {
    let mut out = String::with_capacity(target.len());
    for byte in target.bytes() {
        match byte {
            b'"' | b'<' | b'>' | b'`' => out.push_str(&format!("%{byte:02X}")),
            _ if byte.is_ascii_graphic() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_encoded_as_browsers_do() {
        let parsed = |url| Url::parse(url).map(|it| (it.scheme, it.authority, it.target));
        for (url, expected) in [
            (
                "https://example.org/a?b=c#d",
                Some(("https", "example.org", "/a?b=c")),
            ),
            (
                "HTTP://Example.org:8080",
                Some(("http", "Example.org:8080", "/")),
            ),
            (
                "http://example.org?a=1",
                Some(("http", "example.org", "/?a=1")),
            ),
            (
                "http://a/caf\u{e9} <1>",
                Some(("http", "a", "/caf%C3%A9%20%3C1%3E")),
            ),
            ("http://a/\r\nX: 1", Some(("http", "a", "/%0D%0AX:%201"))),
            ("/news/5", None),
            ("ftp://a/", None),
            ("https:/a", None),
        ] {
            let expected =
                expected.map(|(scheme, authority, target)| (scheme, authority, target.to_owned()));
            assert_eq!(parsed(url), expected, "{url:?}");
        }
    }
}
