//! The unprivileged process: gets everything from its parent over the channel that is its
//! standard input, and serves. It ends at the parent's request, and when the parent is gone.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use rustix::process::DumpableBehavior;
use tokio::sync::mpsc;

use crate::config;
use crate::processes::daemon;
use crate::processes::messages::{self, FromWorker, ReceivedConfiguration, ToWorker};
use crate::processes::orders::{self, Orders, WaitingOrders};
use crate::processes::serving::{RunningWorkers, ServedSite};
use command_line::Exit;

/// Messages that may wait while one is being handled; the parent waits for the
/// answer to the large ones.
const WAITING_MESSAGES: usize = 16;

/// The worker's whole life.
pub fn run() -> Exit {
    set_process_name();
    give_up_rights();
    let Ok(channel) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return Exit::Refused;
    };
    let Ok(event_loop) = crate::processes::event_loop::build() else {
        return Exit::Refused;
    };
    let channel = Arc::new(channel);
    let (sender, messages) = mpsc::channel(WAITING_MESSAGES);
    let reader = channel.clone();
    let read = move || {
        // The end of the channel or nonsense: either way no parent leads any more.
        while let Ok(Some(message)) = messages::receive(reader.as_fd()) {
            if sender.blocking_send(message).is_err() {
                return;
            }
        }
    };
    let named = std::thread::Builder::new().name("channel".to_owned());
    if named.spawn(read).is_err() {
        return Exit::Refused;
    }
    let exit = event_loop.block_on(serve(&channel, messages));
    // The reading thread waits for a message that is not needed.
    event_loop.shutdown_background();
    exit
}

/// The text that process lists show in the place of a command line.
const SHOWN: &str = "mayfly: serving process";

/// The image was started through a descriptor, and process lists would show its number. So it
/// starts once more, by the same file, under its name.
fn set_process_name() {
    let is_named = std::env::args_os()
        .next()
        .is_some_and(|shown| shown == SHOWN);
    if !is_named {
        // Starts the same file, whatever lies in its place by now. If this fails, process
        // lists show the number.
        let mut again = Command::new("/proc/self/exe");
        again.arg0(SHOWN).arg(crate::cli::WORKER);
        let _ = huge_pages::as_given(|| again.exec());
    }
    // `ps -e` and `pgrep` go by this one.
    let _ = std::fs::write("/proc/self/comm", "mayfly");
}

/// No program that is started from here has more rights than this one, and no process but
/// root looks into its memory: pages of many visitors are there. Other processes of the same
/// account could otherwise, PHP's where one account is all there is.
fn give_up_rights() {
    // If the system refuses either, the separate accounts remain as protection.
    let _ = rustix::thread::set_no_new_privs(true);
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

async fn serve(channel: &Arc<OwnedFd>, mut messages: mpsc::Receiver<ToWorker>) -> Exit {
    let mut serving: Option<RunningWorkers> = None;
    let mut serial = 0;
    let (orders, mut given) = orders::way();
    let mut waiting = WaitingOrders::default();
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            Some(order) = given.recv() => {
                waiting.pass_on(order, channel);
                continue;
            }
        };
        let Some(message) = message else {
            // The parent is gone, and with it PHP, or it ends: no request is waited for.
            if let Some(serving) = &serving {
                serving.close_disk_pages().await;
            }
            return Exit::Refused;
        };
        match message {
            ToWorker::Serve(received) => {
                let next = received.serial;
                let result = serve_configuration(channel, &mut serving, *received, serial, &orders);
                let answer = match result {
                    Ok(()) => {
                        serial = next;
                        FromWorker::Ready
                    }
                    Err(reason) => FromWorker::Refused(reason),
                };
                if messages::tell(channel.as_fd(), &answer).is_err() {
                    return Exit::Refused;
                }
            }
            ToWorker::Pool(status) => {
                if let Some(serving) = &mut serving {
                    serving.pool_changed(status);
                }
            }
            ToWorker::Alone => {
                if let Some(serving) = &serving {
                    serving.is_alone();
                }
            }
            ToWorker::Reopen(logs) => {
                if let Some(serving) = &serving {
                    serving.reopen(&logs);
                }
            }
            ToWorker::Answers(answers) => {
                if let Some(serving) = &serving {
                    serving.answer_issuers(answers);
                }
                if messages::tell(channel.as_fd(), &FromWorker::Ready).is_err() {
                    return Exit::Refused;
                }
            }
            ToWorker::LifeSign => {
                if let Some(serving) = &serving {
                    give_life_sign(channel, serving);
                }
            }
            ToWorker::Outcome(number, outcome) => waiting.end(number, outcome),
            ToWorker::Stop(patience) => {
                if let Some(serving) = &mut serving {
                    serving.stop_gracefully(patience);
                    drain(serving, &mut messages).await;
                    serving.close_disk_pages().await;
                }
                return Exit::Done;
            }
        }
    }
}

/// Reports to the parent that all workers serve, once they have answered.
fn give_life_sign(channel: &Arc<OwnedFd>, serving: &RunningWorkers) {
    let (answered, channel) = (serving.all_answer(), channel.clone());
    tokio::spawn(async move {
        answered.await;
        // A parent that is gone is noticed elsewhere.
        let _ = messages::tell(channel.as_fd(), &FromWorker::Served);
    });
}

/// Requests end, for as long as the parent lives: it is what counts the time.
async fn drain(serving: &mut RunningWorkers, messages: &mut mpsc::Receiver<ToWorker>) {
    loop {
        let changed = tokio::select! {
            () = serving.ended() => return,
            message = messages.recv() => message,
        };
        match changed {
            Some(ToWorker::Pool(status)) => serving.pool_changed(status),
            Some(ToWorker::Reopen(logs)) => serving.reopen(&logs),
            Some(_) => {}
            None => return,
        }
    }
}

/// Reads the texts as the parent did, and serves their configuration.
fn serve_configuration(
    channel: &Arc<OwnedFd>,
    serving: &mut Option<RunningWorkers>,
    received: ReceivedConfiguration,
    serial: u64,
    orders: &Orders,
) -> Result<(), String> {
    let accepted = config::judge(received.invocation.read()).map_err(|rejected| {
        let lines = config::lines(&rejected.diagnostics, &rejected.sources);
        lines.map(|(_, line)| line).collect::<Vec<_>>().join("; ")
    })?;
    let is_detached = accepted.site.process.daemon;
    let served = ServedSite {
        site: accepted.site,
        resources: received.resources,
    };
    match serving {
        None => {
            *serving = Some(RunningWorkers::start(served, orders.clone())?);
            if is_detached {
                // If there is no /dev/null, the streams stay.
                let _ = daemon::close_standard_streams();
            }
        }
        Some(serving) => {
            let former = serving.replace(served)?;
            let channel = channel.clone();
            tokio::spawn(async move {
                former.released().await;
                // A parent that is gone has no pools to stop.
                let _ = messages::tell(channel.as_fd(), &FromWorker::Released(serial));
            });
        }
    }
    Ok(())
}
