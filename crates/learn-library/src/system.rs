//! System calls of the library's own. They go to the kernel directly: a function of libc might be one
//! whose place the library has taken. They may change `errno`, which `entry.rs` puts back.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr::null;
use std::sync::atomic::{AtomicI32, Ordering};

use learn_record::{FileState, MAX_SERVERS};
use libc::c_int;

/// PHP waits for an acknowledgement no longer than this.
const WAITS_SECONDS: libc::time_t = 1;

/// Signals that begin the wait anew.
const MAX_WAITS: usize = 4;

/// The sockets to Mayfly, or -1. They are closed also where nothing else of the state can be trusted.
static CHANNELS: [AtomicI32; MAX_SERVERS] = [const { AtomicI32::new(-1) }; MAX_SERVERS];

/// The outcome of sending a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentPacket {
    Sent,
    /// The other end is closed.
    Closed,
    NotSent,
}

/// The outcome of receiving a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceivedPacket {
    Packet(usize),
    /// The other end is closed.
    Closed,
    /// None came in time, or one that is too long.
    Nothing,
}

/// A connection to Mayfly.
#[derive(Debug)]
pub(crate) struct Socket(c_int);

impl Socket {
    /// Connects to the socket at `path` (at most 107 bytes, without zeros), or gives up at once.
    pub(crate) fn connect(path: &[u8]) -> Option<Self> {
        // SAFETY: all zeros are a valid address.
        let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
        address.sun_family = u16::try_from(libc::AF_UNIX).ok()?;
        if path.len() >= address.sun_path.len() {
            return None;
        }
        for (to, from) in address.sun_path.iter_mut().zip(path) {
            *to = from.cast_signed() as libc::c_char;
        }
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: three numbers; a descriptor or an error comes back.
        let fd = unsafe { libc::syscall(libc::SYS_socket, libc::AF_UNIX, kind, 0) };
        let socket = Self(c_int::try_from(fd).ok().filter(|fd| *fd >= 0)?);
        // SAFETY: the address lives during the call and has the length that is named.
        let connected = unsafe {
            libc::syscall(
                libc::SYS_connect,
                socket.0,
                &raw const address,
                size_of_val(&address),
            )
        };
        if connected != 0 || !socket.wait_with_limit() {
            return None;
        }
        note_channel(-1, socket.0);
        Some(socket)
    }

    pub(crate) fn is(&self, fd: c_int) -> bool {
        self.0 == fd
    }

    /// Sends one packet. Where there is no room, it waits as [`Self::receive`] does: the record of a page that opened a
    /// thousand files fills what the kernel keeps.
    pub(crate) fn send(&self, packet: &[u8]) -> SentPacket {
        for _ in 0..MAX_WAITS {
            // SAFETY: pointer and length are those of a slice, which is only read.
            let sent = unsafe {
                libc::syscall(
                    libc::SYS_sendto,
                    self.0,
                    packet.as_ptr(),
                    packet.len(),
                    libc::MSG_NOSIGNAL,
                    null::<c_void>(),
                    0_usize,
                )
            };
            if let Ok(sent) = usize::try_from(sent) {
                return match sent == packet.len() {
                    true => SentPacket::Sent,
                    false => SentPacket::NotSent,
                };
            }
            // SAFETY: the address of this thread's `errno` is always valid.
            match unsafe { *libc::__errno_location() } {
                libc::EINTR => {}
                libc::EPIPE | libc::ECONNRESET => return SentPacket::Closed,
                _ => return SentPacket::NotSent,
            }
        }
        SentPacket::NotSent
    }

