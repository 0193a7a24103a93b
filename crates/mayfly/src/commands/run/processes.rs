//! The processes of a command: those that have not loaded the library are named, for their writes are not
//! reported.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::process::{Pid, WaitOptions, waitpid};

use super::servers::NotifiedServers;
use command_line::printable;

/// Processes that are looked at each time.
const MAX_PROCESSES: usize = 256;
/// Processes that are named.
const MAX_NAMED: usize = 8;

/// The findings so far.
pub struct Watch {
    library: PathBuf,
    servers: NotifiedServers,
    /// The file of this program.
    program: Option<(u64, u64)>,
    /// By number and start, without the library when it was looked last: it may be about to load it.
    candidates: HashSet<(u32, u64)>,
    named: HashSet<(u32, u64)>,
    has_sent_doubt: bool,
    has_gone: bool,
}

impl Watch {
    pub fn new(library: PathBuf, servers: NotifiedServers) -> Watch {
        Watch {
            library,
            servers,
            program: program(std::process::id()),
            candidates: HashSet::new(),
            named: HashSet::new(),
            has_sent_doubt: false,
            has_gone: false,
        }
    }

    fn has_loaded(&self, pid: u32) -> bool {
        // This program writes to no database, and may be linked statically. The programs that it starts are
        // looked at as well.
        if self.program.is_some() && program(pid) == self.program {
            return true;
        }
        match fs::read(format!("/proc/{pid}/maps")) {
            // Nothing is left of one that has ended.
            Ok(maps) if maps.is_empty() => true,
            Ok(maps) => {
                let library = self.library.as_os_str().as_bytes();
                maps.split(|byte| *byte == b'\n')
                    .any(|line| line.ends_with(library))
            }
            // It has other rights than this process.
            Err(error) => error.kind() != ErrorKind::PermissionDenied,
        }
    }

    fn look(&mut self, processes: &[ProcessStat]) -> Vec<String> {
        let mut messages = Vec::new();
        if !self.has_gone && self.servers.has_gone() {
            self.has_gone = true;
            messages.push(
                "a server that was told of writes has ended, or has another socket; what the command writes from now \
                 on counts as another program's there"
                    .to_owned(),
            );
        }
        let without = processes.iter().filter(|it| !self.has_loaded(it.pid));
        let without: Vec<_> = without.collect();
        for process in &without {
            let number = (process.pid, process.started);
            let is_new = self.candidates.contains(&number) && self.named.len() < MAX_NAMED;
            if is_new && self.named.insert(number) {
                let name: String = process.name.chars().map(printable).collect();
                messages.push(format!(
                    "process {} ({name}) has not loaded the library, so that its writes are not told: no page is kept \
                     until this command ends. Write `mayfly run` behind sudo, su and the like",
                    process.pid
                ));
            }
        }
        self.candidates = without.iter().map(|it| (it.pid, it.started)).collect();
        if !self.named.is_empty() && !self.has_sent_doubt {
            self.has_sent_doubt = true;
            self.servers.tell_doubt();
        }
        messages
    }
}

/// Device and number of the file that a process runs.
fn program(pid: u32) -> Option<(u64, u64)> {
    let facts = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((facts.dev(), facts.ino()))
}

/// The fields of `/proc/PID/stat`.
struct ProcessStat {
    pid: u32,
    name: String,
    is_over: bool,
    parent: u32,
    /// Ticks since the system started: they distinguish it from another with its number.
    started: u64,
}

impl ProcessStat {
    fn of(pid: u32) -> Option<ProcessStat> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        ProcessStat::read(pid, &String::from_utf8_lossy(&stat))
    }

    fn read(pid: u32, stat: &str) -> Option<ProcessStat> {
        let (begin, rest) = stat.rsplit_once(") ")?;
        let (_, name) = begin.split_once('(')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(ProcessStat {
            pid,
            name: name.to_owned(),
            is_over: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Looks at the processes below this one, and reaps those that have ended. Returns the lines to print about
/// them.
pub fn look(watch: &mut Option<Watch>, command: Option<Pid>) -> Vec<String> {
    let own = std::process::id();
    let mut processes = Vec::new();
    let mut to_look_at = vec![own];
    while let Some(pid) = to_look_at.pop() {
        for child in children(pid) {
            let Some(stat) = ProcessStat::of(child) else {
                continue;
            };
            let is_command = command.is_some_and(|it| it.as_raw_pid().cast_unsigned() == child);
            if stat.is_over {
                let number = Pid::from_raw(child.cast_signed());
                // Its parent has ended before it.
                if stat.parent == own && !is_command {
                    let _ = waitpid(number, WaitOptions::NOHANG);
                }
                continue;
            }
            if processes.len() < MAX_PROCESSES {
                to_look_at.push(child);
                processes.push(stat);
            }
        }
    }
    watch
        .as_mut()
        .map_or_else(Vec::new, |watch| watch.look(&processes))
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let numbers = lists.flat_map(|list| {
        let numbers = list
            .split_ascii_whitespace()
            .filter_map(|it| it.parse().ok());
        numbers.collect::<Vec<u32>>()
    });
    numbers.collect()
}

/// Whether a process with this `/proc/PID/status` ignores a signal.
pub fn is_ignored(status: &str, number: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let bit = u32::try_from(number - 1)
        .ok()
        .and_then(|it| 1_u64.checked_shl(it));
    mask.zip(bit).is_some_and(|(mask, bit)| mask & bit != 0)
}

/// Whether the keys of the terminal reach the process with this `/proc/PID/stat`, and the command with it.
pub fn is_in_foreground(stat: &str) -> bool {
    let fields = stat.rsplit_once(") ").map(|(_, rest)| rest);
    let mut fields = fields.unwrap_or_default().split_ascii_whitespace();
    let group = fields.nth(2);
    let of_terminal = fields.nth(2);
    group.is_some() && group == of_terminal
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) b) S 5 7 7 34816 7 4194560 1 0 0 0 0 0 0 0 20 0 1 0 99 2 3";

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let read = ProcessStat::read(7, STAT).unwrap();
        assert_eq!((&*read.name, read.parent, read.started), ("a) b", 5, 99));
        assert!(!read.is_over);
        for cut in 0..STAT.len() - 8 {
            let _ = ProcessStat::read(7, &STAT[..cut]);
        }
        assert!(ProcessStat::read(7, "7 (a) Z 5").is_none());
    }

    #[test]
    fn a_program_is_told_from_others() {
        let own = program(std::process::id());
        assert!(own.is_some());
        let mut other = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert_ne!(program(other.id()), own);
        drop(other.stdin.take());
        other.wait().unwrap();
        assert_eq!(program(0), None);
    }

    #[test]
    fn keys_reach_the_group_in_the_foreground() {
        assert!(is_in_foreground(STAT));
        assert!(!is_in_foreground(&STAT.replace("34816 7", "34816 8")));
        assert!(!is_in_foreground(""));
    }

    #[test]
    fn ignored_signals_are_told_from_others() {
        let status = "Name:\ta\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, 1) && is_ignored(status, 13));
        assert!(!is_ignored(status, 15) && !is_ignored("", 1));
    }
}
