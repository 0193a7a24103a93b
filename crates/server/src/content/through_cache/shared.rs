//! Fetches whose answers may be shared: the request that the application is sent in the
//! place of a visitor's.
//!
//! With `cache_shared` it is written anew (how and why: [`shared_request`]); everything that the
//! configuration makes of a request (params, fields, the URL of a `proxy_pass`) is then evaluated over the
//! request made here, so that nothing of the visitor's own can get in between. The parts of the visitor's
//! request that this file takes over are listed in [`request_for`], and all of them are in the key that
//! [`put_key`] makes.
//!
//! Without `cache_shared` fields go as nginx sends them, less the arguments and cookies that
//! do not count ([`without_what_does_not_count`]).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest::{SHA256, digest};
use http_semantics::Version;
use http1::{HeadLimits, parse_head};
use shared_request::{Bypass, Class, LeftOut, SharedHead, Trait, TraitSet, Visitor, cookies};
use site::{CacheRules, SharedRules};
use transport::facts::{ConnectionFacts, LocalAddress};

use crate::content::pass::fetch_purpose::NOT_FOR_CACHE;
use crate::content::pass::loop_detection;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::{Method, Request};
use crate::exchange::request_route::TargetOrigin;
use crate::exchange::request_values::VariableValues;

/// Stands before each value of a variable that is in a key; in no field and no target.
const SEPARATOR: u8 = 0;

fn received(request: &Request) -> shared_request::ReceivedRequest<'_> {
    let rewritten = request.route.origin != TargetOrigin::Received;
    let clean = request
        .cache
        .guest
        .as_ref()
        .and_then(|guest| guest.clean.as_ref());
    let args = clean.map_or(&request.route.args, |clean| &clean.args);
    shared_request::ReceivedRequest {
        head: request.received.head().view(),
        scheme: request.received.scheme(),
        host: request.received.host(),
        port: request.received.host_port(),
        server_port: request.received.connection().local.port().unwrap_or(0),
        target: clean.map_or(request.received.target(), |clean| &clean.target),
        rewritten: rewritten.then_some((&request.route.path, args)),
        client: request.received.client_ip(),
        is_guest: request.cache.guest.is_some(),
    }
}

/// Appends the key of a request, without the additions of `*_cache_key`.
///
/// # Errors
/// The reason why it goes past the cache.
#[inline]
pub fn put_key(
    request: &Request,
    rules: &SharedRules,
    key: &mut Vec<u8>,
) -> Result<Visitor, Bypass> {
    let visitor = shared_request::put_key(&received(request), &rules.request, key)?;
    put_way(request, key);
    Ok(visitor)
}

/// Appends to such a key the parts that the page was seen to depend on.
///
/// # Errors
/// It is too long for a key.
pub fn put_keyed(
    request: &Request,
    rules: &SharedRules,
    keyed: TraitSet,
    key: &mut Vec<u8>,
) -> Result<(), Bypass> {
    shared_request::put_keyed(&received(request), &rules.request, keyed, key)
}

/// Returns the fields left out of a request when responses have named these fields in `Vary`.
pub fn without_varied(request: &Request, names: &[String], left_out: LeftOut) -> LeftOut {
    shared_request::without_varied(&received(request), names, left_out)
}

/// Like [`put_key`], for a request with cookies that are in no key ([`shared_request::put_visitors_key`]).
pub fn put_visitors_key(
    request: &Request,
    rules: &SharedRules,
    key: &mut Vec<u8>,
) -> Result<Class, Bypass> {
    let class = shared_request::put_visitors_key(&received(request), &rules.request, key)?;
    put_way(request, key);
    Ok(class)
}

/// Appends the visitor's identity to such a key: all cookies that the application is sent, and the client's
/// address. Returns its hash, which is appended.
pub fn put_visitor(request: &Request, rules: &SharedRules, key: &mut Vec<u8>) -> [u8; 32] {
    let mut identity = Vec::with_capacity(512);
    shared_request::put_all_cookies(&received(request), &rules.request, &mut identity);
    identity.push(SEPARATOR);
    if let Some(ip) = request.received.client_ip() {
        identity.extend_from_slice(ip.to_string().as_bytes());
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, &identity).as_ref());
    put_numbered(VISITOR, &hash, key);
    hash
}

