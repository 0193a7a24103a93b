//! Targets of log lines: files opened for appending, the standard error stream, syslog. One write per line or
//! per bunch of lines, so that lines of threads and of processes never mix. A line that cannot be written is
//! lost: serving goes on.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};
use rustix::fs::{Mode, OFlags};
use site::LogTarget;

/// Longest message to syslog: the size that RFC 3164 receivers of today take.
const MAX_SYSLOG_BYTES: usize = 8192;
/// Severity `info` of RFC 3164 §4.1.1: that of access logs.
const SEVERITY_INFO: u8 = 6;

/// One target of log lines, shared by all who write there.
pub struct Sink {
    kind: SinkKind,
}

enum SinkKind {
    File(ArcSwap<File>),
    Stderr,
    Syslog(Syslog),
}

/// The target for which lines are gathered: it stays the same file when the sink is reopened meanwhile.
#[derive(Clone)]
pub enum Handle {
    File(Arc<File>),
    Stderr,
}

impl Handle {
    /// Writes whole lines at once.
    #[inline]
    pub fn write(&self, lines: &[u8]) {
        // There is no place to report that a log cannot be written.
        let _ = match self {
            Handle::File(file) => (&**file).write_all(lines),
            Handle::Stderr => io::stderr().write_all(lines),
        };
    }
}

impl Sink {
    fn open(target: &LogTarget) -> io::Result<Sink> {
        let kind = match target {
            LogTarget::File(path) => SinkKind::File(ArcSwap::from_pointee(open_append(path)?)),
            LogTarget::Stderr => SinkKind::Stderr,
            LogTarget::Syslog {
                server,
                facility,
                severity,
                tag,
                hostname,
            } => SinkKind::Syslog(Syslog {
                server: server.clone(),
                facility: *facility,
                severity: *severity,
                tag: tag.clone(),
                hostname: hostname.then(|| {
                    rustix::system::uname()
                        .nodename()
                        .to_string_lossy()
                        .into_owned()
                }),
                socket: Mutex::default(),
            }),
        };
        Ok(Sink { kind })
    }

    /// Returns the target for which lines can be gathered; `None` if each line goes by itself.
    pub fn handle(&self) -> Option<Handle> {
        match &self.kind {
            SinkKind::File(file) => Some(Handle::File(file.load_full())),
            SinkKind::Stderr => Some(Handle::Stderr),
            SinkKind::Syslog(_) => None,
        }
    }

    /// Whether `handle` is still the one of this target.
    #[inline]
    pub fn is_current(&self, handle: &Handle) -> bool {
        match (&self.kind, handle) {
            (SinkKind::File(file), Handle::File(held)) => Arc::ptr_eq(&file.load(), held),
            (SinkKind::Stderr, Handle::Stderr) => true,
            _ => false,
        }
    }

    /// Writes one line, which ends in a line feed. `severity` is for syslog: a line that has its own, as those
    /// of the error log, keeps it whatever the target names.
    pub fn write_line(&self, line: &[u8], severity: Option<u8>) {
        match (&self.kind, self.handle()) {
            (SinkKind::Syslog(syslog), _) => syslog.send(line, severity),
            (_, Some(handle)) => handle.write(line),
            (_, None) => {}
        }
    }
}

/// Opens a log file to append to, made where it does not exist.
pub fn open_append(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    Ok(File::from(rustix::fs::open(path, flags, mode)?))
}

/// A syslog receiver (RFC 3164), over UDP or a unix datagram socket.
struct Syslog {
    server: String,
    facility: u8,
    severity: Option<u8>,
    tag: String,
    hostname: Option<String>,
    socket: Mutex<Option<Socket>>,
}

enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl Socket {
    fn connect(server: &str) -> io::Result<Socket> {
        if let Some(path) = server.strip_prefix("unix:") {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            socket.set_nonblocking(true)?;
            return Ok(Socket::Unix(socket));
        }
        // Port 514 is syslog's (RFC 3164 §2).
        let address = std::net::ToSocketAddrs::to_socket_addrs(server)
            .or_else(|_| std::net::ToSocketAddrs::to_socket_addrs(&(server, 514)))?
            .next()
            .ok_or(io::ErrorKind::NotFound)?;
        let any: std::net::IpAddr = match address {
            std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(address)?;
        socket.set_nonblocking(true)?;
        Ok(Socket::Udp(socket))
    }

    fn send(&self, message: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Udp(socket) => socket.send(message),
            Socket::Unix(socket) => socket.send(message),
        }
    }
}

impl Syslog {
    fn send(&self, line: &[u8], severity: Option<u8>) {
        let mut message = Vec::with_capacity(line.len() + 64);
        let severity = severity.or(self.severity).unwrap_or(SEVERITY_INFO);
        self.put_header(severity, clock::wall_now(), &mut message);
        message.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
        message.truncate(MAX_SYSLOG_BYTES);
        let mut socket = self.socket.lock();
        if let Some(connected) = &*socket
            && is_delivered(connected.send(&message))
        {
            return;
        }
        // A receiver that was started again has another socket behind its name.
        *socket = Socket::connect(&self.server).ok();
        if let Some(connected) = &*socket {
            let _ = connected.send(&message);
        }
    }

