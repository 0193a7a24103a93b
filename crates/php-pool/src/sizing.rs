//! How many workers `workers auto` means: as many as the memory holds that
//! the machine (or the control group, whichever is tighter) can spare, and no
//! more than the cores can use. Everything here is arithmetic on plain values
//! and text; [`Machine::observe`] alone reads files.

use std::path::Path;

/// Size of a worker before one was measured. Debian's WordPress with a few
/// plugins takes 30 to 60 MB of its own, a small site 10.
pub const WORKER_BYTES_ASSUMED: u64 = 48 << 20;

/// A worker that has not yet run its heavy page looks smaller than it will
/// be, so no measurement below this is believed.
const WORKER_BYTES_LEAST: u64 = 16 << 20;

/// Part of the available memory that workers may take; the rest is for the
/// stored responses, the database and the system's file cache.
const MEMORY_SHARE: (u64, u64) = (6, 10);

/// Workers per core. PHP waits for its database about as long as it computes, and now and then for
/// a remote API; more workers than this only queue for the processor, and Mayfly's queue is
/// cheaper.
const WORKERS_PER_CORE: u64 = 8;

/// One worker would let a single slow page stop the site.
const WORKERS_LEAST: u64 = 2;

/// Beyond this the operator should choose the number.
const WORKERS_MOST: u64 = 256;

/// The machine's resources that determine the number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Memory that could be taken without swapping, within the limits of the
    /// control group.
    pub available_bytes: u64,
    /// Cores this process may use.
    pub cores: u32,
}

impl Machine {
    /// Observes the machine as it is now. Values that cannot be read are those of a small machine:
    /// 256 MB, one core.
    pub fn observe() -> Self {
        Self::observe_below(Path::new("/"))
    }

    /// Observes a machine whose `/proc` and `/sys` are below `root`; the cores are this one's.
    pub fn observe_below(root: &Path) -> Self {
        let below = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
        let read = |path: &Path| std::fs::read_to_string(below(path)).ok();
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Self {
            available_bytes: available_bytes(&read).unwrap_or(256 << 20),
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
        }
    }
}

/// Workers for `machine` when the largest one takes `worker_bytes`.
pub fn auto_workers(machine: Machine, worker_bytes: u64) -> u32 {
    let (share, whole) = MEMORY_SHARE;
    let by_memory = machine.available_bytes / whole * share / worker_bytes.max(WORKER_BYTES_LEAST);
    let by_cores = u64::from(machine.cores).saturating_mul(WORKERS_PER_CORE);
    let workers = by_memory.min(by_cores).clamp(WORKERS_LEAST, WORKERS_MOST);
    u32::try_from(workers).unwrap_or(u32::MAX)
}

/// Whether going from one number of workers to another is worth a reload:
/// a quarter fewer (memory is in danger) or half more.
pub(crate) fn is_worth_resizing(from: u32, to: u32) -> bool {
    let (from, to) = (u64::from(from), u64::from(to));
    to * 4 <= from * 3 || to * 2 >= from * 3
}

/// Reads a whole small file; `None` if it cannot be read.
type FileReader<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The least of the machine's free memory and the memory that each control group above this
/// process leaves.
fn available_bytes(read: FileReader<'_>) -> Option<u64> {
    let machine = meminfo_available(&read(Path::new("/proc/meminfo"))?);
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let left = groups.lines().filter_map(|line| group_left(line, read));
    machine.into_iter().chain(left).min()
}

