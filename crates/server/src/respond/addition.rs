//! `add_before_body` and `add_after_body`: what other paths of this site say,
//! around a response (<https://nginx.org/en/docs/http/ngx_http_addition_module.html>).

use site::{SubrequestTarget, Template};

use crate::content::ssi::Source;
use crate::exchange::reply::{Body, Reply};
use crate::exchange::request::{Method, Request};
use crate::exchange::subrequest;
use crate::exchange::variable;
use crate::respond::recode;

use super::{BodyFraming, SendError, Sender};

/// What stands around a body. Each part is asked for when its turn comes: the
/// main response must not wait for PHP behind its own addition.
pub struct Around {
    pub before: Option<Template>,
    pub after: Option<Template>,
}

/// Decides whether something is added, and changes the fields accordingly: the
/// response will have another length and other bytes.
pub fn choose(request: &Request, reply: &mut Reply) -> Option<Around> {
    let settings = &request.settings().addition;
    if settings.before.is_none() && settings.after.is_none() {
        return None;
    }
    let is_fitting = reply.head.status == 200
        && !request.is_subrequest()
        && reply
            .head
            .field("content-type")
            .is_some_and(|value| settings.types.contains(value));
    if !is_fitting {
        return None;
    }
    reply.head.unpack();
    reply.head.content_length = None;
    reply.head.accepts_ranges = false;
    for name in ["accept-ranges", "last-modified", "etag"] {
        reply.head.fields.remove(name);
    }
    Some(Around {
        before: settings.before.clone(),
        after: settings.after.clone(),
    })
}

/// Sends the body that a path of this site has for this request; nothing when it has none.
pub async fn send(
    request: &mut Request,
    sender: &mut Sender<'_>,
    path: &Template,
    framing: BodyFraming,
) -> Result<(), SendError> {
    if request.method == Method::Head {
        return sender.send(Body::Empty, framing).await;
    }
    let target = variable::evaluate(request, path);
    let (path, args) = http1::split_query(&target);
    let target = SubrequestTarget {
        path: path.into(),
        args: args.map(Into::into),
    };
    let mut subrequest = subrequest::to(request, &target, b"");
    subrequest.become_get();
    let mut reply = match subrequest::serve(&mut subrequest).await {
        Some(reply) if (200..300).contains(&reply.head.status) => reply,
        _ => return sender.send(Body::Empty, framing).await,
    };
    let Some(expander) = recode::expand_part(&subrequest, &mut reply) else {
        return sender.send(reply.body, framing).await;
    };
    let mut source = Source::new(reply.body, Some(expander));
    while let Some(bytes) = source.next().await? {
        sender.send(Body::bytes(bytes), framing).await?;
    }
    Ok(())
}
