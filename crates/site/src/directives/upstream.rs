//! Groups of upstream servers.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("hash", &[Context::Upstream])
        .takes(1, 2, "KEY [consistent]")
        .short("the same server for the same value")
        .long("The value is hashed, and the hash decides. With `consistent`, adding a server moves few values.")
        .example("server 127.0.0.1:9000; hash $request_uri consistent;"),
    Directive::new("ip_hash", &[Context::Upstream])
        .takes(0, 0, "")
        .short("the same server for the same client")
        .long("The first three bytes of an IPv4 address, or the whole IPv6 address, decide.")
        .example("server 127.0.0.1:9000; ip_hash;"),
    Directive::new("keepalive", &[Context::Upstream])
        .takes(1, 2, "CONNECTIONS [local]")
        .short("idle connections to keep")
        .long("The number of idle connections kept for the whole group, by all threads together. With `local`, a connection is used again only from the location that made it. FastCGI also needs `fastcgi_keep_conn`.")
        .example("server 127.0.0.1:9000; keepalive 4;"),
    Directive::new("keepalive_requests", &[Context::Upstream])
        .takes(1, 1, "NUMBER")
        .default("1000")
        .short("requests on one connection")
        .long("After as many, the connection is closed. Choose less than PHP-FPM's `pm.max_requests`.")
        .example("server 127.0.0.1:9000; keepalive 4; keepalive_requests 500;"),
    Directive::new("keepalive_time", &[Context::Upstream])
        .takes(1, 1, "TIME")
        .default("1h")
        .short("how long a connection may be used")
        .long("After this time it is closed when it becomes idle.")
        .example("server 127.0.0.1:9000; keepalive 4; keepalive_time 10m;"),
    Directive::new("keepalive_timeout", &[Context::Upstream])
        .takes(1, 1, "TIME")
        .default("60s")
        .short("how long an idle connection is kept")
        .long("After this time it is closed.")
        .example("server 127.0.0.1:9000; keepalive 4; keepalive_timeout 30s;"),
    Directive::new("least_conn", &[Context::Upstream])
        .takes(0, 0, "")
        .short("the server with the fewest requests")
        .long("Requests go where the fewest are under way, by weight.")
        .example("server 127.0.0.1:9000; least_conn;"),
    Directive::new("queue", &[Context::Upstream])
        .takes(1, 2, "NUMBER [timeout=TIME]")
        .short("requests that may wait for a free server")
        .long("When all servers have as many requests as `max_conns` allows, as many more wait in order. Those that wait longer than `timeout` get 503, or a stale response where there is one.")
        .example("server 127.0.0.1:9000 max_conns=4; queue 100 timeout=10s;"),
    Directive::new("random", &[Context::Upstream])
        .takes(0, 2, "[two [least_conn]]")
        .short("a server by chance")
        .long("With `two`, two are drawn and the one with fewer requests is taken.")
        .example("server 127.0.0.1:9000; random two least_conn;"),
    Directive::new("server", &[Context::Upstream])
        .takes(1, usize::MAX, "ADDRESS [weight=NUMBER] [max_conns=NUMBER] [max_fails=NUMBER] [fail_timeout=TIME] [slow_start=TIME] [backup] [down] [resolve [service=NAME]]").repeats()
        .short("a server of the group")
        .long("An address as in `fastcgi_pass`; a host name with several addresses is several servers. After `max_fails` failures within `fail_timeout` the server is left alone for that long. `max_conns` bounds requests at the same time: for a PHP-FPM of others, write its number of workers, and the rest waits in the `queue`. `backup` is asked when all others fail, `down` never. After it was unavailable, a server grows to its weight within `slow_start`, with round robin and `least_conn`. With `resolve`, the name is asked for again by the `resolver` whenever its answer is no longer valid, and the servers change with it; an error leaves them as they are. `service` looks for SRV records: those of the best priority are the servers, the others backups.")
        .example("server 127.0.0.1:9000 weight=5 max_conns=8 max_fails=3 fail_timeout=30s;"),
    Directive::new("upstream", &[Context::Http])
        .takes(1, 1, "NAME { ... }").block().repeats()
        .short("a group of servers")
        .long("A name for one or several servers, to be used in `fastcgi_pass`. Requests are shared out in turn, by weight, unless another method is named.")
        .example("upstream backend { server 127.0.0.1:9000 weight=2; server unix:/run/php.sock backup; }"),
    Directive::new("zone", &[Context::Upstream])
        .takes(1, 2, "NAME [SIZE]")
        .ignored("there is one process, so all threads share the state of every group")
        .short("memory shared by workers")
        .long("Threads share a group's state in any case. The line is accepted and has no effect.")
        .example("server 127.0.0.1:9000; zone backend 64k;"),
];
