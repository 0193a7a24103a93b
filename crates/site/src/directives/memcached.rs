//! Table of the `memcached_*` directives.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("memcached_bind", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "ADDRESS[:PORT] | off").inherited()
        .default("off")
        .short("sets the local address of connections to memcached")
        .long("\
            Connections are made from this IP address. With `off`, the system chooses the address. A \
            unix socket has no such address.\n\n\
            The value may contain variables. An empty value works like `off`. A value that is not an \
            address is logged and works like `off`. If the machine does not have the address, the \
            request gets 500.\n\n\
            A kept connection is used again only by requests with the same address. `transparent` is an \
            error, because it needs a privilege that the server gives up.")
        .example("memcached_bind 127.0.0.1;"),
    Directive::new("memcached_buffer_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("4k")
        .short("limits the first line of memcached's response")
        .long("If the first line is longer, the client gets 502. The value itself may have any length.")
        .example("memcached_buffer_size 8k;"),
    Directive::new("memcached_connect_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("limits how long connecting to memcached may take")
        .long("\
            After this time, another server of the group is tried. If there is none, the client gets \
            504.")
        .example("memcached_connect_timeout 1s;"),
    Directive::new("memcached_gzip_flag", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FLAGS").inherited()
        .short("sets the flag that marks compressed values")
        .long("\
            If the flags of a value have one of these bits, it is sent with `Content-Encoding: gzip`. \
            With `gunzip on`, it is decompressed for clients that do not accept gzip.")
        .example("memcached_gzip_flag 2;"),
    Directive::new("memcached_next_upstream", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "error | timeout | invalid_response | not_found | off ...").inherited_as_a_whole().repeats()
        .default("error timeout")
        .short("sets after which failures another server is tried")
        .long("\
            The values name failures: `error` (connecting, sending or reading failed), `timeout`, \
            `invalid_response`, and `not_found`. `off` never tries another server. `not_found` does not \
            count as a failure of the server.")
        .example("memcached_next_upstream error timeout not_found;"),
    Directive::new("memcached_next_upstream_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("0")
        .short("limits how long other servers are tried")
        .long("After this time, no further server is tried. 0 means no limit.")
        .example("memcached_next_upstream_timeout 2s;"),
    Directive::new("memcached_next_upstream_tries", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("0")
        .short("limits how many servers are tried")
        .long("The first server counts. With 0, each server of the group may be tried once.")
        .example("memcached_next_upstream_tries 2;"),
    Directive::new("memcached_pass", &[Context::Location, Context::LocationIf])
        .takes(1, 1, "ADDRESS | GROUP")
        .short("serves a value from memcached")
        .long("\
            The response body is the value of the key in `$memcached_key`, which `set` must set. An \
            application has put the value there. If there is no value, the response is 404: use \
            `error_page 404 = @php` to ask the application then.\n\n\
            The media type is the one of the extension in the path. Only GET and HEAD are served. \
            Spaces, control characters and `%` in the key are sent as `%XX`.")
        .example("set $memcached_key $uri; memcached_pass 127.0.0.1:11211;"),
    Directive::new("memcached_read_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("limits how long memcached may pause while it responds")
        .long("It is the time between two reads, not the time for the whole response.")
        .example("memcached_read_timeout 1s;"),
    Directive::new("memcached_send_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("limits how long memcached may pause while it reads a request")
        .long("It is the time between two writes.")
        .example("memcached_send_timeout 1s;"),
    Directive::new("memcached_socket_keepalive", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("lets the kernel check silent connections")
        .long("\
            With `on`, the kernel probes connections that send nothing (`SO_KEEPALIVE`). It notices when \
            the other side has disappeared, and firewalls keep the connection open. It has an effect on \
            TCP connections only.")
        .example("memcached_socket_keepalive on;"),
];
