//! The table: each number of the server has its definition here, and only here.
//!
//! A new number is an entry of the table, and a line in the server that fills it in
//! (`crates/server/src/exchange/numbers.rs`). Tests sweep the table, and
//! `MAYFLY_BLESS=1 cargo test -p numbers` writes `docs/metrics.md`.

use crate::definition::NumberKind::{Counter, Gauge, Histogram};
use crate::definition::{Definition, Label, Unit, Values};

/// The values of `cache`: `$upstream_cache_status`, in the order of its enum, and `none` where no
/// cache had a part in it.
pub const CACHE_STATUSES: &[&str] = &[
    "MISS",
    "BYPASS",
    "EXPIRED",
    "STALE",
    "UPDATING",
    "REVALIDATED",
    "HIT",
    "none",
];
/// The values of `class`, by the first digit of the status; `none`: nothing was answered.
pub const STATUS_CLASSES: &[&str] = &["none", "1xx", "2xx", "3xx", "4xx", "5xx"];
/// The values of `protocol`.
pub const PROTOCOLS: &[&str] = &["HTTP/1", "HTTP/2", "HTTP/3"];
/// The values of `level`, in the order of severity.
pub const LOG_LEVELS: &[&str] = &[
    "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug",
];
/// The values of `state`.
pub const CONNECTION_STATES: &[&str] = &["reading", "writing", "waiting"];
/// The values of `result` of handshakes.
pub const HANDSHAKE_RESULTS: &[&str] = &["complete", "failed"];
/// The values of `limit`.
pub const LIMITS: &[&str] = &["limit_req", "limit_conn"];
/// The values of `outcome`.
pub const OUTCOMES: &[&str] = &["success", "failure", "neutral"];
/// The values of `reason`.
pub const REFUSALS: &[&str] = &[
    "queue_full",
    "queue_timeout",
    "no_live_upstreams",
    "left_out",
];
/// The values of `class`: who waits for an upstream, those who are served first before others.
pub const CLASSES: &[&str] = &[
    "writer", "visitor", "fragment", "refresh", "crawler", "mirror",
];
/// The values of `result` of spans.
pub const SPAN_RESULTS: &[&str] = &["sent", "dropped", "failed"];
/// The values of `standing`.
pub const STANDINGS: &[&str] = &["ready", "busy", "failed", "checking", "unhealthy", "down"];

/// The values of `result` of trials.
pub const TRIAL_RESULTS: &[&str] = &["found", "other"];

/// The values of `reason` of pages that are not learned.
#[rustfmt::skip]
pub const NOT_LEARNED: &[&str] = &[
    "no-record", "not-modified", "incomplete", "too-long", "unreadable", "elsewhere", "program", "extension",
    "shared-memory", "file-outside", "own-file", "own-session", "file-changed", "code-changed", "no-schema",
    "several-servers", "statement", "own-write", "transaction", "written-meanwhile", "too-many-pages", "unpolled",
    "differs", "database-file", "address-database", "cache-state", "unproven", "unanswered",
];
/// The values of `state` of shapes of addresses (`cache_learn auto`).
pub const SHAPE_STATES: &[&str] = &["compared", "kept", "refuted"];
/// The values of `result` of comparisons: the state of the page, and whether it was the same.
pub const COMPARISONS: &[&str] = &[
    "fresh_same",
    "fresh_changed",
    "suspect_same",
    "suspect_changed",
];

/// The values of `result` of statements that were run again.
pub const REPLAYS: &[&str] = &["equal", "different", "failed"];

/// Bounds for hits: from 10 microseconds, the time that the program takes, to a slow client's
/// second.
pub const HIT_BOUNDS: &[f64] = &[
    0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1,
    1.0,
];
/// Bounds for whatever waits for PHP or another upstream.
pub const WAIT_BOUNDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

const ZONE: Label = Label {
    name: "zone",
    values: Values::Configured("the name of a cache zone"),
};
const UPSTREAM: Label = Label {
    name: "upstream",
    values: Values::Configured(
        "the name of an upstream group or PHP pool, or the address of a `*_pass`",
    ),
};

const POOL: Label = Label {
    name: "pool",
    values: Values::Configured("the name of a PHP pool"),
};

