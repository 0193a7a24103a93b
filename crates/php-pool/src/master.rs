//! A running master, whoever has started it: its end is seen through a descriptor of the process, since it is the
//! child of a shell ([`crate::launch`]).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Instant;

use child_process::Child;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::sync::watch;

use crate::probe::{exit_code, group_members};

/// A running master and, by process groups, everything it started. The master makes a group of its own; until then
/// it is in that of the shell.
#[derive(Debug)]
pub(crate) struct Master {
    pub(crate) pid: u32,
    /// The process group that the shell leads.
    pub(crate) group: u32,
    pub(crate) generation: u64,
    pub(crate) since: Instant,
    process: Arc<OwnedFd>,
    /// Closed when the master has ended.
    running: watch::Receiver<()>,
    /// While a process has it open, the shell waits.
    lifeline: Option<UnixStream>,
    /// The read end of php-fpm's log, for a process that takes our place.
    stderr: OwnedFd,
    /// The shell, where this process has started it.
    _guard: Option<Child>,
    /// Whether its workers have ever been ready.
    pub(crate) is_ready: bool,
    /// Whether the whole group is known to have ended, or is another process's.
    pub(crate) is_over: bool,
}

impl Master {
    /// One that the shell `guard` has just started.
    pub(crate) fn started(
        pid: u32,
        group: u32,
        generation: u64,
        guard: Child,
        lifeline: UnixStream,
        stderr: OwnedFd,
    ) -> io::Result<Master> {
        // The shell does not ask for its status while we have the lifeline, so that the number is not another
        // process's by now.
        let number = to_pid(pid).ok_or(io::ErrorKind::InvalidData)?;
        let process = pidfd_open(number, PidfdFlags::empty())?;
        Master::new(
            (pid, group, generation),
            process,
            lifeline,
            stderr,
            Some(guard),
        )
    }

    /// One that another process has started. It is ready.
    pub(crate) fn inherited(
        identity: (u32, u32, u64),
        process: OwnedFd,
        lifeline: OwnedFd,
        stderr: OwnedFd,
    ) -> io::Result<Master> {
        Master::new(identity, process, lifeline.into(), stderr, None)
    }

    fn new(
        (pid, group, generation): (u32, u32, u64),
        process: OwnedFd,
        lifeline: UnixStream,
        stderr: OwnedFd,
        guard: Option<Child>,
    ) -> io::Result<Master> {
        let process = Arc::new(process);
        Ok(Master {
            pid,
            group,
            generation,
            since: Instant::now(),
            running: watched(&process)?,
            process,
            lifeline: Some(lifeline),
            stderr,
            is_ready: guard.is_none(),
            _guard: guard,
            is_over: false,
        })
    }

    /// Descriptors for another process: of the master's process, of the lifeline, and of its log.
    pub(crate) fn descriptors(&self) -> io::Result<[OwnedFd; 3]> {
        let lifeline = self.lifeline.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok([
            self.process.try_clone()?,
            lifeline.as_fd().try_clone_to_owned()?,
            self.stderr.try_clone()?,
        ])
    }

    /// Waits until the master itself ends. May be cancelled and called again. How it ended is known where
    /// its shell has not asked for that yet.
    pub(crate) async fn exited(&mut self) -> Option<ExitStatus> {
        // The channel carries no message: this is when the thread closes it.
        while self.running.changed().await.is_ok() {}
        exit_code(self.pid).map(ExitStatus::from_raw)
    }

    /// Whether the master itself is known to have ended.
    pub(crate) fn has_exited(&self) -> bool {
        has_ended(&self.process, Some(&Timespec::default()))
    }

    /// The process groups of the master and of its children.
    pub(crate) fn groups(&self) -> [u32; 2] {
        [self.pid, self.group]
    }

    /// Lets the shell end, which ends the master if it still runs.
    pub(crate) fn let_guard_go(&mut self) {
        self.lifeline = None;
    }
}

/// Waits for the end of a process in a thread of its own; the returned channel is closed then.
fn watched(process: &Arc<OwnedFd>) -> io::Result<watch::Receiver<()>> {
    let (sender, running) = watch::channel(());
    let process = process.clone();
    let wait = move || {
        while !has_ended(&process, None) {}
        drop(sender);
    };
    let thread = std::thread::Builder::new().name("php-master".to_owned());
    thread.spawn(wait)?;
    Ok(running)
}

/// Whether a process has ended; waits for that as long as `within`, or for ever.
fn has_ended(process: &OwnedFd, within: Option<&Timespec>) -> bool {
    let mut waiting = [PollFd::new(process, PollFlags::IN)];
    poll(&mut waiting, within).is_ok_and(|ready| ready > 0)
}

impl Drop for Master {
    /// A master that did not become ready has nothing to finish, and may have
    /// been stopped by a script of its account. One that was ready is dropped
    /// only by a runtime that is torn down.
    fn drop(&mut self) {
        let signal = if self.is_ready {
            Signal::TERM
        } else {
            Signal::KILL
        };
        if !self.is_over {
            self.groups()
                .into_iter()
                .for_each(|group| signal_group(group, signal));
        }
    }
}

/// Signals the group that a master or its shell leads, if anybody is left in it. Its number
/// is not given to another process while it has members.
pub(crate) fn signal_group(group: u32, signal: Signal) {
    if group_members(group).is_empty() {
        return;
    }
    if let Some(group) = to_pid(group) {
        // Ended between the look and the signal: just as well.
        let _ = kill_process_group(group, signal);
    }
}

pub(crate) fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
