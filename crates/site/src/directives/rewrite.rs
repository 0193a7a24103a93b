//! The rewrite module, and variables made from others.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("break", &[Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(0, 0, "").repeats()
        .short("end the steps of rewriting")
        .long("Steps of this level that come after it are not taken, and the request stays in this location.")
        .example("break;"),
    Directive::new("geo", &[Context::Http])
        .takes(1, 2, "[$ADDRESS] $NAME { NETWORK VALUE; ... }").entries().repeats()
        .short("a variable that depends on an address")
        .long("The longest network that holds the client's address decides. With `ranges`, entries are ranges of IPv4 addresses. `proxy` names addresses whose `X-Forwarded-For` is believed; `delete` takes a network out again.")
        .example("geo $is_office { default 0; 192.0.2.0/24 1; }"),
    Directive::new("if", &[Context::Server, Context::Location])
        .takes(1, usize::MAX, "(CONDITION) { ... }").block().repeats()
        .short("something for some requests only")
        .long("The condition is a variable (true unless empty or 0), a comparison with `=` or `!=`, a pattern with `~`, `~*`, `!~`, `!~*`, or a test of a file with `-f`, `-d`, `-e`, `-x`. In a location the block is a location of its own: what it does not set is inherited, except for `try_files`. There is no else, no and, no or: `map` is usually the better way.")
        .example("if ($request_method = POST) { set $skip_cache 1; }"),
    Directive::new("map", &[Context::Http])
        .takes(2, 2, "SOURCE $NAME { KEY VALUE; ... }").entries().repeats()
        .short("a variable that depends on another value")
        .long("Each entry is a key and a value. Keys compare without case; those that begin with `~` or `~*` are patterns, whose groups may be used in the value. `default` is for all others. With `hostnames`, keys may be wildcards like those of `server_name`; `volatile` asks anew each time.")
        .example("map $http_user_agent $is_bot { default 0; ~*(googlebot|bingbot) 1; }"),
    Directive::new("return", &[Context::Server, Context::Location, Context::LocationIf, Context::LimitExcept, Context::ServerIf])
        .takes(1, 2, "CODE [TEXT] | CODE URL | URL").repeats()
        .short("answer at once")
        .long("A status alone, a status with a text or (for redirects) an address, or an address that is redirected to with 302. The status 444 closes the connection without an answer.")
        .example("return 301 https://example.org$request_uri;"),
    Directive::new("rewrite", &[Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(2, 3, "PATTERN REPLACEMENT [last | break | redirect | permanent]").repeats()
        .short("change the path of a request")
        .long("Where the pattern matches the path, the replacement becomes the new one; groups are `$1` to `$9`. The old arguments are appended unless the replacement ends in `?`. `last` looks for a location anew, `break` stays, `redirect` and `permanent` answer 302 and 301, as does a replacement with a scheme.")
        .example("rewrite ^/old/(.*)$ /new/$1 permanent;"),
    Directive::new("rewrite_log", &[Context::Http, Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("steps of rewriting are logged at level debug")
        .short("log the steps of rewriting")
        .long("The steps are in the error log at level `debug` in any case.")
        .example("rewrite_log on;"),
    Directive::new("set", &[Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(2, 2, "$NAME VALUE").repeats()
        .short("give a variable a value")
        .long("The value may have other variables in it. `$args` and `$limit_rate` can be set as well; other built-in variables cannot. A variable that was never set is empty.")
        .example("set $skip_cache 0;"),
    Directive::new("split_clients", &[Context::Http])
        .takes(2, 2, "SOURCE $NAME { PERCENT VALUE; ... }").entries().repeats()
        .short("a variable that splits visitors into groups")
        .long("The value of the first argument is hashed, and the hash decides the group, so that a visitor stays in theirs. `*` takes the rest.")
        .example("split_clients $remote_addr $variant { 50% a; * b; }"),
    Directive::new("uninitialized_variable_warn", &[Context::Http, Context::Server, Context::Location, Context::LocationIf, Context::ServerIf])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .ignored("an unset variable is empty and no warning is logged")
        .short("warn about unset variables")
        .long("An unset variable is empty. No warning is written.")
        .example("uninitialized_variable_warn off;"),
];
