//! Active health checks.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("health_check", &[Context::Location])
        .takes(0, usize::MAX, "[interval=TIME] [jitter=TIME] [fails=NUMBER] [passes=NUMBER] [uri=URI] [mandatory [persistent]] [match=NAME] [port=NUMBER] [keepalive_time=TIME]").repeats()
        .short("ask the servers now and then whether they are well")
        .long("Every server of the group that the location's `*_pass` names is sent a GET for `uri` (`/`) every `interval` (5s), put off by up to `jitter`. After `fails` (1) checks in a row that failed it gets no requests, until `passes` (1) in a row succeed; with `slow_start` it then begins gently. A check passes if the status is from 200 to 399, or if the `match` block holds. With `mandatory` a server is not asked before its first check, unless `persistent` knows it from before a reload. Through `fastcgi_pass`, the script `root` and `uri` name is run.")
        .example("fastcgi_pass 127.0.0.1:9000; health_check interval=2s fails=3 passes=2 uri=/ping;"),
    Directive::new("match", &[Context::Http])
        .takes(1, 1, "NAME { TEST; ... }").entries().repeats()
        .short("what a healthy server answers")
        .long("Tests for `health_check match=NAME`, all of which must hold: `status 200 300-399`, `status ! 500`; `header NAME`, `header ! NAME`, `header NAME = VALUE`, with `!=`, `~` and `!~` likewise; `body ~ PATTERN`, `body !~ PATTERN` for the first 256 kilobytes; `require $VARIABLE ...`, none of them empty or `0`.")
        .example("match well { status 200; header Content-Type ~ html; body !~ \"maintenance\"; }"),
];
