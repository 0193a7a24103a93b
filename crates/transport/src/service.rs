//! The seam between a protocol and the service that answers: a transport hands over a
//! received head and gets a response that it can send, see [`crate::outbound`].
//!
//! ```text
//! terms ─► bytes ─► receive ─► respond ─► head, body ─► end
//! ```
//!
//! A response that is there at once is sent without a future; only a response that has to be
//! waited for becomes one ([`Service::respond`]). Everything here is known to the compiler
//! where a transport is used: no call goes through a pointer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_semantics::{Fields, RequestHead, RequestView, TargetError};
use tokio::task::JoinHandle;
use transport_settings::{BodySettings, ConnectionSettings, HeadSettings, ListenAddress};

use crate::client::ClientSide;
use crate::connection_opening::ConnectionOpening;
use crate::facts::{ConnectionFacts, TlsFacts};
use crate::handshake::HandshakeRequest;
use crate::http3::Settings as Http3Settings;
use crate::outbound::{Body, FieldSink, Opening, Pace, SendError, SentHead};
use crate::ready_or_pending::ReadyOrPending;

/// Answers requests.
pub trait Service: Send + Sync + 'static {
    /// A request, from its head to its line in the log.
    type Exchange: Exchange;
    /// The configuration for an exchange, held until it is answered.
    type Configuration: Send + Sync + 'static;
    type Terms: Terms;
    /// State of a connection that is remembered from one of its requests to the next.
    type Memory: Send + 'static;

    /// Creates the memory of a connection that came by the socket of `address`.
    fn memory(&self, address: ListenAddress) -> Self::Memory;

    /// Returns the terms for the next request of a connection; `None` if a reload has removed
    /// its listener.
    fn terms(&self, connection: &ConnectionFacts, memory: &mut Self::Memory)
    -> Option<Self::Terms>;

    /// The rules for a client that asks for this; `None` if its handshake is refused.
    fn tls(
        &self,
        terms: &Self::Terms,
        asked: HandshakeRequest<'_>,
    ) -> Option<Arc<rustls::ServerConfig>>;

    /// The handshake is over: is the client's certificate worth anything?
    fn judge_client(&self, terms: &Self::Terms, facts: &mut TlsFacts);

    /// Is the server about to end, so that no connection is kept?
    fn is_stopping(&self) -> bool;

    /// Are connections closed that wait for a next request?
    fn closes_idle(&self) -> bool;

    /// Resolves when that begins.
    fn stopping(&self) -> impl Future<Output = ()> + Send + 'static;

    /// A connection ends before its first request.
    fn report_broken_connection(
        &self,
        terms: &Self::Terms,
        connection: &ConnectionFacts,
        reason: &str,
    );

    /// A client's handshake failed, or did not end in time.
    fn report_failed_handshake(
        &self,
        terms: &Self::Terms,
        connection: &ConnectionFacts,
        reason: &str,
    );

    /// Takes a request. `body_of` returns the length of its body, once host and target are
    /// known to be sound, from the head and from whether that names a host.
    ///
    /// # Errors
    /// The reason of the refusal. The request is answered all the same, see
    /// [`Service::respond`].
    fn receive(
        &self,
        terms: Self::Terms,
        memory: &mut Self::Memory,
        received: ReceivedHead,
        body_of: impl FnOnce(RequestView<'_>, bool) -> Result<BodyLength, Box<Refusal>>,
    ) -> (Box<Self::Exchange>, Result<BodyLength, Box<Refusal>>);

    /// Takes a head that could not be read as a request.
    fn receive_unreadable(&self, terms: Self::Terms, received: ReceivedHead)
    -> Box<Self::Exchange>;

    /// A request ended before it was there, for a reason that stands for this status.
    fn abandoned(&self, terms: Self::Terms, received: ReceivedHead, reason: &str, status: u16);

    fn configuration(&self, exchange: &Self::Exchange) -> Self::Configuration;

    /// Makes the response, or the page of an error where the request is refused.
    fn respond<'a>(
        &self,
        exchange: &'a mut Self::Exchange,
        configuration: &'a Self::Configuration,
        client: &'a mut ClientSide,
        refused: Option<&Refusal>,
    ) -> ReadyOrPending<'a, ResponseOutcome>;

    /// Resolves when an exchange without an end of its own, such as a tunnel, has to end.
    fn outlived(&self, exchange: &Self::Exchange) -> impl Future<Output = ()> + Send;

    /// The response is out, or will never be. Returns work that the end of the connection
    /// should wait for a moment.
    fn end(
        &self,
        exchange: &mut Self::Exchange,
        memory: &mut Self::Memory,
        ending: &Result<Ending, SendError>,
    ) -> Option<JoinHandle<()>>;
}

