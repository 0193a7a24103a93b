//! Requests by the crate `h2`.

use std::path::Path;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use crate::client::Reply;
use crate::wait::TIMEOUT;

/// A connection to a server under test.
pub struct Http2Client {
    sender: SendRequest<Bytes>,
    driver: JoinHandle<Result<(), h2::Error>>,
}

impl Drop for Http2Client {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A response that is awaited or arrives.
pub struct Incoming(ResponseFuture);

/// A request's body that is being sent.
pub struct Outgoing(SendStream<Bytes>);

impl Http2Client {
    /// # Panics
    /// When nothing listens there, or the server does not speak HTTP/2.
    pub async fn connect(socket: &Path) -> Http2Client {
        let stream = UnixStream::connect(socket)
            .await
            .expect("the server listens");
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(1 << 20)
            .initial_connection_window_size(8 << 20);
        let (sender, connection) = builder.handshake(stream).await.expect("HTTP/2");
        Http2Client {
            sender,
            driver: tokio::spawn(connection),
        }
    }

    /// Begins a request; without a body where `is_whole`.
    ///
    /// # Panics
    /// When the connection is over.
    pub async fn begin(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        is_whole: bool,
    ) -> (Incoming, Outgoing) {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://site.test{path}"));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        let ready = self.sender.clone().ready();
        let ready = tokio::time::timeout(TIMEOUT, ready).await;
        self.sender = ready
            .expect("a stream in time")
            .expect("a connection that takes requests");
        let (response, stream) = self
            .sender
            .send_request(request, is_whole)
            .expect("a request is sent");
        (Incoming(response), Outgoing(stream))
    }

    /// A whole request and its whole response.
    ///
    /// # Panics
    /// When there is no response.
    pub async fn ask(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Reply {
        let (incoming, mut outgoing) = self.begin(method, path, fields, body.is_none()).await;
        if let Some(body) = body {
            // The response may come before all of it was taken.
            let _ = outgoing.send(Bytes::copy_from_slice(body), true).await;
        }
        incoming.reply().await.expect("a response")
    }

    pub async fn get(&mut self, path: &str) -> Reply {
        self.ask("GET", path, &[], None).await
    }

    /// A whole response, for a connection that may be over.
    ///
    /// # Errors
    /// It takes no more requests, or has ended before the response did.
    ///
    /// # Panics
    /// When nothing comes.
    pub async fn try_get(&mut self, path: &str) -> Result<Reply, h2::Error> {
        let request = Request::builder().uri(format!("http://site.test{path}"));
        let request = request.body(()).expect("a request");
        self.sender = self.sender.clone().ready().await?;
        let (response, _) = self.sender.send_request(request, true)?;
        Incoming(response).reply().await
    }

    /// Waits until the server has ended the connection, in order.
    ///
    /// # Panics
    /// When it does not, or with an error.
    pub async fn ended(mut self) {
        // The connection of `h2` lasts as long as a request sender exists.
        let driver = std::mem::replace(&mut self.driver, tokio::spawn(async { Ok(()) }));
        drop(self);
        let ended = tokio::time::timeout(TIMEOUT, driver).await;
        ended
            .expect("an end in time")
            .expect("no panic")
            .expect("an end without an error");
    }
}

impl Outgoing {
    /// Sends bytes as far as the windows allow.
    ///
    /// # Errors
    /// The server has reset the stream.
    pub async fn send(&mut self, mut bytes: Bytes, is_last: bool) -> Result<(), h2::Error> {
        while !bytes.is_empty() {
            self.0.reserve_capacity(bytes.len());
            let capacity = std::future::poll_fn(|cx| self.0.poll_capacity(cx)).await;
            let Some(capacity) = capacity else {
                return Err(h2::Reason::CANCEL.into());
            };
            let piece = bytes.split_to(capacity?.min(bytes.len()));
            let is_end = is_last && bytes.is_empty();
            self.0.send_data(piece, is_end)?;
            if is_end {
                return Ok(());
            }
        }
        match is_last {
            true => self.0.send_data(Bytes::new(), true),
            false => Ok(()),
        }
    }

    /// Ends the body with trailers.
    ///
    /// # Errors
    /// The server has reset the stream.
    pub fn end_with(&mut self, trailers: HeaderMap) -> Result<(), h2::Error> {
        self.0.send_trailers(trailers)
    }

    /// Takes the request back.
    pub fn reset(&mut self) {
        self.0.send_reset(h2::Reason::CANCEL);
    }
}

impl Incoming {
    /// The head of the response, and its body, of which nothing was read.
    ///
    /// # Errors
    /// The stream or the connection ended.
    ///
    /// # Panics
    /// When nothing comes.
    pub async fn head(self) -> Result<(Reply, RecvStream), h2::Error> {
        let response = tokio::time::timeout(TIMEOUT, self.0).await;
        let (head, body) = response.expect("a response in time")?.into_parts();
        let reply = Reply {
            status: head.status.as_u16(),
            fields: texts(&head.headers),
            ..Reply::default()
        };
        Ok((reply, body))
    }

    /// The whole response; its trailers are behind its fields.
    ///
    /// # Errors
    /// The stream or the connection ended.
    ///
    /// # Panics
    /// When nothing comes.
    pub async fn reply(self) -> Result<Reply, h2::Error> {
        let (mut reply, mut body) = self.head().await?;
        while let Some(bytes) = tokio::time::timeout(TIMEOUT, body.data())
            .await
            .expect("more of the body in time")
        {
            let bytes = bytes?;
            body.flow_control().release_capacity(bytes.len())?;
            reply.body.extend_from_slice(&bytes);
        }
        if let Some(trailers) = body.trailers().await? {
            reply.fields.extend(texts(&trailers));
        }
        reply.is_complete = true;
        Ok(reply)
    }
}

fn texts(fields: &HeaderMap) -> Vec<(String, String)> {
    fields
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect()
}
