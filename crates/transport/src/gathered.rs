//! Responses that wait to leave together. A client may send requests without
//! waiting for answers (pipelining, RFC 9112 §9.3.2); a small response from memory
//! is left here when another whole request stands behind the one it answers. It
//! leaves with the next write to this client, whatever that is, so that order is
//! kept; and before the connection's task waits for anything.

use bytes::Bytes;

/// A response beyond this is written at once, with the responses gathered before it: the copy
/// would cost more than the system call.
const RESPONSE_BYTES: usize = 8 * 1024;
/// Gathered at most.
const GATHERED_BYTES: usize = 16 * 1024;
/// The most responses that are gathered: the first must not wait for long.
const GATHERED_RESPONSES: usize = 64;

/// Whole responses, in the order of their requests.
#[derive(Debug, Default)]
pub struct GatheredResponses {
    bytes: Vec<u8>,
    /// The bytes already written.
    written: usize,
    responses: usize,
}

impl GatheredResponses {
    /// Takes a response in; false if it is too large, or there is no room.
    pub fn take(&mut self, head: &[u8], chunks: &[Bytes]) -> bool {
        let length = head.len() + chunks.iter().map(Bytes::len).sum::<usize>();
        if length > RESPONSE_BYTES
            || self.bytes.len() + length > GATHERED_BYTES
            || self.responses == GATHERED_RESPONSES
        {
            return false;
        }
        self.responses += 1;
        self.bytes.extend_from_slice(head);
        for chunk in chunks {
            self.bytes.extend_from_slice(chunk);
        }
        true
    }

    /// Returns the bytes still to be written.
    pub fn left(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.left().is_empty()
    }

    /// Notes that `written` bytes from [`GatheredResponses::left`] on were written; gives how
    /// many of them were not its own. Once all are out, no memory is held.
    pub fn advance(&mut self, written: usize) -> usize {
        let left = self.left().len();
        if written < left {
            self.written += written;
            return 0;
        }
        *self = GatheredResponses::default();
        written - left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_responses_are_bounded() {
        let mut gathered = GatheredResponses::default();
        let body = [Bytes::from(vec![b'x'; RESPONSE_BYTES - 4])];
        assert!(!gathered.take(b"head.", &body), "too large");
        assert!(gathered.is_empty());
        assert!(gathered.take(b"head", &body));
        assert!(gathered.take(b"head", &body));
        assert!(!gathered.take(b"h", &[]), "no room");
        assert_eq!(gathered.left().len(), GATHERED_BYTES);

        let mut gathered = GatheredResponses::default();
        for _ in 0..GATHERED_RESPONSES {
            assert!(gathered.take(b"head", &[]));
        }
        assert!(!gathered.take(b"head", &[]), "too many");
    }

    #[test]
    fn what_was_written_in_part_goes_on_where_it_stopped() {
        let mut gathered = GatheredResponses::default();
        assert!(gathered.take(b"one", &[Bytes::from_static(b"two")]));
        assert_eq!(gathered.advance(4), 0);
        assert_eq!(gathered.left(), b"wo");
        assert!(gathered.take(b"three", &[]));
        assert_eq!(gathered.left(), b"wothree");
        assert_eq!(gathered.advance(10), 3, "of what came behind");
        assert!(gathered.is_empty());
        assert_eq!(gathered.bytes.capacity(), 0);
    }
}
