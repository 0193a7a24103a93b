//! One thread, one epoll, many connections with one request under way on each.
//!
//! Invariant: every request that became due is counted exactly once, as an answer or as broken,
//! also when no connection was free for it or the run ended first.

use crate::options::{KeyOrder, Options};
use bench_tools::latency::Histogram;
use bench_tools::socket;
use bench_tools::targets::{Keys, Request};
use load_test::answer::Reader;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::{self, Errno};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Events taken with one `epoll_wait`.
const EVENTS: usize = 512;
/// Takes a whole page with one `recv` and a large file in a few.
const RECEIVE_BYTES: usize = 256 << 10;
/// Broken connections after which there is nothing left to measure.
const MAX_BROKEN: u64 = 10_000;
/// Requests that are due and find no free connection; beyond it the server is hopelessly behind.
const MAX_WAITING: usize = 1 << 20;

/// The result of the measurement.
#[derive(Default)]
pub struct Report {
    pub latency: Histogram,
    pub took: Duration,
    pub wrong_status: u64,
    pub wrong_length: u64,
    /// Connections that failed or ended before the whole answer, and requests never answered.
    pub broken: u64,
}

struct Connection {
    /// None: to be opened with the next request.
    socket: Option<OwnedFd>,
    reader: Reader,
    /// When the request under way was due; none: nothing is asked.
    due: Option<Instant>,
    /// Requests sent on this socket.
    asked: u32,
}

/// The connections, open and waiting.
pub struct Crowd {
    poll: OwnedFd,
    connections: Vec<Connection>,
    /// Open and silent until the end.
    idle: Vec<OwnedFd>,
    buffer: Vec<u8>,
}

impl Crowd {
    /// Opens all connections that are kept. Each has had one answer then, idle ones too, unless
    /// that would ask for a page before its time.
    pub fn connect(options: &Options) -> io::Result<Crowd> {
        let mut crowd = Crowd {
            poll: socket::poll()?,
            connections: Vec::new(),
            idle: Vec::new(),
            buffer: vec![0; RECEIVE_BYTES],
        };
        for number in 0..options.idle {
            let socket = socket::connection(options.port, number)?;
            crowd.first_answer(&socket, options)?;
            crowd.idle.push(socket);
        }
        for number in 0..options.connections {
            let socket = match options.per_connection {
                Some(_) => None,
                None => Some(socket::connection(options.port, number)?),
            };
            if let Some(socket) = &socket {
                if matches!(options.keys, KeyOrder::Same) {
                    crowd.first_answer(socket, options)?;
                }
                watch(&crowd.poll, socket, number)?;
            }
            crowd.connections.push(Connection {
                socket,
                reader: reader(options),
                due: None,
                asked: 0,
            });
        }
        Ok(crowd)
    }

    /// Asks once and waits for the answer, whatever it is.
    fn first_answer(&mut self, socket: &OwnedFd, options: &Options) -> io::Result<()> {
        let mut out = Vec::new();
        options.request().write(&mut out, 0, false);
        send(socket, &out, SendFlags::NOSIGNAL)?;
        let mut reader = reader(options);
        loop {
            let (_, length) = recv(socket, &mut self.buffer[..], RecvFlags::empty())?;
            if length == 0 {
                return Err(Errno::CONNRESET);
            }
            match reader.take(&self.buffer[..length]) {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(()),
                Err(_) => return Err(Errno::PROTO),
            }
        }
    }

    /// Asks until time or count is up, then waits for what is under way.
    pub fn ask(&mut self, options: &Options) -> io::Result<Report> {
        let began = Instant::now();
        let mut run = Run {
            options,
            poll: &self.poll,
            connections: &mut self.connections,
            request: options.request(),
            keys: options.page_keys(),
            out: Vec::new(),
            free: VecDeque::new(),
            waiting: VecDeque::new(),
            became_due: 0,
            under_way: 0,
            opened: 0,
            report: Report::default(),
        };
        run.free.extend(0..run.connections.len());
        run.turn(began, &mut self.buffer)?;
        Ok(run.report)
    }
}

fn reader(options: &Options) -> Reader {
    Reader::new(options.method == "HEAD")
}

fn watch(poll: &OwnedFd, socket: &OwnedFd, number: usize) -> io::Result<()> {
    io::ioctl_fionbio(socket, true)?;
    socket::watch(poll, socket, number, epoll::EventFlags::IN)
}

/// One run over the connections of a crowd.
struct Run<'a> {
    options: &'a Options,
    poll: &'a OwnedFd,
    connections: &'a mut Vec<Connection>,
    request: Request,
    keys: Keys,
    out: Vec<u8>,
    /// Connections with nothing under way; the longest free is asked next, so all take part.
    free: VecDeque<usize>,
    /// Requests that are due while no connection is free.
    waiting: VecDeque<Instant>,
    became_due: u64,
    under_way: usize,
    opened: usize,
    report: Report,
}

