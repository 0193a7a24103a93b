//! Table of `php_pool` and of the directives in its block: PHP-FPM that Mayfly runs itself.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("binary", &[Context::PhpPool])
        .takes(1, 1, "FILE")
        .short("sets the php-fpm program")
        .long("\
            Without it, Mayfly uses the newest `php-fpm` that it finds. Use it on a machine with several \
            versions of PHP.")
        .example("binary /usr/sbin/php-fpm8.2;"),
    Directive::new("catch_workers_output", &[Context::PhpPool])
        .takes(1, 1, "on | off")
        .default("off")
        .short("logs what scripts print to their output streams")
        .long("\
            With `on`, what a script writes to standard output and standard error goes to the error log. \
            With `off`, it is dropped.")
        .example("catch_workers_output on;"),
    Directive::new("chdir", &[Context::PhpPool])
        .takes(1, 1, "DIRECTORY")
        .short("sets the working directory of the workers")
        .long("\
            The path must be absolute. Without it, workers start in the directory in which Mayfly was \
            started. PHP changes to the directory of each script in any case.")
        .example("chdir /var/www;"),
    Directive::new("clear_env", &[Context::PhpPool])
        .takes(1, 1, "on | off")
        .default("on")
        .short("hides the environment of the server from PHP")
        .long("\
            With `on`, scripts see only the variables that `env` sets. With `off`, they also see the \
            environment in which Mayfly was started.")
        .example("clear_env off;"),
    Directive::new("drain_timeout", &[Context::PhpPool])
        .takes(1, 1, "TIME")
        .default("30s")
        .short("limits how long requests may continue when the pool stops")
        .long("\
            When the pool stops or is replaced, its workers finish the requests that they have begun. \
            Requests that are not finished after this time are ended.")
        .example("drain_timeout 10s;"),
    Directive::new("env", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats()
        .short("sets an environment variable for scripts")
        .long("\
            Scripts read it with `getenv`. Use it for passwords and other settings that must not be in \
            the files of the site.")
        .example("env DB_HOST localhost;"),
    Directive::new("group", &[Context::PhpPool])
        .takes(1, 1, "NAME")
        .short("sets the group that runs PHP")
        .long("It belongs to `user`. Without it, the account's own group is used.")
        .example("group www-data;"),
    Directive::new("idle_timeout", &[Context::PhpPool])
        .takes(1, 1, "TIME")
        .default("10s")
        .short("sets how long an idle worker is kept")
        .long("\
            It has an effect with `pm ondemand` only. PHP-FPM counts whole seconds: fractions are \
            rounded up.")
        .example("pm ondemand; idle_timeout 30s;"),
    Directive::new("ini", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats()
        .short("adds a line to the configuration of PHP-FPM")
        .long("\
            Use it for settings of a PHP-FPM pool that have no directive here. The name and the value \
            are written into the section of the pool as they are.\n\n\
            PHP-FPM does not run as root. Therefore Mayfly sets `process.priority` before it starts \
            PHP-FPM, and refuses `chroot`, `user` and `group`.")
        .example("ini process.priority 5;"),
    Directive::new("listen_backlog", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .default("511")
        .short("sets how many connections may wait in the kernel")
        .long("\
            Requests for the pool wait inside Mayfly, so that this queue is nearly always empty. Change \
            it only if other programs use the socket of the pool.")
        .example("listen_backlog 128;"),
    Directive::new("log_level", &[Context::PhpPool])
        .takes(1, 1, "debug | notice | warning | error | alert")
        .default("notice")
        .short("sets which messages of PHP-FPM are logged")
        .long("\
            It is the lowest level that goes to the error log. `debug` is for problems of PHP-FPM \
            itself.")
        .example("log_level warning;"),
    Directive::new("max_children", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .short("sets the number of workers (PHP-FPM's name for `workers`)")
        .long("It makes it easy to copy the settings of an existing pool. Write one of the two, not both.")
        .example("max_children 8;"),
    Directive::new("max_requests", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .default("0")
        .short("replaces a worker after this number of requests")
        .long("\
            Use it if an extension of PHP loses memory. With 0, workers are never replaced. No request \
            is lost: Mayfly closes its connection to a worker before the worker ends.")
        .example("max_requests 1000;"),
    Directive::new("max_spare_servers", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .short("sets the highest number of idle workers")
        .long("\
            It has an effect with `pm dynamic` only. PHP-FPM ends workers when more are idle. Without \
            the directive, it is three quarters of the workers.")
        .example("pm dynamic; max_spare_servers 6;"),
    Directive::new("min_spare_servers", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .short("sets the lowest number of idle workers")
        .long("\
            It has an effect with `pm dynamic` only. PHP-FPM starts workers when fewer are idle. Without \
            the directive, it is a quarter of the workers.")
        .example("pm dynamic; min_spare_servers 1;"),
    Directive::new("no_new_privs", &[Context::PhpPool])
        .takes(1, 1, "on | off")
        .default("on")
        .short("forbids programs that scripts start to gain rights")
        .long("\
            With `on`, no program that a script starts gets more rights than the script has. Programs \
            with the set-user-ID or set-group-ID bit, such as `sudo` and `su`, do not get the rights of \
            their owner.\n\n\
            Write `off` if `mail()` needs such a program. Postfix needs `off` (its `sendmail` starts \
            `postdrop`), and so does Exim. Mail that is sent by SMTP or by `msmtp` works with `on`.")
        .example("no_new_privs off;"),
    Directive::new("php_admin_flag", &[Context::PhpPool])
        .takes(2, 2, "NAME on | off").repeats()
        .short("sets an on/off setting of php.ini that scripts cannot change")
        .long("It is `php_admin_value` for settings that are on or off.")
        .example("php_admin_flag allow_url_fopen off;"),
    Directive::new("php_admin_value", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats()
        .short("sets a value of php.ini that scripts cannot change")
        .long("The value replaces the one in php.ini. `ini_set` in a script has no effect on it.")
        .example("php_admin_value open_basedir /var/www;"),
    Directive::new("php_flag", &[Context::PhpPool])
        .takes(2, 2, "NAME on | off").repeats()
        .short("sets an on/off setting of php.ini that scripts can change")
        .long("It is `php_value` for settings that are on or off.")
        .example("php_flag display_errors off;"),
    Directive::new("php_pool", &[Context::Main, Context::Http])
        .takes(1, 1, "NAME { ... }").block().repeats()
        .short("defines a PHP-FPM that Mayfly starts and watches")
        .long("\
            Mayfly writes a configuration for `php-fpm`, starts it, and starts it again if it ends. \
            `fastcgi_pass php:NAME` sends requests to the pool.\n\n\
            Mayfly never sends the pool more requests than it has workers. Further requests wait inside \
            Mayfly, in order. The block may be outside or inside `http`.")
        .example("php_pool site { workers 4; user www-data; }"),
    Directive::new("php_value", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats()
        .short("sets a value of php.ini that scripts can change")
        .long("The value replaces the one in php.ini. A script can change it with `ini_set`.")
        .example("php_value memory_limit 128M;"),
    Directive::new("pm", &[Context::PhpPool])
        .takes(1, 1, "static | dynamic | ondemand")
        .default("static")
        .short("sets how the number of workers follows the load")
        .long("\
            The words are those of PHP-FPM:\n\n\
            - `static` starts all workers at once and keeps them. This is the fastest.\n\
            - `dynamic` keeps some idle workers and starts more when they are needed.\n\
            - `ondemand` starts workers when requests arrive, and ends idle ones. This saves memory on \
            sites with few visitors.")
        .example("pm ondemand;"),
    Directive::new("request_terminate_timeout", &[Context::PhpPool])
        .takes(1, 1, "TIME")
        .default("300s, or 60s more than the longest `fastcgi_read_timeout`")
        .short("limits how long a request may run in PHP")
        .long("\
            When a request takes longer, PHP-FPM ends the worker and starts another. Without a limit, a \
            few requests that never end could occupy all workers for ever.\n\n\
            By default the limit is 300 seconds, or 60 seconds more than the longest \
            `fastcgi_read_timeout` if that is longer. The visitor gets 504 at the \
            `fastcgi_read_timeout`, before this limit. Time after `fastcgi_finish_request()` does not \
            count. 0 means no limit. PHP-FPM counts whole seconds.")
        .example("request_terminate_timeout 60s;"),
    Directive::new("rlimit_files", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .short("sets how many files a worker may have open")
        .long("Without it, the limit of the system holds.")
        .example("rlimit_files 4096;"),
    Directive::new("slow_log", &[Context::PhpPool])
        .takes(2, 2, "FILE TIME")
        .short("logs the PHP stack of slow requests")
        .long("\
            If a request takes longer than the time, PHP-FPM writes its PHP stack to the file. The \
            request continues.")
        .example("slow_log /var/log/php-slow.log 5s;"),
    Directive::new("start_servers", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .short("sets the number of workers at the start")
        .long("\
            It has an effect with `pm dynamic` only. Without it, the number is between \
            `min_spare_servers` and `max_spare_servers`.")
        .example("pm dynamic; start_servers 2;"),
    Directive::new("user", &[Context::PhpPool])
        .takes(1, 2, "NAME [GROUP]")
        .short("sets the account that runs PHP")
        .long("\
            It has an effect only if root starts the server. Without it, PHP runs as `www-data`, or as \
            `nobody` where there is no `www-data`. The master process of PHP-FPM runs as this account \
            too. The group is the second argument, else the one of `group`, else the account's own \
            group.\n\n\
            Use another account than the one that serves (`user` of the main context), because scripts \
            could end the server otherwise.")
        .example("user www-data;"),
    Directive::new("workers", &[Context::PhpPool])
        .takes(1, 1, "auto | NUMBER")
        .default("auto")
        .short("sets how many requests PHP runs at the same time")
        .long("\
            `auto` measures the memory of a worker and starts as many workers as fit into the memory of \
            the machine, but not more than are useful for its processors. A number is used as it is.")
        .example("workers auto;"),
];