    /// Reads one packet into `packet`, for which it waits no longer than [`WAITS_SECONDS`], a few times
    /// that where signals come. A longer packet counts as none.
    pub(crate) fn receive(&self, packet: &mut [u8]) -> ReceivedPacket {
        for _ in 0..MAX_WAITS {
            // SAFETY: pointer and length are those of a slice of our own.
            let received = unsafe {
                libc::syscall(
                    libc::SYS_recvfrom,
                    self.0,
                    packet.as_mut_ptr(),
                    packet.len(),
                    libc::MSG_TRUNC,
                    null::<c_void>(),
                    null::<c_void>(),
                )
            };
            match usize::try_from(received) {
                Ok(0) => return ReceivedPacket::Closed,
                Ok(length) if length <= packet.len() => return ReceivedPacket::Packet(length),
                Ok(_) => return ReceivedPacket::Nothing,
                Err(_) => {}
            }
            // SAFETY: the address of this thread's `errno` is always valid.
            match unsafe { *libc::__errno_location() } {
                libc::EINTR => {}
                libc::ECONNRESET => return ReceivedPacket::Closed,
                _ => return ReceivedPacket::Nothing,
            }
        }
        ReceivedPacket::Nothing
    }

    /// Reading and sending wait from now on, with a limit.
    fn wait_with_limit(&self) -> bool {
        let limit = libc::timeval {
            tv_sec: WAITS_SECONDS,
            tv_usec: 0,
        };
        let has_limit = |which: c_int| {
            // SAFETY: the value lives during the call and has the length that is named.
            let set = unsafe {
                libc::syscall(
                    libc::SYS_setsockopt,
                    self.0,
                    libc::SOL_SOCKET,
                    which,
                    &raw const limit,
                    size_of_val(&limit),
                )
            };
            set == 0
        };
        // SAFETY: the call takes numbers alone.
        let waits = unsafe { libc::syscall(libc::SYS_fcntl, self.0, libc::F_SETFL, 0_usize) } == 0;
        waits && has_limit(libc::SO_RCVTIMEO) && has_limit(libc::SO_SNDTIMEO)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        note_channel(self.0, -1);
        close(self.0);
    }
}

/// Puts a descriptor, or -1, into the place of another one.
fn note_channel(from: c_int, to: c_int) {
    let _ = CHANNELS.iter().any(|place| {
        place
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    });
}

/// Is one of these numbers that of a channel?
pub(crate) fn channel_within(first: c_int, last: c_int) -> Option<c_int> {
    let mut channels = CHANNELS.iter().map(|place| place.load(Ordering::Relaxed));
    channels.find(|fd| *fd >= 0 && (first..=last).contains(fd))
}

/// Closes the channels without the state that owns them, which is not used any more.
pub(crate) fn close_channels() {
    for place in &CHANNELS {
        let fd = place.swap(-1, Ordering::Relaxed);
        if fd >= 0 {
            close(fd);
        }
    }
}

fn close(fd: c_int) {
    // SAFETY: the number is that of a socket which the library opened and forgets with this call.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// A steady clock.
pub(crate) fn milliseconds() -> u64 {
    let time = time_of(libc::CLOCK_MONOTONIC_COARSE);
    time.tv_sec.cast_unsigned() * 1000 + time.tv_nsec.cast_unsigned() / 1_000_000
}

/// Returns once the clock of [`milliseconds`] has come so far.
pub(crate) fn sleep_until(moment: u64) {
    loop {
        let left = moment.saturating_sub(milliseconds());
        if left == 0 {
            return;
        }
        let time = libc::timespec {
            tv_sec: (left / 1000).cast_signed(),
            tv_nsec: (left % 1000 * 1_000_000).cast_signed(),
        };
        // SAFETY: the time lives during the call, which writes nothing.
        unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, null::<c_void>()) };
    }
}

/// The clock by which files change.
pub(crate) fn wall_clock_nanoseconds() -> i64 {
    let time = time_of(libc::CLOCK_REALTIME_COARSE);
    nanoseconds(time.tv_sec, time.tv_nsec)
}

const fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

