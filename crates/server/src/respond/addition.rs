//! `add_before_body` and `add_after_body`: responses of other paths of this site, around a response
//! (<https://nginx.org/en/docs/http/ngx_http_addition_module.html>).

use bytes::Bytes;
use http_semantics::Fields;
use site::{SubrequestTarget, Template};
use transport::outbound::{ArrivingBody, Flow, MaybeApart, NextBytes, SendError};
use transport::spool::Spool;

use crate::exchange::reply::{Body, Reply};
use crate::exchange::request::Request;
use crate::exchange::subrequest;
use crate::exchange::variable;
use crate::respond::parts;
use crate::respond::recode;
use crate::respond::sub_filter;

/// A body with the responses of other paths before and after it. Each part is asked for when its
/// turn comes: the main response must not wait for PHP behind its own addition.
pub struct SurroundedBody {
    before: Option<Template>,
    after: Option<Template>,
    /// The response's own body; `None` once it has ended.
    body: Option<Box<dyn ArrivingBody<Request>>>,
    /// A part that is being sent.
    part: Option<(Box<Request>, Box<dyn ArrivingBody<Request>>)>,
    trailers: Fields,
}

/// Texts around a body (`add_before_body`, `add_after_body`).
pub struct Addition {
    before: Option<Template>,
    after: Option<Template>,
}

impl Addition {
    /// Puts the texts around `body`. An upstream that works for it is read while the client still
    /// waits for the text before it: both may need the same worker.
    pub fn around(self, body: Box<dyn ArrivingBody<Request>>) -> SurroundedBody {
        let body = parts::read_ahead(Body::Arriving(body), None);
        SurroundedBody {
            before: self.before,
            after: self.after,
            body: Some(body.into_arriving()),
            part: None,
            trailers: Fields::new(),
        }
    }
}

impl SurroundedBody {
    async fn pull(&mut self, request: &Request) -> Result<Option<Bytes>, SendError> {
        loop {
            if let Some((asked, body)) = &mut self.part {
                match body.next(asked).await? {
                    Some(bytes) => return Ok(Some(bytes)),
                    None => self.part = None,
                }
            } else if let Some(path) = self.before.take() {
                self.part = ask(request, &path).await;
            } else if let Some(body) = &mut self.body {
                match body.next(request).await? {
                    Some(bytes) => return Ok(Some(bytes)),
                    None => {
                        self.trailers = body.take_trailers();
                        self.body = None;
                    }
                }
            } else if let Some(path) = self.after.take() {
                self.part = ask(request, &path).await;
            } else {
                return Ok(None);
            }
        }
    }
}

impl ArrivingBody<Request> for SurroundedBody {
    fn apart(self: Box<Self>) -> MaybeApart<Request> {
        Err(self)
    }

    fn next<'a>(&'a mut self, request: &'a Request) -> NextBytes<'a> {
        Box::pin(self.pull(request))
    }

    /// The texts around it are requested in the client's name: the body ends with the client.
    fn flow(&self) -> Flow {
        let own = self.body.as_ref().map(|body| body.flow());
        Flow {
            ends_with_client: true,
            ..own.unwrap_or_default()
        }
    }

    fn keep(&self, bytes: Bytes, ahead: &mut Spool) {
        match &self.body {
            Some(body) => body.keep(bytes, ahead),
            // An error is that of a disk, and bytes that it did not take are kept in memory.
            None => drop(ahead.push(bytes, &std::env::temp_dir())),
        }
    }

    fn take_trailers(&mut self) -> Fields {
        std::mem::take(&mut self.trailers)
    }
}

/// Decides whether something is added, and changes the fields accordingly: the
/// response will have another length and other bytes.
pub fn choose(request: &Request, reply: &mut Reply) -> Option<Addition> {
    let settings = &request.settings().addition;
    if settings.before.is_none() && settings.after.is_none() {
        return None;
    }
    let is_fitting = reply.head.status == 200
        && !request.route.is_subrequest()
        && reply
            .head
            .field("content-type")
            .is_some_and(|value| settings.types.contains(value));
    if !is_fitting {
        return None;
    }
    reply.head.unpack();
    reply.head.content_length = None;
    reply.head.form.accepts_ranges = false;
    for name in ["accept-ranges", "last-modified", "etag"] {
        reply.head.fields.remove(name);
    }
    Some(Addition {
        before: settings.before.clone(),
        after: settings.after.clone(),
    })
}

/// The body that a path of this site has for this request, plain; `None` when it has none.
async fn ask(
    request: &Request,
    path: &Template,
) -> Option<(Box<Request>, Box<dyn ArrivingBody<Request>>)> {
    let target = variable::evaluate(request, path);
    let (path, args) = http_semantics::split_query(&target);
    let target = SubrequestTarget {
        path: path.into(),
        args: args.map(Into::into),
    };
    let mut asked = subrequest::to(request, &target, b"");
    asked.route.become_get();
    let reply = subrequest::serve(&mut asked).await;
    let mut reply = reply.filter(|reply| (200..300).contains(&reply.head.status))?;
    let expander = recode::expand_part(&asked, &mut reply);
    let body = std::mem::replace(&mut reply.body, Body::Empty);
    reply.body = recode::around(body, expander);
    sub_filter::apply(&asked, &mut reply);
    Some((asked, reply.body.into_arriving()))
}
