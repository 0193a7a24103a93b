//! The parent's side of the worker process: starts this program again as the
//! unprivileged user, hands everything over, and hears when it ends.
//!
//! The worker is a new process image, not a fork: no memory of the parent, in
//! particular nothing read with root's rights, is in it. `setpriv` (util-linux,
//! essential on Debian) changes user, group and supplementary groups before it
//! becomes the worker, and takes away every way to more rights: `no_new_privs`
//! and an empty bounding set. If `setpriv` is missing, the standard library changes user and
//! group and drops all supplementary groups, and the worker itself gives up new rights. The
//! program is started through an open descriptor of its own file, so that the user needs no
//! way to the folder it is in, and an upgrade on disk does not mix two versions.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use child_process::Child;
use live_state::acme_answers::AcmeAnswerTexts;
use rustix::io::FdFlags;
use rustix::net::sockopt::Timeout;
use tokio::sync::mpsc;

use crate::cli::WORKER;
use crate::processes::account::{self, Account, SETPRIV};
use crate::processes::channel;
use crate::processes::handover::Handover;
use crate::processes::logs::LogFiles;
use crate::processes::messages::{self, FromWorker, ParentMessage};
use crate::processes::orders::Orders;

/// The longest time that the worker takes to end on request: longer than it writes for.
const END_WITHIN: Duration = Duration::from_secs(4);
/// A configuration of the largest size is in force within a second or two.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a part of a message may wait for the worker to read.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// Replies that wait for the parent: one for each configuration.
const WAITING_REPLIES: usize = 64;

pub struct WorkerProcess {
    channel: Arc<OwnedFd>,
    replies: mpsc::Receiver<FromWorker>,
    child: Child,
    /// Configurations released while we waited for another answer.
    released: Vec<u64>,
    /// A sign of life was asked for and has not come.
    awaits_life_sign: bool,
}

/// An event that the worker process reports by itself.
#[derive(Debug)]
pub enum WorkerEvent {
    Released(u64),
    /// All workers serve.
    Served,
    /// The process ended; how.
    Ended(String),
}

