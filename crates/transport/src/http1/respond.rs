//! Sending a response: head and body in one system call where the body is at hand, else piece
//! by piece.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use http_cache::MemoryFile;
use http_semantics::Version;
use tokio::time::{Instant, timeout_at};

use super::framing::{self, BodyFraming};
use super::head::{self, HeadBuffer};
use super::send::{self, Sender, WrittenBytes};
use crate::outbound::{Body, SendError};
use crate::ready_or_pending::ReadyOrPending;
use crate::service::{Ending, Exchange};
use crate::stream::ClientStream;

/// Sends the response of `exchange`; returns whether the connection may go on. If another request is
/// here already (`is_followed`), the response may wait for that one's.
pub fn send<'a, X: Exchange>(
    exchange: &'a mut X,
    stream: &'a ClientStream,
    may_keep_alive: bool,
    is_followed: bool,
) -> ReadyOrPending<'a, Result<Ending, SendError>> {
    if exchange.head().version() == Version::Http09 {
        return ReadyOrPending::pending(|| send_simple(exchange, stream));
    }
    let status = exchange.opening().status;
    let rules = exchange.rules();
    let framing = framing::of(exchange, status, &rules);
    let ending = framing::ending(exchange, status, framing, may_keep_alive);
    let sent = framing::sent_head(status, framing, ending, rules.keepalive_header);
    exchange.note_head(sent);
    let has_body = framing != BodyFraming::None && !exchange.wants_head_alone();
    let framing = match has_body {
        true => {
            exchange.body().read_small_file();
            framing
        }
        // A body without a reader is dropped; one that is being stored goes on
        // arriving without this reader.
        false => {
            *exchange.body() = Body::Empty;
            BodyFraming::None
        }
    };
    let at_once = HeadBuffer::with(|head| {
        head::write(exchange, &sent, head);
        match rules.may_be_paced {
            false => {
                let is_followed = is_followed && ending == Ending::KeepAlive;
                let body = exchange.body();
                let file = match rules.sendfile && !stream.is_encrypted() {
                    true => body.memory_file(),
                    false => None,
                };
                let chunks = chunks_at_hand(body, framing);
                try_at_once(stream, head, chunks, file, is_followed)
            }
            true => Ok(AtOnce::Part(head.take(), None)),
        }
    });
    let (head, begun) = match at_once {
        Ok(AtOnce::All(begun)) => {
            let (bytes, head_bytes) = begun.counts();
            exchange.add_sent(bytes, head_bytes);
            // Nothing of the upstream is kept longer than needed.
            if let Body::Arriving(_) = exchange.body() {
                exchange.take_body();
            }
            exchange.complete();
            return ReadyOrPending::Ready(Ok(ending));
        }
        Ok(AtOnce::Part(head, begun)) => (head, begun),
        Err(error) => return ReadyOrPending::Ready(Err(error)),
    };
    ReadyOrPending::pending(move || async move {
        send_rest(exchange, stream, head, begun, framing).await?;
        exchange.complete();
        Ok(ending)
    })
}

/// How much of a response left in one system call.
enum AtOnce {
    All(WrittenBytes),
    /// The rest of the response needs its head. `None`: nothing was tried, since bytes of the body
    /// have to be waited for.
    Part(Vec<u8>, Option<WrittenBytes>),
}

/// Sends a response, if its body is at hand.
#[inline]
fn try_at_once(
    stream: &ClientStream,
    head: &mut HeadBuffer,
    chunks: Option<&[Bytes]>,
    file: Option<&MemoryFile>,
    is_followed: bool,
) -> Result<AtOnce, SendError> {
    let Some(chunks) = chunks else {
        return Ok(AtOnce::Part(head.take(), None));
    };
    let begun = send::write_at_once(stream, head.bytes(), chunks, file, is_followed)?;
    Ok(match begun.is_all() {
        true => AtOnce::All(begun),
        false => AtOnce::Part(head.take(), Some(begun)),
    })
}

/// The pieces of a body that can follow the head as they are.
#[inline]
fn chunks_at_hand<X: Exchange>(body: &Body<X>, framing: BodyFraming) -> Option<&[Bytes]> {
    match framing {
        BodyFraming::Chunked => None,
        framing => body.chunks(framing.declared()),
    }
}

/// Sends the parts that have not left yet.
async fn send_rest<X: Exchange>(
    exchange: &mut X,
    stream: &ClientStream,
    head: Vec<u8>,
    begun: Option<WrittenBytes>,
    framing: BodyFraming,
) -> Result<(), SendError> {
    let mut sender = Sender::new(stream, exchange, head);
    let body = exchange.take_body();
    let sent = match (begun, chunks_at_hand(&body, framing)) {
        (Some(begun), Some(chunks)) => sender.send_unwritten(begun, chunks).await,
        _ => sender.send(exchange, body, framing).await,
    };
    let (bytes, head_bytes, head) = sender.into_counts();
    HeadBuffer::give(head);
    exchange.add_sent(bytes, head_bytes);
    sent
}

/// HTTP/0.9: the body alone, then the end.
async fn send_simple<X: Exchange>(
    exchange: &mut X,
    stream: &ClientStream,
) -> Result<Ending, SendError> {
    let mut sender = Sender::new(stream, exchange, Vec::new());
    let body = exchange.take_body();
    let sent = sender.send(exchange, body, BodyFraming::UntilClose).await;
    let (bytes, _, _) = sender.into_counts();
    exchange.add_sent(bytes, 0);
    sent?;
    exchange.complete();
    Ok(Ending::Close)
}

/// Writes the gathered bytes, if no response follows that would take them along.
pub async fn flush(stream: &ClientStream, timeout: Duration) -> Result<(), SendError> {
    let flushed = poll_fn(|cx| stream.poll_flush(cx));
    match timeout_at(Instant::now() + timeout, flushed).await {
        Ok(flushed) => Ok(flushed?),
        Err(_) => Err(SendError::TimedOut),
    }
}
