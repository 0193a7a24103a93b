//! The HTTP client for issuers: HTTPS with HTTP/1.1, a connection for each request, and a bound
//! for everything that comes back. A few dozen requests every two months need no more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

/// For one request with its response. Issuers may take their time to answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// For one address of the issuer, which may have several.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A response: a chain of certificates is the largest.
const MAX_BODY_BYTES: usize = 1 << 20;

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
    pub fn new(trusted: Option<&[u8]>) -> Result<Client, String> {
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
        let failed = |reason: String| Error::Other(format!("{uri}: {reason}").into());
        let exchanged = tokio::time::timeout(REQUEST_TIMEOUT, self.exchange(request)).await;
        let response = match exchanged {
            Ok(response) => response.map_err(failed)?,
            Err(_) => return Err(failed("no response in time".to_owned())),
        };
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
    ) -> Result<Response<Full<Bytes>>, String> {
        let uri = request.uri().clone();
        let host = uri.host().ok_or("a URL without a host")?.to_owned();
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
        let name = ServerName::try_from(bare).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(self.tls.clone());
        let stream = connector.connect(name, stream).await;
        over(stream.map_err(|error| error.to_string())?, request).await
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
) -> Result<Request<BodyWrapper<Bytes>>, String> {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
    request.headers_mut().insert(HOST, host);
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    *request.uri_mut() = target
        .parse()
        .map_err(|_| "a URL that is none".to_owned())?;
    Ok(request)
}

async fn over(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<BodyWrapper<Bytes>>,
) -> Result<Response<Full<Bytes>>, String> {
    let made = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = made.map_err(|error| error.to_string())?;
    let exchange = async {
        let response = sender.send_request(request).await;
        let (parts, body) = response.map_err(|error| error.to_string())?.into_parts();
        let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
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
