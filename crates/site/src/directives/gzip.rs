//! Table of the `gzip*` directives and `gunzip`.

use super::codings::{buffers, min_length, precompressed, types};
use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("gunzip", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("decompresses responses for clients that do not accept gzip")
        .long("\
            It has an effect on responses that are compressed already, such as those of upstreams and of \
            `memcached_gzip_flag`.")
        .example("gunzip on;"),
    Directive::new("gunzip_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .ignored("Mayfly sizes its buffers itself")
        .short("sets the memory for decompressing")
        .long("In nginx, it is the number and size of the buffers.")
        .example("gunzip_buffers 32 4k;"),
    Directive::new("gzip", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("compresses responses with gzip")
        .long("\
            Responses are compressed for clients that accept gzip. The other directives of this section \
            choose which ones. Responses that are compressed already are not changed.")
        .example("gzip on;"),
    buffers("gzip_buffers", "gzip_buffers 16 8k;"),
    Directive::new("gzip_comp_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LEVEL").inherited()
        .default("1")
        .short("sets the level of compression")
        .long("1 is the fastest, 9 gives the smallest result. Levels above 6 gain little.")
        .example("gzip_comp_level 5;"),
    Directive::new("gzip_disable", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "PATTERN ... | msie6").inherited_as_a_whole().repeats()
        .short("names clients that get no compressed responses")
        .long("\
            The values are patterns for the request field `User-Agent`. Case does not count. `msie6` \
            means old versions of Internet Explorer.")
        .example(r#"gzip_disable "msie6";"#),
    Directive::new("gzip_hash", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("a tuning knob of nginx's compressor")
        .short("sets the memory of nginx's compressor")
        .long("It is a setting for developers of nginx.")
        .example("gzip_hash 64k;"),
    Directive::new("gzip_http_version", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "1.0 | 1.1").inherited()
        .default("1.1")
        .short("sets the oldest version of HTTP for compressed responses")
        .long("With the default, clients with HTTP/1.0 get responses that are not compressed.")
        .example("gzip_http_version 1.0;"),
    min_length("gzip_min_length", "gzip_min_length 1000;"),
    Directive::new("gzip_no_buffer", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("Mayfly sizes its buffers itself")
        .short("sends compressed data at once")
        .long("It is a setting for developers of nginx.")
        .example("gzip_no_buffer on;"),
    Directive::new("gzip_proxied", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "off | expired | no-cache | no-store | private | no_last_modified | no_etag | auth | any ...").inherited_as_a_whole().repeats()
        .default("off")
        .short("sets whether responses to requests from proxies are compressed")
        .long("\
            A request comes from a proxy if it has the field `Via`. With `any`, all responses are \
            compressed. With `auth`, those to requests with `Authorization`. The other words compress \
            responses with a field that keeps proxies from storing them: `expired`, `no-cache`, \
            `no-store` and `private`; or without a field: `no_last_modified` and `no_etag`.")
        .example("gzip_proxied any;"),
    precompressed("gzip_static", "\
            With `on`, `a.css.gz` is sent for `a.css` to clients that accept gzip. With `always`, it is \
            sent to all clients. You have to make the compressed files yourself.", "gzip_static on;"),
    types("gzip_types", "gzip_types text/css application/javascript application/json image/svg+xml;"),
    Directive::new("gzip_vary", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("adds Vary: Accept-Encoding to responses")
        .long("\
            With `on`, caches between the server and the client keep compressed and other responses \
            apart. It has an effect on `brotli` and `zstd` too.")
        .example("gzip_vary on;"),
    Directive::new("gzip_window", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("a tuning knob of nginx's compressor")
        .short("sets the memory of nginx's compressor")
        .long("It is a setting for developers of nginx.")
        .example("gzip_window 32k;"),
];
