//! Limits and settings of the kernel: open files, backlog, ports, clock, huge pages.

use std::collections::BTreeSet;

use crate::Subject;
use crate::finding::Finding;
use crate::machine::Machine;

/// Each visitor has a connection, and each that waits for PHP has another one.
const ENOUGH_FILES: u64 = 8192;
const FEW_FILES: u64 = 1024;
/// The usual backlog that servers ask for; nginx and Mayfly ask for 511.
const USUAL_BACKLOG: u64 = 511;
/// Fewer ports are used up by connections to upstreams that have just ended.
const ENOUGH_PORTS: u64 = 10_000;
/// Clocks that are read without a system call or a slow device.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"];
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";
/// Above this, the store asks for huge pages.
const LARGE_STORE_BYTES: u64 = 32 << 20;

pub fn check(machine: &Machine, subject: &Subject, findings: &mut Vec<Finding>) {
    findings.extend(open_files(machine, subject));
    findings.extend(backlog(machine, subject));
    findings.extend(ports(machine, subject));
    findings.extend(port_range(machine, subject));
    findings.extend(clock_source(machine));
    findings.extend(clock_is_set(machine));
    findings.extend(huge_pages(machine, subject));
}

fn open_files(machine: &Machine, subject: &Subject) -> Option<Finding> {
    let limits = machine.read("proc/self/limits")?;
    let line = limits.lines().find(|it| it.starts_with("Max open files"))?;
    // "Max open files   SOFT   HARD   files": the server raises the first to the second.
    let hard = line.split_whitespace().rev().nth(1)?;
    let hard: u64 = if hard == "unlimited" {
        u64::MAX
    } else {
        hard.parse().ok()?
    };
    let wanted = subject.open_files.unwrap_or(ENOUGH_FILES);
    // root may raise the limit, up to the number that the configuration sets.
    if hard >= wanted || subject.is_root && subject.open_files.is_some() {
        return None;
    }
    let what = format!("A process may open {hard} files; {wanted} are wanted.");
    let finding = match hard <= FEW_FILES {
        true => Finding::error("open-files", what),
        false => Finding::warning("open-files", what),
    };
    Some(
        finding
            .because(format!(
                "Each visitor needs one, and one more while PHP makes a page: with {hard}, the {}th visitor \
                 at the same time is turned away.",
                hard / 2 + 1
            ))
            .mended_by(format!(
                "worker_rlimit_nofile {wanted};  (started by root), or LimitNOFILE={wanted} in the unit: systemctl edit mayfly"
            )),
    )
}

fn backlog(machine: &Machine, subject: &Subject) -> Option<Finding> {
    let most = machine.number("proc/sys/net/core/somaxconn")?;
    let wanted = subject.backlog.max(USUAL_BACKLOG);
    (most < wanted).then(|| {
        Finding::warning(
            "backlog",
            format!("The kernel lets {most} new connections wait; {wanted} are asked for."),
        )
        .because(format!(
            "When a page is linked somewhere, visitor {} who comes within the same milliseconds has to \
             try again a second later.",
            most + 1
        ))
        .mended_by(format!(
            "sysctl -w net.core.somaxconn={}",
            wanted.max(4096)
        ))
    })
}

fn ports(machine: &Machine, subject: &Subject) -> Vec<Finding> {
    let mut findings = Vec::new();
    let first_free = machine.number("proc/sys/net/ipv4/ip_unprivileged_port_start");
    let taken = taken_ports(machine);
    let ports: BTreeSet<u16> = subject.ports.iter().map(|it| it.port()).collect();
    for port in ports {
        if let Some(first_free) = first_free
            && u64::from(port) < first_free
            && !subject.is_root
        {
            findings.push(
                Finding::warning("privileged-port", format!("Port {port} is for root alone."))
                    .because(format!(
                        "A start by this account fails: ports below {first_free} need a right that it does \
                         not have."
                    ))
                    .mended_by(
                        "start it as root (it serves as another account), or AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit",
                    ),
            );
        }
        if taken.contains(&port) && !subject.is_running {
            findings.push(
                Finding::error(
                    "port-taken",
                    format!("Another program listens on port {port}."),
                )
                .because("A start fails: two programs cannot listen on 1 port.")
                .mended_by(format!("ss -ltnp 'sport = :{port}'  says which; stop it")),
            );
        }
    }
    findings
}

