//! The table: each number of the server has its definition here, and only here.
//!
//! A new number is a variant of [`Number`], an entry at the same place in [`TABLE`], and a line in
//! the server that fills it in (`crates/server/src/exchange/numbers.rs`). Tests sweep the table, and
//! `MAYFLY_BLESS=1 cargo test -p numbers` writes `docs/metrics.md`.

use crate::definition::{Definition, Kind, Label, Unit, Values};
use crate::number::Number;

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
pub const NOT_LEARNED: &[&str] = &[
    "no-record",
    "not-modified",
    "incomplete",
    "too-long",
    "unreadable",
    "elsewhere",
    "program",
    "extension",
    "shared-memory",
    "file-outside",
    "own-file",
    "own-session",
    "file-changed",
    "code-changed",
    "no-schema",
    "several-servers",
    "statement",
    "own-write",
    "transaction",
    "written-meanwhile",
    "too-many-pages",
    "unpolled",
    "differs",
    "database-file",
    "address-database",
    "cache-state",
    "unproven",
    "unanswered",
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

/// All numbers.
#[rustfmt::skip]
pub const TABLE: &[Definition] = &[
    Definition {
        number: Number::Requests,
        name: "requests",
        title: "Requests",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[fixed("cache", CACHE_STATUSES)],
        help: "Requests of clients that have ended, by $upstream_cache_status. \
               Each is one line of an access log that takes all requests.",
    },
    Definition {
        number: Number::Responses,
        name: "responses",
        title: "Responses",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[fixed("class", STATUS_CLASSES)],
        help: "The same requests by the class of $status.",
    },
    Definition {
        number: Number::SentBytes,
        name: "sent_bytes",
        title: "Bytes sent",
        kind: Kind::Counter,
        unit: Unit::Bytes,
        labels: &[],
        help: "The sum of $bytes_sent over the same requests.",
    },
    Definition {
        number: Number::ReceivedBytes,
        name: "received_bytes",
        title: "Bytes received",
        kind: Kind::Counter,
        unit: Unit::Bytes,
        labels: &[],
        help: "The sum of $request_length over the same requests.",
    },
    Definition {
        number: Number::HitDuration,
        name: "hit_duration_seconds",
        title: "Time of a hit",
        kind: Kind::Histogram(HIT_BOUNDS),
        unit: Unit::Seconds,
        labels: &[],
        help: "How long answers from memory took (HIT, STALE, UPDATING), from the whole head of the request \
               until the system had the last byte. Each thread times all of the first hundred requests of a minute, and \
               of later ones fewer and fewer, down to one in 64, chosen at random; each counts for those that are not.",
    },
    Definition {
        number: Number::MissDuration,
        name: "miss_duration_seconds",
        title: "Time of a miss",
        kind: Kind::Histogram(WAIT_BOUNDS),
        unit: Unit::Seconds,
        labels: &[],
        help: "$request_time of requests that waited for an upstream (MISS, EXPIRED, REVALIDATED, BYPASS).",
    },
    Definition {
        number: Number::SparedSeconds,
        name: "spared_seconds",
        title: "PHP seconds spared",
        kind: Kind::Counter,
        unit: Unit::Seconds,
        labels: &[],
        help: "For each answer from memory, how long PHP or another upstream took until the head of the stored \
               response: about what they would have worked without the cache.",
    },
    Definition {
        number: Number::AcceptedConnections,
        name: "accepted_connections",
        title: "Connections accepted",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[],
        help: "Connections of clients that were accepted.",
    },
    Definition {
        number: Number::OpenConnections,
        name: "open_connections",
        title: "Open connections",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[fixed("state", CONNECTION_STATES)],
        help: "Connections of clients that are open, by what they do, as in stub_status.",
    },
    Definition {
        number: Number::Connections,
        name: "connections",
        title: "Connections by protocol",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[fixed("protocol", PROTOCOLS)],
        help: "Connections of clients that have sent a request, by the protocol of the first.",
    },
    Definition {
        number: Number::TlsHandshakes,
        name: "tls_handshakes",
        title: "TLS handshakes",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[fixed("result", HANDSHAKE_RESULTS)],
        help: "TLS handshakes of clients that have ended, those of HTTP/3 included.",
    },
    Definition {
        number: Number::RefusedRequests,
        name: "refused_requests",
        title: "Requests refused by limits",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[fixed("limit", LIMITS)],
        help: "Requests that a limit has refused. Those that a dry run lets pass do not count.",
    },
    Definition {
        number: Number::LogLines,
        name: "log_lines",
        title: "Lines of the error log",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[fixed("level", LOG_LEVELS)],
        help: "Lines that the serving process has written to error logs, by level. \
               A line that goes to two logs counts once.",
    },
    Definition {
        number: Number::Spans,
        name: "spans",
        title: "Spans of traces",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[fixed("result", SPAN_RESULTS)],
        help: "Spans for otel_exporter: sent to the collector, dropped because too many waited, \
               and failed, because the collector refused them or was away for too long.",
    },
    Definition {
        number: Number::ZoneUsedBytes,
        name: "zone_used_bytes",
        title: "Memory of zones",
        kind: Kind::Gauge,
        unit: Unit::Bytes,
        labels: &[ZONE],
        help: "Memory that counts against the budget of the zone, fetches under way included.",
    },
    Definition {
        number: Number::ZoneBudgetBytes,
        name: "zone_budget_bytes",
        title: "Budget of zones",
        kind: Kind::Gauge,
        unit: Unit::Bytes,
        labels: &[ZONE],
        help: "Memory that the zone may take.",
    },
    Definition {
        number: Number::ZoneStoredResponses,
        name: "zone_stored_responses",
        title: "Stored responses",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Responses that are stored, each variant for itself.",
    },
    Definition {
        number: Number::ZoneStores,
        name: "zone_stores",
        title: "Responses stored",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Responses that have been stored, those that took the place of an older one included.",
    },
    Definition {
        number: Number::ZoneEvictions,
        name: "zone_evictions",
        title: "Evictions",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Stored responses removed to make room for others. Where it grows all the time, the zone is too small.",
    },
    Definition {
        number: Number::ZoneSwept,
        name: "zone_swept_responses",
        title: "Responses swept",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Stored responses removed because nobody had asked for them in a while, or because they were over.",
    },
    Definition {
        number: Number::ZonePurged,
        name: "zone_purged_responses",
        title: "Responses purged",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Stored responses that purges have removed or marked stale.",
    },
    Definition {
        number: Number::ZoneRefreshes,
        name: "zone_refreshes",
        title: "Refreshes",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Fetches begun in the background while a stale response was shown.",
    },
    Definition {
        number: Number::ZoneCollapsed,
        name: "zone_collapsed_requests",
        title: "Collapsed requests",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Requests that waited for the fetch of another instead of making one.",
    },
    Definition {
        number: Number::ZoneFetches,
        name: "zone_fetches",
        title: "Fetches under way",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Fetches under way that others may wait for.",
    },
    Definition {
        number: Number::ZoneDiskHits,
        name: "zone_disk_hits",
        title: "Hits from disk",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Lookups that memory had nothing for, and that were answered from the zone's disk.",
    },
    Definition {
        number: Number::ZoneDiskResponses,
        name: "zone_disk_responses",
        title: "Responses on disk",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Responses that the zone keeps on disk. Those that memory has as well are among them.",
    },
    Definition {
        number: Number::ZoneDiskBytes,
        name: "zone_disk_bytes",
        title: "Disk of zones",
        kind: Kind::Gauge,
        unit: Unit::Bytes,
        labels: &[ZONE],
        help: "What the files of the zone take on disk.",
    },
    Definition {
        number: Number::ZoneDiskWrites,
        name: "zone_disk_writes",
        title: "Responses written to disk",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Responses that were written to the zone's disk.",
    },
    Definition {
        number: Number::ZoneDiskFailures,
        name: "zone_disk_failures",
        title: "Failures of disks",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "Reads of the zone's disk that took too long, damaged records, and how often the disk was given up for a \
               while.",
    },
    Definition {
        number: Number::ZoneDiskIsServing,
        name: "zone_disk_serving",
        title: "Zones whose disk serves",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[ZONE],
        help: "1 where the zone reads from its disk and writes to it, 0 where it does not: the error log says why. \
               Missing where the zone keeps nothing on disk.",
    },
    Definition {
        number: Number::NodesIsConnected,
        name: "nodes_connected",
        title: "Connection to the engine of nodes",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[],
        help: "1 while there is a connection to the engine of cache_nodes, 0 where there is none: the error log says why. \
               All numbers of nodes are missing where cache_nodes is off, and count anew where it is changed.",
    },
    Definition {
        number: Number::NodesLeaseIsHeld,
        name: "nodes_lease_held",
        title: "Lease of this node",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[],
        help: "1 while this node holds its lease, 0 while it does not: then nothing is answered from memory.",
    },
    Definition {
        number: Number::NodesMembers,
        name: "nodes_members",
        title: "Nodes that share purges",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[],
        help: "Nodes that share purges, this one included, as of the last renewal of the lease.",
    },
    Definition {
        number: Number::NodesBehind,
        name: "nodes_entries_behind",
        title: "Entries that this node is behind",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[],
        help: "Entries of the log of purges that this node has not applied, as of the last renewal of the lease.",
    },
    Definition {
        number: Number::NodesRenewal,
        name: "nodes_renewal_seconds",
        title: "Time of a renewal",
        kind: Kind::Gauge,
        unit: Unit::Seconds,
        labels: &[],
        help: "How long the engine took to answer the last renewal of the lease. Missing before the first.",
    },
    Definition {
        number: Number::NodesWaiting,
        name: "nodes_waiting_purges",
        title: "Purges that wait for nodes",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[],
        help: "Purges of this node that do not hold on all nodes yet, as far as it knows.",
    },
    Definition {
        number: Number::NodesConfirmed,
        name: "nodes_confirmed_purges",
        title: "Purges confirmed by all nodes",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[],
        help: "Purges of this node that hold on all nodes.",
    },
    Definition {
        number: Number::NodesApplied,
        name: "nodes_applied_purges",
        title: "Purges of other nodes",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[],
        help: "Purges of other nodes that were applied here.",
    },
    Definition {
        number: Number::NodesVoids,
        name: "nodes_voids",
        title: "Times that all pages were void",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[],
        help: "How often all that is stored here was void, because purges may have been missed. The start of the server is one.",
    },
    Definition {
        number: Number::NodesLostLeases,
        name: "nodes_lost_leases",
        title: "Leases lost",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[],
        help: "How often this node has lost its lease.",
    },
    Definition {
        number: Number::UpstreamRequests,
        name: "upstream_requests",
        title: "Requests to upstreams",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[UPSTREAM, fixed("outcome", OUTCOMES)],
        help: "Requests that servers of the group have been asked, each try for itself. A failure could not be \
               connected, broke off, timed out, or is named by *_next_upstream. A neutral one says nothing of the \
               server: the client left, or the response was not read to its end. \
               Addresses that variables lead to are no group here.",
    },
    Definition {
        number: Number::UpstreamRefused,
        name: "upstream_refused_requests",
        title: "Requests that no upstream took",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[UPSTREAM, fixed("reason", REFUSALS)],
        help: "Requests that got no server of the group. A refresh that was left out has harmed nobody.",
    },
    Definition {
        number: Number::UpstreamBusy,
        name: "upstream_busy",
        title: "PHP and upstreams busy",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[UPSTREAM],
        help: "Requests that servers of the group are at work on: busy PHP workers, for a pool.",
    },
    Definition {
        number: Number::UpstreamIdle,
        name: "upstream_idle",
        title: "PHP and upstreams idle",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[UPSTREAM],
        help: "Requests that servers of the group would take besides: idle PHP workers, for a pool. \
               Servers without max_conns do not count.",
    },
    Definition {
        number: Number::UpstreamQueued,
        name: "upstream_queued",
        title: "Requests in line",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[UPSTREAM],
        help: "Requests of visitors that wait in line for a server of the group.",
    },
    Definition {
        number: Number::UpstreamWaiting,
        name: "upstream_waiting",
        title: "Requests in line by class",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[UPSTREAM, fixed("class", CLASSES)],
        help: "Requests that wait in line for a server of the group, by their class (php_concurrency).",
    },
    Definition {
        number: Number::UpstreamClassSeconds,
        name: "upstream_class_seconds",
        title: "Time of PHP and upstreams by class",
        kind: Kind::Counter,
        unit: Unit::Seconds,
        labels: &[UPSTREAM, fixed("class", CLASSES)],
        help: "How long servers of the group were at work, by the class of the requests (php_concurrency).",
    },
    Definition {
        number: Number::UpstreamLimit,
        name: "upstream_limit",
        title: "Requests at once",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[UPSTREAM],
        help: "The limit in force for requests to the group that run at the same time (php_concurrency).",
    },
    Definition {
        number: Number::UpstreamQueueDuration,
        name: "upstream_queue_duration_seconds",
        title: "Time in line",
        kind: Kind::Histogram(WAIT_BOUNDS),
        unit: Unit::Seconds,
        labels: &[UPSTREAM],
        help: "How long requests to the group waited for a server, those that did not wait included.",
    },
    Definition {
        number: Number::UpstreamHeadDuration,
        name: "upstream_head_duration_seconds",
        title: "Time of PHP and upstreams",
        kind: Kind::Histogram(WAIT_BOUNDS),
        unit: Unit::Seconds,
        labels: &[UPSTREAM],
        help: "How long servers of the group took until the head of a response, without the time in line.",
    },
    Definition {
        number: Number::UpstreamServers,
        name: "upstream_servers",
        title: "Servers of upstreams",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[UPSTREAM, fixed("standing", STANDINGS)],
        help: "Servers of the group, by whether they may be asked now.",
    },
    Definition {
        number: Number::LearnedPages,
        name: "learned_pages",
        title: "Learned pages",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[POOL],
        help: "Pages of the pool of which it is known what they were made of (cache_learn).",
    },
    Definition {
        number: Number::LearnedSuspects,
        name: "learned_pages_suspect",
        title: "Suspect learned pages",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[POOL],
        help: "Those of them of which something may have changed.",
    },
    Definition {
        number: Number::LearnedKept,
        name: "learned_pages_kept",
        title: "Learned pages kept",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[POOL],
        help: "Those of them that are kept beyond their ordinary lifetime (cache_learn on).",
    },
    Definition {
        number: Number::LearnedRemovals,
        name: "learned_removals",
        title: "Kept pages removed",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[POOL],
        help: "Pages that were kept so, and are not any more since something may have changed.",
    },
    Definition {
        number: Number::LearnedRenders,
        name: "learned_renders",
        title: "Pages learned",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[POOL],
        help: "Pages that were made and stored, and of which it is known what they were made of.",
    },
    Definition {
        number: Number::NotLearnedRenders,
        name: "not_learned_renders",
        title: "Pages not learned",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[POOL, fixed("reason", NOT_LEARNED)],
        help: "Pages that were made and stored, and of which it is not known what they were made of, by the reason; with unpolled, differs and unproven that is known, and they are not kept.",
    },
    Definition {
        number: Number::LearnedWrites,
        name: "learned_writes",
        title: "Writes seen",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[POOL],
        help: "Statements of the pool that may have changed the database.",
    },
    Definition {
        number: Number::LearnedLogged,
        name: "learned_logged_writes",
        title: "Writes in the binary log",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[POOL],
        help: "With cache_learn_binary_log, writes that the binary log told, of all programs: a table or a statement counts once in what is read at a time.",
    },
    Definition {
        number: Number::LearnedLogs,
        name: "learned_logs_followed",
        title: "Binary logs followed",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[POOL],
        help: "Servers whose binary log is followed now (cache_learn_binary_log).",
    },
    Definition {
        number: Number::LearnedMatches,
        name: "learned_matches",
        title: "Pages made suspect",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[POOL],
        help: "Learned pages of which something may have changed, by a write or a file.",
    },
    Definition {
        number: Number::LearnedComparisons,
        name: "learned_comparisons",
        title: "Learned pages made again",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[POOL, fixed("result", COMPARISONS)],
        help: "Learned pages that were made again, by whether they counted as unchanged (fresh) or suspect, and whether they were the same. What is fresh_changed would have been shown although it was old.",
    },
    Definition {
        number: Number::LearnedShapes,
        name: "learned_shapes",
        title: "Shapes of addresses",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[POOL, fixed("state", SHAPE_STATES)],
        help: "With cache_learn auto, shapes of addresses whose pages are compared, are kept, or were refuted within a day.",
    },
    Definition {
        number: Number::LearnedAudits,
        name: "learned_audits",
        title: "Audits of learned pages",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[POOL],
        help: "Learned pages that were made again for the comparison alone.",
    },
    Definition {
        number: Number::LearnedReplays,
        name: "learned_replays",
        title: "Statements run again",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[POOL, fixed("result", REPLAYS)],
        help: "With cache_learn_replay, statements of suspect pages that were run again, by whether they returned the same.",
    },
    Definition {
        number: Number::LearnedFreshened,
        name: "learned_freshened",
        title: "Suspect pages found unchanged",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[POOL],
        help: "Suspect pages that are shown again, since all their statements in question returned the same.",
    },
    Definition {
        number: Number::EvidenceOwnRequests,
        name: "evidence_own_requests",
        title: "Visitors' own requests that were compared",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[],
        help: "With cache_shared, visitors' own requests whose answers were compared with the shared one.",
    },
    Definition {
        number: Number::EvidenceAgreed,
        name: "evidence_agreed",
        title: "Answers that were the same",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[],
        help: "Answers to visitors' own requests that were the same as the shared one, or differed in nothing that stays.",
    },
    Definition {
        number: Number::EvidenceTrials,
        name: "evidence_trials",
        title: "Trials of pages",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[fixed("result", TRIAL_RESULTS)],
        help: "Trials of why two answers differ, by whether they found that something matters.",
    },
    Definition {
        number: Number::EvidenceTrialRequests,
        name: "evidence_trial_requests",
        title: "Requests of trials",
        kind: Kind::Counter,
        unit: Unit::Count,
        labels: &[],
        help: "Requests that trials have sent to the application.",
    },
    Definition {
        number: Number::ResidentBytes,
        name: "resident_memory_bytes",
        title: "Memory of the process",
        kind: Kind::Gauge,
        unit: Unit::Bytes,
        labels: &[],
        help: "Memory of the serving process, without PHP's.",
    },
    Definition {
        number: Number::StartTime,
        name: "start_time_seconds",
        title: "Start of the process",
        kind: Kind::Gauge,
        unit: Unit::Seconds,
        labels: &[],
        help: "Unix time at which the serving process began. A reload does not change it.",
    },
    Definition {
        number: Number::Workers,
        name: "workers",
        title: "Worker threads",
        kind: Kind::Gauge,
        unit: Unit::Count,
        labels: &[],
        help: "Threads that serve connections.",
    },
];

impl Number {
    #[must_use]
    pub fn definition(self) -> &'static Definition {
        // A test compares the order of the two.
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
    fn each_number_stands_at_its_own_place() {
        for (at, definition) in TABLE.iter().enumerate() {
            assert_eq!(definition.number as usize, at, "{}", definition.name);
            assert_eq!(Number::named(definition.name), Some(definition.number));
        }
        assert_eq!(Number::Workers as usize + 1, TABLE.len());
    }

    #[test]
    fn names_say_their_unit_and_nothing_of_their_kind() {
        let mut names = HashSet::new();
        for definition in TABLE {
            let name = definition.name;
            assert!(names.insert(name), "{name} twice");
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
            if let Kind::Histogram(bounds) = definition.kind {
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
