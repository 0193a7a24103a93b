//! A child process whose end an async task can wait for.
//!
//! A thread of its own waits for each child and leaves it unreaped, so that the kernel does not
//! reuse the pid before [`Child::wait`] or [`Child::try_wait`] has returned the status.
//!
//! This is not `tokio::process`, which makes every thread of the program look for ended children at
//! each turn of its loop: a request that is answered from memory would pay for children that it has
//! nothing to do with.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::net::unix::pipe;
use tokio::sync::watch;

/// A child process. Dropped while it runs, it goes on, and is reaped when it ends.
#[derive(Debug)]
pub struct Child {
    /// `None` from the moment it is given to its thread.
    child: Option<std::process::Child>,
    /// Closed when the process has ended.
    running: watch::Receiver<()>,
    /// Passes the process to its thread, which reaps it, when the `Child` is dropped.
    reaper: mpsc::Sender<std::process::Child>,
}

impl Child {
    /// Starts a process.
    ///
    /// # Errors
    /// An error of the system, from the process or from the thread that waits for it.
    pub fn spawn(command: &mut Command) -> io::Result<Child> {
        let mut child = command.spawn()?;
        let (running, waiter) = watch::channel(());
        let (reaper, left) = mpsc::channel();
        let pid = Pid::from_child(&child);
        let wait = move || {
            wait_unreaped(pid);
            drop(running);
            // Fails where its status was asked for.
            if let Ok(mut child) = left.recv() {
                let _: io::Result<ExitStatus> = std::process::Child::wait(&mut child);
            }
        };
        let thread = std::thread::Builder::new().name("child".to_owned());
        if let Err(error) = thread.spawn(wait) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
        Ok(Child {
            child: Some(child),
            running: waiter,
            reaper,
        })
    }

    /// The process's number.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(std::process::Child::id)
    }

    /// Takes its standard error, if that was piped; once.
    ///
    /// # Errors
    /// An error of the system, or there is no runtime of tokio.
    pub fn take_stderr(&mut self) -> io::Result<Option<pipe::Receiver>> {
        let stderr = self.child.as_mut().and_then(|child| child.stderr.take());
        stderr
            .map(|stderr| pipe::Receiver::from_owned_fd(OwnedFd::from(stderr)))
            .transpose()
    }

    /// Waits until it has ended. May be cancelled and called again.
    ///
    /// # Errors
    /// An error of the system.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        // Nothing is ever sent: this is when the thread closes it.
        while self.running.changed().await.is_ok() {}
        match &mut self.child {
            Some(child) => child.wait(),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns how it ended, if it has.
    ///
    /// # Errors
    /// An error of the system.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.child {
            Some(child) => child.try_wait(),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Sends it KILL, which it may have outrun.
    ///
    /// # Errors
    /// An error of the system.
    pub fn start_kill(&mut self) -> io::Result<()> {
        match &mut self.child {
            Some(child) => child.kill(),
            None => Ok(()),
        }
    }

    /// Ends it at once, and waits until that is done.
    ///
    /// # Errors
    /// An error of the system.
    pub async fn kill(&mut self) -> io::Result<()> {
        self.start_kill()?;
        self.wait().await.map(drop)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            // Its thread waits for nothing else by then.
            let _ = self.reaper.send(child);
        }
    }
}

/// Returns when the process has ended, and leaves its status to be asked for.
fn wait_unreaped(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[tokio::test]
    async fn its_end_is_told_more_than_once_and_after_a_cancelled_wait() {
        let mut command = shell("read line; exit 7");
        let mut child = Child::spawn(command.stdin(Stdio::piped())).unwrap();
        assert_eq!(child.try_wait().unwrap(), None);
        let cancelled = tokio::time::timeout(Duration::from_millis(1), child.wait()).await;
        assert!(cancelled.is_err());
        drop(child.child.as_mut().unwrap().stdin.take());
        assert_eq!(child.wait().await.unwrap().code(), Some(7));
        assert_eq!(child.wait().await.unwrap().code(), Some(7));
        assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(7));
    }

    #[tokio::test]
    async fn its_standard_error_is_read_to_the_end() {
        let mut command = shell("echo said >&2");
        let mut child = Child::spawn(command.stderr(Stdio::piped())).unwrap();
        let mut said = String::new();
        let mut stderr = child.take_stderr().unwrap().unwrap();
        stderr.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "said\n");
        assert!(child.take_stderr().unwrap().is_none());
    }

    #[tokio::test]
    async fn it_is_killed() {
        let mut child = Child::spawn(&mut shell("exec sleep 1000")).unwrap();
        child.kill().await.unwrap();
        let status = child.wait().await.unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(9)
        );
    }

    #[tokio::test]
    async fn one_that_was_dropped_is_reaped_at_its_end() {
        let mut command = shell("read line");
        let mut child = Child::spawn(command.stdin(Stdio::piped())).unwrap();
        let pid = Pid::from_child(child.child.as_ref().unwrap());
        let stdin = child.child.as_mut().unwrap().stdin.take();
        drop(child);
        assert!(rustix::process::test_kill_process(pid).is_ok());
        drop(stdin);
        // A zombie still takes signals: one that is reaped is gone.
        let gone = async {
            while rustix::process::test_kill_process(pid).is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone)
            .await
            .unwrap();
    }
}
