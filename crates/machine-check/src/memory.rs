//! Memory: the need of zones and PHP against the memory there is; swap, control group,
//! tmpfs.

use std::path::Path;

use crate::finding::Finding;
use crate::machine::Machine;
use crate::{Subject, Workers};

/// The memory of a PHP worker of a usual application, beside its shared part.
const WORKER_BYTES: u64 = 64 << 20;
/// Zones without a configured size share a quarter of the memory.
const UNNAMED_SHARE: u64 = 4;
/// A small machine without swap has nowhere to go when PHP needs more for a moment.
const SMALL_MACHINE_BYTES: u64 = 2 << 30;
const MEGABYTE: u64 = 1 << 20;

pub fn check(machine: &Machine, subject: &Subject, findings: &mut Vec<Finding>) {
    let total = meminfo(machine, "MemTotal");
    let group = group_limit(machine);
    findings.extend(demand(subject, total, group));
    findings.extend(swap(machine, total));
    findings.extend(killed(machine));
    findings.extend(tmpfs(machine, subject));
}

/// A line of `/proc/meminfo`, in bytes.
fn meminfo(machine: &Machine, name: &str) -> Option<u64> {
    let text = machine.read("proc/meminfo")?;
    let line = text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        rest.strip_prefix(':')
    })?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// The folders of the process's control group, from its own to the root.
fn groups(machine: &Machine) -> Vec<String> {
    let Some(text) = machine.read("proc/self/cgroup") else {
        return Vec::new();
    };
    let own = text.lines().find_map(|line| line.strip_prefix("0::"));
    let own = Path::new(own.unwrap_or("/").trim());
    let folder = |group: &Path| format!("sys/fs/cgroup{}", group.display());
    own.ancestors().map(folder).collect()
}

/// The smallest `memory.max`, or its equivalent in the first version of control groups.
fn group_limit(machine: &Machine) -> Option<u64> {
    let groups = groups(machine).into_iter();
    let files = groups.map(|group| format!("{}/memory.max", group.trim_end_matches('/')));
    let limits = files.chain(first_version_limits(machine));
    let limits = limits.filter_map(|file| machine.read(&file)?.trim().parse::<u64>().ok());
    limits.min()
}

/// `5:memory:/docker/abc`
fn first_version_limits(machine: &Machine) -> Vec<String> {
    let text = machine.read("proc/self/cgroup").unwrap_or_default();
    let own = text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_memory = controllers.split(',').any(|name| name == "memory");
        is_memory.then(|| Path::new(path.trim()).to_owned())
    });
    let file = |group: &Path| {
        let group = group.display().to_string();
        let group = group.trim_end_matches('/');
        format!("sys/fs/cgroup/memory{group}/memory.limit_in_bytes")
    };
    own.map_or_else(Vec::new, |own| own.ancestors().map(file).collect())
}

/// The memory that the configuration can use, in bytes.
#[derive(Default)]
struct Demand {
    zones: u64,
    workers: u64,
    /// The memory of workers in pools with a fixed number of them.
    worker_bytes: u64,
    /// The memory of pools with `workers auto`.
    auto_bytes: u64,
    /// Pools with `workers auto`.
    auto_pools: u64,
}

impl Demand {
    fn of(subject: &Subject, limit: u64) -> Demand {
        let mut demand = Demand::default();
        let named = subject.zones.iter().filter_map(|zone| zone.memory_bytes);
        demand.zones = named.sum();
        if subject.zones.iter().any(|zone| zone.memory_bytes.is_none()) {
            demand.zones = demand.zones.saturating_add(limit / UNNAMED_SHARE);
        }
        for pool in &subject.pools {
            let (workers, bytes) = match pool.workers {
                Workers::Count(workers) => (workers, WORKER_BYTES),
                Workers::Auto { chosen, bytes_each } => (chosen, bytes_each),
            };
            let bytes = workers.saturating_mul(bytes);
            demand.workers = demand.workers.saturating_add(workers);
            match pool.workers {
                Workers::Count(_) => {
                    demand.worker_bytes = demand.worker_bytes.saturating_add(bytes)
                }
                Workers::Auto { .. } => {
                    demand.auto_bytes = demand.auto_bytes.saturating_add(bytes);
                    demand.auto_pools += 1;
                }
            }
        }
        demand
    }
}

