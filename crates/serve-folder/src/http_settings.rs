//! Settings of the http block that folders and upstreams share: the log, types of files,
//! compression, and the proxies that are trusted.

use super::conf_text::{CannotWrite, Conf, list, path, word};
use super::options::{AccessLogPlace, ServeOptions};

/// Writes the settings of the process before everything else: how the program runs, and its
/// error log.
pub(super) fn process(conf: &mut Conf, options: &ServeOptions) {
    if !options.service {
        conf.line("daemon off;");
    }
    conf.line("worker_processes auto;");
    match options.service {
        true => {
            conf.line("worker_shutdown_timeout 30s;");
            conf.line("error_log error.log warn;");
        }
        false => conf.line("error_log stderr warn;"),
    }
    conf.gap();
    conf.line("events {}");
    conf.gap();
}

/// Writes the includes of the service: further directives, and further sites.
pub(super) fn included(conf: &mut Conf, options: &ServeOptions) {
    if options.service {
        conf.gap();
        conf.note("Further directives for all sites, and further sites.");
        conf.line("include conf.d/*.conf;");
        conf.line("include sites/*.conf;");
    }
}

pub(super) fn log(conf: &mut Conf, options: &ServeOptions) -> Result<(), CannotWrite> {
    conf.line(
        "log_format pages '$remote_addr [$time_local] \"$request\" $status $body_bytes_sent '",
    );
    conf.line("                 '$request_time $upstream_cache_status \"$http_user_agent\"';");
    match &options.access_log {
        Some(AccessLogPlace::Stderr) => conf.line("access_log stderr pages;"),
        Some(AccessLogPlace::File(file)) => conf.line(&format!(
            "access_log {} pages buffer=64k flush=1s;",
            path(file)?
        )),
        None if options.service => {
            conf.line("access_log access.log pages buffer=64k flush=1s;");
        }
        None => conf.line("access_log off;"),
    }
    conf.gap();
    Ok(())
}

/// Media types of usual files; other files are handed out as downloads.
const TYPES: [(&str, &str); 42] = [
    ("text/html", "html htm shtml"),
    ("text/css", "css"),
    ("text/xml", "xml"),
    ("text/plain", "txt"),
    ("text/csv", "csv"),
    ("text/vtt", "vtt"),
    ("text/calendar", "ics"),
    ("text/markdown", "md"),
    ("application/javascript", "js mjs"),
    ("application/json", "json map"),
    ("application/manifest+json", "webmanifest"),
    ("application/atom+xml", "atom"),
    ("application/rss+xml", "rss"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/gzip", "gz tgz"),
    ("application/wasm", "wasm"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpeg jpg jfif"),
    ("image/png", "png"),
    ("image/apng", "apng"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/svg+xml", "svg"),
    ("image/x-icon", "ico cur"),
    ("image/bmp", "bmp"),
    ("font/woff", "woff"),
    ("font/woff2", "woff2"),
    ("font/ttf", "ttf"),
    ("font/otf", "otf"),
    ("application/vnd.ms-fontobject", "eot"),
    ("application/xslt+xml", "xsl xslt"),
    ("audio/mpeg", "mp3"),
    ("audio/mp4", "m4a"),
    ("audio/aac", "aac"),
    ("audio/wav", "wav"),
    ("audio/flac", "flac"),
    ("video/quicktime", "mov"),
    ("audio/ogg", "ogg oga opus"),
    ("video/mp4", "mp4 m4v"),
    ("video/webm", "webm"),
    ("video/ogg", "ogv"),
];

pub(super) fn types(conf: &mut Conf) {
    conf.open("types");
    for (name, extensions) in TYPES {
        conf.line(&format!("{name} {extensions};"));
    }
    conf.close();
    conf.line("default_type application/octet-stream;");
    conf.line("sendfile on;");
    conf.gap();
}

/// Types of text, beside HTML, and others that compress as well.
const COMPRESSED_TYPES: &str = "text/css text/xml text/plain text/csv text/vtt text/calendar \
    text/markdown text/javascript application/javascript application/json application/ld+json \
    application/manifest+json application/atom+xml application/rss+xml application/xml \
    application/xhtml+xml application/xslt+xml application/wasm application/vnd.ms-fontobject \
    image/svg+xml image/x-icon image/bmp font/ttf font/otf";

/// Levels are those at which a page takes a few milliseconds: a stored page is compressed once
/// for all, a personal one for its visitor.
pub(super) fn compression(conf: &mut Conf) {
    conf.note("Text is compressed, once for each stored page and each file.");
    let types: Vec<&str> = COMPRESSED_TYPES.split_whitespace().collect();
    for (coding, level) in [("brotli", 4), ("zstd", 3), ("gzip", 5)] {
        conf.line(&format!("{coding} on;"));
        conf.line(&format!("{coding}_comp_level {level};"));
        conf.line(&format!("{coding}_min_length 256;"));
        list(conf, &format!("{coding}_types"), &types);
    }
    conf.line("gzip_proxied any;");
    conf.line("gzip_vary on;");
    conf.gap();
}

/// Writes the proxies that are believed about a visitor's address, scheme and host.
pub(super) fn trusted_proxies(conf: &mut Conf, options: &ServeOptions) -> Result<(), CannotWrite> {
    for proxy in &options.behind {
        conf.line(&format!("trusted_proxy {};", word(proxy)?));
    }
    Ok(())
}
