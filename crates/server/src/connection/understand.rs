//! From a head to a request that knows its host, target and server.

use http1::{Framing, RequestError, Target, TargetForm, Version};
use site::{ListenerId, Server};

use crate::request::{HostName, Request};
use crate::{access, route};

/// Host, target, framing: what must be beyond doubt before anything else. `last` is the
/// host of the request before.
pub fn understand(
    listener: ListenerId,
    request: &mut Request,
    last: &mut HostName,
) -> Result<Framing, RequestError> {
    let runtime = &request.runtime;
    let http = &runtime.site.http;
    let names = &http.listeners[listener.0];
    let merge = http.servers[request.server.0].merge_slashes;
    let head = request.head.view();
    let target = Target::parse(head.target(), merge)?;
    let field = head.field(b"host");
    if target.authority.is_none() && field.is_some_and(|field| last.is_named_by(field)) {
        request.host = std::mem::take(last);
    } else if let Some(host) = http1::request_host(head, &target)? {
        let received = target.authority.or(field).unwrap_or_default();
        request.host = std::mem::take(last);
        request.host.set(received, &host);
    }
    let framing = match head.version() {
        Version::Http09 => Framing::None,
        _ => http1::framing_beside_host(head, field.is_some())?,
    };
    if target.form == TargetForm::Asterisk {
        return Err(RequestError::InvalidRequestLine);
    }
    request.path.extend_from_slice(&target.path);
    request
        .args
        .extend_from_slice(target.query.unwrap_or_default());
    let server = match runtime.places.has_one_server(listener) {
        true => names.default_server,
        false => request
            .host
            .server_in(runtime.serial, |host| route::server_for(names, host)),
    };
    let captures = route::may_capture(names);
    let own_merge = http.servers[server.0].merge_slashes;
    if own_merge != merge {
        request.path = path_of(request.head.target(), own_merge)?;
    }
    if server != request.server {
        request.server = server;
        request.enter(Server::ROOT);
    }
    if captures {
        let runtime = request.runtime.clone();
        route::capture_server_name(request, &runtime.site.http.listeners[listener.0]);
    }
    access::apply_real_ip(request);
    Ok(framing)
}

/// The path once more, for a server that takes it otherwise than the default one.
#[cold]
fn path_of(target: &[u8], merge_slashes: bool) -> Result<Vec<u8>, RequestError> {
    Ok(Target::parse(target, merge_slashes)?.path.into_owned())
}
