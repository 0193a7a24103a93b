//! Table of directives about access logs.

use super::declaration::*;
use super::{Context, Directive};

table! {
    _ = lines("access_log", &[Context::Http, Context::Server, Context::Location, Context::LocationIf, Context::LimitExcept], (1, MANY), "PATH [FORMAT] [buffer=SIZE] [gzip[=LEVEL]] [flush=TIME] [if=CONDITION] | off")
        .default("logs/access.log combined").inherited_as_a_whole().repeats().text(
        "sets where requests are logged", "access_log /var/log/mayfly/access.log combined buffer=64k flush=1s;", "\
        The target is a file, `stderr`, or `syslog:` with its parameters. The format is a name from `log_format`. \
        `off` logs nothing at this level.\n\n\
        - `buffer=SIZE` collects lines and writes them together, at the latest after the time of `flush`.\n\
        - `gzip` compresses the file. It needs a program such as `zcat` to read.\n\
        - `if=CONDITION` logs only if the value is neither empty nor `0`.\n\n\
        The path may contain variables: one line then writes several files, and cannot be buffered. A relative path \
        starts at the prefix (`-p`). If the prefix is in `/etc`, it starts at `/var/log/mayfly`, and the default is \
        `access.log`.");
    _ = lines("log_format", HTTP, (2, MANY), "NAME [escape=default | json | none] TEXT ...")
        .default(r#"combined "...""#).repeats().text(
        "defines the format of an access log", r#"log_format timed '$remote_addr "$request" $status $request_time $upstream_cache_status';"#, "\
        The format has a name and a text with variables. Several texts are joined. `combined` is predefined.\n\n\
        `escape=default` replaces unsafe characters by `\\xXX`, `escape=json` makes values valid in JSON strings, \
        and `escape=none` changes nothing.");
    _ = lines("open_log_file_cache", LEVELS, (1, 4), "max=NUMBER [inactive=TIME] [min_uses=NUMBER] [valid=TIME] | off")
        .default("off").inherited().text(
        "keeps log files with variables in their names open", "open_log_file_cache max=100 inactive=20s valid=1m;", "\
        It has an effect on `access_log` with variables in the path. `max` limits the number of open files. A file \
        is kept open once it was used `min_uses` times within `inactive`. It is closed when it is not used for \
        `inactive`. After `valid`, the server checks that the file still exists.");
}
