//! Table of the `zstd*` directives, as zstd-nginx-module has them
//! (<https://github.com/tokers/zstd-nginx-module>).

use super::codings::{buffers, min_length, precompressed, types};
use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("zstd", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("compresses responses with zstd")
        .long("\
            Responses are compressed for clients that accept `zstd`. If a client accepts several \
            codings, the one with the highest weight is used. If weights are equal, the order is `br`, \
            `zstd`, `gzip`. A stored response is compressed once, and the compressed form is stored too. \
            `gzip_vary` has an effect on these responses.")
        .example("zstd on;"),
    buffers("zstd_buffers", "zstd_buffers 16 8k;"),
    Directive::new("zstd_comp_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LEVEL").inherited()
        .default("1")
        .short("sets the level of compression")
        .long("1 is the fastest. 22 gives the smallest result, and is very slow.")
        .example("zstd_comp_level 3;"),
    min_length("zstd_min_length", "zstd_min_length 1000;"),
    precompressed("zstd_static", "\
            With `on`, `a.css.zst` is sent for `a.css` to clients that accept zstd. With `always`, it is \
            sent to all clients. You have to make the compressed files yourself.", "zstd_static on;"),
    types("zstd_types", "zstd_types text/css application/javascript application/json image/svg+xml;"),
];
