//! Fields added to responses, and their charset.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("add_header", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(2, 3, "NAME VALUE [always]").inherited_as_a_whole().repeats(),
    Directive::new("add_trailer", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(2, 3, "NAME VALUE [always]").inherited_as_a_whole().repeats(),
    Directive::new("charset", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "NAME | off").inherited()
        .default("off"),
    Directive::new("charset_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ...").inherited_as_a_whole().repeats()
        .default("text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml"),
    Directive::new("expires", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 2, "[modified] TIME | epoch | max | off").inherited()
        .default("off"),
    Directive::new("override_charset", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
];
