//! USR2 and its consequences: this program beside the one that takes its place, and beside the one whose place it has
//! taken. The messages between the two are in [`crate::processes::upgrade`].
//!
//! ```text
//!            USR2                  WINCH               QUIT
//!  Alone ───────────► Outgoing ───────────► (drained) ──────► the end
//!    ▲                   │  ▲  HUP              │
//!    │                   │  └───────────────────┘
//!    └───────────────────┘ the new one ends, or gives back
//!
//!  Incoming ──────────► Alone
//!            the one before has ended
//! ```
//!
//! Both accept connections from USR2 on, as nginx does. The cache's promise holds meanwhile: a purge returns
//! when both have applied it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::time::Instant;

use super::{Service, Shutdown, Supervisor};
use crate::processes::backend::{Backend, Patience};
use crate::processes::channel;
use crate::processes::handover::Handover;
use crate::processes::pid_file::{self, PidFile};
use crate::processes::sibling_socket::SiblingSocket;
use crate::processes::signals::{ReceivedInstruction, Signals};
use crate::processes::upgrade::predecessor::{Predecessor, PredecessorEvent};
use crate::processes::upgrade::successor::{Successor, SuccessorEvent};
use crate::processes::upgrade::wire::{Estate, TakenOver};
use crate::processes::worker_handle::WorkerEvent;

/// Beside which other program this one runs.
pub(super) enum Role {
    Alone,
    /// Beside the one that takes its place.
    Outgoing {
        successor: Box<Successor>,
        /// The pid file of this one meanwhile.
        pid_file: Option<PidFile>,
    },
    /// Beside the one whose place it has taken.
    Incoming {
        predecessor: Box<Predecessor>,
        next: Option<NextUpgrade>,
    },
}

/// An upgrade that begins once the program before has ended.
pub(super) struct NextUpgrade {
    received: ReceivedInstruction,
    /// It waits no longer.
    until: Instant,
}

/// How long an upgrade waits for the end of the program before, which lets requests under way end.
const WAITS_FOR_PREDECESSOR: Duration = Duration::from_secs(45);

/// An event from the other program.
pub(super) enum RoleEvent {
    /// The successor is about to end: it waits until we have its resources.
    GivesBack,
    SuccessorGone,
    PredecessorGone,
    /// The next upgrade has waited long enough for that.
    PredecessorStays,
    /// Another process serves beside this one.
    Sibling(Option<SiblingSocket>),
    /// The workers of the new program have ended: this one ends, since it gets no purges any more.
    EndAtOnce,
}

impl Role {
    /// Waits for the next event of the other program; for ever, if there is none.
    pub(super) async fn next_event(&mut self) -> RoleEvent {
        match self {
            Role::Alone => std::future::pending().await,
            Role::Outgoing { successor, .. } => match successor.next_event().await {
                SuccessorEvent::GivesBack => RoleEvent::GivesBack,
                SuccessorEvent::EndAtOnce => RoleEvent::EndAtOnce,
                SuccessorEvent::Gone => RoleEvent::SuccessorGone,
            },
            Role::Incoming { predecessor, next } => {
                let until = next.as_ref().map(|next| next.until);
                tokio::select! {
                    event = predecessor.next_event() => match event {
                        PredecessorEvent::Sibling(sibling) => RoleEvent::Sibling(sibling),
                        PredecessorEvent::Gone => RoleEvent::PredecessorGone,
                    },
                    () = super::sleep_until(until) => RoleEvent::PredecessorStays,
                }
            }
        }
    }
}

impl Supervisor {
    /// Goes on beside the program whose place this one has taken, until that one ends.
    pub(super) async fn begin_beside(&mut self, predecessor: Predecessor) {
        self.keep_control(true);
        self.pools.reclaim(&[]).await;
        let taken_over = TakenOver::new(&self.sockets.sockets(), self.pools.inherited_names());
        match predecessor.ready(taken_over) {
            Ok(()) => {
                self.journal.notice(format_args!(
                    "in the place of process {} (version {})",
                    predecessor.pid, predecessor.version
                ));
                self.role = Role::Incoming {
                    predecessor: Box::new(predecessor),
                    next: None,
                };
            }
            Err(message) => self.journal.notice(message),
        }
    }

