//! One request and its response over any upstream protocol: the events and errors of FastCGI,
//! HTTP and memcached under one name each. The protocol's own crate knows the
//! differences; a fetch treats all protocols alike.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use clock::Deadline;
use parking_lot::Mutex;
use upstream::Stream;
use upstream_exchange::{Event, ResponseHead, StreamError};

use super::outgoing_body::OutgoingBody;
use super::upstream_request::{MemcachedRequest, UpstreamRequest};

impl UpstreamRequest {
    /// Sends it over `stream`; `is_reused`: which was idle, and silent, until now.
    pub fn start(
        &self,
        stream: Stream,
        is_reused: bool,
        head_request: bool,
        head_limit_bytes: usize,
        body: OutgoingBody,
    ) -> Exchange {
        match self {
            UpstreamRequest::FastCgi { params, keep_conn } => {
                let spec = fastcgi::RequestSpec {
                    params: params.clone(),
                    keep_conn: *keep_conn,
                    head_request,
                    head_limit_bytes,
                };
                Exchange::FastCgi(Box::new(fastcgi::Exchange::start(stream, spec, body)))
            }
            UpstreamRequest::Http(request) => {
                let spec = http_client::RequestSpec {
                    head: request.head.clone(),
                    body: request.framing,
                    head_request,
                    keep_alive: request.keep_alive,
                    allow_upgrade: request.allow_upgrade,
                    head_limit_bytes,
                    known_silent: is_reused,
                };
                let exchange = http_client::Exchange::start(stream, spec, body);
                Exchange::Http(Box::new(exchange))
            }
            UpstreamRequest::Memcached(request) => {
                let spec = memcached::RequestSpec {
                    key: request.key.clone(),
                    head_limit_bytes,
                };
                let exchange = memcached::Exchange::start(stream, spec, memcached::NoBody);
                Exchange::Memcached(Box::new(exchange), request.clone())
            }
        }
    }
}

/// A request under way.
pub enum Exchange {
    FastCgi(Box<fastcgi::Exchange<Stream, OutgoingBody>>),
    Http(Box<http_client::Exchange<Stream, OutgoingBody>>),
    Memcached(Box<memcached::Exchange<Stream>>, MemcachedRequest),
}

/// The error of an exchange, by protocol.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    FastCgi(fastcgi::Error),
    #[error("{0}")]
    Http(http_client::Error),
    #[error("{0}")]
    Memcached(memcached::Error),
}

impl Exchange {
    /// The next event; `None` once nothing follows. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next event, where it needs no waiting.
    pub fn next_at_hand(&mut self) -> Option<Result<Option<Event>, Error>> {
        match self.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        }
    }

    /// The next event; `None` when nothing moved either way within the `limit`
    /// that applies at that point. Cancel-safe.
    pub async fn next_within(
        &mut self,
        deadline: &Mutex<Deadline>,
        limit: impl Fn(&Exchange) -> Duration,
    ) -> Option<Result<Option<Event>, Error>> {
        let mut waiting_since = None;
        poll_fn(|cx| {
            if let Poll::Ready(event) = self.poll_next(cx) {
                return Poll::Ready(Some(event));
            }
            let moved = (self.sent_bytes(), self.received_bytes());
            let mut deadline = deadline.lock();
            if waiting_since.replace(moved) != Some(moved) {
                deadline.until(clock::recent_instant() + limit(self));
            }
            deadline.poll(cx).map(|()| None)
        })
        .await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>, Error>> {
        match self {
            Exchange::FastCgi(exchange) => exchange.poll_next(cx).map_err(Error::FastCgi),
            Exchange::Http(exchange) => exchange.poll_next(cx).map_err(Error::Http),
            Exchange::Memcached(exchange, request) => exchange
                .poll_next(cx)
                .map_ok(|event| event.map(|event| from_memcached(event, request)))
                .map_err(Error::Memcached),
        }
    }

    pub fn is_request_sent(&self) -> bool {
        match self {
            Exchange::FastCgi(exchange) => exchange.is_request_sent(),
            Exchange::Http(exchange) => exchange.is_request_sent(),
            Exchange::Memcached(exchange, _) => exchange.is_request_sent(),
        }
    }

    pub fn sent_bytes(&self) -> u64 {
        match self {
            Exchange::FastCgi(exchange) => exchange.sent_bytes(),
            Exchange::Http(exchange) => exchange.sent_bytes(),
            Exchange::Memcached(exchange, _) => exchange.sent_bytes(),
        }
    }

    pub fn received_bytes(&self) -> u64 {
        match self {
            Exchange::FastCgi(exchange) => exchange.received_bytes(),
            Exchange::Http(exchange) => exchange.received_bytes(),
            Exchange::Memcached(exchange, _) => exchange.received_bytes(),
        }
    }

    /// The connection for the next request, if the exchange left it clean.
    pub fn into_stream(self) -> Option<Stream> {
        match self {
            Exchange::FastCgi(exchange) => exchange.into_stream(),
            Exchange::Http(exchange) => exchange.into_stream(),
            Exchange::Memcached(exchange, _) => exchange.into_stream(),
        }
    }

    /// The connection and the bytes read ahead, after the head of an upgrade.
    pub fn into_tunnel(self) -> Option<(Stream, Bytes)> {
        match self {
            Exchange::FastCgi(_) | Exchange::Memcached(..) => None,
            Exchange::Http(exchange) => exchange.into_tunnel(),
        }
    }
}