/// The settings for a request before its server is known.
pub trait Terms: Send + Sync {
    fn head(&self) -> &HeadSettings;

    /// Returns the opening that each connection begins with.
    fn connection_opening(&self) -> ConnectionOpening;

    /// Returns how HTTP/2 is spoken.
    fn http2(&self) -> http2::Settings;

    /// Returns how HTTP/3 is spoken.
    fn http3(&self) -> Http3Settings;
}

/// A request as it was received.
pub struct ReceivedHead {
    pub head: RequestHead,
    pub connection: Arc<ConnectionFacts>,
    /// Unix milliseconds of the first byte.
    pub started_at: u64,
    /// How many requests this connection has had with this one.
    pub nth_on_connection: u64,
    /// It came before the one ahead of it was answered.
    pub is_pipelined: bool,
    /// It came ahead of the end of the TLS handshake.
    pub is_early: bool,
    /// Bytes received for it so far.
    pub bytes: u64,
}

impl ReceivedHead {
    /// The head of a request that the server makes itself, over a connection that there is not.
    pub fn made(connection: ConnectionFacts, head: RequestHead, now: u64) -> ReceivedHead {
        ReceivedHead {
            head,
            connection: Arc::new(connection),
            started_at: now,
            nth_on_connection: 1,
            is_pipelined: false,
            is_early: false,
            bytes: 0,
        }
    }
}

/// The length of a request's body, as far as its head declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// It has no body.
    None,
    Known(u64),
    /// Its end shows when it comes.
    Unknown,
}

/// Why a request is not served.
#[derive(Debug)]
pub struct Refusal {
    pub status: u16,
    /// A sentence for the log.
    pub reason: String,
}

impl Refusal {
    #[cold]
    pub fn new(status: u16, reason: impl fmt::Display) -> Box<Refusal> {
        let reason = reason.to_string();
        Box::new(Refusal { status, reason })
    }
}

impl From<TargetError> for Box<Refusal> {
    #[cold]
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::InvalidTarget => Refusal::new(400, "client sent invalid request"),
            TargetError::InvalidHost => Refusal::new(400, "client sent invalid host header"),
        }
    }
}

/// The result of making a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseOutcome {
    /// The exchange has a response.
    Response,
    /// No response is sent: the connection closes.
    Nothing,
}

/// The future of the connection once a response is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    KeepAlive,
    Close,
}

/// The rules by which a location wants its responses sent.
// Large: directives that do not depend on each other.
#[derive(Debug, Clone, Copy)]
pub struct SendRules {
    /// `chunked_transfer_encoding`
    pub may_chunk: bool,
    /// The second argument of `keepalive_timeout`.
    pub keepalive_header: Option<Duration>,
    /// Fields may follow the body.
    pub may_have_trailers: bool,
    /// [`Exchange::pace`] may give one.
    pub may_be_paced: bool,
    pub sendfile: bool,
}

/// A request and, once it is made, its response.
pub trait Exchange: Send + Sync + Sized + 'static {
    fn head(&self) -> &RequestHead;

    /// Does the client want the head alone?
    fn wants_head_alone(&self) -> bool;

    /// Unix milliseconds at which the exchange was last looked at.
    fn now(&self) -> u64;

    /// Returns the connection settings of the location that made the response.
    fn connection_settings(&self) -> &ConnectionSettings;

    /// Returns that location's settings for the body of the request.
    fn body_settings(&self) -> &BodySettings;

    /// Does the system copy files to the client there (`sendfile`)?
    fn may_sendfile(&self) -> bool;

    /// Notes bytes that were received beyond the head.
    fn add_received(&mut self, bytes: u64);

    /// Returns how the response's head begins.
    fn opening(&self) -> Opening<'_>;

    /// All other fields of the head, but for those that the transport has for itself.
    fn walk_fields(&self, to: &mut impl FieldSink);

    /// Length of the body, where it is known.
    fn content_length(&self) -> Option<u64>;

    /// Returns how the location wants its responses sent.
    fn rules(&self) -> SendRules;

    /// The error that the response is the page of.
    fn error_status(&self) -> Option<u16>;

    fn body(&mut self) -> &mut Body<Self>;

    /// Leaves nothing in its place.
    fn take_body(&mut self) -> Body<Self>;

    fn pace(&mut self) -> Option<Pace>;

    /// The fields behind the body, which has ended; `received` are those that came with it.
    fn trailers(&mut self, received: Fields) -> &Fields;

    /// Notes the connection facts of the head, before it is sent.
    fn note_head(&mut self, head: SentHead);

    /// Notes bytes that were sent, and how many of them are of heads.
    fn add_sent(&mut self, bytes: u64, head_bytes: u64);

    /// Notes that the response is out.
    fn complete(&mut self);
}
