//! One `get` in terms of an exchange: the command that is sent, and the bounds of its
//! answer. Both directions are driven by `upstream-exchange`.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use upstream_exchange::{EncodeRequest, FIRST_READ_BYTES, NoBody, Protocol, Segments};

use crate::response::ResponseReader;

/// One request under way. Its last event is [`crate::Event::End`].
pub type Exchange<S> = upstream_exchange::Exchange<S, RequestSpec, NoBody>;

/// A memcached request: its key, and the bound for its answer.
#[derive(Clone, Debug)]
pub struct RequestSpec {
    /// The key, escaped by [`crate::escape_key`].
    pub key: Bytes,
    /// Bound of the answer's first line (`memcached_buffer_size`).
    pub head_limit_bytes: usize,
}

impl Protocol for RequestSpec {
    type Request = Command;
    type Response = ResponseReader;

    fn start(self) -> (Command, ResponseReader) {
        let command = [b"get ", &self.key[..], b"\r\n"].concat();
        let buffer = BytesMut::with_capacity(FIRST_READ_BYTES);
        (
            Command(command.into()),
            ResponseReader::new(self.key, self.head_limit_bytes, buffer),
        )
    }
}

/// The bytes of a command that are not yet written.
#[derive(Debug)]
pub struct Command(Bytes);

impl EncodeRequest for Command {
    fn wants_body(&self) -> bool {
        false
    }

    fn add_body(&mut self, _part: Bytes, _is_last: bool) -> io::Result<()> {
        Err(io::ErrorKind::InvalidInput.into())
    }

    fn end_body(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn put_segments<'a>(&'a self, segments: &mut Segments<'a>) {
        segments.push(&self.0);
    }

    fn advance(&mut self, written: usize) {
        self.0.advance(written);
    }

    fn is_complete(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::error::Error;
    use crate::response::{Event, ResponseHead};

    fn spec() -> RequestSpec {
        RequestSpec {
            key: Bytes::from_static(b"k"),
            head_limit_bytes: 100,
        }
    }

    /// An exchange with a peer that sends `answer` and closes.
    async fn against(answer: &'static [u8]) -> (Vec<Event>, Result<(), Error>, Vec<u8>) {
        let (near, mut far) = duplex(8);
        let peer = tokio::spawn(async move {
            let mut asked = vec![0; 7];
            far.read_exact(&mut asked).await.expect("a command");
            // The client stops reading after a protocol error.
            let _ = far.write_all(answer).await;
            asked
        });
        let mut exchange = Exchange::start(near, spec(), NoBody);
        let mut events = Vec::new();
        let end = loop {
            match exchange.next().await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        drop(exchange);
        (events, end, peer.await.expect("the peer"))
    }

    #[tokio::test]
    async fn a_value_comes_whole_and_the_connection_goes_back() {
        let (near, mut far) = duplex(1024);
        let mut exchange = Exchange::start(near, spec(), NoBody);
        far.write_all(b"VALUE k 1 3\r\nabc\r\nEND\r\n")
            .await
            .expect("room");
        let found = ResponseHead::Found {
            flags: 1,
            length_bytes: 3,
        };
        for wanted in [
            Some(Event::Head(found)),
            Some(Event::Data(Bytes::from_static(b"abc"))),
            Some(Event::End { reusable: true }),
            None,
        ] {
            assert_eq!(exchange.next().await.expect("an event"), wanted);
        }
        assert_eq!((exchange.sent_bytes(), exchange.received_bytes()), (7, 23));
        assert!(exchange.into_stream().is_some());
    }

    #[tokio::test]
    async fn an_exchange_that_did_not_end_gives_no_connection_back() {
        let (near, mut far) = duplex(1024);
        let mut exchange = Exchange::start(near, spec(), NoBody);
        far.write_all(b"VALUE k 1 3\r\nabc").await.expect("room");
        exchange.next().await.expect("a head");
        exchange.next().await.expect("data");
        assert!(exchange.into_stream().is_none());
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_never_looks_whole() {
        for (answer, why) in [
            (&b""[..], "prematurely closed"),
            (b"VALUE k 0", "prematurely closed"),
            (b"VALUE k 0 3\r\n", "after 0 of 3 bytes"),
            (b"VALUE k 0 3\r\nab", "after 2 of 3 bytes"),
            (b"VALUE k 0 3\r\nabc", "invalid trailer"),
            (b"VALUE k 0 3\r\nabc\r\nEND\r", "invalid trailer"),
            (b"VALUE k 0 3\r\nabcd\r\nEND\r\n", "invalid trailer"),
        ] {
            let (events, end, asked) = against(answer).await;
            let error = end.expect_err("no end");
            assert!(error.to_string().contains(why), "{answer:?}: {error}");
            assert_eq!(error.before_first_byte(), answer.is_empty());
            assert!(!events.iter().any(|it| matches!(it, Event::End { .. })));
            assert_eq!(asked, b"get k\r\n");
        }
    }
}
