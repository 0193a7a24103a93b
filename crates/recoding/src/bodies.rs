//! Bodies that change another one as it is pulled: recoded, or with strings replaced.
//!
//! `X` is the exchange that a body belongs to, of which this crate knows nothing.

use bytes::Bytes;
use http_semantics::Fields;
use transport::outbound::{ArrivingBody, Flow, Leaves, MaybeApart, NextBytes, SendError};
use transport::spool::Spool;

use crate::recoder::{CompressionRatio, Recoder};
use crate::substitution::{Substitution, SubstitutionStep};

/// A body that is compressed, expanded or brought to another charset as it is pulled.
pub struct RecodedBody<X> {
    body: Box<dyn ArrivingBody<X>>,
    /// `None` once the body has ended.
    recoder: Option<Recoder>,
    /// What has been taken in is given out at once, however little.
    flushes: bool,
    /// Is told what compression did so far.
    note: fn(&mut X, CompressionRatio),
}

impl<X: Send + 'static> RecodedBody<X> {
    /// `body`, recoded.
    pub fn around(
        body: Box<dyn ArrivingBody<X>>,
        recoder: Recoder,
        note: fn(&mut X, CompressionRatio),
    ) -> Box<dyn ArrivingBody<X>> {
        Box::new(RecodedBody {
            flushes: body.flow().leaves == Leaves::AtOnce && body.flow().ahead.is_least(),
            body,
            recoder: Some(recoder),
            note,
        })
    }

    async fn pull(&mut self, exchange: &mut X) -> Result<Option<Bytes>, SendError> {
        loop {
            let Some(recoder) = &mut self.recoder else {
                return Ok(None);
            };
            let next = self.body.next(exchange).await?;
            let mut recoded = match &next {
                Some(bytes) => recoder.push(bytes)?,
                None => recoder.finish()?,
            };
            if self.flushes && next.is_some() {
                recoded = joined(recoded, recoder.flush()?);
            }
            if let Some(compressed) = recoder.compressed() {
                (self.note)(exchange, compressed);
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

impl<X: Send + 'static> ArrivingBody<X> for RecodedBody<X> {
    fn apart(self: Box<Self>) -> MaybeApart<X> {
        Err(self)
    }

    fn next<'a>(&'a mut self, exchange: &'a mut X) -> NextBytes<'a> {
        Box::pin(self.pull(exchange))
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

/// How much of a changed body is made before it is sent on. A piece without a string to replace is
/// sent as it is from a quarter of it on.
const PIECE_BYTES: usize = 32 * 1024;

/// A body in which strings are replaced as it is pulled.
pub struct SubstitutedBody<X, R> {
    body: Box<dyn ArrivingBody<X>>,
    has_ended: bool,
    substitution: Substitution,
    /// What takes the place of the string of this number.
    replacement: R,
}

impl<X, R> SubstitutedBody<X, R>
where
    X: Send + 'static,
    R: FnMut(&mut X, usize) -> Bytes + Send + Sync + 'static,
{
    pub fn around(
        body: Box<dyn ArrivingBody<X>>,
        substitution: Substitution,
        replacement: R,
    ) -> Box<dyn ArrivingBody<X>> {
        Box::new(SubstitutedBody {
            body,
            has_ended: false,
            substitution,
            replacement,
        })
    }

    async fn pull(&mut self, exchange: &mut X) -> Result<Option<Bytes>, SendError> {
        let mut out = Vec::new();
        while out.len() < PIECE_BYTES {
            match self.substitution.step() {
                SubstitutionStep::Text(text) if out.is_empty() && text.len() >= PIECE_BYTES / 4 => {
                    return Ok(Some(text));
                }
                SubstitutionStep::Text(text) => out.extend_from_slice(&text),
                SubstitutionStep::Found(number) => {
                    out.extend_from_slice(&(self.replacement)(exchange, number));
                }
                SubstitutionStep::NeedsMore if !out.is_empty() => break,
                SubstitutionStep::NeedsMore if self.has_ended => return Ok(None),
                SubstitutionStep::NeedsMore => match self.body.next(exchange).await? {
                    Some(bytes) => self.substitution.push(bytes),
                    None => {
                        self.has_ended = true;
                        self.substitution.end();
                    }
                },
            }
        }
        Ok(Some(out.into()))
    }
}

impl<X, R> ArrivingBody<X> for SubstitutedBody<X, R>
where
    X: Send + 'static,
    R: FnMut(&mut X, usize) -> Bytes + Send + Sync + 'static,
{
    fn apart(self: Box<Self>) -> MaybeApart<X> {
        Err(self)
    }

    fn next<'a>(&'a mut self, exchange: &'a mut X) -> NextBytes<'a> {
        Box::pin(self.pull(exchange))
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
