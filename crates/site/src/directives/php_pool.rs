//! PHP-FPM that Mayfly runs itself: `php_pool` and what stands in it.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("binary", &[Context::PhpPool])
        .takes(1, 1, "FILE")
        .short("the php-fpm program")
        .long("Without it, the newest `php-fpm` found on the machine is taken. The directive is for machines with several versions of PHP.")
        .example("binary /usr/sbin/php-fpm8.2;"),
    Directive::new("catch_workers_output", &[Context::PhpPool])
        .takes(1, 1, "on | off")
        .default("off")
        .short("log what workers print")
        .long("What scripts write to their standard output and error goes to the error log. With `off` it is dropped.")
        .example("catch_workers_output on;"),
    Directive::new("chdir", &[Context::PhpPool])
        .takes(1, 1, "DIRECTORY")
        .short("the folder workers start in")
        .long("An absolute path. Without it, workers start where Mayfly was started; scripts change to their own folder in any case.")
        .example("chdir /var/www;"),
    Directive::new("clear_env", &[Context::PhpPool])
        .takes(1, 1, "on | off")
        .default("on")
        .short("hide the server's own environment from PHP")
        .long("With `on`, workers see only what `env` names. With `off`, they see the environment that Mayfly was started with.")
        .example("clear_env off;"),
    Directive::new("drain_timeout", &[Context::PhpPool])
        .takes(1, 1, "TIME")
        .default("30s")
        .short("how long requests may go on at the end")
        .long("When the pool stops or is replaced, its workers finish what they have begun. What is not finished after this time is ended.")
        .example("drain_timeout 10s;"),
    Directive::new("env", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats()
        .short("a variable of the workers' environment")
        .long("The value may be read by `getenv` in scripts. It is the place for passwords that should not stand in files of the site.")
        .example("env DB_HOST localhost;"),
    Directive::new("group", &[Context::PhpPool])
        .takes(1, 1, "NAME")
        .short("the group that runs PHP")
        .long("Counts together with `user`. Without it, the user's own group is taken.")
        .example("group www-data;"),
    Directive::new("idle_timeout", &[Context::PhpPool])
        .takes(1, 1, "TIME")
        .default("10s")
        .short("how long an idle worker stays")
        .long("Counts only with `pm ondemand`. PHP-FPM counts whole seconds, so that fractions are rounded up.")
        .example("pm ondemand; idle_timeout 30s;"),
    Directive::new("ini", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats()
        .short("a line of PHP-FPM's own configuration")
        .long("For settings of a pool that have no directive here. Name and value are written into the pool's section as they are. PHP-FPM is started without root's rights: `process.priority` is set before, and `chroot`, `user` and `group` are refused.")
        .example("ini process.priority 5;"),
    Directive::new("listen_backlog", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .default("511")
        .short("connections that may wait in the kernel")
        .long("Mayfly keeps waiting requests to itself, so that this queue is all but unused. It matters when other programs use the pool's socket.")
        .example("listen_backlog 128;"),
    Directive::new("log_level", &[Context::PhpPool])
        .takes(1, 1, "debug | notice | warning | error | alert")
        .default("notice")
        .short("which of PHP-FPM's messages are shown")
        .long("The least severe level that reaches the error log. `debug` helps PHP-FPM's developers.")
        .example("log_level warning;"),
    Directive::new("max_children", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .short("another name for `workers`")
        .long("It is PHP-FPM's own word, so that a pool's file can be copied. Only one of the two may be given.")
        .example("max_children 8;"),
    Directive::new("max_requests", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .default("0")
        .short("requests after which a worker is replaced")
        .long("It bounds what a leaking extension can do. 0 means never. Mayfly closes its connections before the worker goes, so that no request is lost.")
        .example("max_requests 1000;"),
    Directive::new("max_spare_servers", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .short("idle workers at most")
        .long("Counts only with `pm dynamic`. When more are idle, PHP-FPM ends some. Without it, three quarters of the workers.")
        .example("pm dynamic; max_spare_servers 6;"),
    Directive::new("min_spare_servers", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .short("idle workers at least")
        .long("Counts only with `pm dynamic`. When fewer are idle, PHP-FPM starts more. Without it, a quarter of the workers.")
        .example("pm dynamic; min_spare_servers 1;"),
    Directive::new("no_new_privs", &[Context::PhpPool])
        .takes(1, 1, "on | off")
        .default("on")
        .short("keep PHP from gaining rights")
        .long("With `on`, no program that a script starts gets more rights than the script: set-user-ID and set-group-ID programs (`sudo`, `su`) run without effect, and the set of capabilities that could be gained is empty. `mail()` needs `off` where the mail program is such a one: Postfix's `sendmail` starts `postdrop`, Exim's is set-user-ID itself. Mail that leaves by SMTP or by `msmtp` does not.")
        .example("no_new_privs off;"),
    Directive::new("php_admin_flag", &[Context::PhpPool])
        .takes(2, 2, "NAME on | off").repeats()
        .short("a php.ini switch that scripts may not change")
        .long("As `php_admin_value`, for settings that are on or off.")
        .example("php_admin_flag allow_url_fopen off;"),
    Directive::new("php_admin_value", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats()
        .short("a php.ini setting that scripts may not change")
        .long("It goes before what php.ini says, and `ini_set` has no effect on it.")
        .example("php_admin_value open_basedir /var/www;"),
    Directive::new("php_flag", &[Context::PhpPool])
        .takes(2, 2, "NAME on | off").repeats()
        .short("a php.ini switch that scripts may change")
        .long("As `php_value`, for settings that are on or off.")
        .example("php_flag display_errors off;"),
    Directive::new("php_pool", &[Context::Main, Context::Http])
        .takes(1, 1, "NAME { ... }").block().repeats()
        .short("a PHP-FPM that Mayfly starts and watches")
        .long("Mayfly writes a configuration for `php-fpm`, starts it, and starts it again should it die. Requests get there by `fastcgi_pass php:NAME`. Mayfly never sends it more requests than it has workers: the rest waits in order, in Mayfly. The block may stand outside or inside `http`.")
        .example("php_pool site { workers 4; user www-data; }"),
    Directive::new("php_value", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats()
        .short("a php.ini setting that scripts may change")
        .long("It goes before what php.ini says. Scripts may change it by `ini_set`.")
        .example("php_value memory_limit 128M;"),
    Directive::new("pm", &[Context::PhpPool])
        .takes(1, 1, "static | dynamic | ondemand")
        .default("static")
        .short("how the number of workers follows the load")
        .long("`static` keeps all workers from the start, which is the fastest and the default. `dynamic` keeps some to spare; `ondemand` starts them as requests come and ends idle ones. The words and meanings are PHP-FPM's.")
        .example("pm ondemand;"),
    Directive::new("request_terminate_timeout", &[Context::PhpPool])
        .takes(1, 1, "TIME")
        .default("300s, or 60s more than the longest `fastcgi_read_timeout`")
        .short("how long a request may take")
        .long("A worker that takes longer is ended together with its request, and replaced: the visitor was told 504 before, and without a limit a few requests that never end would take all workers for good. What a script does after `fastcgi_finish_request()` is not counted. 0 means no limit. PHP-FPM counts whole seconds.")
        .example("request_terminate_timeout 60s;"),
    Directive::new("rlimit_files", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .short("files each worker may have open")
        .long("Without it, the system's limit holds.")
        .example("rlimit_files 4096;"),
    Directive::new("slow_log", &[Context::PhpPool])
        .takes(2, 2, "FILE TIME")
        .short("where stacks of slow requests go")
        .long("A request that takes longer than the time has its PHP stack written to the file. The request itself goes on.")
        .example("slow_log /var/log/php-slow.log 5s;"),
    Directive::new("start_servers", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .short("workers at the start")
        .long("Counts only with `pm dynamic`. Without it, a number between the two spares is taken.")
        .example("pm dynamic; start_servers 2;"),
    Directive::new("user", &[Context::PhpPool])
        .takes(1, 2, "NAME [GROUP]")
        .short("who runs PHP")
        .long("Only a pool that was started by root may choose; without the directive, PHP runs as `www-data`, or `nobody` where there is no such account. PHP-FPM's own master process runs as this user too. The group is the user's own unless a second name or `group` says otherwise. It should not be the account that serves (`user` of the main context), which would let scripts end the server.")
        .example("user www-data;"),
    Directive::new("workers", &[Context::PhpPool])
        .takes(1, 1, "auto | NUMBER")
        .default("auto")
        .short("how many requests PHP runs at the same time")
        .long("`auto` measures a worker and takes as many as fit into the machine's memory, within reason for its cores. A number is taken as it is.")
        .example("workers auto;"),
];
