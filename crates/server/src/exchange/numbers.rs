//! The numbers that crates/numbers has a table of, as they are now. Everything that shows them asks
//! here: `metrics`, `dashboard`, the control socket and the history.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::UNIX_EPOCH;

use fair_queue::{LINE_NAMES, UseKind};
use http_cache::Zone;
use numbers::table::{
    CACHE_STATUSES, CLASSES, CONNECTION_STATES, HANDSHAKE_RESULTS, LIMITS, LOG_LEVELS, OUTCOMES,
    PROTOCOLS, REFUSALS, SPAN_RESULTS, STANDINGS, STATUS_CLASSES, TRIAL_RESULTS,
};
use numbers::{HistoryReport, Number, Pages, Snapshot, TopEntry};
use upstream::{Group, ServerSnapshot, Standing};

use crate::exchange::active_configuration::ActiveConfiguration;
use learning::LearnedPool;
use live_state::disk_pages::{DiskPages, DiskState};
use live_state::nodes::Nodes;
use live_state::stats::Stats;

/// Statements of each pool that writes concern most often.
const NOISY_EACH: usize = 20;
/// Clients that are shown, of all groups together.
const CLIENTS_SHOWN: usize = 20;
/// Rows of what PHP is used for.
const USES_SHOWN: usize = 100;

/// All numbers.
pub fn snapshot(configuration: &ActiveConfiguration) -> Snapshot {
    let mut snapshot = Snapshot {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        at: clock::wall_now(),
        ..Snapshot::default()
    };
    let live = &configuration.live;
    requests(&mut snapshot, &live.stats);
    connections(&mut snapshot, configuration);
    for zone in live.zones.iter() {
        of_zone(&mut snapshot, zone);
    }
    if !live.zones.is_empty() {
        of_evidence(&mut snapshot, live.alive_zones.seen_pages.evidence.counts());
    }
    if let Some(nodes) = &live.nodes {
        of_nodes(&mut snapshot, nodes);
    }
    for group in live.groups.groups() {
        of_group(&mut snapshot, group);
    }
    if let Some(pools) = live.groups.learned() {
        pools
            .pools()
            .for_each(|pool| of_learned(&mut snapshot, pool));
    }
    let spans = &live.stats.spans;
    let spans = [&spans.sent, &spans.dropped, &spans.failed].map(|count| count.load(Relaxed));
    snapshot.put_each(Number::Spans, SPAN_RESULTS, spans);
    snapshot.put(Number::ResidentBytes, &[], resident_bytes());
    let started_at = live.stats.started_at.duration_since(UNIX_EPOCH);
    let started_at = started_at.unwrap_or_default().as_secs_f64();
    snapshot.put(Number::StartTime, &[], started_at);
    let workers = live.stats.workers.load(Relaxed);
    snapshot.put(Number::Workers, &[], workers as f64);
    snapshot
}

/// Looks at the numbers for the history, if it is time.
pub fn keep_history(configuration: &ActiveConfiguration) {
    let is_due = |now| configuration.live.stats.history.lock().is_due(now);
    if is_due(clock::wall_now()) {
        let snapshot = snapshot(configuration);
        configuration.live.stats.history.lock().note(&snapshot);
    }
}

/// The looks of the last hour that came after `since` (unix milliseconds). A server without
/// visitors looks seldom; each call takes a look of its own.
pub fn history(configuration: &ActiveConfiguration, since: u64) -> HistoryReport {
    keep_history(configuration);
    configuration.live.stats.history.lock().report(since)
}

/// The pages that stand out.
pub fn pages(configuration: &ActiveConfiguration) -> Pages {
    let mut pages = configuration.live.stats.pages.first(clock::now());
    let pools = configuration.live.groups.learned();
    let pools = pools.iter().flat_map(|pools| pools.pools());
    let noisy = pools.flat_map(|pool| pool.noisiest(NOISY_EACH));
    pages.noisy = noisy
        .map(|noisy| TopEntry {
            weight: u64::from(noisy.writes) * u64::from(noisy.pages),
            count: noisy.writes.into(),
            name: noisy.statement,
        })
        .collect();
    pages
        .noisy
        .sort_by_key(|entry| std::cmp::Reverse(entry.weight));
    (pages.clients, pages.uses) = clients_and_uses(configuration);
    pages
}