    /// Starts another program in the place of this one. After a signal, this one goes on beside it, as nginx does;
    /// after a command over the control socket, it ends once the other one serves. A caller of the control socket
    /// waits for the end of the program whose place this one has just taken.
    pub(super) async fn upgrade(
        &mut self,
        received: ReceivedInstruction,
        signals: &mut Signals,
    ) -> Option<Shutdown> {
        if let Role::Incoming {
            predecessor,
            next: next @ None,
        } = &mut self.role
            && received.is_order()
        {
            let pid = predecessor.pid;
            self.journal.notice(format_args!(
                "{received}, waiting for the end of process {pid}"
            ));
            *next = Some(NextUpgrade {
                received,
                until: Instant::now() + WAITS_FOR_PREDECESSOR,
            });
            return None;
        }
        let other = match &self.role {
            Role::Alone => None,
            Role::Outgoing { successor, .. } => {
                let pid = successor.pid;
                Some(format!("process {pid} takes the place of this one already"))
            }
            Role::Incoming { predecessor, .. } => {
                let pid = predecessor.pid;
                Some(format!(
                    "process {pid}, whose place this one has taken, has not ended yet"
                ))
            }
        };
        if let Some(why) = other {
            self.journal
                .error(format_args!("{received}, refused: {why}"));
            received.tell(Err(why));
            return None;
        }
        let shown = self.program.path.display().to_string();
        self.journal.notice(format_args!(
            "{received}, starting {shown} in the place of this program"
        ));
        let started = tokio::select! {
            started = self.start_successor() => started,
            end = signals.asked_to_end() => {
                self.take_back().await;
                received.tell(Err("the server was told to stop meanwhile".to_owned()));
                return Some(self.stop_at_once(end));
            }
        };
        match started {
            Ok(()) => {
                let is_whole = received.is_order();
                received.tell(Ok(()));
                is_whole.then_some(Shutdown::Graceful)
            }
            Err(why) => {
                let message = format!("{why}; this program goes on");
                self.journal
                    .emerg(format_args!("upgrade failed: {message}"));
                received.tell(Err(message));
                None
            }
        }
    }

    /// Over when the new program serves; otherwise everything is as it was.
    async fn start_successor(&mut self) -> Result<(), String> {
        let mut successor = Successor::start(&self.program).await?;
        let pools = self.pools.lend().await;
        let stderr = std::io::stderr();
        let estate = Estate {
            account: self.account.as_ref().map(|account| account.uid),
            sockets: &self.sockets.sockets(),
            control: self.control.as_ref(),
            pools: &pools,
            stderr: std::os::fd::AsFd::as_fd(&stderr),
        };
        let prepared = successor.prepare(&estate).await;
        drop(pools);
        let mut own_pid_file = None;
        let serves = match prepared {
            Ok(()) => match self.let_go().await {
                Ok((pid_file, theirs)) => {
                    own_pid_file = pid_file;
                    successor.take_over(&theirs).await
                }
                Err(why) => Err(why),
            },
            Err(why) => Err(why),
        };
        if let Err(why) = serves {
            successor.end().await;
            if let Some(file) = own_pid_file {
                file.remove();
            }
            self.take_back().await;
            return Err(why);
        }
        // The pools that the new one does not take are needed here for as long as this one serves.
        self.pools.reclaim(&successor.pools).await;
        self.journal.notice(format_args!(
            "process {} (version {}) serves in the place of this program; WINCH, then QUIT to process {} ends \
             this one, and QUIT to process {} goes back",
            successor.pid,
            successor.version,
            std::process::id(),
            successor.pid
        ));
        self.held_by_other = successor.holds.clone();
        self.role = Role::Outgoing {
            successor: Box::new(successor),
            pid_file: own_pid_file,
        };
        Ok(())
    }

    /// Gives away the things that only one of the two may have. Returns the pid file of this one from now on, and the
    /// socket on which the workers get purges.
    async fn let_go(&mut self) -> Result<(Option<PidFile>, OwnedFd), String> {
        let pid_file = match &self.pid_file {
            Some(file) => Some(PidFile::write(&pid_file::of_predecessor(&file.path))?),
            None => None,
        };
        self.certificates.pause();
        self.pools.relay(false);
        self.answers_commands = false;
        self.keep_control(false);
        let (ours, theirs) = sibling_sockets()?;
        self.serve_current(Some(&ours)).await?;
        // The deadlines of an upgrade together may be longer than a watchdog's.
        self.service_manager.is_served();
        Ok((pid_file, theirs))
    }

    /// Takes back the resources that [`Supervisor::let_go`] gave away.
    async fn take_back(&mut self) {
        self.pools.reclaim(&[]).await;
        self.answers_commands = true;
        self.keep_control(true);
        self.held_by_other.clear();
        self.keep_certificates();
        if let Some(file) = &self.pid_file
            && let Err(message) = PidFile::write(&file.path)
        {
            self.journal.error(message);
        }
        if self.service == Service::Serving
            && let Err(message) = self.serve_current(None).await
        {
            self.journal.error(message);
        }
        self.backend.is_alone();
    }

    /// The program before has ended; an upgrade that waited for that begins.
    async fn predecessor_gone(&mut self, signals: &mut Signals) -> Option<Shutdown> {
        self.held_by_other.clear();
        self.backend.is_alone();
        let former = std::mem::replace(&mut self.role, Role::Alone);
        let Role::Incoming { predecessor, next } = former else {
            return None;
        };
        self.journal.notice(format_args!(
            "process {}, whose place this one has taken, has ended",
            predecessor.pid
        ));
        match next {
            Some(next) => self.upgrade(next.received, signals).await,
            None => None,
        }
    }

