//! Requests as they come over a connection: FastCGI records, read strictly.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use fastcgi::params::decode_pairs;
use fastcgi::record::{self, HEADER_BYTES, RecordHeader, kind};
use tokio::io::{AsyncRead, AsyncReadExt};

/// A client's request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The params; a param that was sent twice has its last value, as in PHP.
    pub params: BTreeMap<String, String>,
    /// Empty with [`tcp_answering_early`](super::FakePhp::tcp_answering_early).
    pub body: Bytes,
    pub keep_conn: bool,
    /// The first request of this responder has 1.
    pub number: usize,
    /// The first connection has 1.
    pub connection: usize,
}

impl Request {
    /// A param, or the empty string.
    pub fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }
}

async fn read_record(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(RecordHeader, Vec<u8>)> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).await?;
    let header = RecordHeader::decode(header);
    let whole = usize::from(header.content_bytes) + usize::from(header.padding_bytes);
    let mut content = vec![0; whole];
    stream.read_exact(&mut content).await?;
    content.truncate(usize::from(header.content_bytes));
    if header.version != record::VERSION || header.request_id != record::REQUEST_ID {
        return Err(fault("version or request id"));
    }
    Ok((header, content))
}

/// `None` when the client closed instead. Without the body if `early`.
pub(super) async fn read_request(
    stream: &mut (impl AsyncRead + Unpin),
    early: bool,
) -> io::Result<Option<Request>> {
    let (header, begin) = match read_record(stream).await {
        Ok(record) => record,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error),
        Err(_) => return Ok(None),
    };
    let (kind::BEGIN_REQUEST, &[0, 1, flags, ..]) = (header.kind, &begin[..]) else {
        return Err(fault("no BEGIN_REQUEST for a responder"));
    };
    let params = read_stream(stream, kind::PARAMS).await?;
    let params = decode_pairs(&params).ok_or_else(|| fault("params"))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let body = match early {
        true => Bytes::new(),
        false => read_body(stream).await?,
    };
    Ok(Some(Request {
        params: params
            .into_iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect(),
        body,
        keep_conn: flags & 1 == 1,
        number: 0,
        connection: 0,
    }))
}

pub(super) async fn read_body(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Bytes> {
    read_stream(stream, kind::STDIN).await.map(Bytes::from)
}

/// All records of a stream up to the empty one.
async fn read_stream(stream: &mut (impl AsyncRead + Unpin), kind: u8) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let (header, content) = read_record(stream).await?;
        if header.kind != kind {
            return Err(fault("a record out of order"));
        }
        if content.is_empty() {
            return Ok(whole);
        }
        whole.extend_from_slice(&content);
    }
}

fn fault(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
