//! All servers to which this process reports its writes: the one whose pool it belongs to, or those that a command
//! was given (`mayfly run`).
#![forbid(unsafe_code)]

use learn_record::{DoubtReason, Message, Write, WriteOutcome};

use crate::channel::{Channel, Delivery};
use crate::system;

/// How often a write is announced: a Mayfly that takes the place of another one gets the announcement as well.
const MAX_ANNOUNCEMENTS: usize = 2;

/// One server, and what it knows.
#[derive(Debug)]
struct ServerChannel {
    channel: Channel,
    /// The connection that there was last, and the last write that was announced on one before it.
    connection: u64,
    last_of_others: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Channels {
    servers: Vec<ServerChannel>,
    writes: u64,
}

impl ServerChannel {
    fn open(&mut self, writes: u64) {
        self.channel.open();
        if self.connection != self.channel.connection() {
            self.connection = self.channel.connection();
            self.last_of_others = writes;
        }
    }

    fn announce(&mut self, write: &Write<'_>) {
        for _ in 0..MAX_ANNOUNCEMENTS {
            self.open(write.number - 1);
            let message = Message::Write(write.clone());
            if self.channel.tell(&message, write.number) != Delivery::Closed {
                return;
            }
        }
    }

    /// Reports the outcome of a write. A server that did not get the announcement, because it has taken the place of
    /// another one since, gets a new greeting: that something was written.
    fn written(&mut self, written: WriteOutcome) {
        let answered = system::milliseconds();
        let mut delivery = match written.number > self.last_of_others {
            true => self
                .channel
                .tell(&Message::Written(written), written.number),
            false => Delivery::Closed,
        };
        if delivery == Delivery::Closed {
            delivery = self.channel.greet_again();
        }
        if delivery != Delivery::Heard {
            self.channel.hold(answered);
        }
    }
}

impl Channels {
    pub(crate) fn new(channels: Vec<Channel>) -> Self {
        let servers = channels.into_iter().map(|channel| ServerChannel {
            channel,
            connection: 0,
            last_of_others: 0,
        });
        Self {
            servers: servers.collect(),
            writes: 0,
        }
    }

    pub(crate) fn open(&mut self) {
        for server in &mut self.servers {
            server.open(self.writes);
        }
    }

    /// Gives the write its number, and waits until each server knows of it.
    pub(crate) fn announce(&mut self, mut write: Write<'_>) -> u64 {
        self.writes += 1;
        write.number = self.writes;
        for server in &mut self.servers {
            server.announce(&write);
        }
        self.writes
    }

    pub(crate) fn written(&mut self, written: WriteOutcome) {
        for server in &mut self.servers {
            server.written(written);
        }
    }

    /// Whether all of them have taken it.
    pub(crate) fn send_packet(&mut self, packet: &[u8]) -> bool {
        let servers = self.servers.iter_mut();
        let ends = servers.map(|server| server.channel.send_packet(packet));
        ends.fold(true, |all, end| all & (end == Delivery::Heard))
    }

    pub(crate) fn let_go(&mut self, reason: DoubtReason) {
        for server in &mut self.servers {
            server.channel.let_go(reason);
        }
    }

    pub(crate) fn add_unseen_extension(&mut self, name: &[u8]) {
        for server in &mut self.servers {
            server.channel.add_unseen_extension(name);
        }
    }

    pub(crate) fn leave_to_parent(&mut self) {
        for server in &mut self.servers {
            server.channel.leave_to_parent();
        }
    }

    /// The program closes a descriptor that may be one of theirs.
    pub(crate) fn closes(&mut self, fd: i32) {
        for server in &mut self.servers {
            server.channel.closes(fd);
        }
    }
}
