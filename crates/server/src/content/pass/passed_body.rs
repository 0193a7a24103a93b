//! The body of a response that is passed on to one client while it comes from the upstream.

use bytes::Bytes;
use http_semantics::Fields;
use transport::outbound::{ArrivingBody, Flow, Leaves, MaybeApart, NextBytes, SendError};
use transport::spool::{Spool, SpoolLimits};

use upstream_fetch::UpstreamBody;

/// How much of an unwanted body is read so that the connection to the upstream
/// can be kept; past that, closing it is cheaper.
const MAX_DISCARDED_BYTES: usize = 64 * 1024;

pub struct PassedBody {
    pub body: Box<UpstreamBody>,
    /// `*_buffering`, or the value of X-Accel-Buffering: the upstream is read as fast as
    /// memory and disk allow, else at the client's pace.
    pub is_buffered: bool,
}

impl<X: Sync> ArrivingBody<X> for PassedBody {
    fn apart(self: Box<Self>) -> MaybeApart<X> {
        Ok(self)
    }

    fn next<'a>(&'a mut self, _exchange: &'a X) -> NextBytes<'a> {
        Box::pin(async move { self.body.next().await.map_err(|_| SendError::Truncated) })
    }

    fn flow(&self) -> Flow {
        let settings = self.body.settings();
        let (ahead, leaves) = match self.is_buffered {
            true => {
                let limits = SpoolLimits {
                    memory_bytes: settings.buffer_bytes,
                    file_bytes: settings.max_temp_file_bytes,
                };
                (limits, Leaves::WithFirstBytes)
            }
            false => (SpoolLimits::LEAST, Leaves::AtOnce),
        };
        Flow {
            ahead,
            leaves,
            ends_with_client: !settings.ignore_client_abort,
        }
    }

    fn keep(&self, bytes: Bytes, ahead: &mut Spool) {
        let folder = &self.body.settings().temp_path;
        if let Err(error) = ahead.push(bytes, folder) {
            self.body.report_full_disk(folder, &error);
        }
    }

    fn take_trailers(&mut self) -> Fields {
        self.body.trailers().iter().cloned().collect()
    }

    fn at_hand(&self, length: u64) -> Option<&[Bytes]> {
        self.body.at_hand(length)
    }

    fn discard(mut self: Box<Self>) {
        tokio::spawn(async move {
            let mut left = MAX_DISCARDED_BYTES;
            // A response that breaks off has been reported already.
            while let Ok(Some(bytes)) = self.body.next().await {
                match left.checked_sub(bytes.len()) {
                    Some(rest) => left = rest,
                    None => return,
                }
            }
        });
    }
}
