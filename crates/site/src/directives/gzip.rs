//! Compression.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("gunzip", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("uncompress for clients that need it")
        .long("A response that comes compressed is sent plain to clients that do not accept it so.")
        .example("gunzip on;"),
    Directive::new("gunzip_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .ignored("Mayfly sizes its buffers itself")
        .short("memory for uncompressing")
        .long("Mayfly sizes its buffers itself. The line has no effect.")
        .example("gunzip_buffers 32 4k;"),
    Directive::new("gzip", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("compress responses")
        .long("Compresses for clients that accept it, by the rules of the directives below. Responses that are compressed already are left alone.")
        .example("gzip on;"),
    Directive::new("gzip_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .ignored("Mayfly sizes its buffers itself")
        .short("memory for compressing")
        .long("Mayfly sizes its buffers itself. The line has no effect.")
        .example("gzip_buffers 16 8k;"),
    Directive::new("gzip_comp_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LEVEL").inherited()
        .default("1")
        .short("how hard to compress")
        .long("1 is fast, 9 is small; beyond 6 little is gained.")
        .example("gzip_comp_level 5;"),
    Directive::new("gzip_disable", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "PATTERN ... | msie6").inherited_as_a_whole().repeats()
        .short("clients that get plain responses")
        .long("Patterns for `User-Agent`. `msie6` stands for old Internet Explorer.")
        .example(r#"gzip_disable "msie6";"#),
    Directive::new("gzip_hash", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("a tuning knob of nginx's compressor")
        .short("memory of the compressor")
        .long("Mayfly sizes its buffers itself. The line has no effect.")
        .example("gzip_hash 64k;"),
    Directive::new("gzip_http_version", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "1.0 | 1.1").inherited()
        .default("1.1")
        .short("oldest version that gets compressed responses")
        .long("Clients with HTTP/1.0 get plain ones unless it says `1.0`.")
        .example("gzip_http_version 1.0;"),
    Directive::new("gzip_min_length", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LENGTH").inherited()
        .default("20")
        .short("smallest response to compress")
        .long("Looks at `Content-Length`; a response without it is compressed.")
        .example("gzip_min_length 1000;"),
    Directive::new("gzip_no_buffer", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("Mayfly sizes its buffers itself")
        .short("hand compressed bytes on at once")
        .long("Mayfly sizes its buffers itself. The line has no effect.")
        .example("gzip_no_buffer on;"),
    Directive::new("gzip_proxied", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "off | expired | no-cache | no-store | private | no_last_modified | no_etag | auth | any ...").inherited_as_a_whole().repeats()
        .default("off")
        .short("compress for proxies")
        .long("Requests with a `Via` field come from a proxy. `any` compresses for all of them, other words for some responses.")
        .example("gzip_proxied any;"),
    Directive::new("gzip_static", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | always").inherited()
        .default("off")
        .short("send compressed files that are there")
        .long("With `on`, `a.css.gz` is sent for `a.css` to clients that accept it; with `always`, to all.")
        .example("gzip_static on;"),
    Directive::new("gzip_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ... | *").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("types to compress")
        .long("`text/html` always counts; `*` is all. Pictures and archives gain nothing.")
        .example("gzip_types text/css application/javascript application/json image/svg+xml;"),
    Directive::new("gzip_vary", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("say that the response depends on Accept-Encoding")
        .long("With `on`, responses carry `Vary: Accept-Encoding`, so that caches keep both forms apart.")
        .example("gzip_vary on;"),
    Directive::new("gzip_window", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("a tuning knob of nginx's compressor")
        .short("memory of the compressor")
        .long("Mayfly sizes its buffers itself. The line has no effect.")
        .example("gzip_window 32k;"),
];
