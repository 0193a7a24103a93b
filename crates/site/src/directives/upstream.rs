//! Groups of upstream servers.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("hash", &[Context::Upstream])
        .takes(1, 2, "KEY [consistent]"),
    Directive::new("ip_hash", &[Context::Upstream])
        .takes(0, 0, ""),
    Directive::new("keepalive", &[Context::Upstream])
        .takes(1, 2, "CONNECTIONS"),
    Directive::new("keepalive_requests", &[Context::Upstream])
        .takes(1, 1, "NUMBER")
        .default("1000"),
    Directive::new("keepalive_time", &[Context::Upstream])
        .takes(1, 1, "TIME")
        .default("1h"),
    Directive::new("keepalive_timeout", &[Context::Upstream])
        .takes(1, 1, "TIME")
        .default("60s"),
    Directive::new("least_conn", &[Context::Upstream])
        .takes(0, 0, ""),
    Directive::new("queue", &[Context::Upstream])
        .takes(1, 2, "NUMBER [timeout=TIME]"),
    Directive::new("random", &[Context::Upstream])
        .takes(0, 2, "[two [least_conn]]"),
    Directive::new("server", &[Context::Upstream])
        .takes(1, usize::MAX, "ADDRESS [weight=NUMBER] [max_conns=NUMBER] [max_fails=NUMBER] [fail_timeout=TIME] [backup] [down]").repeats(),
    Directive::new("upstream", &[Context::Http])
        .takes(1, 1, "NAME { ... }").block().repeats(),
    Directive::new("zone", &[Context::Upstream])
        .takes(1, 2, "NAME [SIZE]")
        .ignored("all threads share the state of a group anyway"),
];
