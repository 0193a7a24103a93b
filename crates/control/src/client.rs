//! The client of the control socket: sends one request and reads one answer.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use numbers::{HistoryReport, Pages, Snapshot};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::command::{Command, CommandReport};
use crate::entries::{Entry, EntryRequest, FoundEntries, SearchRequest};
use crate::explain::{ExplainRequest, Explanation};
use crate::purge::{PurgeReport, PurgeRequest};
use crate::refusal::Refusal;
use crate::version::Version;
use crate::warm::{MAX_PAGE_BYTES, WarmReport, WarmRequest};

/// The report of the most targets that a request may have, with long URLs.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// How long a command waits for its answer; the server gives up earlier.
const TIMEOUT: Duration = Duration::from_secs(130);

/// The reason for a missing answer, or one that reports a failure.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No server listens on the socket.
    #[error("no server listens there ({0})")]
    NoServer(io::Error),
    /// The server refuses the request.
    #[error("{0}")]
    Refused(Refusal),
    /// The connection ended before there was an answer.
    #[error("{0}")]
    Ended(String),
    /// The received bytes are no answer.
    #[error("{0}")]
    Broken(String),
}

/// Lets the server whose control socket is at `path` purge pages.
///
/// # Errors
/// [`ClientError`]; a refusal means that nothing was purged.
pub async fn purge(path: &Path, purge: &PurgeRequest) -> Result<PurgeReport, ClientError> {
    ask(path, Method::POST, "/1/purge", json(purge)?).await
}

/// Lets the server whose control socket is at `path` store a page.
///
/// # Errors
/// [`ClientError`]
pub async fn warm(path: &Path, warm: &WarmRequest) -> Result<WarmReport, ClientError> {
    ask(path, Method::POST, "/1/warm", json(warm)?).await
}

/// Returns the content of a page, of at most [`MAX_PAGE_BYTES`].
///
/// # Errors
/// [`ClientError`]
pub async fn page(path: &Path, page: &WarmRequest) -> Result<Bytes, ClientError> {
    within_time(exchange(
        path,
        Method::POST,
        "/1/page",
        json(page)?,
        MAX_PAGE_BYTES,
    ))
    .await
}

/// Returns how the server would answer a request, and why.
///
/// # Errors
/// [`ClientError`]
pub async fn explain(path: &Path, request: &ExplainRequest) -> Result<Explanation, ClientError> {
    ask(path, Method::POST, "/1/explain", json(request)?).await
}

/// Returns the stored responses that have a text or a tag.
///
/// # Errors
/// [`ClientError`]
pub async fn search(path: &Path, request: &SearchRequest) -> Result<FoundEntries, ClientError> {
    ask(path, Method::POST, "/1/search", json(request)?).await
}

/// One stored response.
///
/// # Errors
/// [`ClientError`]; a refusal of status 404 where it is not stored any more.
pub async fn entry(path: &Path, request: &EntryRequest) -> Result<Entry, ClientError> {
    ask(path, Method::POST, "/1/entry", json(request)?).await
}

/// Sends a command to the server itself.
///
/// # Errors
/// [`ClientError`]; a refusal of status [`FAILED`](crate::command::FAILED) where it was tried.
pub async fn command(path: &Path, command: Command) -> Result<CommandReport, ClientError> {
    ask(path, Method::POST, command.path(), Vec::new()).await
}

/// Returns the version of the server.
///
/// # Errors
/// [`ClientError`]
pub async fn version(path: &Path) -> Result<Version, ClientError> {
    ask(path, Method::GET, "/1/version", Vec::new()).await
}

/// All numbers of the server, as they are now.
///
/// # Errors
/// [`ClientError`]
pub async fn numbers(path: &Path) -> Result<Snapshot, ClientError> {
    ask(path, Method::GET, "/1/numbers", Vec::new()).await
}

/// The pages that stand out.
///
/// # Errors
/// [`ClientError`]
pub async fn pages(path: &Path) -> Result<Pages, ClientError> {
    ask(path, Method::GET, "/1/pages", Vec::new()).await
}

/// The numbers of the last hour, as far as they came after `since` (unix milliseconds).
///
/// # Errors
/// [`ClientError`]
pub async fn history(path: &Path, since: u64) -> Result<HistoryReport, ClientError> {
    let target = format!("/1/history?since={since}");
    ask(path, Method::GET, &target, Vec::new()).await
}

async fn ask<A: DeserializeOwned>(
    path: &Path,
    method: Method,
    target: &str,
    body: Vec<u8>,
) -> Result<A, ClientError> {
    let answer = within_time(exchange(path, method, target, body, MAX_ANSWER_BYTES)).await?;
    serde_json::from_slice(&answer).map_err(|error| no_whole_answer(&error))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, ClientError> {
    serde_json::to_vec(value).map_err(|error| ClientError::Broken(error.to_string()))
}

fn no_whole_answer(error: &dyn std::fmt::Display) -> ClientError {
    ClientError::Broken(format!("no whole answer: {error}"))
}

async fn within_time<A>(
    exchange: impl Future<Output = Result<A, ClientError>>,
) -> Result<A, ClientError> {
    match tokio::time::timeout(TIMEOUT, exchange).await {
        Ok(answered) => answered,
        Err(_) => Err(ClientError::Broken(format!(
            "the server did not answer within {} s",
            TIMEOUT.as_secs()
        ))),
    }
}

/// Sends a request and returns the body of a successful answer.
async fn exchange(
    path: &Path,
    method: Method,
    target: &str,
    body: Vec<u8>,
    max_bytes: usize,
) -> Result<Bytes, ClientError> {
    let broken = no_whole_answer;
    let stream = UnixStream::connect(path).await;
    let stream = stream.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            ClientError::Broken("the server has too many callers already".to_owned())
        }
        _ => ClientError::NoServer(error),
    })?;
    let request = Request::builder()
        .method(method)
        .uri(target)
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| broken(&error))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(&error))?;
    let driver = tokio::spawn(connection);
    let response = sender
        .send_request(request)
        .await
        .map_err(|error| ClientError::Ended(format!("no answer: {error}")))?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), max_bytes);
    let body = body.collect().await.map_err(|error| broken(&error))?;
    let body = body.to_bytes();
    driver.abort();
    match status {
        200 => Ok(body),
        _ => Err(ClientError::Refused(Refusal::from_json(status, &body))),
    }
}
