//! Table of the `fastcgi_*` directives, and of those that `fastcgi_*` and `proxy_*` share.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("*_bind", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "ADDRESS[:PORT] | off").inherited()
        .default("off")
        .short("sets the local address of connections to upstreams")
        .long("\
            Connections to upstreams are made from this IP address. With `off`, the system chooses the \
            address. A unix socket has no such address.\n\n\
            The value may contain variables. An empty value works like `off`. A value that is not an \
            address is logged and works like `off`. If the machine does not have the address, the \
            request gets 500.\n\n\
            A kept connection is used again only by requests with the same address. `transparent` is an \
            error, because it needs a privilege that the server gives up.")
        .example("fastcgi_bind 127.0.0.1;"),
    Directive::new("*_buffer_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("4k")
        .short("limits the size of a response head")
        .long("\
            If the fields of a response do not fit, the client gets 502. Raise it for applications that \
            set many or long cookies.")
        .example("fastcgi_buffer_size 16k;"),
    Directive::new("*_buffering", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether a response is read as fast as the upstream sends it")
        .long("\
            With `on`, the upstream is free for the next request as soon as it has sent its response, \
            even if the client reads slowly. With `off`, each part is sent to the client when it \
            arrives, and the response is not stored. Use `off` for responses that stay open, such as \
            server-sent events.\n\n\
            An upstream can choose for one response with the field `X-Accel-Buffering`.")
        .example("fastcgi_buffering off;"),
    Directive::new("*_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .default("8 4k")
        .short("sets how much of a response is kept in memory")
        .long("\
            The amount is the number multiplied by the size. The rest is written to a temporary file \
            until the client has read it.")
        .example("fastcgi_buffers 16 16k;"),
    Directive::new("*_busy_buffers_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("`fastcgi_buffers` alone limits what waits for the client")
        .short("limits how much of a response waits for the client")
        .long("In nginx, it limits the buffers that are being sent while the rest of the response is read.")
        .example("fastcgi_busy_buffers_size 32k;"),
    Directive::new("*_connect_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("limits how long connecting to an upstream may take")
        .long("\
            If a server does not accept the connection in this time, it counts as failed, and another \
            server of the group is tried. If there is none, the client gets 504.")
        .example("fastcgi_connect_timeout 5s;"),
    Directive::new("*_force_ranges", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("allows ranges for all responses")
        .long("\
            With `on`, a request for a range gets the range, even if the response has no field \
            `Accept-Ranges`.")
        .example("fastcgi_force_ranges on;"),
    Directive::new("*_hide_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FIELD").inherited_as_a_whole().repeats()
        .short("removes a field from responses")
        .long("\
            `Status` and the fields `X-Accel-*` are always removed. With `proxy_hide_header`, also \
            `Date`, `Server` and `X-Pad`. A usual use is `X-Powered-By`.")
        .example("fastcgi_hide_header X-Powered-By;"),
    Directive::new("*_ignore_client_abort", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether a request goes on when the client has left")
        .long("\
            With `off`, the connection to the upstream is closed when the client closes its own. With \
            `on`, the response is read to its end. A response that is being stored is always read to its \
            end.")
        .example("fastcgi_ignore_client_abort on;"),
    Directive::new("*_ignore_headers", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "FIELD ...").inherited_as_a_whole().repeats()
        .short("makes the server ignore fields of responses")
        .long("\
            The server does not act on the fields that are named here.\n\n\
            - `Cache-Control`, `Expires` and `X-Accel-Expires` no longer set the lifetime of a stored \
            response: `fastcgi_cache_valid` does.\n\
            - `Vary` no longer makes variants of a stored response.\n\
            - `X-Accel-Redirect`, `X-Accel-Buffering`, `X-Accel-Charset` and `X-Accel-Limit-Rate` have \
            no effect.\n\n\
            Two protections stay, with a warning at the start. A response with `Set-Cookie` is not \
            stored unless `cache_store_set_cookie` is on. `private` and `no-store` are obeyed for \
            visitors whose cookies are not in the cache key, unless `cache_shared` is on.")
        .example("fastcgi_ignore_headers Cache-Control Expires;"),
    Directive::new("*_intercept_errors", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("uses error_page for error responses of upstreams")
        .long("\
            With `on`, a response with a status of 300 or more is replaced by the page that `error_page` \
            names for this status.")
        .example("fastcgi_intercept_errors on;"),
    Directive::new("*_limit_rate", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "RATE").inherited()
        .default("0")
        .short("limits how fast a response is read from the upstream")
        .long("\
            The rate is in bytes per second, for each request. 0 means no limit. It has an effect only \
            with `fastcgi_buffering on`.")
        .example("fastcgi_limit_rate 1m;"),
    Directive::new("*_max_temp_file_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("1024m")
        .short("limits the temporary file of a response")
        .long("\
            When the file has this size, the upstream waits until the client has read a part of it. 0 \
            means that no file is used.")
        .example("fastcgi_max_temp_file_size 0;"),
    Directive::new("*_next_upstream", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "error | timeout | invalid_header | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | http_429 | non_idempotent | off ...").inherited_as_a_whole().repeats()
        .default("error timeout")
        .short("sets after which failures another server is tried")
        .long("\
            The values name failures: `error` (connecting, sending or reading failed), `timeout`, \
            `invalid_header` (the response is empty or not valid), and statuses. `off` never tries \
            another server.\n\n\
            A request that may have changed something, such as a POST, is not sent to another server \
            after it was sent to the first one, unless `non_idempotent` is named.")
        .example("fastcgi_next_upstream error timeout http_503;"),
    Directive::new("*_next_upstream_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("0")
        .short("limits how long other servers are tried")
        .long("After this time, no further server is tried. 0 means no limit.")
        .example("fastcgi_next_upstream_timeout 10s;"),
    Directive::new("*_next_upstream_tries", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("0")
        .short("limits how many servers are tried")
        .long("The first server counts. With 0, each server of the group may be tried once.")
        .example("fastcgi_next_upstream_tries 2;"),
    Directive::new("*_pass_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FIELD").inherited_as_a_whole().repeats()
        .short("lets a field through that is removed otherwise")
        .long("See `fastcgi_hide_header` for the fields that are always removed.")
        .example("fastcgi_pass_header X-Accel-Expires;"),
    Directive::new("*_pass_request_body", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether the request body is sent to the upstream")
        .long("With `off`, the upstream gets no body. Use it for the target of `auth_request`.")
        .example("fastcgi_pass_request_body off;"),
    Directive::new("*_pass_request_headers", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether the request fields are sent to the upstream")
        .long("\
            With `off`, a script gets only the parameters of `fastcgi_param`, and an HTTP server only \
            the fields of `proxy_set_header`.")
        .example("fastcgi_pass_request_headers off;"),
    Directive::new("*_read_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("limits how long the upstream may pause while it responds")
        .long("\
            It is the time between two reads, not the time for the whole response. After it, the client \
            gets 504. Raise it for scripts that compute for a long time.")
        .example("fastcgi_read_timeout 120s;"),
    Directive::new("*_request_buffering", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether the whole request body is read first")
        .long("\
            With `on`, the request is sent to the upstream when its body is complete. A slow upload then \
            occupies no worker of PHP. With `off`, each part of the body is sent on when it arrives.")
        .example("fastcgi_request_buffering off;"),
    Directive::new("*_send_lowat", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("0")
        .ignored("it has no effect on Linux")
        .short("sets the smallest amount to send")
        .long("nginx ignores it on Linux, too.")
        .example("fastcgi_send_lowat 0;"),
    Directive::new("*_send_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("limits how long the upstream may pause while it reads a request")
        .long("\
            It is the time between two writes, not the time for the whole request. After it, the client \
            gets 504.")
        .example("fastcgi_send_timeout 30s;"),
    Directive::new("*_socket_keepalive", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("lets the kernel check silent connections")
        .long("\
            With `on`, the kernel probes connections that send nothing (`SO_KEEPALIVE`). It notices when \
            the other side has disappeared, and firewalls keep the connection open. It has an effect on \
            TCP connections only.")
        .example("fastcgi_socket_keepalive on;"),
    Directive::new("*_store", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | PATH").inherited()
        .default("off")
        .short("keeps responses as files")
        .long("\
            With `on`, a response is written to the file that `root` or `alias` gives for the path of \
            the request. A path, which may contain variables, names another file. Use it together with \
            `try_files` or `error_page 404` for content that never changes: each file is fetched once, \
            and served from the disk afterwards. Nothing removes the files.\n\n\
            Only complete responses with status 200 are kept, never responses to HEAD. The file is first \
            written in `fastcgi_temp_path` and then renamed. Its time is the one of `Last-Modified`. \
            With `fastcgi_buffering off`, nothing is kept.\n\n\
            `fastcgi_store` and `fastcgi_cache` at the same level are an error. At different levels, the \
            line nearer to the location counts.")
        .example("fastcgi_store /var/lib/mayfly/made$uri;"),
    Directive::new("*_store_access", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 3, "USERS:PERMISSIONS ...").inherited()
        .default("user:rw")
        .short("sets the permissions of files that fastcgi_store keeps")
        .long("\
            The words are `user`, `group` and `all`, each with `r` or `rw`. Directories that have to be \
            made may be searched by everybody who may read the files.")
        .example("fastcgi_store_access user:rw group:rw all:r;"),
    Directive::new("*_temp_file_write_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .ignored("Mayfly chooses the size of its writes")
        .short("limits how much is written to a temporary file at once")
        .long("In nginx, it limits the data of one write.")
        .example("fastcgi_temp_file_write_size 64k;"),
    Directive::new("*_temp_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "PATH [LEVEL ...]").inherited()
        .default("fastcgi_temp")
        .short("sets the directory for temporary files of responses")
        .long("\
            With `fastcgi_store`, use a directory on the same file system as the kept files. The numbers \
            after the path, which make levels of subdirectories in nginx, are accepted and have no \
            effect.")
        .example("fastcgi_temp_path /var/lib/mayfly/fastcgi;"),
    Directive::new("fastcgi_catch_stderr", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TEXT").inherited_as_a_whole().repeats()
        .short("treats a response with this error text as invalid")
        .long("\
            If the error stream of the script contains the text, the response counts as `invalid_header` \
            for `fastcgi_next_upstream` and `fastcgi_cache_use_stale`.")
        .example(r#"fastcgi_catch_stderr "PHP Fatal error";"#),
    Directive::new("fastcgi_index", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NAME").inherited()
        .short("sets the script for a path that ends in a slash")
        .long("The name is appended to the path in `$fastcgi_script_name`.")
        .example("fastcgi_index index.php;"),
    Directive::new("fastcgi_keep_conn", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("keeps connections to the FastCGI server open")
        .long("\
            It needs `keepalive` in the `upstream` block. A kept connection occupies a worker of PHP-FPM \
            even when no request is under way: keep fewer connections than there are workers. With \
            `php_pool`, Mayfly chooses the number itself.")
        .example("fastcgi_keep_conn on;"),
    Directive::new("fastcgi_param", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 3, "NAME VALUE [if_not_empty]").inherited_as_a_whole().repeats()
        .short("sets a parameter for the script")
        .long("\
            PHP has the parameters in `$_SERVER`. `SCRIPT_FILENAME` says which script to run. With \
            `if_not_empty`, the parameter is sent only if its value is not empty. Usually the list is in \
            a file: `include fastcgi_params;`.\n\n\
            If a level has one line or more, nothing is inherited from the outer levels. If there is no \
            line at all, `fastcgi_pass php:POOL` sends the parameters of nginx's `fastcgi.conf`.")
        .example("fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;"),
    Directive::new("fastcgi_pass", &[Context::Location, Context::LocationIf])
        .takes(1, 1, "ADDRESS | GROUP | php:POOL")
        .short("sends requests to PHP or another FastCGI server")
        .long("\
            The value is `HOST:PORT`, `unix:` and a path, the name of an `upstream` block, or `php:` and \
            the name of a `php_pool`. It may contain variables. The directive is not inherited, except \
            by an `if` in its location.")
        .example("fastcgi_pass unix:/run/php/php8.2-fpm.sock;"),
    Directive::new("fastcgi_split_path_info", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "PATTERN").inherited()
        .short("splits a path into the script and the path behind it")
        .long("\
            The pattern has two groups. The first becomes `$fastcgi_script_name`, the second \
            `$fastcgi_path_info`.")
        .example(r#"fastcgi_split_path_info ^(.+\.php)(/.*)$;"#),
];
