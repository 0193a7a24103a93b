//! Looks at running processes through `/proc`: which ones belong to a master's process group, and how
//! much memory its workers take. Proportional set size is the cost of a further worker: PHP's code
//! and the shared opcode cache are counted once, spread over the workers.
//!
//! Processes come and go while we look; whatever cannot be read any more is
//! left out.

use std::fs;

/// The memory that the workers of a pool use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerMemory {
    /// Workers that could be measured.
    pub workers: u32,
    /// Proportional set size of the largest.
    pub largest_bytes: u64,
    /// Proportional set sizes of all.
    pub total_bytes: u64,
}

/// Measures the workers (children) of the master `pid`.
pub(crate) fn worker_memory(master: u32) -> WorkerMemory {
    let mut memory = WorkerMemory::default();
    for process in processes().filter(|process| process.parent == master) {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid));
        let Some(bytes) = rollup.ok().and_then(|text| proportional_bytes(&text)) else {
            continue;
        };
        memory.workers += 1;
        memory.largest_bytes = memory.largest_bytes.max(bytes);
        memory.total_bytes = memory.total_bytes.saturating_add(bytes);
    }
    memory
}

/// The living members of a process group.
pub(crate) fn group_members(group: u32) -> Vec<u32> {
    processes()
        .filter(|process| process.group == group && process.is_alive)
        .map(|process| process.pid)
        .collect()
}

/// Returns the exit code, in the form of `wait`, of a process that has ended and whose parent has not
/// waited for it yet. Only its own account and root can read it.
pub(crate) fn exit_code(pid: u32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let is_ended = parse_stat(&text).is_some_and(|process| !process.is_alive);
    // The last of the fields that there are since Linux 3.5.
    let code = text.split_ascii_whitespace().nth_back(0)?.parse().ok()?;
    is_ended.then_some(code)
}

/// Whether a process lives: one that has ended and that its parent has not asked for does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    process(pid).is_some_and(|process| process.is_alive)
}

/// Whether a process lives and belongs to that group.
pub(crate) fn is_group_member(pid: u32, group: u32) -> bool {
    process(pid).is_some_and(|process| process.group == group && process.is_alive)
}

/// The needed fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    group: u32,
    is_alive: bool,
}

fn processes() -> impl Iterator<Item = Process> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|folder| folder.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(process)
}

fn process(pid: u32) -> Option<Process> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (name) state parent group ...`; the name may itself hold spaces and
/// parentheses, so the last one ends it.
fn parse_stat(text: &str) -> Option<Process> {
    let (pid, _) = text.split_once(' ')?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    Some(Process {
        pid: pid.parse().ok()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        is_alive: !matches!(state, "Z" | "X" | "x"),
    })
}

/// The `Pss:` line of `/proc/PID/smaps_rollup`.
fn proportional_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_line_is_read_whatever_the_name() {
        let cases = [
            (
                "plain",
                "7 (php-fpm8.2) S 3 5 5 0 -1",
                Some((7, 3, 5, true)),
            ),
            ("odd name", "7 (a) Z (b)) R 3 5 5 0", Some((7, 3, 5, true))),
            ("ended", "7 (php-fpm8.2) Z 1 5 5 0", Some((7, 1, 5, false))),
            ("cut", "7 (php", None),
            ("empty", "", None),
        ];
        for (name, text, expected) in cases {
            let read = parse_stat(text)
                .map(|found| (found.pid, found.parent, found.group, found.is_alive));
            assert_eq!(read, expected, "{name}");
        }
    }

    #[test]
    fn proportional_set_size_is_read_in_bytes() {
        let text = "55d-7ff ---p 00000000 00:00 0 [rollup]\nRss:    9000 kB\nPss:    1234 kB\nPss_Dirty: 5 kB\n";
        assert_eq!(proportional_bytes(text), Some(1234 << 10));
        assert_eq!(proportional_bytes("Rss: 5 kB\n"), None);
    }

    #[test]
    fn own_process_is_found_in_its_group() {
        let group = rustix::process::getpgrp()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        assert!(group_members(group).contains(&std::process::id()));
    }
}