/// `MemAvailable` of `/proc/meminfo`.
fn meminfo_available(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The files of one version of control groups.
struct GroupFiles {
    root: &'static str,
    limit: &'static str,
    usage: &'static str,
    reclaimable: &'static str,
}

const VERSION_1: GroupFiles = GroupFiles {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};

const VERSION_2: GroupFiles = GroupFiles {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: "inactive_file",
};

/// Returns the memory that the group of one line of `/proc/self/cgroup`, and every group above it,
/// leave. A group without a limit does not count.
fn group_left(line: &str, read: FileReader<'_>) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let files = if id == "0" && controllers.is_empty() {
        VERSION_2
    } else if controllers.split(',').any(|name| name == "memory") {
        VERSION_1
    } else {
        return None;
    };
    let relative = Path::new(path.trim_start_matches('/'));
    // `ancestors` of a relative path ends with the empty one: the root.
    relative
        .ancestors()
        .filter_map(|group| {
            let folder = Path::new(files.root).join(group);
            // "max" is no number, and version 1's "no limit" is past any
            // machine's memory: neither needs a case of its own.
            let limit: u64 = read(&folder.join(files.limit))?.trim().parse().ok()?;
            let usage: u64 = read(&folder.join(files.usage))?.trim().parse().ok()?;
            let stat = read(&folder.join("memory.stat")).unwrap_or_default();
            let reclaimable = stat
                .lines()
                .find_map(|line| line.strip_prefix(files.reclaimable)?.trim().parse().ok())
                .unwrap_or(0);
            Some(limit.saturating_sub(usage.saturating_sub(reclaimable)))
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn workers_fit_memory_and_cores_within_bounds() {
        let cases = [
            ("256 MB machine", 150 * MB, 1, 48 * MB, 2),
            ("1 GB machine", 700 * MB, 1, 48 * MB, 8),
            ("1 GB machine, small site", 700 * MB, 2, 20 * MB, 16),
            ("2 GB machine, heavy site", 1500 * MB, 2, 100 * MB, 9),
            ("memory beyond the cores", 24_000 * MB, 2, 48 * MB, 16),
            ("big machine is capped", 512_000 * MB, 128, 48 * MB, 256),
            ("unmeasured zero is not believed", 1000 * MB, 64, 0, 37),
            ("nothing left", 0, 1, 48 * MB, 2),
            ("no cores known", 1000 * MB, 0, 48 * MB, 2),
        ];
        for (name, available_bytes, cores, worker_bytes, expected) in cases {
            let machine = Machine {
                available_bytes,
                cores,
            };
            assert_eq!(auto_workers(machine, worker_bytes), expected, "{name}");
        }
    }

    #[test]
    fn small_differences_are_not_worth_a_reload() {
        let cases = [
            (8, 8, false),
            (8, 7, false),
            (8, 6, true),
            (8, 11, false),
            (8, 12, true),
            (2, 3, true),
        ];
        for (from, to, expected) in cases {
            assert_eq!(is_worth_resizing(from, to), expected, "{from} to {to}");
        }
    }

    /// Paths and contents.
    type Files = Vec<(&'static str, &'static str)>;

    fn machine_with(files: &[(&str, &str)]) -> Option<u64> {
        available_bytes(&|path: &Path| {
            let (_, text) = files.iter().find(|(name, _)| Path::new(name) == path)?;
            Some((*text).to_owned())
        })
    }

    const MEMINFO: (&str, &str) = (
        "/proc/meminfo",
        "MemTotal:       16384 kB\nMemFree:         1000 kB\nMemAvailable:    8192 kB\n",
    );

    #[test]
    fn tightest_of_machine_and_control_groups_counts() {
        let unlimited = "9223372036854771712\n";
        let cases: [(&str, Files, Option<u64>); 7] = [
            ("nothing readable", vec![], None),
            ("machine alone", vec![MEMINFO], Some(8192 << 10)),
            (
                "version 2 without limit",
                vec![
                    MEMINFO,
                    ("/proc/self/cgroup", "0::/a\n"),
                    ("/sys/fs/cgroup/a/memory.max", "max\n"),
                    ("/sys/fs/cgroup/a/memory.current", "4096\n"),
                ],
                Some(8192 << 10),
            ),
            (
                "version 2, limit of the group above",
                vec![
                    MEMINFO,
                    ("/proc/self/cgroup", "0::/a/b\n"),
                    ("/sys/fs/cgroup/a/memory.max", "1000000\n"),
                    ("/sys/fs/cgroup/a/memory.current", "400000\n"),
                    (
                        "/sys/fs/cgroup/a/memory.stat",
                        "anon 300000\ninactive_file 100000\n",
                    ),
                    ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
                ],
                Some(700_000),
            ),
            (
                "version 2, inside a container",
                vec![
                    MEMINFO,
                    ("/proc/self/cgroup", "0::/\n"),
                    ("/sys/fs/cgroup/memory.max", "1000000\n"),
                    ("/sys/fs/cgroup/memory.current", "2000000\n"),
                ],
                Some(0),
            ),
            (
                "version 1",
                vec![
                    MEMINFO,
                    (
                        "/proc/self/cgroup",
                        "5:cpu,cpuacct:/x\n4:memory:/x\n1:name=systemd:/x\n",
                    ),
                    ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2000000\n"),
                    ("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "500000\n"),
                    (
                        "/sys/fs/cgroup/memory/x/memory.stat",
                        "inactive_file 1\ntotal_inactive_file 100000\n",
                    ),
                ],
                Some(1_600_000),
            ),
            (
                "version 1 without limit",
                vec![
                    MEMINFO,
                    ("/proc/self/cgroup", "4:memory:/\n"),
                    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited),
                    ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n"),
                ],
                Some(8192 << 10),
            ),
        ];
        for (name, files, expected) in cases {
            assert_eq!(machine_with(&files), expected, "{name}");
        }
    }
}
