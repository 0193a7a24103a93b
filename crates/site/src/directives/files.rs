//! Index files, listings and content without files.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("autoindex", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("autoindex_exact_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on"),
    Directive::new("autoindex_format", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "html | json | jsonp | xml").inherited()
        .default("html"),
    Directive::new("autoindex_localtime", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("empty_gif", &[Context::Location])
        .takes(0, 0, ""),
    Directive::new("index", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "FILE ...").inherited_as_a_whole().repeats()
        .default("index.html"),
    Directive::new("stub_status", &[Context::Server, Context::Location])
        .takes(0, 1, ""),
];
