//! Table of the `memcached_*` directives.

use super::declaration::*;
use super::{Context, Directive};

table! {
    _ = lines("memcached_bind", LEVELS, (1, 2), "ADDRESS[:PORT] | off").default("off").inherited().text(
        "sets the local address of connections to memcached", "memcached_bind 127.0.0.1;", "\
        Connections are made from this IP address. With `off`, the system chooses the address. A unix socket has no \
        such address.\n\n\
        The value may contain variables. An empty value works like `off`. A value that is not an address is logged \
        and works like `off`. If the machine does not have the address, the request gets 500.\n\n\
        A kept connection is used again only by requests with the same address. `transparent` is an error, because \
        it needs a privilege that the server gives up.");
    _ = size("memcached_buffer_size", LEVELS).default("4k").text(
        "limits the first line of memcached's response", "memcached_buffer_size 8k;",
        "If the first line is longer, the client gets 502. The value itself may have any length.");
    _ = time("memcached_connect_timeout", LEVELS).default("60s").text(
        "limits how long connecting to memcached may take", "memcached_connect_timeout 1s;",
        "After this time, another server of the group is tried. If there is none, the client gets 504.");
    MEMCACHED_GZIP_FLAG: Number = number("memcached_gzip_flag", LEVELS).takes((1, 1), "FLAGS").text(
        "sets the flag that marks compressed values", "memcached_gzip_flag 2;", "\
        If the flags of a value have one of these bits, it is sent with `Content-Encoding: gzip`. With `gunzip on`, \
        it is decompressed for clients that do not accept gzip.");
    _ = lines("memcached_next_upstream", LEVELS, (1, MANY), "error | timeout | invalid_response | not_found | off ...")
        .default("error timeout").inherited_as_a_whole().repeats().text(
        "sets after which failures another server is tried", "memcached_next_upstream error timeout not_found;", "\
        The values name failures: `error` (connecting, sending or reading failed), `timeout`, `invalid_response`, \
        and `not_found`. `off` never tries another server. `not_found` does not count as a failure of the server.");
    _ = time("memcached_next_upstream_timeout", LEVELS).default("0").text(
        "limits how long other servers are tried", "memcached_next_upstream_timeout 2s;",
        "After this time, no further server is tried. 0 means no limit.");
    _ = number("memcached_next_upstream_tries", LEVELS).default("0").text(
        "limits how many servers are tried", "memcached_next_upstream_tries 2;",
        "The first server counts. With 0, each server of the group may be tried once.");
    _ = lines("memcached_pass", &[Context::Location, Context::LocationIf], (1, 1), "ADDRESS | GROUP").text(
        "serves a value from memcached", "set $memcached_key $uri; memcached_pass 127.0.0.1:11211;", "\
        The response body is the value of the key in `$memcached_key`, which `set` must set. An application has put \
        the value there. If there is no value, the response is 404: use `error_page 404 = @php` to ask the \
        application then.\n\n\
        The media type is the one of the extension in the path. Only GET and HEAD are served. Spaces, control \
        characters and `%` in the key are sent as `%XX`.");
    _ = time("memcached_read_timeout", LEVELS).default("60s").text(
        "limits how long memcached may pause while it responds", "memcached_read_timeout 1s;",
        "It is the time between two reads, not the time for the whole response.");
    _ = time("memcached_send_timeout", LEVELS).default("60s").text(
        "limits how long memcached may pause while it reads a request", "memcached_send_timeout 1s;",
        "It is the time between two writes.");
    _ = flag("memcached_socket_keepalive", LEVELS, "off").text(
        "lets the kernel check silent connections", "memcached_socket_keepalive on;", "\
        With `on`, the kernel probes connections that send nothing (`SO_KEEPALIVE`). It notices when the other side \
        has disappeared, and firewalls keep the connection open. It has an effect on TCP connections only.");
}
