//! Reads answers as they arrive: status, how long the body is, where the answer ends.
//!
//! Bodies are counted, not kept. An answer without a length that is not chunked ends with its
//! connection, which the caller reports to [`Reader::end`].

use command_line::CacheWord;

/// Longest head that is read.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Bytes of the body, without its framing.
    pub body_bytes: u64,
    /// The cache status that the answer has.
    pub cache: Option<CacheWord>,
    /// The connection takes no further request.
    pub closes: bool,
}

/// Cookies of one answer that are kept.
const MAX_COOKIES: usize = 32;

/// An answer that is no valid HTTP response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedResponse;

enum AnswerState {
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
    /// Everything until the connection ends.
    UntilEnd,
}

/// Takes bytes, gives whole answers.
pub struct Reader {
    state: AnswerState,
    line: Vec<u8>,
    status: u16,
    body_bytes: u64,
    cache: Option<CacheWord>,
    closes: bool,
    has_no_body: bool,
    keeps_cookies: bool,
    cookies: Vec<String>,
}

impl Reader {
    /// `has_no_body` for answers to HEAD.
    pub fn new(has_no_body: bool) -> Reader {
        Reader {
            state: AnswerState::Head,
            line: Vec::new(),
            status: 0,
            body_bytes: 0,
            cache: None,
            closes: false,
            has_no_body,
            keeps_cookies: false,
            cookies: Vec::new(),
        }
    }

    /// Keeps the cookies that answers set, for [`Reader::take_cookies`].
    #[must_use]
    pub fn keeping_cookies(mut self) -> Reader {
        self.keeps_cookies = true;
        self
    }

    /// Whether the next answer is one to HEAD.
    pub fn answers_head(&mut self, is_head: bool) {
        self.has_no_body = is_head;
    }

    /// `name=value` of each cookie that was set since the last call.
    pub fn take_cookies(&mut self) -> Vec<String> {
        std::mem::take(&mut self.cookies)
    }

    /// Whether a part of an answer has arrived, and not all of it.
    #[must_use]
    pub fn is_within_answer(&self) -> bool {
        !matches!(self.state, AnswerState::Head) || !self.line.is_empty()
    }

    /// The connection has ended: the answer that ends with it, if there is one.
    pub fn end(&mut self) -> Option<Response> {
        match self.state {
            AnswerState::UntilEnd => Some(self.finish()),
            _ => None,
        }
    }

    fn finish(&mut self) -> Response {
        let answer = Response {
            status: self.status,
            body_bytes: self.body_bytes,
            cache: self.cache,
            closes: self.closes,
        };
        self.state = AnswerState::Head;
        self.line.clear();
        self.body_bytes = 0;
        self.cache = None;
        self.closes = false;
        answer
    }