/// Appends a hash of all that the visitor's own request says: method, target, the addresses of both ends, and all fields
/// with all cookies, less those that are not sent for a response that may be stored.
pub fn put_whole_request(request: &Request, key: &mut Vec<u8>) {
    let (received, route) = (&request.received, &request.route);
    let mut whole = Vec::with_capacity(1024);
    let mut put = |part: &[u8]| {
        whole.extend_from_slice(&(part.len() as u64).to_be_bytes());
        whole.extend_from_slice(part);
    };
    put(received.head().method());
    put(received.head().version().as_str().as_bytes());
    put(received.scheme().as_bytes());
    put(received.host());
    put(received.target());
    put(&route.path);
    put(&route.args);
    let address = |end: Option<IpAddr>| end.map_or_else(String::new, |ip| ip.to_string());
    put(address(received.client_ip()).as_bytes());
    put(format!("{:?}", received.connection().local).as_bytes());
    for (name, value) in received.head().fields() {
        let name = name.to_ascii_lowercase();
        if !NOT_FOR_CACHE.iter().any(|it| it.as_bytes() == name) {
            put(&name);
            put(value);
        }
    }
    put_numbered(WHOLE_REQUEST, digest(&SHA256, &whole).as_ref(), key);
}

/// Stands before such a hash.
const WHOLE_REQUEST: usize = u32::MAX as usize - 3;
/// Stands before a visitor among numbered values: no value of a variable has this number.
const VISITOR: usize = u32::MAX as usize - 1;
/// Stands before variables that `.htaccess` files set for scripts.
const SCRIPT_VARIABLE: usize = u32::MAX as usize - 2;
/// Stands in the place of such a variable's value if that is the client's address.
const CLIENT_ADDRESS: usize = u32::MAX as usize - 4;

/// Appends the traces of the way through the configuration, which may have been chosen by anything of the
/// request: the location, where the URL alone does not lead to it, and the values of `set` and of captures.
#[inline]
fn put_way(request: &Request, key: &mut Vec<u8>) {
    let location = &request.compiled_location().name_in_key;
    if !location.is_empty() {
        put_numbered(usize::MAX, location, key);
    }
    request.values.read(|values| {
        if !values.slots.is_empty() || !values.captures.is_empty() {
            put_values(values, key);
        }
    });
    let address = client_address(request);
    for (name, value) in &request.route.script_variables {
        put_numbered(SCRIPT_VARIABLE, name.as_bytes(), key);
        match address.as_deref() == Some(value) {
            true => put_numbered(CLIENT_ADDRESS, b"", key),
            false => put_numbered(SCRIPT_VARIABLE, value, key),
        }
    }
}

/// The client's address, as variables of `.htaccess` files have it. A variable with nothing else in it is to the script
/// what `REMOTE_ADDR` is: it is in no key, and the shared request has its own address there.
fn client_address(request: &Request) -> Option<Vec<u8>> {
    let is_set = !request.route.script_variables.is_empty();
    let ip = is_set.then(|| request.received.client_ip())??;
    Some(ip.to_canonical().to_string().into_bytes())
}

fn put_values(values: &VariableValues, key: &mut Vec<u8>) {
    let slots = values.slots.iter().map(Option::as_deref).enumerate();
    let group = |number| {
        (
            usize::from(u16::MAX) + number,
            values.captures.group(number),
        )
    };
    for (number, value) in slots.chain((1..10).map(group)) {
        if let Some(value) = value {
            put_numbered(number, value, key);
        }
    }
}

/// Appends a value with its number and its length.
fn put_numbered(number: usize, value: &[u8], key: &mut Vec<u8>) {
    key.push(SEPARATOR);
    for part in [number, value.len()] {
        key.extend_from_slice(&u32::try_from(part).unwrap_or(u32::MAX).to_be_bytes());
    }
    key.extend_from_slice(value);
}

/// The request that the application is sent for `request`, from `address`, unless the client's own is tried.
pub fn request_for(
    request: &Request,
    rules: &SharedRules,
    shared: &SharedHead<'_>,
    address: Ipv4Addr,
) -> Option<Box<Request>> {
    let mut head = Vec::with_capacity(512);
    shared_request::write_head(&received(request), &rules.request, shared, &mut head);
    if loop_detection::is_from_own_fragment(&request.received) {
        // Before the empty line.
        head.truncate(head.len() - 2);
        for part in [
            loop_detection::FIELD.as_bytes(),
            b": ",
            loop_detection::own_name(),
            b"\r\n\r\n",
        ] {
            head.extend_from_slice(part);
        }
    }
    let received = &request.received;
    let connection = match (shared.tried.has(Trait::Network), received.client()) {
        (true, client) => without_connection(received, client),
        (false, _) => without_visitor(received, address),
    };
    let client = connection.peer;
    let mut made = made_for_cache(request, connection, head)?;
    made.received.set_client(client);
    if let (Some(own), Some(shared)) = (client_address(request), client_address(&made)) {
        let values = made.route.script_variables.iter_mut();
        let of_client = values.filter(|(_, value)| *value == own);
        of_client.for_each(|(_, value)| value.clone_from(&shared));
    }
    made.route.args.clear();
    let removed = &rules.request.removed_arguments;
    let clean = request
        .cache
        .guest
        .as_ref()
        .and_then(|guest| guest.clean.as_ref());
    let args = clean.map_or(&request.route.args, |clean| &clean.args);
    shared_request::arguments::put_counted(args, removed, &mut made.route.args);
    made.route.method = Method::Get;
    made.route.method_override = None;
    made.values.get_mut().remote_user = None;
    // An earlier X-Accel-Redirect of another upstream is in no key.
    made.trace = OnceLock::new();
    Some(made)
}

