//! The HTTP client for issuers: HTTPS with HTTP/1.1, a connection for each request, and a bound
//! for everything that comes back. A few dozen requests every two months need no more.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, InvalidHeaderValue, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use outgoing::OutgoingError;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

/// For one request with its response. Issuers may take their time to answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// For one address of the issuer, which may have several.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A response: a chain of certificates is the largest.
const MAX_BODY_BYTES: usize = 1 << 20;

/// The reason why a request to an issuer has no response.
#[derive(Debug, thiserror::Error)]
enum ExchangeError {
    #[error("a URL without a host")]
    NoHost,
    #[error("a URL that is none")]
    InvalidUrl,
    #[error(transparent)]
    InvalidHost(#[from] InvalidHeaderValue),
    #[error(transparent)]
    Connect(#[from] OutgoingError),
    #[error(transparent)]
    InvalidName(#[from] InvalidDnsNameError),
    #[error(transparent)]
    Tls(#[from] io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Body(#[from] Box<dyn std::error::Error + Send + Sync>),
    #[error("no response in time")]
    Timeout,
}

/// Asks issuers. Clones are one client.
#[derive(Clone)]
pub struct Client {
    tls: Arc<ClientConfig>,
    /// The `Retry-After` of the last response that refused a request.
    retry_after: Arc<Mutex<Option<Duration>>>,
}

impl Client {
    /// With the authorities of a PEM text, or those of the system.
    ///
    /// # Errors
    /// The PEM text or the system holds no usable certificate authority.
    pub fn new(trusted: Option<&[u8]>) -> Result<Client, OutgoingError> {
        Ok(Client {
            tls: Arc::new(outgoing::tls(trusted)?),
            retry_after: Arc::default(),
        })
    }

    /// Takes the `Retry-After` of the last refusal.
    pub fn take_retry_after(&self) -> Option<Duration> {
        self.retry_after.lock().take()
    }

    async fn send(self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error> {
        let uri = request.uri().clone();
        let exchanged = tokio::time::timeout(REQUEST_TIMEOUT, self.exchange(request)).await;
        let response = exchanged
            .unwrap_or(Err(ExchangeError::Timeout))
            .map_err(|reason| Error::Other(format!("{uri}: {reason}").into()))?;
        if matches!(
            response.status(),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            let value = response.headers().get(RETRY_AFTER);
            *self.retry_after.lock() = value.and_then(retry_after);
        }
        Ok(BytesResponse::from(response))
    }

    async fn exchange(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Result<Response<Full<Bytes>>, ExchangeError> {
        let uri = request.uri().clone();
        let host = uri.host().ok_or(ExchangeError::NoHost)?.to_owned();
        let is_encrypted = uri.scheme_str() == Some("https");
        let port = uri
            .port_u16()
            .unwrap_or(if is_encrypted { 443 } else { 80 });
        let bare = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let stream = outgoing::connect(&bare, port, CONNECT_TIMEOUT).await?;
        let request = in_origin_form(request, &uri)?;
        if !is_encrypted {
            return over(stream, request).await;
        }
        let name = ServerName::try_from(bare)?;
        let connector = TlsConnector::from(self.tls.clone());
        over(connector.connect(name, stream).await?, request).await
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        Box::pin(self.clone().send(request))
    }
}

/// The request as it is written to a server: the target without scheme and host (RFC 9112 §3.2.1).
fn in_origin_form(
    mut request: Request<BodyWrapper<Bytes>>,
    uri: &Uri,
) -> Result<Request<BodyWrapper<Bytes>>, ExchangeError> {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = HeaderValue::from_str(authority)?;
    request.headers_mut().insert(HOST, host);
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    *request.uri_mut() = target.parse().map_err(|_| ExchangeError::InvalidUrl)?;
    Ok(request)
}

async fn over(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<BodyWrapper<Bytes>>,
) -> Result<Response<Full<Bytes>>, ExchangeError> {
    let made = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = made?;
    let exchange = async {
        let (parts, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
        let body = body?.to_bytes();
        Ok(Response::from_parts(parts, Full::new(body)))
    };
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        biased;
        exchanged = &mut exchange => return exchanged,
        // The connection ends when everything has arrived, or when the other side closes it.
        _ = connection => {}
    }
    exchange.await
}

/// Seconds, or a date (RFC 9110 §10.2.3).
fn retry_after(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let moment = httpdate::parse_http_date(text).ok()?;
            let left = moment.duration_since(std::time::SystemTime::now());
            Some(left.unwrap_or_default())
        }
    }
}
