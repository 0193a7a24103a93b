//! Faults that keep several machines from sharing purges (`cache_nodes`): the engine, and this machine's
//! clock.

use std::time::Duration;

use live_state::nodes;
use machine_check::Finding;
use rustix::time::{ClockId, Timespec, clock_gettime};
use site::Site;

/// How long two clocks of this machine are compared.
const COMPARED_FOR: Duration = Duration::from_millis(400);
/// Two readings within this many seconds are of the same moment.
const SAME_MOMENT_SECONDS: f64 = 1e-4;
const MAX_READINGS: usize = 1000;
/// Clocks of two nodes may differ in speed by less than a hundredth: each by half of that.
const MAX_DIFFERENCE: f64 = 0.005;

pub fn check(site: &Site) -> Vec<Finding> {
    let Some(terms) = &site.http.cache_nodes else {
        return Vec::new();
    };
    let mut findings: Vec<Finding> = clock_speed().into_iter().collect();
    let facts = match nodes::administer(terms, async |engine| Ok(engine.facts().clone())) {
        Ok(facts) => facts,
        Err(why) => {
            findings.push(
                Finding::error("nodes-engine", "The engine of cache_nodes does not answer.")
                    .because(format!(
                        "Without it nothing is answered from memory after 2 s: {why}"
                    ))
                    .mended_by("start it, and see that this machine and its account may reach it"),
            );
            return findings;
        }
    };
    if facts.is_replica {
        findings.push(
            Finding::error("nodes-replica", "The engine of cache_nodes is a replica.")
                .because("It takes 0 purges: no node gets a lease.")
                .mended_by(
                    "name the server that it follows, or all Sentinels: cache_nodes sentinel://...",
                ),
        );
    }
    if facts.may_lose_log() {
        findings.push(
            Finding::error(
                "nodes-eviction",
                format!("The engine of cache_nodes evicts by {}.", facts.eviction),
            )
            .because(format!(
                "When its {} MB are full it may throw the log of purges away: all nodes begin empty then.",
                facts.memory_max >> 20
            ))
            .mended_by("maxmemory-policy volatile-lru, which spares what has no time to live"),
        );
    }
    if terms.page_key.is_some() && (facts.may_refuse_purges() || facts.memory_max == 0) {
        findings.push(
            Finding::warning("nodes-memory", "Shared pages may fill the engine of cache_nodes.")
                .because("A full engine refuses purges, or takes the memory of its machine: 1 page has up to 1 MB.")
                .mended_by("maxmemory 1gb and maxmemory-policy volatile-lru"),
        );
    }
    findings
}

/// The clock that leases are measured with, beside the one that nothing adjusts.
fn clock_speed() -> Option<Finding> {
    let before = both_clocks()?;
    std::thread::sleep(COMPARED_FOR);
    let after = both_clocks()?;
    too_different((after.0 - before.0) / (after.1 - before.1))
}

/// Readings of both, in seconds, that nothing came between.
fn both_clocks() -> Option<(f64, f64)> {
    let raw = || seconds(clock_gettime(ClockId::MonotonicRaw));
    for _ in 0..MAX_READINGS {
        let before = raw();
        let boot = seconds(clock_gettime(ClockId::Boottime));
        if raw() - before < SAME_MOMENT_SECONDS {
            return Some((boot, before));
        }
    }
    None
}

fn too_different(speed: f64) -> Option<Finding> {
    let difference = (speed - 1.0).abs();
    (difference > MAX_DIFFERENCE).then(|| {
        Finding::error("nodes-clock", "This machine's clock does not keep its speed.")
            .because(format!(
                "It differs by {:.1} % from the clock of the hardware: a lease of 2 s may outlast the wait of a purge \
                 for it, and an old page is shown.",
                difference * 100.0
            ))
            .mended_by("adjtimex --tick 10000, and see what else sets the clock")
    })
}

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_may_be_adjusted_a_little() {
        for (speed, is_told) in [
            (1.0005, false),
            (0.9995, false),
            (1.006, true),
            (0.99, true),
        ] {
            assert_eq!(too_different(speed).is_some(), is_told, "{speed}");
        }
    }
}
