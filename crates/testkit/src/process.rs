//! Processes of this machine, as `/proc` shows them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub use rustix::process::Signal;
use rustix::process::{Pid, geteuid, kill_process};

use crate::wait::until;

/// A child of the test, killed when dropped.
#[derive(Debug)]
pub struct KilledOnDrop(pub Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether the test runs as root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// # Panics
/// When there is no such process.
pub fn send_signal(pid: u32, signal: Signal) {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let sent = raw.map(|pid| kill_process(pid, signal));
    assert!(
        sent.is_some_and(|sent| sent.is_ok()),
        "{signal:?} to process {pid}"
    );
}

/// Stops a process, and comes back once each of its threads has stopped: the signal is sent before that.
///
/// # Panics
/// When there is no such process.
pub async fn suspend(pid: u32) {
    send_signal(pid, Signal::STOP);
    let is_stopped = |task: &Path| {
        std::fs::read_to_string(task.join("stat")).is_ok_and(|text| {
            text.rsplit_once(')')
                .is_some_and(|(_, rest)| rest.starts_with(" T"))
        })
    };
    until("a stopped process", || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
        tasks.is_ok_and(|tasks| tasks.flatten().all(|task| is_stopped(&task.path())))
    })
    .await;
}

/// The state (`S`, `T`, `Z`, ...) and the parent of a process.
pub fn state_and_parent(pid: u32) -> Option<(String, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Whether the process runs. A zombie does not.
pub fn is_alive(pid: u32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state != "Z")
}

/// Whether the pid file in `folder` is whole: a server makes it empty and writes the number then.
pub fn has_pid_file(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join("pid")).is_ok_and(|text| text.ends_with('\n'))
}

/// The processes that `pid` started, zombies included.
pub fn children(pid: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten();
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|&child| state_and_parent(child).is_some_and(|(_, parent)| parent == pid))
        .collect()
}

/// The process and all that it started, directly or not.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children(*pid));
        next += 1;
    }
    found
}

/// The largest of a number that the process and each that it started have.
pub fn largest(pid: u32, number: impl Fn(u32) -> u64) -> u64 {
    let all = descendants(pid).into_iter();
    all.map(number).max().unwrap_or(0)
}

/// The effective user id of a process; `None` when it has ended.
pub fn uid(pid: u32) -> Option<u32> {
    let process = std::fs::metadata(format!("/proc/{pid}")).ok()?;
    Some(process.uid())
}

/// How many files a process has open.
pub fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// The value of a line of `/proc/PID/status`; empty when the process or the line is missing.
pub fn status_line(pid: u32, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.strip_prefix(':'));
    value.unwrap_or_default().trim().to_owned()
}

/// Returns the memory of a process from a line of its status (`VmRSS`, `VmHWM`), in bytes; 0 if it has ended.
pub fn memory_bytes(pid: u32, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let values = text.lines().filter_map(|line| line.strip_prefix(name));
    let kilobytes = values
        .filter_map(|value| value.strip_prefix(':')?.trim().strip_suffix(" kB"))
        .find_map(|value| value.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// A port of 127.0.0.1 for a server that is about to start: it has no listener, and each call gives
/// another one. It is below the range from which the kernel assigns ports by itself.
///
/// # Panics
/// When all are taken.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_240;
    const COUNT: u32 = 20_000;
    static CALLS: AtomicU32 = AtomicU32::new(0);
    // Test programs that run side by side begin at different ports.
    let begin = std::process::id().wrapping_mul(257);
    let another = || {
        let nth = begin.wrapping_add(CALLS.fetch_add(1, Relaxed));
        u16::try_from(FIRST + nth % COUNT).ok()
    };
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut ports = std::iter::repeat_with(another).take(COUNT as usize);
    let free = ports.find_map(|port| port.filter(is_free));
    free.expect("a free port")
}

/// Copies a program that the test runs next. `cp` writes the copy: a child that another test starts inherits the files
/// that this process has open for writing, and the kernel does not run such a file (`ETXTBSY`).
///
/// # Panics
/// When `cp` fails.
pub fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("cp").arg(from).arg(to).status();
    assert!(status.expect("cp runs").success(), "{}", from.display());
}

/// A command that runs a copy of `program` as an account without rights, if the test runs as root. The copy is in `folder`:
/// the program itself may lie in a folder that others may not enter.
///
/// # Panics
/// When `cp` fails.
pub fn as_nobody(program: &Path, folder: &Path) -> Command {
    let copy = folder.join("program-copy");
    copy_program(program, &copy);
    if !is_root() {
        return Command::new(copy);
    }
    let mut command = Command::new("setpriv");
    let nobody = ["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"];
    command.args(nobody).arg(copy);
    command
}
