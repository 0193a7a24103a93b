//! A part of a body that is still arriving.

use bytes::Bytes;
use transport::outbound::{ArrivingBody, BodyChange, ChangedBody, NextBytes, SendError};

use crate::exchange::request::Request;

pub struct Window {
    /// Bytes before the part.
    skip: u64,
    /// Bytes of the part that are still to come.
    left: u64,
}

impl Window {
    /// The bytes from `start` to `end`.
    pub fn on(
        mut body: Box<dyn ArrivingBody<Request>>,
        start: u64,
        end: u64,
    ) -> Box<dyn ArrivingBody<Request>> {
        match body.cut(start, end) {
            true => body,
            false => {
                let window = Window {
                    skip: start,
                    left: end - start,
                };
                ChangedBody::around(body, window)
            }
        }
    }

    async fn pull(
        &mut self,
        body: &mut dyn ArrivingBody<Request>,
        request: &Request,
    ) -> Result<Option<Bytes>, SendError> {
        // The bytes behind the part are not waited for.
        while self.left > 0 {
            let Some(bytes) = body.next(request).await? else {
                return Ok(None);
            };
            let wanted = self.cut(&bytes);
            if !wanted.is_empty() {
                return Ok(Some(wanted));
            }
        }
        Ok(None)
    }

    /// Returns the wanted part of the next bytes.
    fn cut(&mut self, bytes: &Bytes) -> Bytes {
        let length = bytes.len() as u64;
        let start = self.skip.min(length);
        let end = length.min(start + self.left);
        self.skip -= start;
        self.left -= end - start;
        let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
        bytes.slice(at(start)..at(end))
    }
}

impl BodyChange<Request> for Window {
    fn next<'a>(
        &'a mut self,
        body: &'a mut dyn ArrivingBody<Request>,
        request: &'a Request,
    ) -> NextBytes<'a> {
        Box::pin(self.pull(body, request))
    }
}
