//! The rewrite module, and variables made from others.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("break", &[Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(0, 0, "").repeats(),
    Directive::new("geo", &[Context::Http])
        .takes(1, 2, "[$ADDRESS] $NAME { NETWORK VALUE; ... }").entries().repeats(),
    Directive::new("if", &[Context::Server, Context::Location])
        .takes(1, usize::MAX, "(CONDITION) { ... }").block().repeats(),
    Directive::new("map", &[Context::Http])
        .takes(2, 2, "SOURCE $NAME { KEY VALUE; ... }").entries().repeats(),
    Directive::new("return", &[Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(1, 2, "CODE [TEXT] | CODE URL | URL").repeats(),
    Directive::new("rewrite", &[Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(2, 3, "PATTERN REPLACEMENT [last | break | redirect | permanent]").repeats(),
    Directive::new("rewrite_log", &[Context::Http, Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("steps of rewriting are logged at level debug"),
    Directive::new("set", &[Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(2, 2, "$NAME VALUE").repeats(),
    Directive::new("split_clients", &[Context::Http])
        .takes(2, 2, "SOURCE $NAME { PERCENT VALUE; ... }").entries().repeats(),
    Directive::new("uninitialized_variable_warn", &[Context::Http, Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .ignored("an unset variable is empty and no warning is logged"),
];