const fn fixed(name: &'static str, values: &'static [&'static str]) -> Label {
    Label {
        name,
        values: Values::Fixed(values),
    }
}

/// Declares the numbers, and their table in the same order. Each has its name, its title, its kind, its unit, its labels
/// and its help.
macro_rules! numbers {
    ($($number:ident: $name:literal, $title:literal, $kind:expr, $unit:ident, $labels:expr, $help:literal;)*) => {
        /// The numbers, in the order of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Number {
            $($number,)*
        }

        /// All numbers.
        pub const TABLE: &[Definition] = &[$(Definition {
            number: Number::$number,
            name: $name,
            title: $title,
            kind: $kind,
            unit: Unit::$unit,
            labels: &$labels,
            help: $help,
        },)*];
    };
}

numbers! {
    Requests: "requests", "Requests", Counter, Count, [fixed("cache", CACHE_STATUSES)],
        "Requests of clients that have ended, by $upstream_cache_status. Each is one line of an access log that \
         takes all requests.";
    Responses: "responses", "Responses", Counter, Count, [fixed("class", STATUS_CLASSES)],
        "The same requests by the class of $status.";
    SentBytes: "sent_bytes", "Bytes sent", Counter, Bytes, [],
        "The sum of $bytes_sent over the same requests.";
    ReceivedBytes: "received_bytes", "Bytes received", Counter, Bytes, [],
        "The sum of $request_length over the same requests.";
    HitDuration: "hit_duration_seconds", "Time of a hit", Histogram(HIT_BOUNDS), Seconds, [],
        "How long answers from memory took (HIT, STALE, UPDATING), from the whole head of the request until the \
         system had the last byte. Each thread times all of the first hundred requests of a minute, and of later \
         ones fewer and fewer, down to one in 64, chosen at random; each counts for those that are not.";
    MissDuration: "miss_duration_seconds", "Time of a miss", Histogram(WAIT_BOUNDS), Seconds, [],
        "$request_time of requests that waited for an upstream (MISS, EXPIRED, REVALIDATED, BYPASS).";
    SparedSeconds: "spared_seconds", "PHP seconds spared", Counter, Seconds, [],
        "For each answer from memory, how long PHP or another upstream took until the head of the stored response: \
         about what they would have worked without the cache.";
    AcceptedConnections: "accepted_connections", "Connections accepted", Counter, Count, [],
        "Connections of clients that were accepted.";
    OpenConnections: "open_connections", "Open connections", Gauge, Count, [fixed("state", CONNECTION_STATES)],
        "Connections of clients that are open, by what they do, as in stub_status.";
    Connections: "connections", "Connections by protocol", Counter, Count, [fixed("protocol", PROTOCOLS)],
        "Connections of clients that have sent a request, by the protocol of the first.";
    TlsHandshakes: "tls_handshakes", "TLS handshakes", Counter, Count, [fixed("result", HANDSHAKE_RESULTS)],
        "TLS handshakes of clients that have ended, those of HTTP/3 included.";
    RefusedRequests: "refused_requests", "Requests refused by limits", Counter, Count, [fixed("limit", LIMITS)],
        "Requests that a limit has refused. Those that a dry run lets pass do not count.";
    LogLines: "log_lines", "Lines of the error log", Counter, Count, [fixed("level", LOG_LEVELS)],
        "Lines that the serving process has written to error logs, by level. A line that goes to two logs counts \
         once.";
    Spans: "spans", "Spans of traces", Counter, Count, [fixed("result", SPAN_RESULTS)],
        "Spans for otel_exporter: sent to the collector, dropped because too many waited, and failed, because the \
         collector refused them or was away for too long.";
    ZoneUsedBytes: "zone_used_bytes", "Memory of zones", Gauge, Bytes, [ZONE],
        "Memory that counts against the budget of the zone, fetches under way included.";
    ZoneBudgetBytes: "zone_budget_bytes", "Budget of zones", Gauge, Bytes, [ZONE],
        "Memory that the zone may take.";
    ZoneStoredResponses: "zone_stored_responses", "Stored responses", Gauge, Count, [ZONE],
        "Responses that are stored, each variant for itself.";
    ZoneStores: "zone_stores", "Responses stored", Counter, Count, [ZONE],
        "Responses that have been stored, those that took the place of an older one included.";
    ZoneEvictions: "zone_evictions", "Evictions", Counter, Count, [ZONE],
        "Stored responses removed to make room for others. Where it grows all the time, the zone is too small.";
    ZoneSwept: "zone_swept_responses", "Responses swept", Counter, Count, [ZONE],
        "Stored responses removed because nobody had asked for them in a while, or because they were over.";
    ZonePurged: "zone_purged_responses", "Responses purged", Counter, Count, [ZONE],
        "Stored responses that purges have removed or marked stale.";
    ZoneRefreshes: "zone_refreshes", "Refreshes", Counter, Count, [ZONE],
        "Fetches begun in the background while a stale response was shown.";
    ZoneCollapsed: "zone_collapsed_requests", "Collapsed requests", Counter, Count, [ZONE],
        "Requests that waited for the fetch of another instead of making one.";
    ZoneFetches: "zone_fetches", "Fetches under way", Gauge, Count, [ZONE],
        "Fetches under way that others may wait for.";
    ZoneDiskHits: "zone_disk_hits", "Hits from disk", Counter, Count, [ZONE],
        "Lookups that memory had nothing for, and that were answered from the zone's disk.";
    ZoneDiskResponses: "zone_disk_responses", "Responses on disk", Gauge, Count, [ZONE],
        "Responses that the zone keeps on disk. Those that memory has as well are among them.";
    ZoneDiskBytes: "zone_disk_bytes", "Disk of zones", Gauge, Bytes, [ZONE],
        "What the files of the zone take on disk.";
    ZoneDiskWrites: "zone_disk_writes", "Responses written to disk", Counter, Count, [ZONE],
        "Responses that were written to the zone's disk.";
    ZoneDiskFailures: "zone_disk_failures", "Failures of disks", Counter, Count, [ZONE],
        "Reads of the zone's disk that took too long, damaged records, and how often the disk was given up for a \
         while.";
    ZoneDiskIsServing: "zone_disk_serving", "Zones whose disk serves", Gauge, Count, [ZONE],
        "1 where the zone reads from its disk and writes to it, 0 where it does not: the error log says why. \
         Missing where the zone keeps nothing on disk.";
    NodesIsConnected: "nodes_connected", "Connection to the engine of nodes", Gauge, Count, [],
        "1 while there is a connection to the engine of cache_nodes, 0 where there is none: the error log says \
         why. All numbers of nodes are missing where cache_nodes is off, and count anew where it is changed.";
    NodesLeaseIsHeld: "nodes_lease_held", "Lease of this node", Gauge, Count, [],
        "1 while this node holds its lease, 0 while it does not: then nothing is answered from memory.";
    NodesMembers: "nodes_members", "Nodes that share purges", Gauge, Count, [],
        "Nodes that share purges, this one included, as of the last renewal of the lease.";
    NodesBehind: "nodes_entries_behind", "Entries that this node is behind", Gauge, Count, [],
        "Entries of the log of purges that this node has not applied, as of the last renewal of the lease.";
    NodesRenewal: "nodes_renewal_seconds", "Time of a renewal", Gauge, Seconds, [],
        "How long the engine took to answer the last renewal of the lease. Missing before the first.";
    NodesWaiting: "nodes_waiting_purges", "Purges that wait for nodes", Gauge, Count, [],
        "Purges of this node that do not hold on all nodes yet, as far as it knows.";
    NodesConfirmed: "nodes_confirmed_purges", "Purges confirmed by all nodes", Counter, Count, [],
        "Purges of this node that hold on all nodes.";
    NodesApplied: "nodes_applied_purges", "Purges of other nodes", Counter, Count, [],
        "Purges of other nodes that were applied here.";
    NodesVoids: "nodes_voids", "Times that all pages were void", Counter, Count, [],
        "How often all that is stored here was void, because purges may have been missed. The start of the server \
         is one.";
    NodesLostLeases: "nodes_lost_leases", "Leases lost", Counter, Count, [],
        "How often this node has lost its lease.";
    UpstreamRequests: "upstream_requests", "Requests to upstreams", Counter, Count,
        [UPSTREAM, fixed("outcome", OUTCOMES)],
        "Requests that servers of the group have been asked, each try for itself. A failure could not be \
         connected, broke off, timed out, or is named by *_next_upstream. A neutral one says nothing of the \
         server: the client left, or the response was not read to its end. Addresses that variables lead to are no \
         group here.";
    UpstreamRefused: "upstream_refused_requests", "Requests that no upstream took", Counter, Count,
        [UPSTREAM, fixed("reason", REFUSALS)],
        "Requests that got no server of the group. A refresh that was left out has harmed nobody.";
    UpstreamBusy: "upstream_busy", "PHP and upstreams busy", Gauge, Count, [UPSTREAM],
        "Requests that servers of the group are at work on: busy PHP workers, for a pool.";
    UpstreamIdle: "upstream_idle", "PHP and upstreams idle", Gauge, Count, [UPSTREAM],
        "Requests that servers of the group would take besides: idle PHP workers, for a pool. Servers without \
         max_conns do not count.";
    UpstreamQueued: "upstream_queued", "Requests in line", Gauge, Count, [UPSTREAM],
        "Requests of visitors that wait in line for a server of the group.";
    UpstreamWaiting: "upstream_waiting", "Requests in line by class", Gauge, Count,
        [UPSTREAM, fixed("class", CLASSES)],
        "Requests that wait in line for a server of the group, by their class (php_concurrency).";
    UpstreamClassSeconds: "upstream_class_seconds", "Time of PHP and upstreams by class", Counter, Seconds,
        [UPSTREAM, fixed("class", CLASSES)],
        "How long servers of the group were at work, by the class of the requests (php_concurrency).";
    UpstreamLimit: "upstream_limit", "Requests at once", Gauge, Count, [UPSTREAM],
        "The limit in force for requests to the group that run at the same time (php_concurrency).";
    UpstreamQueueDuration: "upstream_queue_duration_seconds", "Time in line", Histogram(WAIT_BOUNDS), Seconds,
        [UPSTREAM],
        "How long requests to the group waited for a server, those that did not wait included.";
    UpstreamHeadDuration: "upstream_head_duration_seconds", "Time of PHP and upstreams", Histogram(WAIT_BOUNDS), Seconds,
        [UPSTREAM],
        "How long servers of the group took until the head of a response, without the time in line.";
    UpstreamServers: "upstream_servers", "Servers of upstreams", Gauge, Count,
        [UPSTREAM, fixed("standing", STANDINGS)],
        "Servers of the group, by whether they may be asked now.";
    LearnedPages: "learned_pages", "Learned pages", Gauge, Count, [POOL],
        "Pages of the pool of which it is known what they were made of (cache_learn).";
    LearnedSuspects: "learned_pages_suspect", "Suspect learned pages", Gauge, Count, [POOL],
        "Those of them of which something may have changed.";
    LearnedKept: "learned_pages_kept", "Learned pages kept", Gauge, Count, [POOL],
        "Those of them that are kept beyond their ordinary lifetime (cache_learn on).";
    LearnedRemovals: "learned_removals", "Kept pages removed", Counter, Count, [POOL],
        "Pages that were kept so, and are not any more since something may have changed.";
    LearnedRenders: "learned_renders", "Pages learned", Counter, Count, [POOL],
        "Pages that were made and stored, and of which it is known what they were made of.";
    NotLearnedRenders: "not_learned_renders", "Pages not learned", Counter, Count,
        [POOL, fixed("reason", NOT_LEARNED)],
        "Pages that were made and stored, and of which it is not known what they were made of, by the reason; with \
         unpolled, differs and unproven that is known, and they are not kept.";
    LearnedWrites: "learned_writes", "Writes seen", Counter, Count, [POOL],
        "Statements of the pool that may have changed the database.";
    LearnedLogged: "learned_logged_writes", "Writes in the binary log", Counter, Count, [POOL],
        "With cache_learn_binary_log, writes that the binary log told, of all programs: a table or a statement \
         counts once in what is read at a time.";
    LearnedLogs: "learned_logs_followed", "Binary logs followed", Gauge, Count, [POOL],
        "Servers whose binary log is followed now (cache_learn_binary_log).";
    LearnedMatches: "learned_matches", "Pages made suspect", Counter, Count, [POOL],
        "Learned pages of which something may have changed, by a write or a file.";
    LearnedComparisons: "learned_comparisons", "Learned pages made again", Counter, Count,
        [POOL, fixed("result", COMPARISONS)],
        "Learned pages that were made again, by whether they counted as unchanged (fresh) or suspect, and whether \
         they were the same. What is fresh_changed would have been shown although it was old.";
    LearnedShapes: "learned_shapes", "Shapes of addresses", Gauge, Count, [POOL, fixed("state", SHAPE_STATES)],
        "With cache_learn auto, shapes of addresses whose pages are compared, are kept, or were refuted within a \
         day.";
    LearnedAudits: "learned_audits", "Audits of learned pages", Counter, Count, [POOL],
        "Learned pages that were made again for the comparison alone.";
    LearnedReplays: "learned_replays", "Statements run again", Counter, Count, [POOL, fixed("result", REPLAYS)],
        "With cache_learn_replay, statements of suspect pages that were run again, by whether they returned the \
         same.";
    LearnedFreshened: "learned_freshened", "Suspect pages found unchanged", Counter, Count, [POOL],
        "Suspect pages that are shown again, since all their statements in question returned the same.";
    EvidenceOwnRequests: "evidence_own_requests", "Visitors' own requests that were compared", Counter, Count, [],
        "With cache_shared, visitors' own requests whose answers were compared with the shared one.";
    EvidenceAgreed: "evidence_agreed", "Answers that were the same", Counter, Count, [],
        "Answers to visitors' own requests that were the same as the shared one, or differed in nothing that \
         stays.";
    EvidenceTrials: "evidence_trials", "Trials of pages", Counter, Count, [fixed("result", TRIAL_RESULTS)],
        "Trials of why two answers differ, by whether they found that something matters.";
    EvidenceTrialRequests: "evidence_trial_requests", "Requests of trials", Counter, Count, [],
        "Requests that trials have sent to the application.";
    ResidentBytes: "resident_memory_bytes", "Memory of the process", Gauge, Bytes, [],
        "Memory of the serving process, without PHP's.";
    StartTime: "start_time_seconds", "Start of the process", Gauge, Seconds, [],
        "Unix time at which the serving process began. A reload does not change it.";
    Workers: "workers", "Worker threads", Gauge, Count, [],
        "Threads that serve connections.";
}

