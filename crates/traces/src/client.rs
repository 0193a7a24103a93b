//! One connection to a collector: HTTP/1.1 for OTLP/HTTP, HTTP/2 for gRPC, with TLS if the
//! endpoint asks for it. It is kept from batch to batch.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER, TE, USER_AGENT};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use outgoing::OutgoingError;
use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::endpoint::Protocol;
use crate::message;
use crate::retry::{self, Outcome};
use crate::settings::Settings;

/// For one address of the collector, with its handshakes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For a batch with its answer: the wait of OTLP's own exporters.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read at most.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Bytes of an answer's reason that are passed on at most.
const MAX_REASON_BYTES: usize = 200;

/// The reason why a batch has no answer.
#[derive(Debug, thiserror::Error)]
enum ClientError {
    #[error(transparent)]
    Connect(#[from] OutgoingError),
    #[error(transparent)]
    InvalidName(#[from] InvalidDnsNameError),
    #[error("no TLS handshake in time")]
    HandshakeTimeout,
    #[error(transparent)]
    Tls(#[from] io::Error),
    #[error(transparent)]
    InvalidRequest(#[from] http::Error),
    #[error("{}", with_cause(.0))]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Body(#[from] Box<dyn Error + Send + Sync>),
    #[error("no answer in time")]
    Timeout,
}

pub struct Client {
    settings: Arc<Settings>,
    tls: Option<Arc<ClientConfig>>,
    connection: Option<Connection>,
}

enum Connection {
    Http(http1::SendRequest<Full<Bytes>>),
    Grpc(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    pub fn new(settings: Arc<Settings>, tls: Option<Arc<ClientConfig>>) -> Client {
        Client {
            settings,
            tls,
            connection: None,
        }
    }

    /// Sends a batch. A kept connection that turns out to be closed is replaced once.
    pub async fn send(&mut self, batch: &Bytes) -> Outcome {
        let sent = tokio::time::timeout(REQUEST_TIMEOUT, self.send_now(batch)).await;
        sent.unwrap_or(Err(ClientError::Timeout))
            .unwrap_or_else(|error| {
                self.connection = None;
                Outcome::Later {
                    reason: error.to_string(),
                    after: None,
                }
            })
    }

    async fn send_now(&mut self, batch: &Bytes) -> Result<Outcome, ClientError> {
        if let Some(mut kept) = self.connection.take()
            && kept.is_ready().await
            && let Ok(response) = kept.exchange(self.request(batch)?).await
        {
            return self.finish(kept, response).await;
        }
        let mut connection = self.connect().await?;
        let response = connection.exchange(self.request(batch)?).await?;
        self.finish(connection, response).await
    }

    /// Reads the answer, and keeps the connection.
    async fn finish(
        &mut self,
        connection: Connection,
        response: Response<Incoming>,
    ) -> Result<Outcome, ClientError> {
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        let body = body?;
        let trailers = body.trailers().cloned();
        let body = body.to_bytes();
        self.connection = Some(connection);
        let after = parts.headers.get(RETRY_AFTER);
        let after = after.and_then(|value| value.to_str().ok());
        let after = after.and_then(|value| retry::retry_after(value, SystemTime::now()));
        Ok(match self.settings.endpoint.protocol() {
            Protocol::Http if parts.status.is_success() => taken(&body),
            Protocol::Grpc if parts.status == StatusCode::OK => {
                of_grpc(trailers.as_ref().unwrap_or(&parts.headers), &body)
            }
            _ => retry::of_http(parts.status.as_u16(), after, &first_line(&body)),
        })
    }

    fn request(&self, batch: &Bytes) -> Result<Request<Full<Bytes>>, ClientError> {
        let settings = &self.settings;
        let endpoint = &settings.endpoint;
        let agent = format!("mayfly/{}", settings.version);
        let mut request = Request::builder()
            .method(Method::POST)
            .header(USER_AGENT, agent);
        for (name, value) in &settings.fields {
            request = request.header(&**name, &**value);
        }
        Ok(match endpoint.protocol() {
            Protocol::Http => request
                .uri(endpoint.path())
                .header(HOST, endpoint.authority())
                .header(CONTENT_TYPE, "application/x-protobuf")
                .body(Full::new(batch.clone()))?,
            Protocol::Grpc => {
                let scheme = if endpoint.is_tls { "https" } else { "http" };
                request
                    .uri(format!(
                        "{scheme}://{}{}",
                        endpoint.authority(),
                        endpoint.path()
                    ))
                    .header(CONTENT_TYPE, "application/grpc")
                    .header(TE, "trailers")
                    .body(Full::new(framed(batch)))?
            }
        })
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        let endpoint = &self.settings.endpoint;
        let stream = outgoing::connect(&endpoint.host, endpoint.port, CONNECT_TIMEOUT).await?;
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return begin(stream, endpoint.protocol()).await;
        };
        let name = ServerName::try_from(endpoint.host.clone())?;
        let stream = TlsConnector::from(tls.clone()).connect(name, stream);
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, stream).await;
        let stream = stream.map_err(|_| ClientError::HandshakeTimeout)?;
        begin(stream?, endpoint.protocol()).await
    }
}

impl Connection {
    async fn is_ready(&mut self) -> bool {
        match self {
            Connection::Http(sender) => sender.ready().await.is_ok(),
            Connection::Grpc(sender) => sender.ready().await.is_ok(),
        }
    }

    async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ClientError> {
        Ok(match self {
            Connection::Http(sender) => sender.send_request(request).await?,
            Connection::Grpc(sender) => sender.send_request(request).await?,
        })
    }
}

fn with_cause(error: &hyper::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The connection's own task ends when it is dropped or closed.
async fn begin(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    protocol: Protocol,
) -> Result<Connection, ClientError> {
    let stream = TokioIo::new(stream);
    match protocol {
        Protocol::Http => {
            let (sender, connection) = http1::handshake(stream).await?;
            tokio::spawn(connection);
            Ok(Connection::Http(sender))
        }
        Protocol::Grpc => {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            tokio::spawn(connection);
            Ok(Connection::Grpc(sender))
        }
    }
}

/// A message of gRPC: not compressed, its length, itself.
fn framed(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(message);
    framed.freeze()
}

/// Returns the outcome of a gRPC call from its end: the trailers, or the head if there is no
/// body.
fn of_grpc(end: &HeaderMap, body: &[u8]) -> Outcome {
    let text = |name: &str| end.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status").and_then(|code| code.parse().ok()) {
        Some(0) => taken(body.get(5..).unwrap_or_default()),
        Some(code) => {
            let pushback = text("grpc-retry-pushback-ms").and_then(|text| text.parse().ok());
            let message = first_line(text("grpc-message").unwrap_or_default().as_bytes());
            retry::of_grpc(code, pushback.map(Duration::from_millis), &message)
        }
        None => Outcome::Refused {
            reason: "it does not speak gRPC".to_owned(),
        },
    }
}

fn taken(answer: &[u8]) -> Outcome {
    let (rejected, message) = message::rejected(answer).unwrap_or_default();
    let message = first_line(message.as_bytes());
    Outcome::Taken { rejected, message }
}

/// Returns the readable first line of a reason.
fn first_line(text: &[u8]) -> String {
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.get(..MAX_REASON_BYTES).unwrap_or(line);
    let line = String::from_utf8_lossy(line);
    match line
        .chars()
        .any(|character| character.is_control() || character == '\u{FFFD}')
    {
        // Binary: a status of google.rpc, most likely.
        true => String::new(),
        false => line.trim().to_owned(),
    }
}
