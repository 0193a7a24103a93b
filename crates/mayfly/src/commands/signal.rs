//! `-s`: sends a command to the running server, over the control socket that the configuration names, and
//! reports the result. If no server answers there, the server is found by the pid file, as nginx finds it,
//! and sent a signal.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use control::{ClientError, Command, client, command};
use rustix::process::{Signal, kill_process};

use crate::cli::{Flags, SignalName};
use crate::config::{self, Invocation};
use crate::processes::control_socket;
use crate::processes::pid_file;
use command_line::{Exit, printable};
use system_error::SystemError;

pub fn send(flags: &Flags, name: SignalName) -> Exit {
    let accepted = match config::judge(Invocation::from_flags(flags).read()) {
        Ok(accepted) => accepted,
        Err(rejected) => {
            config::show(&rejected.diagnostics, &rejected.sources);
            return Exit::Refused;
        }
    };
    let process = &accepted.site.process;
    let (command, signal) = match name {
        SignalName::Stop => (Command::Stop, Signal::TERM),
        SignalName::Quit => (Command::Quit, Signal::QUIT),
        SignalName::Reload => (Command::Reload, Signal::HUP),
        SignalName::Reopen => (Command::Reopen, Signal::USR1),
    };
    let socket = control_socket::path(process, None).filter(|path| is_trusted(path));
    let answer = socket.and_then(|path| tell(&path, command));
    match answer.unwrap_or_else(|| kill(&process.pid_file, signal)) {
        Ok(()) => Exit::Done,
        Err(message) => {
            let mut shown = String::new();
            for line in message.lines() {
                let line: String = line.chars().map(printable).collect();
                shown.push_str(&format!("mayfly: [error] {line}\n"));
            }
            let _ = io::stderr().write_all(shown.as_bytes());
            Exit::Refused
        }
    }
}

/// Whether the socket was made by this account, or by root. Another account could report false success.
fn is_trusted(socket: &Path) -> bool {
    let owner = std::fs::symlink_metadata(socket).map(|facts| facts.uid());
    owner.is_ok_and(|owner| owner == 0 || owner == rustix::process::geteuid().as_raw())
}

/// Returns the result over the control socket; `None` if a signal is tried next: no server answers there,
/// or one that does not know the command.
fn tell(path: &Path, command: Command) -> Option<Result<(), String>> {
    let event_loop = crate::processes::event_loop::build().ok()?;
    match event_loop.block_on(client::command(path, command)) {
        Ok(_) => Some(Ok(())),
        // It has ended before it could answer.
        Err(ClientError::Ended(_)) if command.ends() => Some(Ok(())),
        Err(ClientError::NoServer(_)) => None,
        Err(ClientError::Refused(refusal)) if refusal.status == command::FAILED => {
            Some(Err(refusal.message))
        }
        Err(ClientError::Refused(_)) => None,
        Err(error @ (ClientError::Ended(_) | ClientError::Broken(_))) => {
            Some(Err(format!("{}: {error}", path.display())))
        }
    }
}

fn kill(pid_file: &Path, signal: Signal) -> Result<(), String> {
    let pid = pid_file::read(pid_file)?;
    kill_process(pid, signal).map_err(|error| {
        let reason = SystemError(&io::Error::from(error));
        format!(
            "kill({}, {}) failed ({reason})",
            pid.as_raw_nonzero(),
            signal.as_raw()
        )
    })
}
