//! `zstd` compression, as zstd-nginx-module has it (<https://github.com/tokers/zstd-nginx-module>).

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("zstd", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("compress responses with zstd")
        .long("Compresses for clients that accept `zstd`. Of several codings that a client accepts it gets the one of the highest weight, among equals `br` before `zstd` before `gzip`. A stored response is compressed once and kept so beside it. `gzip_vary` counts here too.")
        .example("zstd on;"),
    Directive::new("zstd_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .ignored("Mayfly sizes its buffers itself")
        .short("memory for compressing")
        .long("Mayfly sizes its buffers itself. The line has no effect.")
        .example("zstd_buffers 16 8k;"),
    Directive::new("zstd_comp_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LEVEL").inherited()
        .default("1")
        .short("how hard to compress")
        .long("1 is fast, 22 is small and very slow.")
        .example("zstd_comp_level 3;"),
    Directive::new("zstd_min_length", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LENGTH").inherited()
        .default("20")
        .short("smallest response to compress")
        .long("Looks at `Content-Length`; a response without it is compressed.")
        .example("zstd_min_length 1000;"),
    Directive::new("zstd_static", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | always").inherited()
        .default("off")
        .short("send compressed files that are there")
        .long("With `on`, `a.css.zst` is sent for `a.css` to clients that accept it; with `always`, to all.")
        .example("zstd_static on;"),
    Directive::new("zstd_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ... | *").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("types to compress")
        .long("`text/html` always counts; `*` is all. Pictures and archives gain nothing.")
        .example("zstd_types text/css application/javascript application/json image/svg+xml;"),
];
