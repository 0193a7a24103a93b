//! How much memory this process may use: the machine's memory, or less if its own control group, or
//! one that the group is in, has a limit (`MemoryMax=` of a service, `--memory` of a container;
//! cgroup v2 and v1).

use std::fmt;
use std::path::{Path, PathBuf};

/// The usual mount point of control groups.
const MOUNT: &str = "/sys/fs/cgroup";
/// Groups within groups that are looked at; systemd's are five deep.
const MAX_DEPTH: usize = 64;

/// The available memory, and the source of that number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    pub bytes: u64,
    pub source: LimitSource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitSource {
    Machine,
    /// The file that holds the limit.
    ControlGroup(PathBuf),
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.bytes >> 20;
        match &self.source {
            LimitSource::Machine => write!(f, "the machine's {megabytes} MB"),
            LimitSource::ControlGroup(file) => {
                write!(f, "the {megabytes} MB that {} allows", file.display())
            }
        }
    }
}

impl MemoryLimit {
    /// Returns the limit of this process; `None` if the system does not report one.
    pub fn observe() -> Option<MemoryLimit> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        machine()
            .into_iter()
            .chain(of_groups(Path::new(MOUNT), &groups))
            .min_by_key(|limit| limit.bytes)
    }
}

fn machine() -> Option<MemoryLimit> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(MemoryLimit {
        bytes: kilobytes.checked_mul(1024)?,
        source: LimitSource::Machine,
    })
}

/// The lowest limit of the groups that `groups` (`/proc/PID/cgroup`) names and of those above
/// them, up to the mount.
fn of_groups(mount: &Path, groups: &str) -> Option<MemoryLimit> {
    let candidates = groups.lines().flat_map(|line| {
        // `0::/path` (v2), `4:memory:/path` (v1): number, controllers, path.
        let mut parts = line.splitn(3, ':');
        let (number, controllers) = (parts.next(), parts.next().unwrap_or_default());
        let path = parts.next().unwrap_or_default();
        let is_v1 = controllers.split(',').any(|name| name == "memory");
        let roots: &[(&str, &str)] = match (number, controllers) {
            (Some("0"), "") => &[("", "memory.max"), ("unified", "memory.max")],
            _ if is_v1 => &[("memory", "memory.limit_in_bytes")],
            _ => &[],
        };
        roots
            .iter()
            .flat_map(|(root, file)| upwards(mount.join(root), path, file))
            .collect::<Vec<_>>()
    });
    candidates
        .filter_map(|file| {
            let bytes = std::fs::read_to_string(&file).ok()?.trim().parse().ok()?;
            let source = LimitSource::ControlGroup(file);
            Some(MemoryLimit { bytes, source })
        })
        .min_by_key(|limit| limit.bytes)
}

/// `file` in the group at `path` and in each one above it. Inside a container the path may be one
/// of the machine's: its folders are not there then, and the mount itself is the group.
fn upwards(root: PathBuf, path: &str, file: &str) -> Vec<PathBuf> {
    let names = path
        .split('/')
        .filter(|name| !matches!(*name, "" | "." | ".."));
    let mut folder = root;
    let mut files = vec![folder.join(file)];
    for name in names.take(MAX_DEPTH) {
        folder.push(name);
        files.push(folder.join(file));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_a_group_and_those_above_it_counts() {
        let mount = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let file = mount.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        put("system.slice/memory.max", "max\n");
        put("system.slice/mayfly.service/memory.max", "268435456\n");
        put("user.slice/memory.max", "1073741824\n");
        put("user.slice/user-0.slice/memory.max", "max\n");
        put("memory/memory.limit_in_bytes", "9223372036854771712\n");
        put("memory/docker/x/memory.limit_in_bytes", "536870912\n");
        put("unified/hybrid/memory.max", "134217728\n");
        for (groups, wanted) in [
            ("0::/system.slice/mayfly.service\n", Some(256)),
            ("0::/user.slice/user-0.slice/session.scope\n", Some(1024)),
            ("0::/\n", None),
            ("0::/../../etc\n", None),
            ("4:cpu,memory:/docker/x\n3:cpuset:/\n", Some(512)),
            (
                "4:memory:/docker/y\n",
                Some(9_223_372_036_854_771_712 >> 20),
            ),
            ("9:name=systemd:/docker/x\n0::/hybrid\n", Some(128)),
            ("nonsense\n\n::\n", None),
        ] {
            let found = of_groups(mount.path(), groups).map(|limit| limit.bytes >> 20);
            assert_eq!(found, wanted, "{groups:?}");
        }
    }

    #[test]
    fn this_machine_has_some_memory() {
        assert!(MemoryLimit::observe().is_some_and(|limit| limit.bytes > 0));
    }
}
