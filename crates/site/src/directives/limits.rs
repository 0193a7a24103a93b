//! Limits on requests and connections.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("limit_conn", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "ZONE NUMBER").inherited_as_a_whole().repeats(),
    Directive::new("limit_conn_dry_run", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("limit_conn_log_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "info | notice | warn | error").inherited()
        .default("error"),
    Directive::new("limit_conn_status", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "CODE").inherited()
        .default("503"),
    Directive::new("limit_conn_zone", &[Context::Http])
        .takes(2, 2, "KEY zone=NAME:SIZE").repeats(),
    Directive::new("limit_req", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 3, "zone=NAME [burst=NUMBER] [nodelay | delay=NUMBER]").inherited_as_a_whole().repeats(),
    Directive::new("limit_req_dry_run", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("limit_req_log_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "info | notice | warn | error").inherited()
        .default("error"),
    Directive::new("limit_req_status", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "CODE").inherited()
        .default("503"),
    Directive::new("limit_req_zone", &[Context::Http])
        .takes(3, 4, "KEY zone=NAME:SIZE rate=RATE [sync]").repeats(),
];
