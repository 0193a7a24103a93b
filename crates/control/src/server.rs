//! The server's side: answers on the control socket, with bounds on everything that a caller
//! decides. Only the server's own account and root can connect; the bounds are against mistakes.

use std::convert::Infallible;
use std::future::Future;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use numbers::{HistoryReport, Pages, Snapshot};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::command::{Command, CommandReport};
use crate::entries::{Entry, EntryRequest, FoundEntries, SearchRequest};
use crate::explain::{ExplainRequest, Explanation};
use crate::purge::{PurgeReport, PurgeRequest};
use crate::refusal::Refusal;
use crate::version::{VERSION, Version};
use crate::warm::{WarmReport, WarmRequest};

/// Callers at the same time; others wait until they are accepted.
const MAX_CONNECTIONS: usize = 16;
/// The most targets of a request with long URLs.
pub const MAX_BODY_BYTES: usize = 8 << 20;
/// How long the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a caller may take for all it does.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(120);
/// When the process has no more descriptors: how long until the next try.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The process at the other end of the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    pub uid: u32,
    /// The process of the caller, if the system reports it.
    pub pid: Option<i32>,
}

/// The part of the server that carries out callers' requests.
pub trait Handler: Send + Sync + 'static {
    /// `GET /1/version`
    fn version(&self) -> Version;

    /// `POST /1/reload`, and the other paths of a [`Command`]. Over when it is done, or has failed.
    fn command(
        &self,
        command: Command,
        caller: Caller,
    ) -> impl Future<Output = Result<CommandReport, Refusal>> + Send;

    /// `GET /1/numbers`
    fn numbers(&self) -> Result<Snapshot, Refusal>;

    /// `GET /1/pages`
    fn pages(&self) -> Result<Pages, Refusal>;

    /// `GET /1/history`: looks after `since`, in unix milliseconds.
    fn history(&self, since: u64) -> Result<HistoryReport, Refusal>;

    /// `POST /1/purge`. Over when the purge holds.
    fn purge(
        &self,
        request: PurgeRequest,
        caller: Caller,
    ) -> impl Future<Output = Result<PurgeReport, Refusal>> + Send;

    /// `POST /1/warm`. Over when the page is stored, or will not be.
    fn warm(
        &self,
        request: WarmRequest,
    ) -> impl Future<Output = Result<WarmReport, Refusal>> + Send;

    /// `POST /1/explain`: how a request would be answered, and why.
    fn explain(
        &self,
        request: ExplainRequest,
    ) -> impl Future<Output = Result<Explanation, Refusal>> + Send;

    /// `POST /1/search`: stored responses that have a text or a tag.
    fn search(
        &self,
        request: SearchRequest,
    ) -> impl Future<Output = Result<FoundEntries, Refusal>> + Send;

    /// `POST /1/entry`: one stored response.
    fn entry(&self, request: EntryRequest) -> Result<Entry, Refusal>;

    /// `POST /1/page`: returns the content of a page, whether or not it can be stored.
    fn page(&self, request: WarmRequest) -> impl Future<Output = Result<Bytes, Refusal>> + Send;
}

