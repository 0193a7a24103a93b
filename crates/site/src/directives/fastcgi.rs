//! Table of the `fastcgi_*` directives, and of those that `fastcgi_*` and `proxy_*` share.

use super::declaration::*;
use super::{Context, Directive};

table! {
    _ = lines("*_bind", LEVELS, (1, 2), "ADDRESS[:PORT] | off").default("off").inherited().text(
        "sets the local address of connections to upstreams", "fastcgi_bind 127.0.0.1;", "\
        Connections to upstreams are made from this IP address. With `off`, the system chooses the address. A unix \
        socket has no such address.\n\n\
        The value may contain variables. An empty value works like `off`. A value that is not an address is logged \
        and works like `off`. If the machine does not have the address, the request gets 500.\n\n\
        A kept connection is used again only by requests with the same address. `transparent` is an error, because \
        it needs a privilege that the server gives up.");
    BUFFER_SIZE: Size = size("*_buffer_size", LEVELS).default("4k").text(
        "limits the size of a response head", "fastcgi_buffer_size 16k;", "\
        If the fields of a response do not fit, the client gets 502. Raise it for applications that set many or long \
        cookies.");
    BUFFERING: Flag = flag("*_buffering", LEVELS, "on").text(
        "sets whether a response is read as fast as the upstream sends it", "fastcgi_buffering off;", "\
        With `on`, the upstream is free for the next request as soon as it has sent its response, even if the client \
        reads slowly. With `off`, each part is sent to the client when it arrives, and the response is not stored. \
        Use `off` for responses that stay open, such as server-sent events.\n\n\
        An upstream can choose for one response with the field `X-Accel-Buffering`.");
    BUFFERS: Lines = lines("*_buffers", LEVELS, (2, 2), "NUMBER SIZE").default("8 4k").inherited().text(
        "sets how much of a response is kept in memory", "fastcgi_buffers 16 16k;", "\
        The amount is the number multiplied by the size. The rest is written to a temporary file until the client \
        has read it.");
    _ = size("*_busy_buffers_size", LEVELS).ignored("`fastcgi_buffers` alone limits what waits for the client").text(
        "limits how much of a response waits for the client", "fastcgi_busy_buffers_size 32k;",
        "In nginx, it limits the buffers that are being sent while the rest of the response is read.");
    CONNECT_TIMEOUT: Time = time("*_connect_timeout", LEVELS).default("60s").text(
        "limits how long connecting to an upstream may take", "fastcgi_connect_timeout 5s;", "\
        If a server does not accept the connection in this time, it counts as failed, and another server of the \
        group is tried. If there is none, the client gets 504.");
    FORCE_RANGES: Flag = flag("*_force_ranges", LEVELS, "off").text(
        "allows ranges for all responses", "fastcgi_force_ranges on;",
        "With `on`, a request for a range gets the range, even if the response has no field `Accept-Ranges`.");
    _ = lines("*_hide_header", LEVELS, (1, 1), "FIELD").inherited_as_a_whole().repeats().text(
        "removes a field from responses", "fastcgi_hide_header X-Powered-By;", "\
        `Status` and the fields `X-Accel-*` are always removed. With `proxy_hide_header`, also `Date`, `Server` and \
        `X-Pad`. A usual use is `X-Powered-By`.");
    IGNORE_CLIENT_ABORT: Flag = flag("*_ignore_client_abort", LEVELS, "off").text(
        "sets whether a request goes on when the client has left", "fastcgi_ignore_client_abort on;", "\
        With `off`, the connection to the upstream is closed when the client closes its own. With `on`, the response \
        is read to its end. A response that is being stored is always read to its end.");
    _ = lines("*_ignore_headers", LEVELS, (1, MANY), "FIELD ...").inherited_as_a_whole().repeats().text(
        "makes the server ignore fields of responses", "fastcgi_ignore_headers Cache-Control Expires;", "\
        The server does not act on the fields that are named here.\n\n\
        - `Cache-Control`, `Expires` and `X-Accel-Expires` no longer set the lifetime of a stored response: \
        `fastcgi_cache_valid` does.\n\
        - `Vary` no longer makes variants of a stored response.\n\
        - `X-Accel-Redirect`, `X-Accel-Buffering`, `X-Accel-Charset` and `X-Accel-Limit-Rate` have no effect.\n\n\
        Two protections stay, with a warning at the start. A response with `Set-Cookie` is not stored unless \
        `cache_store_set_cookie` is on. `private` and `no-store` are obeyed for visitors whose cookies are not in \
        the cache key, unless `cache_shared` is on.");
    INTERCEPT_ERRORS: Flag = flag("*_intercept_errors", LEVELS, "off").text(
        "uses error_page for error responses of upstreams", "fastcgi_intercept_errors on;", "\
        With `on`, a response with a status of 300 or more is replaced by the page that `error_page` names for this \
        status.");
    _ = lines("*_limit_rate", LEVELS, (1, 1), "RATE").default("0").inherited().text(
        "limits how fast a response is read from the upstream", "fastcgi_limit_rate 1m;", "\
        The rate is in bytes per second, for each request. 0 means no limit. It has an effect only with \
        `fastcgi_buffering on`.");
    MAX_TEMP_FILE_SIZE: Size = size("*_max_temp_file_size", LEVELS).default("1024m").text(
        "limits the temporary file of a response", "fastcgi_max_temp_file_size 0;", "\
        When the file has this size, the upstream waits until the client has read a part of it. 0 means that no file \
        is used.");
    _ = lines("*_next_upstream", LEVELS, (1, MANY), "error | timeout | invalid_header | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | http_429 | non_idempotent | off ...")
        .default("error timeout").inherited_as_a_whole().repeats().text(
        "sets after which failures another server is tried", "fastcgi_next_upstream error timeout http_503;", "\
        The values name failures: `error` (connecting, sending or reading failed), `timeout`, `invalid_header` (the \
        response is empty or not valid), and statuses. `off` never tries another server.\n\n\
        A request that may have changed something, such as a POST, is not sent to another server after it was sent \
        to the first one, unless `non_idempotent` is named.");
    NEXT_UPSTREAM_TIMEOUT: Time = time("*_next_upstream_timeout", LEVELS).default("0").text(
        "limits how long other servers are tried", "fastcgi_next_upstream_timeout 10s;",
        "After this time, no further server is tried. 0 means no limit.");
    NEXT_UPSTREAM_TRIES: Number = number("*_next_upstream_tries", LEVELS).default("0").text(
        "limits how many servers are tried", "fastcgi_next_upstream_tries 2;",
        "The first server counts. With 0, each server of the group may be tried once.");
    _ = lines("*_pass_header", LEVELS, (1, 1), "FIELD").inherited_as_a_whole().repeats().text(
        "lets a field through that is removed otherwise", "fastcgi_pass_header X-Accel-Expires;",
        "See `fastcgi_hide_header` for the fields that are always removed.");
    PASS_REQUEST_BODY: Flag = flag("*_pass_request_body", LEVELS, "on").text(
        "sets whether the request body is sent to the upstream", "fastcgi_pass_request_body off;",
        "With `off`, the upstream gets no body. Use it for the target of `auth_request`.");
    PASS_REQUEST_HEADERS: Flag = flag("*_pass_request_headers", LEVELS, "on").text(
        "sets whether the request fields are sent to the upstream", "fastcgi_pass_request_headers off;", "\
        With `off`, a script gets only the parameters of `fastcgi_param`, and an HTTP server only the fields of \
        `proxy_set_header`.");
    READ_TIMEOUT: Time = time("*_read_timeout", LEVELS).default("60s").text(
        "limits how long the upstream may pause while it responds", "fastcgi_read_timeout 120s;", "\
        It is the time between two reads, not the time for the whole response. After it, the client gets 504. Raise \
        it for scripts that compute for a long time.");
    REQUEST_BUFFERING: Flag = flag("*_request_buffering", LEVELS, "on").text(
        "sets whether the whole request body is read first", "fastcgi_request_buffering off;", "\
        With `on`, the request is sent to the upstream when its body is complete. A slow upload then occupies no \
        worker of PHP. With `off`, each part of the body is sent on when it arrives.");
    _ = size("*_send_lowat", LEVELS).default("0").ignored("it has no effect on Linux").text(
        "sets the smallest amount to send", "fastcgi_send_lowat 0;", "nginx ignores it on Linux, too.");
    UPSTREAM_SEND_TIMEOUT: Time = time("*_send_timeout", LEVELS).default("60s").text(
        "limits how long the upstream may pause while it reads a request", "fastcgi_send_timeout 30s;",
        "It is the time between two writes, not the time for the whole request. After it, the client gets 504.");
    SOCKET_KEEPALIVE: Flag = flag("*_socket_keepalive", LEVELS, "off").text(
        "lets the kernel check silent connections", "fastcgi_socket_keepalive on;", "\
        With `on`, the kernel probes connections that send nothing (`SO_KEEPALIVE`). It notices when the other side \
        has disappeared, and firewalls keep the connection open. It has an effect on TCP connections only.");
    _ = lines("*_store", LEVELS, (1, 1), "on | off | PATH").default("off").inherited().text(
        "keeps responses as files", "fastcgi_store /var/lib/mayfly/made$uri;", "\
        With `on`, a response is written to the file that `root` or `alias` gives for the path of the request. A \
        path, which may contain variables, names another file. Use it together with `try_files` or `error_page 404` \
        for content that never changes: each file is fetched once, and served from the disk afterwards. Nothing \
        removes the files.\n\n\
        Only complete responses with status 200 are kept, never responses to HEAD. The file is first written in \
        `fastcgi_temp_path` and then renamed. Its time is the one of `Last-Modified`. With `fastcgi_buffering off`, \
        nothing is kept.\n\n\
        `fastcgi_store` and `fastcgi_cache` at the same level are an error. At different levels, the line nearer to \
        the location counts.");
    _ = lines("*_store_access", LEVELS, (1, 3), "USERS:PERMISSIONS ...").default("user:rw").inherited().text(
        "sets the permissions of files that fastcgi_store keeps", "fastcgi_store_access user:rw group:rw all:r;", "\
        The words are `user`, `group` and `all`, each with `r` or `rw`. Directories that have to be made may be \
        searched by everybody who may read the files.");
    _ = size("*_temp_file_write_size", LEVELS).ignored("Mayfly chooses the size of its writes").text(
        "limits how much is written to a temporary file at once", "fastcgi_temp_file_write_size 64k;",
        "In nginx, it limits the data of one write.");
    _ = lines("*_temp_path", LEVELS, (1, 4), "PATH [LEVEL ...]").default("fastcgi_temp").inherited().text(
        "sets the directory for temporary files of responses", "fastcgi_temp_path /var/lib/mayfly/fastcgi;", "\
        With `fastcgi_store`, use a directory on the same file system as the kept files. The numbers after the path, \
        which make levels of subdirectories in nginx, are accepted and have no effect.");
    _ = lines("fastcgi_catch_stderr", LEVELS, (1, 1), "TEXT").inherited_as_a_whole().repeats().text(
        "treats a response with this error text as invalid", r#"fastcgi_catch_stderr "PHP Fatal error";"#, "\
        If the error stream of the script contains the text, the response counts as `invalid_header` for \
        `fastcgi_next_upstream` and `fastcgi_cache_use_stale`.");
    _ = lines("fastcgi_index", LEVELS, (1, 1), "NAME").inherited().text(
        "sets the script for a path that ends in a slash", "fastcgi_index index.php;",
        "The name is appended to the path in `$fastcgi_script_name`.");
    FASTCGI_KEEP_CONN: Flag = flag("fastcgi_keep_conn", LEVELS, "off").text(
        "keeps connections to the FastCGI server open", "fastcgi_keep_conn on;", "\
        It needs `keepalive` in the `upstream` block. A kept connection occupies a worker of PHP-FPM even when no \
        request is under way: keep fewer connections than there are workers. With `php_pool`, Mayfly chooses the \
        number itself.");
    _ = lines("fastcgi_param", LEVELS, (2, 3), "NAME VALUE [if_not_empty]").inherited_as_a_whole().repeats().text(
        "sets a parameter for the script", "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;", "\
        PHP has the parameters in `$_SERVER`. `SCRIPT_FILENAME` says which script to run. With `if_not_empty`, the \
        parameter is sent only if its value is not empty. Usually the list is in a file: `include \
        fastcgi_params;`.\n\n\
        If a level has one line or more, nothing is inherited from the outer levels. If there is no line at all, \
        `fastcgi_pass php:POOL` sends the parameters of nginx's `fastcgi.conf`.");
    _ = lines("fastcgi_pass", &[Context::Location, Context::LocationIf], (1, 1), "ADDRESS | GROUP | php:POOL").text(
        "sends requests to PHP or another FastCGI server", "fastcgi_pass unix:/run/php/php8.2-fpm.sock;", "\
        The value is `HOST:PORT`, `unix:` and a path, the name of an `upstream` block, or `php:` and the name of a \
        `php_pool`. It may contain variables. The directive is not inherited, except by an `if` in its location.");
    _ = lines("fastcgi_split_path_info", LEVELS, (1, 1), "PATTERN").inherited().text(
        "splits a path into the script and the path behind it", r#"fastcgi_split_path_info ^(.+\.php)(/.*)$;"#,
        "The pattern has two groups. The first becomes `$fastcgi_script_name`, the second `$fastcgi_path_info`.");
}