    /// `<PRI>TIMESTAMP HOSTNAME TAG: ` (RFC 3164 §4.1).
    fn put_header(&self, severity: u8, now: u64, out: &mut Vec<u8>) {
        let priority = u16::from(self.facility) * 8 + u16::from(severity);
        let time = clock::local(i64::try_from(now / 1000).unwrap_or(0)).strftime("%b %e %H:%M:%S");
        let _ = write!(out, "<{priority}>{time} ");
        if let Some(hostname) = &self.hostname {
            let _ = write!(out, "{hostname} ");
        }
        let _ = write!(out, "{}: ", self.tag);
    }
}

/// Sent, or dropped because the receiver is slow: neither is mended by
/// connecting again.
fn is_delivered(sent: io::Result<usize>) -> bool {
    match sent {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// The sinks of a process by target, for error logs and access logs alike: a file that
/// both name is opened once. A rotation opens all files again.
#[derive(Default)]
pub struct LogSinks {
    by_target: RwLock<HashMap<LogTarget, Arc<Sink>>>,
}

impl LogSinks {
    /// Takes over files that the parent process has opened.
    pub fn with_files(files: HashMap<PathBuf, File>) -> LogSinks {
        let sinks = files.into_iter().map(|(path, file)| {
            let kind = SinkKind::File(ArcSwap::from_pointee(file));
            (LogTarget::File(path), Arc::new(Sink { kind }))
        });
        LogSinks {
            by_target: RwLock::new(sinks.collect()),
        }
    }

    /// The sink of `target`, opened now where it was not yet; the standard
    /// error stream stands in for a file that cannot be opened.
    pub fn sink(&self, target: &LogTarget) -> Arc<Sink> {
        if let Some(sink) = self.by_target.read().get(target) {
            return sink.clone();
        }
        let sink = Arc::new(Sink::open(target).unwrap_or(Sink {
            kind: SinkKind::Stderr,
        }));
        // The targets are those of a configuration: that bounds the map.
        self.by_target
            .write()
            .entry(target.clone())
            .or_insert(sink)
            .clone()
    }

    /// Goes on with files that a privileged parent opened, after a rotation moved those before.
    pub fn replace_files(&self, files: HashMap<PathBuf, File>) {
        for (path, opened) in files {
            let sink = self.sink(&LogTarget::File(path));
            if let SinkKind::File(file) = &sink.kind {
                file.store(Arc::new(opened));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reopened_log_goes_on_under_the_old_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.log");
        let sinks = LogSinks::default();
        let sink = sinks.sink(&LogTarget::File(path.clone()));
        let before = sink.handle().unwrap();
        sink.write_line(b"one\n", None);
        std::fs::rename(&path, directory.path().join("a.log.1")).unwrap();
        sink.write_line(b"two\n", None);
        assert!(sink.is_current(&before));
        let opened = open_append(&path).unwrap();
        sinks.replace_files(HashMap::from([(path, opened)]));
        assert!(!sink.is_current(&before));
        sink.write_line(b"three\n", None);
        before.write(b"four\n");
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(read("a.log.1"), "one\ntwo\nfour\n");
        assert_eq!(read("a.log"), "three\n");
    }

    #[test]
    fn standard_error_stands_in_for_a_file_that_cannot_be_opened() {
        let sink = LogSinks::default().sink(&LogTarget::File("/nonexistent/a.log".into()));
        assert!(matches!(sink.kind, SinkKind::Stderr));
    }

    #[test]
    fn files_of_a_parent_are_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("opened");
        let file = open_append(&path).unwrap();
        let sinks = LogSinks::with_files(HashMap::from([("/no/such/name".into(), file)]));
        sinks
            .sink(&LogTarget::File("/no/such/name".into()))
            .write_line(b"line\n", None);
        assert_eq!(std::fs::read(&path).unwrap(), b"line\n");
    }

    #[test]
    fn syslog_messages_have_the_head_that_rfc_3164_asks_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.sock");
        let receiver = UnixDatagram::bind(&path).unwrap();
        receiver
            .set_read_timeout(Some(std::time::Duration::from_secs(5)))
            .unwrap();
        let target = LogTarget::Syslog {
            server: format!("unix:{}", path.display()),
            facility: 23,
            // The severity of access logs: a line of the error log has its own.
            severity: Some(1),
            tag: "web".into(),
            hostname: false,
        };
        let sinks = LogSinks::default();
        sinks.sink(&target).write_line(b"a line\n", Some(3));
        let mut buffer = [0; 200];
        let length = receiver.recv(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        assert!(text.starts_with("<187>"), "{text}");
        assert!(text.ends_with(" web: a line"), "{text}");
        // `Nov 20 18:38:56` is as long in every month and on every day.
        assert_eq!(
            text.len(),
            "<187>Nov 20 18:38:56 web: a line".len(),
            "{text}"
        );
    }
}
