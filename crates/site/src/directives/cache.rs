//! The cache: one family for every protocol, and directives of our own.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("*_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "ZONE | off").inherited()
        .default("off"),
    Directive::new("*_cache_background_update", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("*_cache_bypass", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "VALUE ...").inherited_as_a_whole().repeats(),
    Directive::new("*_cache_convert_head", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("*_cache_key", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TEXT").inherited()
        .default("$scheme$host$request_uri"),
    Directive::new("*_cache_lock", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("*_cache_lock_age", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("5s"),
    Directive::new("*_cache_lock_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("5s"),
    Directive::new("*_cache_max_range_offset", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited(),
    Directive::new("*_cache_methods", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "GET | HEAD | POST ...").inherited_as_a_whole().repeats()
        .default("GET HEAD"),
    Directive::new("*_cache_min_uses", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("1"),
    Directive::new("*_cache_path", &[Context::Http])
        .takes(2, usize::MAX, "PATH keys_zone=NAME:SIZE [memory=SIZE] [max_size=SIZE] [inactive=TIME] [levels=LEVELS] ...").repeats(),
    Directive::new("*_cache_purge", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "VALUE ... | METHOD [from ADDRESS ...] | ZONE KEY").inherited_as_a_whole().repeats(),
    Directive::new("*_cache_revalidate", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("*_cache_use_stale", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "error | timeout | invalid_header | updating | http_500 | http_503 | http_403 | http_404 | http_429 | off ...").inherited_as_a_whole().repeats()
        .default("off"),
    Directive::new("*_cache_valid", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "[CODE ... | any] TIME").inherited_as_a_whole().repeats(),
    Directive::new("*_no_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "VALUE ...").inherited_as_a_whole().repeats(),
    Directive::new("cache_ignore_args", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited_as_a_whole().repeats()
        .default("off"),
    Directive::new("cache_ignore_cookies", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited_as_a_whole().repeats()
        .default("off"),
    Directive::new("cache_private", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "COOKIE ... [copies=NUMBER] [size=SIZE] | off").inherited()
        .default("off"),
    Directive::new("cache_queue_stale", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER | off").inherited()
        .default("off"),
    Directive::new("cache_read_your_writes", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME | off").inherited()
        .default("off"),
    Directive::new("cache_status_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("cache_store_authorized", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("cache_store_set_cookie", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
];
