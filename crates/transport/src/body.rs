//! A request's body: pulled from whichever protocol it comes by, kept in memory or in a
//! file, or handed on while it arrives.

use std::any::Any;
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
use parking_lot::Mutex;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use tokio::time::Sleep;
use transport_settings::{BodySettings, InFileOnly};
use upstream_exchange::BodySource;

use crate::private_file;
use crate::request_body::{BodyError, ClientFault, RequestBody, SpooledBody};

/// The body of a request, as the protocol that it came by gives it.
pub trait IncomingBody: Send + Sync {
    /// Bytes of it that have arrived, at least one; `None` at its end.
    ///
    /// # Errors
    /// The client has gone, or sends an invalid body.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>>;

    /// Was all of it taken?
    fn is_done(&self) -> bool;

    /// Have bytes of it arrived that were not taken yet?
    fn has_arrived(&self) -> bool;

    /// Is all that is left of it here already, in at most `most` bytes?
    fn is_at_hand(&self, most: u64) -> bool;

    /// Length of the rest, where it is known.
    fn remaining(&self) -> Option<u64>;

    /// Returns the bytes received for it so far, including its framing.
    fn wire_bytes(&self) -> u64;

    /// For the transport, which takes its own part back.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// The receiving half of a client: a body, and the location's limits for it.
pub struct ClientInput {
    body: Box<dyn IncomingBody>,
    /// Bytes of the body so far.
    received: u64,
    max_bytes: u64,
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// How many bytes had come when the timer was set.
    timer_at: u64,
}

impl ClientInput {
    pub fn new(body: Box<dyn IncomingBody>) -> ClientInput {
        ClientInput {
            body,
            received: 0,
            max_bytes: 0,
            timeout: Duration::from_secs(60),
            timer: None,
            timer_at: 0,
        }
    }

    pub fn into_body(self) -> Box<dyn IncomingBody> {
        self.body
    }

    /// Sets limits once the location is known. A zero `max_bytes` is no limit.
    pub fn limit(&mut self, settings: &BodySettings) {
        self.max_bytes = settings.max_bytes;
        self.timeout = settings.timeout;
    }

    /// Sets limits for a body that the location takes: a known length was compared with its
    /// limit when the request came to it.
    pub fn limit_accepted(&mut self, settings: &BodySettings) {
        self.limit(settings);
        if self.body.remaining().is_some() {
            self.max_bytes = 0;
        }
    }

    pub fn is_done(&self) -> bool {
        self.body.is_done()
    }

    /// Have bytes of it arrived that were not taken yet?
    pub fn has_arrived(&self) -> bool {
        self.body.has_arrived()
    }

    /// Is the whole body here already, and small enough to be kept in memory?
    pub fn is_at_hand(&self, settings: &BodySettings) -> bool {
        self.body.is_at_hand(settings.buffer_bytes)
    }

    /// Length of the rest, where it is known.
    pub fn remaining(&self) -> Option<u64> {
        self.body.remaining()
    }

    /// Bytes taken off the wire for this body.
    pub fn wire_bytes(&self) -> u64 {
        self.body.wire_bytes()
    }

    /// The next bytes of the body; `None` at its end.
    pub fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        match self.body.poll_bytes(cx) {
            Poll::Ready(read) => {
                self.timer = None;
                let bytes = read?;
                self.count(bytes.as_ref().map_or(0, Bytes::len))?;
                Poll::Ready(Ok(bytes))
            }
            Poll::Pending => {
                let so_far = self.body.wire_bytes();
                if so_far != self.timer_at {
                    self.timer = None;
                    self.timer_at = so_far;
                }
                let timeout = self.timeout;
                let timer = self
                    .timer
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
                ready!(timer.as_mut().poll(cx));
                Poll::Ready(Err(BodyError::TimedOut))
            }
        }
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

/// A body that is being written to a file.
struct Spool(SpooledBody);

/// Ends the name of a file that goes with its request, as those of `clean` do.
const PASSING: &str = ".passing";

/// The name of a body's file in its folder.
fn file_name(serial: u64, pid: u32, keep: bool) -> String {
    let ending = if keep { "" } else { PASSING };
    format!("{serial:010}-{pid}{ending}")
}

/// Files that are looked at in one folder.
const MAX_SWEPT_FILES: usize = 100_000;

/// Removes the bodies that a killed process has left in `folder`: files that were to go with
/// their requests, and that no process holds any more. Files kept by
/// `client_body_in_file_only on` have other names.
pub fn sweep(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    for entry in entries.flatten().take(MAX_SWEPT_FILES) {
        let is_body = entry.file_name().to_str().is_some_and(is_passing);
        if is_body && is_abandoned(&entry.path()) {
            // A file that cannot be removed does no harm.
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
            InFileOnly::Off if !settings.has_name => Spool::create_unnamed(&settings.temp_path)
                .map_err(|error| BodyError::Spool(settings.temp_path.clone(), error)),
            InFileOnly::Off | InFileOnly::Clean => Spool::create_named(settings)
                .or_else(|error| Spool::create_elsewhere().map_err(|_| error)),
            // The application looks for the file in this folder.
            InFileOnly::On => Spool::create_named(settings),
        }
    }

    fn create_unnamed(folder: &Path) -> io::Result<Spool> {
        let file = private_file::unnamed_in(folder).or_else(|error| {
            let made = (error.kind() == io::ErrorKind::NotFound)
                .then(|| std::fs::create_dir_all(folder).ok())
                .flatten()
                .and_then(|()| private_file::unnamed_in(folder).ok());
            made.map_or_else(
                || private_file::unnamed_in(Path::new(SPARE_FOLDER)).map_err(|_| error),
                Ok,
            )
        })?;
        Ok(Spool(SpooledBody::unnamed(file)))
    }

    /// Creates a file with a name that cannot be guessed: all accounts may write to the
    /// folder.
    fn create_elsewhere() -> io::Result<Spool> {
        let made = tempfile::Builder::new()
            .prefix("mayfly-body-")
            .tempfile_in(SPARE_FOLDER)?;
        let (file, path) = made.keep().map_err(|refused| refused.error)?;
        Ok(Spool(SpooledBody::named(file, path, false)))
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
                    return Ok(Spool(SpooledBody::named(file, path, keep)));
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

/// The place to which the receiving half returns after it was lent out.
pub type InputHome = Arc<Mutex<Option<ClientInput>>>;

/// A body that is handed on while it arrives: the connection's receiving half, which goes
/// home when this is dropped.
pub struct LentInput {
    /// Some until it is dropped.
    input: Option<ClientInput>,
    home: InputHome,
}

impl LentInput {
    pub fn new(input: ClientInput, home: InputHome) -> LentInput {
        LentInput {
            input: Some(input),
            home,
        }
    }
}

impl Drop for LentInput {
    fn drop(&mut self) {
        *self.home.lock() = self.input.take();
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
