//! Common parts of the tables of `gzip*`, `brotli*` and `zstd*`.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const fn buffers(name: &'static str, example: &'static str) -> Directive {
    Directive::new(name, &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .ignored("Mayfly sizes its buffers itself")
        .short("sets the memory for compressing")
        .long("In nginx, it is the number and size of the buffers.")
        .example(example)
}

#[rustfmt::skip]
pub(super) const fn min_length(name: &'static str, example: &'static str) -> Directive {
    Directive::new(name, &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LENGTH").inherited()
        .default("20")
        .short("sets the size of the smallest response that is compressed")
        .long("\
            The size is the one in the field `Content-Length`. A response without this field is \
            compressed.")
        .example(example)
}

#[rustfmt::skip]
pub(super) const fn precompressed(name: &'static str, long: &'static str, example: &'static str) -> Directive {
    Directive::new(name, &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | always").inherited()
        .default("off")
        .short("sends files that were compressed beforehand")
        .long(long)
        .example(example)
}

#[rustfmt::skip]
pub(super) const fn types(name: &'static str, example: &'static str) -> Directive {
    Directive::new(name, &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ... | *").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("sets the media types that are compressed")
        .long("\
            `text/html` is always included. `*` means all types. Pictures, videos and archives are \
            compressed already.")
        .example(example)
}