    /// The program before has not ended in time.
    fn refuse_next_upgrade(&mut self) {
        if let Role::Incoming { predecessor, next } = &mut self.role
            && let Some(next) = next.take()
        {
            let why = format!(
                "process {}, whose place this one has taken, has not ended within {} seconds",
                predecessor.pid,
                WAITS_FOR_PREDECESSOR.as_secs()
            );
            self.journal
                .error(format_args!("{}, refused: {why}", next.received));
            next.received.tell(Err(why));
        }
    }

    /// Handles an event from the other program.
    pub(super) async fn other_program(
        &mut self,
        event: RoleEvent,
        signals: &mut Signals,
    ) -> Option<Shutdown> {
        let (gone, is_waiting) = match event {
            RoleEvent::PredecessorGone => return self.predecessor_gone(signals).await,
            RoleEvent::PredecessorStays => {
                self.refuse_next_upgrade();
                return None;
            }
            RoleEvent::Sibling(sibling) => {
                if let Err(message) = self.serve_current(sibling.as_ref()).await {
                    self.journal.error(message);
                }
                if let Role::Incoming { predecessor, .. } = &self.role {
                    predecessor.linked();
                }
                return None;
            }
            RoleEvent::EndAtOnce => {
                self.journal
                    .error("the new program hears of no purges any more, this one ends");
                return Some(Shutdown::Fast);
            }
            RoleEvent::GivesBack => ("is about to end", true),
            RoleEvent::SuccessorGone => ("has ended", false),
        };
        let Role::Outgoing {
            successor,
            pid_file,
        } = std::mem::replace(&mut self.role, Role::Alone)
        else {
            return None;
        };
        self.journal.notice(format_args!(
            "process {} {gone}, this program takes its place back",
            successor.pid
        ));
        if let Some(file) = pid_file {
            file.remove();
        }
        if self.service != Service::Serving && self.serve_again().await.is_err() {
            return Some(Shutdown::Broken);
        }
        self.take_back().await;
        if is_waiting {
            successor.taken_back();
        }
        None
    }

    /// WINCH: no new connections; requests under way end. HUP and the end of the new program undo it. Without a
    /// successor it means nothing, since a terminal sends it when its window changes.
    pub(super) fn drain_for_successor(&mut self, received: &ReceivedInstruction) {
        if matches!(self.role, Role::Outgoing { .. }) && self.service == Service::Serving {
            self.journal
                .notice(format_args!("{received}, taking no more connections"));
            self.service = Service::Draining;
            self.backend.stop_gracefully(Patience::ForNextRequests);
        }
    }

    /// HUP beside a successor: accepts connections again, with the configuration in force.
    pub(super) async fn serve_again(&mut self) -> Result<(), Vec<String>> {
        if self.service == Service::Serving {
            return Ok(());
        }
        let sibling = self.next_sibling().await;
        let (site, invocation) = self.current().map_err(|message| vec![message])?;
        let handover = Handover {
            site,
            invocation: &invocation,
            sources: &self.configuration.sources,
            sockets: self.sockets.sockets(),
            control: None,
            logs: self.logs.clone(),
            pools: self.pools.statuses(),
            learning: self.pools.learning_sockets(),
            tls_files: self.configuration.tls_files.clone(),
            sibling: sibling.as_ref(),
        };
        let started = Backend::start(handover, self.account.clone(), self.orders.clone()).await;
        let backend = started.map_err(|message| vec![message])?;
        let mut former = std::mem::replace(&mut self.backend, backend);
        if self.service == Service::Draining {
            // Its connections end meanwhile.
            tokio::spawn(async move {
                while !matches!(former.next_event().await, WorkerEvent::Ended(_)) {}
            });
        }
        self.service = Service::Serving;
        Ok(())
    }

    /// Another process is about to serve here: beside another program, it and the one that serves there get a
    /// way to each other first.
    pub(super) async fn next_sibling(&mut self) -> Option<SiblingSocket> {
        match &mut self.role {
            Role::Alone => None,
            Role::Outgoing { successor, .. } => {
                let (ours, theirs) = sibling_sockets().ok()?;
                successor.meet(&theirs).await;
                Some(ours)
            }
            Role::Incoming { predecessor, .. } => {
                predecessor.end_it();
                None
            }
        }
    }

    /// Gives everything back to the program before, if it is still there.
    pub(super) async fn give_back(&mut self) {
        if let Role::Incoming { predecessor, .. } = &mut self.role {
            self.pools.relay(false);
            self.pools.give_back().await;
            predecessor.give_back().await;
            self.keep_control(false);
        }
    }

    /// Whether the file of the control socket goes with this program.
    fn keep_control(&mut self, is_own: bool) {
        if let Some(control) = &mut self.control {
            control.leave_to_another(!is_own);
        }
    }
}

/// A way between the processes that serve in both programs: this one's end, and that of the one that takes its place.
fn sibling_sockets() -> Result<(SiblingSocket, OwnedFd), String> {
    let (ours, theirs) =
        channel::channel().map_err(|error| format!("socketpair() failed: {error}"))?;
    let ours = SiblingSocket {
        socket: ours,
        is_successor: true,
    };
    Ok((ours, theirs))
}
