//! The program that takes the place of this one, from this one's side: it is started, gets its inheritance,
//! and reports its progress. Each step has a deadline.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use child_process::Child;
use site::ListenAddress;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::cli::SUCCESSOR;
use crate::processes::channel;
use crate::processes::upgrade::peer::Peer;
use crate::processes::upgrade::program::StartedProgram;
use crate::processes::upgrade::wire::{Estate, FORM, ToPredecessor, ToSuccessor};

/// The longest wait for the first message, which a program sends before it reads anything.
const FIRST_WORD_WITHIN: Duration = Duration::from_secs(10);
/// Its configuration is read, and PHP is up, within this time: a pool may take 20 seconds.
const PREPARED_WITHIN: Duration = Duration::from_secs(60);
/// The longest time from `TakeOver` until it serves: pages go over meanwhile.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// The longest time for an answer or the end when nothing is left to do.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Bytes shown of the last words of a program that is not Mayfly.
const SAID_BYTES: usize = 2048;

/// The running program that takes the place of this one.
pub struct Successor {
    child: Child,
    peer: Peer<ToPredecessor>,
    pub pid: u32,
    pub version: String,
    /// The addresses on which it listens as well.
    pub holds: HashSet<ListenAddress>,
    /// The pools of PHP that it goes on with.
    pub pools: Vec<String>,
}

/// An event from it once it serves.
pub enum SuccessorEvent {
    /// It is about to end, and needs a confirmation that its resources were taken back.
    GivesBack,
    /// This program must not answer any more.
    EndAtOnce,
    /// It has ended.
    Gone,
}

impl Successor {
    /// Starts it, and waits for its message that it can do this.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub async fn start(program: &StartedProgram) -> Result<Successor, String> {
        let shown = program.path.display();
        let failed = |error: std::io::Error| format!("could not start {shown}: {error}");
        let (ours, theirs) = channel::channel().map_err(failed)?;
        let mut command = Command::new(&program.path);
        command
            .arg0(&program.path)
            .arg(SUCCESSOR)
            .args(&program.arguments)
            .stdin(Stdio::from(theirs))
            // Until it is known to be one that hears us, its standard error has the reason why it is not.
            .stderr(Stdio::piped());
        let mut child = huge_pages::as_given(|| Child::spawn(&mut command)).map_err(failed)?;
        // Our copy of the other end, so that its death is noticed.
        drop(command);
        let stderr = child.take_stderr().map_err(failed)?;
        let peer = Peer::new(ours).map_err(failed)?;
        let pid = child.id().unwrap_or_default();
        let mut successor = Successor {
            child,
            peer,
            pid,
            version: String::new(),
            holds: HashSet::new(),
            pools: Vec::new(),
        };
        match successor.message(FIRST_WORD_WITHIN).await {
            Ok(ToPredecessor::Hello { form, version }) if form == FORM => {
                successor.version = version;
                Ok(successor)
            }
            Ok(ToPredecessor::Hello { version, .. }) => Err(format!(
                "{shown} is of version {version}, which cannot take over from this one while it runs"
            )),
            Ok(_) => Err(format!("{shown} does not say what is expected")),
            Err(why) => {
                successor.end().await;
                Err(match last_words(stderr).await {
                    said if said.is_empty() => format!("{shown} {why}"),
                    said => format!("{shown} {why}; it said: {said}"),
                })
            }
        }
    }

    /// Gives it the inheritance, and waits until it can serve.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub async fn prepare(&mut self, estate: &Estate<'_>) -> Result<(), String> {
        let (message, fds) = estate.message();
        self.peer
            .tell(&message, &fds)
            .map_err(|error| format!("the new program takes nothing: {error}"))?;
        match self.message(PREPARED_WITHIN).await {
            Ok(ToPredecessor::Prepared) => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Announces that all is its own now, and waits until it serves.
    ///
    /// # Errors
    /// The reason why it does not.
    pub async fn take_over(&mut self, sibling: &OwnedFd) -> Result<(), String> {
        self.peer
            .tell(&ToSuccessor::TakeOver, &[sibling.as_fd()])
            .map_err(|error| format!("the new program takes nothing: {error}"))?;
        match self.message(READY_WITHIN).await {
            Ok(ToPredecessor::Ready(mut taken_over)) => {
                self.pools = std::mem::take(&mut taken_over.pools);
                self.holds = taken_over.addresses();
                Ok(())
            }
            other => Err(unexpected(other)),
        }
    }

    /// Waits for the next event from it once it serves.
    pub async fn next_event(&mut self) -> SuccessorEvent {
        loop {
            match self.peer.next().await {
                Some((ToPredecessor::GivesBack, _)) => return SuccessorEvent::GivesBack,
                Some((ToPredecessor::EndAtOnce, _)) => return SuccessorEvent::EndAtOnce,
                Some(_) => {}
                None => return SuccessorEvent::Gone,
            }
        }
    }

    /// Another process serves here: those who serve there know of it when this returns, or that program is
    /// not there any more.
    pub async fn meet(&mut self, sibling: &OwnedFd) {
        if self
            .peer
            .tell(&ToSuccessor::Sibling, &[sibling.as_fd()])
            .is_err()
        {
            return;
        }
        while let Ok(message) = self.message(READY_WITHIN).await {
            if matches!(message, ToPredecessor::Linked) {
                return;
            }
        }
    }

    /// Confirms that its resources were taken back.
    pub fn taken_back(&self) {
        // It may have ended already.
        let _ = self.peer.tell(&ToSuccessor::TakenBack, &[]);
    }

    /// Ends it, which has not come to serve.
    pub async fn end(&mut self) {
        let _ = self.child.kill().await;
    }

    /// Its next message, within a time.
    async fn message(&mut self, within: Duration) -> Result<ToPredecessor, String> {
        match tokio::time::timeout(within, self.peer.next()).await {
            Ok(Some((ToPredecessor::Refused(reasons), _))) => Err(format!(
                "refuses to serve: {}",
                reasons.join("\n").trim_end()
            )),
            Ok(Some((message, _))) => Ok(message),
            Ok(None) => {
                let ended = tokio::time::timeout(ENDS_WITHIN, self.child.wait()).await;
                Err(match ended {
                    Ok(Ok(status)) => format!("ended ({status})"),
                    _ => "does not answer any more".to_owned(),
                })
            }
            Err(_) => Err(format!(
                "did not answer within {} seconds",
                within.as_secs()
            )),
        }
    }
}

/// Returns the reason why a step was not taken.
fn unexpected(said: Result<ToPredecessor, String>) -> String {
    match said {
        Ok(_) => "the new program does not say what is expected".to_owned(),
        Err(why) => format!("the new program {why}"),
    }
}

/// Returns the text that a program wrote to its standard error before it ended.
async fn last_words(stderr: Option<pipe::Receiver>) -> String {
    let Some(mut stderr) = stderr else {
        return String::new();
    };
    let mut said = vec![0; SAID_BYTES];
    let mut length = 0;
    // A program that it has started may have it open still.
    let read = async {
        while let Some(rest) = said.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match stderr.read(rest).await {
                Ok(0) | Err(_) => return,
                Ok(read) => length += read,
            }
        }
    };
    let _ = tokio::time::timeout(ENDS_WITHIN, read).await;
    said.truncate(length);
    String::from_utf8_lossy(&said).trim().to_owned()
}
