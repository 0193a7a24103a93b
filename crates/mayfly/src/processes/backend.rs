//! The serving half as the supervisor sees it: in this process, or in one of its own without
//! root's rights. Both take the same commands and report the same events.

use std::os::unix::net::UnixListener;
use std::pin::Pin;

use live_state::acme_answers::AcmeAnswerTexts;
use live_state::tls_files::TlsFiles;
use nginx_conf::Sources;
pub use server::worker::Patience;
use server::worker::Sockets;
use site::Site;
use tokio::sync::mpsc;

use crate::config::Invocation;
use crate::processes::account::Account;
use crate::processes::logs::LogFiles;
use crate::processes::messages::SentConfiguration;
use crate::processes::orders::Orders;
use crate::processes::pools::{LearningSockets, PoolStatus};
use crate::processes::serving::{RunningWorkers, ServedSite};
use crate::processes::sibling_socket::SiblingSocket;
use crate::processes::worker_handle::{WorkerEvent, WorkerProcess};

/// The process that serves.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one, and it is never moved about"
)]
pub enum Backend {
    /// Threads of this process.
    InProcess(InProcess),
    /// A process that runs as another user.
    Separate {
        worker: WorkerProcess,
        account: Account,
        serial: u64,
        orders: Orders,
    },
}

/// Threads of this process, and the configurations they are done with.
pub struct InProcess {
    serving: RunningWorkers,
    serial: u64,
    released: mpsc::UnboundedReceiver<u64>,
    release: mpsc::UnboundedSender<u64>,
    /// The answer of all workers, where it was asked for.
    life_sign: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// A configuration with everything that belongs to it. The site is for threads
/// of this process, the texts for another one.
pub struct Handover<'a> {
    pub site: Site,
    pub invocation: &'a Invocation,
    pub sources: &'a Sources,
    pub sockets: Sockets,
    pub control: Option<&'a UnixListener>,
    pub logs: LogFiles,
    pub pools: Vec<PoolStatus>,
    pub learning: LearningSockets,
    pub tls_files: TlsFiles,
    /// To the process that serves beside this one from now on.
    pub sibling: Option<&'a SiblingSocket>,
}

impl Handover<'_> {
    fn sent(&self, serial: u64) -> SentConfiguration<'_> {
        SentConfiguration {
            invocation: self.invocation,
            sources: self.sources,
            serial,
            sockets: &self.sockets,
            control: self.control,
            logs: &self.logs,
            pools: &self.pools,
            learning: &self.learning,
            tls_files: &self.tls_files,
            sibling: self.sibling,
        }
    }

    fn served(self) -> Result<ServedSite, String> {
        Ok(ServedSite {
            site: self.site,
            sockets: self.sockets,
            // Without descriptors left, commands are not answered.
            control: self.control.and_then(|listener| listener.try_clone().ok()),
            logs: self.logs,
            pools: self.pools,
            learning: self.learning,
            tls_files: self.tls_files,
            sibling: match self.sibling {
                None => None,
                Some(sibling) => Some(SiblingSocket {
                    socket: sibling
                        .socket
                        .try_clone()
                        .map_err(|error| error.to_string())?,
                    is_successor: sibling.is_successor,
                }),
            },
        })
    }
}

impl Backend {
    /// Starts serving, as `account` if there is one. Commands from callers of the control socket
    /// go to `orders`.
    ///
    /// # Errors
    /// A message for the operator.
    pub async fn start(
        handover: Handover<'_>,
        account: Option<Account>,
        orders: Orders,
    ) -> Result<Backend, String> {
        match account {
            None => {
                let (release, released) = mpsc::unbounded_channel();
                let serving = RunningWorkers::start(handover.served()?, orders)?;
                Ok(Backend::InProcess(InProcess {
                    serving,
                    serial: 0,
                    released,
                    release,
                    life_sign: None,
                }))
            }
            Some(account) => {
                let mut worker = spawn(&account, &handover, &orders)?;
                if let Err(reason) = worker.serve(handover.sent(0)).await {
                    worker.end().await;
                    return Err(reason);
                }
                Ok(Backend::Separate {
                    worker,
                    account,
                    serial: 0,
                    orders,
                })
            }
        }
    }