/// A copy of a request, of which others can be made once its visitor has an answer.
pub fn copy_of(request: &Request) -> Box<Request> {
    request.on_same_way(request.internal())
}

/// Creates a request of the server's own with another head, and with the visitor's host, server, location and
/// path (all made from host and target), the values of variables, the slice that is wanted.
fn made_for_cache(
    request: &Request,
    connection: Arc<ConnectionFacts>,
    head: Vec<u8>,
) -> Option<Box<Request>> {
    // This head is parsed a second time; if that fails, nothing is sent.
    let head = parse_head(head, &HeadLimits::OF_OWN_HEADS).ok()?;
    let mut made = request.on_same_way(request.internal_with(connection, head));
    made.trace = request.trace.clone();
    Some(made)
}

/// Returns the connection facts of a client at `address`, which no client has. Over a unix socket there is no address.
pub fn without_visitor(received: &ReceivedRequest, address: Ipv4Addr) -> Arc<ConnectionFacts> {
    let neutral = SocketAddr::new(IpAddr::V4(address), 0);
    without_connection(received, received.client().map(|_| neutral))
}

/// Returns the connection facts that the application may see: the port of the listener, which is in the key, and this
/// client.
fn without_connection(
    received: &ReceivedRequest,
    client: Option<SocketAddr>,
) -> Arc<ConnectionFacts> {
    let connection = received.connection();
    Arc::new(ConnectionFacts {
        serial: connection.serial,
        peer: client,
        local: match &connection.local {
            LocalAddress::Ip(address) => {
                let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
                LocalAddress::Ip(SocketAddr::new(any, address.port()))
            }
            LocalAddress::Unix(path) => LocalAddress::Unix(path.clone()),
        },
        scheme: connection.scheme,
        accepted_at: connection.accepted_at,
        proxy: None,
        tls: None,
        lacks_tls: false,
    })
}

/// The request without the arguments and cookies that `cache_ignore_args` and
/// `cache_ignore_cookies` name.
pub fn without_what_does_not_count(request: &Request, rules: &CacheRules) -> Option<Box<Request>> {
    let mut head = Vec::with_capacity(request.received.head().bytes.len());
    head.extend_from_slice(request.received.head().method());
    head.push(b' ');
    let removed = &rules.ignored_arguments;
    shared_request::arguments::put_target(request.received.target(), removed, &mut head);
    // Written in the form of HTTP/1, whatever version the request came by.
    let version = request.received.head().version().min(Version::Http11);
    head.extend_from_slice(b" ");
    head.extend_from_slice(version.as_str().as_bytes());
    head.extend_from_slice(b"\r\n");
    let mut cookies_are_sent = false;
    for (name, value) in request.received.head().fields() {
        let is_cookie = name.eq_ignore_ascii_case(b"cookie");
        if is_cookie && std::mem::replace(&mut cookies_are_sent, true) {
            continue;
        }
        let start = head.len();
        head.extend_from_slice(name);
        head.extend_from_slice(b": ");
        let value_start = head.len();
        match is_cookie {
            true => {
                cookies::put_others(
                    request.received.head().view(),
                    &rules.ignored_cookies,
                    &mut head,
                );
            }
            false => head.extend_from_slice(value),
        }
        match is_cookie && head.len() == value_start {
            true => head.truncate(start),
            false => head.extend_from_slice(b"\r\n"),
        }
    }
    head.extend_from_slice(b"\r\n");
    let connection = request.received.connection().clone();
    let mut made = made_for_cache(request, connection, head)?;
    made.body = request.body.share();
    made.route.args.clear();
    shared_request::arguments::put_counted(&request.route.args, removed, &mut made.route.args);
    Some(made)
}
