//! The floor: what the kernel charges for one answer, and nothing else.
//!
//! `bench-floor PORT FILE [--per-connection N] [--sendfile]` answers whatever arrives with the
//! bytes of FILE. Per request: one `recv`, one `send`, a share of one `epoll_wait`. It neither
//! parses nor looks anything up, and takes each `recv` for one request: for a client that waits
//! for its answer that is right. No HTTP server can be cheaper with the same system calls.

use bench_tools::socket;
use rustix::event::epoll::{self, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send, sockopt};
use std::fs::File;
use std::process::ExitCode;

/// The listener's number among the watched; connections are numbered from 0.
const LISTENER: usize = usize::MAX;
/// Events taken with one `epoll_wait`, as nginx does.
const EVENTS: usize = 512;
/// Longer than the longest request of the benchmark.
const REQUEST_BYTES: usize = 16 << 10;

/// The answer that is sent, and how.
struct FloorAnswer {
    bytes: Vec<u8>,
    /// Sent with `sendfile` from here, as static files are.
    file: Option<File>,
    /// Answers after which the connection is closed.
    per_connection: u32,
}

struct Connection {
    socket: OwnedFd,
    /// Bytes of the current answer that are sent; its length between two answers.
    sent: usize,
    answered: u32,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        [port, file] => run(port, file, u32::MAX, false),
        [port, file, "--sendfile"] => run(port, file, u32::MAX, true),
        [port, file, "--per-connection", count] => match count.parse() {
            Ok(count) => run(port, file, count, false),
            Err(error) => Err(format!("--per-connection {count}: {error}")),
        },
        _ => Err("usage: bench-floor PORT FILE [--per-connection N | --sendfile]".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(port: &str, path: &str, per_connection: u32, sendfile: bool) -> Result<(), String> {
    let port = port.parse().map_err(|error| format!("{port}: {error}"))?;
    let said = |error: std::io::Error| format!("{path}: {error}");
    let answer = FloorAnswer {
        bytes: std::fs::read(path).map_err(said)?,
        file: if sendfile {
            Some(File::open(path).map_err(said)?)
        } else {
            None
        },
        per_connection,
    };
    serve(port, &answer).map_err(|error| error.to_string())
}

fn serve(port: u16, answer: &FloorAnswer) -> rustix::io::Result<()> {
    let listener = socket::listener(port)?;
    let poll = socket::poll()?;
    socket::watch(&poll, &listener, LISTENER, EventFlags::IN)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut free = Vec::new();
    let mut events = Vec::with_capacity(EVENTS);
    let mut request = vec![0; REQUEST_BYTES];
    loop {
        events.clear();
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        for event in &events {
            let number = usize::try_from(event.data.u64()).unwrap_or(LISTENER);
            if number == LISTENER {
                accept(&listener, &poll, &mut connections, &mut free)?;
                continue;
            }
            let Some(Some(connection)) = connections.get_mut(number) else {
                continue;
            };
            if !go_on(connection, event.flags, answer, &mut request) {
                connections[number] = None;
                free.push(number);
            }
        }
    }
}

fn accept(
    listener: &OwnedFd,
    poll: &OwnedFd,
    connections: &mut Vec<Option<Connection>>,
    free: &mut Vec<usize>,
) -> rustix::io::Result<()> {
    // One that is gone already, or no descriptor left: the next event tries again.
    while let Ok(socket) = accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        sockopt::set_tcp_nodelay(&socket, true)?;
        let number = free.pop().unwrap_or_else(|| {
            connections.push(None);
            connections.len() - 1
        });
        // Edge-triggered: the kernel reports room to send only if there was none before, and it costs nothing else.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        socket::watch(poll, &socket, number, flags)?;
        connections[number] = Some(Connection {
            socket,
            sent: usize::MAX,
            answered: 0,
        });
    }
    Ok(())
}

/// Receives a request or sends more of the answer; false when the connection is over.
fn go_on(
    connection: &mut Connection,
    flags: EventFlags,
    answer: &FloorAnswer,
    request: &mut [u8],
) -> bool {
    let is_sending = connection.sent < answer.bytes.len();
    if !is_sending {
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return true;
        }
        match recv(&connection.socket, request, RecvFlags::empty()) {
            Ok((_, 0)) => return false,
            Ok(_) => connection.sent = 0,
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    while connection.sent < answer.bytes.len() {
        match send_more(connection, answer) {
            Ok(sent) => connection.sent += sent,
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    connection.answered += 1;
    connection.answered < answer.per_connection
}

fn send_more(connection: &Connection, answer: &FloorAnswer) -> rustix::io::Result<usize> {
    let rest = &answer.bytes[connection.sent..];
    match &answer.file {
        None => send(&connection.socket, rest, SendFlags::NOSIGNAL),
        Some(file) => {
            let mut offset = connection.sent as u64;
            rustix::fs::sendfile(&connection.socket, file, Some(&mut offset), rest.len())
        }
    }
}
