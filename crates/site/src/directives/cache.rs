//! Table of the cache directives: those of nginx, for each protocol, and those that only Mayfly
//! has.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("*_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "ZONE | off").inherited()
        .default("off")
        .short("switches the cache on")
        .long("\
            The value is the name of a zone that `fastcgi_cache_path` or `proxy_cache_path` defines, or \
            `off`. It may contain variables.\n\n\
            A response is stored if its own fields give it a lifetime, or if `fastcgi_cache_valid` does. \
            A response is never stored if it sets a cookie, is `private`, or answers a request with a \
            password, unless a directive allows it: `cache_store_set_cookie`, `cache_private`, \
            `cache_store_authorized`.")
        .example("fastcgi_cache pages;"),
    Directive::new("*_cache_background_update", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("renews stale pages in the background")
        .long("\
            With `on`, the visitor who asks for a stale page gets it at once, and the server fetches the \
            new page itself. It needs `updating` in `fastcgi_cache_use_stale`, or \
            `stale-while-revalidate` in the response. Use it so that no visitor waits for PHP when a \
            page expires.")
        .example("fastcgi_cache_background_update on;"),
    Directive::new("*_cache_bypass", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "VALUE ...").inherited_as_a_whole().repeats()
        .short("sets which requests are not answered from the cache")
        .long("\
            If at least one value is neither empty nor `0`, the request goes to the upstream. Its \
            response may still be stored: use `fastcgi_no_cache` with the same values to prevent this. \
            Name the cookies of visitors who are logged in.")
        .example("fastcgi_cache_bypass $cookie_session $arg_nocache;"),
    Directive::new("*_cache_convert_head", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("fetches a page with GET when a HEAD request asks for it")
        .long("\
            With `on`, HEAD and GET share one stored response. With `off`, responses to HEAD are not \
            stored, and HEAD is sent to the upstream as HEAD.")
        .example("fastcgi_cache_convert_head on;"),
    Directive::new("*_cache_key", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TEXT").inherited()
        .default("$scheme$http_host$request_uri")
        .short("sets the text under which a response is stored")
        .long("\
            Requests with the same key get the same stored response. The default for `fastcgi_cache` \
            contains the host as the client sent it, with its port. The default for `proxy_cache` \
            contains `$proxy_host` instead, as in nginx. nginx has no default for `fastcgi_cache`. The \
            method need not be in the key.\n\n\
            With `cache_shared on`, the server makes the key itself, and the text of this directive is \
            added to it.")
        .example(r#"fastcgi_cache_key "$scheme$host$request_uri";"#),
    Directive::new("*_cache_lock", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sends one request to the upstream for a page that is not stored")
        .long("\
            With `on`, requests for the same page that arrive at the same time are collapsed: one of \
            them goes to the upstream, and the others get its response while it arrives. If the response \
            may not be shared, all of them are sent to the upstream at once.\n\n\
            nginx has `off` as default. Here it is `on`, because many visitors of a page that is not \
            stored can overload PHP.")
        .example("fastcgi_cache_lock on;"),
    Directive::new("*_cache_lock_age", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("5s")
        .short("sets after which time a second request may fetch the same page")
        .long("\
            If the upstream has sent nothing for this time, one of the waiting requests also goes to the \
            upstream. The time does not count while the request waits for a free worker or server.")
        .example("fastcgi_cache_lock_age 10s;"),
    Directive::new("*_cache_lock_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("5s")
        .short("limits how long a collapsed request waits")
        .long("\
            After this time, the request goes to the upstream itself. Its response is not stored. The \
            time does not count while the first request waits for a free worker or server.")
        .example("fastcgi_cache_lock_timeout 3s;"),
    Directive::new("*_cache_max_range_offset", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .short("sets from which byte on ranges are not stored")
        .long("\
            A request for a range that begins after this byte is sent to the upstream, and its response \
            is not stored. Without the directive, the whole response is fetched and stored, and the \
            range is taken from it. Use it for long videos.")
        .example("fastcgi_cache_max_range_offset 10m;"),
    Directive::new("*_cache_methods", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "GET | HEAD | POST ...").inherited_as_a_whole().repeats()
        .default("GET HEAD")
        .short("sets the methods whose responses are stored")
        .long("\
            GET and HEAD are always included. Add POST only for an application that uses POST for \
            questions which change nothing. The key must then contain `$request_body`, else responses to \
            POST are not stored. A body that does not fit into `client_body_buffer_size` bypasses the \
            cache.")
        .example("fastcgi_cache_methods GET HEAD POST;"),
    Directive::new("*_cache_min_uses", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("1")
        .short("sets after how many requests a response is stored")
        .long("\
            With 2, a page that is requested only once within the `inactive` time of the zone takes no \
            memory.")
        .example("fastcgi_cache_min_uses 2;"),
    Directive::new("*_cache_path", &[Context::Http])
        .takes(2, usize::MAX, "PATH keys_zone=NAME:SIZE [memory=SIZE] [max_size=SIZE] [min_free=SIZE] [inactive=TIME] [disk=on|off] [disk_timeout=TIME] [levels=LEVELS] ...").repeats()
        .short("defines a cache zone")
        .long("\
            Stored responses are kept in memory. Those that are asked for again and again are kept on disk \
            as well, so that they are still there after a restart, after a crash and where memory does not \
            suffice. A reload keeps everything. `docs/kept-pages.md` says what is kept, and what a purge \
            promises.\n\n\
            - `keys_zone=NAME:SIZE`: the name of the zone. The size must be there, and has no effect.\n\
            - `memory=SIZE`: the limit for everything that is stored in memory: bodies, fields, keys and \
            the index. When it is reached, responses that have not been used for long are removed.\n\
            - `max_size=SIZE`: the limit for what is kept on disk. Without it, a tenth of the file system, but \
            at most 8 GB. If PATH is on a file system in memory, such as `/dev/shm`, nothing is kept on disk, \
            and the size is used in place of `memory`.\n\
            - `min_free=SIZE` (default 512m): what is left free on the file system.\n\
            - `inactive=TIME` (default 10m): a response that is not used for this time is removed.\n\
            - `disk=off`: nothing is kept on disk.\n\
            - `disk_timeout=TIME` (default 50ms): a request waits no longer for the disk. Then the \
            response is fetched.\n\n\
            Without a limit, all zones without one share a quarter of the memory of the machine or of \
            the control group. What is kept on disk lies in a folder of its own, `mayfly-NAME`, below PATH: \
            files that nginx has left there are neither used nor touched. `levels` and other parameters for \
            nginx's files are accepted and have no effect.")
        .example("fastcgi_cache_path /var/cache/mayfly keys_zone=example:10m memory=64m max_size=4g inactive=1d;"),
    Directive::new("*_cache_purge", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "METHOD [purge_all] [from ADDRESS | local ...] | VALUE ... | ZONE KEY").inherited_as_a_whole().repeats()
        .short("removes stored responses")
        .long("\
            A purge removes responses from the cache on request, for example when an editor has changed \
            a page. The directive has three forms.\n\n\
            `fastcgi_cache_purge METHOD from ADDRESS ...;` makes requests with this method purge, if \
            they come from one of the addresses. With `PURGE from 127.0.0.1`, a request `PURGE /page` \
            from this address removes what is stored for `/page`.\n\n\
            - `from local` allows programs on the same machine: the connection comes by loopback, by a \
            unix socket, or from the address to which it was made. A request that names another client \
            does not count. Fields such as `Forwarded`, `X-Forwarded-...`, `X-Real-IP`, `CF-Connecting-IP` \
            and `Via` do so, in any spelling and even if they are empty, and so does the PROXY protocol. A proxy on this machine that adds none of these fields is treated \
            like a local program: do not use `local` behind such a proxy.\n\
            - `METHOD purge_all` removes all responses of the zone.\n\
            - `on` means the method PURGE. Without `from`, every client may purge, and a warning says \
            so.\n\n\
            `fastcgi_cache_purge VALUE ...;` with variables makes a request purge if at least one value \
            is neither empty, `0` nor `off`. Use it for conditions of your own.\n\n\
            `fastcgi_cache_purge ZONE KEY;` makes a location in which every request removes the response \
            with this key, as with the module ngx_cache_purge.\n\n\
            A purge removes what GET and HEAD have stored under the key of the request, also if the key \
            contains `$request_method`. If the key ends in `*`, all responses whose keys begin with the \
            text before it are removed. With `cache_shared on`, a purge removes all variants of the URL, \
            for `http` and for `https`: an application behind a proxy for TLS often purges the `http` \
            address. Without it, what is stored for the same address under other keys is removed as \
            well, but for the form with a zone and a key.\n\n\
            Whatever the directive says, what a browser sends for a page of another site is refused (403). So \
            is a GET by a browser that does not say for which page. The `Host` of a browser must be \
            `localhost`, an IP address or a name in a `server_name`. A program on this machine that names \
            another host, for example behind `server_name _`, purges what is stored for this host alone.\n\n\
            Where it is allowed, the requests of Magento, Drupal, FOSHttpCache and WordPress's plugins \
            purge what they name in their fields, such as tags. `docs/purging.md` lists them.")
        .example("fastcgi_cache_purge PURGE from 127.0.0.1;"),
    Directive::new("*_cache_revalidate", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .short("asks the upstream whether a stale response is still right")
        .long("\
            A stale response that has an `ETag` or a `Last-Modified` is validated with \
            `If-None-Match` and `If-Modified-Since`. If the upstream answers 304, the stored response is \
            fresh again, and its body is not sent a second time. With `off`, a stale response is always \
            fetched as a whole. With `on`, all responses with \
            a validator are validated.\n\n\
            Where nothing is said, a response is validated by its `ETag`, or by a `Last-Modified` that was at \
            least a minute old when the response was made. A younger one may stand for two contents of the \
            same second: a 304 would then keep the older one.")
        .example("fastcgi_cache_revalidate off;"),
    Directive::new("*_cache_use_stale", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "error | timeout | invalid_header | updating | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | http_429 | off ...").inherited_as_a_whole().repeats()
        .default("off")
        .short("sets when a stale response is used")
        .long("\
            The values name failures of the upstream. When one of them happens, a stored response is \
            used, however old it is: `cache_stale` limits its age. `updating` uses a stale response \
            while another request fetches the new one. `off` never uses one.\n\n\
            Without this directive, a stale response is used where the upstream cannot be reached, for ten \
            minutes after its lifetime (RFC 9111 §4.2.4). It is not used if it has `s-maxage`, `no-cache`, \
            `must-revalidate` or `proxy-revalidate`.")
        .example("fastcgi_cache_use_stale error timeout updating http_500 http_503;"),
    Directive::new("*_cache_valid", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "[CODE ... | any] TIME").inherited_as_a_whole().repeats()
        .short("sets the lifetime of responses")
        .long("\
            The codes are statuses, and the last argument is their lifetime. Without codes, the line \
            holds for 200, 301 and 302. `any` means all statuses that no other line names. Without any \
            line, only responses with a lifetime of their own are stored.\n\n\
            `X-Accel-Expires`, `Cache-Control` and `Expires` of a response come before this directive, \
            unless `fastcgi_ignore_headers` names them. The time may be in milliseconds: with 100ms, PHP \
            makes a page at most ten times in a second, whatever the number of requests.")
        .example("fastcgi_cache_valid 200 500ms;"),
    Directive::new("*_no_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "VALUE ...").inherited_as_a_whole().repeats()
        .short("sets which responses are not stored")
        .long("\
            If at least one value is neither empty nor `0`, the response is not stored. Usually the \
            values are those of `fastcgi_cache_bypass`.")
        .example("fastcgi_no_cache $cookie_session;"),
    Directive::new("cache_crawler_valid", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME | off").inherited()
        .default("off")
        .short("sets the lifetime of pages for crawlers")
        .long("\
            It needs `cache_shared on`, with which crawlers (known by their User-Agent) get copies of \
            their own. If `fastcgi_cache_valid` or `cache_not_found` gives such a copy a shorter lifetime, \
            this time is used instead. Use it so that crawlers, which visit each page once, cost less.")
        .example("cache_crawler_valid 60s;"),
    Directive::new("cache_guest_sessions", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | uniform | off").inherited()
        .default("off")
        .short("shares pages that begin a session for every visitor")
        .long("\
            It needs `cache_shared on`. Cookies that no directive names bypass the cache (`cache_unknown_cookies bypass`), \
            or the session's cookie is named (`cache_personal_cookies`). The fields that PHP's `session_cache_limiter` sends, and `Set-Cookie`, then no longer say that a page \
            is private. What the application writes itself still counts: `private` or `no-store` in another `Cache-Control`.\n\n\
            With `uniform`, what a site says with every page alike no longer counts either, if `no-cache` or `max-age=0` is \
            in it: some applications write `no-cache, private` into each response. It takes four pages that were shown to visitors without a \
            session. One page that says something else ends it for an hour.\n\n\
            When two visitors were given a session by a page, the server asks for the page a few times in the \
            background, as several guests would. These responses may differ in times, counts and tokens alone. The page \
            must be the same for a guest who comes back with the session. So must the site's first page, and others that \
            are shared: a page that writes a language or a cart into the session is not shared. The shared page has no \
            `Set-Cookie`.\n\n\
            Tokens of forms, links and scripts are replaced by the server's own. When a guest sends one back from the same \
            origin (`Sec-Fetch-Site`, `Origin` or `Referer`), the server asks for that page once with the visitor's \
            fields. Its session and its tokens go into the request, and the visitor gets the session with the response.\n\n\
            Visitors who hold a session get shared pages as long as they are guests: until they send something other than \
            requests for such pages. A page that is for one visitor alone, such as a redirect to the log-in form, is tried, too. \
            If it leaves the session as it was, whoever has seen it is a guest still. With `cache_nodes`, only visitors without a session do.")
        .example("cache_guest_sessions on;"),
    Directive::new("cache_heuristic", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("stores responses that have a Last-Modified, but no lifetime")
        .long("\
            With `on`, such a response is fresh for a tenth of the time since its `Last-Modified`, for a day \
            at most (RFC 9111 §4.2.2). `fastcgi_cache_valid` comes first. This holds for the statuses 200, \
            203, 204, 300, 301, 308, 404, 405, 410, 414 and 501. It holds for all others if the response has \
            `Cache-Control: public`.\n\n\
            If the request has a cookie that `cache_ignore_cookies` does not name, the response is not stored \
            in this way. It may be for one visitor alone.")
        .example("cache_heuristic on;"),
    Directive::new("cache_ignore_args", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("leaves query arguments out of the cache")
        .long("\
            The arguments that are named here are not in the key: a link from a newsletter with \
            `utm_source` finds the stored page. `*` stands for any text. They are also removed from \
            requests whose responses may be stored, because a script that shows them would show them to \
            everybody.\n\n\
            Names are compared as PHP reads them: `utm%5Fsource` and `utm_source[]` count as \
            `utm_source`.")
        .example("cache_ignore_args utm_* gclid fbclid;"),
    Directive::new("cache_ignore_cookies", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("leaves cookies out of the cache")
        .long("\
            The cookies that are named here make no variant under `Vary: Cookie` and make no condition \
            true (`fastcgi_cache_bypass`). They are removed from requests whose responses may be stored. \
            `*` in a name stands for any text. Name the cookies of statistics programs. Names are \
            compared as PHP reads them: `.ga` and `%5Fga` count as `_ga`.")
        .example("cache_ignore_cookies _ga* _pk_*;"),
    Directive::new("cache_key_cookies", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("stores pages for each value of some cookies")
        .long("\
            It needs `cache_shared on`. The cookies that are named here are sent to the application, and \
            a page is stored for each of their values. Use it for cookies that many visitors share, such \
            as the choice of a language. `*` stands for any text. A request with more than 1,024 bytes \
            of such cookies bypasses the cache.")
        .example("cache_key_cookies pll_language;"),
    Directive::new("cache_learn", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | watch | off").inherited()
        .default("off")
        .short("finds out what pages are made of, and keeps them until it changes")
        .long("\
            PHP pools of Mayfly are started with a small library, which reads what PHP asks a MySQL or MariaDB server. \
            Mayfly then knows from which statements and files each page was made. If a statement of the pool writes, \
            Mayfly finds the pages that it may alter. With `on`, a page of which this is known is kept for up to \
            `cache_learn_max`, whatever `fastcgi_cache_valid` says. It is not shown any more once something that it was \
            made of may have changed. Each second Mayfly asks the database what other programs have written. \
            A page with a lifetime of its own (`Cache-Control`, `Expires`, `X-Accel-Expires`) is not kept longer than \
            that. With `watch`, nothing is served differently: Mayfly reports what it would do, and compares pages when \
            they are made again.\n\n\
            `mayfly explain` says what a page was made of, or why it is not learned. [Learned pages](learned.md) \
            has the whole.\n\n\
            It needs `fastcgi_pass php:NAME` or an upstream group of exactly this one pool, and a cache. Other \
            locations are served as without it.")
        .example("cache_learn on;"),
    Directive::new("cache_learn_binary_log", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("reads what other programs write from the binary log of MariaDB")
        .long("\
            With `cache_learn on`, what other programs have written is found within two seconds, by asking each second when \
            the tables were last written. With this directive Mayfly also follows the binary log, as a replica does, by the \
            account of `cache_learn_database`. A write that is in the log ends the pages that it concerns \
            as soon as it is read, some milliseconds after its COMMIT. The server is asked each second all the same, for not \
            every write is in the log.\n\n\
            The server must be a MariaDB that writes its log (`log_bin`), in any format; `binlog_format=ROW` tells most exactly \
            which tables were written. The account needs `REPLICATION SLAVE`. Where the log cannot be followed, \
            the error log, `mayfly explain` and the metrics say so, and what `cache_learn on` promises stays. \
            [Learned pages](learned.md#the-binary-log) has the whole.")
        .example("cache_learn_binary_log on;"),
    Directive::new("cache_learn_database", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 3, "SERVER USER [PASSWORD] | off").inherited()
        .default("off")
        .short("names the account by which the tables of a database are read")
        .long("\
            To know what a statement reads and writes, `cache_learn` has to know the tables, their columns and \
            their triggers. The account needs no right to read data, but `information_schema` shows it only \
            tables on which it has any right, and triggers where it has `TRIGGER`. The application's own \
            account will do. Pages are not learned while the tables are not known. With `cache_learn on` the same account \
            asks each second when the tables were last written.\n\n\
            The server is written as PHP reaches it: `unix:/run/mysqld/mysqld.sock`, or `ADDRESS:PORT` with an \
            IP address. `mayfly explain` shows it as PHP does where the account is missing. Without a \
            password, the server must know the account by its socket.")
        .example("cache_learn_database unix:/run/mysqld/mysqld.sock blog secret;"),
    Directive::new("cache_learn_max", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("1d")
        .short("limits how long a learned page counts as known")
        .long("\
            After this time, a page that `cache_learn` knows is not kept any more and counts as unknown until it is made \
            again, because the clock can alter a page too. A page is kept for a minute at first, and then for as long as it \
            was seen to stay the same, up to this time and not beyond midnight.")
        .example("cache_learn_max 1h;"),
    Directive::new("cache_learn_object_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 3, "SERVER [USER [PASSWORD]] | off").inherited()
        .default("off")
        .short("names the account by which an object cache is followed")
        .long("\
            With `cache_learn on`, pages that read a Redis or Valkey are kept while Mayfly hears from that server which keys \
            change. A server at a loopback address without a password needs no account. Name any other one here, as PHP reaches \
            it. Without a user it is `default`. An account of its own needs the rights `+hello +client|tracking +info +ping \
            +select +pttl` on all keys. [Learned pages](learned.md#object-caches) has the rest.")
        .example("cache_learn_object_cache unix:/run/redis/redis.sock default secret;"),
    Directive::new("cache_learn_replay", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("looks whether a write has really altered what a learned page read")
        .long("\
            With `cache_learn on`, a page is in question when something that it was made of may have changed. \
            Mayfly then runs the statements of the page again that read it, in a read-only session of the \
            account of `cache_learn_database`, if there is one. If all return the same, the page is shown again without PHP. If one \
            does not, the page is made anew. Until that is known, the page is not shown. With `off`, each page in question is made anew.\n\n\
            The account needs the right to read the tables; without it, pages are made anew. It should have no more rights than PHP's own, \
            which will do. \
            A prepared statement is run again if only integers, texts and NULL were bound to it.\n\n\
            Kept pages are then written to the zone's disk and are still there after a restart: each is shown once all of its \
            statements have returned the same.")
        .example("cache_learn_replay off;"),
    Directive::new("cache_litespeed", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("speaks LiteSpeed's cache protocol with the application")
        .long("\
            With `on`, LiteSpeed's cache plug-ins for WordPress and other applications work without a change. \
            The application is told `X-LSCACHE: on`, or `on,esi` where pages are put together from fragments. Write it \
            for the whole server, so that it also holds where the application is administered. These fields \
            of responses are read, and never sent to clients:\n\n\
            - `X-LiteSpeed-Cache-Control` says who may share a page and for how long. It counts instead of \
            `Cache-Control`, `Expires` and `X-Accel-Expires`. With `esi=on`, `<esi:include>` is run.\n\
            - `X-LiteSpeed-Tag` has the tags of the page.\n\
            - `X-LiteSpeed-Purge` and `X-LiteSpeed-Purge2` purge, unless `cache_purge_fields` is `off`.\n\
            - `X-LiteSpeed-Vary` names cookies that tell copies apart, beside those whose names begin with `_lscache_vary`.\n\
            - `LSC-Cookie` is a cookie that each visitor of a stored page gets.\n\n\
            Requests are written anew, as with `cache_shared`, which this directive includes. `esi` is `on` where it is \
            not set. Visitors without cookies share a page; those with cookies share others, or have copies of their \
            own, as the application says. [LiteSpeed's plug-ins](litespeed.md) has the details.")
        .example("cache_litespeed on;"),
    Directive::new("cache_max_valid", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "TIME [purges=seen | expected] | off").inherited()
        .default("off")
        .short("limits the lifetime of all responses")
        .long("\
            A stored response is fresh for at most this time, whatever `Cache-Control`, `Expires`, \
            `X-Accel-Expires` or `fastcgi_cache_valid` say. Use it for applications that allow proxies \
            to keep pages for hours, but do not purge them after a change. Browsers get the fields as \
            the application sent them. Copies for crawlers may live as long as `cache_crawler_valid` \
            says.\n\n\
            With `purges=`, the limit does not hold while the application's own purges arrive, those that \
            `fastcgi_cache_purge` and its like allow: with `seen`, once one has arrived, with `expected` from \
            the start. If an edit passes through here successfully and no purge follows within five seconds, \
            the limit holds again until one arrives, and all that the zone holds is removed. Edits are \
            recognised by what MediaWiki answers:\n\n\
            - An edit by its form sets a cookie with the new revision in its name.\n\
            - To forms and API requests that have changed the database, it says so by the cookie `UseCDNCache`. Of \
            them, those count that edit, delete, restore, move, roll back or purge a page, and API requests that hide \
            revisions.\n\
            - An edit by the API that changes nothing (`nochange` in JSON or XML) does not count.\n\n\
            MediaWiki purges nothing when a page is protected. Other changes, such as uploads, imports and merged \
            histories, are not recognised: their purges are carried out, but not missed.")
        .example("cache_max_valid 1s;"),
    Directive::new("cache_nodes", &[Context::Http])
        .takes(1, 4, "ADDRESS [name=NAME] [trusted=FILE] [key=FILE] | off")
        .default("off")
        .short("shares purges with other machines by way of Redis or Valkey")
        .long("\
            All machines that name the same engine are nodes: when a purge has returned on one of them, no \
            node begins an answer with older data. The zones have the same names on all nodes. \
            [Several machines](several-machines.md) says how it is set up and what happens when something \
            fails.\n\n\
            The address is `redis://HOST`, `rediss://HOST` (TLS), `unix:/PATH`, or \
            `sentinel://HOST,HOST,HOST/MASTER` with all Sentinels (`sentinels://`: TLS). A host may have a port, and \
            `USER:PASSWORD@` may stand before it. A number behind it, as in `redis://cache/2`, is the \
            database. Redis Cluster is refused.\n\n\
            `name` (default `mayfly`) is what the names of the two keys begin with. Nodes with another name \
            share nothing with these. `trusted` names a PEM file with the authorities that may have issued \
            the engine's certificate; without it those of the system are trusted. `key` names a file with 32 random \
            bytes or more, the same on all nodes: by it pages are sealed that nodes share (`cache_nodes_pages`).\n\n\
            A node uses stored pages while it holds a lease of two seconds, which it renews. Without one, as \
            when the engine cannot be reached, requests go to the application, and `Cache-Status` \
            says `detail=no-lease`. Those for the same page wait for each other, as far as a fetch begins later \
            than they came; `cache_nodes_lost` lets them be answered from memory for a while. A purge that cannot be confirmed within 5 seconds is answered with 503 by \
            the interfaces for programs, and goes on being tried. A visitor whose request purges waits at \
            most 2.3 seconds; then the purge is logged as unconfirmed. A node that starts begins \
            with an empty cache, also where `disk=` is set.")
        .example("cache_nodes redis://10.0.0.5:6379;"),
    Directive::new("cache_nodes_lost", &[Context::Http])
        .takes(1, 1, "stale=TIME | off")
        .default("off")
        .short("lets a node that has lost its lease use stored pages for a while")
        .long("\
            It gives the promise of `cache_nodes` up for a while. A node that cannot reach the engine goes on using \
            what it has stored for this time after its lease has ended. So the application is not \
            asked for all pages at once. A purge that returned on another node may be missing in such an answer. \
            `Cache-Status` and `$cache_reason` say so: `detail=lost-lease`. A node that never had a lease, or that \
            comes back to an engine that has lost its data, uses nothing.")
        .example("cache_nodes_lost stale=10s;"),
    Directive::new("cache_nodes_pages", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("lets nodes take pages from each other, through their engine")
        .long("\
            It needs `cache_nodes` with `key=`. A page that is fresh for a minute or longer and was asked for \
            twice goes to the engine as well, sealed. Another node takes it from there, if it \
            knows of no purge since its fetch began. Where `*_cache_valid` says a minute or longer, one node \
            fetches a page that several are asked for, and the others wait for it. Copies of one visitor or session \
            are not shared, nor is a page of more than 1 MB. An engine that does not answer within a quarter of a \
            second is not waited for.\n\n\
            Give the engine a bound (`maxmemory`), and `maxmemory-policy volatile-lru`: pages leave then, and the log of \
            purges stays.")
        .example("cache_nodes_pages on;"),
    Directive::new("cache_not_found", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME | off").inherited()
        .default("off")
        .short("sets the lifetime of the statuses 404 and 410")
        .long("\
            It needs `cache_shared on`. A response with status 404 or 410 is fresh for this time, even \
            if it says `no-cache` or `private`, as many applications do for errors. Requests for wrong \
            addresses then do not keep PHP busy. The request that the application got contained nothing \
            of any visitor.\n\n\
            A successful POST, PUT, PATCH or DELETE to any address removes all these responses, so that \
            a new page is visible at once. A page that is made in another way, such as by a command, is \
            visible when this time is over. A response with a cookie is not stored. `cache_max_valid` \
            does not limit this time, and `cache_crawler_valid` gives crawlers a longer one.")
        .example("cache_not_found 5m;"),
    Directive::new("cache_personal_args", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME | ~PATTERN ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("names query arguments of personal pages")
        .long("\
            It needs `cache_shared on`. A request with one of these arguments bypasses the cache. `*` \
            stands for any text. A value that begins with `~` (case counts) or `~*` (case does not \
            count) is a pattern for the decoded text `name=value`. Arguments that `rewrite` adds count \
            as well. Names are compared as PHP reads them.")
        .example(r#"cache_personal_args preview "~^action=(?!view$)";"#),
    Directive::new("cache_personal_cookies", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("names cookies of visitors with personal pages")
        .long("\
            It needs `cache_shared on`. A request with one of these cookies, whatever its value, \
            bypasses the cache. Name the session cookies of the application. `*` stands for any text. \
            Names are compared as PHP reads them: `wordpress.logged_in` counts as `wordpress_logged_in`.")
        .example("cache_personal_cookies wordpress_logged_in_* PHPSESSID;"),
    Directive::new("cache_personal_paths", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "PATH | ~PATTERN ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("names paths of personal pages")
        .long("\
            It needs `cache_shared on`. A request for one of these paths, or for a path below it, \
            bypasses the cache. A value that begins with `~` (case counts) or `~*` (case does not count) \
            is a pattern. The path is compared in three forms: as received, decoded, and with `.` and \
            `..` resolved.")
        .example(r#"cache_personal_paths /cart "~*/wp-admin(?:/|$)";"#),
    Directive::new("cache_private", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "COOKIE ... [copies=NUMBER] [size=SIZE] | off").inherited()
        .default("off")
        .short("stores pages for each session")
        .long("\
            Requests with one of the named cookies get stored copies of their own: the values of these \
            cookies are part of the key. Responses that say `private` are then stored for this session \
            only. Use it for pages that the same visitor loads again and again. `*` in a name stands for \
            any text. Names are compared as PHP reads them.\n\n\
            `copies` (default 16) and `size` (default 1m) limit what is kept for one session.")
        .example("cache_private PHPSESSID wordpress_logged_in_* copies=16 size=1m;"),
    Directive::new("cache_purge_again", &[Context::Http])
        .takes(1, 1, "TIME | off")
        .default("off")
        .short("repeats each purge after a time")
        .long("\
            A database that answers from a copy may give the old data for a moment after a change. A page \
            that is made within that time is old, and is stored. With this directive each purge \
            is done once more after the time. Set it to more than the copy is behind, for example `3s` for an \
            asynchronous replica of MySQL. What a visitor's write removes is removed again as well.")
        .example("cache_purge_again 3s;"),
    Directive::new("cache_queue_stale", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER | off").inherited()
        .default("off")
        .short("uses stale pages when too many requests wait for PHP")
        .long("\
            If this number of requests waits for PHP, a stale response is used instead of one more \
            waiting.")
        .example("cache_queue_stale 20;"),
    Directive::new("cache_read_your_writes", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME | off").inherited()
        .default("off")
        .short("shows visitors at once what they have written")
        .long("\
            After a POST, PUT, PATCH or DELETE, the visitor's requests bypass the cache for this time. A \
            new comment or a filled basket is visible at once. The server marks the visitor with a \
            cookie, `mayfly_writer`. Other visitors still get stored pages.")
        .example("cache_read_your_writes 10s;"),
    Directive::new("cache_shared", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("makes stored pages safe to share between visitors")
        .long("\
            With `on`, a visitor's request reaches the application once and as it is, and no visitor can change \
            a page that others get. `mayfly serve` writes it for every site. Where it is off, `mayfly check` says \
            what reaches the application and is not in the key.\n\n\
            The first request for a page is the visitor's own, and its response is not stored. If it could have been, \
            the server makes the shared request for the second visitor, and compares both responses. If they are the \
            same, the page is shared. A visitor whose request says something that was not compared yet (another \
            language, another browser) has an own response, too, which is compared. If responses differ, the server \
            tries in the background what matters: language, `User-Agent`, `Referer`, cookies, other fields, the \
            network. A language or a cookie of `cache_trial_cookies` that matters is in the key from then on; visitors \
            whose other fields matter get their own responses. `explain` shows what was found out, and \
            [security.md](security.md) says what remains.\n\n\
            The server writes the shared request. Everything in it is also in the key:\n\n\
            - the method GET, the scheme, the host, and the path and arguments without those of \
            `cache_ignore_args`,\n\
            - one User-Agent for each class of visitors: desktop, mobile, crawler,\n\
            - one `Accept` field,\n\
            - the cookies of `cache_key_cookies`,\n\
            - `Accept`, `Accept-Language`, `Origin` and client hints of the visitor, once a response for \
            this key has named them in `Vary`. If nothing is known of the key, what other pages of the site \
            (the host on this server) have named counts: HTML with status 200 that was stored. A name is \
            forgotten when a thousand such pages in a row have not named it.\n\n\
            The key also contains the text of `fastcgi_cache_key`, variables that `set` and captures \
            have made, the server, and a location to which an `if` or a name has led. The client's \
            address in it is 192.0.0.8, which no machine has. The application is sent one of the addresses \
            for documentation (RFC 5737), each in its turn. All other fields are not sent.\n\n\
            A request that is for one visitor only bypasses the cache. It is sent as the visitor sent \
            it, and its response is never stored. These are requests with\n\n\
            - a body, or credentials,\n\
            - a personal cookie, argument or path (`cache_personal_cookies`, `cache_personal_args`, \
            `cache_personal_paths`),\n\
            - a cookie that no directive names (`cache_unknown_cookies`),\n\
            - a field that is not known not to matter, such as `X-Tenant`,\n\
            - an `Accept` field without HTML, a mark that a script asks for a part of a page, or an \
            upgrade to another protocol.\n\n\
            A response to the shared request that may not be stored (`private`, `Set-Cookie`, no lifetime) ends \
            sharing. What is stored is removed, and each visitor has an own response until one could be stored \
            again.\n\n\
            A POST, PUT, PATCH or DELETE removes what is stored for its own address, at most once in the \
            lifetime of the page or in ten seconds.")
        .example("cache_shared on;"),
    Directive::new("cache_show_args", &[Context::Http])
        .takes(1, usize::MAX, "NAME ... | off").repeats()
        .default("off")
        .short("shows values of arguments to who looks at what is stored")
        .long("\
            Who looks inside the cache through the control socket sees the addresses of stored pages. \
            Values of arguments are masked there (`/search?q=*`), because they may be what a visitor \
            has typed. The values of the arguments that are named here are shown. `*` in a name stands \
            for any text.")
        .example("cache_show_args page lang;"),
    Directive::new("cache_stale", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "TIME [TIME] | off").inherited()
        .default("off")
        .short("limits the age of stale pages")
        .long("\
            The first time is how long after its lifetime a page may be shown while it is renewed. The \
            second is how long it may be shown while the upstream has trouble. Without a second time, \
            the first one is used for both. The upstream has trouble if\n\n\
            - it fails, or has failed within the last 10 seconds,\n\
            - too many requests wait (`cache_queue_stale`, a full `queue`),\n\
            - it takes longer than `fastcgi_cache_lock_timeout`, and `timeout` is among the values of \
            `fastcgi_cache_use_stale`.\n\n\
            After the first time, visitors wait for the new page, which is fetched once. After the \
            second, they get what the upstream says.\n\n\
            The times limit `fastcgi_cache_use_stale`, and `stale-while-revalidate` and `stale-if-error` \
            of a response. They allow nothing by themselves. With `off`, as in nginx, a stale page may \
            be shown as long as it is stored.")
        .example("cache_stale 10s 1h;"),
    Directive::new("cache_status_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether responses have the field Cache-Status")
        .long("\
            With `on`, a response has this field (RFC 9211) if the cache was asked for it. The field \
            says whether the response came from the cache, or why not. It also says how long the \
            response stays fresh, and whether it was stored.")
        .example("cache_status_header off;"),
    Directive::new("cache_store_authorized", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("stores responses to requests with a password")
        .long("\
            With `on`, a request field `Authorization` does not prevent storing. Use it only if \
            everybody who has a password sees the same pages.")
        .example("cache_store_authorized on;"),
    Directive::new("cache_store_bypassed", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("stores responses to requests that bypass the cache because of their visitor")
        .long("\
            In nginx, a response to a request that `*_cache_bypass` lets past the cache is stored, unless \
            `*_no_cache` forbids it: a page for one visitor is then shown to all. In Mayfly, it is not stored \
            if the condition depends on cookies, `Authorization`, the client's address or a variable of `set`. \
            A condition on arguments, the method and other fields renews what is stored, as in nginx.\n\n\
            With `on`, Mayfly stores as nginx does. Use it only if all visitors get the same pages.")
        .example("cache_store_bypassed on;"),
    Directive::new("cache_store_set_cookie", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("stores responses that set a cookie")
        .long("\
            With `on`, such a response is stored without its field `Set-Cookie`. Use it only if no page \
            depends on the visitor.")
        .example("cache_store_set_cookie on;"),
    Directive::new("cache_tagged_control", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "VALUE | off").inherited()
        .default("no-cache")
        .short("sets the Cache-Control field of responses with tags")
        .long("\
            A purge removes a page from the cache of the server, but not from the browsers that have \
            it. So a stored response that carries tags (`cache_tags`) is sent with this value in \
            `Cache-Control`, and without `Expires`. With `no-cache`, a browser asks before it shows the \
            page again, and gets a 304 from memory if the page is the same. A response with status 200 \
            that has neither `ETag` nor `Last-Modified` is given an `ETag` for that, made from its body. \
            With `off`, browsers get what the application says.")
        .example("cache_tagged_control no-cache;"),
    Directive::new("cache_tags", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "on | off | FIELD ... [stderr] [sent]").inherited()
        .default("on")
        .short("sets which fields of a response name its tags")
        .long("\
            A tag is the name of something that a page was made of, for example `news:5`. A purge of a \
            tag removes all stored responses that carry it. The application names the tags of a \
            response in a field.\n\n\
            With `on`, these fields count, each with the separator of those who invented it: \
            `Surrogate-Key` (spaces), `Cache-Tag`, `X-Cache-Tags`, `X-Magento-Tags`, `X-LiteSpeed-Tag` \
            (commas), `xkey` (both) and `Cache-Groups` (RFC 9875). With one or more names, only these \
            fields count. In a field of another name, tags are separated by spaces or commas.\n\n\
            Trailers of these names count as well, for an application that knows its tags only when the \
            page is finished. With `stderr`, messages on the FastCGI error stream count too. The application \
            gets a secret that changes with each request in the parameter `MAYFLY_TAG_MARK`. A message that \
            names tags begins with the secret and a space, and ends with a slash and the secret: \
            `$mark = $_SERVER['MAYFLY_TAG_MARK']; error_log(\"$mark news:5 list /$mark\");`. Behind the second \
            one nothing is a tag. Without it, the tags end with the message: where the line ends, or where \
            PHP-FPM puts its next message. Such messages are not logged, all others are. A secret within a \
            message, as in a dump of `$_SERVER`, names no tags. \
            PHP-FPM cuts a message at about 1,024 bytes (`log_limit`), the secrets included, so write several; the \
            library in `php/library` does. A response with a message that was cut is stored for one second \
            only, because a tag is missing.\n\n\
            The fields are not sent to clients, except with `sent`. A response may have 65,536 tags of \
            up to 1,024 bytes, together 1 MB. A response with more is stored for one second only, and \
            the error log says so.")
        .example("cache_tags surrogate-key stderr;"),
    Directive::new("cache_trial_cookies", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited()
        .default("off")
        .short("sets which cookies are tried: they may shape a page")
        .long("\
            It needs `cache_shared on`. Such a cookie holds a choice of the visitor's: consent, a theme. It is \
            neither sent with the shared request nor in the key until a trial has found that a page depends on \
            it. Then it is both, for this page and, once two pages of a folder depend on it, for the others \
            there. `*` in a name stands for any text.")
        .example("cache_trial_cookies cookie_consent* theme;"),
    Directive::new("cache_unknown_cookies", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "bypass | remove").inherited()
        .default("bypass")
        .short("sets what happens to cookies that no directive names")
        .long("\
            It needs `cache_shared on`. With `bypass`, a request with such a cookie bypasses the cache, \
            because the cookie may be a session. With `remove`, such cookies are tried, as those of \
            `cache_trial_cookies` are. Use `remove` only if you have named all cookies that may be a session.")
        .example("cache_unknown_cookies remove;"),
    Directive::new("slice", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("0")
        .short("fetches and stores long responses in parts")
        .long("\
            The server asks for parts of this size, one after another, from the first to the last that \
            the client needs. Each part is stored on its own. 0 switches it off. Three other lines are \
            needed:\n\n\
            - `$slice_range` must be sent in the field `Range`,\n\
            - the cache key must contain `$slice_range`,\n\
            - `fastcgi_cache_valid` must name 206.\n\n\
            If a part belongs to another version of the file (another ETag or length), the response is \
            cut off.")
        .example("slice 1m;"),
];
