//! The way to Mayfly: it connects with the first message, and closes at the first doubt.
#![forbid(unsafe_code)]

use learn_record::{Acknowledgement, Doubt, DoubtReason, Hello, Message, VERSION};

use crate::system::{self, Socket};

/// After a failure, the next connection is tried no earlier.
const PAUSE_MILLISECONDS: u64 = 1000;

/// Names of extensions in the first message.
const MOST_EXTENSIONS: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Channel {
    path: Vec<u8>,
    socket: Option<Socket>,
    opens_again_at: u64,
    has_spoken: bool,
    unseen_extensions: Vec<Vec<u8>>,
    message: Vec<u8>,
}

impl Channel {
    pub(crate) fn new(path: Vec<u8>) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    /// To be named in each first message from now on.
    pub(crate) fn add_unseen_extension(&mut self, name: &[u8]) {
        let name = name[..name.len().min(200)].to_vec();
        if self.unseen_extensions.len() < MOST_EXTENSIONS && !self.unseen_extensions.contains(&name)
        {
            self.unseen_extensions.push(name);
        }
    }

    /// Connects unless that is done, or failed a moment ago.
    pub(crate) fn open(&mut self) -> bool {
        if self.socket.is_some() {
            return true;
        }
        let now = system::milliseconds();
        if now < self.opens_again_at {
            return false;
        }
        self.opens_again_at = now + PAUSE_MILLISECONDS;
        self.socket = Socket::connect(&self.path);
        let names = self.unseen_extensions.clone();
        let hello = Hello {
            version: VERSION,
            pid: system::process_id(),
            is_again: self.has_spoken,
            unseen_extensions: names.iter().map(Vec::as_slice).collect(),
        };
        // What is written until the next time is not told.
        self.has_spoken = true;
        self.socket.is_some() && self.send(&Message::Hello(hello))
    }

    /// Sends a message; if that does not work at once, the channel is closed.
    pub(crate) fn send(&mut self, message: &Message<'_>) -> bool {
        self.message.clear();
        message.encode(&mut self.message);
        let packet = std::mem::take(&mut self.message);
        let is_sent = self.send_packet(&packet);
        self.message = packet;
        self.message.shrink_to(4096);
        is_sent
    }

    pub(crate) fn send_packet(&mut self, packet: &[u8]) -> bool {
        let is_sent = self
            .socket
            .as_ref()
            .is_some_and(|socket| socket.send(packet));
        if !is_sent {
            self.let_go(DoubtReason::Channel);
        }
        is_sent
    }

    /// Waits until Mayfly has taken note of this write.
    pub(crate) fn await_acknowledgement(&mut self, number: u64) {
        let Some(socket) = &self.socket else { return };
        let mut packet = [0; Acknowledgement::BYTES];
        let length = socket.receive(&mut packet);
        let answer = length.and_then(|length| Acknowledgement::decode(&packet[..length]).ok());
        if answer != Some(Acknowledgement { number }) {
            self.let_go(DoubtReason::Acknowledgement);
        }
    }

    /// Says why, if it can, and closes the channel. Mayfly counts what is outstanding as written.
    pub(crate) fn let_go(&mut self, reason: DoubtReason) {
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

    /// In a child of the process: the connection is the parent's.
    pub(crate) fn leave_to_parent(&mut self) {
        self.socket = None;
        self.opens_again_at = 0;
        self.has_spoken = false;
    }
}
