//! Table of the `zstd*` directives, as zstd-nginx-module has them
//! (<https://github.com/tokers/zstd-nginx-module>).

use super::Directive;
use super::codings::{buffers, min_length, precompressed, types};
use super::declaration::*;
use crate::model::PrecompressedFiles;

table! {
    ZSTD: Flag = flag("zstd", LEVELS_AND_IF, "off").text("compresses responses with zstd", "zstd on;", "\
        Responses are compressed for clients that accept `zstd`. If a client accepts several codings, the one with \
        the highest weight is used. If weights are equal, the order is `br`, `zstd`, `gzip`. A stored response is \
        compressed once, and the compressed form is stored too. `gzip_vary` has an effect on these responses.");
    _ = buffers("zstd_buffers", "zstd_buffers 16 8k;");
    ZSTD_COMP_LEVEL: Number = number("zstd_comp_level", LEVELS).range(1, 22).takes((1, 1), "LEVEL").default("1").text(
        "sets the level of compression", "zstd_comp_level 3;",
        "1 is the fastest. 22 gives the smallest result, and is very slow.");
    ZSTD_MIN_LENGTH: Size = min_length("zstd_min_length", "zstd_min_length 1000;");
    ZSTD_STATIC: Choice<PrecompressedFiles> = precompressed("zstd_static", "\
            With `on`, `a.css.zst` is sent for `a.css` to clients that accept zstd. With `always`, it is \
            sent to all clients. You have to make the compressed files yourself.", "zstd_static on;");
    ZSTD_TYPES: Lines = types("zstd_types", "zstd_types text/css application/javascript application/json image/svg+xml;");
}