    /// Puts another configuration in force. Answers its serial number; the one
    /// before it is released later.
    ///
    /// # Errors
    /// A message for the operator; the old one stays in force.
    pub async fn replace(&mut self, handover: Handover<'_>) -> Result<u64, String> {
        match self {
            Backend::InProcess(threads) => {
                let former = threads.serving.replace(handover.served()?)?;
                let (former_serial, release) = (threads.serial, threads.release.clone());
                threads.serial += 1;
                tokio::spawn(async move {
                    former.released().await;
                    // The receiver is gone at the end.
                    let _ = release.send(former_serial);
                });
                Ok(threads.serial)
            }
            Backend::Separate { worker, serial, .. } => {
                worker.serve(handover.sent(*serial + 1)).await?;
                *serial += 1;
                Ok(*serial)
            }
        }
    }

    /// The worker process ended: starts another with the configuration in force.
    ///
    /// # Errors
    /// A message for the operator.
    pub async fn restart(&mut self, handover: Handover<'_>) -> Result<(), String> {
        let Backend::Separate {
            worker,
            account,
            serial,
            orders,
        } = self
        else {
            return Err("all workers have ended".to_owned());
        };
        let mut next = spawn(account, &handover, orders)?;
        next.serve(handover.sent(*serial)).await?;
        *worker = next;
        Ok(())
    }

    pub fn pool_changed(&mut self, status: PoolStatus) {
        match self {
            Backend::InProcess(threads) => threads.serving.pool_changed(status),
            Backend::Separate { worker, .. } => worker.pool_changed(&status),
        }
    }

    /// The program beside this one has ended, with all that it had started.
    pub fn is_alone(&mut self) {
        match self {
            Backend::InProcess(threads) => threads.serving.is_alone(),
            Backend::Separate { worker, .. } => worker.is_alone(),
        }
    }

    /// Gives the workers new answers for issuers of certificates.
    ///
    /// # Errors
    /// A message for the operator.
    pub async fn answer_issuers(&mut self, answers: AcmeAnswerTexts) -> Result<(), String> {
        match self {
            Backend::InProcess(threads) => threads.serving.answer_issuers(answers),
            Backend::Separate { worker, .. } => worker.answer_issuers(&answers).await?,
        }
        Ok(())
    }

    /// Asks whether all workers serve: the answer is an event.
    pub fn ask_for_life_sign(&mut self) {
        match self {
            Backend::InProcess(threads) => {
                let serving = &threads.serving;
                threads
                    .life_sign
                    .get_or_insert_with(|| Box::pin(serving.all_answer()));
            }
            Backend::Separate { worker, .. } => worker.ask_for_life_sign(),
        }
    }

    pub fn reopen(&self, logs: &LogFiles) {
        match self {
            Backend::InProcess(threads) => threads.serving.reopen(logs),
            Backend::Separate { worker, .. } => worker.reopen(logs),
        }
    }

    pub fn stop_gracefully(&mut self, patience: Patience) {
        match self {
            Backend::InProcess(threads) => threads.serving.stop_gracefully(patience),
            Backend::Separate { worker, .. } => worker.stop_gracefully(patience),
        }
    }

    /// Waits for the next event of the serving half.
    pub async fn next_event(&mut self) -> WorkerEvent {
        match self {
            Backend::InProcess(threads) => tokio::select! {
                biased;
                () = threads.serving.ended() => WorkerEvent::Ended("all workers have ended".to_owned()),
                Some(serial) = threads.released.recv() => WorkerEvent::Released(serial),
                () = answered(&mut threads.life_sign) => {
                    threads.life_sign = None;
                    WorkerEvent::Served
                }
            },
            Backend::Separate { worker, .. } => worker.next_event().await,
        }
    }

    /// Lets go of connections to PHP, and of the process if there is one.
    pub async fn end(self) {
        match self {
            Backend::InProcess(threads) => {
                threads.serving.close_idle_upstreams();
                threads.serving.close_disk_pages().await;
            }
            Backend::Separate { worker, .. } => worker.end().await,
        }
    }
}

async fn answered(life_sign: &mut Option<Pin<Box<dyn Future<Output = ()> + Send>>>) {
    match life_sign {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

fn spawn(
    account: &Account,
    handover: &Handover<'_>,
    orders: &Orders,
) -> Result<WorkerProcess, String> {
    WorkerProcess::spawn(account, &handover.site.process.env, orders.clone())
        .map_err(|error| format!("could not start the worker process: {error}"))
}
