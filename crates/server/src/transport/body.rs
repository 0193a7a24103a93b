//! A request's body: read from the connection as its framing says, kept in
//! memory or in a file, or handed on while it arrives.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http1::Framing;
use http1::chunked::{ChunkedDecoder, Decoded};
use parking_lot::Mutex;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use site::{BodySettings, InFileOnly};
use tokio::time::Sleep;
use upstream_exchange::BodySource;

use crate::base::request_body::{BodyError, ClientFault, Spooled};
use crate::transport::stream::ClientStream;

pub use crate::base::request_body::RequestBody;

/// How much is read from a client at once.
const READ_BYTES: usize = 16 * 1024;

/// What is left of the current request's body on the connection.
enum Rest {
    Done,
    Length(u64),
    Chunked(ChunkedDecoder),
}

/// The receiving half of a connection: bytes read ahead and the framing of the
/// body under way.
pub struct ClientInput {
    pub stream: Arc<ClientStream>,
    pub buffer: BytesMut,
    rest: Rest,
    /// Decoded bytes of this body so far.
    received: u64,
    max_bytes: u64,
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// Bytes taken off the wire for this body.
    pub wire_bytes: u64,
}

impl ClientInput {
    pub fn new(stream: Arc<ClientStream>) -> ClientInput {
        ClientInput {
            stream,
            buffer: BytesMut::new(),
            rest: Rest::Done,
            received: 0,
            max_bytes: 0,
            timeout: Duration::from_secs(60),
            timer: None,
            wire_bytes: 0,
        }
    }

    /// Begins the body of the next request.
    pub fn begin(&mut self, framing: Framing) {
        self.rest = match framing {
            Framing::None | Framing::Length(0) => Rest::Done,
            Framing::Length(length) => Rest::Length(length),
            Framing::Chunked => Rest::Chunked(ChunkedDecoder::new()),
        };
        self.received = 0;
        self.wire_bytes = 0;
        self.max_bytes = 0;
    }

    /// Sets limits once the location is known. A zero `max_bytes` is no limit.
    pub fn limit(&mut self, settings: &BodySettings) {
        self.max_bytes = settings.max_bytes;
        self.timeout = settings.timeout;
    }

