//! A handler's side of the client connection: the request's body, whether the client is still
//! there, and responses ahead of the final one.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use clock::SharedDeadline;
use transport_settings::BodySettings;

use crate::body::{ClientInput, IncomingBody, InputHome, LentInput};
use crate::request_body::{BodyError, RequestBody};

/// The sender of a request, as far as the server can send something ahead of the response or see
/// that the sender has gone.
pub trait Client: Send + Sync {
    /// Ready with `true` once the client has gone; with `false` if that cannot be seen any
    /// more, since bytes that belong to something else are in the way.
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<bool>;

    /// Sends an informational response (1xx); returns its length in bytes.
    fn inform<'a>(&'a self, status: u16, fields: &'a [(Bytes, Bytes)]) -> InformationalFuture<'a>;
}

/// The sending of an informational response.
pub type InformationalFuture<'a> = Pin<Box<dyn Future<Output = io::Result<u64>> + Send + 'a>>;

/// The client of a request; subrequests have none.
pub struct ClientSide {
    /// While a request with a body is answered.
    input: Option<ClientInput>,
    /// The place of the receiving half after it was lent to an upstream.
    home: Option<InputHome>,
    client: Option<Arc<dyn Client>>,
    /// The timer for waits for upstreams; made with the first request to one.
    deadline: Option<SharedDeadline>,
    /// The client understands informational responses.
    takes_informational: bool,
    /// The client waits for a 100 response before it sends its body (`Expect: 100-continue`).
    pub expects_continue: bool,
}

impl ClientSide {
    pub fn new(client: Arc<dyn Client>) -> ClientSide {
        ClientSide {
            client: Some(client),
            ..ClientSide::none()
        }
    }

    /// No client: for requests that the server makes itself.
    pub fn none() -> ClientSide {
        ClientSide {
            input: None,
            home: None,
            client: None,
            deadline: None,
            takes_informational: false,
            expects_continue: false,
        }
    }

    /// The next request of this client begins, with this body, if it has one.
    #[inline]
    pub fn begin(
        &mut self,
        body: Option<Box<dyn IncomingBody>>,
        expects_continue: bool,
        takes_informational: bool,
    ) {
        self.expects_continue = expects_continue;
        self.takes_informational = takes_informational;
        if let Some(body) = body {
            self.input = Some(ClientInput::new(body));
            self.home = None;
        }
    }

    /// The request's body goes back to the transport; `None` if the request has no body, or an
    /// upstream still has it.
    pub fn take_body(&mut self) -> Option<Box<dyn IncomingBody>> {
        self.input()?;
        self.input.take().map(ClientInput::into_body)
    }

    /// The timer for waits in the connection's own task.
    pub fn deadline(&mut self) -> &SharedDeadline {
        self.deadline.get_or_insert_default()
    }

    /// Resolves when the client has gone: never, where no client is there, or it is not `watched`.
    pub fn gone(&self, watched: bool) -> impl Future<Output = ()> + Send + use<> {
        let mut client = self.client.clone().filter(|_| watched);
        poll_fn(move |cx| match &client {
            None => Poll::Pending,
            Some(known) => match known.poll_gone(cx) {
                Poll::Ready(true) => Poll::Ready(()),
                Poll::Ready(false) => {
                    client = None;
                    Poll::Pending
                }
                Poll::Pending => Poll::Pending,
            },
        })
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
        let informational = self.informational();
        if let Some(input) = self.input() {
            input.limit_accepted(settings);
            // A client that has sent part of its body already does not wait.
            if expects
                && !input.has_arrived()
                && let Some(informational) = informational
            {
                // A client that cannot take these few bytes will not take the response
                // either. That shows there.
                let _ = informational.client.inform(100, &[]).await;
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
                (read, input.wire_bytes())
            }
            None => (Ok(RequestBody::None), 0),
        }
    }

    /// Returns a sender of informational responses, if the client takes them.
    pub fn informational(&self) -> Option<Informational> {
        let client = self.client.clone().filter(|_| self.takes_informational)?;
        Some(Informational { client })
    }
}

/// A sender of informational responses (RFC 9110 §15.2).
pub struct Informational {
    client: Arc<dyn Client>,
}

impl Informational {
    /// Sends such a response; returns its length in bytes.
    ///
    /// # Errors
    /// The client did not take all of it in time, after which nothing else can be sent.
    pub async fn send(
        &self,
        status: u16,
        fields: &[(Bytes, Bytes)],
        timeout: Duration,
    ) -> io::Result<u64> {
        tokio::time::timeout(timeout, self.client.inform(status, fields)).await?
    }
}

/// Returns the result of `waited`; `None` if `gone` resolves first, because the client has gone.
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
