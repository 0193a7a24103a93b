//! Requests over HTTP/1.1, as strangers send them: the only file of the audit that opens connections.
//!
//! There are two visitors with a connection each. One sends altered requests, the other one clean requests.
//! Certificates are not verified, as in `mayfly bench`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use command_line::{Target, is_this_machine};
use http_client::{BodyFraming, Event, Exchange, NoBody, RequestSpec};
use tls_client::{Connector, Settings};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::request::AuditRequest;
use super::response::{MAX_BODY_BYTES, PageResponse};

/// Longest head of a response.
const HEAD_BYTES: usize = 64 << 10;

/// The address of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Place {
    /// Finds out where to connect for a page.
    ///
    /// # Errors
    /// A sentence for people, also where the server is on another machine and `anywhere` is false.
    pub async fn find(
        target: &Target,
        connect: Option<&str>,
        anywhere: bool,
    ) -> Result<Place, String> {
        if let Some(path) = connect.and_then(|it| it.strip_prefix("unix:")) {
            return Ok(Place::Unix(crate::paths::from_here(path.into())));
        }
        let own = match target.host.contains(':') {
            true => format!("[{}]:{}", target.host, target.port),
            false => format!("{}:{}", target.host, target.port),
        };
        let name = connect.unwrap_or(&own);
        let found = tokio::net::lookup_host(name).await;
        let found = found.map_err(|error| format!("{name}: {error}"))?;
        let found: Vec<SocketAddr> = found.collect();
        let first = found.iter().find(|it| it.is_ipv4()).or(found.first());
        let address = *first.ok_or_else(|| format!("{name} has no address"))?;
        match anywhere || is_this_machine(address.ip()) {
            true => Ok(Place::Tcp(address)),
            false => Err(format!(
                "{name} is {}, another machine: --yes-this-is-mine allows it",
                address.ip()
            )),
        }
    }
}

/// The bounds of all requests of an audit together.
#[derive(Debug)]
pub struct Budget {
    pub requests_left: u32,
    pub deadline: Instant,
    /// For each request.
    pub timeout: Duration,
}

/// The reason why there is no response.
#[derive(Debug, PartialEq, Eq)]
pub enum AskError {
    /// The budget is used up.
    Stopped,
    Failed(String),
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// A visitor with a connection of its own.
pub struct Visitor {
    place: Place,
    tls: Option<(Connector, String)>,
    kept: Option<Box<dyn Stream>>,
}

impl Visitor {
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(place: &Place, target: &Target) -> Result<Visitor, String> {
        let settings = Settings {
            send_name: true,
            ..Settings::default()
        };
        let tls = match target.is_tls {
            true => Some(Connector::new(&settings).map_err(|error| error.to_string())?),
            false => None,
        };
        Ok(Visitor {
            place: place.clone(),
            tls: tls.map(|connector| (connector, target.host.clone())),
            kept: None,
        })
    }

    /// Sends a request and reads the response.
    ///
    /// # Errors
    /// The budget is used up, or there is no whole response in time.
    pub async fn ask(
        &mut self,
        request: &AuditRequest,
        budget: &mut Budget,
    ) -> Result<PageResponse, AskError> {
        if budget.requests_left == 0 || Instant::now() >= budget.deadline {
            return Err(AskError::Stopped);
        }
        budget.requests_left -= 1;
        match tokio::time::timeout(budget.timeout, self.exchange(request)).await {
            Ok(result) => result.map_err(AskError::Failed),
            Err(_) => Err(AskError::Failed(format!(
                "no response within {:?}",
                budget.timeout
            ))),
        }
    }

    async fn exchange(&mut self, request: &AuditRequest) -> Result<PageResponse, String> {
        if let Some(stream) = self.kept.take() {
            match self.once(stream, request).await {
                // The server closed a kept connection while the request was on its way.
                Err(error) if error.before_first_byte() => {}
                result => return result.map_err(|error| error.to_string()),
            }
        }
        let stream = self.connect().await?;
        let result = self.once(stream, request).await;
        result.map_err(|error| error.to_string())
    }

    async fn once(
        &mut self,
        stream: Box<dyn Stream>,
        request: &AuditRequest,
    ) -> Result<PageResponse, http_client::Error> {
        let spec = RequestSpec {
            // The head has the length of the body that stands behind it.
            head: Bytes::copy_from_slice(request.bytes.as_bytes()),
            body: BodyFraming::None,
            head_request: request.is_head,
            keep_alive: true,
            allow_upgrade: false,
            head_limit_bytes: HEAD_BYTES,
            known_silent: false,
        };
        let mut exchange = Exchange::start(stream, spec, NoBody);
        let mut response = PageResponse::default();
        while let Some(event) = exchange.next().await? {
            match event {
                Event::Head(head) => {
                    response.status = head.status;
                    let lines = head.fields.iter();
                    response.fields = lines
                        .map(|(name, value)| {
                            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
                            (name, String::from_utf8_lossy(value).into_owned())
                        })
                        .collect();
                }
                Event::Data(bytes) => {
                    let room = MAX_BODY_BYTES.saturating_sub(response.body.len());
                    let begin = bytes.get(..room.min(bytes.len())).unwrap_or_default();
                    response.body.extend_from_slice(begin);
                    if begin.len() < bytes.len() {
                        // The connection closes with the exchange.
                        return Ok(response);
                    }
                }
                _ => {}
            }
        }
        self.kept = exchange.into_stream();
        Ok(response)
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, String> {
        let stream: Box<dyn Stream> = match &self.place {
            Place::Tcp(address) => {
                let stream = TcpStream::connect(address).await;
                let stream =
                    stream.map_err(|error| format!("no connection to {address}: {error}"))?;
                let _ = stream.set_nodelay(true);
                Box::new(stream)
            }
            Place::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                Box::new(
                    stream
                        .map_err(|error| format!("no connection to {}: {error}", path.display()))?,
                )
            }
        };
        match &self.tls {
            None => Ok(stream),
            Some((connector, name)) => {
                let stream = connector.connect(stream, name).await;
                Ok(Box::new(stream.map_err(|error| format!("TLS: {error}"))?))
            }
        }
    }
}
