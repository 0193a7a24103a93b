//! Table of the directives about HTTP/2 and HTTP/3.

use super::{Context, Directive};

const SERVERS: &[Context] = &[Context::Http, Context::Server];

/// Of lines that nginx itself no longer has.
const OBSOLETE: &str = "nginx has removed it; the limits of HTTP/1.1 hold for HTTP/2 too";
/// Of lines about server push.
const NO_PUSH: &str = "clients no longer support server push; use `early_hints`";

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("http2", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("switches HTTP/2 on")
        .long("\
            On connections with TLS, clients choose HTTP/2 or HTTP/1.1. On others, HTTP/2 is spoken with \
            clients that begin with it.")
        .example("http2 on;"),
    Directive::new("http2_body_preread_size", SERVERS)
        .takes(1, 1, "SIZE").inherited()
        .default("64k")
        .short("sets how much of a request body is taken before it is read")
        .long("It is the window of a stream (RFC 9113) until the body is needed.")
        .example("http2_body_preread_size 128k;"),
    Directive::new("http2_chunk_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("8k")
        .short("limits how much of a response body goes into one frame")
        .long("\
            Small values let other responses on the same connection go on earlier. In a location, the \
            line has no effect.")
        .example("http2_chunk_size 16k;"),
    Directive::new("http2_idle_timeout", SERVERS)
        .takes(1, 1, "TIME").inherited()
        .missing("nginx has removed it; `keepalive_timeout` holds for HTTP/2 too")
        .short("closed idle HTTP/2 connections")
        .long("Use `keepalive_timeout`.")
        .example("http2_idle_timeout 3m;"),
    Directive::new("http2_max_concurrent_pushes", SERVERS)
        .takes(1, 1, "NUMBER").inherited()
        .missing(NO_PUSH)
        .short("limited server push")
        .long("The line may be removed.")
        .example("http2_max_concurrent_pushes 10;"),
    Directive::new("http2_max_concurrent_streams", SERVERS)
        .takes(1, 1, "NUMBER").inherited()
        .default("128")
        .short("limits the requests at the same time on an HTTP/2 connection")
        .long("Clients are told the limit and wait until a response is complete.")
        .example("http2_max_concurrent_streams 64;"),
    Directive::new("http2_max_field_size", SERVERS)
        .takes(1, 1, "SIZE").inherited()
        .missing(OBSOLETE)
        .short("limited a field of a request")
        .long("Use `large_client_header_buffers`.")
        .example("http2_max_field_size 8k;"),
    Directive::new("http2_max_header_size", SERVERS)
        .takes(1, 1, "SIZE").inherited()
        .missing(OBSOLETE)
        .short("limited the head of a request")
        .long("Use `large_client_header_buffers`.")
        .example("http2_max_header_size 32k;"),
    Directive::new("http2_max_requests", SERVERS)
        .takes(1, 1, "NUMBER").inherited()
        .missing("nginx has removed it; `keepalive_requests` holds for HTTP/2 too")
        .short("limited the requests of a connection")
        .long("Use `keepalive_requests`.")
        .example("http2_max_requests 2000;"),
    Directive::new("http2_pool_size", SERVERS)
        .takes(1, 1, "SIZE").inherited()
        .default("4k")
        .ignored("Mayfly takes memory as it is needed")
        .short("sets how nginx takes memory for an HTTP/2 connection")
        .long("The line may be removed.")
        .example("http2_pool_size 8k;"),
    Directive::new("http2_push", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "URI | off").inherited_as_a_whole().repeats()
        .default("off")
        .missing(NO_PUSH)
        .short("sent a response before it was asked for")
        .long("The line may be removed. `early_hints` tells clients what they will need.")
        .example("http2_push /style.css;"),
    Directive::new("http2_push_preload", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .missing(NO_PUSH)
        .short("made server push of the links of a response")
        .long("The line may be removed. Browsers act upon the links by themselves.")
        .example("http2_push_preload on;"),
    Directive::new("http2_recv_buffer_size", &[Context::Http])
        .takes(1, 1, "SIZE")
        .default("256k")
        .short("sets the size of a worker's buffer for HTTP/2 input")
        .long("It is shared by all connections of a worker.")
        .example("http2_recv_buffer_size 128k;"),
    Directive::new("http2_recv_timeout", SERVERS)
        .takes(1, 1, "TIME").inherited()
        .missing("nginx has removed it; `client_header_timeout` holds for HTTP/2 too")
        .short("limited the wait for a client's input")
        .long("Use `client_header_timeout`.")
        .example("http2_recv_timeout 30s;"),
    Directive::new("http2_streams_index_size", SERVERS)
        .takes(1, 1, "NUMBER").inherited()
        .default("32")
        .ignored("Mayfly sizes its tables itself")
        .short("sets the size of nginx's table of streams")
        .long("The line may be removed.")
        .example("http2_streams_index_size 64;"),
    Directive::new("http3", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .missing("there is no HTTP/3 yet; clients use HTTP/2 or HTTP/1.1")
        .short("switches HTTP/3 on")
        .long("The line is accepted because clients use HTTP/2 or HTTP/1.1 by themselves.")
        .example("http3 on;"),
];
