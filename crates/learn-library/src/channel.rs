//! The way to Mayfly: it connects with the first message, and closes at the first doubt. If Mayfly has ended and another
//! one listens in its place, the channel connects to that one at once.
#![forbid(unsafe_code)]

use learn_record::{Acknowledgement, Doubt, DoubtReason, Hello, Message, VERSION};

use crate::system::{self, ReceivedPacket, SentPacket, Socket};

/// After a failure, the next connection is tried no earlier.
const PAUSE_MILLISECONDS: u64 = 1000;

/// The longest time for which a write is held that Mayfly does not acknowledge.
const MAX_HOLD_MILLISECONDS: u64 = 10_000;

/// Names of extensions in the first message.
const MAX_EXTENSIONS: usize = 32;

/// The outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Mayfly has taken note of it.
    Heard,
    /// It closed the channel, or has ended.
    Closed,
    NotHeard,
}

#[derive(Debug, Default)]
pub(crate) struct Channel {
    path: Vec<u8>,
    socket: Option<Socket>,
    /// Counts connections.
    connections: u64,
    opens_again_at: u64,
    /// The last value that Mayfly has sent: the time for which a write is held that is not acknowledged.
    hold_milliseconds: u64,
    has_spoken: bool,
    /// The library does not see all statements of this process any more: the next connection reports that to Mayfly.
    has_missed: bool,
    is_of_command: bool,
    unseen_extensions: Vec<Vec<u8>>,
    message: Vec<u8>,
}

impl Channel {
    pub(crate) fn new(path: Vec<u8>, is_of_command: bool) -> Self {
        Self {
            path,
            is_of_command,
            ..Self::default()
        }
    }

    /// To be named in each first message from now on.
    pub(crate) fn add_unseen_extension(&mut self, name: &[u8]) {
        let name = name[..name.len().min(200)].to_vec();
        if self.unseen_extensions.len() < MAX_EXTENSIONS && !self.unseen_extensions.contains(&name)
        {
            self.unseen_extensions.push(name);
        }
    }

    /// The number of the connection that is there, or was there last.
    pub(crate) fn connection(&self) -> u64 {
        self.connections
    }

    /// Connects unless that is done, or failed a moment ago. What became of the first message.
    pub(crate) fn open(&mut self) -> Delivery {
        if self.socket.is_some() {
            return Delivery::NotHeard;
        }
        let now = system::milliseconds();
        if now < self.opens_again_at {
            return Delivery::NotHeard;
        }
        self.opens_again_at = now + PAUSE_MILLISECONDS;
        self.socket = Socket::connect(&self.path);
        let is_again = self.has_spoken;
        // Writes until the next connection are not reported.
        self.has_spoken = true;
        let mut delivery = Delivery::NotHeard;
        if self.socket.is_some() {
            self.connections += 1;
            delivery = self.greet(is_again);
        }
        if self.has_missed {
            self.let_go(DoubtReason::Missed);
        }
        delivery
    }

    /// Something was written that this connection does not know of: Mayfly counts it before this returns.
    pub(crate) fn greet_again(&mut self) -> Delivery {
        match self.socket {
            Some(_) => self.greet(true),
            None => self.open(),
        }
    }

    /// A write is not acknowledged that the database answered at `answered`: waits until it is known everywhere all the same.
    /// Does not wait if the library has missed statements: Mayfly does not count on it then.
    pub(crate) fn hold(&self, answered: u64) {
        if !self.has_missed {
            system::sleep_until(answered + self.hold_milliseconds);
        }
    }

    fn greet(&mut self, is_again: bool) -> Delivery {
        let names = self.unseen_extensions.clone();
        let hello = Hello {
            version: VERSION,
            pid: system::process_id(),
            is_again,
            is_command: self.is_of_command,
            wants_acknowledgement: false,
            unseen_extensions: names.iter().map(Vec::as_slice).collect(),
        };
        let hello = Message::Hello(hello);
        match is_again {
            true => self.tell(&hello, 0),
            false => self.send(&hello),
        }
    }

    /// Sends a message, and waits until Mayfly has taken note of it.
    pub(crate) fn tell(&mut self, message: &Message<'_>, number: u64) -> Delivery {
        match self.send(message) {
            Delivery::Heard => self.await_acknowledgement(number),
            other => other,
        }
    }

    /// Sends a message; if that does not work at once, the channel is closed.
    fn send(&mut self, message: &Message<'_>) -> Delivery {
        self.message.clear();
        message.encode(&mut self.message);
        let packet = std::mem::take(&mut self.message);
        let sent = self.send_packet(&packet);
        self.message = packet;
        self.message.shrink_to(4096);
        sent
    }

    pub(crate) fn send_packet(&mut self, packet: &[u8]) -> Delivery {
        let Some(socket) = &self.socket else {
            return Delivery::NotHeard;
        };
        match socket.send(packet) {
            SentPacket::Sent => Delivery::Heard,
            SentPacket::Closed => self.note_closed(),
            SentPacket::NotSent => self.not_heard(DoubtReason::Channel),
        }
    }

    fn await_acknowledgement(&mut self, number: u64) -> Delivery {
        let Some(socket) = &self.socket else {
            return Delivery::NotHeard;
        };
        let until = system::milliseconds() + self.hold_milliseconds;
        let mut packet = [0; Acknowledgement::BYTES];
        let answer = loop {
            match socket.receive(&mut packet) {
                ReceivedPacket::Packet(length) => {
                    break Acknowledgement::decode(&packet[..length]).ok();
                }
                ReceivedPacket::Closed => return self.note_closed(),
                ReceivedPacket::Nothing if system::milliseconds() < until => {}
                ReceivedPacket::Nothing => break None,
            }
        };
        match answer.filter(|it| it.number == number) {
            Some(answer) => {
                let hold = u64::from(answer.hold_milliseconds);
                self.hold_milliseconds = hold.min(MAX_HOLD_MILLISECONDS);
                Delivery::Heard
            }
            None => self.not_heard(DoubtReason::Acknowledgement),
        }
    }

    /// The next message opens another channel at once.
    fn note_closed(&mut self) -> Delivery {
        self.socket = None;
        self.opens_again_at = 0;
        Delivery::Closed
    }

    fn not_heard(&mut self, reason: DoubtReason) -> Delivery {
        self.let_go(reason);
        Delivery::NotHeard
    }

    /// Says why, if it can, and closes the channel. Mayfly counts what is outstanding as written.
    pub(crate) fn let_go(&mut self, reason: DoubtReason) {
        self.has_missed |= reason == DoubtReason::Missed;
        if let Some(socket) = self.socket.take() {
            self.opens_again_at = system::milliseconds() + PAUSE_MILLISECONDS;
            let mut packet = Vec::new();
            Message::Doubt(Doubt {
                reason,
                detail: b"",
            })
            .encode(&mut packet);
            socket.send(&packet);
        }
    }

    /// The program closes this descriptor, and may get its number for another file.
    pub(crate) fn closes(&mut self, fd: i32) {
        if self.socket.as_ref().is_some_and(|socket| socket.is(fd)) {
            self.let_go(DoubtReason::Channel);
        }
    }

    /// In a child of the process: the connection is the parent's.
    pub(crate) fn leave_to_parent(&mut self) {
        self.socket = None;
        self.opens_again_at = 0;
        self.has_spoken = false;
    }
}
