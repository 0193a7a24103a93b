//! `daemon on`: the program leaves the terminal without forking itself, which safe Rust has no
//! function for and threads do not survive. It starts its own image again from the same file, which
//! begins a session of its own and then starts as usual; failures are shown on the terminal it still
//! has. The first process waits on the other's standard input for the word that everything listens,
//! and ends with the same exit code as if it had started itself.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::cli::{DETACHED, Flags};
use crate::processes::upgrade::program::StartedProgram;
use command_line::Exit;

/// Sent when everything listens.
const READY: &[u8] = b"1";

/// Starts the detached half and waits until it serves or has failed.
///
/// # Errors
/// It could not even be started.
pub fn detach(flags: &Flags, program: &StartedProgram) -> io::Result<Exit> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(std::env::current_exe()?);
    // Under the path that was typed, from which an upgrade starts.
    command
        .arg0(&program.path)
        .arg(DETACHED)
        .args(flags.arguments());
    command.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
    let mut child = huge_pages::as_given(|| command.spawn())?;
    // Our copy of the other end, so that its death is noticed.
    drop(command);
    let mut word = Vec::new();
    ours.read_to_end(&mut word)?;
    if word == READY {
        return Ok(Exit::Done);
    }
    child.wait()?;
    Ok(Exit::Refused)
}

/// In the detached half, first thing: a session without a terminal.
///
/// # Errors
/// The error of the system.
pub fn begin_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// In the detached half, when everything listens: lets go of the terminal, and
/// lets the first process go.
///
/// The error of the system.
/// The error of the system.
pub fn leave_terminal() -> io::Result<()> {
    let mut waiting = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let left = close_standard_streams();
    // It may have been interrupted; we go on.
    let _ = waiting.write_all(READY);
    left
}

/// In the detached half and in its worker, when the start has succeeded: standard input, output
/// and error lead nowhere, so that a caller who reads them does not wait for the end of the program.
///
/// # Errors
/// The error of the system.
pub fn close_standard_streams() -> io::Result<()> {
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}
