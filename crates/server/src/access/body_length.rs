//! `client_max_body_size`, before a body is read.

use site::{LogLevel, Server};

use crate::exchange::request::Request;
use crate::log::error_log;
use crate::transport::body::RequestBody;
use crate::transport::client::ClientSide;

/// The limit of the location that the request has come to, by whatever way (`is_named`: by its
/// name): for a body that was read on the way as for one that is still to come. One whose
/// length is not known is measured while it is read. What is refused is nobody's from then on,
/// so that the page that tells of the limit is shown.
#[inline]
pub fn is_refused(request: &mut Request, is_named: bool, client: &mut ClientSide) -> bool {
    let length = match &request.body {
        RequestBody::None => return false,
        RequestBody::Unread => client.input().and_then(|input| input.remaining()),
        body => body.length(),
    };
    let max = request.settings().body.max_bytes;
    // A named location without a limit of its own goes by the one that let the body in.
    let of_server = request.server().settings(Server::ROOT).body.max_bytes;
    let is_asked = !is_named || max != of_server || !request.is_body_let_in;
    let Some(length) = length.filter(|&length| is_asked && max > 0 && length > max) else {
        request.is_body_let_in = true;
        return false;
    };
    error_log::request(
        request,
        LogLevel::Error,
        format_args!("client intended to send too large body: {length} bytes"),
    );
    request.body = RequestBody::None;
    true
}
