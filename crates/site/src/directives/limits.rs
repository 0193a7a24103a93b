//! Table of the `limit_req*` and `limit_conn*` directives.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("limit_conn", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "ZONE NUMBER").inherited_as_a_whole().repeats()
        .short("limits the requests under way for each key")
        .long("\
            The first argument is a zone of `limit_conn_zone`. Further requests with the same key are \
            refused with `limit_conn_status`.")
        .example("limit_conn addr 10;"),
    Directive::new("limit_conn_dry_run", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("counts requests, but refuses none")
        .long("\
            With `on`, `$limit_conn_status` and the error log say what would have happened. Use it to \
            find a good limit.")
        .example("limit_conn_dry_run on;"),
    Directive::new("limit_conn_log_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "info | notice | warn | error").inherited()
        .default("error")
        .short("sets the level at which refusals are logged")
        .long("The refusal is logged if `error_log` has this level or a lower one.")
        .example("limit_conn_log_level warn;"),
    Directive::new("limit_conn_status", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "CODE").inherited()
        .default("503")
        .short("sets the status of a refused request")
        .long("429 (Too Many Requests) tells the client the reason. 503 is the default of nginx.")
        .example("limit_conn_status 429;"),
    Directive::new("limit_conn_zone", &[Context::Http])
        .takes(2, 2, "KEY zone=NAME:SIZE").repeats()
        .short("defines a zone that counts requests under way")
        .long("\
            Requests are counted for each value of the key, usually the client's address. One megabyte \
            is enough for about 16,000 addresses. When the zone is full, requests with a new key are \
            refused.")
        .example("limit_conn_zone $binary_remote_addr zone=visitors:10m;"),
    Directive::new("limit_req", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 3, "zone=NAME [burst=NUMBER] [nodelay | delay=NUMBER]").inherited_as_a_whole().repeats()
        .short("limits the rate of requests for each key")
        .long("\
            The zone is one of `limit_req_zone`. Requests above its rate are delayed, up to the number \
            of `burst` (default 0). Further requests are refused with `limit_req_status`. With \
            `nodelay`, the requests of the burst are not delayed. With `delay=NUMBER`, the first ones \
            are not delayed.")
        .example("limit_req zone=ip burst=10 nodelay;"),
    Directive::new("limit_req_dry_run", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("counts requests, but delays and refuses none")
        .long("\
            With `on`, `$limit_req_status` and the error log say what would have happened. Use it to \
            find a good limit.")
        .example("limit_req_dry_run on;"),
    Directive::new("limit_req_log_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "info | notice | warn | error").inherited()
        .default("error")
        .short("sets the level at which refusals are logged")
        .long("Delays are logged one level lower.")
        .example("limit_req_log_level warn;"),
    Directive::new("limit_req_status", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "CODE").inherited()
        .default("503")
        .short("sets the status of a refused request")
        .long("429 (Too Many Requests) tells the client the reason. 503 is the default of nginx.")
        .example("limit_req_status 429;"),
    Directive::new("limit_req_zone", &[Context::Http])
        .takes(3, 4, "KEY zone=NAME:SIZE rate=RATE [sync]").repeats()
        .short("defines a zone that measures the rate of requests")
        .long("\
            The rate is measured for each value of the key, usually the client's address in binary form. \
            It is in requests per second (`r/s`) or per minute (`r/m`). One megabyte is enough for about \
            8,000 addresses. When the zone is full, the keys that were not used for the longest time are \
            removed.")
        .example("limit_req_zone $binary_remote_addr zone=visitors:10m rate=5r/s;"),
];
