//! `br` compression, as ngx_brotli has it (<https://github.com/google/ngx_brotli>).

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("brotli", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("compress responses with brotli")
        .long("Compresses for clients that accept `br`. Of several codings that a client accepts it gets the one of the highest weight, among equals `br` before `zstd` before `gzip`. A stored response is compressed once and kept so beside it. `gzip_vary` counts here too.")
        .example("brotli on;"),
    Directive::new("brotli_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .ignored("Mayfly sizes its buffers itself")
        .short("memory for compressing")
        .long("Mayfly sizes its buffers itself. The line has no effect.")
        .example("brotli_buffers 16 8k;"),
    Directive::new("brotli_comp_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LEVEL").inherited()
        .default("6")
        .short("how hard to compress")
        .long("0 is fast, 11 is small and very slow. Stored responses are compressed once, so that they can afford more than others.")
        .example("brotli_comp_level 5;"),
    Directive::new("brotli_min_length", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LENGTH").inherited()
        .default("20")
        .short("smallest response to compress")
        .long("Looks at `Content-Length`; a response without it is compressed.")
        .example("brotli_min_length 1000;"),
    Directive::new("brotli_static", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | always").inherited()
        .default("off")
        .short("send compressed files that are there")
        .long("With `on`, `a.css.br` is sent for `a.css` to clients that accept it; with `always`, to all.")
        .example("brotli_static on;"),
    Directive::new("brotli_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ... | *").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("types to compress")
        .long("`text/html` always counts; `*` is all. Pictures and archives gain nothing.")
        .example("brotli_types text/css application/javascript application/json image/svg+xml;"),
    Directive::new("brotli_window", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("512k")
        .short("how far back the compressor looks")
        .long("A power of two from `1k` to `16m`. Larger ones help on large responses, and take as much memory on both sides.")
        .example("brotli_window 1m;"),
];
