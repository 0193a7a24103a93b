//! Table of the rewrite directives, and of those that define variables from other values.

use super::declaration::*;
use super::{Context, Directive};

table! {
    _ = lines("break", &[Context::Server, Context::Location, Context::LocationIf, Context::ServerIf], (0, 0), "").repeats().text(
        "ends the rewriting of a request at this level", "break;", "\
        Later `rewrite`, `set`, `if` and `return` lines of this level are not used. The request stays in its \
        location.");
    _ = lines("geo", HTTP, (1, 2), "[$ADDRESS] $NAME { NETWORK VALUE; ... }").entries().repeats().text(
        "sets a variable by the client's address", "geo $is_office { default 0; 192.0.2.0/24 1; }", "\
        Each entry is a network and a value. If several networks contain the address, the smallest network decides. \
        `default` is the value for all other addresses. The first argument may be a variable that contains the \
        address.\n\n\
        - `ranges` means that entries are ranges of IPv4 addresses, such as `192.0.2.0-192.0.2.255`.\n\
        - `proxy NETWORK` names trusted proxies: the client's address is then taken from `X-Forwarded-For`. With \
        `proxy_recursive`, trusted addresses at the end of that field are skipped.\n\
        - `delete NETWORK` removes an entry.");
    _ = lines("if", &[Context::Server, Context::Location], (1, MANY), "(CONDITION) { ... }").block().repeats().text(
        "sets what holds for some requests only", "if ($request_method = POST) { set $skip_cache 1; }", "\
        The condition is in round brackets. It is one of\n\n\
        - a variable: true unless its value is empty or `0`,\n\
        - a comparison with `=` or `!=`,\n\
        - a pattern after `~` (case counts), `~*` (case does not count), `!~` or `!~*`,\n\
        - a test of a file: `-f` (file), `-d` (directory), `-e` (exists), `-x` (executable), or with `!` before \
        it.\n\n\
        In a location, the block becomes a location of its own. It inherits everything except `try_files`. There is \
        no `else`, and two conditions cannot be joined. Use `map` where possible.");
    _ = lines("map", HTTP, (2, 2), "SOURCE $NAME { KEY VALUE; ... }").entries().repeats().text(
        "sets a variable by the value of another one", "map $http_user_agent $is_bot { default 0; ~*(googlebot|bingbot) 1; }", "\
        Each entry is a key and a value. Case does not count in keys. A key that begins with `~` (case counts) or \
        `~*` (case does not count) is a pattern, and the value may contain its groups. `default` is the value for \
        everything else.\n\n\
        With `hostnames`, keys may have wildcards as in `server_name`. A value is computed once for each request. \
        With `volatile`, it is computed each time.");
    _ = lines("return", &[Context::Server, Context::Location, Context::LocationIf, Context::LimitExcept, Context::ServerIf], (1, 2), "CODE [TEXT] | CODE URL | URL").repeats().text(
        "ends the request with a status, a text or a redirect", "return 301 https://example.org$request_uri;", "\
        It has three forms: a status alone or with a text, a redirect status (301, 302, 303, 307, 308) with a URL, \
        and a URL alone, which redirects with 302. A URL alone must begin with `http://`, `https://` or `$scheme`. \
        The status 444 closes the connection without a response.");
    _ = lines("rewrite", &[Context::Server, Context::Location, Context::LocationIf, Context::ServerIf], (2, 3), "PATTERN REPLACEMENT [last | break | redirect | permanent]").repeats().text(
        "changes the path of a request", "rewrite ^/old/(.*)$ /new/$1 permanent;", "\
        If the pattern matches the path, the replacement becomes the new path. The replacement may contain the \
        groups `$1` to `$9`. The arguments of the request are appended, unless the replacement ends in `?`. The last \
        argument says what happens next:\n\n\
        - nothing: the following lines of this level are used.\n\
        - `last`: a location is searched for the new path.\n\
        - `break`: the request stays in this location.\n\
        - `redirect`: the client is redirected with 302.\n\
        - `permanent`: the client is redirected with 301.\n\n\
        A replacement that begins with `http://`, `https://` or `$scheme` always redirects.");
    _ = flag("rewrite_log", &[Context::Http, Context::Server, Context::Location, Context::LocationIf, Context::ServerIf], "off")
        .missing("steps of rewriting are not logged").text("logs the steps of rewriting", "rewrite_log on;",
        "In nginx, `on` logs each match and its result at level `notice`.");
    _ = lines("set", &[Context::Server, Context::Location, Context::LocationIf, Context::ServerIf], (2, 2), "$NAME VALUE").repeats().text(
        "sets a variable", "set $skip_cache 0;", "\
        The value may contain other variables. Of the built-in variables, only `$args` and `$limit_rate` can be set. \
        A variable whose `set` was not run is empty.");
    _ = lines("split_clients", HTTP, (2, 2), "SOURCE $NAME { PERCENT VALUE; ... }").entries().repeats().text(
        "divides visitors into groups", "split_clients $remote_addr $variant { 50% a; * b; }", "\
        The value of the first argument is hashed, and the hash chooses an entry. The same value always gets the \
        same entry, so that a visitor stays in one group. `*` takes the rest. Use it for A/B tests.");
    _ = flag("uninitialized_variable_warn", &[Context::Http, Context::Server, Context::Location, Context::LocationIf, Context::ServerIf], "on")
        .ignored("a variable that was not set is empty, and no warning is logged").text(
        "warns about variables that were not set", "uninitialized_variable_warn off;",
        "In nginx, `on` logs a warning when such a variable is used.");
}
