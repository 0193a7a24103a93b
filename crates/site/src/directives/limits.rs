//! Limits on requests and connections.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("limit_conn", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "ZONE NUMBER").inherited_as_a_whole().repeats()
        .short("how many requests of a key may be under way")
        .long("Those above are refused.")
        .example("limit_conn addr 10;"),
    Directive::new("limit_conn_dry_run", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("count, but refuse nobody")
        .long("What would have happened is in `$limit_conn_status` and in the log.")
        .example("limit_conn_dry_run on;"),
    Directive::new("limit_conn_log_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "info | notice | warn | error").inherited()
        .default("error")
        .short("level at which refusals are logged")
        .long("The word is one of the error log's levels.")
        .example("limit_conn_log_level warn;"),
    Directive::new("limit_conn_status", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "CODE").inherited()
        .default("503")
        .short("status of a refused request")
        .long("429 says what it is about; 503 is what nginx sends.")
        .example("limit_conn_status 429;"),
    Directive::new("limit_conn_zone", &[Context::Http])
        .takes(2, 2, "KEY zone=NAME:SIZE").repeats()
        .short("a counter of connections for each key")
        .long("Counts requests that are under way. The size bounds how many keys are remembered.")
        .example("limit_conn_zone $binary_remote_addr zone=visitors:10m;"),
    Directive::new("limit_req", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 3, "zone=NAME [burst=NUMBER] [nodelay | delay=NUMBER]").inherited_as_a_whole().repeats()
        .short("how many requests a key may send")
        .long("Requests above the rate wait their turn, as many as `burst` allows; more are refused. `nodelay` lets the burst through at once, `delay` its first part.")
        .example("limit_req zone=ip burst=10 nodelay;"),
    Directive::new("limit_req_dry_run", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("count, but refuse nobody")
        .long("What would have happened is in `$limit_req_status` and in the log.")
        .example("limit_req_dry_run on;"),
    Directive::new("limit_req_log_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "info | notice | warn | error").inherited()
        .default("error")
        .short("level at which refusals are logged")
        .long("Delays are logged one level below.")
        .example("limit_req_log_level warn;"),
    Directive::new("limit_req_status", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "CODE").inherited()
        .default("503")
        .short("status of a refused request")
        .long("429 says what it is about; 503 is what nginx sends.")
        .example("limit_req_status 429;"),
    Directive::new("limit_req_zone", &[Context::Http])
        .takes(3, 4, "KEY zone=NAME:SIZE rate=RATE [sync]").repeats()
        .short("a counter of requests for each key")
        .long("The key is usually the client's address in its short form. The size bounds how many keys are remembered: a megabyte holds about 16,000. The rate is in requests a second (`r/s`) or a minute (`r/m`).")
        .example("limit_req_zone $binary_remote_addr zone=visitors:10m rate=5r/s;"),
];
