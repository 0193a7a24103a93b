//! A client that sends exactly the given bytes, and reads one response after another from a
//! connection.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::wait::TIMEOUT;

/// A connection to a server under test.
pub struct Client {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
    error: Option<io::Error>,
}

/// The stream that a client sends on and reads from.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// One response, whole.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body ended at the length of its framing.
    pub is_complete: bool,
}

impl Reply {
    /// The first value of a field, or the empty text.
    pub fn field(&self, name: &str) -> &str {
        self.fields
            .iter()
            .find(|(field, _)| field == name)
            .map_or("", |(_, value)| value)
    }

    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, _)| field == name)
    }

    /// The value of `X-Cache`, where the configuration adds `$upstream_cache_status` as that.
    pub fn x_cache(&self) -> &str {
        self.field("x-cache")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    /// # Panics
    /// When nothing listens there.
    pub async fn connect(socket: &Path) -> Client {
        let stream = UnixStream::connect(socket)
            .await
            .expect("the server listens");
        Client::over(stream)
    }

    /// A client over a connection that is there.
    pub fn over(stream: impl Stream + 'static) -> Client {
        Client {
            stream: Box::new(stream),
            buffer: Vec::new(),
            error: None,
        }
    }

    /// Returns the error that ended the connection, if it was not the end of the stream.
    pub fn error(&self) -> Option<io::ErrorKind> {
        self.error.as_ref().map(io::Error::kind)
    }

    /// Sends bytes as they are.
    ///
    /// # Panics
    /// When the server does not take them.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).await.expect("the server reads");
    }

    /// Sends bytes as far as the server takes them, and does not mind if it takes no more.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref()).await?;
        self.stream.flush().await
    }

    /// The next response; `None` when the server closed without one.
    ///
    /// # Panics
    /// When nothing comes for [`TIMEOUT`], or when it is no response.
    pub async fn receive(&mut self, to_head_request: bool) -> Option<Reply> {
        tokio::time::timeout(TIMEOUT, self.read_response(to_head_request))
            .await
            .expect("a response in time")
    }

    /// Everything until the server closes.
    ///
    /// # Panics
    /// When it does not close within [`TIMEOUT`].
    pub async fn receive_all(&mut self) -> Vec<u8> {
        tokio::time::timeout(TIMEOUT, async {
            while self.fill().await {}
            std::mem::take(&mut self.buffer)
        })
        .await
        .expect("the server closes in time")
    }

    /// Reads until `text` has come; gives everything up to and including it.
    ///
    /// # Panics
    /// When it does not come within [`TIMEOUT`].
    pub async fn receive_until(&mut self, text: &str) -> Vec<u8> {
        tokio::time::timeout(TIMEOUT, async {
            loop {
                if let Some(at) = find(&self.buffer, text.as_bytes()) {
                    let rest = self.buffer.split_off(at + text.len());
                    return std::mem::replace(&mut self.buffer, rest);
                }
                assert!(self.fill().await, "the server closed before {text:?} came");
            }
        })
        .await
        .expect("the text in time")
    }

    /// The next bytes, however many came.
    ///
    /// # Panics
    /// When nothing comes for [`TIMEOUT`], or the server closes.
    pub async fn receive_some(&mut self) -> Vec<u8> {
        if self.buffer.is_empty() {
            let filled = tokio::time::timeout(TIMEOUT, self.fill()).await;
            assert!(filled.expect("bytes in time"), "the server closed");
        }
        std::mem::take(&mut self.buffer)
    }

    async fn read_response(&mut self, to_head_request: bool) -> Option<Reply> {
        let head_end = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if !self.fill().await {
                assert!(
                    self.buffer.is_empty(),
                    "a truncated head: {:?}",
                    String::from_utf8_lossy(&self.buffer)
                );
                return None;
            }
        };
        let head: Vec<u8> = self.buffer.drain(..head_end).collect();
        let mut reply = parse_head(&head);
        let no_body = to_head_request || matches!(reply.status, 100..=199 | 204 | 304);
        reply.is_complete = if no_body {
            true
        } else if reply.field("transfer-encoding") == "chunked" {
            self.read_chunks(&mut reply.body).await
        } else if reply.has("content-length") {
            let length = reply.field("content-length").parse().expect("a length");
            self.read_length(length, &mut reply.body).await
        } else {
            while self.fill().await {}
            reply.body = std::mem::take(&mut self.buffer);
            true
        };
        Some(reply)
    }

    async fn read_length(&mut self, length: usize, body: &mut Vec<u8>) -> bool {
        while self.buffer.len() < length {
            if !self.fill().await {
                body.append(&mut self.buffer);
                return false;
            }
        }
        body.extend(self.buffer.drain(..length));
        true
    }

    async fn read_chunks(&mut self, body: &mut Vec<u8>) -> bool {
        loop {
            let line_end = loop {
                if let Some(at) = find(&self.buffer, b"\r\n") {
                    break at;
                }
                if !self.fill().await {
                    return false;
                }
            };
            let line: Vec<u8> = self.buffer.drain(..line_end + 2).collect();
            let size = String::from_utf8_lossy(&line);
            let size = usize::from_str_radix(size.trim(), 16).expect("a chunk size");
            let mut data = Vec::new();
            if !self.read_length(size + 2, &mut data).await {
                return false;
            }
            data.truncate(size);
            body.append(&mut data);
            if size == 0 {
                return true;
            }
        }
    }

    async fn fill(&mut self) -> bool {
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(read) => read > 0,
            // A reset is as good as an end here.
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn parse_head(head: &[u8]) -> Reply {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|code| code.parse().ok())
        .unwrap_or_else(|| panic!("no status line: {text:?}"));
    let fields = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Reply {
        status,
        fields,
        ..Reply::default()
    }
}

/// A socket to send whole requests to, each on a connection of its own.
#[derive(Clone, Debug)]
pub struct Target(pub PathBuf);

impl Target {
    /// GET with these extra field lines (`"Cookie: a=b\r\n"`).
    pub async fn get_with(&self, path: &str, fields: &str) -> Reply {
        self.ask("GET", path, fields, "").await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.get_with(path, "").await
    }

    /// GETs with these field lines until the answer comes from memory.
    ///
    /// # Panics
    /// When none does within [`TIMEOUT`].
    pub async fn visit_until_hit(&self, path: &str, fields: &str) -> Reply {
        let started = Instant::now();
        loop {
            let reply = self.get_with(path, fields).await;
            if reply.x_cache() == "HIT" {
                return reply;
            }
            assert!(
                started.elapsed() < TIMEOUT,
                "{path} {fields}: {}",
                reply.x_cache()
            );
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Any method, with a body where one is given.
    ///
    /// # Panics
    /// When the server closes without a response.
    pub async fn ask(&self, method: &str, path: &str, fields: &str, body: &str) -> Reply {
        let mut client = Client::connect(&self.0).await;
        let length = if body.is_empty() {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n{fields}{length}\r\n{body}"
        );
        client.send(request).await;
        client.receive(method == "HEAD").await.expect("a response")
    }
}
