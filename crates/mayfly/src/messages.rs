//! The messages between parent and worker process, as values; [`channel`]
//! carries their bytes and descriptors.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

use control::{Caller, Command};
use nginx_conf::{MemoryLoader, Sources};
use server::live::acme_answers::AcmeAnswerTexts;
use server::live::tls_files::TlsFiles;
use server::worker::{Listening, Sockets};
use site::ListenAddress;

use crate::channel::{self, Decoder, Encoder, Message};
use crate::config::Invocation;
use crate::logs::LogFiles;
use crate::orders::Outcome;
use crate::pools::PoolStatus;

/// A configuration with what belongs to it, as the worker gets it.
#[derive(Debug)]
pub struct ReceivedConfiguration {
    /// Reads from texts.
    pub invocation: Invocation,
    /// Counts configurations, so that the parent knows which one is released.
    pub serial: u64,
    pub sockets: Sockets,
    /// Commands come here.
    pub control: Option<UnixListener>,
    pub logs: LogFiles,
    pub pools: Vec<PoolStatus>,
    pub tls_files: TlsFiles,
}

/// From the parent.
#[derive(Debug)]
pub enum ToWorker {
    Serve(ReceivedConfiguration),
    Pool(PoolStatus),
    Reopen(LogFiles),
    /// What issuers of certificates look for.
    Answers(AcmeAnswerTexts),
    /// What came of an order.
    Outcome(u64, Outcome),
    /// Graceful: requests under way are finished.
    Stop,
}

/// From the worker.
#[derive(Debug, PartialEq, Eq)]
pub enum FromWorker {
    /// The last configuration is in force, or the last answers are.
    Ready,
    /// The last configuration is not in force.
    Refused(String),
    /// No request uses this configuration any more.
    Released(u64),
    /// A caller of the control socket tells the server something.
    Order {
        number: u64,
        command: Command,
        caller: Caller,
    },
}

const SERVE: u8 = b'c';
const POOL: u8 = b'p';
const REOPEN: u8 = b'l';
const ANSWERS: u8 = b'a';
const OUTCOME: u8 = b'o';
const STOP: u8 = b'q';
const READY: u8 = b'r';
const REFUSED: u8 = b'x';
const RELEASED: u8 = b'd';
const ORDER: u8 = b's';

/// What the parent sends of a configuration; borrowed, since it keeps all of it.
#[derive(Clone, Copy)]
pub struct SentConfiguration<'a> {
    pub invocation: &'a Invocation,
    pub sources: &'a Sources,
    pub serial: u64,
    pub sockets: &'a Sockets,
    pub control: Option<&'a UnixListener>,
    pub logs: &'a LogFiles,
    pub pools: &'a [PoolStatus],
    pub tls_files: &'a TlsFiles,
}

/// # Errors
/// What the system says.
pub fn send_configuration(channel: BorrowedFd<'_>, sent: SentConfiguration<'_>) -> io::Result<()> {
    let mut out = Encoder::default();
    let mut fds = Vec::new();
    let invocation = sent.invocation;
    out.bytes(invocation.path.as_os_str().as_bytes());
    out.bytes(invocation.prefix.as_os_str().as_bytes());
    out.optional(invocation.globals.as_deref().map(str::as_bytes));
    out.optional(
        invocation
            .error_log
            .as_deref()
            .map(|path| path.as_os_str().as_bytes()),
    );
    out.number(sent.serial);
    out.number(sent.sources.files().count() as u64);
    for (path, text) in sent.sources.files() {
        out.bytes(path.as_os_str().as_bytes());
        out.bytes(text.as_bytes());
    }
    out.number(sent.sockets.len() as u64);
    for (address, group) in sent.sockets {
        put_address(&mut out, address);
        out.number(group.len() as u64);
        fds.extend(group.iter().map(|socket| match &**socket {
            Listening::Tcp(listener) => listener.as_fd(),
            Listening::Unix(listener) => listener.as_fd(),
            Listening::Udp(socket) => socket.as_fd(),
        }));
    }
    out.number(u64::from(sent.control.is_some()));
    fds.extend(sent.control.map(AsFd::as_fd));
    put_logs(&mut out, sent.logs, &mut fds);
    out.number(sent.pools.len() as u64);
    sent.pools.iter().for_each(|pool| put_pool(&mut out, pool));
    out.number(sent.tls_files.len() as u64);
    for (path, bytes) in sent.tls_files.iter() {
        out.bytes(path.as_os_str().as_bytes());
        out.bytes(bytes);
    }
    channel::send(channel, SERVE, &out.0, &fds)
}

/// # Errors
/// What the system says.
pub fn send_pool(channel: BorrowedFd<'_>, pool: &PoolStatus) -> io::Result<()> {
    let mut out = Encoder::default();
    put_pool(&mut out, pool);
    channel::send(channel, POOL, &out.0, &[])
}

