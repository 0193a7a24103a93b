//! FastCGI, and what all protocols towards upstreams share.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("*_bind", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "ADDRESS [transparent] | off").inherited()
        .default("off")
        .ignored("the system chooses the local address"),
    Directive::new("*_buffer_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("4k"),
    Directive::new("*_buffering", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("*_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .default("8 4k"),
    Directive::new("*_busy_buffers_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("what a client has not taken is bounded by `fastcgi_buffers` alone"),
    Directive::new("*_connect_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s"),
    Directive::new("*_force_ranges", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("*_hide_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FIELD").inherited_as_a_whole().repeats(),
    Directive::new("*_ignore_client_abort", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("*_ignore_headers", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "FIELD ...").inherited_as_a_whole().repeats(),
    Directive::new("*_intercept_errors", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("*_limit_rate", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "RATE").inherited()
        .default("0"),
    Directive::new("*_max_temp_file_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("1024m"),
    Directive::new("*_next_upstream", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "error | timeout | invalid_header | http_500 | http_503 | http_403 | http_404 | http_429 | non_idempotent | off ...").inherited_as_a_whole().repeats()
        .default("error timeout"),
    Directive::new("*_next_upstream_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("0"),
    Directive::new("*_next_upstream_tries", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("0"),
    Directive::new("*_pass_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FIELD").inherited_as_a_whole().repeats(),
    Directive::new("*_pass_request_body", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("*_pass_request_headers", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("*_read_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s"),
    Directive::new("*_request_buffering", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("*_send_lowat", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("0")
        .ignored("nothing is gained by it on Linux"),
    Directive::new("*_send_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s"),
    Directive::new("*_socket_keepalive", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("connections to upstreams are watched by their timeouts"),
    Directive::new("*_store_access", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 3, "USERS:PERMISSIONS ...").inherited()
        .default("user:rw")
        .ignored("responses are not stored as files below `root`"),
    Directive::new("*_temp_file_write_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("Mayfly sizes its writes itself"),
    Directive::new("*_temp_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "PATH [LEVEL ...]").inherited()
        .default("fastcgi_temp"),
    Directive::new("fastcgi_catch_stderr", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TEXT").inherited_as_a_whole().repeats(),
    Directive::new("fastcgi_index", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NAME").inherited(),
    Directive::new("fastcgi_keep_conn", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("fastcgi_param", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 3, "NAME VALUE [if_not_empty]").inherited_as_a_whole().repeats(),
    Directive::new("fastcgi_pass", &[Context::Location, Context::LocationIf])
        .takes(1, 1, "ADDRESS | GROUP | php:POOL"),
    Directive::new("fastcgi_split_path_info", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "PATTERN").inherited(),
];
