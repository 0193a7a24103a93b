//! What a handler may ask of the client while it works: the request's body,
//! and whether the client is still there.

use std::sync::Arc;

use http1::Framing;
use site::LogLevel;

use crate::base::deadline::SharedDeadline;
use crate::exchange::request::Request;
use crate::log::error_log;
use crate::transport::body::{ClientInput, InputHome, LentInput, RequestBody};
use crate::transport::stream::ClientStream;

/// The client of a request; subrequests have none.
pub struct ClientSide {
    input: Option<ClientInput>,
    /// Where the receiving half waits after it was lent to an upstream.
    home: Option<InputHome>,
    stream: Option<Arc<ClientStream>>,
    /// For what is awaited of upstreams; with the first request to one.
    deadline: Option<SharedDeadline>,
    /// `Expect: 100-continue` has not been answered yet.
    pub expects_continue: bool,
}

impl ClientSide {
    pub fn new(stream: Arc<ClientStream>) -> ClientSide {
        ClientSide {
            input: Some(ClientInput::new(stream.clone())),
            home: None,
            stream: Some(stream),
            deadline: None,
            expects_continue: false,
        }
    }

    /// Nobody: for requests that the server makes itself.
    pub fn none() -> ClientSide {
        ClientSide {
            input: None,
            home: None,
            stream: None,
            deadline: None,
            expects_continue: false,
        }
    }

    /// The next request of this client begins; what was lent for the one before
    /// and never came back is given up.
    pub fn begin(&mut self, framing: Framing, expects_continue: bool) {
        self.expects_continue = expects_continue;
        if self.home.is_some() {
            self.input();
            self.home = None;
        }
        if let Some(input) = &mut self.input {
            input.begin(framing);
        }
    }

    /// The timer for waits in the connection's own task.
    pub fn deadline(&mut self) -> &SharedDeadline {
        self.deadline.get_or_insert_default()
    }

    pub fn stream(&self) -> Option<&Arc<ClientStream>> {
        self.stream.as_ref()
    }

    /// The receiving half, back from whomever it was lent to.
    pub fn input(&mut self) -> Option<&mut ClientInput> {
        if self.input.is_none() {
            self.input = self.home.as_ref().and_then(|home| home.lock().take());
        }
        self.input.as_mut()
    }

    /// Lends the receiving half to an upstream's request.
    pub fn lend_input(&mut self) -> Option<LentInput> {
        let input = self.input.take()?;
        let home = self.home.get_or_insert_default().clone();
        Some(LentInput::new(input, home))
    }

    /// Limits for the body, once the location is known, and the go-ahead for a
    /// client that waits for one.
    pub async fn begin_body(&mut self, request: &Request) {
        let settings = &request.settings().body;
        let expects = std::mem::take(&mut self.expects_continue);
        if let Some(input) = self.input() {
            input.limit_accepted(settings);
            // Part of the body being here already says that the client did not wait.
            if expects && input.buffer.is_empty() {
                send_continue(&input.stream).await;
            }
        }
    }

    /// Reads the whole body into the request.
    pub async fn read_body(&mut self, request: &mut Request) -> Result<(), u16> {
        self.begin_body(request).await;
        let settings = request.settings_held();
        let Some(input) = self.input() else {
            request.body = RequestBody::None;
            return Ok(());
        };
        let read = input.read_whole(&settings.body).await;
        request.received_bytes += input.wire_bytes;
        match read {
            Ok(body) => {
                request.body = body;
                Ok(())
            }
            Err(error) => {
                let level = if error.status() == 500 {
                    LogLevel::Crit
                } else {
                    LogLevel::Info
                };
                let status = error.status();
                // Nobody is given a part of it, an error page as little.
                request.body = RequestBody::None;
                error_log::request(request, level, format_args!("{error}"));
                Err(status)
            }
        }
    }
}

/// `HTTP/1.1 100 Continue` (RFC 9110 §10.1.1). A client that cannot take
/// these few bytes will not take the response either; that shows there.
async fn send_continue(stream: &ClientStream) {
    let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
}

/// What `waited` comes to; `None` once the client of `stream` has gone. Without one
/// nobody is watched.
pub async fn unless_gone<T>(
    stream: Option<&Arc<ClientStream>>,
    waited: impl Future<Output = T>,
) -> Option<T> {
    let Some(stream) = stream else {
        return Some(waited.await);
    };
    tokio::select! {
        biased;
        done = waited => Some(done),
        () = stream.closed() => None,
    }
}
