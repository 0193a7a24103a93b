//! Table of directives about active health checks.

use super::Directive;
use super::declaration::*;

table! {
    _ = lines("health_check", LOCATION, (0, MANY), "[interval=TIME] [jitter=TIME] [fails=NUMBER] [passes=NUMBER] [uri=URI] [mandatory [persistent]] [match=NAME] [port=NUMBER] [keepalive_time=TIME]").repeats().text(
        "checks the servers of a group at regular times", "fastcgi_pass 127.0.0.1:9000; health_check interval=2s fails=3 passes=2 uri=/ping;", "\
        Each server of the group that this location's `proxy_pass` or `fastcgi_pass` names gets a GET request. A \
        check succeeds if the status is from 200 to 399, or if the `match` block holds.\n\n\
        - `interval` (default 5s): the time between two checks. `jitter` delays each check by a random time up to \
        this value.\n\
        - `fails` (default 1): after this number of failed checks in a row, the server gets no requests.\n\
        - `passes` (default 1): after this number of successful checks in a row, it gets requests again. With \
        `slow_start`, their number then grows slowly.\n\
        - `uri` (default `/`): the path of the request. With `fastcgi_pass`, it is the path of a script below \
        `root`.\n\
        - `mandatory`: a server gets no requests before its first successful check. With `persistent`, a server that \
        was healthy before a reload stays healthy.\n\
        - `match=NAME`: a `match` block with the conditions.\n\
        - `port`: another port for the checks.\n\
        - `keepalive_time`: checks use one connection for this time, instead of a new connection each.");
    _ = lines("match", HTTP, (1, 1), "NAME { TEST; ... }").entries().repeats().text(
        "defines when a health check succeeds", "match well { status 200; header Content-Type ~ html; body !~ \"maintenance\"; }", "\
        All tests of the block must hold:\n\n\
        - `status 200 300-399` or `status ! 500`: the status is one of these, or none of these.\n\
        - `header NAME`, `header ! NAME`: the field is there, or not.\n\
        - `header NAME = VALUE`, also with `!=`, `~` and `!~`: the field is compared with a value or a pattern.\n\
        - `body ~ PATTERN`, `body !~ PATTERN`: the first 256 kilobytes of the body match, or do not match.\n\
        - `require $VARIABLE ...`: no variable is empty or `0`.");
}
