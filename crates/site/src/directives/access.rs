//! Who may come in, and who a client is.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("allow", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "ADDRESS | NETWORK | unix: | all").inherited_as_a_whole().repeats(),
    Directive::new("auth_basic", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "REALM | off").inherited()
        .default("off"),
    Directive::new("auth_basic_user_file", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FILE").inherited(),
    Directive::new("auth_delay", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("0s"),
    Directive::new("deny", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "ADDRESS | NETWORK | unix: | all").inherited_as_a_whole().repeats(),
    Directive::new("real_ip_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FIELD | X-Real-IP | X-Forwarded-For | proxy_protocol").inherited()
        .default("X-Real-IP"),
    Directive::new("real_ip_recursive", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off"),
    Directive::new("set_real_ip_from", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "ADDRESS | NETWORK | unix:").inherited_as_a_whole().repeats(),
    Directive::new("valid_referers", &[Context::Server, Context::Location])
        .takes(1, usize::MAX, "none | blocked | server_names | NAME ...").inherited_as_a_whole().repeats(),
];
