//! The program that this one takes the place of, as this one sees it: the inherited resources, and when
//! they are our own. Its end makes this one an ordinary server.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::Timeout;

use crate::processes::channel;
use crate::processes::sibling_socket::SiblingSocket;
use crate::processes::upgrade::peer::{self, Peer};
use crate::processes::upgrade::wire::{
    FORM, InheritedResources, TakenOver, ToPredecessor, ToSuccessor,
};

/// The longest time in which the other side answers: it does nothing else meanwhile.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// The longest time in which the other side takes things back at our end, when it may have stopped for
/// good.
const TAKES_BACK_WITHIN: Duration = Duration::from_secs(2);

/// The program whose place we take.
pub struct Predecessor {
    peer: Peer<ToSuccessor>,
    pub pid: u32,
    pub version: String,
}

impl Predecessor {
    /// Takes the inheritance from the program that started us, over the channel that is our standard input.
    ///
    /// # Errors
    /// A message for the operator.
    pub fn meet() -> Result<(Predecessor, InheritedResources), String> {
        let failed = |error: io::Error| {
            format!(
                "--as=successor is for a running server that starts another program in its place: {error}"
            )
        };
        let channel = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        leave_standard_input().map_err(failed)?;
        let hello = ToPredecessor::Hello {
            form: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        peer::tell(channel.as_fd(), &hello, &[]).map_err(failed)?;
        let limit = |time| rustix::net::sockopt::set_socket_timeout(&channel, Timeout::Recv, time);
        limit(Some(ANSWERS_WITHIN)).map_err(|error| failed(error.into()))?;
        let message = channel::receive(channel.as_fd(), channel::FROM_PARENT).map_err(failed)?;
        limit(None).map_err(|error| failed(error.into()))?;
        let missing = || "the running server does not say what is expected".to_owned();
        let message = message.ok_or_else(missing)?;
        let inheritance = match serde_json::from_slice(&message.body) {
            Ok(ToSuccessor::Inherit(inheritance)) if inheritance.form == FORM => inheritance,
            _ => return Err(missing()),
        };
        let inherited = inheritance.with(message.fds).ok_or_else(missing)?;
        // The terminal's output so far went to the running server, which waited for a reason.
        rustix::stdio::dup2_stderr(&inherited.stderr).map_err(|error| failed(error.into()))?;
        let predecessor = Predecessor {
            peer: Peer::new(channel).map_err(failed)?,
            pid: inherited.pid,
            version: inherited.version.clone(),
        };
        Ok((predecessor, inherited))
    }

    /// Reports that everything is ready, and waits until it is our own. Returns the connection to the
    /// workers there.
    ///
    /// # Errors
    /// A message for the operator.
    pub async fn take_over(&mut self) -> Result<SiblingSocket, String> {
        self.tell(&ToPredecessor::Prepared)?;
        match tokio::time::timeout(ANSWERS_WITHIN, self.peer.next()).await {
            Ok(Some((ToSuccessor::TakeOver, fds))) if !fds.is_empty() => Ok(sibling(fds)),
            _ => Err("the running server does not hand over".to_owned()),
        }
    }

    /// Reports that we serve, and the sockets and pools that we go on with.
    ///
    /// # Errors
    /// A message for the operator.
    pub fn ready(&self, taken_over: TakenOver) -> Result<(), String> {
        self.tell(&ToPredecessor::Ready(taken_over))
    }

    /// Reports why we do not serve.
    pub fn refuse(&self, reasons: &[String]) {
        // It may have given up.
        let _ = self.tell(&ToPredecessor::Refused(reasons.to_vec()));
    }

    /// Gives everything back, before our end.
    pub async fn give_back(&mut self) {
        if self.tell(&ToPredecessor::GivesBack).is_ok() {
            // One that is stopped does not take it; our end does then.
            let _ = tokio::time::timeout(TAKES_BACK_WITHIN, self.peer.next()).await;
        }
    }

    /// Waits for its end, or for another process that serves there: the way to it.
    pub async fn next_event(&mut self) -> PredecessorEvent {
        loop {
            match self.peer.next().await {
                Some((ToSuccessor::Sibling, fds)) => {
                    return PredecessorEvent::Sibling(fds.into_iter().next().map(|socket| {
                        SiblingSocket {
                            socket,
                            is_successor: false,
                        }
                    }));
                }
                Some(_) => {}
                None => return PredecessorEvent::Gone,
            }
        }
    }

    /// Reports that the workers here know of that process.
    pub fn linked(&self) {
        let _ = self.tell(&ToPredecessor::Linked);
    }

    /// Ends the other program: the workers here have ended, and with them the way by which purges are sent.
    /// It must not answer any more.
    pub fn end_it(&self) {
        let _ = self.tell(&ToPredecessor::EndAtOnce);
    }

    fn tell(&self, message: &ToPredecessor) -> Result<(), String> {
        let sent = self.peer.tell(message, &[]);
        sent.map_err(|error| format!("the running server does not listen: {error}"))
    }
}

/// An event from the other program.
pub enum PredecessorEvent {
    Sibling(Option<SiblingSocket>),
    Gone,
}

fn sibling(fds: Vec<OwnedFd>) -> SiblingSocket {
    let mut fds = fds;
    SiblingSocket {
        socket: fds.swap_remove(0),
        is_successor: false,
    }
}

/// Keeps the channel to the other supervisor from programs that are started here.
fn leave_standard_input() -> io::Result<()> {
    let null = std::fs::File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(&null)?)
}