impl Number {
    #[must_use]
    pub fn definition(self) -> &'static Definition {
        &TABLE[self as usize]
    }

    /// The number of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Number> {
        let mut found = TABLE.iter().filter(|definition| definition.name == name);
        found.next().map(|definition| definition.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_say_their_unit_and_nothing_of_their_kind() {
        let mut names = HashSet::new();
        for definition in TABLE {
            let name = definition.name;
            assert!(names.insert(name), "{name} twice");
            assert_eq!(Number::named(name), Some(definition.number));
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{name}"
            );
            if let Some(unit) = definition.unit.suffix() {
                assert!(name.ends_with(&format!("_{unit}")), "{name}");
            }
            for taken in ["_total", "_count", "_sum", "_bucket", "_info", "_created"] {
                assert!(!name.ends_with(taken), "{name}");
            }
        }
    }

    #[test]
    fn each_number_has_a_title_and_whole_sentences() {
        for Definition {
            name, title, help, ..
        } in TABLE
        {
            assert!(!title.is_empty() && !title.ends_with('.'), "{name}");
            assert!(
                help.ends_with('.') && !help.contains("  ") && !help.contains('\n'),
                "{name}: {help}"
            );
            assert!(!help.contains('`'), "{name}: Prometheus shows it as it is");
        }
    }

    #[test]
    fn bounds_and_values_of_labels_are_in_order_and_once() {
        for definition in TABLE {
            let name = definition.name;
            if let Histogram(bounds) = definition.kind {
                assert!(bounds.is_sorted_by(|one, other| one < other), "{name}");
                assert!(bounds.iter().all(|bound| *bound > 0.0), "{name}");
            }
            assert!(definition.labels.len() <= 2, "{name}");
            for label in definition.labels {
                if let Values::Fixed(values) = label.values {
                    let different: HashSet<_> = values.iter().collect();
                    assert_eq!(different.len(), values.len(), "{name} {}", label.name);
                }
            }
        }
    }
}
