//! PHP-FPM that Mayfly runs itself: `php_pool` and what stands in it.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("binary", &[Context::PhpPool])
        .takes(1, 1, "FILE"),
    Directive::new("catch_workers_output", &[Context::PhpPool])
        .takes(1, 1, "on | off")
        .default("off"),
    Directive::new("chdir", &[Context::PhpPool])
        .takes(1, 1, "DIRECTORY"),
    Directive::new("clear_env", &[Context::PhpPool])
        .takes(1, 1, "on | off")
        .default("on"),
    Directive::new("drain_timeout", &[Context::PhpPool])
        .takes(1, 1, "TIME")
        .default("30s"),
    Directive::new("env", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats(),
    Directive::new("group", &[Context::PhpPool])
        .takes(1, 1, "NAME"),
    Directive::new("idle_timeout", &[Context::PhpPool])
        .takes(1, 1, "TIME")
        .default("10s"),
    Directive::new("ini", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats(),
    Directive::new("listen_backlog", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .default("511"),
    Directive::new("log_level", &[Context::PhpPool])
        .takes(1, 1, "debug | notice | warning | error | alert")
        .default("notice"),
    Directive::new("max_children", &[Context::PhpPool])
        .takes(1, 1, "NUMBER"),
    Directive::new("max_requests", &[Context::PhpPool])
        .takes(1, 1, "NUMBER")
        .default("0"),
    Directive::new("max_spare_servers", &[Context::PhpPool])
        .takes(1, 1, "NUMBER"),
    Directive::new("min_spare_servers", &[Context::PhpPool])
        .takes(1, 1, "NUMBER"),
    Directive::new("php_admin_flag", &[Context::PhpPool])
        .takes(2, 2, "NAME on | off").repeats(),
    Directive::new("php_admin_value", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats(),
    Directive::new("php_flag", &[Context::PhpPool])
        .takes(2, 2, "NAME on | off").repeats(),
    Directive::new("php_pool", &[Context::Main, Context::Http])
        .takes(1, 1, "NAME { ... }").block().repeats(),
    Directive::new("php_value", &[Context::PhpPool])
        .takes(2, 2, "NAME VALUE").repeats(),
    Directive::new("pm", &[Context::PhpPool])
        .takes(1, 1, "static | dynamic | ondemand")
        .default("static"),
    Directive::new("request_terminate_timeout", &[Context::PhpPool])
        .takes(1, 1, "TIME")
        .default("0"),
    Directive::new("rlimit_files", &[Context::PhpPool])
        .takes(1, 1, "NUMBER"),
    Directive::new("slow_log", &[Context::PhpPool])
        .takes(2, 2, "FILE TIME"),
    Directive::new("start_servers", &[Context::PhpPool])
        .takes(1, 1, "NUMBER"),
    Directive::new("user", &[Context::PhpPool])
        .takes(1, 2, "NAME [GROUP]"),
    Directive::new("workers", &[Context::PhpPool])
        .takes(1, 1, "auto | NUMBER")
        .default("auto"),
];
