//! Table of the directives about HTTP/2 and HTTP/3.

use super::{Context, Directive};

const SERVERS: &[Context] = &[Context::Http, Context::Server];

/// The reason for ignoring directives that nginx itself no longer has.
const OBSOLETE: &str = "nginx has removed it; the limits of HTTP/1.1 hold for HTTP/2 too";
/// The reason for ignoring directives about server push.
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
        .default("on")
        .short("sets whether HTTP/3 is spoken on addresses with `listen ... quic`")
        .long("\
            Browsers use HTTP/3 only if a response over HTTP/1.1 or HTTP/2 tells them that it is there. \
            Add `add_header Alt-Svc 'h3=\":443\"; ma=86400'` for that.\n\n\
            With `off`, clients that ask for this server by its name cannot connect with QUIC.")
        .example("http3 on;"),
    Directive::new("http3_hq", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .missing("it is for tests of QUIC alone; clients use HTTP/3")
        .short("switches HTTP/0.9 over QUIC on")
        .long("The line may be removed.")
        .example("http3_hq on;"),
    Directive::new("http3_max_concurrent_streams", SERVERS)
        .takes(1, 1, "NUMBER").inherited()
        .default("128")
        .short("limits the requests at the same time on an HTTP/3 connection")
        .long("\
            Clients are told the limit and wait until a response is complete. The value of the default \
            server of an address holds.")
        .example("http3_max_concurrent_streams 64;"),
    Directive::new("http3_stream_buffer_size", SERVERS)
        .takes(1, 1, "SIZE").inherited()
        .default("64k")
        .short("sets how much of a request body is taken before it is read")
        .long("\
            It is the window of a stream (RFC 9000): a client may send so much until the server reads it. \
            The value of the default server of an address holds. Values below 4k count as 4k.")
        .example("http3_stream_buffer_size 128k;"),
    Directive::new("quic_active_connection_id_limit", SERVERS)
        .takes(1, 1, "NUMBER").inherited()
        .default("2")
        .missing("Mayfly keeps five connection IDs of a client, whatever is written")
        .short("sets how many connection IDs of a client nginx keeps")
        .long("The line may be removed.")
        .example("quic_active_connection_id_limit 4;"),
    Directive::new("quic_bpf", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("off")
        .ignored("one thread takes all packets of an address, so that none goes astray")
        .short("sets whether nginx finds the process of a packet by eBPF")
        .long("The line may be removed.")
        .example("quic_bpf on;"),
    Directive::new("quic_gso", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether the kernel cuts large sends into packets")
        .long("\
            It saves much CPU time. Where the kernel or the network card cannot do it, it is switched off \
            by itself. The value of the default server of an address holds.")
        .example("quic_gso off;"),
    Directive::new("quic_host_key", SERVERS)
        .takes(1, 1, "PATH").inherited()
        .short("names a file with the secret that signs tokens of QUIC")
        .long("\
            With the secret, the server signs what `quic_retry` hands out, and what tells a client that its \
            connection is gone (stateless reset). Without a file, the secret is random, and a restart makes \
            another one. The file should have 32 random bytes or more. It is read when the address is \
            opened; the value of the default server of an address holds.")
        .example("quic_host_key /etc/mayfly/quic.key;"),
    Directive::new("quic_retry", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether a client must prove its address before the handshake")
        .long("\
            It costs each new connection one round trip, and spares the server handshakes with forged \
            addresses. The value of the default server of an address holds.")
        .example("quic_retry on;"),
];