fn demand(subject: &Subject, total: Option<u64>, group: Option<u64>) -> Option<Finding> {
    let (limit, name, of) = match (group, total) {
        (Some(group), total) if total.is_none_or(|total| group < total) => {
            (group, "group-memory", "The control group allows")
        }
        (_, Some(total)) => (total, "memory", "The machine has"),
        _ => return None,
    };
    let Demand {
        zones,
        workers,
        worker_bytes,
        auto_bytes,
        auto_pools,
    } = Demand::of(subject, limit);
    let fixed = zones.saturating_add(worker_bytes);
    let wanted = fixed.saturating_add(auto_bytes);
    let most = limit / 10 * 9;
    if wanted <= most {
        return None;
    }
    let of_auto = match auto_pools {
        0 => "",
        _ => " (workers auto chooses so many)",
    };
    let what = format!(
        "{of} {} MB; {} MB are asked for: {} MB for stored pages, and {workers} PHP workers{of_auto}.",
        limit / MEGABYTE,
        wanted / MEGABYTE,
        zones / MEGABYTE
    );
    let size = match workers {
        0 => WORKER_BYTES,
        _ => worker_bytes.saturating_add(auto_bytes) / workers,
    };
    let fitting = (limit / 10 * 7).saturating_sub(zones);
    let fitting = fitting.checked_div(WORKER_BYTES).unwrap_or(1).max(1);
    // auto measures its workers later, and takes fewer where they leave too little.
    let finding = match fixed > most {
        true => Finding::error(name, what),
        false => Finding::warning(name, what),
    };
    Some(
        finding
            .because(format!(
                "A worker of a usual application takes about {} MB. If all of them work, the kernel swaps, or kills one \
                 of the processes.",
                size / MEGABYTE
            ))
            .mended_by(format!(
                "php_pool: workers {};  or memory={}m in *_cache_path",
                match auto_pools {
                    0 | 1 => fitting.to_string(),
                    // Each pool chooses as if it were alone.
                    _ => format!("N, {fitting} in all pools together"),
                },
                (limit / MEGABYTE / 4).max(1)
            )),
    )
}

fn swap(machine: &Machine, total: Option<u64>) -> Option<Finding> {
    let (all, free) = (
        meminfo(machine, "SwapTotal")?,
        meminfo(machine, "SwapFree")?,
    );
    let total = total?;
    let used = all.saturating_sub(free);
    if used > total / 10 {
        return Some(
            Finding::warning("swap-used", format!("{} MB are swapped out.", used / MEGABYTE))
                .because(
                    "A stored page that was swapped out takes milliseconds instead of microseconds: a hit becomes as \
                     slow as a miss.",
                )
                .mended_by("fewer PHP workers, or a smaller memory= in *_cache_path; then swapoff -a && swapon -a"),
        );
    }
    (all == 0 && total < SMALL_MACHINE_BYTES).then(|| {
        Finding::note(
            "no-swap",
            format!("There is no swap, and {} MB of memory.", total / MEGABYTE),
        )
        .because(
            "If PHP needs more for a second, the kernel kills a process. 1 GB of swap is room for what nobody uses.",
        )
        .mended_by("fallocate -l 1G /swapfile && chmod 600 /swapfile && mkswap /swapfile && swapon /swapfile")
    })
}

fn killed(machine: &Machine) -> Option<Finding> {
    let own = groups(machine).into_iter().next()?;
    let events = machine.read(&format!("{}/memory.events", own.trim_end_matches('/')))?;
    let kills = events
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?;
    let kills: u64 = kills.trim().parse().ok()?;
    (kills > 0).then(|| {
        Finding::error(
            "out-of-memory",
            format!(
                "The kernel has killed {kills} processes of this control group for want of memory."
            ),
        )
        .because("Each of them answered a visitor, with an error.")
        .mended_by("php_pool: fewer workers; journalctl -k -g 'Killed process' says which")
    })
}

fn tmpfs(machine: &Machine, subject: &Subject) -> Vec<Finding> {
    let mut findings = Vec::new();
    for zone in &subject.zones {
        let mount = machine.mount_of(&zone.path);
        let mount = mount.filter(|it| it.kind == "tmpfs");
        if let (Some(mount), Some(wanted)) = (mount, zone.memory_bytes)
            && let Some(size) = mount.size_bytes
            && size < wanted
        {
            findings.push(
                Finding::warning(
                    "tmpfs-size",
                    format!(
                        "The zone {} is to hold {} MB, and {} is on a tmpfs of {} MB.",
                        zone.name,
                        wanted / MEGABYTE,
                        zone.path.display(),
                        size / MEGABYTE
                    ),
                )
                .because(format!(
                    "Another server that reads this configuration, such as nginx, gets no space after {} MB.",
                    size / MEGABYTE
                ))
                .mended_by(format!(
                    "mount -o remount,size={}m {}",
                    wanted / MEGABYTE,
                    mount.point.display()
                )),
            );
        }
    }
    for folder in &subject.temporary_folders {
        let mount = machine.mount_of(folder);
        if let Some(mount) = mount.filter(|it| it.kind == "tmpfs") {
            let size = match mount.size_bytes {
                Some(size) => format!("{} MB", size / MEGABYTE),
                None => "50 %".to_owned(),
            };
            findings.push(
                Finding::note(
                    "tmpfs-temporary",
                    format!("{} is in memory (tmpfs).", folder.display()),
                )
                .because(format!(
                    "Large uploads and responses are kept there: they take up to {size} of the memory that PHP and stored pages need."
                ))
                .mended_by("client_body_temp_path and fastcgi_temp_path below /var/lib/mayfly"),
            );
        }
    }
    findings.dedup();
    findings
}