fn time_of(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is written to a value that lives during the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

pub(crate) fn process_id() -> u32 {
    std::process::id()
}

/// Returns the state of the file at `path`, past symbolic links.
pub(crate) fn look(path: &CStr) -> Option<FileState> {
    let mut found = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the path ends with a zero; the result is written to a value of its type.
    let result = unsafe {
        libc::syscall(
            libc::SYS_newfstatat,
            libc::AT_FDCWD,
            path.as_ptr(),
            found.as_mut_ptr(),
            0_usize,
        )
    };
    // SAFETY: all zeros are a valid value, and the kernel overwrites it as a whole.
    let found = unsafe { found.assume_init() };
    (result == 0).then(|| file_state(&found))
}

pub(crate) fn file_state(found: &libc::stat) -> FileState {
    FileState {
        is_folder: found.st_mode & libc::S_IFMT == libc::S_IFDIR,
        modified_nanoseconds: nanoseconds(found.st_mtime, found.st_mtime_nsec),
        size: u64::try_from(found.st_size).unwrap_or(0),
        inode: found.st_ino,
    }
}

/// How each SQLite database begins, once it has been written.
const SQLITE_BEGINS: [u8; 16] = *b"SQLite format 3\0";

/// A file that is open, and what changes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenedFile {
    pub(crate) state: FileState,
    pub(crate) is_regular: bool,
    pub(crate) device: u64,
    /// When its content or anything else of it changed.
    pub(crate) changed_nanoseconds: i64,
}

pub(crate) fn opened_file(fd: c_int) -> Option<OpenedFile> {
    let mut found = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: a number; the result is written to a value of its type.
    let result = unsafe { libc::syscall(libc::SYS_fstat, fd, found.as_mut_ptr()) };
    // SAFETY: all zeros are a valid value, and the kernel overwrites it as a whole.
    let found = unsafe { found.assume_init() };
    (result == 0).then(|| opened_file_of(&found))
}

pub(crate) fn opened_file_of(found: &libc::stat) -> OpenedFile {
    OpenedFile {
        state: file_state(found),
        is_regular: found.st_mode & libc::S_IFMT == libc::S_IFREG,
        device: found.st_dev,
        changed_nanoseconds: nanoseconds(found.st_ctime, found.st_ctime_nsec),
    }
}

/// Whether the open file begins as an SQLite database does, or `None` where it cannot be read. Its position stays. The file is read by the program's own
/// descriptor: to close another one of the same file would release SQLite's locks.
pub(crate) fn is_sqlite(fd: c_int) -> Option<bool> {
    let begin: [u8; SQLITE_BEGINS.len()] = beginning(fd)?;
    Some(begin == SQLITE_BEGINS)
}

/// Whether the open file is an SQLite database whose writes go into a log: the byte behind the size of its pages is 2.
pub(crate) fn has_write_ahead_log(fd: c_int) -> bool {
    let begin: Option<[u8; SQLITE_BEGINS.len() + 3]> = beginning(fd);
    begin.is_some_and(|begin| begin.starts_with(&SQLITE_BEGINS) && begin.ends_with(&[2]))
}

/// The first bytes of an open file, or zeros where it has fewer. Its position stays.
fn beginning<const COUNT: usize>(fd: c_int) -> Option<[u8; COUNT]> {
    let mut begin = [0_u8; COUNT];
    // SAFETY: pointer and length are those of the buffer.
    let read = unsafe {
        libc::syscall(
            libc::SYS_pread64,
            fd,
            begin.as_mut_ptr(),
            begin.len(),
            0_u64,
        )
    };
    usize::try_from(read).ok().map(|_| begin)
}

/// Returns the content of an open file, whose position stays; `None` if it has more bytes than `most`, or cannot be read.
pub(crate) fn content(fd: c_int, most: usize) -> Option<Vec<u8>> {
    let mut content = vec![0; 4096];
    let mut length = 0;
    loop {
        let room = content.get_mut(length..)?;
        // SAFETY: pointer and length are those of the buffer.
        let read = unsafe {
            libc::syscall(
                libc::SYS_pread64,
                fd,
                room.as_mut_ptr(),
                room.len(),
                length as u64,
            )
        };
        match usize::try_from(read).ok()? {
            0 => break,
            read => length += read,
        }
        if length > most {
            return None;
        }
        if length == content.len() {
            content.resize(2 * length, 0);
        }
    }
    content.truncate(length);
    Some(content)
}

/// The working folder, without its zero.
pub(crate) fn working_folder(buffer: &mut [u8; 1024]) -> Option<&[u8]> {
    // SAFETY: pointer and length are those of the buffer.
    let length = unsafe { libc::syscall(libc::SYS_getcwd, buffer.as_mut_ptr(), buffer.len()) };
    buffer
        .get(..usize::try_from(length).ok()?)?
        .strip_suffix(b"\0")
}
