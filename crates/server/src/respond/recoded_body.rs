//! A body that is compressed, expanded or brought to another charset as it is pulled.

use bytes::Bytes;
use http_semantics::Fields;
use transport::outbound::{ArrivingBody, Flow, Leaves, MaybeApart, NextBytes, SendError};
use transport::spool::Spool;

use crate::exchange::request::Request;
use recoding::Recoder;

pub struct RecodedBody {
    body: Box<dyn ArrivingBody<Request>>,
    /// `None` once the body has ended.
    recoder: Option<Recoder>,
    /// What has been taken in is given out at once, however little.
    flushes: bool,
}

impl RecodedBody {
    /// `body`, recoded where there is something to recode it.
    pub fn around(
        body: Box<dyn ArrivingBody<Request>>,
        recoder: Option<Recoder>,
    ) -> Box<dyn ArrivingBody<Request>> {
        match recoder {
            None => body,
            recoder => Box::new(RecodedBody {
                flushes: body.flow().leaves == Leaves::AtOnce && body.flow().ahead.is_least(),
                body,
                recoder,
            }),
        }
    }

    async fn pull(&mut self, request: &mut Request) -> Result<Option<Bytes>, SendError> {
        loop {
            let Some(recoder) = &mut self.recoder else {
                return Ok(None);
            };
            let next = self.body.next(request).await?;
            let mut recoded = match &next {
                Some(bytes) => recoder.push(bytes)?,
                None => recoder.finish()?,
            };
            if self.flushes && next.is_some() {
                recoded = joined(recoded, recoder.flush()?);
            }
            if let Some(reply) = &mut request.delivery.reply
                && let Some(compressed) = recoder.compressed()
            {
                reply.head.form.compressed = Some(compressed);
            }
            if next.is_none() {
                self.recoder = None;
            }
            if !recoded.is_empty() {
                return Ok(Some(recoded));
            }
        }
    }
}

fn joined(first: Bytes, second: Bytes) -> Bytes {
    match (first.is_empty(), second.is_empty()) {
        (true, _) => second,
        (_, true) => first,
        _ => [first, second].concat().into(),
    }
}

impl ArrivingBody<Request> for RecodedBody {
    fn apart(self: Box<Self>) -> MaybeApart<Request> {
        Err(self)
    }

    fn next<'a>(&'a mut self, request: &'a mut Request) -> NextBytes<'a> {
        Box::pin(self.pull(request))
    }

    fn flow(&self) -> Flow {
        self.body.flow()
    }

    fn keep(&self, bytes: Bytes, ahead: &mut Spool) {
        self.body.keep(bytes, ahead);
    }

    fn take_trailers(&mut self) -> Fields {
        self.body.take_trailers()
    }
}
