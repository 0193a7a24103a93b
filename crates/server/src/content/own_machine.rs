//! Locations that show what only the operator should see. Where nothing says who may see it, it is
//! programs on the server's own machine, and nobody on whose behalf they ask.

use std::net::IpAddr;

use site::{Network, ServerNames};

use crate::exchange::request::Request;

/// Why a request is not one of the server's own machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// It comes from elsewhere, or is made for somebody else.
    Elsewhere,
    /// Its `Host` is no name of this machine.
    Misnamed,
}

/// May whoever asks see it? `allow`, `deny` and passwords have been looked at before; where there
/// are any, they have decided.
pub fn may_see(request: &Request) -> bool {
    refuses(request).is_none()
}

/// Why whoever asks may not; `None`: they may.
pub fn refuses(request: &Request) -> Option<Stranger> {
    if is_decided(request) {
        None
    } else if !request.is_made_here() {
        Some(Stranger::Elsewhere)
    } else if !is_named_honestly(request) {
        Some(Stranger::Misnamed)
    } else {
        None
    }
}

/// Does the location say who may use it? A list of `allow` and `deny` does if it ends with `all`. One that
/// does not, such as a list of bad addresses for the whole site, says of somebody that he may not and
/// nothing of all others.
fn is_decided(request: &Request) -> bool {
    let settings = request.settings();
    let rules = &settings.access;
    rules.iter().any(|rule| rule.network == Network::All)
        || settings.auth.is_some()
        || settings.auth_request.is_some()
}

/// Is the host one that leads here by right? A page of somebody else may have a name that leads to
/// this machine when the browser asks for it a second time (DNS rebinding). What it loads then has
/// that name as its host.
fn is_named_honestly(request: &Request) -> bool {
    let host: &[u8] = &request.host;
    if host.is_empty() || host == b"localhost" || host.ends_with(b".localhost") {
        return true;
    }
    let address = host
        .strip_prefix(b"[")
        .and_then(|host| host.strip_suffix(b"]"));
    let text = std::str::from_utf8(address.unwrap_or(host));
    if text.is_ok_and(|text| text.parse::<IpAddr>().is_ok()) {
        return true;
    }
    let mut listeners = request.configuration.site.http.listeners.iter();
    listeners.any(|listener| is_name_of(&listener.names, host))
}

/// Does a `server_name` say that the host is of this machine? One that ends with `*` does not, nor does a
/// pattern: somebody else may have a domain that fits it.
fn is_name_of(names: &ServerNames, host: &[u8]) -> bool {
    let mut wildcards = names.leading_wildcard.iter();
    names.exact.contains_key(host) || wildcards.any(|(ending, _)| host.ends_with(ending))
}
