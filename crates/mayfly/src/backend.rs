//! The serving half as the front sees it: in this process, or in one of its own
//! without root's rights. Both take the same and tell the same.

use nginx_conf::Sources;
use server::worker::Sockets;
use site::Site;
use tokio::sync::mpsc;

use crate::account::Account;
use crate::apart::{News, WorkerProcess};
use crate::config::Invocation;
use crate::logs::LogFiles;
use crate::pools::PoolStatus;
use crate::serving::{Served, Serving};
use crate::wire::Outgoing;

/// Who serves.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one, and it is never moved about"
)]
pub enum Backend {
    /// Threads of this process.
    Here(Here),
    /// A process that runs as another user.
    Apart {
        worker: WorkerProcess,
        account: Account,
        serial: u64,
    },
}

/// Threads of this process, and the configurations they are done with.
pub struct Here {
    serving: Serving,
    serial: u64,
    released: mpsc::UnboundedReceiver<u64>,
    release: mpsc::UnboundedSender<u64>,
}

/// A configuration with everything that belongs to it. The site is for threads
/// of this process, the texts for another one.
pub struct Ready<'a> {
    pub site: Site,
    pub invocation: &'a Invocation,
    pub sources: &'a Sources,
    pub sockets: Sockets,
    pub logs: LogFiles,
    pub pools: Vec<PoolStatus>,
}

impl Ready<'_> {
    fn outgoing(&self, serial: u64) -> Outgoing<'_> {
        Outgoing {
            invocation: self.invocation,
            sources: self.sources,
            serial,
            sockets: &self.sockets,
            logs: &self.logs,
            pools: &self.pools,
        }
    }

    fn served(self) -> Served {
        Served {
            site: self.site,
            sockets: self.sockets,
            logs: self.logs,
            pools: self.pools,
        }
    }
}

impl Backend {
    /// Starts serving, as `account` if there is one.
    ///
    /// # Errors
    /// A message for the operator.
    pub async fn start(ready: Ready<'_>, account: Option<Account>) -> Result<Backend, String> {
        match account {
            None => {
                let (release, released) = mpsc::unbounded_channel();
                let serving = Serving::start(ready.served())?;
                Ok(Backend::Here(Here {
                    serving,
                    serial: 0,
                    released,
                    release,
                }))
            }
            Some(account) => {
                let mut worker = spawn(&account, &ready)?;
                if let Err(reason) = worker.serve(ready.outgoing(0)).await {
                    worker.kill().await;
                    return Err(reason);
                }
                Ok(Backend::Apart {
                    worker,
                    account,
                    serial: 0,
                })
            }
        }
    }

    /// Puts another configuration in force. Answers its serial number; the one
    /// before it is released later.
    ///
    /// # Errors
    /// A message for the operator; the old one stays in force.
    pub async fn replace(&mut self, ready: Ready<'_>) -> Result<u64, String> {
        match self {
            Backend::Here(here) => {
                let former = here.serving.replace(ready.served())?;
                let (former_serial, release) = (here.serial, here.release.clone());
                here.serial += 1;
                tokio::spawn(async move {
                    former.released().await;
                    // Nobody listens at the end.
                    let _ = release.send(former_serial);
                });
                Ok(here.serial)
            }
            Backend::Apart { worker, serial, .. } => {
                worker.serve(ready.outgoing(*serial + 1)).await?;
                *serial += 1;
                Ok(*serial)
            }
        }
    }

    /// The worker process ended: starts another with the configuration in force.
    ///
    /// # Errors
    /// A message for the operator.
    pub async fn restart(&mut self, ready: Ready<'_>) -> Result<(), String> {
        let Backend::Apart {
            worker,
            account,
            serial,
        } = self
        else {
            return Err("all workers have ended".to_owned());
        };
        let mut next = spawn(account, &ready)?;
        next.serve(ready.outgoing(*serial)).await?;
        *worker = next;
        Ok(())
    }

    pub fn pool_changed(&mut self, status: PoolStatus) {
        match self {
            Backend::Here(here) => here.serving.pool_changed(status),
            Backend::Apart { worker, .. } => worker.pool_changed(&status),
        }
    }

    pub fn reopen(&self, logs: &LogFiles) {
        match self {
            Backend::Here(here) => here.serving.reopen(logs),
            Backend::Apart { worker, .. } => worker.reopen(logs),
        }
    }

    pub fn stop_gracefully(&self) {
        match self {
            Backend::Here(here) => here.serving.stop_gracefully(),
            Backend::Apart { worker, .. } => worker.stop_gracefully(),
        }
    }

    /// The next thing the serving half tells by itself.
    pub async fn news(&mut self) -> News {
        match self {
            Backend::Here(here) => tokio::select! {
                biased;
                () = here.serving.ended() => News::Ended("all workers have ended".to_owned()),
                Some(serial) = here.released.recv() => News::Released(serial),
            },
            Backend::Apart { worker, .. } => worker.news().await,
        }
    }

    /// Lets go of connections to PHP, and of the process if there is one.
    pub async fn end(self) {
        match self {
            Backend::Here(here) => here.serving.close_idle_upstreams(),
            Backend::Apart { worker, .. } => worker.kill().await,
        }
    }
}

fn spawn(account: &Account, ready: &Ready<'_>) -> Result<WorkerProcess, String> {
    WorkerProcess::spawn(account, &ready.site.process.env)
        .map_err(|error| format!("could not start the worker process: {error}"))
}
