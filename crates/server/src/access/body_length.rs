//! `client_max_body_size`, before a body is read.

use site::{LogLevel, Server};
use transport::client::ClientSide;
use transport::request_body::RequestBody;

use crate::exchange::request::Request;
use crate::log::error_log;

/// The limit's verdict on a body.
pub enum BodyVerdict {
    NoBody,
    LetIn,
    Refused,
}

/// Compares the request's body with the limit of its location (`is_named`: a named one), whether
/// the body was read on the way or is still to come. A body of unknown length is measured while it
/// is read.
#[inline]
pub fn verdict(request: &Request, is_named: bool, client: &mut ClientSide) -> BodyVerdict {
    let length = match &request.body {
        RequestBody::None => return BodyVerdict::NoBody,
        RequestBody::Unread => client.input().and_then(|input| input.remaining()),
        body => body.length(),
    };
    let max = request.settings().body.max_bytes;
    // A named location without a limit of its own goes by the one that let the body in.
    let of_server = request.server().settings(Server::ROOT).body.max_bytes;
    let is_asked = !is_named || max != of_server || !request.is_body_let_in;
    let Some(length) = length.filter(|&length| is_asked && max > 0 && length > max) else {
        return BodyVerdict::LetIn;
    };
    error_log::request(
        request,
        LogLevel::Error,
        format_args!("client intended to send too large body: {length} bytes"),
    );
    BodyVerdict::Refused
}
