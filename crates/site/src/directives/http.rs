//! Servers, locations, connections, bodies and files: nginx's core http module.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("absolute_redirect", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("aio", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | threads").inherited()
        .default("off")
        .ignored("files are read by threads that Mayfly manages itself"),
    Directive::new("aio_write", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("files are written by threads that Mayfly manages itself"),
    Directive::new("alias", &[Context::Location])
        .takes(1, 1, "PATH").inherited(),
    Directive::new("chunked_transfer_encoding", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("client_body_buffer_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("16k"),
    Directive::new("client_body_in_file_only", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | clean | off").inherited()
        .default("off"),
    Directive::new("client_body_in_single_buffer", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("client_body_temp_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "PATH [LEVEL ...]").inherited()
        .default("client_body_temp"),
    Directive::new("client_body_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s"),
    Directive::new("client_header_buffer_size", &[Context::Http, Context::Server])
        .takes(1, 1, "SIZE").inherited()
        .default("1k"),
    Directive::new("client_header_timeout", &[Context::Http, Context::Server])
        .takes(1, 1, "TIME").inherited()
        .default("60s"),
    Directive::new("client_max_body_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("1m"),
    Directive::new("connection_pool_size", &[Context::Http, Context::Server])
        .takes(1, 1, "SIZE").inherited()
        .default("512")
        .ignored("memory is not taken from pools"),
    Directive::new("default_type", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TYPE").inherited()
        .default("text/plain"),
    Directive::new("directio", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE | off").inherited()
        .default("off")
        .ignored("files are read through the page cache"),
    Directive::new("directio_alignment", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("512")
        .ignored("files are read through the page cache"),
    Directive::new("disable_symlinks", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "off | on | if_not_owner [from=PATH]").inherited()
        .default("off"),
    Directive::new("error_page", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(2, usize::MAX, "CODE ... [=[RESPONSE]] URI").inherited_as_a_whole().repeats(),
    Directive::new("etag", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("http2", &[Context::Http, Context::Server])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("there is no HTTP/2 yet; clients use HTTP/1.1"),
    Directive::new("http2_max_concurrent_streams", &[Context::Http, Context::Server])
        .takes(1, 1, "NUMBER").inherited()
        .default("128")
        .ignored("there is no HTTP/2 yet"),
    Directive::new("http3", &[Context::Http, Context::Server])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("there is no HTTP/3 yet; clients use HTTP/1.1"),
    Directive::new("if_modified_since", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "off | exact | before").inherited()
        .default("exact"),
    Directive::new("ignore_invalid_headers", &[Context::Http, Context::Server])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("internal", &[Context::Location])
        .takes(0, 0, "").inherited(),
    Directive::new("keepalive_disable", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "none | msie6 | safari ...").inherited_as_a_whole().repeats()
        .default("msie6"),
    Directive::new("keepalive_min_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("0")
        .ignored("idle connections are closed by `keepalive_timeout` alone"),
    Directive::new("keepalive_requests", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("1000"),
    Directive::new("keepalive_time", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("1h"),
    Directive::new("keepalive_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "TIME [HEADER_TIME]").inherited()
        .default("75s"),
    Directive::new("large_client_header_buffers", &[Context::Http, Context::Server])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .default("4 8k"),
    Directive::new("limit_rate", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "RATE").inherited()
        .default("0"),
    Directive::new("limit_rate_after", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "SIZE").inherited()
        .default("0"),
    Directive::new("lingering_close", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "off | on | always").inherited()
        .default("on"),
    Directive::new("lingering_time", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("30s"),
    Directive::new("lingering_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("5s"),
    Directive::new("listen", &[Context::Server])
        .takes(1, usize::MAX, "[ADDRESS:]PORT | unix:PATH [default_server] [backlog=NUMBER] [reuseport] ...").repeats()
        .default("*:80"),
    Directive::new("location", &[Context::Server, Context::Location])
        .takes(1, 2, "[= | ^~ | ~ | ~*] PATH { ... } | @NAME { ... }").block().repeats(),
    Directive::new("log_not_found", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("log_subrequest", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("map_hash_bucket_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("tables size themselves"),
    Directive::new("map_hash_max_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("2048")
        .ignored("tables size themselves"),
    Directive::new("max_headers", &[Context::Http, Context::Server])
        .takes(1, 1, "NUMBER").inherited()
        .default("1000"),
    Directive::new("max_ranges", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited(),
    Directive::new("merge_slashes", &[Context::Http, Context::Server])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("open_file_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "off | max=NUMBER [inactive=TIME]").inherited()
        .default("off"),
    Directive::new("open_file_cache_errors", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("open_file_cache_min_uses", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("1"),
    Directive::new("open_file_cache_valid", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s"),
    Directive::new("output_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .default("2 32k")
        .ignored("Mayfly sizes its buffers itself"),
    Directive::new("port_in_redirect", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("postpone_output", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("1460")
        .ignored("small pieces are joined anyway"),
    Directive::new("proxy_temp_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "PATH [LEVEL ...]").inherited()
        .ignored("there are no HTTP upstreams yet"),
    Directive::new("read_ahead", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("0")
        .ignored("the kernel's own read-ahead is used"),
    Directive::new("recursive_error_pages", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("referer_hash_bucket_size", &[Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("tables size themselves"),
    Directive::new("referer_hash_max_size", &[Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("2048")
        .ignored("tables size themselves"),
    Directive::new("request_pool_size", &[Context::Http, Context::Server])
        .takes(1, 1, "SIZE").inherited()
        .default("4k")
        .ignored("memory is not taken from pools"),
    Directive::new("reset_timedout_connection", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("resolver", &[Context::Http, Context::Server, Context::Location, Context::Upstream])
        .takes(1, usize::MAX, "ADDRESS ... [valid=TIME]").inherited()
        .ignored("host names are looked up by the system, once, when the configuration is read"),
    Directive::new("resolver_timeout", &[Context::Http, Context::Server, Context::Location, Context::Upstream])
        .takes(1, 1, "TIME").inherited()
        .default("30s")
        .ignored("host names are looked up by the system, once, when the configuration is read"),
    Directive::new("root", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "PATH").inherited()
        .default("html"),
    Directive::new("satisfy", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "all | any").inherited()
        .default("all"),
    Directive::new("scgi_temp_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "PATH [LEVEL ...]").inherited()
        .ignored("there are no SCGI upstreams"),
    Directive::new("send_lowat", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("0")
        .ignored("nothing is gained by it on Linux"),
    Directive::new("send_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s"),
    Directive::new("sendfile", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("sendfile_max_chunk", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("2m")
        .ignored("a fast client cannot keep a thread to itself"),
    Directive::new("server", &[Context::Http])
        .takes(0, 0, "{ ... }").block().repeats(),
    Directive::new("server_name", &[Context::Server])
        .takes(1, usize::MAX, "NAME ...").repeats()
        .default(r#""""#),
    Directive::new("server_name_in_redirect", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("server_names_hash_bucket_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("tables size themselves"),
    Directive::new("server_names_hash_max_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("512")
        .ignored("tables size themselves"),
    Directive::new("server_tokens", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | build | TEXT").inherited()
        .default("on"),
    Directive::new("subrequest_output_buffer_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("4k")
        .ignored("nothing makes such subrequests yet"),
    Directive::new("tcp_nodelay", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("tcp_nopush", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("head and body are written together anyway"),
    Directive::new("try_files", &[Context::Server, Context::Location])
        .takes(2, usize::MAX, "FILE ... URI | FILE ... =CODE"),
    Directive::new("types", &[Context::Http, Context::Server, Context::Location])
        .takes(0, 0, "{ TYPE EXTENSION ...; ... }").entries().inherited_as_a_whole().repeats()
        .default("text/html html; image/gif gif; image/jpeg jpg;"),
    Directive::new("types_hash_bucket_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("tables size themselves"),
    Directive::new("types_hash_max_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("1024")
        .ignored("tables size themselves"),
    Directive::new("underscores_in_headers", &[Context::Http, Context::Server])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("uwsgi_temp_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "PATH [LEVEL ...]").inherited()
        .ignored("there are no uwsgi upstreams"),
    Directive::new("variables_hash_bucket_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("tables size themselves"),
    Directive::new("variables_hash_max_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("1024")
        .ignored("tables size themselves"),
];