/// Returns the clients of upstreams that serve clients in turn, and what PHP is used for there.
fn clients_and_uses(configuration: &ActiveConfiguration) -> (Vec<TopEntry>, Vec<TopEntry>) {
    let now = clock::now();
    let (mut clients, mut uses) = (Vec::new(), Vec::new());
    for handle in configuration.live.groups.iter() {
        let group = &handle.group;
        if !group.has_turns() {
            continue;
        }
        let turns = group.turns(CLIENTS_SHOWN, now);
        let at = group.name();
        clients.extend(turns.top.iter().map(|turn| {
            let (line, of) = (LINE_NAMES[turn.line], &turn.kind);
            let (under_way, waiting, latest) = (turn.in_flight, turn.waiting, &turn.latest);
            let name =
                format!("{line} {of} at {at} ({under_way} under way, {waiting} wait) {latest}");
            entry(name, turn.minute_ms, turn.hour_ms)
        }));
        if uses.len() < USES_SHOWN
            && let Some((limit, reason)) = turns.limit
        {
            let counts = turns
                .lines
                .iter()
                .map(|(waiting, in_flight, _)| (waiting, in_flight));
            let (waiting, in_flight) = counts.fold((0, 0), |(all, busy), (waits, goes)| {
                (all + waits, busy + goes)
            });
            let reason = reason.word();
            let name =
                format!("limit {limit} ({reason}), {in_flight} under way, {waiting} wait at {at}");
            let parts = turns.uses.iter().map(|it| (it.minute_ms, it.hour_ms, it));
            let (minute, hour) = parts
                .filter(|(_, _, it)| it.kind == UseKind::Class)
                .fold((0.0, 0.0), |(minute, hour), (m, h, _)| {
                    (minute + m, hour + h)
                });
            uses.push(entry(name, minute, hour));
            uses.extend(turns.uses.iter().map(|it| {
                let name = format!("{} {} at {at}", it.kind.word(), it.name);
                entry(name, it.minute_ms, it.hour_ms)
            }));
        }
    }
    clients.sort_by_key(|entry| std::cmp::Reverse(entry.weight));
    clients.truncate(CLIENTS_SHOWN);
    uses.truncate(USES_SHOWN);
    (clients, uses)
}

fn entry(name: String, minute_ms: f64, hour_ms: f64) -> TopEntry {
    TopEntry {
        name,
        weight: minute_ms as u64,
        count: hour_ms as u64,
    }
}

fn read(counts: &[AtomicU64]) -> impl Iterator<Item = u64> {
    counts.iter().map(|count| count.load(Relaxed))
}

fn requests(snapshot: &mut Snapshot, stats: &Stats) {
    let ended = &stats.ended;
    snapshot.put_each(Number::Requests, CACHE_STATUSES, ended.by_cache());
    snapshot.put_each(Number::Responses, STATUS_CLASSES, ended.by_class());
    snapshot.put(Number::SentBytes, &[], ended.sent_bytes() as f64);
    snapshot.put(Number::ReceivedBytes, &[], ended.received_bytes() as f64);
    snapshot.put_distribution(Number::HitDuration, &[], &ended.hits());
    snapshot.put_distribution(Number::MissDuration, &[], &ended.misses());
    snapshot.put(Number::SparedSeconds, &[], ended.spared().as_secs_f64());
    snapshot.put_each(Number::RefusedRequests, LIMITS, read(&stats.refused));
    snapshot.put_each(Number::LogLines, LOG_LEVELS, read(&stats.log_lines));
}

fn connections(snapshot: &mut Snapshot, configuration: &ActiveConfiguration) {
    let stats = &configuration.live.stats;
    let census = configuration.connections.census();
    let states = [census.reading, census.writing, census.waiting];
    let states = states.map(|count| count as u64);
    snapshot.put_each(Number::OpenConnections, CONNECTION_STATES, states);
    let accepted = stats.accepted.load(Relaxed);
    snapshot.put(Number::AcceptedConnections, &[], accepted as f64);
    snapshot.put_each(Number::Connections, PROTOCOLS, read(&stats.connections));
    snapshot.put_each(
        Number::TlsHandshakes,
        HANDSHAKE_RESULTS,
        read(&stats.handshakes),
    );
}

