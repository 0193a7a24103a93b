//! Table of `php_pool` and of the directives in its block: PHP-FPM that Mayfly runs itself.

use super::declaration::*;
use super::{Context, Directive};
use crate::model::PhpLogLevel;

table! {
    _ = lines("binary", POOL, (1, 1), "FILE").text("sets the php-fpm program", "binary /usr/sbin/php-fpm8.2;", "\
        Without it, Mayfly uses the newest `php-fpm` that it finds. Use it on a machine with several versions of \
        PHP.");
    CATCH_WORKERS_OUTPUT: Flag = flag("catch_workers_output", POOL, "off").text(
        "logs what scripts print to their output streams", "catch_workers_output on;", "\
        With `on`, what a script writes to standard output and standard error goes to the error log. With `off`, it \
        is dropped.");
    _ = lines("chdir", POOL, (1, 1), "DIRECTORY").text(
        "sets the working directory of the workers", "chdir /var/www;", "\
        The path must be absolute. Without it, workers start in the directory in which Mayfly was started. PHP \
        changes to the directory of each script in any case.");
    CLEAR_ENV: Flag = flag("clear_env", POOL, "on").text(
        "hides the environment of the server from PHP", "clear_env off;", "\
        With `on`, scripts see only the variables that `env` sets. With `off`, they also see the environment in \
        which Mayfly was started.");
    DRAIN_TIMEOUT: Time = time("drain_timeout", POOL).default("30s").text(
        "limits how long requests may continue when the pool stops", "drain_timeout 10s;", "\
        When the pool stops or is replaced, its workers finish the requests that they have begun. Requests that are \
        not finished after this time are ended.");
    _ = lines("env", POOL, (2, 2), "NAME VALUE").repeats().text(
        "sets an environment variable for scripts", "env DB_HOST localhost;", "\
        Scripts read it with `getenv`. Use it for passwords and other settings that must not be in the files of the \
        site.");
    _ = lines("group", POOL, (1, 1), "NAME").text("sets the group that runs PHP", "group www-data;",
        "It belongs to `user`. Without it, the account's own group is used.");
    IDLE_TIMEOUT: Time = time("idle_timeout", POOL).default("10s").text(
        "sets how long an idle worker is kept", "pm ondemand; idle_timeout 30s;",
        "It has an effect with `pm ondemand` only. PHP-FPM counts whole seconds: fractions are rounded up.");
    _ = lines("ini", POOL, (2, 2), "NAME VALUE").repeats().text(
        "adds a line to the configuration of PHP-FPM", "ini process.priority 5;", "\
        Use it for settings of a PHP-FPM pool that have no directive here. The name and the value are written into \
        the section of the pool as they are.\n\n\
        PHP-FPM does not run as root. Therefore Mayfly sets `process.priority` before it starts PHP-FPM, and refuses \
        `chroot`, `user` and `group`.");
    LISTEN_BACKLOG: Number = number("listen_backlog", POOL).default("511").text(
        "sets how many connections may wait in the kernel", "listen_backlog 128;", "\
        Requests for the pool wait inside Mayfly, so that this queue is nearly always empty. Change it only if other \
        programs use the socket of the pool.");
    LOG_LEVEL: Choice<PhpLogLevel> = choice("log_level", POOL, "debug | notice | warning | error | alert", &[
        ("debug", PhpLogLevel::Debug), ("notice", PhpLogLevel::Notice), ("warning", PhpLogLevel::Warning),
        ("error", PhpLogLevel::Error), ("alert", PhpLogLevel::Alert),
    ])
        .default("notice").text("sets which messages of PHP-FPM are logged", "log_level warning;",
        "It is the lowest level that goes to the error log. `debug` is for problems of PHP-FPM itself.");
    _ = number("max_children", POOL).text(
        "sets the number of workers (PHP-FPM's name for `workers`)", "max_children 8;",
        "It makes it easy to copy the settings of an existing pool. Write one of the two, not both.");
    MAX_REQUESTS: Number = number("max_requests", POOL).default("0").text(
        "replaces a worker after this number of requests", "max_requests 1000;", "\
        Use it if an extension of PHP loses memory. With 0, workers are never replaced. No request is lost: Mayfly \
        closes its connection to a worker before the worker ends.");
    MAX_SPARE_SERVERS: Number = number("max_spare_servers", POOL).text(
        "sets the highest number of idle workers", "pm dynamic; max_spare_servers 6;", "\
        It has an effect with `pm dynamic` only. PHP-FPM ends workers when more are idle. Without the directive, it \
        is three quarters of the workers.");
    MIN_SPARE_SERVERS: Number = number("min_spare_servers", POOL).text(
        "sets the lowest number of idle workers", "pm dynamic; min_spare_servers 1;", "\
        It has an effect with `pm dynamic` only. PHP-FPM starts workers when fewer are idle. Without the directive, \
        it is a quarter of the workers.");
    NO_NEW_PRIVS: Flag = flag("no_new_privs", POOL, "on").text(
        "forbids programs that scripts start to gain rights", "no_new_privs off;", "\
        With `on`, no program that a script starts gets more rights than the script has. Programs with the \
        set-user-ID or set-group-ID bit, such as `sudo` and `su`, do not get the rights of their owner.\n\n\
        Write `off` if `mail()` needs such a program. Postfix needs `off` (its `sendmail` starts `postdrop`), and so \
        does Exim. Mail that is sent by SMTP or by `msmtp` works with `on`.");
    _ = lines("php_admin_flag", POOL, (2, 2), "NAME on | off").repeats().text(
        "sets an on/off setting of php.ini that scripts cannot change", "php_admin_flag allow_url_fopen off;",
        "It is `php_admin_value` for settings that are on or off.");
    _ = lines("php_admin_value", POOL, (2, 2), "NAME VALUE").repeats().text(
        "sets a value of php.ini that scripts cannot change", "php_admin_value open_basedir /var/www;",
        "The value replaces the one in php.ini. `ini_set` in a script has no effect on it.");
    _ = lines("php_flag", POOL, (2, 2), "NAME on | off").repeats().text(
        "sets an on/off setting of php.ini that scripts can change", "php_flag display_errors off;",
        "It is `php_value` for settings that are on or off.");
    _ = lines("php_pool", &[Context::Main, Context::Http], (1, 1), "NAME { ... }").block().repeats().text(
        "defines a PHP-FPM that Mayfly starts and watches", "php_pool site { workers 4; user www-data; }", "\
        Mayfly writes a configuration for `php-fpm`, starts it, and starts it again if it ends. `fastcgi_pass \
        php:NAME` sends requests to the pool.\n\n\
        Mayfly never sends the pool more requests than it has workers. Further requests wait inside Mayfly, in \
        order. The block may be outside or inside `http`.");
    _ = lines("php_value", POOL, (2, 2), "NAME VALUE").repeats().text(
        "sets a value of php.ini that scripts can change", "php_value memory_limit 128M;",
        "The value replaces the one in php.ini. A script can change it with `ini_set`.");
    PM: Choice<u8> = choice("pm", POOL, "static | dynamic | ondemand", &[("static", 0), ("dynamic", 1), ("ondemand", 2)])
        .default("static").text("sets how the number of workers follows the load", "pm ondemand;", "\
        The words are those of PHP-FPM:\n\n\
        - `static` starts all workers at once and keeps them. This is the fastest.\n\
        - `dynamic` keeps some idle workers and starts more when they are needed.\n\
        - `ondemand` starts workers when requests arrive, and ends idle ones. This saves memory on sites with few \
        visitors.");
    REQUEST_TERMINATE_TIMEOUT: Time = time("request_terminate_timeout", POOL)
        .default("300s, or 60s more than the longest `fastcgi_read_timeout`").text(
        "limits how long a request may run in PHP", "request_terminate_timeout 60s;", "\
        When a request takes longer, PHP-FPM ends the worker and starts another. Without a limit, a few requests \
        that never end could occupy all workers for ever.\n\n\
        By default the limit is 300 seconds, or 60 seconds more than the longest `fastcgi_read_timeout` if that is \
        longer. The visitor gets 504 at the `fastcgi_read_timeout`, before this limit. Time after \
        `fastcgi_finish_request()` does not count. 0 means no limit. PHP-FPM counts whole seconds.");
    RLIMIT_FILES: Number = number("rlimit_files", POOL).text(
        "sets how many files a worker may have open", "rlimit_files 4096;",
        "Without it, the limit of the system holds.");
    _ = lines("slow_log", POOL, (2, 2), "FILE TIME").text(
        "logs the PHP stack of slow requests", "slow_log /var/log/php-slow.log 5s;",
        "If a request takes longer than the time, PHP-FPM writes its PHP stack to the file. The request continues.");
    START_SERVERS: Number = number("start_servers", POOL).text(
        "sets the number of workers at the start", "pm dynamic; start_servers 2;", "\
        It has an effect with `pm dynamic` only. Without it, the number is between `min_spare_servers` and \
        `max_spare_servers`.");
    _ = lines("user", POOL, (1, 2), "NAME [GROUP]").text("sets the account that runs PHP", "user www-data;", "\
        It has an effect only if root starts the server. Without it, PHP runs as `www-data`, or as `nobody` where \
        there is no `www-data`. The master process of PHP-FPM runs as this account too. The group is the second \
        argument, else the one of `group`, else the account's own group.\n\n\
        Use another account than the one that serves (`user` of the main context), because scripts could end the \
        server otherwise.");
    _ = lines("workers", POOL, (1, 1), "auto | NUMBER").default("auto").text(
        "sets how many requests PHP runs at the same time", "workers auto;", "\
        `auto` measures the memory of a worker and starts as many workers as fit into the memory of the machine, but \
        not more than are useful for its processors. A number is used as it is.");
}
