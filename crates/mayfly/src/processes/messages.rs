//! The messages between parent and worker process, as values. serde writes them in the form of
//! `postcard`; [`channel`] carries the bytes, and beside them the descriptors in the order in which
//! the message names them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use control::{Caller, Command};
use live_state::acme_answers::AcmeAnswerTexts;
use nginx_conf::MemoryLoader;
use serde::{Deserialize, Serialize};
use server::worker::{Listening, Patience};

use crate::config::Invocation;
use crate::processes::channel::{self, Message};
use crate::processes::handover::{Handover, SiteResources};
use crate::processes::logs::LogFiles;
use crate::processes::orders::Outcome;
use crate::processes::pools::PoolStatus;
use crate::processes::sibling_socket::SiblingSocket;
use crate::processes::socket_name::{SocketName, listening};

/// A configuration with its descriptors, as the worker gets it.
#[derive(Debug)]
pub struct ReceivedConfiguration {
    /// Reads from texts.
    pub invocation: Invocation,
    /// Counts configurations, so that the parent knows which one is released.
    pub serial: u64,
    pub resources: SiteResources,
}

/// From the parent.
#[derive(Debug)]
pub enum ToWorker {
    Serve(Box<ReceivedConfiguration>),
    Pool(PoolStatus),
    Reopen(LogFiles),
    /// The answers for issuers of certificates.
    Answers(AcmeAnswerTexts),
    /// The program beside this one has ended, with all that it had started.
    Alone,
    /// Whether all workers still serve.
    LifeSign,
    /// The outcome of an order.
    Outcome(u64, Outcome),
    /// Graceful: requests under way are finished.
    Stop(Patience),
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorker {
    /// The last configuration is in force, or the last answers are.
    Ready,
    /// The last configuration is not in force.
    Refused(String),
    /// All workers have answered.
    Served,
    /// No request uses this configuration any more.
    Released(u64),
    /// A caller of the control socket sends the server a command.
    Order {
        number: u64,
        command: Command,
        caller: Caller,
    },
}

/// [`ToWorker`] without its descriptors.
#[derive(Serialize, Deserialize)]
pub enum ParentMessage {
    Serve(ConfigurationTexts),
    Pool(PoolStatus),
    Reopen(LogNames),
    Answers(AcmeAnswerTexts),
    Alone,
    LifeSign,
    Outcome(u64, Outcome),
    Stop { awaits_next_requests: bool },
}

/// [`ReceivedConfiguration`] without its descriptors, which follow in the order of the fields.
#[derive(Serialize, Deserialize)]
pub struct ConfigurationTexts {
    path: OsString,
    prefix: OsString,
    globals: Option<String>,
    error_log: Option<OsString>,
    texts: Vec<(OsString, String)>,
    serial: u64,
    /// With the number of sockets that listen there.
    sockets: Vec<(SocketName, usize)>,
    has_control: bool,
    logs: LogNames,
    pools: Vec<PoolStatus>,
    /// The names of pools; the socket of each follows those of logs.
    learning: Vec<String>,
    tls_files: Vec<(OsString, Vec<u8>)>,
    /// Its descriptor is the last; whether it takes our place.
    sibling: Option<bool>,
}

/// The paths of log files; the descriptor of each follows.
#[derive(Serialize, Deserialize)]
pub struct LogNames(Vec<OsString>);

/// # Errors
/// The error of the system.
pub fn send_configuration(
    channel: BorrowedFd<'_>,
    sent: &Handover<'_>,
    serial: u64,
) -> io::Result<()> {
    let invocation = sent.invocation;
    let mut fds = Vec::new();
    for group in sent.sockets.values() {
        fds.extend(group.iter().map(|socket| match &**socket {
            Listening::Tcp(listener) => listener.as_fd(),
            Listening::Unix(listener) => listener.as_fd(),
            Listening::Udp(socket) => socket.as_fd(),
        }));
    }
    fds.extend(sent.control.map(AsFd::as_fd));
    let texts = sent.sources.files();
    let tls_files = sent.tls_files.iter();
    let logs = log_names(&sent.logs, &mut fds);
    let learning = sent.learning.iter();
    let learning = learning.map(|(name, socket)| {
        fds.push(socket.as_fd());
        name.clone()
    });
    let learning = learning.collect();
    fds.extend(sent.sibling.map(|sibling| sibling.socket.as_fd()));
    let message = ParentMessage::Serve(ConfigurationTexts {
        path: os_string(&invocation.path),
        prefix: os_string(&invocation.prefix),
        globals: invocation.globals.clone(),
        error_log: invocation.error_log.as_deref().map(os_string),
        texts: texts
            .map(|(path, text)| (os_string(path), text.to_owned()))
            .collect(),
        serial,
        sockets: sent
            .sockets
            .iter()
            .map(|(address, group)| (SocketName::of(address), group.len()))
            .collect(),
        has_control: sent.control.is_some(),
        logs,
        sibling: sent.sibling.map(|sibling| sibling.is_successor),
        pools: sent.pools.clone(),
        learning,
        tls_files: tls_files
            .map(|(path, bytes)| (os_string(path), bytes.to_vec()))
            .collect(),
    });
    send(channel, &message, &fds)
}

/// # Errors
/// The error of the system.
pub fn send_logs(channel: BorrowedFd<'_>, logs: &LogFiles) -> io::Result<()> {
    let mut fds = Vec::new();
    let names = log_names(logs, &mut fds);
    send(channel, &ParentMessage::Reopen(names), &fds)
}

/// Sends a message that has no descriptors: a [`ParentMessage`] or a [`FromWorker`].
///
/// # Errors
/// The error of the system.
pub fn tell(channel: BorrowedFd<'_>, message: &impl Serialize) -> io::Result<()> {
    send(channel, message, &[])
}

fn send(
    channel: BorrowedFd<'_>,
    message: &impl Serialize,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let body = postcard::to_stdvec(message).map_err(io::Error::other)?;
    channel::send(channel, &body, fds)
}

/// The worker's next message; `None` at the end of the channel.
///
/// # Errors
/// The error of the system, or a message that makes no sense.
pub fn receive_reply(channel: BorrowedFd<'_>) -> io::Result<Option<FromWorker>> {
    let message = channel::receive(channel, channel::FROM_WORKER)?;
    message.map(|message| decode(&message.body)).transpose()
}

/// The parent's next message; `None` at the end of the channel.
///
/// # Errors
/// The error of the system, or a message that makes no sense.
pub fn receive(channel: BorrowedFd<'_>) -> io::Result<Option<ToWorker>> {
    let message = channel::receive(channel, channel::FROM_PARENT)?;
    message.map(to_worker).transpose()
}

fn decode<'a, T: Deserialize<'a>>(body: &'a [u8]) -> io::Result<T> {
    postcard::from_bytes(body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn to_worker(message: Message) -> io::Result<ToWorker> {
    let mut fds = message.fds.into_iter();
    let with_fds = match decode(&message.body)? {
        ParentMessage::Serve(texts) => {
            received(texts, &mut fds).map(|it| ToWorker::Serve(Box::new(it)))
        }
        ParentMessage::Pool(pool) => Some(ToWorker::Pool(pool)),
        ParentMessage::Reopen(names) => log_files(names, &mut fds).map(ToWorker::Reopen),
        ParentMessage::Answers(answers) => Some(ToWorker::Answers(answers)),
        ParentMessage::Alone => Some(ToWorker::Alone),
        ParentMessage::LifeSign => Some(ToWorker::LifeSign),
        ParentMessage::Outcome(number, outcome) => Some(ToWorker::Outcome(number, outcome)),
        ParentMessage::Stop {
            awaits_next_requests: true,
        } => Some(ToWorker::Stop(Patience::ForNextRequests)),
        ParentMessage::Stop { .. } => Some(ToWorker::Stop(Patience::ForRequests)),
    };
    with_fds.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// `None` if descriptors are missing.
fn received(
    sent: ConfigurationTexts,
    fds: &mut impl Iterator<Item = OwnedFd>,
) -> Option<ReceivedConfiguration> {
    let mut sockets = HashMap::new();
    for (name, count) in sent.sockets {
        let address = name.address();
        let mut group = Vec::new();
        for _ in 0..count {
            let fd = fds.next()?;
            group.push(Arc::new(listening(&address, fd)));
        }
        sockets.insert(address, group);
    }
    let control = match sent.has_control {
        true => Some(UnixListener::from(fds.next()?)),
        false => None,
    };
    let texts: MemoryLoader = sent.texts.into_iter().collect();
    let invocation = Invocation {
        path: sent.path.into(),
        prefix: sent.prefix.into(),
        globals: sent.globals,
        error_log: sent.error_log.map(PathBuf::from),
        texts: Some(Arc::new(texts)),
        // Only root has a worker process.
        is_privileged: true,
    };
    let tls_files = sent.tls_files.into_iter();
    let resources = SiteResources {
        sockets,
        control,
        logs: log_files(sent.logs, fds)?,
        learning: {
            let named = sent.learning.into_iter();
            named
                .map(|name| Some((name, fds.next()?)))
                .collect::<Option<_>>()?
        },
        sibling: match sent.sibling {
            None => None,
            Some(is_successor) => Some(SiblingSocket {
                socket: fds.next()?,
                is_successor,
            }),
        },
        pools: sent.pools,
        tls_files: tls_files
            .map(|(path, bytes)| (path.into(), bytes))
            .collect(),
    };
    Some(ReceivedConfiguration {
        invocation,
        serial: sent.serial,
        resources,
    })
}

fn log_names<'a>(logs: &'a LogFiles, fds: &mut Vec<BorrowedFd<'a>>) -> LogNames {
    let names = logs.files.iter().map(|(path, file)| {
        fds.push(file.as_fd());
        os_string(path)
    });
    LogNames(names.collect())
}

/// `None` if descriptors are missing.
fn log_files(names: LogNames, fds: &mut impl Iterator<Item = OwnedFd>) -> Option<LogFiles> {
    let names = names.0.into_iter();
    let files = names.map(|name| Some((name.into(), Arc::new(File::from(fds.next()?)))));
    Some(LogFiles {
        files: files.collect::<Option<_>>()?,
    })
}

/// A path in a form that serde takes whatever its bytes are.
fn os_string(path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

/// For fields that are paths: `#[serde(with = "messages::os_path")]`.
pub mod os_path {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(deserializer).map(PathBuf::from)
    }
}
