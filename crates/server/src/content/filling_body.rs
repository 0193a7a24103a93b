//! The body of a response that is being stored, read along by one of those who asked for it.

use http_cache::{Reader, Reason, TruncatedResponse};
use transport::outbound::{ArrivingBody, Flow, Leaves, MaybeApart, NextBytes, SendError};
use transport::spool::SpoolLimits;

use crate::exchange::cache_facts::CacheNotes;
use crate::exchange::request::Request;

/// It is in memory already: so little is taken of it at once.
const AHEAD_BYTES: u64 = 64 * 1024;

pub struct FillingBody(pub Reader);

impl ArrivingBody<Request> for FillingBody {
    fn apart(self: Box<Self>) -> MaybeApart<Request> {
        Err(self)
    }

    fn next<'a>(&'a mut self, request: &'a Request) -> NextBytes<'a> {
        Box::pin(async move {
            match self.0.next_chunk().await {
                Ok(Some(bytes)) => Ok(Some(bytes)),
                Ok(None) => {
                    // At its end it is known whether the response was stored.
                    match self.0.why_not_stored() {
                        Some(why) => request.cache.note_not_stored(why),
                        None => request.cache.write(CacheNotes::note_stored),
                    }
                    Ok(None)
                }
                Err(TruncatedResponse) => {
                    request.cache.note_not_stored(Reason::Truncated);
                    Err(SendError::Truncated)
                }
            }
        })
    }

    fn flow(&self) -> Flow {
        Flow {
            ahead: SpoolLimits::memory(AHEAD_BYTES),
            leaves: Leaves::AtOnce,
            ends_with_client: false,
        }
    }
}
