//! Table of the directives in an `upstream` block.

use super::declaration::*;
use super::{Context, Directive};

table! {
    _ = lines("crawler_share", &[Context::Http, Context::Upstream], (1, 1), "PERCENT%").default("25%").text(
        "limits what crawlers take of PHP while visitors wait", "crawler_share 10%;", "\
        It needs `php_concurrency`. While requests of visitors wait, crawlers have at most this share of the \
        requests that run at the same time, and one at least. When no visitor waits, they have all.\n\n\
        A crawler is a client whose `User-Agent` names one, or that has asked for 40 pages that were not asked for \
        before and has loaded no style sheet, script, picture or font. While visitors wait, it gets stored pages \
        that are at most an hour too old, where `fastcgi_cache_use_stale error` lets them be shown. It waits for ten \
        seconds, then it gets 429 with a `Retry-After` field.\n\n\
        A quarter of the places of crawlers in line is for search engines. Their names are verified in the background \
        by DNS: the host name of the address is the search engine's, and has that address. The first `resolver` of \
        the configuration is asked, or the name servers in `/etc/resolv.conf`. Without any, the name alone counts. \
        A crawler that is not verified is served as other crawlers are.\n\n\
        Where the site's `robots.txt` has a `Crawl-delay` for a crawler that names itself, one that comes earlier \
        goes behind others, and `Retry-After` is at least the delay.");
    _ = lines("hash", UPSTREAM, (1, 2), "KEY [consistent]").text(
        "chooses the server by a value", "server 127.0.0.1:9000; hash $request_uri consistent;", "\
        Requests with the same value go to the same server. With `consistent`, only few values move to another \
        server when servers are added or removed. Without it, most values move.");
    _ = lines("ip_hash", UPSTREAM, (0, 0), "").text(
        "chooses the server by the client's address", "server 127.0.0.1:9000; ip_hash;", "\
        Requests of one client go to the same server. The first three bytes of an IPv4 address, or the whole IPv6 \
        address, are used.");
    _ = lines("keepalive", UPSTREAM, (1, 2), "CONNECTIONS [local]").text(
        "sets how many idle connections are kept", "server 127.0.0.1:9000; keepalive 4;", "\
        It is the number for the whole group, shared by all threads. With `local`, a connection is used again only \
        in the location that opened it. FastCGI servers also need `fastcgi_keep_conn on`. Without the directive, a \
        group that `proxy_pass` uses keeps 32.");
    UPSTREAM_KEEPALIVE_REQUESTS: Number = number("keepalive_requests", UPSTREAM).default("1000").text(
        "limits the number of requests on one connection", "server 127.0.0.1:9000; keepalive 4; keepalive_requests 500;",
        "The connection is closed after this number of requests. For PHP-FPM, choose less than its `pm.max_requests`.");
    UPSTREAM_KEEPALIVE_TIME: Time = time("keepalive_time", UPSTREAM).default("1h").text(
        "limits how long a connection is used", "server 127.0.0.1:9000; keepalive 4; keepalive_time 10m;",
        "After this time, the connection is closed when it becomes idle.");
    UPSTREAM_KEEPALIVE_TIMEOUT: Time = time("keepalive_timeout", UPSTREAM).default("60s").text(
        "sets how long an idle connection is kept", "server 127.0.0.1:9000; keepalive 4; keepalive_timeout 30s;",
        "The connection is closed after this time.");
    _ = lines("least_conn", UPSTREAM, (0, 0), "").text(
        "chooses the server with the fewest requests under way", "server 127.0.0.1:9000; least_conn;",
        "The weights of the servers are taken into account.");
    _ = lines("php_concurrency", &[Context::Http, Context::Upstream], (1, 1), "auto | NUMBER | off")
        .default("off").text(
        "limits the requests that run at once, and shares time fairly", "php_concurrency auto;", "\
        In `http`, it holds for all groups that `fastcgi_pass` uses. In `upstream`, it holds for that group, \
        whatever uses it.\n\n\
        With `auto`, the limit finds itself, between the number of cores and the number of workers or `max_conns`. \
        Scripts that compute need a place for each core; scripts that wait for a database need more. The kernel's \
        times of the workers of PHP-FPM on this machine tell which. The limit falls by half when requests take three \
        times as long as usual, unless that makes them no faster. With a number, the limit is that number. With \
        `off`, there is no limit beside `max_conns`, and requests wait in the order in which they came.\n\n\
        Those who wait are served in turns. A client that has used little time is served before one that has used \
        much. A client is an IPv4 address, the /64 of an IPv6 address, or a session whose cookie the site has set. \
        Visitors with a session who write are served first, then visitors, then parts of pages, refreshes and \
        crawlers; none of them is shut out. Clients of one network and browser that ask only for pages that were not \
        asked for before, and load no asset, share a turn.\n\n\
        Without a `queue`, 10,000 requests wait for up to 30 seconds. One client may fill a quarter of it. A request \
        that finds no place gets 503, or 429 where the client has used its quarter, with a `Retry-After` field.");
    _ = lines("queue", UPSTREAM, (1, 2), "NUMBER [timeout=TIME]").text(
        "lets requests wait for a free server", "server 127.0.0.1:9000 max_conns=4; queue 100 timeout=10s;", "\
        When all servers have as many requests as their `max_conns` allows, this number of further requests waits, \
        in order. A request that does not fit, or that waits longer than `timeout`, gets 503, or a stale response if \
        one is stored and allowed.");
    _ = lines("random", UPSTREAM, (0, 2), "[two [least_conn]]").text(
        "chooses a server at random", "server 127.0.0.1:9000; random two least_conn;", "\
        With `two`, two servers are drawn, and the one with fewer requests under way is used. The weights of the \
        servers are taken into account.");
    _ = lines("server", UPSTREAM, (1, MANY), "ADDRESS [weight=NUMBER] [max_conns=NUMBER] [max_fails=NUMBER] [fail_timeout=TIME] [slow_start=TIME] [backup] [down] [resolve [service=NAME]]").repeats().text(
        "adds a server to the group", "server 127.0.0.1:9000 weight=5 max_conns=8 max_fails=3 fail_timeout=30s;", "\
        The address is one of `fastcgi_pass`. A host name with several addresses means several servers.\n\n\
        - `weight`: a server with weight 5 gets five times the requests of one with weight 1.\n\
        - `max_conns`: the largest number of requests at the same time; 0 means no limit. For a PHP-FPM that Mayfly \
        does not run, use its number of workers. Further requests wait in the `queue`.\n\
        - `max_fails`, `fail_timeout`: after this number of failures within the time, the server gets no requests \
        for the same time. 0 failures switch this off.\n\
        - `slow_start`: after it was unavailable, the server gets its full share of requests only after this time.\n\
        - `backup`: the server gets requests only if the others are unavailable.\n\
        - `down`: the server gets no requests.\n\
        - `resolve`: the name is looked up again by the `resolver` when its answer expires, and the servers of the \
        group change with it. If the lookup fails, the servers stay.\n\
        - `service=NAME`: the servers are found by SRV records. Those with the best priority are used, the others \
        are backups. It needs `resolve`.");
    _ = lines("upstream", HTTP, (1, 1), "NAME { ... }").block().repeats().text(
        "defines a group of servers", "upstream backend { server 127.0.0.1:9000 weight=2; server unix:/run/php.sock backup; }", "\
        The name is used in `fastcgi_pass`, `proxy_pass` and `memcached_pass`. Requests go to the servers in turn, \
        according to their weights, unless `least_conn`, `ip_hash`, `hash` or `random` chooses another method.");
    _ = lines("zone", UPSTREAM, (1, 2), "NAME [SIZE]")
        .ignored("there is one process, so all threads share the state of every group").text(
        "shares the state of a group between nginx's workers", "server 127.0.0.1:9000; zone backend 64k;", "\
        In nginx, the state of the group is put into shared memory with this name. In Mayfly, all threads share it \
        in any case.");
}
