//! Table of the directives of the `main` and `events` contexts, which concern the whole
//! process.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("accept_mutex", &[Context::Events])
        .takes(1, 1, "on | off")
        .default("off")
        .ignored("connections are accepted without a lock")
        .short("makes nginx's workers take turns at accepting connections")
        .long("\
            In nginx, `on` lets one worker at a time accept new connections. Mayfly's threads accept \
            connections at the same time.")
        .example("accept_mutex off;"),
    Directive::new("accept_mutex_delay", &[Context::Events])
        .takes(1, 1, "TIME")
        .default("500ms")
        .ignored("connections are accepted without a lock")
        .short("sets how long a worker of nginx waits for its turn to accept")
        .long("It belongs to `accept_mutex`, which has no effect in Mayfly.")
        .example("accept_mutex_delay 100ms;"),
    Directive::new("control_socket", &[Context::Main])
        .takes(1, 1, "PATH | off")
        .short("sets where commands speak with the running server")
        .long("\
            `mayfly -s`, `mayfly purge`, `mayfly warm`, `mayfly explain` and `mayfly top` find the server by this unix socket. \
            Only the account that started the server, and root, may connect to it: its mode is 0600. What a \
            server that was killed has left there is replaced. A socket on which another server listens is an error.\n\n\
            Without the directive, it is beside the pid file, and is called as that file is with \
            `.control` instead of the last extension. `off` makes none. A relative path starts at \
            the prefix (`-p`).")
        .example("control_socket /run/mayfly/control;"),
    Directive::new("daemon", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("on")
        .short("sets whether the server runs in the background")
        .long("\
            With `on`, the command returns to the shell when all sockets and logs are open, and the \
            server runs in the background. With `off`, the server stays in the foreground. Use `off` in \
            containers and under a service manager that watches the process itself, such as systemd with \
            `Type=exec`.")
        .example("daemon off;"),
    Directive::new("debug_connection", &[Context::Events])
        .takes(1, 1, "ADDRESS").repeats()
        .missing("there are no debug messages")
        .short("switches debug messages on for some clients")
        .long("In nginx, the error log has debug messages about clients with these addresses.")
        .example("debug_connection 127.0.0.1;"),
    Directive::new("debug_points", &[Context::Main])
        .takes(1, 1, "abort | stop")
        .ignored("a debugging aid of nginx's authors")
        .short("stops nginx at an internal error, for its developers")
        .long("It makes nginx end or wait for a debugger when it finds a mistake in its own state.")
        .example("debug_points abort;"),
    Directive::new("env", &[Context::Main])
        .takes(1, 1, "NAME[=VALUE]").repeats()
        .short("keeps or sets an environment variable")
        .long("\
            At the start, the server clears its environment, except for `TZ` and the variables that are \
            named here. `env NAME` keeps the value that the variable had. `env NAME=VALUE` sets a value. \
            PHP of a `php_pool` has its own list: see `env` in `php_pool`.")
        .example("env TZ=Europe/Berlin;"),
    Directive::new("error_log", &[Context::Main, Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "FILE | stderr | syslog:... [LEVEL]").inherited_as_a_whole().repeats()
        .default("logs/error.log error")
        .short("sets where errors are logged, and from which level on")
        .long("\
            The first argument is a file, `stderr`, or a syslog server. The second is the lowest level \
            that is logged. From the lowest to the highest, the levels are `debug`, `info`, `notice`, \
            `warn`, `error`, `crit`, `alert` and `emerg`. Mayfly writes no messages of level `debug` \
            yet.\n\n\
            Several lines at one level of the configuration log to several targets. A relative path \
            starts at the prefix (`-p`). If the prefix is in `/etc`, it starts at `/var/log/mayfly`, and the \
            default is `error.log`.\n\n\
            What the program says of itself, of reloads for example, goes to the logs of the main context. \
            Where that context has none and `-e` is not given, it goes to those of the `http` block.")
        .example("error_log /var/log/mayfly/error.log warn;"),
    Directive::new("events", &[Context::Main])
        .takes(0, 0, "{ ... }").block()
        .short("holds settings for connections, as nginx groups them")
        .long("\
            The block may be empty or absent. All its directives are accepted, and none has an effect: \
            Mayfly always uses the best method of the system to wait for events.")
        .example("events { worker_connections 1024; }"),
    Directive::new("http", &[Context::Main])
        .takes(0, 0, "{ ... }").block()
        .short("holds the servers, and what they share")
        .long("\
            The block contains the `server` blocks and what they share: cache zones, maps, log formats, \
            upstream groups. Most directives in it hold for all servers, unless a server or location has \
            a line of its own.")
        .example("http { server { listen 8080; root /var/www; } }"),
    Directive::new("load_module", &[Context::Main])
        .takes(1, 1, "FILE").repeats()
        .ignored("modules of nginx cannot be loaded; what Mayfly has of them is built in")
        .short("loads a dynamic module of nginx")
        .long("\
            The line is accepted because the packages of many distributions write it at the beginning of \
            their configuration. If the module has a directive that Mayfly does not know, the line with \
            that directive is an error.")
        .example("load_module modules/ngx_http_image_filter_module.so;"),
    Directive::new("lock_file", &[Context::Main])
        .takes(1, 1, "FILE")
        .ignored("connections are accepted without a lock")
        .short("names the lock file of nginx's processes")
        .long("\
            In nginx, processes take turns at accepting connections with this file. Mayfly has one \
            process that serves, and needs no such file.")
        .example("lock_file /run/nginx.lock;"),
    Directive::new("master_process", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("on")
        .ignored("Mayfly has no separate master process: one process serves with several threads")
        .short("sets whether nginx runs a master and worker processes")
        .long("\
            In nginx, `off` puts everything into one process, for debugging. In Mayfly, one process \
            serves with several threads in any case.")
        .example("master_process on;"),
    Directive::new("multi_accept", &[Context::Events])
        .takes(1, 1, "on | off")
        .default("off")
        .ignored("a thread that wakes up accepts all connections that wait")
        .short("sets whether a worker accepts several connections at once")
        .long("In nginx, `off` accepts one connection each time a worker wakes up.")
        .example("multi_accept on;"),
    Directive::new("pcre_jit", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("off")
        .ignored("patterns are always compiled to machine code where the machine allows it")
        .short("compiles patterns to machine code")
        .long("In nginx, `on` makes patterns faster. In Mayfly, this is always done, with the first match of each.")
        .example("pcre_jit on;"),
    Directive::new("pid", &[Context::Main])
        .takes(1, 1, "FILE")
        .default("logs/mayfly.pid")
        .short("sets the file for the process number")
        .long("\
            The file is written when all sockets listen, and is removed at the end. `mayfly -s` reads it \
            to find the process and sends it a signal where no control socket answers. A relative path starts at the prefix \
            (`-p`). If the prefix is in `/etc`, it starts at `/run/mayfly`, and the default is \
            `mayfly.pid`.")
        .example("pid /run/mayfly.pid;"),
    Directive::new("ssl_object_cache_inheritable", &[Context::Main])
        .takes(1, 1, "on | off")
        .default("on")
        .ignored("files of certificates are read at each reload")
        .short("sets whether a reload keeps certificates whose files have not changed")
        .long("A reload reads all files, so that a file which was changed in place is noticed as well.")
        .example("ssl_object_cache_inheritable off;"),
    Directive::new("thread_pool", &[Context::Main])
        .takes(2, 3, "NAME threads=NUMBER [max_queue=NUMBER]").repeats()
        .ignored("files are read by the threads that serve")
        .short("defines a pool of threads for reading files")
        .long("The line is accepted so that `aio threads=NAME` may stay in a configuration.")
        .example("thread_pool default threads=32;"),
    Directive::new("timer_resolution", &[Context::Main])
        .takes(1, 1, "TIME")
        .ignored("reading the clock costs almost nothing")
        .short("sets how often nginx reads the clock")
        .long("In nginx, it saves system calls by reading the clock less often.")
        .example("timer_resolution 100ms;"),
    Directive::new("use", &[Context::Events])
        .takes(1, 1, "METHOD")
        .ignored("the best method of the system is always used")
        .short("chooses the method to wait for events")
        .long("Mayfly uses epoll on Linux.")
        .example("use epoll;"),
    Directive::new("user", &[Context::Main])
        .takes(1, 2, "NAME [GROUP]")
        .short("sets the account that serves")
        .long("\
            When root starts the server, a parent process with root's rights opens sockets and logs, and \
            the process that serves runs as this account. The second argument is its group. Without it, \
            the account's own group is used. When another account starts the server, the directive has \
            no effect.\n\n\
            Without the directive, the server uses an account that nothing else uses: `mayfly` where it \
            exists, else a number without a name. That is the owner of the kept pages, else 65519 or the next lower free one. It is also \
            given the group of `www-data`, so that it can read sites. Name an account if the server \
            writes files that must stay, for example with `proxy_store`: they belong to this account.\n\n\
            PHP of a `php_pool` runs as another account, which `user` in `php_pool` names. Do not use \
            the same account for both: a script could then end the server. See \
            [security.md](security.md).")
        .example("user www-data;"),
    Directive::new("worker_aio_requests", &[Context::Events])
        .takes(1, 1, "NUMBER")
        .default("32")
        .ignored("files are read by the threads that serve")
        .short("limits outstanding file operations of a worker")
        .long("In nginx, it limits operations with `aio` and epoll.")
        .example("worker_aio_requests 64;"),
    Directive::new("worker_connections", &[Context::Events])
        .takes(1, 1, "NUMBER")
        .default("512")
        .ignored("only the limit on open files bounds the number of connections")
        .short("limits the connections of one worker")
        .long("\
            nginx reserves memory for this number of connections. Mayfly takes memory when a connection \
            arrives. To allow more connections, raise `worker_rlimit_nofile`.")
        .example("worker_connections 1024;"),
    Directive::new("worker_cpu_affinity", &[Context::Main])
        .takes(1, usize::MAX, "auto [MASK] | MASK ...")
        .missing("the kernel decides which processor runs a thread")
        .short("binds workers to processors")
        .long("\
            In nginx, each worker runs on the processors of its mask only. To bind the whole server, use \
            `taskset`, `numactl` or `CPUAffinity=` of systemd.")
        .example("worker_cpu_affinity auto;"),
    Directive::new("worker_priority", &[Context::Main])
        .takes(1, 1, "NUMBER")
        .default("0")
        .missing("the service manager sets the priority")
        .short("sets the scheduling priority of workers")
        .long("In nginx, it works like the command `nice`. Use `Nice=` of systemd.")
        .example("worker_priority -5;"),
    Directive::new("worker_processes", &[Context::Main])
        .takes(1, 1, "NUMBER | auto")
        .default("1")
        .short("sets the number of threads that serve")
        .long("\
            `auto` starts one thread for each processor. More threads than processors do not help, \
            because one thread serves many connections. All threads share the cache and the connections \
            to PHP.\n\n\
            A reload changes how many threads take connections. A thread that is one too many keeps the \
            connections that it has, and rests afterwards until it is needed again. The sockets of `listen ... \
            reuseport` stay as many as they were at the start, and the threads share them.")
        .example("worker_processes auto;"),
    Directive::new("worker_rlimit_core", &[Context::Main])
        .takes(1, 1, "SIZE")
        .missing("the service manager sets this limit")
        .short("limits the size of core dumps")
        .long("In nginx, it changes the limit `RLIMIT_CORE` of workers. Use `LimitCORE=` of systemd.")
        .example("worker_rlimit_core 500m;"),
    Directive::new("worker_rlimit_nofile", &[Context::Main])
        .takes(1, 1, "NUMBER")
        .short("sets how many files and connections may be open")
        .long("\
            It changes the limit on open files of the process. Each connection to a client, each \
            connection to PHP and each file that is being sent counts as one. Raise it for a server with \
            many clients. A new number takes effect at the next start, not with a reload.")
        .example("worker_rlimit_nofile 65535;"),
    Directive::new("worker_shutdown_timeout", &[Context::Main])
        .takes(1, 1, "TIME")
        .short("limits the time of a graceful stop")
        .long("\
            When the server is told to stop gracefully (`-s quit`), requests under way may finish. After \
            this time their connections are closed. Without the directive there is no limit.\n\n\
            A reload does not close connections. There, the time bounds only tunnels (WebSocket) that \
            began before it.")
        .example("worker_shutdown_timeout 30s;"),
    Directive::new("working_directory", &[Context::Main])
        .takes(1, 1, "DIRECTORY")
        .ignored("no path depends on the working directory")
        .short("sets the working directory of nginx's workers")
        .long("\
            In nginx, core dumps are written there. In Mayfly, relative paths start at the prefix or at \
            the folder of the configuration.")
        .example("working_directory /var/lib/mayfly;"),
];
