//! Common parts of the tables of `gzip*`, `brotli*` and `zstd*`.

use super::declaration::*;
use crate::model::PrecompressedFiles;

pub(super) const fn buffers(name: &'static str, example: &'static str) -> Declaration<Lines> {
    lines(name, LEVELS, (2, 2), "NUMBER SIZE")
        .inherited()
        .ignored("Mayfly sizes its buffers itself")
        .text(
            "sets the memory for compressing",
            example,
            "In nginx, it is the number and size of the buffers.",
        )
}

pub(super) const fn min_length(name: &'static str, example: &'static str) -> Declaration<Size> {
    size(name, LEVELS).takes((1, 1), "LENGTH").default("20").text(
        "sets the size of the smallest response that is compressed",
        example,
        "The size is the one in the field `Content-Length`. A response without this field is compressed.",
    )
}

pub(super) const fn precompressed(
    name: &'static str,
    long: &'static str,
    example: &'static str,
) -> Declaration<Choice<PrecompressedFiles>> {
    const WORDS: &[(&str, PrecompressedFiles)] = &[
        ("off", PrecompressedFiles::Off),
        ("on", PrecompressedFiles::On),
        ("always", PrecompressedFiles::Always),
    ];
    choice(name, LEVELS, "on | off | always", WORDS)
        .default("off")
        .text("sends files that were compressed beforehand", example, long)
}

pub(super) const fn types(name: &'static str, example: &'static str) -> Declaration<Lines> {
    lines(name, LEVELS, (1, MANY), "TYPE ... | *")
        .inherited_as_a_whole()
        .repeats()
        .default("text/html")
        .text(
            "sets the media types that are compressed",
            example,
            "`text/html` is always included. `*` means all types. Pictures, videos and archives are \
             compressed already.",
        )
}