fn of_zone(snapshot: &mut Snapshot, zone: &Zone) {
    let stats = zone.stats();
    let name = zone.config().name.as_str();
    for (number, count) in [
        (Number::ZoneUsedBytes, stats.used_bytes),
        (Number::ZoneBudgetBytes, stats.budget_bytes),
        (Number::ZoneStoredResponses, stats.responses),
        (Number::ZoneStores, stats.stored),
        (Number::ZoneEvictions, stats.evicted),
        (Number::ZoneSwept, stats.swept),
        (Number::ZonePurged, stats.purged),
        (Number::ZoneRefreshes, stats.refreshes),
        (Number::ZoneCollapsed, stats.collapsed),
        (Number::ZoneFetches, stats.in_flight),
    ] {
        snapshot.put(number, &[name], count as f64);
    }
    if let Some(pages) = DiskPages::of(zone) {
        let disk = pages.stats().unwrap_or_default();
        let is_serving = pages.state() == DiskState::Serving;
        for (number, count) in [
            (Number::ZoneDiskHits, stats.tier_hits),
            (Number::ZoneDiskResponses, disk.records),
            (Number::ZoneDiskBytes, disk.bytes),
            (Number::ZoneDiskWrites, disk.written),
            (
                Number::ZoneDiskFailures,
                disk.outages + disk.damaged + disk.reads_given_up,
            ),
            (Number::ZoneDiskIsServing, u64::from(is_serving)),
        ] {
            snapshot.put(number, &[name], count as f64);
        }
    }
}

fn of_nodes(snapshot: &mut Snapshot, nodes: &Nodes) {
    let Some(state) = nodes.state() else {
        return;
    };
    let holds_lease = state.lease_left.is_some_and(|left| left > 0);
    for (number, count) in [
        (Number::NodesIsConnected, u64::from(state.is_connected)),
        (Number::NodesLeaseIsHeld, u64::from(holds_lease)),
        (Number::NodesMembers, state.nodes),
        (
            Number::NodesBehind,
            state.tip.saturating_sub(state.position),
        ),
        (Number::NodesWaiting, state.waiting),
        (Number::NodesConfirmed, state.confirmed),
        (Number::NodesApplied, state.applied),
        (Number::NodesVoids, state.voided),
        (Number::NodesLostLeases, state.leases_lost),
    ] {
        snapshot.put(number, &[], count as f64);
    }
    if let Some(renewal) = state.renewal {
        snapshot.put(Number::NodesRenewal, &[], renewal.as_secs_f64());
    }
}

fn of_evidence(snapshot: &mut Snapshot, counts: page_evidence::Counts) {
    for (number, count) in [
        (Number::EvidenceOwnRequests, counts.own_runs),
        (Number::EvidenceAgreed, counts.agreed),
        (Number::EvidenceTrialRequests, counts.trial_requests),
    ] {
        snapshot.put(number, &[], count as f64);
    }
    let others = counts.trials.saturating_sub(counts.found);
    for (result, count) in TRIAL_RESULTS.iter().zip([counts.found, others]) {
        snapshot.put(Number::EvidenceTrials, &[result], count as f64);
    }
}

fn of_learned(snapshot: &mut Snapshot, pool: &LearnedPool) {
    let (name, counts) = (pool.name(), pool.counts());
    for (number, count) in [
        (Number::LearnedPages, counts.pages),
        (Number::LearnedSuspects, counts.suspect),
        (Number::LearnedKept, counts.kept),
        (Number::LearnedRemovals, counts.removed),
        (Number::LearnedRenders, counts.learned),
        (Number::LearnedWrites, counts.writes),
        (Number::LearnedLogged, counts.logged),
        (Number::LearnedLogs, counts.followed),
        (Number::LearnedMatches, counts.matched),
        (Number::LearnedAudits, counts.audits),
        (Number::LearnedFreshened, counts.freshened),
    ] {
        snapshot.put(number, &[name], count as f64);
    }
    for (reason, count) in learning::Reason::ALL.iter().zip(counts.not_learned) {
        snapshot.put(
            Number::NotLearnedRenders,
            &[name, reason.word()],
            count as f64,
        );
    }
    for (result, count) in learning::Comparison::WORDS.iter().zip(counts.compared) {
        snapshot.put(Number::LearnedComparisons, &[name, result], count as f64);
    }
    for (state, count) in learning::SHAPE_STATES.iter().zip(counts.shapes) {
        snapshot.put(Number::LearnedShapes, &[name, state], count as f64);
    }
    for (result, count) in learning::ReplayEnd::WORDS.iter().zip(counts.replays) {
        snapshot.put(Number::LearnedReplays, &[name, result], count as f64);
    }
}