/// Answers on `listener` until it is dropped. Callers that have been accepted are answered to the
/// end.
///
/// # Errors
/// The socket cannot be waited for.
pub async fn serve<H: Handler>(listener: StdUnixListener, handler: Arc<H>) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return Ok(());
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let handler = handler.clone();
                tokio::spawn(async move {
                    let answered = answer(stream, handler);
                    // A client that takes longer is gone or hostile.
                    let _ = tokio::time::timeout(CONNECTION_TIMEOUT, answered).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// One request of one caller.
async fn answer<H: Handler>(stream: UnixStream, handler: Arc<H>) {
    let Ok(credentials) = stream.peer_cred() else {
        return;
    };
    let caller = Caller {
        uid: credentials.uid(),
        pid: credentials.pid(),
    };
    let service = service_fn(move |request| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(respond(request, &*handler, caller).await) }
    });
    // A caller that breaks off gets no answer.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(16 << 10)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond<H: Handler>(
    request: Request<Incoming>,
    handler: &H,
    caller: Caller,
) -> Response<Full<Bytes>> {
    let answered = match (request.method(), request.uri().path()) {
        (&Method::GET, "/1/version") => json(&handler.version()),
        (&Method::GET, "/1/numbers") => handler.numbers().and_then(|it| json(&it)),
        (&Method::GET, "/1/pages") => handler.pages().and_then(|it| json(&it)),
        (&Method::GET, "/1/history") => history(&request, handler),
        (&Method::POST, "/1/purge") => purge(request, handler, caller).await,
        (&Method::POST, "/1/warm") => warm(request, handler).await,
        (&Method::POST, "/1/page") => page(request, handler).await,
        (&Method::POST, "/1/explain") => match parsed(request, "{\"url\":\"http://a/\"}").await {
            Ok(asked) => handler
                .explain(asked)
                .await
                .and_then(|explanation| json(&explanation)),
            Err(refusal) => Err(refusal),
        },
        (&Method::POST, "/1/search") => match parsed(request, "{\"text\":\"/news/\"}").await {
            Ok(asked) => handler.search(asked).await.and_then(|found| json(&found)),
            Err(refusal) => Err(refusal),
        },
        (&Method::POST, "/1/entry") => parsed(request, "{\"id\":\"...\"}")
            .await
            .and_then(|asked| handler.entry(asked))
            .and_then(|entry| json(&entry)),
        (_, "/1/version" | "/1/numbers" | "/1/pages" | "/1/history") => {
            Err(Refusal::new(405, "expected GET"))
        }
        (_, "/1/purge" | "/1/warm" | "/1/page" | "/1/explain" | "/1/search" | "/1/entry") => {
            Err(Refusal::new(405, "expected POST"))
        }
        (method, path) => match Command::of_path(path) {
            Some(command) if method == Method::POST => {
                let done = handler.command(command, caller).await;
                done.and_then(|done| json(&done))
            }
            Some(_) => Err(Refusal::new(405, "expected POST")),
            None => Err(unknown(path)),
        },
    };
    answered.unwrap_or_else(|refusal| {
        let mut response = with_json(refusal.status, refusal.to_json());
        if let Some(seconds) = refusal.retry_after {
            let fields = response.headers_mut();
            fields.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    })
}

/// Refuses an unknown path. A path of another version of the interface gets its own message.
fn unknown(path: &str) -> Refusal {
    let first = path.split('/').nth(1).unwrap_or_default();
    match first.parse::<u32>() {
        Ok(version) if version != VERSION => Refusal::new(
            404,
            format!(
                "this server speaks version {VERSION} of the control interface, not {version}; \
                 the command and the server are of different releases"
            ),
        ),
        _ => Refusal::new(404, "there is nothing at this path"),
    }
}

type HandlerResult = Result<Response<Full<Bytes>>, Refusal>;

fn history<H: Handler>(request: &Request<Incoming>, handler: &H) -> HandlerResult {
    let since = match request.uri().query() {
        None => 0,
        Some(query) => {
            let since = query
                .strip_prefix("since=")
                .and_then(|text| text.parse().ok());
            since.ok_or_else(|| Refusal::new(400, "expected since=UNIX_MILLISECONDS"))?
        }
    };
    json(&handler.history(since)?)
}

async fn purge<H: Handler>(
    request: Request<Incoming>,
    handler: &H,
    caller: Caller,
) -> HandlerResult {
    let purge = PurgeRequest::from_json(&read(request).await?)?;
    json(&handler.purge(purge, caller).await?)
}

async fn warm<H: Handler>(request: Request<Incoming>, handler: &H) -> HandlerResult {
    let warm = read_warm(request).await?;
    json(&handler.warm(warm).await?)
}

async fn page<H: Handler>(request: Request<Incoming>, handler: &H) -> HandlerResult {
    let page = read_warm(request).await?;
    Ok(Response::new(Full::new(handler.page(page).await?)))
}

async fn read_warm(request: Request<Incoming>) -> Result<WarmRequest, Refusal> {
    parsed(request, "{\"url\":\"https://example.org/\"}").await
}

/// Parses a request's body as JSON; `example` shows the expected form in the error.
async fn parsed<T: DeserializeOwned>(
    request: Request<Incoming>,
    example: &str,
) -> Result<T, Refusal> {
    serde_json::from_slice(&read(request).await?).map_err(|error| {
        let message = format!("expected a JSON object such as {example}: {error}");
        Refusal::new(400, message)
    })
}

/// The body of a request.
async fn read(request: Request<Incoming>) -> Result<Bytes, Refusal> {
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES);
    let body = body.collect().await.map_err(|error| {
        match error.is::<http_body_util::LengthLimitError>() {
            true => Refusal::new(
                413,
                format!("expected a body of at most {MAX_BODY_BYTES} bytes"),
            ),
            false => Refusal::new(400, "the body broke off"),
        }
    })?;
    Ok(body.to_bytes())
}

fn json(value: &impl Serialize) -> HandlerResult {
    match serde_json::to_string(value) {
        Ok(text) => Ok(with_json(200, text)),
        Err(error) => Err(Refusal::new(500, error.to_string())),
    }
}

fn with_json(status: u16, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}
