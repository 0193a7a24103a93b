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

/// Pulls a body of at most `max_bytes`, and gives its pieces away. Returns whether it was whole.
pub async fn read_body(
    request: &Request,
    body: Body,
    max_bytes: usize,
    mut take: impl FnMut(Bytes) + Send,
) -> bool {
    let (mut body, mut bytes) = (body.into_arriving(), 0);
    while let Ok(next) = body.next(request).await {
        let Some(piece) = next else {
            return true;
        };
        bytes += piece.len();
        if bytes > max_bytes {
            break;
        }
        take(piece);
    }
    body.discard();
    false
}

/// Serves a subrequest and throws its body away. The head is left in
/// `request.reply` and its status in `request.status`, for variables and logs.
pub async fn run(request: &mut Request) {
    let reply = serve(request).await;
    let none = || Box::new(Reply::new(request.delivery.status, b"", Bytes::new()));
    let mut reply = reply.map_or_else(none, |mut reply| {
        reply.head.status = request.delivery.status_of(&reply.head);
        reply
    });
    if let Body::Arriving(body) = std::mem::replace(&mut reply.body, Body::Empty) {
        body.discard();
    }
    reply.head.unpack();
    request.delivery.status = reply.head.status;
    request.delivery.reply = Some(reply);
    request.delivery.is_complete = true;
    (functions::table().log_access)(request);
}