impl WorkerProcess {
    /// Starts it, without anything to serve yet. Commands from callers of its control socket
    /// go to `orders`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn spawn(
        account: &Account,
        env: &[(String, Option<String>)],
        orders: Orders,
    ) -> io::Result<WorkerProcess> {
        let (ours, theirs) = channel::channel()?;
        // A worker that does not read any more must not hold up its parent.
        rustix::net::sockopt::set_socket_timeout(&ours, Timeout::Send, Some(SEND_TIMEOUT))?;
        let program = File::open("/proc/self/exe")?;
        // Only this descriptor outlives the change of image; it is closed here
        // as soon as the child has it.
        rustix::io::fcntl_setfd(&program, FdFlags::empty())?;
        let path = format!("/proc/self/fd/{}", program.as_raw_fd());
        let mut command = command(account, &path);
        command
            .env_clear()
            .envs(environment(env))
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null());
        // Ctrl-C is for the parent, which stops the worker.
        command.process_group(0);
        let child = huge_pages::as_given(|| Child::spawn(&mut command))?;
        drop(program);
        let channel = Arc::new(ours);
        let (sender, replies) = mpsc::channel(WAITING_REPLIES);
        let reader = channel.clone();
        let read = move || {
            while let Ok(Some(reply)) = messages::receive_reply(reader.as_fd()) {
                if let FromWorker::Order {
                    number,
                    command,
                    caller,
                } = reply
                {
                    // The order is passed on whatever the supervisor waits for: it may be
                    // the order to end.
                    orders.pass(command, caller, number, &reader);
                } else if sender.blocking_send(reply).is_err() {
                    return;
                }
            }
        };
        let named = std::thread::Builder::new().name("channel".to_owned());
        named.spawn(read)?;
        Ok(WorkerProcess {
            channel,
            replies,
            child,
            released: Vec::new(),
            awaits_life_sign: false,
        })
    }

    /// Puts a configuration in force there.
    ///
    /// # Errors
    /// The reason why it is not.
    pub async fn serve(&mut self, handover: &Handover<'_>, serial: u64) -> Result<(), String> {
        let gone =
            |error: io::Error| format!("the worker process does not take a configuration: {error}");
        messages::send_configuration(self.channel.as_fd(), handover, serial).map_err(gone)?;
        self.answer().await
    }

    /// Sends it the answers for issuers of certificates; over when they are in force.
    ///
    /// # Errors
    /// The reason why they are not.
    pub async fn answer_issuers(&mut self, answers: AcmeAnswerTexts) -> Result<(), String> {
        let gone = |error: io::Error| format!("the worker process does not listen: {error}");
        messages::tell(self.channel.as_fd(), &ParentMessage::Answers(answers)).map_err(gone)?;
        self.answer().await
    }

    /// Waits until the worker has carried out the last message.
    async fn answer(&mut self) -> Result<(), String> {
        loop {
            match tokio::time::timeout(ANSWER_TIMEOUT, self.replies.recv()).await {
                Ok(Some(FromWorker::Ready)) => return Ok(()),
                Ok(Some(FromWorker::Refused(reason))) => return Err(reason),
                Ok(Some(FromWorker::Released(serial))) => self.released.push(serial),
                Ok(Some(FromWorker::Served)) => self.awaits_life_sign = false,
                Ok(Some(FromWorker::Order { .. })) => {}
                Ok(None) => return Err("the worker process ended".to_owned()),
                Err(_) => return Err("the worker process does not answer".to_owned()),
            }
        }
    }

    /// Sends it a message that it does not answer. A worker that is gone gets everything anew.
    pub fn tell(&self, message: &ParentMessage) {
        let _ = messages::tell(self.channel.as_fd(), message);
    }

    /// Asks whether all workers serve, unless the last answer is still awaited.
    pub fn ask_for_life_sign(&mut self) {
        if !self.awaits_life_sign {
            self.awaits_life_sign =
                messages::tell(self.channel.as_fd(), &ParentMessage::LifeSign).is_ok();
        }
    }

    pub fn reopen(&self, logs: &LogFiles) {
        let _ = messages::send_logs(self.channel.as_fd(), logs);
    }

    /// Waits for its next event.
    pub async fn next_event(&mut self) -> WorkerEvent {
        if let Some(serial) = self.released.pop() {
            return WorkerEvent::Released(serial);
        }
        loop {
            tokio::select! {
                Some(reply) = self.replies.recv() => {
                    match reply {
                        FromWorker::Released(serial) => return WorkerEvent::Released(serial),
                        FromWorker::Served => {
                            self.awaits_life_sign = false;
                            return WorkerEvent::Served;
                        }
                        _ => {}
                    }
                }
                status = self.child.wait() => {
                    return WorkerEvent::Ended(match status {
                        Ok(status) => status.to_string(),
                        Err(error) => error.to_string(),
                    });
                }
            }
        }
    }

    /// Ends it now, once it has written the data of pages on disk. It may have ended
    /// already.
    pub async fn end(mut self) {
        let _ = rustix::net::shutdown(&*self.channel, rustix::net::Shutdown::Both);
        if tokio::time::timeout(END_WITHIN, self.child.wait())
            .await
            .is_err()
        {
            let _ = self.child.kill().await;
        }
    }
}

impl Drop for WorkerProcess {
    /// It ends with its handle, if it has not ended before.
    fn drop(&mut self) {
        let _ = self.child.start_kill();
    }
}

fn command(account: &Account, program: &str) -> Command {
    if Path::new(SETPRIV).exists() {
        let mut command = Command::new(SETPRIV);
        command
            .args(account.setpriv_arguments())
            .args(["--no-new-privs", "--inh-caps=-all"]);
        if account::may_drop_capabilities() {
            command.arg("--bounding-set=-all");
        }
        command.args(["--", program, WORKER]);
        return command;
    }
    let mut command = Command::new(program);
    command.arg(WORKER).gid(account.gid).uid(account.uid);
    command
}

/// Returns the environment that nginx would give: only the time zone and the names in `env`.
fn environment(env: &[(String, Option<String>)]) -> Vec<(String, std::ffi::OsString)> {
    let kept = |name: &str| Some((name.to_owned(), std::env::var_os(name)?));
    let mut environment: Vec<_> = kept("TZ").into_iter().collect();
    for (name, value) in env {
        match value {
            Some(value) => environment.push((name.clone(), value.into())),
            None => environment.extend(kept(name)),
        }
    }
    environment
}
