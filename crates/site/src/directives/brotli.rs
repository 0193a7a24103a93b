//! Table of the `brotli*` directives, as the module ngx_brotli has them
//! (<https://github.com/google/ngx_brotli>).

use super::Directive;
use super::codings::{buffers, min_length, precompressed, types};
use super::declaration::*;
use crate::model::PrecompressedFiles;

table! {
    BROTLI: Flag = flag("brotli", LEVELS_AND_IF, "off").text("compresses responses with brotli", "brotli on;", "\
        Responses are compressed for clients that accept `br`. If a client accepts several codings, the one with the \
        highest weight is used. If weights are equal, the order is `br`, `zstd`, `gzip`. A stored response is \
        compressed once, and the compressed form is stored too. `gzip_vary` has an effect on these responses.");
    _ = buffers("brotli_buffers", "brotli_buffers 16 8k;");
    BROTLI_COMP_LEVEL: Number = number("brotli_comp_level", LEVELS)
        .range(0, 11).takes((1, 1), "LEVEL").default("6").text(
        "sets the level of compression", "brotli_comp_level 5;", "\
        0 is the fastest. 11 gives the smallest result, and is very slow. Responses that are stored are compressed \
        only once, so that a higher level costs little there.");
    BROTLI_MIN_LENGTH: Size = min_length("brotli_min_length", "brotli_min_length 1000;");
    BROTLI_STATIC: Choice<PrecompressedFiles> = precompressed("brotli_static", "\
            With `on`, `a.css.br` is sent for `a.css` to clients that accept brotli. With `always`, it \
            is sent to all clients. You have to make the compressed files yourself.", "brotli_static on;");
    BROTLI_TYPES: Lines = types("brotli_types", "brotli_types text/css application/javascript application/json image/svg+xml;");
    BROTLI_WINDOW: Choice<u8> = choice("brotli_window", LEVELS, "SIZE", &[
        ("1k", 10), ("2k", 11), ("4k", 12), ("8k", 13), ("16k", 14), ("32k", 15), ("64k", 16), ("128k", 17),
        ("256k", 18), ("512k", 19), ("1m", 20), ("2m", 21), ("4m", 22), ("8m", 23), ("16m", 24),
    ])
        .default("512k").text("sets the window of the compressor", "brotli_window 1m;", "\
        The size is a power of two from `1k` to `16m`. A larger window makes large responses smaller, and needs as \
        much memory in the server and in the client.");
}
