//! Memory: what zones and PHP want against what there is; swap, control group, tmpfs.

use std::path::Path;

use crate::Subject;
use crate::finding::Finding;
use crate::machine::Machine;

/// What a PHP worker of a usual application takes beside what it shares with others.
const WORKER_BYTES: u64 = 64 << 20;
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

/// The smallest `memory.max`.
fn group_limit(machine: &Machine) -> Option<u64> {
    let limits = groups(machine).into_iter().filter_map(|group| {
        let limit = machine.read(&format!("{}/memory.max", group.trim_end_matches('/')))?;
        limit.trim().parse::<u64>().ok()
    });
    limits.min()
}

fn demand(subject: &Subject, total: Option<u64>, group: Option<u64>) -> Option<Finding> {
    let zones: u64 = subject
        .zones
        .iter()
        .filter_map(|zone| zone.memory_bytes)
        .sum();
    let workers: u64 = subject.pools.iter().filter_map(|pool| pool.workers).sum();
    let wanted = zones.saturating_add(workers.saturating_mul(WORKER_BYTES));
    let (limit, name, of) = match (group, total) {
        (Some(group), total) if total.is_none_or(|total| group < total) => {
            (group, "group-memory", "The control group allows")
        }
        (_, Some(total)) => (total, "memory", "The machine has"),
        _ => return None,
    };
    (wanted > limit / 10 * 9).then(|| {
        Finding::error(
            name,
            format!(
                "{of} {} MB; {} MB are asked for: {} MB for stored pages, and {workers} PHP workers.",
                limit / MEGABYTE,
                wanted / MEGABYTE,
                zones / MEGABYTE
            ),
        )
        .because(format!(
            "A worker of a usual application takes about {} MB. If all of them work, the kernel swaps, or kills one of \
             the processes.",
            WORKER_BYTES / MEGABYTE
        ))
        .mended_by(format!(
            "php_pool: workers {};  or memory={}m in *_cache_path",
            (limit / 10 * 7).saturating_sub(zones).checked_div(WORKER_BYTES).unwrap_or(1).max(1),
            (limit / MEGABYTE / 4).max(1)
        ))
    })
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
                    "A stored page that was swapped out takes milliseconds in the place of microseconds: a hit becomes as \
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
        let size = mount
            .filter(|it| it.kind == "tmpfs")
            .and_then(|it| it.size_bytes);
        if let (Some(size), Some(wanted)) = (size, zone.memory_bytes)
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
                .mended_by(format!("mount -o remount,size={}m /dev/shm", wanted / MEGABYTE)),
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
