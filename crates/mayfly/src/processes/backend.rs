//! The serving half as the supervisor sees it: in this process, or in one of its own without
//! root's rights. Both take the same commands and report the same events.

use std::pin::Pin;

use live_state::acme_answers::AcmeAnswerTexts;
pub use server::worker::Patience;
use tokio::sync::mpsc;

use crate::processes::account::Account;
use crate::processes::handover::{Handover, SiteResources};
use crate::processes::logs::LogFiles;
use crate::processes::messages::ParentMessage;
use crate::processes::orders::Orders;
use crate::processes::pools::PoolStatus;
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
                let serving = RunningWorkers::start(served(handover)?, orders)?;
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
                if let Err(reason) = worker.serve(&handover, 0).await {
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
                let former = threads.serving.replace(served(handover)?)?;
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
                worker.serve(&handover, *serial + 1).await?;
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
        next.serve(&handover, *serial).await?;
        *worker = next;
        Ok(())
    }

    pub fn pool_changed(&mut self, status: PoolStatus) {
        match self {
            Backend::InProcess(threads) => threads.serving.pool_changed(status),
            Backend::Separate { worker, .. } => worker.tell(&ParentMessage::Pool(status)),
        }
    }

    /// The program beside this one has ended, with all that it had started.
    pub fn is_alone(&mut self) {
        match self {
            Backend::InProcess(threads) => threads.serving.is_alone(),
            Backend::Separate { worker, .. } => worker.tell(&ParentMessage::Alone),
        }
    }

    /// Gives the workers new answers for issuers of certificates.
    ///
    /// # Errors
    /// A message for the operator.
    pub async fn answer_issuers(&mut self, answers: AcmeAnswerTexts) -> Result<(), String> {
        match self {
            Backend::InProcess(threads) => threads.serving.answer_issuers(answers),
            Backend::Separate { worker, .. } => worker.answer_issuers(answers).await?,
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
            Backend::Separate { worker, .. } => worker.tell(&ParentMessage::Stop {
                awaits_next_requests: patience == Patience::ForNextRequests,
            }),
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

fn served(handover: Handover<'_>) -> Result<ServedSite, String> {
    let resources = SiteResources {
        sockets: handover.sockets,
        // Without descriptors left, commands are not answered.
        control: handover
            .control
            .and_then(|listener| listener.try_clone().ok()),
        logs: handover.logs,
        pools: handover.pools,
        learning: handover.learning,
        tls_files: handover.tls_files,
        sibling: match handover.sibling {
            None => None,
            Some(sibling) => Some(SiblingSocket {
                socket: sibling
                    .socket
                    .try_clone()
                    .map_err(|error| error.to_string())?,
                is_successor: sibling.is_successor,
            }),
        },
    };
    Ok(ServedSite {
        site: handover.site,
        resources,
    })
}
