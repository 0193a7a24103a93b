//! The process as a whole: the `main` and `events` contexts.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("accept_mutex", &[Context::Events])
        .takes(1, 1, "on | off")
        .default("off")
        .ignored("connections are accepted without a lock")
        .short("take turns at accepting")
        .long("Threads do not take turns here, so that no connection waits for one that is busy. The line has no effect.")
        .example("accept_mutex off;"),
    Directive::new("accept_mutex_delay", &[Context::Events])
        .takes(1, 1, "TIME")
        .default("500ms")
        .ignored("connections are accepted without a lock")
        .short("how long to wait for one's turn")
        .long("It belongs to `accept_mutex`, which has no meaning here.")
        .example("accept_mutex_delay 100ms;"),
    Directive::new("daemon", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("on")
        .short("go to the background after the start")
        .long("With `on`, the program leaves the terminal once everything is open and all sockets listen. Service managers that watch the process itself, such as systemd with `Type=notify`, want `off`.")
        .example("daemon off;"),
    Directive::new("debug_connection", &[Context::Events])
        .takes(1, 1, "ADDRESS").repeats()
        .missing("debug lines are switched on for all connections, by `error_log ... debug`")
        .short("debug lines for some clients")
        .long("Write `error_log FILE debug` instead: it holds for all connections.")
        .example("debug_connection 127.0.0.1;"),
    Directive::new("debug_points", &[Context::Main])
        .takes(1, 1, "abort | stop")
        .ignored("a debugging aid of nginx's authors")
        .short("stop for a debugger")
        .long("It stops nginx where its authors want to look at it. Here it has no effect.")
        .example("debug_points abort;"),
    Directive::new("env", &[Context::Main])
        .takes(1, 1, "NAME[=VALUE]").repeats()
        .short("keep or set a variable of the environment")
        .long("The environment is cleared at the start, as in nginx, except for what is named here. `NAME=VALUE` sets a variable; `NAME` alone keeps what it was.")
        .example("env TZ=Europe/Berlin;"),
    Directive::new("error_log", &[Context::Main, Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "FILE | stderr | syslog:... [LEVEL]").inherited_as_a_whole().repeats()
        .default("logs/error.log error")
        .short("where errors are written, and from which level on")
        .long("The target is a file, `stderr`, or a syslog server. The level is the least severe that is written: `debug`, `info`, `notice`, `warn`, `error`, `crit`, `alert` or `emerg`. Several lines at one level write to several targets. A relative path starts at the prefix.")
        .example("error_log /var/log/mayfly/error.log warn;"),
    Directive::new("events", &[Context::Main])
        .takes(0, 0, "{ ... }").block()
        .short("how connections are processed")
        .long("A block for tuning how nginx's workers wait for events. It may be empty or absent: the best method is always used.")
        .example("events { worker_connections 1024; }"),
    Directive::new("http", &[Context::Main])
        .takes(0, 0, "{ ... }").block()
        .short("everything about serving HTTP")
        .long("Holds the servers and what they share: caches, maps, log formats, upstream groups. What is written here holds in all servers unless they say otherwise.")
        .example("http { server { listen 8080; root /var/www; } }"),
    Directive::new("load_module", &[Context::Main])
        .takes(1, 1, "FILE").repeats()
        .ignored("modules of nginx cannot be loaded; what Mayfly has of them is built in")
        .short("load a dynamic module")
        .long("Modules compiled for nginx cannot be loaded. The line is accepted, because distributions put it in front of everything; a directive of a module that Mayfly lacks is an error where it is used.")
        .example("load_module modules/ngx_http_image_filter_module.so;"),
    Directive::new("lock_file", &[Context::Main])
        .takes(1, 1, "FILE")
        .ignored("connections are accepted without a lock")
        .short("file for locks between processes")
        .long("nginx needs it where processes take turns at accepting connections. Threads here need no such lock.")
        .example("lock_file /run/nginx.lock;"),
    Directive::new("master_process", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("on")
        .ignored("Mayfly has no separate master process: one process serves with several threads")
        .short("run a master and workers")
        .long("In nginx, `off` puts everything into one process for debugging. Here there is one process in any case.")
        .example("master_process on;"),
    Directive::new("multi_accept", &[Context::Events])
        .takes(1, 1, "on | off")
        .default("off")
        .ignored("a thread accepts what is there")
        .short("accept several connections at once")
        .long("A thread that is woken accepts what is there. The line has no effect.")
        .example("multi_accept on;"),
    Directive::new("pcre_jit", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("off")
        .ignored("patterns are always compiled to machine code where the machine allows it")
        .short("compile patterns to machine code")
        .long("Patterns are always compiled where the machine allows it. The line has no effect.")
        .example("pcre_jit on;"),
    Directive::new("pid", &[Context::Main])
        .takes(1, 1, "FILE")
        .default("logs/mayfly.pid")
        .short("where the process number is written")
        .long("The file is written once all sockets listen, and removed at the end. A relative path starts at the prefix (`-p`). `mayfly -s reload` reads it to find the process.")
        .example("pid /run/mayfly.pid;"),
    Directive::new("thread_pool", &[Context::Main])
        .takes(2, 3, "NAME threads=NUMBER [max_queue=NUMBER]").repeats()
        .ignored("files are read by threads that Mayfly manages itself")
        .short("a named pool of threads for reading files")
        .long("Mayfly sizes its threads for files itself. The line is accepted so that `aio threads` can stay in a file.")
        .example("thread_pool default threads=32;"),
    Directive::new("timer_resolution", &[Context::Main])
        .takes(1, 1, "TIME")
        .ignored("the clock costs no system call here")
        .short("how often the clock is read")
        .long("Reading the clock costs next to nothing on today's systems. The line has no effect.")
        .example("timer_resolution 100ms;"),
    Directive::new("use", &[Context::Events])
        .takes(1, 1, "METHOD")
        .ignored("the best method of the system is always used")
        .short("the method of waiting for events")
        .long("Mayfly uses epoll on Linux and the best method elsewhere. The line has no effect.")
        .example("use epoll;"),
    Directive::new("user", &[Context::Main])
        .takes(1, 2, "NAME [GROUP]")
        .short("who the server becomes after binding its sockets")
        .long("Started by root, the server opens its sockets and logs and then gives up its rights for those of this user. The group is the user's own unless a second name is given. Without the directive it takes an account that nothing else uses: `mayfly` where there is one, else a number without a name (65519 or below), which also has the group of `www-data` so that it may read sites; files that the server makes then belong to that number, so name a user where they shall stay (`proxy_store`). PHP of a `php_pool` runs as another account. Started by anybody else, the directive has no effect.")
        .example("user www-data;"),
    Directive::new("worker_aio_requests", &[Context::Events])
        .takes(1, 1, "NUMBER")
        .default("32")
        .ignored("files are read by threads that Mayfly manages itself")
        .short("outstanding operations on files")
        .long("Threads for files are managed by Mayfly itself. The line has no effect.")
        .example("worker_aio_requests 64;"),
    Directive::new("worker_connections", &[Context::Events])
        .takes(1, 1, "NUMBER")
        .default("512")
        .ignored("the limit on open files is the only limit")
        .short("connections of one worker")
        .long("nginx reserves memory for as many connections. Here a connection takes memory when it comes, and the limit on open files (`worker_rlimit_nofile`) is the only limit.")
        .example("worker_connections 1024;"),
    Directive::new("worker_cpu_affinity", &[Context::Main])
        .takes(1, usize::MAX, "auto [MASK] | MASK ...")
        .missing("threads are placed by the kernel")
        .short("bind workers to processors")
        .long("The kernel places threads, which it does well. The line is accepted so that files written for nginx load.")
        .example("worker_cpu_affinity auto;"),
    Directive::new("worker_priority", &[Context::Main])
        .takes(1, 1, "NUMBER")
        .default("0")
        .missing("priority is set by the service manager")
        .short("scheduling priority")
        .long("Priorities are set by the service manager, for all threads alike.")
        .example("worker_priority -5;"),
    Directive::new("worker_processes", &[Context::Main])
        .takes(1, 1, "NUMBER | auto")
        .default("1")
        .short("how many threads serve connections")
        .long("A thread serves many connections, so that more threads than cores gain nothing. `auto` takes as many as there are cores. The cache and the connections to PHP are shared by all threads.")
        .example("worker_processes auto;"),
    Directive::new("worker_rlimit_core", &[Context::Main])
        .takes(1, 1, "SIZE")
        .missing("core dumps are limited by the service manager")
        .short("size of core dumps")
        .long("Core dumps are a matter of the service manager here. The line is accepted so that files written for nginx load.")
        .example("worker_rlimit_core 500m;"),
    Directive::new("worker_rlimit_nofile", &[Context::Main])
        .takes(1, 1, "NUMBER")
        .short("how many files and connections may be open")
        .long("Raises the process's limit on open files. Each client, each connection to PHP and each file being sent counts one.")
        .example("worker_rlimit_nofile 65535;"),
    Directive::new("worker_shutdown_timeout", &[Context::Main])
        .takes(1, 1, "TIME")
        .short("how long a graceful stop may take")
        .long("When the server is told to quit or to reload, requests that are under way go on. Those that are not finished after this time are cut off. Without the directive they may take as long as they like.")
        .example("worker_shutdown_timeout 30s;"),
    Directive::new("working_directory", &[Context::Main])
        .takes(1, 1, "DIRECTORY")
        .ignored("no path depends on it")
        .short("where the process works")
        .long("In nginx it says where core dumps go. Here paths begin at the prefix or the configuration's folder, and the process stays where it was started.")
        .example("working_directory /var/lib/mayfly;"),
];
