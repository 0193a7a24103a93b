//! Table of the `zstd*` directives, as zstd-nginx-module has them
//! (<https://github.com/tokers/zstd-nginx-module>).

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
    Directive::new("zstd_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .ignored("Mayfly sizes its buffers itself")
        .short("sets the memory for compressing")
        .long("In the nginx module, it is the number and size of the buffers.")
        .example("zstd_buffers 16 8k;"),
    Directive::new("zstd_comp_level", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LEVEL").inherited()
        .default("1")
        .short("sets the level of compression")
        .long("1 is the fastest. 22 gives the smallest result, and is very slow.")
        .example("zstd_comp_level 3;"),
    Directive::new("zstd_min_length", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LENGTH").inherited()
        .default("20")
        .short("sets the size of the smallest response that is compressed")
        .long("\
            The size is the one in the field `Content-Length`. A response without this field is \
            compressed.")
        .example("zstd_min_length 1000;"),
    Directive::new("zstd_static", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | always").inherited()
        .default("off")
        .short("sends files that were compressed beforehand")
        .long("\
            With `on`, `a.css.zst` is sent for `a.css` to clients that accept zstd. With `always`, it is \
            sent to all clients. You have to make the compressed files yourself.")
        .example("zstd_static on;"),
    Directive::new("zstd_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ... | *").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("sets the media types that are compressed")
        .long("\
            `text/html` is always included. `*` means all types. Pictures, videos and archives are \
            compressed already.")
        .example("zstd_types text/css application/javascript application/json image/svg+xml;"),
];
