//! Reads answers as they arrive: status, how long the body is, where the answer ends.
//!
//! Bodies are counted, not kept. An answer whose end cannot be known (no length, not chunked) is an
//! error: a client that measures must know when it has everything.

/// Longest head that is read.
const MOST_HEAD_BYTES: usize = 16 << 10;

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Bytes of the body, without its framing.
    pub body_bytes: u64,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

enum State {
    /// The head so far.
    Head,
    /// Bytes of the body still to come.
    Body(u64),
    /// A chunk's size line so far.
    ChunkSize,
    /// Bytes of a chunk and its line end still to come.
    Chunk(u64),
    /// Lines after the last chunk.
    Trailer,
}

/// Takes bytes, gives whole answers.
pub struct Reader {
    state: State,
    line: Vec<u8>,
    status: u16,
    body_bytes: u64,
    has_no_body: bool,
}

impl Reader {
    /// `has_no_body` for answers to HEAD.
    pub fn new(has_no_body: bool) -> Reader {
        Reader {
            state: State::Head,
            line: Vec::new(),
            status: 0,
            body_bytes: 0,
            has_no_body,
        }
    }

    /// Takes all of `bytes`; the answer when it is whole. Bytes behind its end are an error, since
    /// one request is asked at a time.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<Option<Answer>, Broken> {
        while !bytes.is_empty() {
            let is_whole = match self.state {
                State::Head => self.take_head(&mut bytes)?,
                State::Body(left) => {
                    let taken = skip(&mut bytes, left);
                    self.body_bytes += taken;
                    self.state = State::Body(left - taken);
                    left == taken
                }
                State::ChunkSize => self.take_chunk_size(&mut bytes)?,
                State::Chunk(left) => {
                    let left = left - skip(&mut bytes, left);
                    self.state = if left == 0 {
                        State::ChunkSize
                    } else {
                        State::Chunk(left)
                    };
                    false
                }
                State::Trailer => self
                    .take_line(&mut bytes)?
                    .is_some_and(|line| line.is_empty()),
            };
            if is_whole {
                let answer = Answer {
                    status: self.status,
                    body_bytes: self.body_bytes,
                };
                *self = Reader::new(self.has_no_body);
                return if bytes.is_empty() {
                    Ok(Some(answer))
                } else {
                    Err(Broken)
                };
            }
        }
        Ok(None)
    }

    fn take_head(&mut self, bytes: &mut &[u8]) -> Result<bool, Broken> {
        let before = self.line.len();
        self.line.extend_from_slice(bytes);
        let from = before.saturating_sub(3);
        let Some(at) = self.line[from..]
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
        else {
            *bytes = &[];
            return if self.line.len() > MOST_HEAD_BYTES {
                Err(Broken)
            } else {
                Ok(false)
            };
        };
        let end = from + at + 4;
        *bytes = &bytes[end - before..];
        self.line.truncate(end);
        let head = std::mem::take(&mut self.line);
        self.parse_head(&head)
    }

    /// True when the head is all there is.
    fn parse_head(&mut self, head: &[u8]) -> Result<bool, Broken> {
        let head = std::str::from_utf8(head).map_err(|_| Broken)?;
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .ok_or(Broken)?;
        self.status = status.parse().map_err(|_| Broken)?;
        let (mut length, mut is_chunked) = (None, false);
        for line in lines {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.trim().parse::<u64>().map_err(|_| Broken)?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = value.trim().eq_ignore_ascii_case("chunked");
            }
        }
        if self.has_no_body || self.status == 304 || self.status == 204 {
            return Ok(true);
        }
        self.state = match length {
            _ if is_chunked => State::ChunkSize,
            Some(length) => State::Body(length),
            None => return Err(Broken),
        };
        Ok(length == Some(0) && !is_chunked)
    }

    fn take_chunk_size(&mut self, bytes: &mut &[u8]) -> Result<bool, Broken> {
        if let Some(line) = self.take_line(bytes)? {
            let line = std::str::from_utf8(&line).map_err(|_| Broken)?;
            let size = line.split(';').next().unwrap_or(line).trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| Broken)?;
            self.body_bytes = self.body_bytes.checked_add(size).ok_or(Broken)?;
            self.state = match size {
                0 => State::Trailer,
                _ => State::Chunk(size.checked_add(2).ok_or(Broken)?),
            };
        }
        Ok(false)
    }

    /// A line without its end, once it is there.
    fn take_line(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, Broken> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |at| at + 1);
        self.line.extend_from_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
        if self.line.len() > MOST_HEAD_BYTES {
            return Err(Broken);
        }
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.line);
        line.truncate(line.len() - 1);
        if line.ends_with(b"\r") {
            line.truncate(line.len() - 1);
        }
        Ok(Some(line))
    }
}

/// Drops up to `most` bytes from the front; how many.
fn skip(bytes: &mut &[u8], most: u64) -> u64 {
    let taken = usize::try_from(most).map_or(bytes.len(), |most| most.min(bytes.len()));
    *bytes = &bytes[taken..];
    taken as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, bytes, whether it answers HEAD, status and body bytes.
    const WHOLE: &[(&str, &[u8], bool, u16, u64)] = &[
        ("length", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", false, 200, 3),
        ("nothing", b"HTTP/1.1 404 No\r\ncontent-length:0\r\n\r\n", false, 404, 0),
        (
            "chunks",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nB;x=y\r\n, the world\r\n0\r\n\r\n",
            false,
            200,
            16,
        ),
        ("head", b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n", true, 200, 0),
        ("not modified", b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n", false, 304, 0),
    ];

    #[test]
    fn an_answer_is_whole_with_its_last_byte_however_it_is_cut() {
        for (name, bytes, is_head, status, body_bytes) in WHOLE {
            for cut in 0..bytes.len() {
                let mut reader = Reader::new(*is_head);
                let expected = Answer {
                    status: *status,
                    body_bytes: *body_bytes,
                };
                assert_eq!(reader.take(&bytes[..cut]), Ok(None), "{name} cut at {cut}");
                assert_eq!(
                    reader.take(&bytes[cut..]),
                    Ok(Some(expected)),
                    "{name} cut at {cut}"
                );
                assert_eq!(
                    reader.take(bytes),
                    Ok(Some(expected)),
                    "{name}: the next one"
                );
            }
        }
    }

    #[test]
    fn an_answer_that_cannot_be_measured_is_broken() {
        let cases: [(&str, &[u8]); 5] = [
            ("ends with the connection", b"HTTP/1.1 200 OK\r\n\r\n"),
            (
                "two answers",
                b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
            ),
            ("no number", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
            (
                "no chunk size",
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
            ),
            ("no status", b"hello\r\n\r\n"),
        ];
        for (name, bytes) in cases {
            assert_eq!(Reader::new(false).take(bytes), Err(Broken), "{name}");
        }
    }

    #[test]
    fn a_head_without_end_is_broken() {
        let mut reader = Reader::new(false);
        assert_eq!(reader.take(&vec![b'a'; MOST_HEAD_BYTES + 1]), Err(Broken));
    }
}
