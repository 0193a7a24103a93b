//! Access logs.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("access_log", &[Context::Http, Context::Server, Context::Location, Context::LocationIf, Context::LimitExcept])
        .takes(1, usize::MAX, "PATH [FORMAT] [buffer=SIZE] [gzip[=LEVEL]] [flush=TIME] [if=CONDITION] | off").inherited_as_a_whole().repeats()
        .default("logs/access.log combined")
        .short("where requests are logged")
        .long("A file, `stderr`, or a syslog server, and a format of `log_format`. `buffer` writes many lines at once, after `flush` at the latest; `gzip` compresses them. `if` logs only where its value is neither empty nor 0. Variables in the path make several files. `off` writes none.")
        .example("access_log /var/log/mayfly/access.log combined buffer=64k flush=1s;"),
    Directive::new("log_format", &[Context::Http])
        .takes(2, usize::MAX, "NAME [escape=default | json | none] TEXT ...").repeats()
        .default(r#"combined "...""#)
        .short("what a line of an access log says")
        .long("A name and a text with variables; several texts are joined. Unsafe characters are escaped, with `escape=json` so that the line may be JSON. `combined` is predefined.")
        .example(r#"log_format timed '$remote_addr "$request" $status $request_time $upstream_cache_status';"#),
    Directive::new("open_log_file_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "max=NUMBER [inactive=TIME] [min_uses=NUMBER] [valid=TIME] | off").inherited()
        .default("off")
        .short("keep logs with variable names open")
        .long("Counts for `access_log` with variables in its path. `max` bounds their number.")
        .example("open_log_file_cache max=100 inactive=20s valid=1m;"),
];