/// # Errors
/// What the system says.
pub fn send_logs(channel: BorrowedFd<'_>, logs: &LogFiles) -> io::Result<()> {
    let (mut out, mut fds) = (Encoder::default(), Vec::new());
    put_logs(&mut out, logs, &mut fds);
    channel::send(channel, REOPEN, &out.0, &fds)
}

/// # Errors
/// What the system says.
pub fn send_answers(channel: BorrowedFd<'_>, answers: &AcmeAnswerTexts) -> io::Result<()> {
    let mut out = Encoder::default();
    put_pairs(&mut out, &answers.files);
    put_pairs(&mut out, &answers.certificates);
    channel::send(channel, ANSWERS, &out.0, &[])
}

/// # Errors
/// What the system says.
pub fn send_outcome(channel: BorrowedFd<'_>, number: u64, outcome: &Outcome) -> io::Result<()> {
    let mut out = Encoder::default();
    out.number(number);
    let reasons = outcome.as_ref().err();
    out.optional(reasons.map(String::as_bytes));
    channel::send(channel, OUTCOME, &out.0, &[])
}

/// # Errors
/// What the system says.
pub fn send_stop(channel: BorrowedFd<'_>) -> io::Result<()> {
    channel::send(channel, STOP, b"", &[])
}

/// # Errors
/// What the system says.
pub fn reply(channel: BorrowedFd<'_>, reply: &FromWorker) -> io::Result<()> {
    match reply {
        FromWorker::Ready => channel::send(channel, READY, b"", &[]),
        FromWorker::Refused(reason) => channel::send(channel, REFUSED, reason.as_bytes(), &[]),
        FromWorker::Released(serial) => {
            channel::send(channel, RELEASED, &serial.to_le_bytes(), &[])
        }
        FromWorker::Order {
            number,
            command,
            caller,
        } => {
            let mut out = Encoder::default();
            out.number(*number);
            out.bytes(command.path().as_bytes());
            out.number(u64::from(caller.uid));
            // No process has the number 0.
            let pid = caller.pid.and_then(|pid| u64::try_from(pid).ok());
            out.number(pid.unwrap_or(0));
            channel::send(channel, ORDER, &out.0, &[])
        }
    }
}

