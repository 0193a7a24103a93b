//! Requests that the server makes of its own paths in the name of a client's: `auth_request`,
//! `mirror`, `add_before_body`. They walk through the same rounds as any request, without the access
//! phase, and have no client: their reply is returned to the server's code.

use bytes::Bytes;
use site::SubrequestTarget;

use crate::exchange::functions;
use crate::exchange::reply::{Body, Reply};
use crate::exchange::request::Request;
use crate::exchange::request_route::TargetOrigin;

/// A subrequest of `request` for `target`, with `args` where the target has
/// none of its own. Method and head are the client's; there is no body.
pub fn to(request: &Request, target: &SubrequestTarget, args: &[u8]) -> Box<Request> {
    // Both are the same request to a reader who follows `$request_id` through logs.
    let id = request.values.name_request();
    let mut made = request.internal();
    made.values.get_mut().request_id = Some(id);
    made.values.forget_path_info();
    made.route.origin = TargetOrigin::Changed;
    made.route.path = target.path.to_vec();
    made.route.args = target.args.as_deref().unwrap_or(args).to_vec();
    made
}

/// The response of a request that the server makes itself; `None` if the request ends without a
/// response.
pub async fn serve(request: &mut Request) -> Option<Box<Reply>> {
    let serve = functions::table().serve;
    serve(request).await
}

/// Serves a subrequest and throws its body away. The head is left in
/// `request.reply` and its status in `request.status`, for variables and logs.
pub async fn run(request: &mut Request) {
    let reply = serve(request).await;
    let none = || Box::new(Reply::new(request.delivery.status, b"", Bytes::new()));
    let forced = request.delivery.error_page.forced_status();
    let forced = forced.filter(|_| reply.is_some());
    let mut reply = reply.unwrap_or_else(none);
    reply.head.status = forced.unwrap_or(reply.head.status);
    if let Body::Arriving(body) = std::mem::replace(&mut reply.body, Body::Empty) {
        body.discard();
    }
    reply.head.unpack();
    request.delivery.status = reply.head.status;
    request.delivery.reply = Some(reply);
    request.delivery.is_complete = true;
    (functions::table().log_access)(request);
}