    /// Likewise for a body that the location takes: a length that is known was compared
    /// with its limit when the request came to it.
    pub fn limit_accepted(&mut self, settings: &BodySettings) {
        self.limit(settings);
        if let Rest::Length(_) = self.rest {
            self.max_bytes = 0;
        }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.rest, Rest::Done)
    }

    /// Is the whole body here already, and small enough to be kept in memory?
    pub fn is_at_hand(&self, settings: &BodySettings) -> bool {
        let is_small = self.buffer.len() as u64 <= settings.buffer_bytes;
        is_small
            && match &self.rest {
                Rest::Done => true,
                Rest::Length(length) => *length <= self.buffer.len() as u64,
                Rest::Chunked(decoder) => ends_within(decoder.clone(), &self.buffer),
            }
    }

    /// Length of the rest, where the framing says it.
    pub fn remaining(&self) -> Option<u64> {
        match &self.rest {
            Rest::Done => Some(0),
            Rest::Length(length) => Some(*length),
            Rest::Chunked(_) => None,
        }
    }

    /// The next bytes of the body; `None` at its end.
    pub fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        loop {
            if let Some(bytes) = self.take_buffered()? {
                self.timer = None;
                return Poll::Ready(Ok(Some(bytes)));
            }
            if self.is_done() {
                self.timer = None;
                return Poll::Ready(Ok(None));
            }
            self.buffer.reserve(READ_BYTES);
            match self.stream.poll_read(cx, &mut self.buffer) {
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(Err(BodyError::Gone(io::ErrorKind::UnexpectedEof.into())));
                }
                Poll::Ready(Ok(_)) => self.timer = None,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(BodyError::Gone(error))),
                Poll::Pending => {
                    let timeout = self.timeout;
                    let timer = self
                        .timer
                        .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
                    ready!(timer.as_mut().poll(cx));
                    return Poll::Ready(Err(BodyError::TimedOut));
                }
            }
        }
    }

    /// Decodes what is buffered already; `None` when more must be read.
    fn take_buffered(&mut self) -> Result<Option<Bytes>, BodyError> {
        match &mut self.rest {
            Rest::Done => Ok(None),
            _ if self.buffer.is_empty() => Ok(None),
            Rest::Length(length) => {
                let take = usize::try_from(*length)
                    .unwrap_or(usize::MAX)
                    .min(self.buffer.len());
                *length -= take as u64;
                self.wire_bytes += take as u64;
                if *length == 0 {
                    self.rest = Rest::Done;
                }
                self.count(take)?;
                Ok(Some(self.buffer.split_to(take).freeze()))
            }
            Rest::Chunked(_) => self.take_chunks(),
        }
    }

    /// What the chunks hold that are here already, as one piece: they are handed
    /// on together, and the end with them if it came along.
    fn take_chunks(&mut self) -> Result<Option<Bytes>, BodyError> {
        let mut whole = BytesMut::new();
        while let Rest::Chunked(decoder) = &mut self.rest {
            let decoded = decoder.decode(&self.buffer);
            match decoded.map_err(|_| BodyError::Malformed)? {
                Decoded::Data { consumed, data } => {
                    self.wire_bytes += consumed as u64;
                    let mut piece = self.buffer.split_to(consumed);
                    let _ = piece.split_to(data.start);
                    piece.truncate(data.len());
                    match whole.is_empty() {
                        true => whole = piece,
                        false => whole.extend_from_slice(&piece),
                    }
                }
                Decoded::Done { consumed } => {
                    let _ = self.buffer.split_to(consumed);
                    self.wire_bytes += consumed as u64;
                    self.rest = Rest::Done;
                }
                Decoded::NeedMore => {
                    self.wire_bytes += self.buffer.len() as u64;
                    self.buffer.clear();
                    break;
                }
            }
        }
        self.count(whole.len())?;
        Ok((!whole.is_empty()).then(|| whole.freeze()))
    }

    fn count(&mut self, take: usize) -> Result<(), BodyError> {
        self.received += take as u64;
        if self.max_bytes > 0 && self.received > self.max_bytes {
            return Err(BodyError::TooLarge);
        }
        Ok(())
    }

    pub async fn next_body(&mut self) -> Result<Option<Bytes>, BodyError> {
        std::future::poll_fn(|cx| self.poll_body(cx)).await
    }

    /// Reads the whole body: into memory up to `client_body_buffer_size`, past
    /// that into a file.
    pub async fn read_whole(&mut self, settings: &BodySettings) -> Result<RequestBody, BodyError> {
        if self.is_done() {
            return Ok(RequestBody::None);
        }
        let in_memory = usize::try_from(settings.buffer_bytes).unwrap_or(usize::MAX);
        let mut memory = BytesMut::new();
        let mut spool: Option<Spool> = (settings.in_file_only != InFileOnly::Off)
            .then(|| Spool::create(settings))
            .transpose()?;
        while let Some(bytes) = self.next_body().await? {
            if let Some(spool) = &mut spool {
                spool.write(settings, &bytes)?;
            } else if memory.len() + bytes.len() > in_memory {
                let mut file = Spool::create(settings)?;
                file.write(settings, &memory)?;
                file.write(settings, &bytes)?;
                memory = BytesMut::new();
                spool = Some(file);
            } else {
                memory.extend_from_slice(&bytes);
            }
        }
        Ok(match spool {
            Some(spool) => RequestBody::Spooled(Arc::new(spool.0)),
            None => RequestBody::Memory(memory.freeze()),
        })
    }
}

/// Does a chunked body end within `bytes`?
fn ends_within(mut decoder: ChunkedDecoder, mut bytes: &[u8]) -> bool {
    loop {
        match decoder.decode(bytes) {
            Ok(Decoded::Data { consumed, .. }) => bytes = bytes.get(consumed..).unwrap_or_default(),
            Ok(Decoded::Done { .. }) => return true,
            Ok(Decoded::NeedMore) | Err(_) => return false,
        }
    }
}

/// A body that is being written to a file.
struct Spool(Spooled);

/// Ends the name of a file that goes with its request, as those of `clean` do.
const PASSING: &str = ".passing";

/// The name of a body's file in its folder.
fn file_name(serial: u64, pid: u32, keep: bool) -> String {
    let ending = if keep { "" } else { PASSING };
    format!("{serial:010}-{pid}{ending}")
}

/// Files that are looked at in one folder.
const SWEPT_FILES_MAX: usize = 100_000;

