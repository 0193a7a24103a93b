//! The process as a whole: the `main` and `events` contexts.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("accept_mutex", &[Context::Events])
        .takes(1, 1, "on | off")
        .default("off")
        .ignored("connections are accepted without a lock"),
    Directive::new("accept_mutex_delay", &[Context::Events])
        .takes(1, 1, "TIME")
        .default("500ms")
        .ignored("connections are accepted without a lock"),
    Directive::new("daemon", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("on"),
    Directive::new("debug_connection", &[Context::Events])
        .takes(1, 1, "ADDRESS").repeats()
        .ignored("debug lines are switched on for all connections, by `error_log ... debug`"),
    Directive::new("debug_points", &[Context::Main])
        .takes(1, 1, "abort | stop")
        .ignored("a debugging aid of nginx's authors"),
    Directive::new("env", &[Context::Main])
        .takes(1, 1, "NAME[=VALUE]").repeats(),
    Directive::new("error_log", &[Context::Main, Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "FILE | stderr | syslog:... [LEVEL]").inherited_as_a_whole().repeats()
        .default("logs/error.log error"),
    Directive::new("events", &[Context::Main])
        .takes(0, 0, "{ ... }").block(),
    Directive::new("http", &[Context::Main])
        .takes(0, 0, "{ ... }").block(),
    Directive::new("load_module", &[Context::Main])
        .takes(1, 1, "FILE").repeats()
        .ignored("modules of nginx cannot be loaded; what Mayfly has of them is built in"),
    Directive::new("lock_file", &[Context::Main])
        .takes(1, 1, "FILE")
        .ignored("connections are accepted without a lock"),
    Directive::new("master_process", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("on")
        .ignored("Mayfly has no separate master process: one process serves with several threads"),
    Directive::new("multi_accept", &[Context::Events])
        .takes(1, 1, "on | off")
        .default("off")
        .ignored("a thread accepts what is there"),
    Directive::new("pcre_jit", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("off")
        .ignored("patterns are always compiled to machine code where the machine allows it"),
    Directive::new("pid", &[Context::Main])
        .takes(1, 1, "FILE")
        .default("logs/mayfly.pid"),
    Directive::new("thread_pool", &[Context::Main])
        .takes(2, 3, "NAME threads=NUMBER [max_queue=NUMBER]").repeats()
        .ignored("files are read by threads that Mayfly manages itself"),
    Directive::new("timer_resolution", &[Context::Main])
        .takes(1, 1, "TIME")
        .ignored("the clock costs no system call here"),
    Directive::new("use", &[Context::Events])
        .takes(1, 1, "METHOD")
        .ignored("the best method of the system is always used"),
    Directive::new("user", &[Context::Main])
        .takes(1, 2, "NAME [GROUP]"),
    Directive::new("worker_aio_requests", &[Context::Events])
        .takes(1, 1, "NUMBER")
        .default("32")
        .ignored("files are read by threads that Mayfly manages itself"),
    Directive::new("worker_connections", &[Context::Events])
        .takes(1, 1, "NUMBER")
        .default("512")
        .ignored("the limit on open files is the only limit"),
    Directive::new("worker_cpu_affinity", &[Context::Main])
        .takes(1, usize::MAX, "auto [MASK] | MASK ...")
        .ignored("threads are placed by the kernel"),
    Directive::new("worker_priority", &[Context::Main])
        .takes(1, 1, "NUMBER")
        .default("0")
        .ignored("priority is set by the service manager"),
    Directive::new("worker_processes", &[Context::Main])
        .takes(1, 1, "NUMBER | auto")
        .default("1"),
    Directive::new("worker_rlimit_core", &[Context::Main])
        .takes(1, 1, "SIZE")
        .ignored("core dumps are limited by the service manager"),
    Directive::new("worker_rlimit_nofile", &[Context::Main])
        .takes(1, 1, "NUMBER"),
    Directive::new("worker_shutdown_timeout", &[Context::Main])
        .takes(1, 1, "TIME"),
    Directive::new("working_directory", &[Context::Main])
        .takes(1, 1, "DIRECTORY"),
];
