//! Requests that the server makes itself for a page (`exchange/own_visit.rs`): by which listener a visitor
//! would come, and the request of a visitor who has never been here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http1::{HeadLimits, parse_head};
use site::{ListenAddress, Listener, ListenerId};
use tls_server::ClientVerdict;

use super::validate::validate;
use super::{RequestTerms, tls};
use crate::base::clock;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::host_name::HostName;
use crate::exchange::own_visit::{OwnVisit, Purpose};
use crate::exchange::request::Request;
use crate::route;
use crate::transport::facts::{ConnectionFacts, LocalAddress, Offered, SessionId, TlsFacts};
use crate::transport::service::BodyLength;

/// Whom the server asks for: the IPv4 dummy address (RFC 7600), which no machine has. So no `allow`,
/// `geo` or `set_real_ip_from` means it by chance, and it has none of the rights of this machine.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8)), 0);

/// A longer URL is refused: a visitor's would be as well.
const MAX_TARGET_BYTES: usize = 8 << 10;

/// A page that the server is to ask itself for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub listener: ListenerId,
    /// `http` or `https`, as the URL has it.
    pub scheme: &'static str,
    /// Name and perhaps port, as the Host field has them.
    pub host: String,
    /// Path and arguments, as they are sent.
    pub target: String,
    /// More fields.
    pub fields: Vec<(String, Vec<u8>)>,
}

/// Why there is no request for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unaskable {
    /// It is no request.
    Invalid,
    /// A visitor like this would be refused, with this status.
    Refused(u16),
}

/// The listeners by which visitors come to this host, the most likely one first. Where none knows the
/// name, those whose default server has no name of its own serve it.
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
    asked: &Asked,
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
    let connection = Arc::new(connection(&terms, listener, &asked.host));
    let (server, now) = (terms.server, clock::now());
    let mut request = Request::new(terms.configuration, connection, head, server, now);
    request.extras.class = upstream::Class::Refresh;
    request.extras.own_visit = Some(Box::new(OwnVisit::new(purpose)));
    let no_body = |_: http_semantics::RequestView<'_>, _| Ok(BodyLength::None);
    let last = &mut HostName::default();
    match validate(asked.listener, &mut request, last, no_body) {
        Ok(_) => {}
        Err(refusal) => return Err(Unaskable::Refused(refusal.status)),
    }
    if request.settings().real_ip.believes_forwarded {
        // The proxy in front would say so.
        request.scheme = asked.scheme;
    }
    Ok(request)
}

fn head(asked: &Asked) -> Result<Vec<u8>, Unaskable> {
    let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let is_value = |value: &[u8]| value.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let is_valid = asked.target.starts_with('/')
        && asked.target.len() <= MAX_TARGET_BYTES
        && is_visible(&asked.target)
        && is_visible(&asked.host)
        && asked.fields.iter().all(|(_, value)| is_value(value));
    if !is_valid {
        return Err(Unaskable::Invalid);
    }
    let mut head =
        format!("GET {} HTTP/1.1\r\nHost: {}\r\n", asked.target, asked.host).into_bytes();
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
fn connection(terms: &RequestTerms, listener: &Listener, host: &str) -> ConnectionFacts {
    let local = match &listener.address {
        ListenAddress::Tcp(address) | ListenAddress::Udp(address) => LocalAddress::Ip(*address),
        ListenAddress::Unix(path) => LocalAddress::Unix(path.clone()),
    };
    let mut facts = ConnectionFacts::new(Some(NOBODY), local, clock::now());
    if listener.options.ssl {
        facts.scheme = "https";
        let name = http_semantics::parse_host(host.as_bytes());
        let name = name.and_then(|host| String::from_utf8(host.name.into_owned()).ok());
        let mut tls_facts = TlsFacts {
            protocol: None,
            cipher: None,
            group: None,
            server_name: name,
            offered: Offered::default(),
            session_id: SessionId::default(),
            alpn: None,
            is_resumed: false,
            client_certificates: Vec::new(),
            verdict: ClientVerdict::NoCertificate,
        };
        // A server that asks for certificates of clients refuses the one who has none.
        tls::judge(terms, &mut tls_facts);
        facts.tls = Some(Box::new(tls_facts));
    }
    facts
}