/// Removes the bodies that a killed process has left in `folder`: files that were to go with
/// their requests, and that no process holds any more. What `client_body_in_file_only on` keeps
/// has other names.
pub fn sweep(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    for entry in entries.flatten().take(SWEPT_FILES_MAX) {
        let is_body = entry.file_name().to_str().is_some_and(is_passing);
        if is_body && is_abandoned(&entry.path()) {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn is_passing(name: &str) -> bool {
    let numbers = name
        .strip_suffix(PASSING)
        .and_then(|numbers| numbers.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(serial, pid)| serial.len() >= 10 && is_number(serial) && is_number(pid))
}

/// A file of this account that no process has a lock on.
fn is_abandoned(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else {
        return false;
    };
    let is_own = rustix::fs::fstat(&file).is_ok_and(|stat| {
        stat.st_uid == rustix::process::geteuid().as_raw()
            && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
    });
    is_own && rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Large bodies go here where the folder for them cannot be used: a server that
/// an ordinary user starts may have no right to make one. Not `/tmp`, which is
/// memory on many systems.
const SPARE_FOLDER: &str = "/var/tmp";

impl Spool {
    fn create(settings: &BodySettings) -> Result<Spool, BodyError> {
        match settings.in_file_only {
            InFileOnly::Off => Spool::create_unnamed(&settings.temp_path)
                .map_err(|error| BodyError::Spool(settings.temp_path.clone(), error)),
            InFileOnly::Clean => Spool::create_named(settings)
                .or_else(|error| Spool::create_elsewhere().map_err(|_| error)),
            // Somebody looks for the file where it was said to be.
            InFileOnly::On => Spool::create_named(settings),
        }
    }

    fn create_unnamed(folder: &Path) -> io::Result<Spool> {
        let file = tempfile::tempfile_in(folder).or_else(|error| {
            let made = (error.kind() == io::ErrorKind::NotFound)
                .then(|| std::fs::create_dir_all(folder).ok())
                .flatten()
                .and_then(|()| tempfile::tempfile_in(folder).ok());
            made.map_or_else(
                || tempfile::tempfile_in(SPARE_FOLDER).map_err(|_| error),
                Ok,
            )
        })?;
        Ok(Spool(Spooled::unnamed(file)))
    }

    /// With a name that nobody can guess: the folder is everybody's.
    fn create_elsewhere() -> io::Result<Spool> {
        let made = tempfile::Builder::new()
            .prefix("mayfly-body-")
            .tempfile_in(SPARE_FOLDER)?;
        let (file, path) = made.keep().map_err(|refused| refused.error)?;
        Ok(Spool(Spooled::named(file, path, false)))
    }

    fn create_named(settings: &BodySettings) -> Result<Spool, BodyError> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let directory = &settings.temp_path;
        let fail = |error| BodyError::Spool(directory.clone(), error);
        // A leftover of an earlier process may have the name; a few tries pass it.
        for _ in 0..100 {
            let serial = SERIAL.fetch_add(1, Ordering::Relaxed) + 1;
            let keep = settings.in_file_only == InFileOnly::On;
            let path = directory.join(file_name(serial, std::process::id(), keep));
            let opened = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            match opened {
                Ok(file) => {
                    // See `sweep`. Without a lock a leftover stays, and that is all.
                    let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
                    return Ok(Spool(Spooled::named(file, path, keep)));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    std::fs::create_dir_all(directory).map_err(fail)?;
                }
                Err(error) => return Err(fail(error)),
            }
        }
        Err(fail(io::ErrorKind::AlreadyExists.into()))
    }

    fn write(&mut self, settings: &BodySettings, bytes: &[u8]) -> Result<(), BodyError> {
        self.0
            .append(bytes)
            .map_err(|error| BodyError::Spool(settings.temp_path.clone(), error))
    }
}

/// Where the receiving half comes back to after it was lent out.
pub type InputHome = Arc<Mutex<Option<ClientInput>>>;

/// A body that is handed on while it arrives: the connection's receiving half, which goes
/// home when this is dropped.
pub struct LentInput {
    /// Some until it is dropped.
    input: Option<Box<ClientInput>>,
    home: InputHome,
}

impl LentInput {
    pub fn new(input: ClientInput, home: InputHome) -> LentInput {
        LentInput {
            input: Some(Box::new(input)),
            home,
        }
    }
}

impl Drop for LentInput {
    fn drop(&mut self) {
        *self.home.lock() = self.input.take().map(|input| *input);
    }
}

impl BodySource for LentInput {
    fn is_at_end(&self) -> bool {
        self.input.as_ref().is_none_or(|input| input.is_done())
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match &mut self.input {
            None => Poll::Ready(None),
            Some(input) => ready!(input.poll_body(cx))
                .map_err(|error| io::Error::other(ClientFault(error)))
                .transpose()
                .into(),
        }
    }
}