fn from_memcached(event: memcached::Event, request: &MemcachedRequest) -> Event {
    match event {
        memcached::Event::Head(head) => Event::Head(of_value(head, request)),
        memcached::Event::Data(bytes) => Event::Data(bytes),
        memcached::Event::End { reusable } => Event::End {
            app_status: None,
            reusable,
            excess_data: None,
        },
    }
}

/// A value as a response: 404 where the key has no value.
fn of_value(head: memcached::ResponseHead, request: &MemcachedRequest) -> ResponseHead {
    let mut fields = Vec::new();
    let (status, length) = match head {
        memcached::ResponseHead::NotFound => (404, 0),
        memcached::ResponseHead::Found {
            flags,
            length_bytes,
        } => {
            fields.push(("Content-Type".into(), request.content_type.clone()));
            if flags & request.gzip_flags != 0 {
                fields.push(("Content-Encoding".into(), "gzip".into()));
            }
            (200, length_bytes)
        }
    };
    ResponseHead {
        status,
        reason: Bytes::new(),
        fields,
        content_length: Some(length),
        is_upgrade: false,
    }
}

impl Error {
    /// Whether no byte of a response had arrived.
    pub fn before_first_byte(&self) -> bool {
        match self {
            Error::FastCgi(error) => error.before_first_byte(),
            Error::Http(error) => error.before_first_byte(),
            Error::Memcached(error) => error.before_first_byte(),
        }
    }

    /// Whether the bytes received on a reused connection belong to the response
    /// before.
    pub fn is_leftover(&self) -> bool {
        matches!(self, Error::Http(error) if error.is_leftover())
    }

    /// Whether the bytes received are no response head.
    pub fn is_invalid_head(&self) -> bool {
        match self {
            Error::FastCgi(error) => matches!(
                error,
                fastcgi::Error::Malformed(_)
                    | fastcgi::Error::InvalidHead(_)
                    | fastcgi::Error::HeadTooLarge { .. }
            ),
            Error::Http(error) => error.is_invalid_head(),
            Error::Memcached(error) => error.is_invalid_response(),
        }
    }

    /// The request's body could not be had.
    pub fn of_request_body(&self) -> Option<&std::io::Error> {
        match self {
            Error::FastCgi(fastcgi::Error::Stream(StreamError::RequestBody(error)))
            | Error::Http(http_client::Error::Stream(StreamError::RequestBody(error))) => {
                Some(error)
            }
            _ => None,
        }
    }
}
