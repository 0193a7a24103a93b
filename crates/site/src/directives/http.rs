//! Table of the directives of nginx's core http module: servers, locations, connections, bodies
//! and files.

use super::declaration::*;
use super::{Context, Directive};
use crate::model::{IfModifiedSince, InFileOnly, LingeringClose, Satisfy};

table! {
    ABSOLUTE_REDIRECT: Flag = flag("absolute_redirect", LEVELS, "on").text(
        "sets whether redirects have a full URL", "absolute_redirect off;", "\
        With `on`, redirects that the server makes have a scheme and a host. With `off`, they have a path only. Use \
        `off` behind a proxy that clients reach under another name.");
    _ = lines("aio", LEVELS, (1, 1), "on | off | threads")
        .default("off").inherited().ignored("files are read by the threads that serve").text(
        "reads files asynchronously", "aio threads;", "\
        In nginx, it keeps a slow disk from holding up other connections. In Mayfly, the thread of the connection \
        reads the file.");
    _ = flag("aio_write", LEVELS, "off").ignored("files are written by the threads that serve").text(
        "writes temporary files asynchronously", "aio_write on;", "In nginx, it belongs to `aio threads`.");
    _ = lines("alias", LOCATION, (1, 1), "PATH").inherited().text(
        "replaces the path of the location by a directory", "alias /data/images/;", "\
        With `location /i/` and `alias /data/images/`, the request `/i/top.gif` gets the file \
        `/data/images/top.gif`. End both with a slash, or neither.\n\n\
        In a location with a pattern, the value is the whole path of the file. It usually contains groups of the \
        pattern, such as `$1`. Use `root` if the path of the request can be kept.");
    CHUNKED_TRANSFER_ENCODING: Flag = flag("chunked_transfer_encoding", LEVELS, "on").text(
        "sets whether HTTP/1.1 clients get chunked responses", "chunked_transfer_encoding on;", "\
        A response whose length is not known at the start is sent in chunks. With `off`, the end of the connection \
        marks its end. Only clients that do not follow the standard need `off`.");
    CLIENT_BODY_BUFFER_SIZE: Size = size("client_body_buffer_size", LEVELS).default("16k").text(
        "sets how much of a request body is kept in memory", "client_body_buffer_size 128k;",
        "A larger body is written to a temporary file below `client_body_temp_path`.");
    CLIENT_BODY_IN_FILE_ONLY: Choice<InFileOnly> = choice("client_body_in_file_only", LEVELS, "on | clean | off", &[
        ("off", InFileOnly::Off), ("clean", InFileOnly::Clean), ("on", InFileOnly::On),
    ])
        .default("off").text("writes every request body to a file", "client_body_in_file_only clean;", "\
        The variable `$request_body_file` contains the name of the file.\n\n\
        - `off`: only a body that does not fit into memory is written to a file. If no value of the configuration \
        reads `$request_body_file`, this file has no name, and disappears with the request, even if the server is \
        killed. Else it has one as long as the request lasts.\n\
        - `clean`: the file is removed when the request ends.\n\
        - `on`: the file is kept. Use this for debugging.");
    _ = flag("client_body_in_single_buffer", LEVELS, "off").ignored("a body in memory is always in one piece").text(
        "keeps a request body in one piece of memory", "client_body_in_single_buffer on;",
        "In nginx, a body may be spread over several buffers.");
    _ = lines("client_body_temp_path", LEVELS, (1, 4), "PATH [LEVEL ...]")
        .default("client_body_temp").inherited().text(
        "sets the directory for large request bodies", "client_body_temp_path /var/lib/mayfly/body 1 2;", "\
        The numbers after the path, which make levels of subdirectories in nginx, are accepted and have no effect. A \
        relative path starts at the prefix (`-p`), or at `/var/lib/mayfly` if the prefix is in `/etc`.");
    CLIENT_BODY_TIMEOUT: Time = time("client_body_timeout", LEVELS).default("60s").text(
        "limits how long a client may pause while it sends a body", "client_body_timeout 30s;",
        "It is the time between two reads, not the time for the whole body. A client that pauses longer gets 408.");
    CLIENT_HEADER_BUFFER_SIZE: Size = size("client_header_buffer_size", SERVERS).default("1k").text(
        "sets the memory for an ordinary request head", "client_header_buffer_size 2k;", "\
        The head is the request line and the fields. A larger head gets larger buffers: see \
        `large_client_header_buffers`. The default is enough for nearly all requests.");
    CLIENT_HEADER_TIMEOUT: Time = time("client_header_timeout", SERVERS).default("60s").text(
        "limits the time for sending a request head", "client_header_timeout 15s;", "\
        The time counts from the beginning of the connection, or from the first byte of a later request. A client \
        that takes longer gets 408, and the connection is closed.");
    CLIENT_MAX_BODY_SIZE: Size = size("client_max_body_size", LEVELS).default("1m").text(
        "limits the size of a request body", "client_max_body_size 64m;", "\
        A request with a larger body gets 413. 0 means no limit. Raise it for uploads. PHP has limits of its own: \
        `upload_max_filesize` and `post_max_size`.");
    _ = size("connection_pool_size", SERVERS).default("512").ignored("memory is not taken from pools").text(
        "sets the size of nginx's memory pool for a connection", "connection_pool_size 1k;",
        "In nginx, memory for a connection is taken in pieces of this size.");
    _ = lines("default_type", LEVELS, (1, 1), "TYPE").default("text/plain").inherited().text(
        "sets the media type of files with an unknown extension", "default_type application/octet-stream;",
        "It is used if `types` does not contain the extension of the file, and for the text of `return`.");
    _ = lines("directio", LEVELS, (1, 1), "SIZE | off")
        .default("off").inherited().ignored("files are read through the page cache").text(
        "reads large files without the page cache", "directio 8m;",
        "In nginx, files of this size and larger are read with `O_DIRECT`.");
    _ = size("directio_alignment", LEVELS).default("512").ignored("files are read through the page cache").text(
        "sets the alignment of direct reads", "directio_alignment 4k;",
        "It belongs to `directio`, which has no effect in Mayfly.");
    _ = lines("disable_symlinks", LEVELS, (1, 2), "off | on | if_not_owner [from=PATH]")
        .default("off").inherited().text("refuses paths with symbolic links", "disable_symlinks on;", "\
        With `on`, a request whose file path contains a symbolic link gets 403. With `if_not_owner`, links are \
        followed if they belong to the owner of what they lead to. Links in the beginning of the path that `from=` \
        names are always followed; it may contain variables. Files are not kept open by `open_file_cache` where \
        links are looked at.");
    _ = lines("early_hints", LEVELS, (1, MANY), "VALUE ...").inherited_as_a_whole().repeats().text(
        "passes 103 and other informational responses of the upstream on to the client", "early_hints $http_sec_fetch_mode;", "\
        If at least one value is neither empty nor `0`, a response 103 (Early Hints) of an HTTP upstream is sent to \
        the client before the final response. Browsers use it to load styles and scripts while the page is still \
        being made. So are other informational responses, such as 102 (RFC 9110, section 15.2), which nginx keeps to \
        itself.\n\n\
        - Clients with HTTP/1.0 never get one. Some old clients with HTTP/1.1 take it for the final response: the \
        value `$http_sec_fetch_mode` allows it for browsers only.\n\
        - Fields that `proxy_hide_header` names are left out.\n\
        - They are not stored. If several requests wait for one fetch of the cache, only the client that caused the \
        fetch gets them.\n\
        - All of a request together are limited to `proxy_buffer_size`. The rest is left out.");
    _ = lines("error_page", LEVELS_AND_IF, (2, MANY), "CODE ... [=[RESPONSE]] URI").inherited_as_a_whole().repeats().text(
        "sets the page for an error status", "error_page 500 502 503 504 /50x.html;", "\
        If a response has one of these statuses, the URI is served in its place, by an internal redirect. If the URI \
        has a scheme (`https://...`), the client is redirected to it. The URI may be a location `@name`.\n\n\
        The client gets the status of the error. `=200` sets another status. `=` alone uses the status of the page \
        itself.");
    ETAG: Flag = flag("etag", LEVELS, "on").text("sets whether files get an ETag", "etag off;", "\
        The ETag is made from the size and the modification time of the file, in the form that nginx uses. Copies in \
        browsers stay valid when one server replaces the other.");
    IF_MODIFIED_SINCE: Choice<IfModifiedSince> = choice("if_modified_since", LEVELS, "off | exact | before", &[
        ("off", IfModifiedSince::Off), ("exact", IfModifiedSince::Exact), ("before", IfModifiedSince::Before),
    ]).default("exact").text(
        "sets how the time in If-Modified-Since is compared", "if_modified_since before;", "\
        With `exact`, a request gets 304 if its time is the modification time of the file. With `before`, also if \
        its time is later. With `off`, the field is ignored. Without this directive, responses from the cache are \
        compared as with `before` (RFC 9111 §4.3.2).");
    IGNORE_INVALID_HEADERS: Flag = flag("ignore_invalid_headers", SERVERS, "on").text(
        "ignores request fields with invalid names", "ignore_invalid_headers on;", "\
        A valid name consists of letters, digits and hyphens, and of underscores if `underscores_in_headers` is on. \
        With `off`, other fields are kept.");
    _ = lines("internal", LOCATION, (0, 0), "").inherited().text("hides a location from clients", "internal;", "\
        A request from a client gets 404. The location can be reached by internal redirects only: `error_page`, \
        `try_files`, `index`, `rewrite`, subrequests, and the response field `X-Accel-Redirect`.");
    _ = lines("keepalive_disable", LEVELS, (1, 2), "none | msie6 | safari ...")
        .default("msie6").inherited_as_a_whole().repeats().text(
        "names browsers whose connections are not kept", "keepalive_disable none;", "\
        `msie6` means old versions of Internet Explorer, after a POST. `safari` means Safari on macOS. `none` keeps \
        all connections.");
    KEEPALIVE_MIN_TIMEOUT: Time = time("keepalive_min_timeout", LEVELS).default("0").text(
        "keeps connections through a shutdown until they were idle for this time", "keepalive_min_timeout 5s;", "\
        A graceful stop closes an idle connection of HTTP/1 at once, and a client that sends its next request in the \
        same moment loses it. With this directive, the connection stays open until it has been idle for this time; a \
        request that comes before is answered, with `Connection: close`. The stop takes up to this time longer, \
        within `worker_shutdown_timeout`. Clients of HTTP/2 and HTTP/3 are told that the server ends, and ask for \
        what they miss once more: it has no effect there. `keepalive_timeout` is in force as ever.");
    KEEPALIVE_REQUESTS: Number = number("keepalive_requests", LEVELS).default("1000").text(
        "limits the number of requests on one connection", "keepalive_requests 10000;",
        "The connection is closed after this number of requests.");
    KEEPALIVE_TIME: Time = time("keepalive_time", LEVELS).default("1h").text(
        "limits how long a connection is used", "keepalive_time 1h;",
        "After this time, the connection is closed with its next response.");
    KEEPALIVE_TIMEOUT: Time = time("keepalive_timeout", LEVELS)
        .takes((1, 2), "TIME [HEADER_TIME]").default("75s").text(
        "sets how long an idle connection stays open", "keepalive_timeout 65s 60s;", "\
        0 closes the connection after each response. The second time is sent to the client in the field \
        `Keep-Alive`.");
    LARGE_CLIENT_HEADER_BUFFERS: Lines = lines("large_client_header_buffers", SERVERS, (2, 2), "NUMBER SIZE").default("4 8k").inherited().text(
        "limits the size of a request head", "large_client_header_buffers 4 16k;", "\
        The request line must fit into one buffer, else the client gets 414. Each field must fit into one buffer, \
        else the client gets 400. The whole head may use as many buffers as the number says. Raise the size if an \
        application uses very long cookies.");
    _ = lines("limit_rate", LEVELS_AND_IF, (1, 1), "RATE").default("0").inherited().text(
        "limits how fast a response is sent", "limit_rate 500k;", "\
        The rate is in bytes per second, for each request. 0 means no limit. The value may contain variables. The \
        response field `X-Accel-Limit-Rate` of an upstream replaces it.");
    _ = size("limit_rate_after", LEVELS_AND_IF).default("0").text(
        "sets how much is sent before limit_rate begins", "limit_rate_after 1m;",
        "Use it together with `limit_rate`: a video then starts quickly.");
    LINGERING_CLOSE: Choice<LingeringClose> = choice("lingering_close", LEVELS, "off | on | always", &[
        ("off", LingeringClose::Off), ("on", LingeringClose::On), ("always", LingeringClose::Always),
    ])
        .default("on").text(
        "sets whether the server reads on before it closes a connection", "lingering_close on;", "\
        If a request is refused while the client still sends its body, closing the connection at once can destroy \
        the response before the client reads it. Therefore the server reads and drops what the client sends, for \
        some time.\n\n\
        `on` does this if the client may still be sending. `always` does it for each connection. `off` never does \
        it.");
    LINGERING_TIME: Time = time("lingering_time", LEVELS).default("30s").text(
        "limits the time of a lingering close", "lingering_time 30s;",
        "After this time, the connection is closed even if the client still sends.");
    LINGERING_TIMEOUT: Time = time("lingering_timeout", LEVELS).default("5s").text(
        "limits how long a lingering close waits for more data", "lingering_timeout 5s;", "\
        If the client sends nothing for this time, the connection is closed.\n\n\
        With HTTP/2 it is also how long a request may go on whose response has ended. What comes of it is dropped, \
        and an error in it is answered. Then the client is told with `RST_STREAM` to send no more; with \
        `lingering_close off`, at once.");
    _ = lines("listen", &[Context::Server], (1, MANY), "[ADDRESS:]PORT | unix:PATH [default_server] [backlog=NUMBER] [reuseport] ...")
        .default("*:80 or *:8000").repeats().text(
        "sets the address and port of a server", "listen 127.0.0.1:8080 default_server;", "\
        The value is an address with a port, a port alone (all IPv4 addresses), an IPv6 address in brackets, or \
        `unix:` and a path. Without the directive, the server listens on port 80, or on 8000 if root did not start \
        it.\n\n\
        Several servers may listen on the same address. The host of the request then chooses the server. If no \
        server has that name, `default_server` takes the request, else the first server.\n\n\
        Parameters of the socket, such as `backlog` and `reuseport`, must be written in one server only. \
        `proxy_protocol` reads the client's address from the PROXY protocol. `ssl` makes clients speak TLS.\n\n\
        `quic` listens with UDP for HTTP/3. Give it a line of its own beside the one with `ssl`. There, `reuseport` \
        has no effect: one thread takes all packets of an address.");
    _ = lines("location", &[Context::Server, Context::Location], (1, 2), "[= | ^~ | ~ | ~*] PATH { ... } | @NAME { ... }").block().repeats().text(
        "sets what holds for some paths", r#"location ~ \.php$ { fastcgi_pass 127.0.0.1:9000; }"#, "\
        The path is compared in this order:\n\n\
        - `= PATH` takes this path only.\n\
        - `PATH` takes all paths that begin with it. The longest match is remembered.\n\
        - If the longest match has `^~`, it is used.\n\
        - `~ PATTERN` (case counts) and `~* PATTERN` (case does not count) are tried in the order in which they are \
        written. The first match is used.\n\
        - If no pattern matches, the longest match is used.\n\n\
        A location `@name` takes no path. `error_page` and `try_files` redirect to it.");
    LOG_NOT_FOUND: Flag = flag("log_not_found", LEVELS, "on").text(
        "sets whether missing files are logged", "log_not_found off;", "\
        With `off`, a file that does not exist causes no line in the error log. Use `off` for `/favicon.ico` and \
        similar files.");
    LOG_SUBREQUEST: Flag = flag("log_subrequest", LEVELS, "off").text(
        "sets whether subrequests are in the access log", "log_subrequest on;",
        "Subrequests are made by `auth_request`, `mirror`, SSI and `add_before_body`.");
    _ = size("map_hash_bucket_size", HTTP).default("64").inherited().ignored("tables size themselves").text(
        "sets the size of nginx's tables for maps", "map_hash_bucket_size 128;",
        "The line may be removed. Tables in Mayfly always have the size that they need.");
    _ = size("map_hash_max_size", HTTP).default("2048").inherited().ignored("tables size themselves").text(
        "sets the size of nginx's tables for maps", "map_hash_max_size 4096;",
        "The line may be removed. Tables in Mayfly always have the size that they need.");
    MAX_HEADERS: Number = number("max_headers", SERVERS).default("1000").text(
        "limits the number of request fields", "max_headers 200;", "A request with more fields gets 400.");
    MAX_RANGES: Number = number("max_ranges", LEVELS).text(
        "limits the number of ranges in a request", "max_ranges 5;", "\
        A request with more ranges gets the whole response. 0 switches ranges off. Without the directive, there is \
        no limit on the number.");
    MERGE_SLASHES: Flag = flag("merge_slashes", SERVERS, "on").text(
        "treats several slashes in a path as one", "merge_slashes on;", "\
        With `on`, `//a///b` is compared with locations as `/a/b`. Use `off` only if paths contain data in which \
        slashes have a meaning, such as base64.");
    _ = flag("msie_padding", LEVELS, "on").ignored("no browser of today hides short error pages").text(
        "makes error pages longer for old browsers", "msie_padding off;",
        "In nginx, error pages for MSIE and Chrome get comments that fill them up to 512 bytes.");
    MSIE_REFRESH: Flag = flag("msie_refresh", LEVELS, "off").text(
        "sends pages that lead on instead of redirects to old browsers", "msie_refresh on;", "\
        Internet Explorer, known by `MSIE` in the field `User-Agent`, gets the status 200 and a page with a \
        `refresh` instead of 301 and 302.");
    _ = lines("open_file_cache", LEVELS, (1, 2), "off | max=NUMBER [inactive=TIME]").default("off").inherited().text(
        "keeps files open between requests", "open_file_cache max=1000 inactive=20s;", "\
        It saves system calls on a busy site with many static files. It remembers open files with their sizes and \
        times, the content of files up to 16 KB (32 MB in all), and directories.\n\n\
        `max` limits the number of files. A file that is not used for `inactive` is closed. A change of a file is \
        noticed after `open_file_cache_valid`.");
    OPEN_FILE_CACHE_ERRORS: Flag = flag("open_file_cache_errors", LEVELS, "off").text(
        "sets whether missing files are remembered", "open_file_cache_errors on;", "\
        With `on`, `open_file_cache` also remembers that a file does not exist, for the time of \
        `open_file_cache_valid`.");
    OPEN_FILE_CACHE_MIN_USES: Number = number("open_file_cache_min_uses", LEVELS).default("1").text(
        "sets how often a file must be used to stay open", "open_file_cache_min_uses 2;",
        "A file that was used less often within the `inactive` time of `open_file_cache` is closed.");
    OPEN_FILE_CACHE_VALID: Time = time("open_file_cache_valid", LEVELS).default("60s").text(
        "sets how often an open file is checked", "open_file_cache_valid 30s;", "\
        After this time, the next request checks the file again. Until then, a changed file may be sent with its old \
        content.");
    _ = lines("output_buffers", LEVELS, (2, 2), "NUMBER SIZE")
        .default("2 32k").inherited().ignored("Mayfly sizes its buffers itself").text(
        "sets nginx's buffers for reading files", "output_buffers 2 64k;",
        "In nginx, it is the number and size of buffers for a response from a disk.");
    PORT_IN_REDIRECT: Flag = flag("port_in_redirect", LEVELS, "on").text(
        "sets whether redirects contain the port", "port_in_redirect off;", "\
        It has an effect on redirects with a full URL (`absolute_redirect on`). Use `off` behind a proxy that \
        listens on the usual port.");
    _ = size("postpone_output", LEVELS).default("1460").ignored("small pieces are always joined").text(
        "waits until there is enough to send", "postpone_output 1460;",
        "In nginx, output is sent when at least this number of bytes is there.");
    _ = size("read_ahead", LEVELS).default("0").ignored("the kernel decides how far it reads ahead").text(
        "sets how far the kernel reads ahead in files", "read_ahead 32k;",
        "In nginx, it sets the amount with `posix_fadvise` or `fcntl`.");
    RECURSIVE_ERROR_PAGES: Flag = flag("recursive_error_pages", LEVELS, "off").text(
        "sets whether an error page may have an error page", "recursive_error_pages on;", "\
        With `on`, `error_page` is also used for an error that happens while an error page is served. At most ten \
        internal redirects are followed.");
    _ = size("referer_hash_bucket_size", &[Context::Server, Context::Location])
        .default("64").ignored("tables size themselves").text(
        "sets the size of nginx's table for valid_referers", "referer_hash_bucket_size 128;",
        "The line may be removed. Tables in Mayfly always have the size that they need.");
    _ = size("referer_hash_max_size", &[Context::Server, Context::Location])
        .default("2048").ignored("tables size themselves").text(
        "sets the size of nginx's table for valid_referers", "referer_hash_max_size 4096;",
        "The line may be removed. Tables in Mayfly always have the size that they need.");
    _ = size("request_pool_size", SERVERS).default("4k").ignored("memory is not taken from pools").text(
        "sets the size of nginx's memory pool for a request", "request_pool_size 8k;",
        "In nginx, memory for a request is taken in pieces of this size.");
    RESET_TIMEDOUT_CONNECTION: Flag = flag("reset_timedout_connection", LEVELS, "off").text(
        "resets connections that timed out", "reset_timedout_connection on;", "\
        With `on`, a connection that timed out is closed with a reset. The kernel then frees its memory at once. \
        With `off`, the kernel may keep unsent data for a long time.");
    _ = lines("resolver", &[Context::Http, Context::Server, Context::Location, Context::Upstream], (1, MANY), "ADDRESS ... [valid=TIME] [ipv4=on | off] [ipv6=on | off]").inherited().text(
        "sets the name servers for names that are looked up at run time", "resolver 127.0.0.53 valid=30s;", "\
        These name servers are asked in turn, and not those of the system, for\n\n\
        - names that come from variables in `proxy_pass`, `fastcgi_pass` or `memcached_pass`,\n\
        - servers of an `upstream` that are marked `resolve`.\n\n\
        An answer is used for its TTL, or for the time of `valid`. All other names are looked up once, by the \
        system, when the configuration is read.");
    RESOLVER_TIMEOUT: Time = time("resolver_timeout", &[Context::Http, Context::Server, Context::Location, Context::Upstream])
        .default("30s").text("limits how long a name is looked up", "resolver_timeout 5s;",
        "If the name of an upstream is not known after this time, the request gets 502.");
    _ = lines("root", LEVELS_AND_IF, (1, 1), "PATH").default("html").inherited().text(
        "sets the directory of the files", "root /var/www/html;", "\
        The path of the request is appended: with `root /var/www`, the request `/a/b.css` gets the file \
        `/var/www/a/b.css`. A relative path starts at the prefix (`-p`). The value may contain variables, but not \
        `$document_root` and `$realpath_root`.");
    SATISFY: Choice<Satisfy> = choice("satisfy", LEVELS, "all | any", &[("all", Satisfy::All), ("any", Satisfy::Any)])
        .default("all").text("sets whether one access check is enough", "satisfy any;", "\
        With `all`, the client must pass the checks of addresses (`allow`, `deny`), passwords (`auth_basic`) and \
        `auth_request`. With `any`, one of them is enough. Use `any` to let a network in without a password.");
    _ = lines("scgi_cache_path", HTTP, (2, MANY), "PATH keys_zone=NAME:SIZE [PARAMETER ...]").repeats()
        .ignored("there are no SCGI upstreams").text(
        "defines a cache for SCGI upstreams", "scgi_cache_path /var/cache/scgi keys_zone=scgi:10m;",
        "The line is accepted because the configurations of some images write it.");
    _ = lines("scgi_temp_path", LEVELS, (1, 4), "PATH [LEVEL ...]").inherited()
        .ignored("there are no SCGI upstreams").text(
        "sets the directory for temporary files of SCGI upstreams", "scgi_temp_path /var/lib/nginx/scgi;",
        "The line is accepted because the packages of some distributions write it.");
    _ = size("send_lowat", LEVELS).default("0").ignored("it has no effect on Linux").text(
        "sets the smallest amount to send", "send_lowat 0;", "nginx ignores it on Linux, too.");
    SEND_TIMEOUT: Time = time("send_timeout", LEVELS).default("60s").text(
        "limits how long a client may pause while it reads a response", "send_timeout 30s;", "\
        It is the time between two writes, not the time for the whole response. If the client reads nothing for this \
        time, the connection is closed.");
    SENDFILE: Flag = flag("sendfile", LEVELS_AND_IF, "on").text(
        "lets the kernel send files without copying them", "sendfile on;", "\
        With `on`, the kernel sends a file from its page cache. With `off`, the server reads the file and writes it \
        to the connection. Use `off` for file systems on which `sendfile` sends wrong data, such as the shared \
        folders of some virtual machines.\n\n\
        A stored page of 12 KB to 1 MB that is requested often is sent in the same way: the server also keeps it as \
        a file in memory. These files count in the `memory` of the zone, and take at most an eighth of it. Their \
        number is limited to a sixteenth of the files that the process may open, or to 1,024 if that is more.\n\n\
        It has no effect if the body is changed while it is sent, for example by gzip.");
    _ = size("sendfile_max_chunk", LEVELS)
        .default("2m").ignored("a fast client cannot keep a thread busy for long").text(
        "limits how much is sent in one call", "sendfile_max_chunk 512k;",
        "In nginx, it keeps a fast client from holding a worker.");
    _ = lines("server", HTTP, (0, 0), "{ ... }").block().repeats().text(
        "defines a virtual server", "server { listen 8080; server_name example.org; root /var/www; }", "\
        A server takes the requests for its addresses (`listen`) and its host names (`server_name`). What is written \
        in it holds for all its locations, unless a location has a line of its own.");
    _ = lines("server_name", &[Context::Server], (1, MANY), "NAME ...").default(r#""""#).repeats().text(
        "sets the host names of a server", r#"server_name example.org *.example.org ~^(?<user>\w+)\.example\.net$;"#, "\
        Names are compared in this order: exact names, names that begin with `*.`, names that end with `.*`, and \
        patterns (they begin with `~`) in the order in which they are written. `.example.org` means `example.org` \
        and `*.example.org`.\n\n\
        Named groups of a pattern become variables. The first name is the value of `$server_name`.");
    SERVER_NAME_IN_REDIRECT: Flag = flag("server_name_in_redirect", LEVELS, "off").text(
        "sets which host name redirects contain", "server_name_in_redirect on;", "\
        With `on`, redirects contain the first `server_name`. With `off`, they contain the host that the request \
        named.");
    _ = size("server_names_hash_bucket_size", HTTP).default("64").inherited().ignored("tables size themselves").text(
        "sets the size of nginx's table for server names", "server_names_hash_bucket_size 128;",
        "The line may be removed. Tables in Mayfly always have the size that they need, and no name is too long.");
    _ = size("server_names_hash_max_size", HTTP).default("512").inherited().ignored("tables size themselves").text(
        "sets the size of nginx's table for server names", "server_names_hash_max_size 2048;",
        "The line may be removed. Tables in Mayfly always have the size that they need.");
    _ = lines("server_tokens", LEVELS, (1, 1), "on | off | build | TEXT").default("on").inherited().text(
        "sets the value of the response field Server", "server_tokens off;", "\
        `on` sends name and version. `off` sends the name only. `build` works like `on`. Any other text is sent as \
        it is, and may contain variables. An empty text leaves the field out.");
    _ = flag("tcp_nodelay", LEVELS, "on").ignored("small packets are always sent at once").text(
        "sends small packets at once", "tcp_nodelay on;",
        "Connections always work as with `on`. Mayfly gives the kernel a response in as few writes as possible.");
    _ = flag("tcp_nopush", LEVELS, "off").ignored("head and body are written together").text(
        "sends head and body in full packets", "tcp_nopush on;",
        "In nginx, it sets `TCP_CORK` while a file is sent.");
    _ = lines("try_files", &[Context::Server, Context::Location], (2, MANY), "FILE ... URI | FILE ... =CODE").text(
        "serves the first file that exists", "try_files $uri $uri/ /index.php?$args;", "\
        The names are tried in order. A name that ends in a slash is a directory. If none exists, the last argument \
        is used: a URI to continue with, a location `@name`, or `=` and a status. The URI goes on with its own \
        arguments: those of the request are `$args`.\n\n\
        Use it to serve existing files and to send everything else to the front controller of an application. The \
        directive is not inherited.");
    _ = lines("types", LEVELS, (0, 0), "{ TYPE EXTENSION ...; ... }")
        .default("text/html html; image/gif gif; image/jpeg jpg;").entries().inherited_as_a_whole().repeats().text(
        "maps file extensions to media types", "types { text/html html htm; image/avif avif; }", "\
        Each entry is a media type and the extensions that have it. Usually the list is in a file: `include \
        mime.types;`. Case does not count in extensions.");
    _ = size("types_hash_bucket_size", LEVELS).default("64").ignored("tables size themselves").text(
        "sets the size of nginx's table for types", "types_hash_bucket_size 128;",
        "The line may be removed. Tables in Mayfly always have the size that they need.");
    _ = size("types_hash_max_size", LEVELS).default("1024").ignored("tables size themselves").text(
        "sets the size of nginx's table for types", "types_hash_max_size 2048;",
        "The line may be removed. Tables in Mayfly always have the size that they need.");
    UNDERSCORES_IN_HEADERS: Flag = flag("underscores_in_headers", SERVERS, "off").text(
        "accepts request fields with underscores in their names", "underscores_in_headers on;", "\
        With `off`, such fields are ignored. A script cannot tell `A-B` from `A_B`, because both become `HTTP_A_B`: \
        with `on`, a client could use one in place of the other.");
    _ = lines("uwsgi_cache_path", HTTP, (2, MANY), "PATH keys_zone=NAME:SIZE [PARAMETER ...]").repeats()
        .ignored("there are no uwsgi upstreams").text(
        "defines a cache for uwsgi upstreams", "uwsgi_cache_path /var/cache/uwsgi keys_zone=uwsgi:10m;",
        "The line is accepted because the configurations of some images write it.");
    _ = lines("uwsgi_temp_path", LEVELS, (1, 4), "PATH [LEVEL ...]").inherited()
        .ignored("there are no uwsgi upstreams").text(
        "sets the directory for temporary files of uwsgi upstreams", "uwsgi_temp_path /var/lib/nginx/uwsgi;",
        "The line is accepted because the packages of some distributions write it.");
    _ = size("variables_hash_bucket_size", HTTP).default("64").inherited().ignored("tables size themselves").text(
        "sets the size of nginx's table for variables", "variables_hash_bucket_size 128;",
        "The line may be removed. Variables are looked up once, when the configuration is read.");
    _ = size("variables_hash_max_size", HTTP).default("1024").inherited().ignored("tables size themselves").text(
        "sets the size of nginx's table for variables", "variables_hash_max_size 2048;",
        "The line may be removed. Variables are looked up once, when the configuration is read.");
}
