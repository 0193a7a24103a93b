//! memcached: pages that an application put there.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("memcached_bind", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "ADDRESS[:PORT] | off").inherited()
        .default("off")
        .short("the local address of connections")
        .long("Connections to upstreams come from this IP address; with `off`, from the one that the system chooses. Variables may stand in it: an empty value is as `off`, one that is no address is logged and has no effect. An address that cannot be had is answered with 500. Kept connections are used again only by requests with the same address. Unix sockets have none. `transparent` is an error, since workers lack the privilege.")
        .example("memcached_bind 127.0.0.1;"),
    Directive::new("memcached_buffer_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("4k")
        .short("how long the first line of an answer may be")
        .long("An answer whose first line is longer is taken for none, and the client gets 502. The value itself may have any length.")
        .example("memcached_buffer_size 8k;"),
    Directive::new("memcached_connect_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("how long a connection may take")
        .long("Past that the next server is asked, or the client gets 504.")
        .example("memcached_connect_timeout 1s;"),
    Directive::new("memcached_gzip_flag", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FLAGS").inherited()
        .short("the mark of compressed values")
        .long("A value whose flags have one of these bits is sent with `Content-Encoding: gzip`, or expanded by `gunzip on` for clients that cannot.")
        .example("memcached_gzip_flag 2;"),
    Directive::new("memcached_next_upstream", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "error | timeout | invalid_response | not_found | off ...").inherited_as_a_whole().repeats()
        .default("error timeout")
        .short("when the next server is asked")
        .long("The failures after which another server of the group is asked. `not_found` is none of the server's and does not count against it.")
        .example("memcached_next_upstream error timeout not_found;"),
    Directive::new("memcached_next_upstream_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("0")
        .short("how long the next server may be asked")
        .long("Past that time since the first try no other server is asked. 0 is no limit.")
        .example("memcached_next_upstream_timeout 2s;"),
    Directive::new("memcached_next_upstream_tries", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("0")
        .short("how many servers are asked")
        .long("The first counts. 0 is no limit but the number of servers.")
        .example("memcached_next_upstream_tries 2;"),
    Directive::new("memcached_pass", &[Context::Location, Context::LocationIf])
        .takes(1, 1, "ADDRESS | GROUP")
        .short("answer with a value from memcached")
        .long("The value under the key `$memcached_key`, which `set` gives, is the body of the answer; an application put it there. Spaces, control characters and `%` in the key are sent as `%XX`. Without such a value the answer is 404, for which `error_page 404 = @php` can ask the application. The media type is that of the path's extension. Only GET and HEAD are answered.")
        .example("set $memcached_key $uri; memcached_pass 127.0.0.1:11211;"),
    Directive::new("memcached_read_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("how long memcached may pause while it answers")
        .long("It is the time between two reads, not for the whole answer.")
        .example("memcached_read_timeout 1s;"),
    Directive::new("memcached_send_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("how long memcached may pause while it takes a request")
        .long("It is the time between two writes.")
        .example("memcached_send_timeout 1s;"),
    Directive::new("memcached_socket_keepalive", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("let the kernel watch connections")
        .long("With `on`, the kernel probes connections that are silent (SO_KEEPALIVE), so that one whose other end is gone ends, and a firewall on the way does not forget it. For TCP only.")
        .example("memcached_socket_keepalive on;"),
];
