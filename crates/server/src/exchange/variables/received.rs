//! Variables of the client's request and of its current state: method, target, host,
//! body.

use std::sync::atomic::Ordering::Relaxed;

use std::net::IpAddr;

use http_semantics::escape::hex_digits;
use shared_request::arguments;
use site::Builtin as B;
use transport::request_body::RequestBody;

use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use crate::exchange::request_fields::put_field;
use crate::exchange::value::{put, put_address, put_number, put_port};
use crate::exchange::variable_table::Value::{Received, Request as Of};
use crate::exchange::variable_table::Variables;

#[rustfmt::skip]
pub const VARIABLES: Variables = &[
    (B::Args, Of(put_args)),
    (B::BinaryRemoteAddr, Received(put_binary_address)),
    (B::ClientIsLocal, Of(|request, out| put(request.is_of_own_program().then_some(b"1".as_slice()), out))),
    (B::ContentLength, Of(put_content_length)),
    (B::ContentType, Of(|request, out| put_field(request, b"content_type", out))),
    (B::DocumentUri, Of(put_path)),
    (B::Host, Of(put_host)),
    (B::IsArgs, Of(put_is_args)),
    (B::IsRequestPort, Received(put_is_request_port)),
    (B::QueryString, Of(put_args)),
    (B::RemoteAddr, Received(|received, out| put_address(received.client(), out))),
    (B::RemotePort, Received(|received, out| put_port(received.client(), out))),
    (B::Request, Received(|received, out| put(Some(received.head().request_line()), out))),
    (B::RequestBody, Of(|request, out| put(request.body.in_memory(), out))),
    (B::RequestBodyFile, Of(|request, out| put(request.body.file_name(), out))),
    (B::RequestId, Of(put_request_id)),
    (B::RequestLength, Of(|request, out| put_number(request.received_bytes.load(Relaxed), out))),
    (B::RequestMethod, Of(put_method)),
    (B::RequestPort, Received(put_request_port)),
    (B::RequestUri, Of(put_request_uri)),
    (B::Scheme, Received(|received, out| put(Some(received.scheme().as_bytes()), out))),
    (B::ServerName, Of(|request, out| put(Some(request.server().name.as_bytes()), out))),
    (B::ServerProtocol, Received(put_protocol)),
    (B::Uri, Of(put_path)),
];

fn put_path(request: &Request, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(&request.route.path);
    true
}

/// The query string, for the cache without the arguments that do not count.
fn put_args(request: &Request, out: &mut Vec<u8>) -> bool {
    if request.cache.view.counts_all_arguments() {
        out.extend_from_slice(&request.route.args);
    } else {
        put_counted_args(request, out);
    }
    !request.route.args.is_empty()
}

fn put_counted_args(request: &Request, out: &mut Vec<u8>) {
    arguments::put_counted(
        &request.route.args,
        request.cache.view.ignored_arguments(),
        out,
    );
}

fn put_is_args(request: &Request, out: &mut Vec<u8>) -> bool {
    let mut args = Vec::new();
    put_counted_args(request, &mut args);
    if !args.is_empty() {
        out.push(b'?');
    }
    true
}

fn put_request_uri(request: &Request, out: &mut Vec<u8>) -> bool {
    if !request.received.has_line() {
        return false;
    }
    let target = request.received.target();
    match request.cache.view.counts_all_arguments() {
        true => out.extend_from_slice(target),
        false => arguments::put_target(target, request.cache.view.ignored_arguments(), out),
    }
    true
}

fn put_method(request: &Request, out: &mut Vec<u8>) -> bool {
    let method = request.method_name();
    out.extend_from_slice(method);
    !method.is_empty()
}

/// A request of HTTP/0.9 names no protocol.
fn put_protocol(received: &ReceivedRequest, out: &mut Vec<u8>) -> bool {
    let version = received.head().version();
    let is_named = received.has_line() && version != http_semantics::Version::Http09;
    put(is_named.then(|| version.as_str().as_bytes()), out)
}

/// The server's name where the client named no host.
fn put_host(request: &Request, out: &mut Vec<u8>) -> bool {
    match request.received.host().is_empty() {
        true => out.extend_from_slice(request.server().name.as_bytes()),
        false => out.extend_from_slice(request.received.host()),
    }
    true
}

fn put_is_request_port(received: &ReceivedRequest, out: &mut Vec<u8>) -> bool {
    if received.host_port().is_some() {
        out.push(b':');
    }
    true
}

fn put_request_port(received: &ReceivedRequest, out: &mut Vec<u8>) -> bool {
    match received.host_port() {
        Some(port) => put_number(port, out),
        None => true,
    }
}

/// A chunked body has a length once it was read.
fn put_content_length(request: &Request, out: &mut Vec<u8>) -> bool {
    put_field(request, b"content_length", out)
        || match (&request.body, request.body.length()) {
            (RequestBody::None, _) | (_, None) => false,
            (_, Some(length)) => put_number(length, out),
        }
}

fn put_binary_address(received: &ReceivedRequest, out: &mut Vec<u8>) -> bool {
    match received.client_ip() {
        Some(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
        Some(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
        None => out.extend_from_slice(b"unix:"),
    }
    true
}

fn put_request_id(request: &Request, out: &mut Vec<u8>) -> bool {
    out.extend(hex_digits(&request.values.name_request()));
    true
}
