//! Table of the `brotli*` directives, as the module ngx_brotli has them
//! (<https://github.com/google/ngx_brotli>).

use super::codings::{buffers, min_length, precompressed, types};
use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("brotli", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("compresses responses with brotli")
        .long("\
            Responses are compressed for clients that accept `br`. If a client accepts several codings, \
            the one with the highest weight is used. If weights are equal, the order is `br`, `zstd`, \
            `gzip`. A stored response is compressed once, and the compressed form is stored too. \
            `gzip_vary` has an effect on these responses.")
        .example("brotli on;"),
    buffers("brotli_buffers", "brotli_buffers 16 8k;"),
    Directive::new("brotli_comp_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LEVEL").inherited()
        .default("6")
        .short("sets the level of compression")
        .long("\
            0 is the fastest. 11 gives the smallest result, and is very slow. Responses that are stored \
            are compressed only once, so that a higher level costs little there.")
        .example("brotli_comp_level 5;"),
    min_length("brotli_min_length", "brotli_min_length 1000;"),
    precompressed("brotli_static", "\
            With `on`, `a.css.br` is sent for `a.css` to clients that accept brotli. With `always`, it \
            is sent to all clients. You have to make the compressed files yourself.", "brotli_static on;"),
    types("brotli_types", "brotli_types text/css application/javascript application/json image/svg+xml;"),
    Directive::new("brotli_window", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("512k")
        .short("sets the window of the compressor")
        .long("\
            The size is a power of two from `1k` to `16m`. A larger window makes large responses \
            smaller, and needs as much memory in the server and in the client.")
        .example("brotli_window 1m;"),
];
