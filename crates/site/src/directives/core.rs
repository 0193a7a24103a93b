//! Table of the directives of the `main` and `events` contexts, which concern the whole
//! process.

use super::declaration::*;
use super::{Context, Directive};

table! {
    _ = flag("accept_mutex", EVENTS, "off").ignored("connections are accepted without a lock").text(
        "makes nginx's workers take turns at accepting connections", "accept_mutex off;", "\
        In nginx, `on` lets one worker at a time accept new connections. Mayfly's threads accept connections at the \
        same time.");
    _ = time("accept_mutex_delay", EVENTS).default("500ms").ignored("connections are accepted without a lock").text(
        "sets how long a worker of nginx waits for its turn to accept", "accept_mutex_delay 100ms;",
        "It belongs to `accept_mutex`, which has no effect in Mayfly.");
    _ = lines("control_socket", MAIN, (1, 1), "PATH | off").text(
        "sets where commands speak with the running server", "control_socket /run/mayfly/control;", "\
        `mayfly -s`, `mayfly purge`, `mayfly warm`, `mayfly explain` and `mayfly top` find the server by this unix \
        socket. Only the account that started the server, and root, may connect to it: its mode is 0600. What a \
        server that was killed has left there is replaced. A socket on which another server listens is an error.\n\n\
        Without the directive, it is beside the pid file, and is called as that file is with `.control` instead of \
        the last extension. `off` makes none. A relative path starts at the prefix (`-p`).");
    DAEMON: Flag = flag("daemon", MAIN, "on").text("sets whether the server runs in the background", "daemon off;", "\
        With `on`, the command returns to the shell when all sockets and logs are open, and the server runs in the \
        background. With `off`, the server stays in the foreground. Use `off` in containers and under a service \
        manager that watches the process itself, such as systemd with `Type=exec`.");
    _ = lines("debug_connection", EVENTS, (1, 1), "ADDRESS").repeats().missing("there are no debug messages").text(
        "switches debug messages on for some clients", "debug_connection 127.0.0.1;",
        "In nginx, the error log has debug messages about clients with these addresses.");
    _ = lines("debug_points", MAIN, (1, 1), "abort | stop").ignored("a debugging aid of nginx's authors").text(
        "stops nginx at an internal error, for its developers", "debug_points abort;",
        "It makes nginx end or wait for a debugger when it finds a mistake in its own state.");
    _ = lines("env", MAIN, (1, 1), "NAME[=VALUE]").repeats().text(
        "keeps or sets an environment variable", "env TZ=Europe/Berlin;", "\
        At the start, the server clears its environment, except for `TZ` and the variables that are named here. `env \
        NAME` keeps the value that the variable had. `env NAME=VALUE` sets a value. PHP of a `php_pool` has its own \
        list: see `env` in `php_pool`.");
    _ = lines("error_log", &[Context::Main, Context::Http, Context::Server, Context::Location], (1, 2), "FILE | stderr | syslog:... [LEVEL]")
        .default("logs/error.log error").inherited_as_a_whole().repeats().text(
        "sets where errors are logged, and from which level on", "error_log /var/log/mayfly/error.log warn;", "\
        The first argument is a file, `stderr`, or a syslog server. The second is the lowest level that is logged. \
        From the lowest to the highest, the levels are `debug`, `info`, `notice`, `warn`, `error`, `crit`, `alert` \
        and `emerg`. Mayfly writes no messages of level `debug` yet.\n\n\
        Several lines at one level of the configuration log to several targets. A relative path starts at the prefix \
        (`-p`). If the prefix is in `/etc`, it starts at `/var/log/mayfly`, and the default is `error.log`.\n\n\
        What the program says of itself, of reloads for example, goes to the logs of the main context. Where that \
        context has none and `-e` is not given, it goes to those of the `http` block.");
    _ = lines("events", MAIN, (0, 0), "{ ... }").block().text(
        "holds settings for connections, as nginx groups them", "events { worker_connections 1024; }", "\
        The block may be empty or absent. All its directives are accepted, and none has an effect: Mayfly always \
        uses the best method of the system to wait for events.");
    _ = lines("http", MAIN, (0, 0), "{ ... }").block().text(
        "holds the servers, and what they share", "http { server { listen 8080; root /var/www; } }", "\
        The block contains the `server` blocks and what they share: cache zones, maps, log formats, upstream groups. \
        Most directives in it hold for all servers, unless a server or location has a line of its own.");
    _ = lines("load_module", MAIN, (1, 1), "FILE").repeats()
        .ignored("modules of nginx cannot be loaded; what Mayfly has of them is built in").text(
        "loads a dynamic module of nginx", "load_module modules/ngx_http_image_filter_module.so;", "\
        The line is accepted because the packages of many distributions write it at the beginning of their \
        configuration. If the module has a directive that Mayfly does not know, the line with that directive is an \
        error.");
    _ = lines("lock_file", MAIN, (1, 1), "FILE").ignored("connections are accepted without a lock").text(
        "names the lock file of nginx's processes", "lock_file /run/nginx.lock;", "\
        In nginx, processes take turns at accepting connections with this file. Mayfly has one process that serves, \
        and needs no such file.");
    _ = flag("master_process", MAIN, "on")
        .ignored("Mayfly has no separate master process: one process serves with several threads").text(
        "sets whether nginx runs a master and worker processes", "master_process on;", "\
        In nginx, `off` puts everything into one process, for debugging. In Mayfly, one process serves with several \
        threads in any case.");
    _ = flag("multi_accept", EVENTS, "off").ignored("a thread that wakes up accepts all connections that wait").text(
        "sets whether a worker accepts several connections at once", "multi_accept on;",
        "In nginx, `off` accepts one connection each time a worker wakes up.");
    _ = flag("pcre_jit", MAIN, "off")
        .ignored("patterns are always compiled to machine code where the machine allows it").text(
        "compiles patterns to machine code", "pcre_jit on;",
        "In nginx, `on` makes patterns faster. In Mayfly, this is always done, with the first match of each.");
    _ = lines("pid", MAIN, (1, 1), "FILE").default("logs/mayfly.pid").text(
        "sets the file for the process number", "pid /run/mayfly.pid;", "\
        The file is written when all sockets listen, and is removed at the end. `mayfly -s` reads it to find the \
        process and sends it a signal where no control socket answers. A relative path starts at the prefix (`-p`). \
        If the prefix is in `/etc`, it starts at `/run/mayfly`, and the default is `mayfly.pid`.");
    _ = flag("ssl_object_cache_inheritable", MAIN, "on")
        .ignored("files of certificates are read at each reload").text(
        "sets whether a reload keeps certificates whose files have not changed", "ssl_object_cache_inheritable off;",
        "A reload reads all files, so that a file which was changed in place is noticed as well.");
    _ = lines("thread_pool", MAIN, (2, 3), "NAME threads=NUMBER [max_queue=NUMBER]").repeats()
        .ignored("files are read by the threads that serve").text(
        "defines a pool of threads for reading files", "thread_pool default threads=32;",
        "The line is accepted so that `aio threads=NAME` may stay in a configuration.");
    _ = time("timer_resolution", MAIN).ignored("reading the clock costs almost nothing").text(
        "sets how often nginx reads the clock", "timer_resolution 100ms;",
        "In nginx, it saves system calls by reading the clock less often.");
    _ = lines("use", EVENTS, (1, 1), "METHOD").ignored("the best method of the system is always used").text(
        "chooses the method to wait for events", "use epoll;", "Mayfly uses epoll on Linux.");
    _ = lines("user", MAIN, (1, 2), "NAME [GROUP]").text("sets the account that serves", "user www-data;", "\
        When root starts the server, a parent process with root's rights opens sockets and logs, and the process \
        that serves runs as this account. The second argument is its group. Without it, the account's own group is \
        used. When another account starts the server, the directive has no effect.\n\n\
        Without the directive, the server uses an account that nothing else uses: `mayfly` where it exists, else a \
        number without a name. That is the owner of the kept pages, else 65519 or the next lower free one. It is \
        also given the group of `www-data`, so that it can read sites. Name an account if the server writes files \
        that must stay, for example with `proxy_store`: they belong to this account.\n\n\
        PHP of a `php_pool` runs as another account, which `user` in `php_pool` names. Do not use the same account \
        for both: a script could then end the server. See [security.md](security.md).");
    _ = number("worker_aio_requests", EVENTS).default("32").ignored("files are read by the threads that serve").text(
        "limits outstanding file operations of a worker", "worker_aio_requests 64;",
        "In nginx, it limits operations with `aio` and epoll.");
    _ = number("worker_connections", EVENTS)
        .default("512").ignored("only the limit on open files bounds the number of connections").text(
        "limits the connections of one worker", "worker_connections 1024;", "\
        nginx reserves memory for this number of connections. Mayfly takes memory when a connection arrives. To \
        allow more connections, raise `worker_rlimit_nofile`.");
    _ = lines("worker_cpu_affinity", MAIN, (1, MANY), "auto [MASK] | MASK ...")
        .missing("the kernel decides which processor runs a thread").text(
        "binds workers to processors", "worker_cpu_affinity auto;", "\
        In nginx, each worker runs on the processors of its mask only. To bind the whole server, use `taskset`, \
        `numactl` or `CPUAffinity=` of systemd.");
    _ = number("worker_priority", MAIN).default("0").missing("the service manager sets the priority").text(
        "sets the scheduling priority of workers", "worker_priority -5;",
        "In nginx, it works like the command `nice`. Use `Nice=` of systemd.");
    _ = lines("worker_processes", MAIN, (1, 1), "NUMBER | auto").default("1").text(
        "sets the number of threads that serve", "worker_processes auto;", "\
        `auto` starts one thread for each processor. More threads than processors do not help, because one thread \
        serves many connections. All threads share the cache and the connections to PHP.\n\n\
        A reload changes how many threads take connections. A thread that is one too many keeps the connections that \
        it has, and rests afterwards until it is needed again. The sockets of `listen ... reuseport` stay as many as \
        they were at the start, and the threads share them.");
    _ = size("worker_rlimit_core", MAIN).missing("the service manager sets this limit").text(
        "limits the size of core dumps", "worker_rlimit_core 500m;",
        "In nginx, it changes the limit `RLIMIT_CORE` of workers. Use `LimitCORE=` of systemd.");
    WORKER_RLIMIT_NOFILE: Number = number("worker_rlimit_nofile", MAIN).text(
        "sets how many files and connections may be open", "worker_rlimit_nofile 65535;", "\
        It changes the limit on open files of the process. Each connection to a client, each connection to PHP and \
        each file that is being sent counts as one. Raise it for a server with many clients. A new number takes \
        effect at the next start, not with a reload.");
    WORKER_SHUTDOWN_TIMEOUT: Time = time("worker_shutdown_timeout", MAIN).text(
        "limits the time of a graceful stop", "worker_shutdown_timeout 30s;", "\
        When the server is told to stop gracefully (`-s quit`), requests under way may finish. After this time their \
        connections are closed. Without the directive there is no limit.\n\n\
        A reload does not close connections. There, the time bounds only tunnels (WebSocket) that began before it.");
    _ = lines("working_directory", MAIN, (1, 1), "DIRECTORY")
        .ignored("no path depends on the working directory").text(
        "sets the working directory of nginx's workers", "working_directory /var/lib/mayfly;", "\
        In nginx, core dumps are written there. In Mayfly, relative paths start at the prefix or at the folder of \
        the configuration.");
}
