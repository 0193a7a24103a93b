//! A channel between two supervisors, as one of them has it. A thread of its own reads, since the channel
//! carries descriptors, which the event loop has no way to take.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::Timeout;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::processes::channel::{self, Message};

/// How long a part of a message may wait for the other side to read.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// Messages that wait to be looked at: each side sends a handful.
const WAITING_MESSAGES: usize = 16;

/// The other side, which sends messages of the type `In`.
pub struct Peer<In> {
    channel: Arc<OwnedFd>,
    messages: mpsc::Receiver<Message>,
    kind: PhantomData<fn() -> In>,
}

impl<In: DeserializeOwned> Peer<In> {
    /// # Errors
    /// The error of the system.
    pub fn new(channel: OwnedFd) -> io::Result<Peer<In>> {
        rustix::net::sockopt::set_socket_timeout(&channel, Timeout::Send, Some(SEND_TIMEOUT))?;
        let channel = Arc::new(channel);
        let (sender, messages) = mpsc::channel(WAITING_MESSAGES);
        let reader = channel.clone();
        let read = move || {
            while let Ok(Some(message)) = channel::receive(reader.as_fd(), channel::FROM_PARENT) {
                if sender.blocking_send(message).is_err() {
                    return;
                }
            }
        };
        let named = std::thread::Builder::new().name("upgrade".to_owned());
        named.spawn(read)?;
        Ok(Peer {
            channel,
            messages,
            kind: PhantomData,
        })
    }

    /// # Errors
    /// The error of the system; the other side may be gone.
    pub fn tell(&self, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        tell(self.channel.as_fd(), message, fds)
    }

    /// The next message, and its descriptors; `None` if the other side is gone, or sends a message that
    /// makes no sense.
    pub async fn next(&mut self) -> Option<(In, Vec<OwnedFd>)> {
        let message = self.messages.recv().await?;
        let read = serde_json::from_slice(&message.body).ok()?;
        Some((read, message.fds))
    }
}

impl<In> Drop for Peer<In> {
    /// Ends the thread that reads, and thereby the other side's connection.
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.channel, rustix::net::Shutdown::Both);
    }
}

/// Sends a message.
///
/// # Errors
/// The error of the system; the other side may be gone.
pub fn tell(
    channel: BorrowedFd<'_>,
    message: &impl Serialize,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let body = serde_json::to_vec(message).map_err(io::Error::other)?;
    channel::send(channel, &body, fds)
}
