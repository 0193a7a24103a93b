//! `-s`: finds the running server by the pid file that the configuration names,
//! and sends it a signal.

use std::io::{self, Write};

use rustix::process::{Signal, kill_process};

use crate::cli::{Flags, SignalName};
use crate::config::{self, Invocation};
use crate::exit::Exit;
use crate::pid_file;
use crate::system_error::reason;

pub fn send(flags: &Flags, name: SignalName) -> Exit {
    let accepted = match config::judge(Invocation::from_flags(flags).read()) {
        Ok(accepted) => accepted,
        Err(rejected) => {
            config::show(&rejected.diagnostics, &rejected.sources);
            return Exit::Refused;
        }
    };
    let signal = match name {
        SignalName::Stop => Signal::TERM,
        SignalName::Quit => Signal::QUIT,
        SignalName::Reload => Signal::HUP,
        SignalName::Reopen => Signal::USR1,
    };
    let sent = pid_file::read(&accepted.site.process.pid_file).and_then(|pid| {
        kill_process(pid, signal).map_err(|error| {
            let reason = reason(&io::Error::from(error));
            format!(
                "kill({}, {}) failed ({reason})",
                pid.as_raw_nonzero(),
                signal.as_raw()
            )
        })
    });
    match sent {
        Ok(()) => Exit::Done,
        Err(message) => {
            let _ = writeln!(io::stderr(), "mayfly: [error] {message}");
            Exit::Refused
        }
    }
}
