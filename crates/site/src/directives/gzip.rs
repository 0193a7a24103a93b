//! Compression.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("gunzip", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("gunzip_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .ignored("Mayfly sizes its buffers itself"),
    Directive::new("gzip", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("gzip_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .ignored("Mayfly sizes its buffers itself"),
    Directive::new("gzip_comp_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LEVEL").inherited()
        .default("1"),
    Directive::new("gzip_disable", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "PATTERN ... | msie6").inherited_as_a_whole().repeats(),
    Directive::new("gzip_hash", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("a tuning knob of nginx's compressor"),
    Directive::new("gzip_http_version", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "1.0 | 1.1").inherited()
        .default("1.1"),
    Directive::new("gzip_min_length", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LENGTH").inherited()
        .default("20"),
    Directive::new("gzip_no_buffer", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("Mayfly sizes its buffers itself"),
    Directive::new("gzip_proxied", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "off | expired | no-cache | no-store | private | no_last_modified | no_etag | auth | any ...").inherited_as_a_whole().repeats()
        .default("off"),
    Directive::new("gzip_static", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | always").inherited()
        .default("off"),
    Directive::new("gzip_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ... | *").inherited_as_a_whole().repeats()
        .default("text/html"),
    Directive::new("gzip_vary", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("gzip_window", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("a tuning knob of nginx's compressor"),
];