fn of_group(snapshot: &mut Snapshot, group: &Group) {
    let (name, counts) = (group.name(), group.counts());
    for (outcome, count) in OUTCOMES.iter().zip(counts.outcomes()) {
        snapshot.put(Number::UpstreamRequests, &[name, outcome], count as f64);
    }
    for (reason, count) in REFUSALS.iter().zip(counts.refusals()) {
        snapshot.put(Number::UpstreamRefused, &[name, reason], count as f64);
    }
    if group.has_turns() {
        let turns = group.turns(0, clock::now());
        for (class, (waiting, _, php_ms)) in CLASSES.iter().zip(turns.lines) {
            snapshot.put(Number::UpstreamWaiting, &[name, class], waiting as f64);
            let seconds = php_ms as f64 / 1000.0;
            snapshot.put(Number::UpstreamClassSeconds, &[name, class], seconds);
        }
        if let Some((limit, _)) = turns.limit {
            snapshot.put(Number::UpstreamLimit, &[name], limit as f64);
        }
    }
    let servers = group.snapshot(clock::now());
    let busy: usize = servers.iter().map(|server| server.in_flight).sum();
    let idle: usize = servers.iter().map(room).sum();
    snapshot.put(Number::UpstreamBusy, &[name], busy as f64);
    snapshot.put(Number::UpstreamIdle, &[name], idle as f64);
    let queued = group.queue_length();
    snapshot.put(Number::UpstreamQueued, &[name], queued as f64);
    for standing in STANDINGS {
        let count = servers
            .iter()
            .filter(|server| word(server.standing) == *standing);
        snapshot.put(
            Number::UpstreamServers,
            &[name, standing],
            count.count() as f64,
        );
    }
    snapshot.put_distribution(Number::UpstreamQueueDuration, &[name], &counts.waits());
    snapshot.put_distribution(Number::UpstreamHeadDuration, &[name], &counts.heads());
}

/// Returns how many requests more a server would take.
fn room(server: &ServerSnapshot) -> usize {
    match (server.standing, server.max_conns) {
        (Standing::Ready, Some(most)) => most.saturating_sub(server.in_flight),
        _ => 0,
    }
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Ready => "ready",
        Standing::Busy => "busy",
        Standing::Failed => "failed",
        Standing::Checking => "checking",
        Standing::Unhealthy => "unhealthy",
        Standing::Down => "down",
    }
}

/// Memory of this process; 0 if the system does not tell.
fn resident_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = lines
        .next()
        .and_then(|rest| rest.trim().strip_suffix(" kB"));
    let kilobytes = kilobytes.and_then(|text| text.parse::<u64>().ok());
    (kilobytes.unwrap_or(0) << 10) as f64
}

#[cfg(test)]
mod tests {
    use numbers::table::{COMPARISONS, NOT_LEARNED, REPLAYS};

    #[test]
    fn the_classes_are_those_of_the_table() {
        assert_eq!(fair_queue::LINE_NAMES, numbers::table::CLASSES);
    }

    #[test]
    fn the_words_of_learned_pages_are_those_of_the_table() {
        let reasons = learning::Reason::ALL.map(learning::Reason::word);
        assert_eq!(reasons, NOT_LEARNED);
        assert_eq!(learning::Comparison::WORDS, COMPARISONS);
        assert_eq!(learning::ReplayEnd::WORDS, REPLAYS);
    }
}
