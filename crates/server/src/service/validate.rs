//! From a head to a request that knows its host, target and server.

use http_semantics::{RequestView, Target, TargetError, TargetForm};
use site::ListenerId;
use transport::service::{BodyLength, Refusal};

use super::tls;
use crate::access::real_ip::{self as access, ForwardedFacts};
use crate::exchange::host_name::HostName;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use crate::route;

/// Validates host, target and length of the body, before anything else. `last` is the host of the
/// request before.
#[inline]
pub fn validate(
    listener: ListenerId,
    request: &mut Request,
    last: &mut HostName,
    body_of: impl FnOnce(RequestView<'_>, bool) -> Result<BodyLength, Box<Refusal>>,
) -> Result<BodyLength, Box<Refusal>> {
    let configuration = &request.configuration;
    let http = &configuration.site.http;
    let merge = http.servers[request.route.server().0].merge_slashes;
    let head = request.received.head().view();
    let target = Target::parse(head.target(), merge)?;
    // The target is set before the rest is validated, for the log of refused requests.
    request.route.path.extend_from_slice(&target.path);
    let query = target.query.unwrap_or_default();
    request.route.args.extend_from_slice(query);
    let field = head.field(b"host");
    let mut host = HostName::default();
    if target.authority.is_none() && field.is_some_and(|field| last.is_named_by(field)) {
        host = std::mem::take(last);
    } else if let Some(named) = http_semantics::request_host(head, &target)? {
        let received = target.authority.or(field).unwrap_or_default();
        host = std::mem::take(last);
        host.set(received, &named);
    }
    let body = body_of(head, field.is_some());
    let authority = target
        .authority
        .filter(|_| target.form == TargetForm::Absolute);
    let replaced = authority.map(|authority| (authority.to_vec(), origin_form(target.raw)));
    let is_asterisk = target.form == TargetForm::Asterisk;
    // Also where the rest is refused, likewise.
    request.received.set_host(host);
    let body = body?;
    if is_asterisk {
        return Err(TargetError::InvalidTarget.into());
    }
    if let Some((authority, target)) = replaced {
        request.received.set_target(&authority, &target);
    }
    if request.settings().real_ip.believes_forwarded
        && let Some(forwarded) = access::forwarded(request)
    {
        take_forwarded(&mut request.received, forwarded)?;
    }
    let configuration = &request.configuration;
    let http = &configuration.site.http;
    let names = &http.listeners[listener.0];
    let server = match configuration.locations.has_one_server(listener) {
        true => names.default_server,
        false => request
            .received
            .server_in(configuration.serial, |host| route::server_for(names, host)),
    };
    let captures = route::may_capture(names);
    let own_merge = http.servers[server.0].merge_slashes;
    if own_merge != merge {
        request.route.path = path_of(request.received.head().target(), own_merge)?;
    }
    if server != request.route.server() {
        request.enter_server(server);
    }
    if captures {
        let configuration = request.configuration.clone();
        route::capture_server_name(request, &configuration.site.http.listeners[listener.0]);
    }
    if let Some(client) = access::client_address(request) {
        request.received.believe_client(client);
    }
    if request.received.connection().tls.is_some() || request.received.connection().lacks_tls {
        tls::check(request, listener)?;
    }
    Ok(body)
}

/// Takes scheme and host from a trusted proxy's fields.
fn take_forwarded(
    request: &mut ReceivedRequest,
    forwarded: ForwardedFacts,
) -> Result<(), TargetError> {
    request.believe_scheme(forwarded.scheme);
    if let Some(received) = forwarded.host {
        let host = http_semantics::parse_host(&received).ok_or(TargetError::InvalidHost)?;
        request.believe_host(&received, &host);
    }
    Ok(())
}

/// Returns the target without scheme and authority; an empty path is `/` (RFC 9110 §4.2.3).
fn origin_form(raw: &[u8]) -> Vec<u8> {
    match raw.first() {
        Some(b'/') => raw.to_vec(),
        _ => [b"/", raw].concat(),
    }
}

/// The path once more, for a server that takes it otherwise than the default one.
#[cold]
fn path_of(target: &[u8], merge_slashes: bool) -> Result<Vec<u8>, TargetError> {
    Ok(Target::parse(target, merge_slashes)?.path.into_owned())
}