/// TCP ports with a listener.
fn taken_ports(machine: &Machine) -> BTreeSet<u16> {
    const LISTENS: &str = "0A";
    let tables = ["proc/net/tcp", "proc/net/tcp6"].map(|path| machine.read(path));
    let lines = tables
        .iter()
        .flatten()
        .flat_map(|table| table.lines().skip(1));
    lines
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, state) = (words.next()?, words.nth(1)?);
            let (_, port) = local.rsplit_once(':')?;
            (state == LISTENS).then(|| u16::from_str_radix(port, 16).ok())?
        })
        .collect()
}

fn port_range(machine: &Machine, subject: &Subject) -> Option<Finding> {
    let range = machine.read("proc/sys/net/ipv4/ip_local_port_range")?;
    let mut numbers = range.split_whitespace().map(str::parse::<u64>);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let count = (last + 1).saturating_sub(first);
    (count < ENOUGH_PORTS && subject.has_php).then(|| {
        Finding::warning(
            "port-range",
            format!("Connections from here have {count} ports."),
        )
        .because(format!(
            "A port is free again 60 s after its connection ended: with more than {} connections in a second to \
             an upstream over TCP, the next one fails.",
            count / 60
        ))
        .mended_by("sysctl -w net.ipv4.ip_local_port_range='32768 60999'")
    })
}

fn clock_source(machine: &Machine) -> Option<Finding> {
    let source = machine.read(&format!("{CLOCKS}/current_clocksource"))?;
    let source = source.trim();
    SLOW_CLOCKS.contains(&source).then(|| {
        Finding::warning(
            "clock-source",
            format!("The clock of the kernel is {source}."),
        )
        .because("Each reading costs some 1000 ns instead of 20, and each request needs several.")
        .mended_by(format!(
            "echo tsc > {CLOCKS}/current_clocksource, if {CLOCKS}/available_clocksource names it"
        ))
    })
}

/// Checks only machines with systemd, which keeps the state: other machines have their
/// clocks set from outside.
fn clock_is_set(machine: &Machine) -> Option<Finding> {
    let is_known = machine.exists("run/systemd/system");
    let keepers = [
        "run/systemd/timesync/synchronized",
        "run/chrony",
        "run/chronyd.pid",
        "run/ntpd.pid",
        "run/openntpd.pid",
    ];
    let is_kept = keepers.iter().any(|path| machine.exists(path));
    (is_known && !is_kept).then(|| {
        Finding::warning("clock", "Nothing sets this machine's clock.")
            .because(
                "A clock drifts by up to some 10 s in a month, or by hours after a pause of a virtual machine: then \
                 certificates are refused, and Expires and Last-Modified of applications mislead.",
            )
            .mended_by("timedatectl set-ntp true")
    })
}

fn huge_pages(machine: &Machine, subject: &Subject) -> Option<Finding> {
    let enabled = machine.read("sys/kernel/mm/transparent_hugepage/enabled")?;
    let bytes: u64 = subject
        .zones
        .iter()
        .filter_map(|zone| zone.memory_bytes)
        .sum();
    (enabled.contains("[never]") && bytes >= LARGE_STORE_BYTES).then(|| {
        Finding::note("huge-pages", "The kernel gives no huge pages.")
            .because(format!(
                "The zones hold up to {} MB. In pages of 4 KB instead of 2 MB, finding a stored page takes more \
                 memory accesses: a hit costs a few percent more.",
                bytes >> 20
            ))
            .mended_by("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
    })
}
