//! `mayfly run -- COMMAND`: runs a command with the library that pools are started with, so that servers which learn
//! pages (`cache_learn`) hear of its writes before they reach the database, and after they were answered.
//!
//! ```text
//! sockets of the servers' pools ─► environment ─► the command and its processes ─► reports to the servers
//!                                                        └─ watched: processes without the library are named
//! ```
//!
//! The reports do not pass through this process: it may be killed at any time.

mod processes;
mod servers;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use child_process::Child;
use inherited_files::InheritedFiles;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::cli::RunArgs;
use crate::paths;
use crate::processes::event_loop;
use command_line::{Exit, complain, printable};
use processes::Watch;
use servers::NotifiedServers;

/// The exit code of shells and `env`.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;
const ENDED_BY_SIGNAL: u8 = 128;

/// How often it is looked which processes there are.
const LOOK_EVERY: Duration = Duration::from_millis(250);

const PRELOAD: &str = "LD_PRELOAD";

/// The folder in which a server of root puts the library.
const ROOTS_FOLDER: &str = "/var/cache/mayfly";

/// Signals that are passed on. Keys of a terminal reach the command by themselves.
const SIGNALS: [(Signal, bool); 7] = [
    (Signal::HUP, false),
    (Signal::TERM, false),
    (Signal::USR1, false),
    (Signal::USR2, false),
    (Signal::ALARM, false),
    (Signal::INT, true),
    (Signal::QUIT, true),
];

pub fn run(args: &RunArgs, inherited: InheritedFiles) -> Exit {
    // They are the command's.
    inherited.pass_on();
    let Some((program, arguments)) = args.command.split_first() else {
        return Exit::Usage;
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let reported = match prepare(&mut command) {
        Ok(reported) => reported,
        Err(why) => {
            say_unreported(&why);
            None
        }
    };
    match event_loop::build() {
        Ok(event_loop) => event_loop.block_on(follow(&mut command, reported)),
        Err(error) => complain(Exit::Refused, &format!("could not start: {error}")),
    }
}

/// The servers that hear of the writes, and the library by which they do.
struct ReportedRun {
    servers: NotifiedServers,
    library: PathBuf,
}

fn say_unreported(why: &str) {
    let message = format!(
        "run: {why}; what the command writes counts as another program's, and shows within two seconds"
    );
    complain(Exit::Done, &message);
}

/// Returns the environment by which servers hear of writes; `None` if the reason for each that does not was printed.
/// `Err`: the reason why none does.
fn prepare(command: &mut Command) -> Result<Option<ReportedRun>, String> {
    let found = NotifiedServers::find()?;
    let library = library()?;
    let Some(servers) = NotifiedServers::greet(found, |why| say_unreported(&why)) else {
        return Ok(None);
    };
    let mut list = OsString::from(&library);
    if let Some(others) = std::env::var_os(PRELOAD).filter(|it| !it.is_empty()) {
        list.push(":");
        list.push(others);
    }
    command.env(PRELOAD, list);
    command.env(learn_record::COMMAND_VARIABLE, servers.list());
    Ok(Some(ReportedRun { servers, library }))
}

/// The library in a place that this account or root alone can change.
fn library() -> Result<PathBuf, String> {
    let library = preload::library().map_err(|why| why.to_string())?;
    let own = paths::cache().join("library");
    let of_root = Path::new(ROOTS_FOLDER).join("library");
    let mut there = [&of_root, &own]
        .into_iter()
        .filter_map(|folder| preload::installed(library, folder));
    if let Some(path) = there.find(|path| servers::is_own(path)) {
        return Ok(path);
    }
    let cannot =
        |error: io::Error| format!("the library cannot be put into {}: {error}", own.display());
    let _ = trusted_path::make_open_folder(&paths::cache());
    trusted_path::make_open_folder(&own).map_err(cannot)?;
    let installed = preload::install(library, &own).map_err(cannot)?;
    match servers::is_own(&installed.path) {
        true => Ok(installed.path),
        false => Err(format!("other accounts can change {}", own.display())),
    }
}

async fn follow(command: &mut Command, reported: Option<ReportedRun>) -> Exit {
    let mut signals = pass_on_signals();
    // Processes whose parents have ended stay in sight.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let mut child = match huge_pages::as_given(|| Child::spawn(command)) {
        Ok(child) => child,
        Err(error) => {
            let name: String = command
                .get_program()
                .to_string_lossy()
                .chars()
                .map(printable)
                .collect();
            let code = match error.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_STARTED,
            };
            return complain(Exit::OfCommand(code), &format!("run: {name}: {error}"));
        }
    };
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let mut watch = reported.map(|reported| Watch::new(reported.library, reported.servers));
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            status = child.wait() => {
                return status.map_or_else(
                    |error| complain(Exit::Refused, &format!("run: {error}")),
                    |status| Exit::OfCommand(code(status)),
                );
            }
            Some(signal) = signals.recv() => {
                if let Some(pid) = pid {
                    // It may have ended just now.
                    let _ = kill_process(pid, signal);
                }
            }
            _ = looks.tick() => {
                let messages = processes::look(&mut watch, pid);
                for message in messages {
                    complain(Exit::Done, &format!("run: {message}"));
                }
            }
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    let signal = status.signal().and_then(|number| u8::try_from(number).ok());
    code.unwrap_or_else(|| ENDED_BY_SIGNAL.saturating_add(signal.unwrap_or(0)))
}

/// Returns the signals that the command is to get. One that is ignored stays so (`nohup`).
fn pass_on_signals() -> mpsc::Receiver<Signal> {
    let (sender, receiver) = mpsc::channel(16);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (number, is_key) in SIGNALS {
        if processes::is_ignored(&status, number.as_raw()) {
            continue;
        }
        let Ok(mut signals) = signal(SignalKind::from_raw(number.as_raw())) else {
            continue;
        };
        let sender = sender.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
                if is_key && processes::is_in_foreground(&stat) {
                    continue;
                }
                if sender.send(number).await.is_err() {
                    return;
                }
            }
        });
    }
    receiver
}
