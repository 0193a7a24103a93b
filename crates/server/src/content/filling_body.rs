//! The body of a response that is being stored, read along by one of those who asked for it.

use http_cache::Reader;

use crate::base::spool::SpoolLimits;
use crate::transport::outbound::{ArrivingBody, Flow, Leaves, NextBytes, SendError};

/// It is in memory already: so little is taken of it at once.
const AHEAD_BYTES: u64 = 64 * 1024;

pub struct FillingBody(pub Reader);

impl<X: Send> ArrivingBody<X> for FillingBody {
    fn next<'a>(&'a mut self, _exchange: &'a mut X) -> NextBytes<'a> {
        Box::pin(async move {
            let next = self.0.next_chunk().await;
            next.map_err(|_| SendError::Truncated)
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
