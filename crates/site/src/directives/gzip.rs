//! Table of the `gzip*` directives and `gunzip`.

use super::Directive;
use super::codings::{buffers, min_length, precompressed, types};
use super::declaration::*;
use crate::model::PrecompressedFiles;

table! {
    GUNZIP: Flag = flag("gunzip", LEVELS, "off").text(
        "decompresses responses for clients that do not accept gzip", "gunzip on;", "\
        It has an effect on responses that are compressed already, such as those of upstreams and of \
        `memcached_gzip_flag`.");
    _ = lines("gunzip_buffers", LEVELS, (2, 2), "NUMBER SIZE").inherited()
        .ignored("Mayfly sizes its buffers itself").text(
        "sets the memory for decompressing", "gunzip_buffers 32 4k;",
        "In nginx, it is the number and size of the buffers.");
    GZIP: Flag = flag("gzip", LEVELS_AND_IF, "off").text("compresses responses with gzip", "gzip on;", "\
        Responses are compressed for clients that accept gzip. The other directives of this section choose which \
        ones. Responses that are compressed already are not changed.");
    _ = buffers("gzip_buffers", "gzip_buffers 16 8k;");
    GZIP_COMP_LEVEL: Number = number("gzip_comp_level", LEVELS).range(1, 9).takes((1, 1), "LEVEL").default("1").text(
        "sets the level of compression", "gzip_comp_level 5;",
        "1 is the fastest, 9 gives the smallest result. Levels above 6 gain little.");
    _ = lines("gzip_disable", LEVELS, (1, MANY), "PATTERN ... | msie6").inherited_as_a_whole().repeats().text(
        "names clients that get no compressed responses", r#"gzip_disable "msie6";"#, "\
        The values are patterns for the request field `User-Agent`. Case does not count. `msie6` means old versions \
        of Internet Explorer.");
    _ = size("gzip_hash", LEVELS).ignored("a tuning knob of nginx's compressor").text(
        "sets the memory of nginx's compressor", "gzip_hash 64k;", "It is a setting for developers of nginx.");
    GZIP_HTTP_VERSION: Choice<u8> = choice("gzip_http_version", LEVELS, "1.0 | 1.1", &[("1.0", 0), ("1.1", 1)])
        .default("1.1").text("sets the oldest version of HTTP for compressed responses", "gzip_http_version 1.0;",
        "With the default, clients with HTTP/1.0 get responses that are not compressed.");
    GZIP_MIN_LENGTH: Size = min_length("gzip_min_length", "gzip_min_length 1000;");
    _ = flag("gzip_no_buffer", LEVELS, "off").ignored("Mayfly sizes its buffers itself").text(
        "sends compressed data at once", "gzip_no_buffer on;", "It is a setting for developers of nginx.");
    _ = lines("gzip_proxied", LEVELS, (1, MANY), "off | expired | no-cache | no-store | private | no_last_modified | no_etag | auth | any ...")
        .default("off").inherited_as_a_whole().repeats().text(
        "sets whether responses to requests from proxies are compressed", "gzip_proxied any;", "\
        A request comes from a proxy if it has the field `Via`. With `any`, all responses are compressed. With \
        `auth`, those to requests with `Authorization`. The other words compress responses with a field that keeps \
        proxies from storing them: `expired`, `no-cache`, `no-store` and `private`; or without a field: \
        `no_last_modified` and `no_etag`.");
    GZIP_STATIC: Choice<PrecompressedFiles> = precompressed("gzip_static", "\
            With `on`, `a.css.gz` is sent for `a.css` to clients that accept gzip. With `always`, it is \
            sent to all clients. You have to make the compressed files yourself.", "gzip_static on;");
    GZIP_TYPES: Lines = types("gzip_types", "gzip_types text/css application/javascript application/json image/svg+xml;");
    GZIP_VARY: Flag = flag("gzip_vary", LEVELS, "off").text(
        "adds Vary: Accept-Encoding to responses", "gzip_vary on;", "\
        With `on`, caches between the server and the client keep compressed and other responses apart. It has an \
        effect on `brotli` and `zstd` too.");
    _ = size("gzip_window", LEVELS).ignored("a tuning knob of nginx's compressor").text(
        "sets the memory of nginx's compressor", "gzip_window 32k;", "It is a setting for developers of nginx.");
}
