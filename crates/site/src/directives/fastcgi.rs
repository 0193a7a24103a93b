//! FastCGI, and what all protocols towards upstreams share.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("*_bind", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "ADDRESS[:PORT] | off").inherited()
        .default("off")
        .short("the local address of connections")
        .long("Connections to upstreams come from this IP address; with `off`, from the one that the system chooses. Variables may stand in it: an empty value is as `off`, one that is no address is logged and has no effect. An address that cannot be had is answered with 500. Kept connections are used again only by requests with the same address. Unix sockets have none. `transparent` is an error, since workers lack the privilege.")
        .example("fastcgi_bind 127.0.0.1;"),
    Directive::new("*_buffer_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("4k")
        .short("how large a response head may be")
        .long("A response whose fields do not fit is answered with 502. WordPress plug-ins with many cookies may need more.")
        .example("fastcgi_buffer_size 16k;"),
    Directive::new("*_buffering", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("take a response as fast as it comes")
        .long("With `on`, the upstream is free again as soon as it has answered, however slow the client. With `off`, bytes are handed on as they come; such a response is not stored. The response field `X-Accel-Buffering` goes before it.")
        .example("fastcgi_buffering off;"),
    Directive::new("*_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .default("8 4k")
        .short("how much of a response is kept in memory")
        .long("Number times size is the amount; what goes beyond is written to a temporary file until the client takes it.")
        .example("fastcgi_buffers 16 16k;"),
    Directive::new("*_busy_buffers_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("what a client has not taken is bounded by `fastcgi_buffers` alone")
        .short("how much may wait for the client")
        .long("What waits is bounded by `fastcgi_buffers`. The line has no effect.")
        .example("fastcgi_busy_buffers_size 32k;"),
    Directive::new("*_connect_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("how long connecting may take")
        .long("A server that cannot be reached in time counts as failed, and another is tried where there is one.")
        .example("fastcgi_connect_timeout 5s;"),
    Directive::new("*_force_ranges", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("ranges whatever the upstream says")
        .long("With `on`, ranges of a response are answered even without `Accept-Ranges` in it.")
        .example("fastcgi_force_ranges on;"),
    Directive::new("*_hide_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FIELD").inherited_as_a_whole().repeats()
        .short("a response field that clients do not see")
        .long("Adds to the fields that are hidden anyway: `Status` and `X-Accel-*`. Hiding `X-Powered-By` is usual.")
        .example("fastcgi_hide_header X-Powered-By;"),
    Directive::new("*_ignore_client_abort", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("go on when the client has left")
        .long("With `off`, the upstream is told to stop. A response that is being stored is fetched to its end in any case.")
        .example("fastcgi_ignore_client_abort on;"),
    Directive::new("*_ignore_headers", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "FIELD ...").inherited_as_a_whole().repeats()
        .short("response fields without effect")
        .long("The fields named lose their meaning for the server: `Cache-Control`, `Expires` and `X-Accel-Expires` say nothing about lifetimes any more, `Set-Cookie` and `Vary` do not keep a response from being stored. Ignoring `Set-Cookie` in a cache without any condition (`fastcgi_cache_bypass`, `fastcgi_no_cache`) is an error, as it would show one visitor's page to all others; `cache_store_set_cookie on` says that it is meant.")
        .example("fastcgi_ignore_headers Cache-Control Expires;"),
    Directive::new("*_intercept_errors", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("error pages for the upstream's errors")
        .long("With `on`, responses with a status of 300 and more go through `error_page`.")
        .example("fastcgi_intercept_errors on;"),
    Directive::new("*_limit_rate", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "RATE").inherited()
        .default("0")
        .short("how fast a response is read")
        .long("Bytes per second for each request; 0 is no limit. Counts with buffering on.")
        .example("fastcgi_limit_rate 1m;"),
    Directive::new("*_max_temp_file_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("1024m")
        .short("how large a temporary file of a response may be")
        .long("When it is full, the upstream waits for the client. 0 means no such file.")
        .example("fastcgi_max_temp_file_size 0;"),
    Directive::new("*_next_upstream", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "error | timeout | invalid_header | http_500 | http_503 | http_403 | http_404 | http_429 | non_idempotent | off ...").inherited_as_a_whole().repeats()
        .default("error timeout")
        .short("when to try another server")
        .long("Which failures of one server send the request to the next in the group. Requests that may have changed something, such as POST, are not repeated unless `non_idempotent` is there. `off` never tries another.")
        .example("fastcgi_next_upstream error timeout http_503;"),
    Directive::new("*_next_upstream_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("0")
        .short("how long other servers are tried")
        .long("When the time has passed, no further server is asked. 0 is no limit.")
        .example("fastcgi_next_upstream_timeout 10s;"),
    Directive::new("*_next_upstream_tries", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("0")
        .short("how many servers are tried")
        .long("0 is no limit but the number of servers.")
        .example("fastcgi_next_upstream_tries 2;"),
    Directive::new("*_pass_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FIELD").inherited_as_a_whole().repeats()
        .short("a hidden response field that clients may see")
        .long("Takes a field out of those that are hidden.")
        .example("fastcgi_pass_header X-Accel-Expires;"),
    Directive::new("*_pass_request_body", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("hand the request's body on")
        .long("With `off`, the script gets none.")
        .example("fastcgi_pass_request_body off;"),
    Directive::new("*_pass_request_headers", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("hand the request's fields on")
        .long("With `off`, scripts see no `HTTP_*` parameters but those that `fastcgi_param` sets.")
        .example("fastcgi_pass_request_headers off;"),
    Directive::new("*_read_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("how long the upstream may pause while it answers")
        .long("It is the time between two reads, not for the whole response. Scripts that compute for long need a larger one. When it passes, the client gets 504.")
        .example("fastcgi_read_timeout 120s;"),
    Directive::new("*_request_buffering", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("take the whole request body first")
        .long("With `on`, PHP starts when the body is there, so that a slow upload occupies no worker. With `off`, the body is handed on as it comes.")
        .example("fastcgi_request_buffering off;"),
    Directive::new("*_send_lowat", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("0")
        .ignored("nothing is gained by it on Linux")
        .short("smallest amount to send")
        .long("It has no effect on Linux, nor here.")
        .example("fastcgi_send_lowat 0;"),
    Directive::new("*_send_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("how long the upstream may pause while it takes a request")
        .long("It is the time between two writes, not for the whole request.")
        .example("fastcgi_send_timeout 30s;"),
    Directive::new("*_socket_keepalive", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("let the kernel watch connections")
        .long("With `on`, the kernel probes connections that are silent (SO_KEEPALIVE), so that one whose other end is gone ends, and a firewall on the way does not forget it. For TCP only.")
        .example("fastcgi_socket_keepalive on;"),
    Directive::new("*_store", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | PATH").inherited()
        .default("off")
        .short("keep responses as files")
        .long("With `on`, a response is written to the file that `root` or `alias` has for the request's path; with a path, to that one, in which variables may be used. Together with `try_files` or `error_page 404`, each file is fetched once and served from disk ever after: for what never changes, since nothing removes the files. Only complete responses with status 200 are kept, never those to HEAD: they are written in `fastcgi_temp_path` and renamed, with the time that `Last-Modified` says, whether or not the client waits for the end. With `fastcgi_buffering off`, nothing is kept. It does not go together with `fastcgi_cache`: the line nearer to the location counts.")
        .example("fastcgi_store /var/lib/mayfly/made$uri;"),
    Directive::new("*_store_access", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 3, "USERS:PERMISSIONS ...").inherited()
        .default("user:rw")
        .short("who may read and write files that `fastcgi_store` keeps")
        .long("`user`, `group` or `all`, each with `r` or `rw`. Folders that are made on the way may be searched by whoever may read the files in them.")
        .example("fastcgi_store_access user:rw group:rw all:r;"),
    Directive::new("*_temp_file_write_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("Mayfly sizes its writes itself")
        .short("how much is written at once")
        .long("Mayfly sizes its writes itself. The line has no effect.")
        .example("fastcgi_temp_file_write_size 64k;"),
    Directive::new("*_temp_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "PATH [LEVEL ...]").inherited()
        .default("fastcgi_temp")
        .short("where large responses wait")
        .long("A folder for temporary files; with `fastcgi_store`, best on the file system of the files that are kept. Levels of subfolders are accepted and have no meaning.")
        .example("fastcgi_temp_path /var/lib/mayfly/fastcgi;"),
    Directive::new("fastcgi_catch_stderr", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TEXT").inherited_as_a_whole().repeats()
        .short("an error text that makes a response invalid")
        .long("Where PHP's error stream has this text, the response counts as `invalid_header` for `fastcgi_next_upstream` and stale responses.")
        .example(r#"fastcgi_catch_stderr "PHP Fatal error";"#),
    Directive::new("fastcgi_index", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NAME").inherited()
        .short("the script of a folder")
        .long("Where the path ends in a slash, the name is appended in `$fastcgi_script_name`.")
        .example("fastcgi_index index.php;"),
    Directive::new("fastcgi_keep_conn", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("keep connections to the FastCGI server")
        .long("Works together with `keepalive` in the `upstream`. Beware: a kept connection occupies a worker of PHP-FPM even while nothing is asked. With `php_pool` Mayfly knows how many it may keep.")
        .example("fastcgi_keep_conn on;"),
    Directive::new("fastcgi_param", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 3, "NAME VALUE [if_not_empty]").inherited_as_a_whole().repeats()
        .short("a parameter for the script")
        .long("What PHP finds in `$_SERVER`. The list is usually included from `fastcgi_params`; `SCRIPT_FILENAME` tells which script to run. With `if_not_empty`, the parameter is left out where its value is empty. One line at a level replaces all inherited ones. Where none is written, `fastcgi_pass php:POOL` sends what nginx's `fastcgi.conf` has.")
        .example("fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;"),
    Directive::new("fastcgi_pass", &[Context::Location, Context::LocationIf])
        .takes(1, 1, "ADDRESS | GROUP | php:POOL")
        .short("hand requests to PHP or another FastCGI server")
        .long("An address with a port, `unix:` and a path, the name of an `upstream`, or `php:` and the name of a `php_pool`. Variables may be used; then the value is one of these at the time. It is not inherited, except by an `if` in its location.")
        .example("fastcgi_pass unix:/run/php/php8.2-fpm.sock;"),
    Directive::new("fastcgi_split_path_info", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "PATTERN").inherited()
        .short("tell the script from the path behind it")
        .long("A pattern with two groups: the first becomes `$fastcgi_script_name`, the second `$fastcgi_path_info`.")
        .example(r#"fastcgi_split_path_info ^(.+\.php)(/.*)$;"#),
];
