//! Table of the directives about HTTP/2 and HTTP/3.

use super::Directive;
use super::declaration::*;

/// The reason for ignoring directives that nginx itself no longer has.
const OBSOLETE: &str = "nginx has removed it; the limits of HTTP/1.1 hold for HTTP/2 too";
/// The reason for ignoring directives about server push.
const NO_PUSH: &str = "clients no longer support server push; use `early_hints`";

table! {
    HTTP2: Flag = flag("http2", SERVERS, "off").text("switches HTTP/2 on", "http2 on;", "\
        On connections with TLS, clients choose HTTP/2 or HTTP/1.1. On others, HTTP/2 is spoken with clients that \
        begin with it.");
    HTTP2_BODY_PREREAD_SIZE: Size = size("http2_body_preread_size", SERVERS).default("64k").text(
        "sets how much of a request body is taken before it is read", "http2_body_preread_size 128k;",
        "It is the window of a stream (RFC 9113) until the body is needed.");
    HTTP2_CHUNK_SIZE: Size = size("http2_chunk_size", LEVELS).default("8k").text(
        "limits how much of a response body goes into one frame", "http2_chunk_size 16k;", "\
        Small values let other responses on the same connection go on earlier. In a location, the line has no \
        effect.");
    _ = time("http2_idle_timeout", SERVERS)
        .missing("nginx has removed it; `keepalive_timeout` holds for HTTP/2 too").text(
        "closed idle HTTP/2 connections", "http2_idle_timeout 3m;", "Use `keepalive_timeout`.");
    _ = number("http2_max_concurrent_pushes", SERVERS).missing(NO_PUSH).text(
        "limited server push", "http2_max_concurrent_pushes 10;", "The line may be removed.");
    HTTP2_MAX_CONCURRENT_STREAMS: Number = number("http2_max_concurrent_streams", SERVERS).default("128").text(
        "limits the requests at the same time on an HTTP/2 connection", "http2_max_concurrent_streams 64;",
        "Clients are told the limit and wait until a response is complete.");
    _ = size("http2_max_field_size", SERVERS).missing(OBSOLETE).text(
        "limited a field of a request", "http2_max_field_size 8k;", "Use `large_client_header_buffers`.");
    _ = size("http2_max_header_size", SERVERS).missing(OBSOLETE).text(
        "limited the head of a request", "http2_max_header_size 32k;", "Use `large_client_header_buffers`.");
    _ = number("http2_max_requests", SERVERS)
        .missing("nginx has removed it; `keepalive_requests` holds for HTTP/2 too").text(
        "limited the requests of a connection", "http2_max_requests 2000;", "Use `keepalive_requests`.");
    _ = size("http2_pool_size", SERVERS).default("4k").ignored("Mayfly takes memory as it is needed").text(
        "sets how nginx takes memory for an HTTP/2 connection", "http2_pool_size 8k;", "The line may be removed.");
    _ = lines("http2_push", LEVELS, (1, 1), "URI | off")
        .default("off").inherited_as_a_whole().repeats().missing(NO_PUSH).text(
        "sent a response before it was asked for", "http2_push /style.css;",
        "The line may be removed. `early_hints` tells clients what they will need.");
    _ = flag("http2_push_preload", LEVELS, "off").missing(NO_PUSH).text(
        "made server push of the links of a response", "http2_push_preload on;",
        "The line may be removed. Browsers act upon the links by themselves.");
    HTTP2_RECV_BUFFER_SIZE: Size = size("http2_recv_buffer_size", HTTP).default("256k").text(
        "sets the size of a worker's buffer for HTTP/2 input", "http2_recv_buffer_size 128k;",
        "It is shared by all connections of a worker.");
    _ = time("http2_recv_timeout", SERVERS)
        .missing("nginx has removed it; `client_header_timeout` holds for HTTP/2 too").text(
        "limited the wait for a client's input", "http2_recv_timeout 30s;", "Use `client_header_timeout`.");
    _ = number("http2_streams_index_size", SERVERS).default("32").ignored("Mayfly sizes its tables itself").text(
        "sets the size of nginx's table of streams", "http2_streams_index_size 64;", "The line may be removed.");
    HTTP3: Flag = flag("http3", SERVERS, "on").text(
        "sets whether HTTP/3 is spoken on addresses with `listen ... quic`", "http3 on;", "\
        Browsers use HTTP/3 only if a response over HTTP/1.1 or HTTP/2 tells them that it is there. Add `add_header \
        Alt-Svc 'h3=\":443\"; ma=86400'` for that.\n\n\
        With `off`, clients that ask for this server by its name cannot connect with QUIC.");
    _ = flag("http3_hq", SERVERS, "off").missing("it is for tests of QUIC alone; clients use HTTP/3").text(
        "switches HTTP/0.9 over QUIC on", "http3_hq on;", "The line may be removed.");
    HTTP3_MAX_CONCURRENT_STREAMS: Number = number("http3_max_concurrent_streams", SERVERS).default("128").text(
        "limits the requests at the same time on an HTTP/3 connection", "http3_max_concurrent_streams 64;", "\
        Clients are told the limit and wait until a response is complete. The value of the default server of an \
        address holds.");
    HTTP3_STREAM_BUFFER_SIZE: Size = size("http3_stream_buffer_size", SERVERS).default("64k").text(
        "sets how much of a request body is taken before it is read", "http3_stream_buffer_size 128k;", "\
        It is the window of a stream (RFC 9000): a client may send so much until the server reads it. The value of \
        the default server of an address holds. Values below 4k count as 4k.");
    _ = number("quic_active_connection_id_limit", SERVERS)
        .default("2").missing("Mayfly keeps five connection IDs of a client, whatever is written").text(
        "sets how many connection IDs of a client nginx keeps", "quic_active_connection_id_limit 4;",
        "The line may be removed.");
    _ = flag("quic_bpf", MAIN, "off")
        .ignored("one thread takes all packets of an address, so that none goes astray").text(
        "sets whether nginx finds the process of a packet by eBPF", "quic_bpf on;", "The line may be removed.");
    QUIC_GSO: Flag = flag("quic_gso", SERVERS, "on").text(
        "sets whether the kernel cuts large sends into packets", "quic_gso off;", "\
        It saves much CPU time. Where the kernel or the network card cannot do it, it is switched off by itself. The \
        value of the default server of an address holds.");
    _ = lines("quic_host_key", SERVERS, (1, 1), "PATH").inherited().text(
        "names a file with the secret that signs tokens of QUIC", "quic_host_key /etc/mayfly/quic.key;", "\
        With the secret, the server signs what `quic_retry` hands out, and what tells a client that its connection \
        is gone (stateless reset). Without a file, the secret is random, and a restart makes another one. The file \
        should have 32 random bytes or more. It is read when the address is opened; the value of the default server \
        of an address holds.");
    QUIC_RETRY: Flag = flag("quic_retry", SERVERS, "off").text(
        "sets whether a client must prove its address before the handshake", "quic_retry on;", "\
        It costs each new connection one round trip, and spares the server handshakes with forged addresses. The \
        value of the default server of an address holds.");
}
