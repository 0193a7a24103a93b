//! What a handler may ask of the client while it works: the request's body,
//! whether the client is still there, and to be told something ahead of the response.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http1::Framing;
use site::BodySettings;

use crate::base::deadline::SharedDeadline;
use crate::base::request_body::{BodyError, RequestBody};
use crate::transport::body::{ClientInput, InputHome, LentInput};
use crate::transport::stream::ClientStream;

/// Writes an informational response (1xx): its status and fields, as the protocol spoken says it.
pub type WriteInformational = fn(u16, &[(Bytes, Bytes)]) -> Vec<u8>;

/// The client of a request; subrequests have none.
pub struct ClientSide {
    input: Option<ClientInput>,
    /// Where the receiving half waits after it was lent to an upstream.
    home: Option<InputHome>,
    stream: Option<Arc<ClientStream>>,
    /// For what is awaited of upstreams; with the first request to one.
    deadline: Option<SharedDeadline>,
    /// `None` where this client cannot be told anything ahead of the response.
    informational: Option<WriteInformational>,
    /// The client waits to be told that it may send its body (`Expect: 100-continue`).
    pub expects_continue: bool,
}

impl ClientSide {
    pub fn new(stream: Arc<ClientStream>) -> ClientSide {
        ClientSide {
            input: Some(ClientInput::new(stream.clone())),
            home: None,
            stream: Some(stream),
            deadline: None,
            informational: None,
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
            informational: None,
            expects_continue: false,
        }
    }

    /// The next request of this client begins; what was lent for the one before
    /// and never came back is given up.
    pub fn begin(
        &mut self,
        framing: Framing,
        expects_continue: bool,
        informational: Option<WriteInformational>,
    ) {
        self.expects_continue = expects_continue;
        self.informational = informational;
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

    /// Resolves when the client has gone: never, where there is none, or it is not `watched`.
    pub fn gone(&self, watched: bool) -> impl Future<Output = ()> + Send + use<> {
        let stream = self.stream.clone().filter(|_| watched);
        async move {
            match stream {
                Some(stream) => stream.closed().await,
                None => std::future::pending().await,
            }
        }
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
    pub async fn begin_body(&mut self, settings: &BodySettings) {
        let expects = std::mem::take(&mut self.expects_continue);
        let informational = self.informational;
        if let Some(input) = self.input() {
            input.limit_accepted(settings);
            // Part of the body being here already says that the client did not wait.
            if expects
                && input.buffer.is_empty()
                && let Some(write) = informational
            {
                // A client that cannot take these few bytes will not take the response
                // either. That shows there.
                let _ = input.stream.write_all(&write(100, &[])).await;
            }
        }
    }

    /// Reads the whole body; and how many bytes came over the wire for it.
    pub async fn read_body(
        &mut self,
        settings: &BodySettings,
    ) -> (Result<RequestBody, BodyError>, u64) {
        self.begin_body(settings).await;
        match self.input() {
            Some(input) => {
                let read = input.read_whole(settings).await;
                (read, input.wire_bytes)
            }
            None => (Ok(RequestBody::None), 0),
        }
    }

    /// How to tell the client something ahead of the response, where that can be done.
    pub fn informational(&self) -> Option<Informational> {
        Some(Informational {
            stream: self.stream.clone()?,
            write: self.informational?,
        })
    }
}

/// Tells a client something ahead of the response (RFC 9110 §15.2).
pub struct Informational {
    stream: Arc<ClientStream>,
    write: WriteInformational,
}

impl Informational {
    /// Sends such a response; gives its length in bytes.
    ///
    /// # Errors
    /// The client did not take all of it in time, after which nothing else can be sent.
    pub async fn send(
        &self,
        status: u16,
        fields: &[(Bytes, Bytes)],
        timeout: Duration,
    ) -> io::Result<u64> {
        let head = (self.write)(status, fields);
        tokio::time::timeout(timeout, self.stream.write_all(&head)).await??;
        Ok(head.len() as u64)
    }
}

/// What `waited` comes to; `None` once `gone` says that the client has gone.
pub async fn unless_gone<T>(
    gone: impl Future<Output = ()>,
    waited: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        done = waited => Some(done),
        () = gone => None,
    }
}
