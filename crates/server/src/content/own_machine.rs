//! Locations that show what only the operator should see. Where nothing says who may see it, it is
//! programs on the server's own machine, and nobody on whose behalf they ask.

use std::net::IpAddr;

use site::Network;

use crate::exchange::request::Request;

/// May whoever asks see it? `allow`, `deny` and passwords have been looked at before; where there
/// are any, they have decided.
pub fn may_see(request: &Request) -> bool {
    is_decided(request) || (request.is_made_here() && is_named_honestly(request))
}

/// Does the location say who may use it? A list of `allow` and `deny` does if it ends with `all`. One that
/// does not, such as a list of bad addresses for the whole site, says of somebody that he may not and
/// nothing of all others.
pub fn is_decided(request: &Request) -> bool {
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
    listeners.any(|listener| listener.names.exact.contains_key(host))
}