impl Run<'_> {
    fn turn(&mut self, began: Instant, buffer: &mut [u8]) -> io::Result<()> {
        let ends = began + self.options.lasts;
        let interval = self
            .options
            .rate
            .map(|rate| Duration::from_secs_f64(1.0 / rate));
        // With a rate, the exact moment matters and this core has nothing else to do.
        let pause = match interval {
            Some(_) => Timespec::default(),
            None => Timespec {
                tv_sec: 0,
                tv_nsec: 50_000_000,
            },
        };
        let mut next_due = began;
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = Instant::now();
            match interval {
                Some(interval) => {
                    while next_due <= now && next_due < ends && self.may_ask() {
                        self.became_due += 1;
                        self.waiting.push_back(next_due);
                        next_due += interval;
                    }
                    self.ask_waiting();
                }
                None if now < ends => self.ask_all(now),
                None => {}
            }
            let is_over = now >= ends || !self.may_ask();
            if is_over && self.under_way == 0 && self.waiting.is_empty() {
                break;
            }
            if now > ends + self.options.wait || self.waiting.len() > MAX_WAITING {
                self.give_up(now);
                break;
            }
            events.clear();
            match epoll::wait(
                self.poll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&pause),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in &events {
                self.receive(event.data.u64() as usize, buffer);
            }
            if self.report.broken > MAX_BROKEN {
                return Err(Errno::CONNABORTED);
            }
        }
        self.report.took = began.elapsed();
        Ok(())
    }

    fn may_ask(&self) -> bool {
        self.became_due < self.options.count
    }

    /// Sends what is due, as far as connections are free.
    fn ask_waiting(&mut self) {
        while !self.waiting.is_empty() {
            let Some(number) = self.free.pop_front() else {
                break;
            };
            if let Some(due) = self.waiting.pop_front() {
                self.send(number, due);
            }
        }
    }

    /// Uses every connection that is free, once: one that fails is not tried again at once.
    fn ask_all(&mut self, now: Instant) {
        for _ in 0..self.free.len() {
            if !self.may_ask() {
                break;
            }
            if let Some(number) = self.free.pop_front() {
                self.became_due += 1;
                self.send(number, now);
            }
        }
    }

    fn send(&mut self, number: usize, due: Instant) {
        let page = self.keys.next_page();
        let connection = &mut self.connections[number];
        if connection.socket.is_none() {
            self.opened += 1;
            let opened = socket::connection(self.options.port, self.opened);
            let Ok(socket) =
                opened.and_then(|socket| watch(self.poll, &socket, number).map(|()| socket))
            else {
                return self.lose(number);
            };
            connection.socket = Some(socket);
            connection.reader = reader(self.options);
            connection.asked = 0;
        }
        connection.asked += 1;
        let is_last = Some(connection.asked) == self.options.per_connection;
        self.request.write(&mut self.out, page, is_last);
        let sent = match &connection.socket {
            Some(socket) => send(socket, &self.out, SendFlags::NOSIGNAL),
            None => Err(Errno::NOTCONN),
        };
        if sent != Ok(self.out.len()) {
            return self.lose(number);
        }
        connection.due = Some(due);
        self.under_way += 1;
    }

    fn receive(&mut self, number: usize, buffer: &mut [u8]) {
        let connection = &mut self.connections[number];
        let Some(socket) = &connection.socket else {
            return;
        };
        let length = match recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((_, length)) => length,
            Err(Errno::AGAIN) => return,
            Err(_) => 0,
        };
        if length == 0 {
            return self.ended(number);
        }
        match connection.reader.take(&buffer[..length]) {
            Ok(None) => {}
            Ok(Some(answer)) => {
                if answer.status != self.options.status {
                    self.report.wrong_status += 1;
                } else if self
                    .options
                    .body_bytes
                    .is_some_and(|bytes| bytes != answer.body_bytes)
                {
                    self.report.wrong_length += 1;
                }
                if let Some(due) = connection.due.take() {
                    self.report.latency.add(due.elapsed());
                    self.under_way -= 1;
                }
                // The server closes after the last answer; until then this one is not free.
                if Some(connection.asked) != self.options.per_connection {
                    self.free.push_back(number);
                }
            }
            Err(_) => self.ended(number),
        }
    }

    /// The server closed, which is right after the last answer and between answers.
    fn ended(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        let was_last = Some(connection.asked) == self.options.per_connection;
        if connection.due.take().is_some() {
            self.under_way -= 1;
            self.lose(number);
        } else {
            connection.socket = None;
            if was_last {
                self.free.push_back(number);
            }
        }
    }

    /// Counts a request that will have no answer; the connection is free again.
    fn lose(&mut self, number: usize) {
        self.connections[number].socket = None;
        self.report.broken += 1;
        self.free.push_back(number);
    }

    /// Ends the requests that have no answer yet: each took at least until now.
    fn give_up(&mut self, now: Instant) {
        let under_way = self
            .connections
            .iter_mut()
            .filter_map(|connection| connection.due.take());
        for due in under_way.chain(self.waiting.drain(..)) {
            self.report.latency.add(now.saturating_duration_since(due));
            self.report.broken += 1;
        }
        self.under_way = 0;
    }
}
