//! Bodies that change another body as it is pulled: by recoding, and by replacing strings.
//!
//! `X` is the exchange that a body belongs to, of which this crate knows nothing.

use bytes::Bytes;
use transport::outbound::{ArrivingBody, BodyChange, ChangedBody, Leaves, NextBytes, SendError};

use crate::recoder::{CompressionRatio, Recoder};
use crate::substitution::{Substitution, SubstitutionStep};

/// Compresses or expands a body, or brings it to another charset, as it is pulled.
pub struct RecodedBody<X> {
    /// `None` once the body has ended.
    recoder: Option<Recoder>,
    /// Whether input is given out at once, however little there is.
    flushes: bool,
    /// The callback for the compression ratio so far.
    note: fn(&X, CompressionRatio),
}

impl<X: Sync + 'static> RecodedBody<X> {
    /// `body`, recoded.
    pub fn around(
        body: Box<dyn ArrivingBody<X>>,
        recoder: Recoder,
        note: fn(&X, CompressionRatio),
    ) -> Box<dyn ArrivingBody<X>> {
        let recoded = RecodedBody {
            flushes: body.flow().leaves == Leaves::AtOnce && body.flow().ahead.is_least(),
            recoder: Some(recoder),
            note,
        };
        ChangedBody::around(body, recoded)
    }

    async fn pull(
        &mut self,
        body: &mut dyn ArrivingBody<X>,
        exchange: &X,
    ) -> Result<Option<Bytes>, SendError> {
        loop {
            let Some(recoder) = &mut self.recoder else {
                return Ok(None);
            };
            let next = body.next(exchange).await?;
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

impl<X: Sync + 'static> BodyChange<X> for RecodedBody<X> {
    fn next<'a>(&'a mut self, body: &'a mut dyn ArrivingBody<X>, exchange: &'a X) -> NextBytes<'a> {
        Box::pin(self.pull(body, exchange))
    }
}

/// How much of a changed body is made before it is sent on. A piece without a string to replace is
/// sent as it is from a quarter of it on.
const PIECE_BYTES: usize = 32 * 1024;

/// Replaces strings of a body as it is pulled.
pub struct SubstitutedBody<R> {
    has_ended: bool,
    substitution: Substitution,
    /// The replacement for the string of this number.
    replacement: R,
}

impl<R> SubstitutedBody<R> {
    pub fn around<X>(
        body: Box<dyn ArrivingBody<X>>,
        substitution: Substitution,
        replacement: R,
    ) -> Box<dyn ArrivingBody<X>>
    where
        X: Sync + 'static,
        R: FnMut(&X, usize) -> Bytes + Send + Sync + 'static,
    {
        let substituted = SubstitutedBody {
            has_ended: false,
            substitution,
            replacement,
        };
        ChangedBody::around(body, substituted)
    }

    async fn pull<X>(
        &mut self,
        body: &mut dyn ArrivingBody<X>,
        exchange: &X,
    ) -> Result<Option<Bytes>, SendError>
    where
        R: FnMut(&X, usize) -> Bytes,
    {
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
                SubstitutionStep::NeedsMore => match body.next(exchange).await? {
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

impl<X, R> BodyChange<X> for SubstitutedBody<R>
where
    X: Sync + 'static,
    R: FnMut(&X, usize) -> Bytes + Send + Sync + 'static,
{
    fn next<'a>(&'a mut self, body: &'a mut dyn ArrivingBody<X>, exchange: &'a X) -> NextBytes<'a> {
        Box::pin(self.pull(body, exchange))
    }
}
