//! Access logs.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("access_log", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, usize::MAX, "PATH [FORMAT] [buffer=SIZE] [gzip[=LEVEL]] [flush=TIME] [if=CONDITION] | off").inherited_as_a_whole().repeats()
        .default("logs/access.log combined"),
    Directive::new("log_format", &[Context::Http])
        .takes(2, usize::MAX, "NAME [escape=default | json | none] TEXT ...").repeats()
        .default(r#"combined "...""#),
    Directive::new("open_log_file_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "max=NUMBER [inactive=TIME] [min_uses=NUMBER] [valid=TIME] | off").inherited()
        .default("off"),
];