    /// Takes all of `bytes`; the answer when it is whole. Bytes behind its end are an error, since
    /// one request is asked at a time.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<Option<Response>, MalformedResponse> {
        while !bytes.is_empty() {
            let is_whole = match self.state {
                AnswerState::Head => self.take_head(&mut bytes)?,
                AnswerState::Body(left) => {
                    let taken = skip(&mut bytes, left);
                    self.body_bytes += taken;
                    self.state = AnswerState::Body(left - taken);
                    left == taken
                }
                AnswerState::ChunkSize => self.take_chunk_size(&mut bytes)?,
                AnswerState::Chunk(left) => {
                    let left = left - skip(&mut bytes, left);
                    self.state = if left == 0 {
                        AnswerState::ChunkSize
                    } else {
                        AnswerState::Chunk(left)
                    };
                    false
                }
                AnswerState::UntilEnd => {
                    self.body_bytes += bytes.len() as u64;
                    bytes = &[];
                    false
                }
                AnswerState::Trailer => self
                    .take_line(&mut bytes)?
                    .is_some_and(|line| line.is_empty()),
            };
            if is_whole {
                let answer = self.finish();
                return if bytes.is_empty() {
                    Ok(Some(answer))
                } else {
                    Err(MalformedResponse)
                };
            }
        }
        Ok(None)
    }

    fn take_head(&mut self, bytes: &mut &[u8]) -> Result<bool, MalformedResponse> {
        let before = self.line.len();
        self.line.extend_from_slice(bytes);
        let from = before.saturating_sub(3);
        let Some(at) = self.line[from..]
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
        else {
            *bytes = &[];
            return if self.line.len() > MAX_HEAD_BYTES {
                Err(MalformedResponse)
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
    fn parse_head(&mut self, head: &[u8]) -> Result<bool, MalformedResponse> {
        let head = String::from_utf8_lossy(head);
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .ok_or(MalformedResponse)?;
        self.status = status.parse().map_err(|_| MalformedResponse)?;
        if (100..200).contains(&self.status) {
            // 103 and its like: the answer is still to come. An upgrade was not asked for.
            return if self.status == 101 {
                Err(MalformedResponse)
            } else {
                Ok(false)
            };
        }
        self.closes = head.starts_with("HTTP/1.0");
        let (mut length, mut is_chunked) = (None, false);
        for line in lines {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            self.parse_field(name, value.trim());
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.trim().parse::<u64>().map_err(|_| MalformedResponse)?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = value.trim().eq_ignore_ascii_case("chunked");
            }
        }
        if self.has_no_body || self.status == 304 || self.status == 204 {
            return Ok(true);
        }
        self.state = match length {
            _ if is_chunked => AnswerState::ChunkSize,
            Some(length) => AnswerState::Body(length),
            None => {
                self.closes = true;
                AnswerState::UntilEnd
            }
        };
        Ok(length == Some(0) && !is_chunked)
    }

    /// Reads the fields of an answer that are not about its framing.
    fn parse_field(&mut self, name: &str, value: &str) {
        if name.eq_ignore_ascii_case("connection") {
            let has = |word: &str| {
                value
                    .split(',')
                    .any(|it| it.trim().eq_ignore_ascii_case(word))
            };
            self.closes = has("close") || self.closes && !has("keep-alive");
        } else if self.keeps_cookies
            && name.eq_ignore_ascii_case("set-cookie")
            && self.cookies.len() < MAX_COOKIES
        {
            let pair = value.split(';').next().unwrap_or_default().trim();
            self.cookies.push(pair.to_owned());
        } else {
            self.cache = CacheWord::after_field(self.cache, name, value);
        }
    }

    fn take_chunk_size(&mut self, bytes: &mut &[u8]) -> Result<bool, MalformedResponse> {
        if let Some(line) = self.take_line(bytes)? {
            let line = std::str::from_utf8(&line).map_err(|_| MalformedResponse)?;
            let size = line.split(';').next().unwrap_or(line).trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| MalformedResponse)?;
            self.body_bytes = self.body_bytes.checked_add(size).ok_or(MalformedResponse)?;
            self.state = match size {
                0 => AnswerState::Trailer,
                _ => AnswerState::Chunk(size.checked_add(2).ok_or(MalformedResponse)?),
            };
        }
        Ok(false)
    }

    /// A line without its end, once it is there.
    fn take_line(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, MalformedResponse> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |at| at + 1);
        self.line.extend_from_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
        if self.line.len() > MAX_HEAD_BYTES {
            return Err(MalformedResponse);
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
                let expected = Response {
                    status: *status,
                    body_bytes: *body_bytes,
                    cache: None,
                    closes: false,
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
            ("an upgrade", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
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
            assert_eq!(
                Reader::new(false).take(bytes),
                Err(MalformedResponse),
                "{name}"
            );
        }
    }

    #[test]
    fn an_answer_without_a_length_ends_with_its_connection() {
        let mut reader = Reader::new(false);
        assert_eq!(reader.take(b"HTTP/1.1 200 OK\r\n\r\nabc"), Ok(None));
        assert_eq!(reader.take(b"def"), Ok(None));
        let answer = reader.end().unwrap();
        assert_eq!((answer.body_bytes, answer.closes), (6, true));
        reader
            .take(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
            .unwrap();
        assert!(reader.end().is_none() && reader.is_within_answer());
    }

    #[test]
    fn hints_before_an_answer_are_read_past() {
        let bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No\r\n\r\n";
        for cut in 0..bytes.len() {
            let mut reader = Reader::new(false);
            assert_eq!(reader.take(&bytes[..cut]), Ok(None));
            assert_eq!(reader.take(&bytes[cut..]).unwrap().unwrap().status, 204);
        }
    }

    #[test]
    fn what_a_cache_says_is_one_word() {
        let cases = [
            ("Cache-Status: mayfly; hit; ttl=3", Some(CacheWord::Hit)),
            (
                "Cache-Status: a; hit, mayfly; fwd=uri-miss; stored",
                Some(CacheWord::Miss),
            ),
            ("Cache-Status: mayfly; fwd=bypass", Some(CacheWord::Bypass)),
            (
                "Cache-Status: mayfly; fwd=miss; collapsed",
                Some(CacheWord::Collapsed),
            ),
            ("X-Cache: HIT", Some(CacheWord::Hit)),
            ("x-cache: Hit from cloudfront", Some(CacheWord::Hit)),
            ("X-FastCGI-Cache: UPDATING", Some(CacheWord::Stale)),
            ("X-Cache: EXPIRED", Some(CacheWord::Miss)),
            ("X-Cache: -", None),
            (
                "X-Cache: HIT\r\nCache-Status: m; fwd=stale",
                Some(CacheWord::Miss),
            ),
        ];
        for (field, expected) in cases {
            let head = format!("HTTP/1.1 204 No\r\n{field}\r\n\r\n");
            let answer = Reader::new(false).take(head.as_bytes()).unwrap().unwrap();
            assert_eq!(answer.cache, expected, "{field}");
        }
    }

    #[test]
    fn cookies_and_the_end_of_a_connection_are_told() {
        let head = b"HTTP/1.1 204 No\r\nSet-Cookie: a=1; Path=/\r\nset-cookie: b=2\r\nConnection: Close\r\n\r\n";
        let mut reader = Reader::new(false).keeping_cookies();
        assert!(reader.take(head).unwrap().unwrap().closes);
        assert_eq!(reader.take_cookies(), ["a=1", "b=2"]);
        assert_eq!(reader.take_cookies(), [""; 0]);
    }

    #[test]
    fn a_head_without_end_is_broken() {
        let mut reader = Reader::new(false);
        assert_eq!(
            reader.take(&vec![b'a'; MAX_HEAD_BYTES + 1]),
            Err(MalformedResponse)
        );
    }
}
