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
    let Some(mut reply) = reply else {
        return end(
            request,
            Box::new(Reply::new(request.delivery.status, b"", Bytes::new())),
        );
    };
    if let Some(status) = request.delivery.error_page.forced_status() {
        reply.head.status = status;
    }
    let body = std::mem::replace(&mut reply.body, Body::Empty);
    end(request, reply);
    if let Body::Arriving(body) = body {
        body.discard();
    }
}

fn end(request: &mut Request, mut reply: Box<Reply>) {
    reply.head.unpack();
    request.delivery.status = reply.head.status;
    request.delivery.reply = Some(reply);
    request.delivery.is_complete = true;
    (functions::table().log_access)(request);
}
