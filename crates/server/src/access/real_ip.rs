//! The client as trusted proxies tell it: its address (`set_real_ip_from`,
//! <https://nginx.org/en/docs/http/ngx_http_realip_module.html>), scheme and host
//! (`trusted_proxy`).

use std::net::SocketAddr;

use site::RealIpHeader;

use crate::exchange::request::Request;
use server_base::forwarded_for::{is_trusted, walk};

/// Returns the client's address from a trusted proxy's field; `None` once it was taken, so this may be asked
/// again in the final location.
pub fn client_address(request: &Request) -> Option<SocketAddr> {
    let rules = &request.settings().real_ip;
    let peer = request.received.connection().peer;
    if rules.from.is_empty() || request.received.client() != peer {
        return None;
    }
    match &rules.header {
        RealIpHeader::ProxyProtocol => match &request.received.connection().proxy {
            Some(proxy) if is_trusted(peer.map(|peer| peer.ip()), &rules.from) => {
                Some(proxy.client)
            }
            _ => None,
        },
        RealIpHeader::Field(name) if name.eq_ignore_ascii_case(b"x-forwarded-for") => {
            let chain: Vec<&[u8]> = request.received.head().field_all(name).collect();
            walk(peer, &chain, &rules.from, rules.recursive)
        }
        RealIpHeader::Field(name) => match request.received.head().field(name) {
            Some(value) => walk(peer, &[value], &rules.from, rules.recursive),
            None => None,
        },
    }
}

/// Scheme and host of the original request, as a trusted proxy forwards them (`trusted_proxy`).
#[derive(Debug, PartialEq, Eq)]
pub struct ForwardedFacts {
    pub scheme: &'static str,
    /// Host and perhaps port, as the proxy wrote them.
    pub host: Option<Vec<u8>>,
}

/// Returns the forwarded facts of `request`, or `None` if its peer is not trusted. The last of
/// several values counts: the proxy itself has added it.
pub fn forwarded(request: &Request) -> Option<ForwardedFacts> {
    let rules = &request.settings().real_ip;
    let peer = request.received.connection().peer.map(|peer| peer.ip());
    if !rules.believes_forwarded || !is_trusted(peer, &rules.from) {
        return None;
    }
    let last = |name: &'static [u8]| {
        let value = request.received.head().field_all(name).last()?;
        let value = value.rsplit(|&byte| byte == b',').next()?.trim_ascii();
        (!value.is_empty()).then_some(value)
    };
    let is_https = last(b"x-forwarded-proto").is_some_and(|it| it.eq_ignore_ascii_case(b"https"));
    Some(ForwardedFacts {
        scheme: if is_https { "https" } else { "http" },
        host: last(b"x-forwarded-host").map(<[u8]>::to_vec),
    })
}
