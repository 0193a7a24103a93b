//! Table of the cache directives: those of nginx, for each protocol, and those that only Mayfly
//! has.

use super::Directive;
use super::declaration::*;
use crate::model::{GuestSessions, LearnMode};
use shared_request::UnknownCookies;

table! {
    _ = lines("*_cache", LEVELS, (1, 1), "ZONE | off").default("off").inherited().text(
        "switches the cache on", "fastcgi_cache pages;", "\
        The value is the name of a zone that `fastcgi_cache_path` or `proxy_cache_path` defines, or `off`. It may \
        contain variables.\n\n\
        A response is stored if its own fields give it a lifetime, or if `fastcgi_cache_valid` does. A response is \
        never stored if it sets a cookie, is `private`, or answers a request with a password, unless a directive \
        allows it: `cache_store_set_cookie`, `cache_private`, `cache_store_authorized`.");
    CACHE_BACKGROUND_UPDATE: Flag = flag("*_cache_background_update", LEVELS, "off").text(
        "renews stale pages in the background", "fastcgi_cache_background_update on;", "\
        With `on`, the visitor who asks for a stale page gets it at once, and the server fetches the new page \
        itself. It needs `updating` in `fastcgi_cache_use_stale`, or `stale-while-revalidate` in the response. Use \
        it so that no visitor waits for PHP when a page expires.");
    _ = lines("*_cache_bypass", LEVELS, (1, MANY), "VALUE ...").inherited_as_a_whole().repeats().text(
        "sets which requests are not answered from the cache", "fastcgi_cache_bypass $cookie_session $arg_nocache;", "\
        If at least one value is neither empty nor `0`, the request goes to the upstream. Its response may still be \
        stored: use `fastcgi_no_cache` with the same values to prevent this. Name the cookies of visitors who are \
        logged in.");
    CACHE_CONVERT_HEAD: Flag = flag("*_cache_convert_head", LEVELS, "on").text(
        "fetches a page with GET when a HEAD request asks for it", "fastcgi_cache_convert_head on;", "\
        With `on`, HEAD and GET share one stored response. With `off`, responses to HEAD are not stored, and HEAD is \
        sent to the upstream as HEAD.");
    _ = lines("*_cache_key", LEVELS, (1, 1), "TEXT").default("$scheme$http_host$request_uri").inherited().text(
        "sets the text under which a response is stored", r#"fastcgi_cache_key "$scheme$host$request_uri";"#, "\
        Requests with the same key get the same stored response. The default for `fastcgi_cache` contains the host \
        as the client sent it, with its port. The default for `proxy_cache` contains `$proxy_host` instead, as in \
        nginx. nginx has no default for `fastcgi_cache`. The method need not be in the key.\n\n\
        With `cache_shared on`, the server makes the key itself, and the text of this directive is added to it.");
    CACHE_LOCK: Flag = flag("*_cache_lock", LEVELS, "on").text(
        "sends one request to the upstream for a page that is not stored", "fastcgi_cache_lock on;", "\
        With `on`, requests for the same page that arrive at the same time are collapsed: one of them goes to the \
        upstream, and the others get its response while it arrives. If the response may not be shared, all of them \
        are sent to the upstream at once.\n\n\
        nginx has `off` as default. Here it is `on`, because many visitors of a page that is not stored can overload \
        PHP.");
    CACHE_LOCK_AGE: Time = time("*_cache_lock_age", LEVELS).default("5s").text(
        "sets after which time a second request may fetch the same page", "fastcgi_cache_lock_age 10s;", "\
        If the upstream has sent nothing for this time, one of the waiting requests also goes to the upstream. The \
        time does not count while the request waits for a free worker or server.");
    CACHE_LOCK_TIMEOUT: Time = time("*_cache_lock_timeout", LEVELS).default("5s").text(
        "limits how long a collapsed request waits", "fastcgi_cache_lock_timeout 3s;", "\
        After this time, the request goes to the upstream itself. Its response is not stored. The time does not \
        count while the first request waits for a free worker or server.");
    CACHE_MAX_RANGE_OFFSET: Size = size("*_cache_max_range_offset", LEVELS).text(
        "sets from which byte on ranges are not stored", "fastcgi_cache_max_range_offset 10m;", "\
        A request for a range that begins after this byte is sent to the upstream, and its response is not stored. \
        Without the directive, the whole response is fetched and stored, and the range is taken from it. Use it for \
        long videos.");
    _ = lines("*_cache_methods", LEVELS, (1, MANY), "GET | HEAD | POST ...")
        .default("GET HEAD").inherited_as_a_whole().repeats().text(
        "sets the methods whose responses are stored", "fastcgi_cache_methods GET HEAD POST;", "\
        GET and HEAD are always included. Add POST only for an application that uses POST for questions which change \
        nothing. The key must then contain `$request_body`, else responses to POST are not stored. A body that does \
        not fit into `client_body_buffer_size` bypasses the cache.");
    CACHE_MIN_USES: Number = number("*_cache_min_uses", LEVELS).default("1").text(
        "sets after how many requests a response is stored", "fastcgi_cache_min_uses 2;",
        "With 2, a page that is requested only once within the `inactive` time of the zone takes no memory.");
    _ = lines("*_cache_path", HTTP, (2, MANY), "PATH keys_zone=NAME:SIZE [memory=SIZE] [max_size=SIZE] [min_free=SIZE] [inactive=TIME] [disk=on|off] [disk_timeout=TIME] [levels=LEVELS] ...").repeats().text(
        "defines a cache zone", "fastcgi_cache_path /var/cache/mayfly keys_zone=example:10m memory=64m max_size=4g inactive=1d;", "\
        Stored responses are kept in memory. Those that are asked for again and again are kept on disk as well, so \
        that they are still there after a restart, after a crash and where memory does not suffice. A reload keeps \
        everything. `docs/kept-pages.md` says what is kept, and what a purge promises.\n\n\
        - `keys_zone=NAME:SIZE`: the name of the zone. The size must be there, and has no effect.\n\
        - `memory=SIZE`: the limit for everything that is stored in memory: bodies, fields, keys and the index. When \
        it is reached, responses that have not been used for long are removed.\n\
        - `max_size=SIZE`: the limit for what is kept on disk. Without it, a tenth of the file system, but at most 8 \
        GB. If PATH is on a file system in memory, such as `/dev/shm`, nothing is kept on disk, and the size is used \
        in place of `memory`.\n\
        - `min_free=SIZE` (default 512m): what is left free on the file system.\n\
        - `inactive=TIME` (default 10m): a response that is not used for this time is removed.\n\
        - `disk=off`: nothing is kept on disk.\n\
        - `disk_timeout=TIME` (default 50ms): a request waits no longer for the disk. Then the response is \
        fetched.\n\n\
        Without a limit, all zones without one share a quarter of the memory of the machine or of the control group. \
        What is kept on disk lies in a folder of its own, `mayfly-NAME`, below PATH: files that nginx has left there \
        are neither used nor touched. `levels` and other parameters for nginx's files are accepted and have no \
        effect.");
    _ = lines("*_cache_purge", LEVELS, (1, MANY), "METHOD [purge_all] [from ADDRESS | local ...] | VALUE ... | ZONE KEY").inherited_as_a_whole().repeats().text(
        "removes stored responses", "fastcgi_cache_purge PURGE from 127.0.0.1;", "\
        A purge removes responses from the cache on request, for example when an editor has changed a page. The \
        directive has three forms.\n\n\
        `fastcgi_cache_purge METHOD from ADDRESS ...;` makes requests with this method purge, if they come from one \
        of the addresses. With `PURGE from 127.0.0.1`, a request `PURGE /page` from this address removes what is \
        stored for `/page`.\n\n\
        - `from local` allows programs on the same machine: the connection comes by loopback, by a unix socket, or \
        from the address to which it was made. A request that names another client does not count. Fields such as \
        `Forwarded`, `X-Forwarded-...`, `X-Real-IP`, `CF-Connecting-IP` and `Via` do so, in any spelling and even if \
        they are empty, and so does the PROXY protocol. A proxy on this machine that adds none of these fields is \
        treated like a local program: do not use `local` behind such a proxy.\n\
        - `METHOD purge_all` removes all responses of the zone.\n\
        - `on` means the method PURGE. Without `from`, every client may purge, and a warning says so.\n\n\
        `fastcgi_cache_purge VALUE ...;` with variables makes a request purge if at least one value is neither \
        empty, `0` nor `off`. Use it for conditions of your own.\n\n\
        `fastcgi_cache_purge ZONE KEY;` makes a location in which every request removes the response with this key, \
        as with the module ngx_cache_purge.\n\n\
        A purge removes what GET and HEAD have stored under the key of the request, also if the key contains \
        `$request_method`. If the key ends in `*`, all responses whose keys begin with the text before it are \
        removed. With `cache_shared on`, a purge removes all variants of the URL, for `http` and for `https`: an \
        application behind a proxy for TLS often purges the `http` address. Without it, what is stored for the same \
        address under other keys is removed as well, but for the form with a zone and a key.\n\n\
        Whatever the directive says, what a browser sends for a page of another site is refused (403). So is a GET \
        by a browser that does not say for which page. The `Host` of a browser must be `localhost`, an IP address or \
        a name in a `server_name`. A program on this machine that names another host, for example behind \
        `server_name _`, purges what is stored for this host alone.\n\n\
        Where it is allowed, the requests of Magento, Drupal, FOSHttpCache and WordPress's plugins purge what they \
        name in their fields, such as tags. `docs/purging.md` lists them.");
    _ = lines("*_cache_revalidate", LEVELS, (1, 1), "on | off").inherited().text(
        "asks the upstream whether a stale response is still right", "fastcgi_cache_revalidate off;", "\
        A stale response that has an `ETag` or a `Last-Modified` is validated with `If-None-Match` and \
        `If-Modified-Since`. If the upstream answers 304, the stored response is fresh again, and its body is not \
        sent a second time. With `off`, a stale response is always fetched as a whole. With `on`, all responses with \
        a validator are validated.\n\n\
        Where nothing is said, a response is validated by its `ETag`, or by a `Last-Modified` that was at least a \
        minute old when the response was made. A younger one may stand for two contents of the same second: a 304 \
        would then keep the older one.");
    _ = lines("*_cache_use_stale", LEVELS, (1, MANY), "error | timeout | invalid_header | updating | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | http_429 | off ...")
        .default("off").inherited_as_a_whole().repeats().text(
        "sets when a stale response is used", "fastcgi_cache_use_stale error timeout updating http_500 http_503;", "\
        The values name failures of the upstream. When one of them happens, a stored response is used, however old \
        it is: `cache_stale` limits its age. `updating` uses a stale response while another request fetches the new \
        one. `off` never uses one.\n\n\
        Without this directive, a stale response is used where the upstream cannot be reached, for ten minutes after \
        its lifetime (RFC 9111 §4.2.4). It is not used if it has `s-maxage`, `no-cache`, `must-revalidate` or \
        `proxy-revalidate`.");
    _ = lines("*_cache_valid", LEVELS, (1, MANY), "[CODE ... | any] TIME").inherited_as_a_whole().repeats().text(
        "sets the lifetime of responses", "fastcgi_cache_valid 200 500ms;", "\
        The codes are statuses, and the last argument is their lifetime. Without codes, the line holds for 200, 301 \
        and 302. `any` means all statuses that no other line names. Without any line, only responses with a lifetime \
        of their own are stored.\n\n\
        `X-Accel-Expires`, `Cache-Control` and `Expires` of a response come before this directive, unless \
        `fastcgi_ignore_headers` names them. The time may be in milliseconds: with 100ms, PHP makes a page at most \
        ten times in a second, whatever the number of requests.");
    _ = lines("*_no_cache", LEVELS, (1, MANY), "VALUE ...").inherited_as_a_whole().repeats().text(
        "sets which responses are not stored", "fastcgi_no_cache $cookie_session;", "\
        If at least one value is neither empty nor `0`, the response is not stored. Usually the values are those of \
        `fastcgi_cache_bypass`.");
    CACHE_CRAWLER_VALID: OrOff<Time> = time_or_off("cache_crawler_valid", LEVELS).text(
        "sets the lifetime of pages for crawlers", "cache_crawler_valid 60s;", "\
        It needs `cache_shared on`, with which crawlers (known by their User-Agent) get copies of their own. If \
        `fastcgi_cache_valid` or `cache_not_found` gives such a copy a shorter lifetime, this time is used instead. \
        Use it so that crawlers, which visit each page once, cost less.");
    CACHE_GUEST_SESSIONS: Choice<GuestSessions> = choice("cache_guest_sessions", LEVELS, "on | uniform | off", &[
        ("off", GuestSessions::Off), ("on", GuestSessions::On), ("uniform", GuestSessions::Uniform),
    ])
        .default("off").text("shares pages that begin a session for every visitor", "cache_guest_sessions on;", "\
        It needs `cache_shared on`. Cookies that no directive names bypass the cache (`cache_unknown_cookies \
        bypass`), or the session's cookie is named (`cache_personal_cookies`). The fields that PHP's \
        `session_cache_limiter` sends, and `Set-Cookie`, then no longer say that a page is private. What the \
        application writes itself still counts: `private` or `no-store` in another `Cache-Control`.\n\n\
        With `uniform`, what a site says with every page alike no longer counts either, if `no-cache` or `max-age=0` \
        is in it, or `Vary: *`: some applications write `no-cache, private` into each response. It takes four pages that were \
        shown to visitors without a session. For each page that says something else it takes eight that say this.\n\n\
        When two visitors were given a session by a page, the server asks for the page a few times in the \
        background, as several guests would. These responses may differ in times, counts and tokens alone. The page \
        must be the same for a guest who comes back with the session. So must the site's first page, and others that \
        are shared: a page that writes a language or a cart into the session is not shared. The shared page has no \
        `Set-Cookie`.\n\n\
        Tokens of forms, links and scripts are replaced by the server's own. When a guest sends one back from the \
        same origin (`Sec-Fetch-Site`, `Origin` or `Referer`), the server asks for that page once with the visitor's \
        fields. Its session and its tokens go into the request, and the visitor gets the session with the \
        response.\n\n\
        Visitors who hold a session get shared pages as long as they are guests: until they send something other \
        than requests for such pages. A page that is for one visitor alone, such as a redirect to the log-in form, \
        is tried, too. If it leaves the session as it was, whoever has seen it is a guest still. With `cache_nodes`, \
        only visitors without a session do.");
    CACHE_HEURISTIC: Flag = flag("cache_heuristic", LEVELS, "off").text(
        "stores responses that have a Last-Modified, but no lifetime", "cache_heuristic on;", "\
        With `on`, such a response is fresh for a tenth of the time since its `Last-Modified`, for a day at most \
        (RFC 9111 §4.2.2). `fastcgi_cache_valid` comes first. This holds for the statuses 200, 203, 204, 300, 301, \
        308, 404, 405, 410, 414 and 501. It holds for all others if the response has `Cache-Control: public`.\n\n\
        If the request has a cookie that `cache_ignore_cookies` does not name, the response is not stored in this \
        way. It may be for one visitor alone.");
    _ = lines("cache_ignore_args", LEVELS, (1, MANY), "NAME ... | off")
        .default("off").inherited_as_a_whole().repeats().text(
        "leaves query arguments out of the cache", "cache_ignore_args utm_* gclid fbclid;", "\
        The arguments that are named here are not in the key: a link from a newsletter with `utm_source` finds the \
        stored page. `*` stands for any text. They are also removed from requests whose responses may be stored, \
        because a script that shows them would show them to everybody.\n\n\
        Names are compared as PHP reads them: `utm%5Fsource` and `utm_source[]` count as `utm_source`.");
    _ = lines("cache_ignore_cookies", LEVELS, (1, MANY), "NAME ... | off")
        .default("off").inherited_as_a_whole().repeats().text(
        "leaves cookies out of the cache", "cache_ignore_cookies _ga* _pk_*;", "\
        The cookies that are named here make no variant under `Vary: Cookie` and make no condition true \
        (`fastcgi_cache_bypass`). They are removed from requests whose responses may be stored. `*` in a name stands \
        for any text. Name the cookies of statistics programs. Names are compared as PHP reads them: `.ga` and \
        `%5Fga` count as `_ga`.");
    _ = lines("cache_key_cookies", LEVELS, (1, MANY), "NAME ... | off")
        .default("off").inherited_as_a_whole().repeats().text(
        "stores pages for each value of some cookies", "cache_key_cookies pll_language;", "\
        It needs `cache_shared on`. The cookies that are named here are sent to the application, and a page is \
        stored for each of their values. Use it for cookies that many visitors share, such as the choice of a \
        language. `*` stands for any text. A request with more than 1,024 bytes of such cookies bypasses the cache.");
    CACHE_LEARN: Choice<Option<LearnMode>> = choice("cache_learn", LEVELS, "on | auto | watch | off", &[
        ("off", None), ("watch", Some(LearnMode::Watch)), ("auto", Some(LearnMode::Auto)), ("on", Some(LearnMode::On))])
        .default("off").text(
        "finds out what pages are made of, and keeps them until it changes", "cache_learn on;", "\
        PHP pools of Mayfly are started with a small library, which reads what PHP asks databases and object caches, \
        and which files it opens. With `on`, a page of which this is known is kept for up to `cache_learn_max`, \
        whatever `fastcgi_cache_valid` says, until something that it was made of may have changed. A page with a \
        lifetime of its own (`Cache-Control`, `Expires`, `X-Accel-Expires`) is not kept longer than that. With `watch`, \
        nothing is served differently: Mayfly reports what it would do, and compares pages when they are made again. \
        `auto` begins like `watch`, and keeps pages once 200 comparisons of such pages agreed. With `auto`, no page is \
        read back from disk after a restart, and visitors with sessions have no copies of their own. [Learned \
        pages](learned.md) has the rest.\n\n\
        It needs `fastcgi_pass php:NAME` or an upstream group of exactly this one pool, and a cache. Other locations \
        are served as without it.");
    CACHE_LEARN_BINARY_LOG: Flag = flag("cache_learn_binary_log", LEVELS, "off").text(
        "reads what other programs write from the binary log of MariaDB", "cache_learn_binary_log on;", "\
        With `cache_learn on`, what other programs have written is found within two seconds, by asking each second \
        when the tables were last written. With this directive Mayfly also follows the binary log, as a replica \
        does, by the account of `cache_learn_database`. A write that is in the log ends the pages that it concerns \
        as soon as it is read, some milliseconds after its COMMIT. The server is asked each second all the same, for \
        not every write is in the log.\n\n\
        The server must be a MariaDB that writes its log (`log_bin`), in any format; `binlog_format=ROW` tells most \
        exactly which tables were written. The account needs `REPLICATION SLAVE`. Where the log cannot be followed, \
        the error log, `mayfly explain` and the metrics say so, and what `cache_learn on` promises stays. [Learned \
        pages](learned.md#the-binary-log) has the whole.");
    _ = lines("cache_learn_database", LEVELS, (1, 3), "SERVER USER [PASSWORD] | off").default("off").inherited().text(
        "names the account by which the tables of a database are read", "cache_learn_database unix:/run/mysqld/mysqld.sock blog secret;", "\
        To know what a statement reads and writes, `cache_learn` has to know the tables, their columns and their \
        triggers. The account needs no right to read data, but `information_schema` shows it only tables on which it \
        has any right, and triggers where it has `TRIGGER`. The application's own account will do. Pages are not \
        learned while the tables are not known. With `cache_learn on` the same account asks each second when the \
        tables were last written.\n\n\
        The server is written as PHP reaches it: `unix:/run/mysqld/mysqld.sock`, or `ADDRESS:PORT` with an IP \
        address. A PostgreSQL comes with its database: `postgres:unix:/run/postgresql/.s.PGSQL.5432/blog`. `mayfly explain` shows it as PHP does where the account is missing. Without a password, the server \
        must know the account by its socket.");
    CACHE_LEARN_MAX: Time = time("cache_learn_max", LEVELS).default("1d").text(
        "limits how long a learned page counts as known", "cache_learn_max 1h;", "\
        After this time, a page that `cache_learn` knows is not kept any more and counts as unknown until it is made \
        again, because the clock can alter a page too. A page is kept for a minute at first, and then for as long as \
        it was seen to stay the same, up to this time and not beyond midnight.");
    _ = lines("cache_learn_object_cache", LEVELS, (1, 3), "SERVER [USER [PASSWORD]] | off").default("off").inherited().text(
        "names the account by which an object cache is followed", "cache_learn_object_cache unix:/run/redis/redis.sock default secret;", "\
        With `cache_learn on`, pages that read a Redis or Valkey are kept while Mayfly hears from that server which keys \
        change. A memcached is asked twice a second for the keys that pages read. A server at a loopback address without a password needs no account. Name any other one here, as PHP reaches \
        it. Without a user it is `default`. An account of its own needs the rights `+hello +client|tracking +info +ping \
        +select +pttl` on all keys. [Learned pages](learned.md#object-caches) has the rest.");
    CACHE_LEARN_REPLAY: Flag = flag("cache_learn_replay", LEVELS, "on").text(
        "looks whether a write has really altered what a learned page read", "cache_learn_replay off;", "\
        With `cache_learn on`, a page is in question when something that it was made of may have changed. Mayfly \
        then runs the statements of the page again that read it, in a read-only session of the account of \
        `cache_learn_database`, if there is one. If all return the same, the page is shown again without PHP. If one \
        does not, the page is made anew. Until that is known, the page is not shown. With `off`, each page in \
        question is made anew.\n\n\
        The account needs the right to read the tables; without it, pages are made anew. It should have no more \
        rights than PHP's own, which will do. A prepared statement is run again if only integers, texts and NULL \
        were bound to it.\n\n\
        Kept pages are then written to the zone's disk and are still there after a restart: each is shown once all \
        of its statements have returned the same.");
    CACHE_LITESPEED: Flag = flag("cache_litespeed", LEVELS, "off").text(
        "speaks LiteSpeed's cache protocol with the application", "cache_litespeed on;", "\
        With `on`, LiteSpeed's cache plug-ins for WordPress and other applications work without a change. The \
        application is told `X-LSCACHE: on`, or `on,esi` where pages are put together from fragments. Write it for \
        the whole server, so that it also holds where the application is administered. These fields of responses are \
        read, and never sent to clients:\n\n\
        - `X-LiteSpeed-Cache-Control` says who may share a page and for how long. It counts instead of \
        `Cache-Control`, `Expires` and `X-Accel-Expires`. With `esi=on`, `<esi:include>` is run.\n\
        - `X-LiteSpeed-Tag` has the tags of the page.\n\
        - `X-LiteSpeed-Purge` and `X-LiteSpeed-Purge2` purge, unless `cache_purge_fields` is `off`.\n\
        - `X-LiteSpeed-Vary` names cookies that tell copies apart, beside those whose names begin with \
        `_lscache_vary`.\n\
        - `LSC-Cookie` is a cookie that each visitor of a stored page gets.\n\n\
        Requests are written anew, as with `cache_shared`, which this directive includes. `esi` is `on` where it is \
        not set. Visitors without cookies share a page; those with cookies share others, or have copies of their \
        own, as the application says. [LiteSpeed's plug-ins](litespeed.md) has the details.");
    CACHE_MAX_VALID: OrOff<Time> = time_or_off("cache_max_valid", LEVELS)
        .takes((1, 2), "TIME [purges=seen | expected] | off").text(
        "limits the lifetime of all responses", "cache_max_valid 1s;", "\
        A stored response is fresh for at most this time, whatever `Cache-Control`, `Expires`, `X-Accel-Expires` or \
        `fastcgi_cache_valid` say. Use it for applications that allow proxies to keep pages for hours, but do not \
        purge them after a change. Browsers get the fields as the application sent them. Copies for crawlers may \
        live as long as `cache_crawler_valid` says, and pages that `cache_learn` keeps as long as the application \
        says.\n\n\
        With `purges=`, the limit does not hold while the application's own purges arrive, those that \
        `fastcgi_cache_purge` and its like allow: with `seen`, once one has arrived, with `expected` from the start. \
        If an edit passes through here successfully and no purge follows within five seconds, the limit holds again \
        until one arrives, and all that the zone holds is removed. Edits are recognised by what MediaWiki \
        answers:\n\n\
        - An edit by its form sets a cookie with the new revision in its name.\n\
        - To forms and API requests that have changed the database, it says so by the cookie `UseCDNCache`. Of them, \
        those count that edit, delete, restore, move, roll back or purge a page, and API requests that hide \
        revisions.\n\
        - An edit by the API that changes nothing (`nochange` in JSON or XML) does not count.\n\n\
        MediaWiki purges nothing when a page is protected. Other changes, such as uploads, imports and merged \
        histories, are not recognised: their purges are carried out, but not missed.");
    _ = lines("cache_nodes", HTTP, (1, 4), "ADDRESS [name=NAME] [trusted=FILE] [key=FILE] | off").default("off").text(
        "shares purges with other machines by way of Redis or Valkey", "cache_nodes redis://10.0.0.5:6379;", "\
        All machines that name the same engine are nodes: when a purge has returned on one of them, no node begins \
        an answer with older data. The zones have the same names on all nodes. [Several \
        machines](several-machines.md) says how it is set up and what happens when something fails.\n\n\
        The address is `redis://HOST`, `rediss://HOST` (TLS), `unix:/PATH`, or `sentinel://HOST,HOST,HOST/MASTER` \
        with all Sentinels (`sentinels://`: TLS). A host may have a port, and `USER:PASSWORD@` may stand before it. \
        A number behind it, as in `redis://cache/2`, is the database. Redis Cluster is refused.\n\n\
        `name` (default `mayfly`) is what the names of the two keys begin with. Nodes with another name share \
        nothing with these. `trusted` names a PEM file with the authorities that may have issued the engine's \
        certificate; without it those of the system are trusted. `key` names a file with 32 random bytes or more, \
        the same on all nodes: by it pages are sealed that nodes share (`cache_nodes_pages`).\n\n\
        A node uses stored pages while it holds a lease of two seconds, which it renews. Without one, as when the \
        engine cannot be reached, requests go to the application, and `Cache-Status` says `detail=no-lease`. Those \
        for the same page wait for each other, as far as a fetch begins later than they came; `cache_nodes_lost` \
        lets them be answered from memory for a while. A purge that cannot be confirmed within 5 seconds is answered \
        with 503 by the interfaces for programs, and goes on being tried. A visitor whose request purges waits at \
        most 2.3 seconds; then the purge is logged as unconfirmed. A node that starts begins with an empty cache, \
        also where `disk=` is set.");
    _ = lines("cache_nodes_lost", HTTP, (1, 1), "stale=TIME | off").default("off").text(
        "lets a node that has lost its lease use stored pages for a while", "cache_nodes_lost stale=10s;", "\
        It gives the promise of `cache_nodes` up for a while. A node that cannot reach the engine goes on using what \
        it has stored for this time after its lease has ended. So the application is not asked for all pages at \
        once. A purge that returned on another node may be missing in such an answer. `Cache-Status` and \
        `$cache_reason` say so: `detail=lost-lease`. A node that never had a lease, or that comes back to an engine \
        that has lost its data, uses nothing.");
    CACHE_NODES_PAGES: Flag = flag("cache_nodes_pages", LEVELS, "off").text(
        "lets nodes take pages from each other, through their engine", "cache_nodes_pages on;", "\
        It needs `cache_nodes` with `key=`. A page that is fresh for a minute or longer and was asked for twice goes \
        to the engine as well, sealed. Another node takes it from there, if it knows of no purge since its fetch \
        began. Where `*_cache_valid` says a minute or longer, one node fetches a page that several are asked for, \
        and the others wait for it. Copies of one visitor or session are not shared, nor is a page of more than 1 \
        MB. An engine that does not answer within a quarter of a second is not waited for.\n\n\
        Give the engine a bound (`maxmemory`), and `maxmemory-policy volatile-lru`: pages leave then, and the log of \
        purges stays.");
    CACHE_NOT_FOUND: OrOff<Time> = time_or_off("cache_not_found", LEVELS).text(
        "sets the lifetime of the statuses 404 and 410", "cache_not_found 5m;", "\
        It needs `cache_shared on`. A response with status 404 or 410 is fresh for this time, even if it says \
        `no-cache` or `private`, as many applications do for errors. Requests for wrong addresses then do not keep \
        PHP busy. The request that the application got contained nothing of any visitor.\n\n\
        A successful POST, PUT, PATCH or DELETE to any address removes all these responses, so that a new page is \
        visible at once. A page that is made in another way, such as by a command, is visible when this time is \
        over. A response with a cookie is not stored. `cache_max_valid` does not limit this time, and \
        `cache_crawler_valid` gives crawlers a longer one.");
    _ = lines("cache_personal_args", LEVELS, (1, MANY), "NAME | ~PATTERN ... | off")
        .default("off").inherited_as_a_whole().repeats().text(
        "names query arguments of personal pages", r#"cache_personal_args preview "~^action=(?!view$)";"#, "\
        It needs `cache_shared on`. A request with one of these arguments bypasses the cache. `*` stands for any \
        text. A value that begins with `~` (case counts) or `~*` (case does not count) is a pattern for the decoded \
        text `name=value`. Arguments that `rewrite` adds count as well. Names are compared as PHP reads them.");
    _ = lines("cache_personal_cookies", LEVELS, (1, MANY), "NAME ... | off")
        .default("off").inherited_as_a_whole().repeats().text(
        "names cookies of visitors with personal pages", "cache_personal_cookies wordpress_logged_in_* PHPSESSID;", "\
        It needs `cache_shared on`. A request with one of these cookies, whatever its value, bypasses the cache. \
        Name the session cookies of the application. `*` stands for any text. Names are compared as PHP reads them: \
        `wordpress.logged_in` counts as `wordpress_logged_in`.");
    _ = lines("cache_personal_paths", LEVELS, (1, MANY), "PATH | ~PATTERN ... | off")
        .default("off").inherited_as_a_whole().repeats().text(
        "names paths of personal pages", r#"cache_personal_paths /cart "~*/wp-admin(?:/|$)";"#, "\
        It needs `cache_shared on`. A request for one of these paths, or for a path below it, bypasses the cache. A \
        value that begins with `~` (case counts) or `~*` (case does not count) is a pattern. The path is compared in \
        three forms: as received, decoded, and with `.` and `..` resolved.");
    _ = lines("cache_private", LEVELS, (1, MANY), "COOKIE ... [copies=NUMBER] [size=SIZE] | off")
        .default("off").inherited().text(
        "stores pages for each session", "cache_private PHPSESSID wordpress_logged_in_* copies=16 size=1m;", "\
        Requests with one of the named cookies get stored copies of their own: the values of these cookies are part \
        of the key. Responses that say `private` are then stored for this session only. Use it for pages that the \
        same visitor loads again and again. `*` in a name stands for any text. Names are compared as PHP reads \
        them.\n\n\
        `copies` (default 16) and `size` (default 1m) limit what is kept for one session; the copy that was used \
        longest ago goes.\n\n\
        With `cache_learn on`, a visitor with such a cookie of 16 bytes or more gets the same page again while \
        nothing has changed that it was made of, for five minutes at most. The copy is shown to requests that are \
        the same in all fields, cookies and addresses. It ends when the visitor writes or logs out, is sent a \
        cookie, or when the session changes. A page that writes more than times into the session is not kept. With \
        `cache_shared on` this also holds for cookies that would bypass the cache. Such copies are never on disk or \
        on other machines.");
    CACHE_PURGE_AGAIN: OrOff<Time> = time_or_off("cache_purge_again", HTTP).text(
        "repeats each purge after a time", "cache_purge_again 3s;", "\
        A database that answers from a copy may give the old data for a moment after a change. A page that is made \
        within that time is old, and is stored. With this directive each purge is done once more after the time. Set \
        it to more than the copy is behind, for example `3s` for an asynchronous replica of MySQL. What a visitor's \
        write removes is removed again as well.");
    CACHE_QUEUE_STALE: OrOff<Number> = number_or_off("cache_queue_stale", LEVELS).text(
        "uses stale pages when too many requests wait for PHP", "cache_queue_stale 20;",
        "If this number of requests waits for PHP, a stale response is used instead of one more waiting.");
    CACHE_READ_YOUR_WRITES: OrOff<Time> = time_or_off("cache_read_your_writes", LEVELS).text(
        "shows visitors at once what they have written", "cache_read_your_writes 10s;", "\
        After a POST, PUT, PATCH or DELETE, the visitor's requests bypass the cache for this time. A new comment or \
        a filled basket is visible at once. The server marks the visitor with a cookie, `mayfly_writer`. Other \
        visitors still get stored pages.");
    CACHE_SHARED: Flag = flag("cache_shared", LEVELS, "off").text(
        "makes stored pages safe to share between visitors", "cache_shared on;", "\
        With `on`, a visitor's request reaches the application once and as it is, and no visitor can change a page \
        that others get. `mayfly serve` writes it for every site. Where it is off, `mayfly check` says what reaches \
        the application and is not in the key.\n\n\
        The first request for a page is the visitor's own, and its response is not stored. If it could have been, \
        the server makes the shared request for the second visitor, and compares both responses. If they are the \
        same, the page is shared. A visitor whose request says something that was not compared yet (another \
        language, another browser) has an own response, too, which is compared. If responses differ, the server \
        tries in the background what matters: language, `User-Agent`, `Referer`, cookies, other fields, the network. \
        A language or a cookie of `cache_trial_cookies` that matters is in the key from then on; visitors whose \
        other fields matter get their own responses. `explain` shows what was found out, and \
        [security.md](security.md) says what remains.\n\n\
        The server writes the shared request. Everything in it is also in the key:\n\n\
        - the method GET, the scheme, the host, and the path and arguments without those of `cache_ignore_args`,\n\
        - one User-Agent for each class of visitors: desktop, mobile, crawler,\n\
        - one `Accept` field,\n\
        - the cookies of `cache_key_cookies`,\n\
        - `Accept`, `Accept-Language`, `Origin` and client hints of the visitor, once a response for this key has \
        named them in `Vary`. If nothing is known of the key, what other pages of the site (the host on this server) \
        have named counts: HTML with status 200 that was stored. A name is forgotten when a thousand such pages in a \
        row have not named it.\n\n\
        The key also contains the text of `fastcgi_cache_key`, variables that `set` and captures have made, the \
        server, and a location to which an `if` or a name has led. The client's address in it is 192.0.0.8, which no \
        machine has. The application is sent one of the addresses for documentation (RFC 5737), each in its turn. \
        All other fields are not sent.\n\n\
        A request that is for one visitor only bypasses the cache. It is sent as the visitor sent it, and its \
        response is never stored. These are requests with\n\n\
        - a body, or credentials,\n\
        - a personal cookie, argument or path (`cache_personal_cookies`, `cache_personal_args`, \
        `cache_personal_paths`),\n\
        - a cookie that no directive names (`cache_unknown_cookies`),\n\
        - a field that is not known not to matter, such as `X-Tenant`,\n\
        - an `Accept` field without HTML, a mark that a script asks for a part of a page, or an upgrade to another \
        protocol.\n\n\
        A response to the shared request that may not be stored (`private`, `Set-Cookie`, no lifetime) ends sharing. \
        What is stored is removed, and each visitor has an own response until one could be stored again.\n\n\
        A POST, PUT, PATCH or DELETE removes what is stored for its own address, at most once in the lifetime of the \
        page or in ten seconds.");
    _ = lines("cache_show_args", HTTP, (1, MANY), "NAME ... | off").default("off").repeats().text(
        "shows values of arguments to who looks at what is stored", "cache_show_args page lang;", "\
        Who looks inside the cache through the control socket sees the addresses of stored pages. Values of \
        arguments are masked there (`/search?q=*`), because they may be what a visitor has typed. The values of the \
        arguments that are named here are shown. `*` in a name stands for any text.");
    _ = lines("cache_stale", LEVELS, (1, 2), "TIME [TIME] | off").default("off").inherited().text(
        "limits the age of stale pages", "cache_stale 10s 1h;", "\
        The first time is how long after its lifetime a page may be shown while it is renewed. The second is how \
        long it may be shown while the upstream has trouble. Without a second time, the first one is used for both. \
        The upstream has trouble if\n\n\
        - it fails, or has failed within the last 10 seconds,\n\
        - too many requests wait (`cache_queue_stale`, a full `queue`),\n\
        - it takes longer than `fastcgi_cache_lock_timeout`, and `timeout` is among the values of \
        `fastcgi_cache_use_stale`.\n\n\
        A page that is shown because of trouble may be older than one that another visitor has seen. `Cache-Status` \
        says `detail=upstream-trouble` then, but not for a page that is renewed after a failure. After the first time, \
        visitors wait for the new page, which is fetched once. After the second, they get what the upstream says.\n\n\
        The times limit `fastcgi_cache_use_stale`, and `stale-while-revalidate` and `stale-if-error` of a response. \
        They allow nothing by themselves. With `off`, as in nginx, a stale page may be shown as long as it is \
        stored.");
    CACHE_STATUS_HEADER: Flag = flag("cache_status_header", LEVELS, "on").text(
        "sets whether responses have the field Cache-Status", "cache_status_header off;", "\
        With `on`, a response has this field (RFC 9211) if the cache was asked for it. The field says whether the \
        response came from the cache, or why not. It also says how long the response stays fresh, and whether it was \
        stored.");
    CACHE_STORE_AUTHORIZED: Flag = flag("cache_store_authorized", LEVELS, "off").text(
        "stores responses to requests with a password", "cache_store_authorized on;", "\
        With `on`, a request field `Authorization` does not prevent storing. Use it only if everybody who has a \
        password sees the same pages.");
    CACHE_STORE_BYPASSED: Flag = flag("cache_store_bypassed", LEVELS, "off").text(
        "stores responses to requests that bypass the cache because of their visitor", "cache_store_bypassed on;", "\
        In nginx, a response to a request that `*_cache_bypass` lets past the cache is stored, unless `*_no_cache` \
        forbids it: a page for one visitor is then shown to all. In Mayfly, it is not stored if the condition \
        depends on cookies, `Authorization`, the client's address or a variable of `set`. A condition on arguments, \
        the method and other fields renews what is stored, as in nginx.\n\n\
        With `on`, Mayfly stores as nginx does. Use it only if all visitors get the same pages.");
    CACHE_STORE_SET_COOKIE: Flag = flag("cache_store_set_cookie", LEVELS, "off").text(
        "stores responses that set a cookie", "cache_store_set_cookie on;", "\
        With `on`, such a response is stored without its field `Set-Cookie`. Use it only if no page depends on the \
        visitor.");
    _ = lines("cache_tagged_control", LEVELS, (1, 1), "VALUE | off").default("no-cache").inherited().text(
        "sets the Cache-Control field of responses with tags", "cache_tagged_control no-cache;", "\
        A purge removes a page from the cache of the server, but not from the browsers that have it. So a stored \
        response that carries tags (`cache_tags`) is sent with this value in `Cache-Control`, and without `Expires`. \
        With `no-cache`, a browser asks before it shows the page again, and gets a 304 from memory if the page is \
        the same. A response with status 200 that has neither `ETag` nor `Last-Modified` is given an `ETag` for \
        that, made from its body. With `off`, browsers get what the application says.");
    _ = lines("cache_tags", LEVELS, (1, MANY), "on | off | FIELD ... [stderr] [sent]").default("on").inherited().text(
        "sets which fields of a response name its tags", "cache_tags surrogate-key stderr;", "\
        A tag is the name of something that a page was made of, for example `news:5`. A purge of a tag removes all \
        stored responses that carry it. The application names the tags of a response in a field.\n\n\
        With `on`, these fields count, each with the separator of those who invented it: `Surrogate-Key` (spaces), \
        `Cache-Tag`, `X-Cache-Tags`, `X-Magento-Tags`, `X-LiteSpeed-Tag` (commas), `xkey` (both) and `Cache-Groups` \
        (RFC 9875). With one or more names, only these fields count. In a field of another name, tags are separated \
        by spaces or commas.\n\n\
        Trailers of these names count as well, for an application that knows its tags only when the page is \
        finished. With `stderr`, messages on the FastCGI error stream count too. The application gets a secret that \
        changes with each request in the parameter `MAYFLY_TAG_MARK`. A message that names tags begins with the \
        secret and a space, and ends with a slash and the secret: `$mark = $_SERVER['MAYFLY_TAG_MARK']; \
        error_log(\"$mark news:5 list /$mark\");`. Behind the second one nothing is a tag. Without it, the tags end \
        with the message: where the line ends, or where PHP-FPM puts its next message. Such messages are not logged, \
        all others are. A secret within a message, as in a dump of `$_SERVER`, names no tags. PHP-FPM cuts a message \
        at about 1,024 bytes (`log_limit`), the secrets included, so write several; the library in `php/library` \
        does. A response with a message that was cut is stored for one second only, because a tag is missing.\n\n\
        The fields are not sent to clients, except with `sent`. A response may have 65,536 tags of up to 1,024 \
        bytes, together 1 MB. A response with more is stored for one second only, and the error log says so.");
    _ = lines("cache_trial_cookies", LEVELS, (1, MANY), "NAME ... | off").default("off").inherited().text(
        "sets which cookies are tried: they may shape a page", "cache_trial_cookies cookie_consent* theme;", "\
        It needs `cache_shared on`. Such a cookie holds a choice of the visitor's: consent, a theme. It is neither \
        sent with the shared request nor in the key until a trial has found that a page depends on it. Then it is \
        both, for this page and, once two pages of a folder depend on it, for the others there. `*` in a name stands \
        for any text.");
    CACHE_UNKNOWN_COOKIES: Choice<UnknownCookies> = choice("cache_unknown_cookies", LEVELS, "bypass | remove", &[
        ("bypass", UnknownCookies::Bypass), ("remove", UnknownCookies::Remove),
    ]).default("bypass").text(
        "sets what happens to cookies that no directive names", "cache_unknown_cookies remove;", "\
        It needs `cache_shared on`. With `bypass`, a request with such a cookie bypasses the cache, because the \
        cookie may be a session. With `remove`, such cookies are tried, as those of `cache_trial_cookies` are. Use \
        `remove` only if you have named all cookies that may be a session.");
    SLICE: Size = size("slice", LEVELS).default("0").text(
        "fetches and stores long responses in parts", "slice 1m;", "\
        The server asks for parts of this size, one after another, from the first to the last that the client needs. \
        Each part is stored on its own. 0 switches it off. Three other lines are needed:\n\n\
        - `$slice_range` must be sent in the field `Range`,\n\
        - the cache key must contain `$slice_range`,\n\
        - `fastcgi_cache_valid` must name 206.\n\n\
        If a part belongs to another version of the file (another ETag or length), the response is cut off.");
}
