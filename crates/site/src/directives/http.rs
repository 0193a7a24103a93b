//! Table of the directives of nginx's core http module: servers, locations, connections, bodies
//! and files.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("absolute_redirect", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether redirects have a full URL")
        .long("\
            With `on`, redirects that the server makes have a scheme and a host. With `off`, they have a \
            path only. Use `off` behind a proxy that clients reach under another name.")
        .example("absolute_redirect off;"),
    Directive::new("aio", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | threads").inherited()
        .default("off")
        .ignored("files are read by the threads that serve")
        .short("reads files asynchronously")
        .long("\
            In nginx, it keeps a slow disk from holding up other connections. In Mayfly, the thread of \
            the connection reads the file.")
        .example("aio threads;"),
    Directive::new("aio_write", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("files are written by the threads that serve")
        .short("writes temporary files asynchronously")
        .long("In nginx, it belongs to `aio threads`.")
        .example("aio_write on;"),
    Directive::new("alias", &[Context::Location])
        .takes(1, 1, "PATH").inherited()
        .short("replaces the path of the location by a directory")
        .long("\
            With `location /i/` and `alias /data/images/`, the request `/i/top.gif` gets the file \
            `/data/images/top.gif`. End both with a slash, or neither.\n\n\
            In a location with a pattern, the value is the whole path of the file. It usually contains \
            groups of the pattern, such as `$1`. Use `root` if the path of the request can be kept.")
        .example("alias /data/images/;"),
    Directive::new("chunked_transfer_encoding", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether HTTP/1.1 clients get chunked responses")
        .long("\
            A response whose length is not known at the start is sent in chunks. With `off`, the end of \
            the connection marks its end. Only clients that do not follow the standard need `off`.")
        .example("chunked_transfer_encoding on;"),
    Directive::new("client_body_buffer_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("16k")
        .short("sets how much of a request body is kept in memory")
        .long("A larger body is written to a temporary file below `client_body_temp_path`.")
        .example("client_body_buffer_size 128k;"),
    Directive::new("client_body_in_file_only", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | clean | off").inherited()
        .default("off")
        .short("writes every request body to a file")
        .long("\
            The variable `$request_body_file` contains the name of the file.\n\n\
            - `off`: only a body that does not fit into memory is written to a file. If no value of the \
            configuration reads `$request_body_file`, this file has no name, and disappears with the request, \
            even if the server is killed. Else it has one as long as the request lasts.\n\
            - `clean`: the file is removed when the request ends.\n\
            - `on`: the file is kept. Use this for debugging.")
        .example("client_body_in_file_only clean;"),
    Directive::new("client_body_in_single_buffer", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("a body in memory is always in one piece")
        .short("keeps a request body in one piece of memory")
        .long("In nginx, a body may be spread over several buffers.")
        .example("client_body_in_single_buffer on;"),
    Directive::new("client_body_temp_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "PATH [LEVEL ...]").inherited()
        .default("client_body_temp")
        .short("sets the directory for large request bodies")
        .long("\
            The numbers after the path, which make levels of subdirectories in nginx, are accepted and \
            have no effect. A relative path starts at the prefix (`-p`), or at `/var/lib/mayfly` if the \
            prefix is in `/etc`.")
        .example("client_body_temp_path /var/lib/mayfly/body 1 2;"),
    Directive::new("client_body_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("limits how long a client may pause while it sends a body")
        .long("\
            It is the time between two reads, not the time for the whole body. A client that pauses \
            longer gets 408.")
        .example("client_body_timeout 30s;"),
    Directive::new("client_header_buffer_size", &[Context::Http, Context::Server])
        .takes(1, 1, "SIZE").inherited()
        .default("1k")
        .short("sets the memory for an ordinary request head")
        .long("\
            The head is the request line and the fields. A larger head gets larger buffers: see \
            `large_client_header_buffers`. The default is enough for nearly all requests.")
        .example("client_header_buffer_size 2k;"),
    Directive::new("client_header_timeout", &[Context::Http, Context::Server])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("limits the time for sending a request head")
        .long("\
            The time counts from the beginning of the connection, or from the first byte of a later \
            request. A client that takes longer gets 408, and the connection is closed.")
        .example("client_header_timeout 15s;"),
    Directive::new("client_max_body_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("1m")
        .short("limits the size of a request body")
        .long("\
            A request with a larger body gets 413. 0 means no limit. Raise it for uploads. PHP has \
            limits of its own: `upload_max_filesize` and `post_max_size`.")
        .example("client_max_body_size 64m;"),
    Directive::new("connection_pool_size", &[Context::Http, Context::Server])
        .takes(1, 1, "SIZE").inherited()
        .default("512")
        .ignored("memory is not taken from pools")
        .short("sets the size of nginx's memory pool for a connection")
        .long("In nginx, memory for a connection is taken in pieces of this size.")
        .example("connection_pool_size 1k;"),
    Directive::new("default_type", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TYPE").inherited()
        .default("text/plain")
        .short("sets the media type of files with an unknown extension")
        .long("\
            It is used if `types` does not contain the extension of the file, and for the text of \
            `return`.")
        .example("default_type application/octet-stream;"),
    Directive::new("directio", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE | off").inherited()
        .default("off")
        .ignored("files are read through the page cache")
        .short("reads large files without the page cache")
        .long("In nginx, files of this size and larger are read with `O_DIRECT`.")
        .example("directio 8m;"),
    Directive::new("directio_alignment", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("512")
        .ignored("files are read through the page cache")
        .short("sets the alignment of direct reads")
        .long("It belongs to `directio`, which has no effect in Mayfly.")
        .example("directio_alignment 4k;"),
    Directive::new("disable_symlinks", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "off | on | if_not_owner [from=PATH]").inherited()
        .default("off")
        .short("refuses paths with symbolic links")
        .long("\
            With `on`, a request whose file path contains a symbolic link gets 403. With `if_not_owner`, \
            links are followed if they belong to the owner of what they lead to. Links in the beginning of \
            the path that `from=` names are always followed; it may contain variables. Files are not kept \
            open by `open_file_cache` where links are looked at.")
        .example("disable_symlinks on;"),
    Directive::new("early_hints", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "VALUE ...").inherited_as_a_whole().repeats()
        .short("passes 103 and other informational responses of the upstream on to the client")
        .long("\
            If at least one value is neither empty nor `0`, a response 103 (Early Hints) of an HTTP \
            upstream is sent to the client before the final response. Browsers use it to load styles and \
            scripts while the page is still being made. So are other informational responses, such as 102 \
            (RFC 9110, section 15.2), which nginx keeps to itself.\n\n\
            - Clients with HTTP/1.0 never get one. Some old clients with HTTP/1.1 take it for the \
            final response: the value `$http_sec_fetch_mode` allows it for browsers only.\n\
            - Fields that `proxy_hide_header` names are left out.\n\
            - They are not stored. If several requests wait for one fetch of the cache, only the client \
            that caused the fetch gets them.\n\
            - All of a request together are limited to `proxy_buffer_size`. The rest is left out.")
        .example("early_hints $http_sec_fetch_mode;"),
    Directive::new("error_page", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(2, usize::MAX, "CODE ... [=[RESPONSE]] URI").inherited_as_a_whole().repeats()
        .short("sets the page for an error status")
        .long("\
            If a response has one of these statuses, the URI is served in its place, by an internal \
            redirect. If the URI has a scheme (`https://...`), the client is redirected to it. The URI \
            may be a location `@name`.\n\n\
            The client gets the status of the error. `=200` sets another status. `=` alone uses the \
            status of the page itself.")
        .example("error_page 500 502 503 504 /50x.html;"),
    Directive::new("etag", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether files get an ETag")
        .long("\
            The ETag is made from the size and the modification time of the file, in the form that nginx \
            uses. Copies in browsers stay valid when one server replaces the other.")
        .example("etag off;"),
    Directive::new("if_modified_since", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "off | exact | before").inherited()
        .default("exact")
        .short("sets how the time in If-Modified-Since is compared")
        .long("\
            With `exact`, a request gets 304 if its time is the modification time of the file. With \
            `before`, also if its time is later. With `off`, the field is ignored. Without this directive, \
            responses from the cache are compared as with `before` (RFC 9111 §4.3.2).")
        .example("if_modified_since before;"),
    Directive::new("ignore_invalid_headers", &[Context::Http, Context::Server])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("ignores request fields with invalid names")
        .long("\
            A valid name consists of letters, digits and hyphens, and of underscores if \
            `underscores_in_headers` is on. With `off`, other fields are kept.")
        .example("ignore_invalid_headers on;"),
    Directive::new("internal", &[Context::Location])
        .takes(0, 0, "").inherited()
        .short("hides a location from clients")
        .long("\
            A request from a client gets 404. The location can be reached by internal redirects only: \
            `error_page`, `try_files`, `index`, `rewrite`, subrequests, and the response field \
            `X-Accel-Redirect`.")
        .example("internal;"),
    Directive::new("keepalive_disable", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "none | msie6 | safari ...").inherited_as_a_whole().repeats()
        .default("msie6")
        .short("names browsers whose connections are not kept")
        .long("\
            `msie6` means old versions of Internet Explorer, after a POST. `safari` means Safari on \
            macOS. `none` keeps all connections.")
        .example("keepalive_disable none;"),
    Directive::new("keepalive_min_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("0")
        .short("keeps connections through a shutdown until they were idle for this time")
        .long("\
            A graceful stop closes an idle connection of HTTP/1 at once, and a client that sends its \
            next request in the same moment loses it. With this directive, the connection stays open \
            until it has been idle for this time; a request that comes before is answered, with \
            `Connection: close`. The stop takes up to this time longer, within \
            `worker_shutdown_timeout`. Clients of HTTP/2 and HTTP/3 are told that the server ends, \
            and ask for what they miss once more: it has no effect there. `keepalive_timeout` is in \
            force as ever.")
        .example("keepalive_min_timeout 5s;"),
    Directive::new("keepalive_requests", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("1000")
        .short("limits the number of requests on one connection")
        .long("The connection is closed after this number of requests.")
        .example("keepalive_requests 10000;"),
    Directive::new("keepalive_time", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("1h")
        .short("limits how long a connection is used")
        .long("After this time, the connection is closed with its next response.")
        .example("keepalive_time 1h;"),
    Directive::new("keepalive_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "TIME [HEADER_TIME]").inherited()
        .default("75s")
        .short("sets how long an idle connection stays open")
        .long("\
            0 closes the connection after each response. The second time is sent to the client in the \
            field `Keep-Alive`.")
        .example("keepalive_timeout 65s 60s;"),
    Directive::new("large_client_header_buffers", &[Context::Http, Context::Server])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .default("4 8k")
        .short("limits the size of a request head")
        .long("\
            The request line must fit into one buffer, else the client gets 414. Each field must fit \
            into one buffer, else the client gets 400. The whole head may use as many buffers as the \
            number says. Raise the size if an application uses very long cookies.")
        .example("large_client_header_buffers 4 16k;"),
    Directive::new("limit_rate", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "RATE").inherited()
        .default("0")
        .short("limits how fast a response is sent")
        .long("\
            The rate is in bytes per second, for each request. 0 means no limit. The value may contain \
            variables. The response field `X-Accel-Limit-Rate` of an upstream replaces it.")
        .example("limit_rate 500k;"),
    Directive::new("limit_rate_after", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "SIZE").inherited()
        .default("0")
        .short("sets how much is sent before limit_rate begins")
        .long("Use it together with `limit_rate`: a video then starts quickly.")
        .example("limit_rate_after 1m;"),
    Directive::new("lingering_close", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "off | on | always").inherited()
        .default("on")
        .short("sets whether the server reads on before it closes a connection")
        .long("\
            If a request is refused while the client still sends its body, closing the connection at \
            once can destroy the response before the client reads it. Therefore the server reads and \
            drops what the client sends, for some time.\n\n\
            `on` does this if the client may still be sending. `always` does it for each connection. \
            `off` never does it.")
        .example("lingering_close on;"),
    Directive::new("lingering_time", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("30s")
        .short("limits the time of a lingering close")
        .long("After this time, the connection is closed even if the client still sends.")
        .example("lingering_time 30s;"),
    Directive::new("lingering_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("5s")
        .short("limits how long a lingering close waits for more data")
        .long("\
            If the client sends nothing for this time, the connection is closed.\n\n\
            With HTTP/2 it is also how long a request may go on whose response has ended. What comes of it is \
            dropped, and an error in it is answered. Then the client is told with `RST_STREAM` to send no more; \
            with `lingering_close off`, at once.")
        .example("lingering_timeout 5s;"),
    Directive::new("listen", &[Context::Server])
        .takes(1, usize::MAX, "[ADDRESS:]PORT | unix:PATH [default_server] [backlog=NUMBER] [reuseport] ...").repeats()
        .default("*:80 or *:8000")
        .short("sets the address and port of a server")
        .long("\
            The value is an address with a port, a port alone (all IPv4 addresses), an IPv6 address in \
            brackets, or `unix:` and a path. Without the directive, the server listens on port 80, or on \
            8000 if root did not start it.\n\n\
            Several servers may listen on the same address. The host of the request then chooses the \
            server. If no server has that name, `default_server` takes the request, else the first \
            server.\n\n\
            Parameters of the socket, such as `backlog` and `reuseport`, must be written in one server \
            only. `proxy_protocol` reads the client's address from the PROXY protocol. `ssl` makes \
            clients speak TLS.\n\n\
            `quic` listens with UDP for HTTP/3. Give it a line of its own beside the one with `ssl`. There, \
            `reuseport` has no effect: one thread takes all packets of an address.")
        .example("listen 127.0.0.1:8080 default_server;"),
    Directive::new("location", &[Context::Server, Context::Location])
        .takes(1, 2, "[= | ^~ | ~ | ~*] PATH { ... } | @NAME { ... }").block().repeats()
        .short("sets what holds for some paths")
        .long("\
            The path is compared in this order:\n\n\
            - `= PATH` takes this path only.\n\
            - `PATH` takes all paths that begin with it. The longest match is remembered.\n\
            - If the longest match has `^~`, it is used.\n\
            - `~ PATTERN` (case counts) and `~* PATTERN` (case does not count) are tried in the order in \
            which they are written. The first match is used.\n\
            - If no pattern matches, the longest match is used.\n\n\
            A location `@name` takes no path. `error_page` and `try_files` redirect to it.")
        .example(r#"location ~ \.php$ { fastcgi_pass 127.0.0.1:9000; }"#),
    Directive::new("log_not_found", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether missing files are logged")
        .long("\
            With `off`, a file that does not exist causes no line in the error log. Use `off` for \
            `/favicon.ico` and similar files.")
        .example("log_not_found off;"),
    Directive::new("log_subrequest", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether subrequests are in the access log")
        .long("Subrequests are made by `auth_request`, `mirror`, SSI and `add_before_body`.")
        .example("log_subrequest on;"),
    Directive::new("map_hash_bucket_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("tables size themselves")
        .short("sets the size of nginx's tables for maps")
        .long("The line may be removed. Tables in Mayfly always have the size that they need.")
        .example("map_hash_bucket_size 128;"),
    Directive::new("map_hash_max_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("2048")
        .ignored("tables size themselves")
        .short("sets the size of nginx's tables for maps")
        .long("The line may be removed. Tables in Mayfly always have the size that they need.")
        .example("map_hash_max_size 4096;"),
    Directive::new("max_headers", &[Context::Http, Context::Server])
        .takes(1, 1, "NUMBER").inherited()
        .default("1000")
        .short("limits the number of request fields")
        .long("A request with more fields gets 400.")
        .example("max_headers 200;"),
    Directive::new("max_ranges", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .short("limits the number of ranges in a request")
        .long("\
            A request with more ranges gets the whole response. 0 switches ranges off. Without the \
            directive, there is no limit on the number.")
        .example("max_ranges 5;"),
    Directive::new("merge_slashes", &[Context::Http, Context::Server])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("treats several slashes in a path as one")
        .long("\
            With `on`, `//a///b` is compared with locations as `/a/b`. Use `off` only if paths contain \
            data in which slashes have a meaning, such as base64.")
        .example("merge_slashes on;"),
    Directive::new("msie_padding", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .ignored("no browser of today hides short error pages")
        .short("makes error pages longer for old browsers")
        .long("In nginx, error pages for MSIE and Chrome get comments that fill them up to 512 bytes.")
        .example("msie_padding off;"),
    Directive::new("msie_refresh", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sends pages that lead on instead of redirects to old browsers")
        .long("\
            Internet Explorer, known by `MSIE` in the field `User-Agent`, gets the status 200 and a page with a \
            `refresh` instead of 301 and 302.")
        .example("msie_refresh on;"),
    Directive::new("open_file_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "off | max=NUMBER [inactive=TIME]").inherited()
        .default("off")
        .short("keeps files open between requests")
        .long("\
            It saves system calls on a busy site with many static files. It remembers open files with \
            their sizes and times, the content of files up to 16 KB (32 MB in all), and directories.\n\n\
            `max` limits the number of files. A file that is not used for `inactive` is closed. A change \
            of a file is noticed after `open_file_cache_valid`.")
        .example("open_file_cache max=1000 inactive=20s;"),
    Directive::new("open_file_cache_errors", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether missing files are remembered")
        .long("\
            With `on`, `open_file_cache` also remembers that a file does not exist, for the time of \
            `open_file_cache_valid`.")
        .example("open_file_cache_errors on;"),
    Directive::new("open_file_cache_min_uses", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("1")
        .short("sets how often a file must be used to stay open")
        .long("A file that was used less often within the `inactive` time of `open_file_cache` is closed.")
        .example("open_file_cache_min_uses 2;"),
    Directive::new("open_file_cache_valid", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("sets how often an open file is checked")
        .long("\
            After this time, the next request checks the file again. Until then, a changed file may be \
            sent with its old content.")
        .example("open_file_cache_valid 30s;"),
    Directive::new("output_buffers", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "NUMBER SIZE").inherited()
        .default("2 32k")
        .ignored("Mayfly sizes its buffers itself")
        .short("sets nginx's buffers for reading files")
        .long("In nginx, it is the number and size of buffers for a response from a disk.")
        .example("output_buffers 2 64k;"),
    Directive::new("port_in_redirect", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether redirects contain the port")
        .long("\
            It has an effect on redirects with a full URL (`absolute_redirect on`). Use `off` behind a \
            proxy that listens on the usual port.")
        .example("port_in_redirect off;"),
    Directive::new("postpone_output", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("1460")
        .ignored("small pieces are always joined")
        .short("waits until there is enough to send")
        .long("In nginx, output is sent when at least this number of bytes is there.")
        .example("postpone_output 1460;"),
    Directive::new("read_ahead", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("0")
        .ignored("the kernel decides how far it reads ahead")
        .short("sets how far the kernel reads ahead in files")
        .long("In nginx, it sets the amount with `posix_fadvise` or `fcntl`.")
        .example("read_ahead 32k;"),
    Directive::new("recursive_error_pages", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether an error page may have an error page")
        .long("\
            With `on`, `error_page` is also used for an error that happens while an error page is \
            served. At most ten internal redirects are followed.")
        .example("recursive_error_pages on;"),
    Directive::new("referer_hash_bucket_size", &[Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("tables size themselves")
        .short("sets the size of nginx's table for valid_referers")
        .long("The line may be removed. Tables in Mayfly always have the size that they need.")
        .example("referer_hash_bucket_size 128;"),
    Directive::new("referer_hash_max_size", &[Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("2048")
        .ignored("tables size themselves")
        .short("sets the size of nginx's table for valid_referers")
        .long("The line may be removed. Tables in Mayfly always have the size that they need.")
        .example("referer_hash_max_size 4096;"),
    Directive::new("request_pool_size", &[Context::Http, Context::Server])
        .takes(1, 1, "SIZE").inherited()
        .default("4k")
        .ignored("memory is not taken from pools")
        .short("sets the size of nginx's memory pool for a request")
        .long("In nginx, memory for a request is taken in pieces of this size.")
        .example("request_pool_size 8k;"),
    Directive::new("reset_timedout_connection", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("resets connections that timed out")
        .long("\
            With `on`, a connection that timed out is closed with a reset. The kernel then frees its \
            memory at once. With `off`, the kernel may keep unsent data for a long time.")
        .example("reset_timedout_connection on;"),
    Directive::new("resolver", &[Context::Http, Context::Server, Context::Location, Context::Upstream])
        .takes(1, usize::MAX, "ADDRESS ... [valid=TIME] [ipv4=on | off] [ipv6=on | off]").inherited()
        .short("sets the name servers for names that are looked up at run time")
        .long("\
            These name servers are asked in turn, and not those of the system, for\n\n\
            - names that come from variables in `proxy_pass`, `fastcgi_pass` or `memcached_pass`,\n\
            - servers of an `upstream` that are marked `resolve`.\n\n\
            An answer is used for its TTL, or for the time of `valid`. All other names are looked up \
            once, by the system, when the configuration is read.")
        .example("resolver 127.0.0.53 valid=30s;"),
    Directive::new("resolver_timeout", &[Context::Http, Context::Server, Context::Location, Context::Upstream])
        .takes(1, 1, "TIME").inherited()
        .default("30s")
        .short("limits how long a name is looked up")
        .long("If the name of an upstream is not known after this time, the request gets 502.")
        .example("resolver_timeout 5s;"),
    Directive::new("root", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "PATH").inherited()
        .default("html")
        .short("sets the directory of the files")
        .long("\
            The path of the request is appended: with `root /var/www`, the request `/a/b.css` gets the \
            file `/var/www/a/b.css`. A relative path starts at the prefix (`-p`). The value may contain \
            variables, but not `$document_root` and `$realpath_root`.")
        .example("root /var/www/html;"),
    Directive::new("satisfy", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "all | any").inherited()
        .default("all")
        .short("sets whether one access check is enough")
        .long("\
            With `all`, the client must pass the checks of addresses (`allow`, `deny`), passwords \
            (`auth_basic`) and `auth_request`. With `any`, one of them is enough. Use `any` to let a \
            network in without a password.")
        .example("satisfy any;"),
    Directive::new("scgi_cache_path", &[Context::Http])
        .takes(2, usize::MAX, "PATH keys_zone=NAME:SIZE [PARAMETER ...]").repeats()
        .ignored("there are no SCGI upstreams")
        .short("defines a cache for SCGI upstreams")
        .long("The line is accepted because the configurations of some images write it.")
        .example("scgi_cache_path /var/cache/scgi keys_zone=scgi:10m;"),
    Directive::new("scgi_temp_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "PATH [LEVEL ...]").inherited()
        .ignored("there are no SCGI upstreams")
        .short("sets the directory for temporary files of SCGI upstreams")
        .long("The line is accepted because the packages of some distributions write it.")
        .example("scgi_temp_path /var/lib/nginx/scgi;"),
    Directive::new("send_lowat", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("0")
        .ignored("it has no effect on Linux")
        .short("sets the smallest amount to send")
        .long("nginx ignores it on Linux, too.")
        .example("send_lowat 0;"),
    Directive::new("send_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("limits how long a client may pause while it reads a response")
        .long("\
            It is the time between two writes, not the time for the whole response. If the client reads \
            nothing for this time, the connection is closed.")
        .example("send_timeout 30s;"),
    Directive::new("sendfile", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("lets the kernel send files without copying them")
        .long("\
            With `on`, the kernel sends a file from its page cache. With `off`, the server reads the \
            file and writes it to the connection. Use `off` for file systems on which `sendfile` sends \
            wrong data, such as the shared folders of some virtual machines.\n\n\
            A stored page of 12 KB to 1 MB that is requested often is sent in the same way: the server \
            also keeps it as a file in memory. These files count in the `memory` of the zone, and take \
            at most an eighth of it. Their number is limited to a sixteenth of the files that the \
            process may open, or to 1,024 if that is more.\n\n\
            It has no effect if the body is changed while it is sent, for example by gzip.")
        .example("sendfile on;"),
    Directive::new("sendfile_max_chunk", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("2m")
        .ignored("a fast client cannot keep a thread busy for long")
        .short("limits how much is sent in one call")
        .long("In nginx, it keeps a fast client from holding a worker.")
        .example("sendfile_max_chunk 512k;"),
    Directive::new("server", &[Context::Http])
        .takes(0, 0, "{ ... }").block().repeats()
        .short("defines a virtual server")
        .long("\
            A server takes the requests for its addresses (`listen`) and its host names (`server_name`). \
            What is written in it holds for all its locations, unless a location has a line of its own.")
        .example("server { listen 8080; server_name example.org; root /var/www; }"),
    Directive::new("server_name", &[Context::Server])
        .takes(1, usize::MAX, "NAME ...").repeats()
        .default(r#""""#)
        .short("sets the host names of a server")
        .long("\
            Names are compared in this order: exact names, names that begin with `*.`, names that end \
            with `.*`, and patterns (they begin with `~`) in the order in which they are written. \
            `.example.org` means `example.org` and `*.example.org`.\n\n\
            Named groups of a pattern become variables. The first name is the value of `$server_name`.")
        .example(r#"server_name example.org *.example.org ~^(?<user>\w+)\.example\.net$;"#),
    Directive::new("server_name_in_redirect", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets which host name redirects contain")
        .long("\
            With `on`, redirects contain the first `server_name`. With `off`, they contain the host that \
            the request named.")
        .example("server_name_in_redirect on;"),
    Directive::new("server_names_hash_bucket_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("tables size themselves")
        .short("sets the size of nginx's table for server names")
        .long("\
            The line may be removed. Tables in Mayfly always have the size that they need, and no name \
            is too long.")
        .example("server_names_hash_bucket_size 128;"),
    Directive::new("server_names_hash_max_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("512")
        .ignored("tables size themselves")
        .short("sets the size of nginx's table for server names")
        .long("The line may be removed. Tables in Mayfly always have the size that they need.")
        .example("server_names_hash_max_size 2048;"),
    Directive::new("server_tokens", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off | build | TEXT").inherited()
        .default("on")
        .short("sets the value of the response field Server")
        .long("\
            `on` sends name and version. `off` sends the name only. `build` works like `on`. Any other \
            text is sent as it is, and may contain variables. An empty text leaves the field out.")
        .example("server_tokens off;"),
    Directive::new("tcp_nodelay", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .ignored("small packets are always sent at once")
        .short("sends small packets at once")
        .long("\
            Connections always work as with `on`. Mayfly gives the kernel a response in as few writes as \
            possible.")
        .example("tcp_nodelay on;"),
    Directive::new("tcp_nopush", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("head and body are written together")
        .short("sends head and body in full packets")
        .long("In nginx, it sets `TCP_CORK` while a file is sent.")
        .example("tcp_nopush on;"),
    Directive::new("try_files", &[Context::Server, Context::Location])
        .takes(2, usize::MAX, "FILE ... URI | FILE ... =CODE")
        .short("serves the first file that exists")
        .long("\
            The names are tried in order. A name that ends in a slash is a directory. If none exists, \
            the last argument is used: a URI to continue with, a location `@name`, or `=` and a status. The \
            URI goes on with its own arguments: those of the request are `$args`.\n\n\
            Use it to serve existing files and to send everything else to the front controller of an \
            application. The directive is not inherited.")
        .example("try_files $uri $uri/ /index.php?$args;"),
    Directive::new("types", &[Context::Http, Context::Server, Context::Location])
        .takes(0, 0, "{ TYPE EXTENSION ...; ... }").entries().inherited_as_a_whole().repeats()
        .default("text/html html; image/gif gif; image/jpeg jpg;")
        .short("maps file extensions to media types")
        .long("\
            Each entry is a media type and the extensions that have it. Usually the list is in a file: \
            `include mime.types;`. Case does not count in extensions.")
        .example("types { text/html html htm; image/avif avif; }"),
    Directive::new("types_hash_bucket_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("tables size themselves")
        .short("sets the size of nginx's table for types")
        .long("The line may be removed. Tables in Mayfly always have the size that they need.")
        .example("types_hash_bucket_size 128;"),
    Directive::new("types_hash_max_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("1024")
        .ignored("tables size themselves")
        .short("sets the size of nginx's table for types")
        .long("The line may be removed. Tables in Mayfly always have the size that they need.")
        .example("types_hash_max_size 2048;"),
    Directive::new("underscores_in_headers", &[Context::Http, Context::Server])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("accepts request fields with underscores in their names")
        .long("\
            With `off`, such fields are ignored. A script cannot tell `A-B` from `A_B`, because both \
            become `HTTP_A_B`: with `on`, a client could use one in place of the other.")
        .example("underscores_in_headers on;"),
    Directive::new("uwsgi_cache_path", &[Context::Http])
        .takes(2, usize::MAX, "PATH keys_zone=NAME:SIZE [PARAMETER ...]").repeats()
        .ignored("there are no uwsgi upstreams")
        .short("defines a cache for uwsgi upstreams")
        .long("The line is accepted because the configurations of some images write it.")
        .example("uwsgi_cache_path /var/cache/uwsgi keys_zone=uwsgi:10m;"),
    Directive::new("uwsgi_temp_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 4, "PATH [LEVEL ...]").inherited()
        .ignored("there are no uwsgi upstreams")
        .short("sets the directory for temporary files of uwsgi upstreams")
        .long("The line is accepted because the packages of some distributions write it.")
        .example("uwsgi_temp_path /var/lib/nginx/uwsgi;"),
    Directive::new("variables_hash_bucket_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("tables size themselves")
        .short("sets the size of nginx's table for variables")
        .long("The line may be removed. Variables are looked up once, when the configuration is read.")
        .example("variables_hash_bucket_size 128;"),
    Directive::new("variables_hash_max_size", &[Context::Http])
        .takes(1, 1, "SIZE").inherited()
        .default("1024")
        .ignored("tables size themselves")
        .short("sets the size of nginx's table for variables")
        .long("The line may be removed. Variables are looked up once, when the configuration is read.")
        .example("variables_hash_max_size 2048;"),
];