/// The worker's next message; `None` at the end of the channel.
///
/// # Errors
/// What the system says, or a message that makes no sense.
pub fn receive_reply(channel: BorrowedFd<'_>) -> io::Result<Option<FromWorker>> {
    let Some(message) = channel::receive(channel, channel::FROM_WORKER)? else {
        return Ok(None);
    };
    let reply = match message.kind {
        READY => Some(FromWorker::Ready),
        REFUSED => Some(FromWorker::Refused(
            String::from_utf8_lossy(&message.body).into_owned(),
        )),
        RELEASED => Decoder(&message.body).number().map(FromWorker::Released),
        ORDER => order(&mut Decoder(&message.body)),
        _ => None,
    };
    reply
        .map(Some)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// The parent's next message; `None` at the end of the channel.
///
/// # Errors
/// What the system says, or a message that makes no sense.
pub fn receive(channel: BorrowedFd<'_>) -> io::Result<Option<ToWorker>> {
    let Some(message) = channel::receive(channel, channel::FROM_PARENT)? else {
        return Ok(None);
    };
    decode(message)
        .map(Some)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

fn decode(message: Message) -> Option<ToWorker> {
    let mut input = Decoder(&message.body);
    let mut fds = message.fds.into_iter();
    Some(match message.kind {
        SERVE => ToWorker::Serve(received(&mut input, &mut fds)?),
        POOL => ToWorker::Pool(pool(&mut input)?),
        REOPEN => ToWorker::Reopen(logs(&mut input, &mut fds)?),
        ANSWERS => ToWorker::Answers(AcmeAnswerTexts {
            files: pairs(&mut input)?,
            certificates: pairs(&mut input)?,
        }),
        OUTCOME => {
            let number = input.number()?;
            let reasons = input.optional()?;
            let reasons = reasons.map(|text| String::from_utf8_lossy(text).into_owned());
            ToWorker::Outcome(number, reasons.map_or(Ok(()), Err))
        }
        STOP => ToWorker::Stop,
        _ => return None,
    })
}

fn order(input: &mut Decoder<'_>) -> Option<FromWorker> {
    Some(FromWorker::Order {
        number: input.number()?,
        command: Command::of_path(std::str::from_utf8(input.bytes()?).ok()?)?,
        caller: Caller {
            uid: u32::try_from(input.number()?).ok()?,
            pid: i32::try_from(input.number()?).ok().filter(|&pid| pid > 0),
        },
    })
}

fn received(
    input: &mut Decoder<'_>,
    fds: &mut impl Iterator<Item = OwnedFd>,
) -> Option<ReceivedConfiguration> {
    let main = path(input)?;
    let prefix = path(input)?;
    let globals = input
        .optional()?
        .map(|text| String::from_utf8_lossy(text).into_owned());
    let error_log = input.optional()?.map(path_of);
    let serial = input.number()?;
    let mut texts = Vec::new();
    for _ in 0..input.number()? {
        texts.push((path(input)?, input.bytes()?.to_vec()));
    }
    let texts: MemoryLoader = texts.into_iter().collect();
    let mut sockets = HashMap::new();
    for _ in 0..input.number()? {
        let address = address(input)?;
        let mut group = Vec::new();
        for _ in 0..input.number()? {
            let fd = fds.next()?;
            group.push(Arc::new(match &address {
                ListenAddress::Tcp(_) => Listening::Tcp(TcpListener::from(fd)),
                ListenAddress::Unix(_) => Listening::Unix(UnixListener::from(fd)),
                ListenAddress::Udp(_) => Listening::Udp(UdpSocket::from(fd)),
            }));
        }
        sockets.insert(address, group);
    }
    let control = match input.number()? {
        0 => None,
        _ => Some(UnixListener::from(fds.next()?)),
    };
    let logs = logs(input, fds)?;
    let mut pools = Vec::new();
    for _ in 0..input.number()? {
        pools.push(pool(input)?);
    }
    let mut tls_files = Vec::new();
    for _ in 0..input.number()? {
        tls_files.push((path(input)?, input.bytes()?.to_vec()));
    }
    let invocation = Invocation {
        path: main,
        prefix,
        globals,
        error_log,
        texts: Some(Arc::new(texts)),
        // Only root has a worker process.
        is_privileged: true,
    };
    Some(ReceivedConfiguration {
        invocation,
        serial,
        sockets,
        control,
        logs,
        pools,
        tls_files: tls_files.into_iter().collect(),
    })
}

fn put_address(out: &mut Encoder, address: &ListenAddress) {
    match address {
        ListenAddress::Tcp(address) => {
            out.number(0);
            out.bytes(address.to_string().as_bytes());
        }
        ListenAddress::Unix(path) => {
            out.number(1);
            out.bytes(path.as_os_str().as_bytes());
        }
        ListenAddress::Udp(address) => {
            out.number(2);
            out.bytes(address.to_string().as_bytes());
        }
    }
}

fn address(input: &mut Decoder<'_>) -> Option<ListenAddress> {
    let kind = input.number()?;
    if kind == 1 {
        return path(input).map(ListenAddress::Unix);
    }
    let address = std::str::from_utf8(input.bytes()?).ok()?.parse().ok()?;
    Some(match kind {
        0 => ListenAddress::Tcp(address),
        _ => ListenAddress::Udp(address),
    })
}

fn put_logs<'a>(out: &mut Encoder, logs: &'a LogFiles, fds: &mut Vec<BorrowedFd<'a>>) {
    out.number(logs.files.len() as u64);
    for (path, file) in &logs.files {
        out.bytes(path.as_os_str().as_bytes());
        fds.push(file.as_fd());
    }
}

fn logs(input: &mut Decoder<'_>, fds: &mut impl Iterator<Item = OwnedFd>) -> Option<LogFiles> {
    let mut files = HashMap::new();
    for _ in 0..input.number()? {
        files.insert(path(input)?, Arc::new(File::from(fds.next()?)));
    }
    Some(LogFiles { files })
}

fn put_pool(out: &mut Encoder, pool: &PoolStatus) {
    out.bytes(pool.name.as_bytes());
    out.bytes(pool.socket.as_os_str().as_bytes());
    out.number(u64::from(pool.workers));
    out.number(pool.generation);
}

fn pool(input: &mut Decoder<'_>) -> Option<PoolStatus> {
    Some(PoolStatus {
        name: String::from_utf8(input.bytes()?.to_vec()).ok()?,
        socket: path(input)?,
        workers: u32::try_from(input.number()?).ok()?,
        generation: input.number()?,
    })
}

fn put_pairs(out: &mut Encoder, pairs: &[(String, String)]) {
    out.number(pairs.len() as u64);
    for (name, value) in pairs {
        out.bytes(name.as_bytes());
        out.bytes(value.as_bytes());
    }
}

fn pairs(input: &mut Decoder<'_>) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    for _ in 0..input.number()? {
        pairs.push((text(input.bytes()?)?, text(input.bytes()?)?));
    }
    Some(pairs)
}

fn path(input: &mut Decoder<'_>) -> Option<PathBuf> {
    input.bytes().map(path_of)
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
