//! The cache: one family for every protocol, and directives of our own.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("*_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "ZONE | off").inherited()
        .default("off")
        .short("the zone to keep responses in")
        .long("A zone that `fastcgi_cache_path` names, or `off`. Variables may be used. A response is stored if its own fields allow it or `fastcgi_cache_valid` says how long; never if it sets a cookie, is private, or answers a request with a password, unless a directive says so by name.")
        .example("fastcgi_cache pages;"),
    Directive::new("*_cache_background_update", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("refresh stale pages without anybody waiting")
        .long("With `on`, a visitor gets the stale page at once and a request of the server's own fetches the new one. It needs `updating` in `fastcgi_cache_use_stale`, or `stale-while-revalidate` in the response.")
        .example("fastcgi_cache_background_update on;"),
    Directive::new("*_cache_bypass", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "VALUE ...").inherited_as_a_whole().repeats()
        .short("when not to look into the cache")
        .long("Where any of the values is neither empty nor 0, the request goes past the cache. The response may still be stored; `fastcgi_no_cache` with the same values prevents it. Cookies of logged-in visitors belong here.")
        .example("fastcgi_cache_bypass $cookie_session $arg_nocache;"),
    Directive::new("*_cache_convert_head", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("fetch with GET for HEAD")
        .long("With `on`, HEAD is answered from what GET stored, and fetches as GET. With `off`, the method should be part of the key.")
        .example("fastcgi_cache_convert_head on;"),
    Directive::new("*_cache_key", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TEXT").inherited()
        .default("$scheme$host$request_uri")
        .short("what tells stored responses apart")
        .long("Two requests with the same key get the same stored response. The default (nginx has none and demands the directive) fits nearly every site; with HEAD and GET sharing what is stored, the method need not be part of it.")
        .example(r#"fastcgi_cache_key "$scheme$host$request_uri";"#),
    Directive::new("*_cache_lock", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("one request for a page that is not stored")
        .long("With `on`, requests for the same page that come at once are collapsed: one of them asks PHP, the others get the same answer as it arrives. nginx has `off` by default; here it is `on`, as a crowd on a cold page is what brings sites down. A response that turns out to be private frees all that wait, together.")
        .example("fastcgi_cache_lock on;"),
    Directive::new("*_cache_lock_age", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("5s")
        .short("when the next one may ask")
        .long("When the request that asks has taken this long, another of those that wait asks as well.")
        .example("fastcgi_cache_lock_age 10s;"),
    Directive::new("*_cache_lock_timeout", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("5s")
        .short("how long collapsed requests wait")
        .long("When the time has passed, they ask PHP themselves; their responses are not stored.")
        .example("fastcgi_cache_lock_timeout 3s;"),
    Directive::new("*_cache_max_range_offset", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .short("from where on ranges are handed on")
        .long("A range that begins behind this byte is fetched from the upstream and not stored. Without the directive, the whole response is fetched and the range is cut out of it.")
        .example("fastcgi_cache_max_range_offset 10m;"),
    Directive::new("*_cache_methods", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "GET | HEAD | POST ...").inherited_as_a_whole().repeats()
        .default("GET HEAD")
        .short("methods whose responses are stored")
        .long("GET and HEAD always are. POST is for the rare application that asks questions by it, with a key that has `$request_body` in it. A body that does not fit `client_body_buffer_size` is not part of it: such a request goes past the cache.")
        .example("fastcgi_cache_methods GET HEAD POST;"),
    Directive::new("*_cache_min_uses", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .default("1")
        .short("requests before a response is stored")
        .long("With 2, a page that is asked for once in `inactive` takes no memory.")
        .example("fastcgi_cache_min_uses 2;"),
    Directive::new("*_cache_path", &[Context::Http])
        .takes(2, usize::MAX, "PATH keys_zone=NAME:SIZE [memory=SIZE] [max_size=SIZE] [inactive=TIME] [levels=LEVELS] ...").repeats()
        .short("a cache zone")
        .long("Names a zone and bounds it. Responses are kept in memory, up to `memory`; without it, `max_size` is the bound where the path is on a file system in memory, else a share of the machine's memory is taken. What was not asked for during `inactive` is dropped. The bound counts everything: bodies, fields, keys, the index. `levels` and other parameters that arrange files are accepted and have no meaning.")
        .example("fastcgi_cache_path /run/mayfly/cache keys_zone=example:10m memory=64m inactive=10m;"),
    Directive::new("*_cache_purge", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "VALUE ... | METHOD [purge_all] [from ADDRESS | local ...] | ZONE KEY").inherited_as_a_whole().repeats()
        .short("remove stored responses")
        .long("With variables: where any is neither empty nor 0, what is stored under the request's key is removed instead of a page being made; a key that ends in `*` removes all that begin so. With a method (`on`: PURGE): the same for that method, `from` the addresses named; `purge_all` removes all of the zone. What is removed is what GET and HEAD have stored, also where `$request_method` is part of the key. `local` stands for this machine itself, where an application tells of changes: a connection by loopback, by a unix socket or from the address that it came to, by a client that names no other one (no `Forwarded`, `X-Forwarded-...`, `X-Real-IP` or `Via` field, no PROXY protocol). A proxy on this machine that adds none of these fields cannot be told from it. With `cache_shared on`, what is stored for the URL is removed in all variants and under both schemes, since applications behind a proxy that speaks TLS purge `http://` addresses. With a zone and a key, as in the well-known module: a location whose every request removes that key.")
        .example("fastcgi_cache_purge PURGE from 127.0.0.1;"),
    Directive::new("*_cache_revalidate", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("ask whether a stale response still holds")
        .long("With `on`, a stale response that has an `ETag` or a `Last-Modified` is validated by `If-None-Match` and `If-Modified-Since`. A 304 makes it fresh again.")
        .example("fastcgi_cache_revalidate on;"),
    Directive::new("*_cache_use_stale", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "error | timeout | invalid_header | updating | http_500 | http_503 | http_403 | http_404 | http_429 | off ...").inherited_as_a_whole().repeats()
        .default("off")
        .short("when a stale response is better than none")
        .long("The failures that are bridged with what is stored, however old. `updating` serves it while another request fetches a new one. With `fastcgi_cache_background_update`, nobody waits for that.")
        .example("fastcgi_cache_use_stale error timeout updating http_500 http_503;"),
    Directive::new("*_cache_valid", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "[CODE ... | any] TIME").inherited_as_a_whole().repeats()
        .short("how long responses are fresh")
        .long("Codes and a time; without codes 200, 301 and 302; `any` is for all others. Times may be given in milliseconds: 100 ms of freshness turn a thousand requests a second into ten. Fields of the response (`X-Accel-Expires`, `Cache-Control`, `Expires`) go before it unless they are ignored.")
        .example("fastcgi_cache_valid 200 500ms;"),
    Directive::new("*_no_cache", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "VALUE ...").inherited_as_a_whole().repeats()
        .short("when not to store a response")
        .long("Where any of the values is neither empty nor 0, the response is not stored. Usually it has the same values as `fastcgi_cache_bypass`.")
        .example("fastcgi_no_cache $cookie_session;"),
    Directive::new("cache_crawler_valid", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME | off").inherited()
        .default("off")
        .short("how long pages for crawlers are fresh")
        .long("With `cache_shared on`, programs that index the web (known by their User-Agent) have copies of their own. Where `*_cache_valid` would give such a copy a shorter lifetime, it is fresh for this time.")
        .example("cache_crawler_valid 60s;"),
    Directive::new("cache_ignore_args", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("query arguments that do not count")
        .long("The arguments named (`*` stands for anything) are left out of the key, so that a link from a newsletter finds the page that is stored. They are removed from a request whose response is for the cache: a script that shows them would show one visitor's to all. Names are compared as PHP reads them, so `utm%5Fsource` and `utm_source[]` count as `utm_source`.")
        .example("cache_ignore_args utm_* gclid fbclid;"),
    Directive::new("cache_ignore_cookies", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("cookies that do not count")
        .long("The cookies named (`*` stands for anything) neither make a variant under `Vary: Cookie` nor make a condition true. They are removed from a request whose response is for the cache. Analytics cookies belong here. Names are compared as PHP reads them, so `.ga` and `%5Fga` count as `_ga`.")
        .example("cache_ignore_cookies _ga* _pk_*;"),
    Directive::new("cache_key_cookies", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("cookies that shape pages for many visitors")
        .long("With `cache_shared on`: the cookies named (`*` stands for anything), such as the choice of a language, are sent to the application, and pages are stored for each of their values. At most 1,024 bytes of them; a request with more goes past the cache.")
        .example("cache_key_cookies pll_language;"),
    Directive::new("cache_max_valid", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME | off").inherited()
        .default("off")
        .short("the longest that a response is fresh")
        .long("A stored response is fresh for at most this time, whatever `Cache-Control`, `Expires`, `X-Accel-Expires` or `*_cache_valid` say. For applications that let proxies keep pages for hours and do not tell them of changes. Copies for crawlers may be fresh for `cache_crawler_valid`. Browsers get the fields as the application sent them.")
        .example("cache_max_valid 1s;"),
    Directive::new("cache_not_found", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME | off").inherited()
        .default("off")
        .short("keep answers that there is no such page")
        .long("With `cache_shared on`, an answer 404 or 410 to a request that the server has written is fresh for this time, also where the application says `no-cache` or `private`, as many do for errors: the request had nothing of any visitor in it. Whoever asks for wrong addresses again and again does not keep the application busy then. A successful write (POST, PUT, PATCH, DELETE), wherever it goes, drops all of these answers, so that a page that was just made is there. `cache_max_valid` does not bound them. An answer that sets a cookie is not stored.")
        .example("cache_not_found 5m;"),
    Directive::new("cache_personal_args", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME | ~PATTERN ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("query arguments of personal pages")
        .long("With `cache_shared on`: a request with one of the arguments named (`*` stands for anything), or with one whose decoded `name=value` a pattern matches (`~`, or `~*` for any case), goes past the cache. Arguments that `rewrite` makes count as well. Names are compared as PHP reads them.")
        .example(r#"cache_personal_args preview "~^action=(?!view$)";"#),
    Directive::new("cache_personal_cookies", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "NAME ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("cookies of visitors who have pages of their own")
        .long("With `cache_shared on`: a request with one of the cookies named (`*` stands for anything), whatever its value, goes past the cache. Names are compared as PHP reads them: `wordpress.logged_in` counts as `wordpress_logged_in`.")
        .example("cache_personal_cookies wordpress_logged_in_* PHPSESSID;"),
    Directive::new("cache_personal_paths", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "PATH | ~PATTERN ... | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("addresses of personal pages")
        .long("With `cache_shared on`: a request whose path is one of those named, or below it, or is matched by a pattern (`~`, or `~*` for any case), goes past the cache. The path is tried as received, decoded, and with its dot segments resolved.")
        .example(r#"cache_personal_paths /cart "~*/wp-admin(?:/|$)";"#),
    Directive::new("cache_private", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "COOKIE ... [copies=NUMBER] [size=SIZE] | off").inherited()
        .default("off")
        .short("a copy for each session")
        .long("Requests with one of the cookies named (`*` stands for anything) have copies of their own, told apart by the cookies' values. `copies` and `size` bound what one session may keep. Responses that say `private` are then stored for their session alone.")
        .example("cache_private PHPSESSID wordpress_logged_in_* copies=16 size=1m;"),
    Directive::new("cache_queue_stale", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER | off").inherited()
        .default("off")
        .short("serve stale when too many wait for PHP")
        .long("When as many requests wait for PHP, a stale response that is stored is served instead of one more waiting.")
        .example("cache_queue_stale 20;"),
    Directive::new("cache_read_your_writes", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME | off").inherited()
        .default("off")
        .short("visitors see what they have just written")
        .long("A visitor who sent POST, PUT, PATCH or DELETE is served past the cache for this time, so that a comment or a basket is there at once. A cookie carries it, in their browser alone; everybody else goes on being served from memory.")
        .example("cache_read_your_writes 10s;"),
    Directive::new("cache_shared", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("write requests for shared pages anew")
        .long("With `on`, nothing of a visitor's request that is not in the cache key reaches the application when the answer may be shown to others. Such a request is written by the server: GET, the address without ignored arguments, the host, the scheme, one User-Agent for each class of visitors (desktop, mobile, crawler), one Accept field, the cookies of `cache_key_cookies`, and fields of preference (`Accept`, `Accept-Language`, `Origin`, client hints) once a response for this key has named them in `Vary`. All of it is in the key; `*_cache_key` adds to it. A field that nobody has heard of yet is not sent. Requests that are for one visitor alone go past the cache, are forwarded whole and never stored: those with a body, with credentials in any of many well-known fields, with a personal cookie (`cache_personal_cookies`), argument or path, with a cookie that no directive names (`cache_unknown_cookies`), those that do not accept HTML, scripts that ask for parts of pages, and upgrades to other protocols. A response that turns out not to be for everybody (`private`, `Set-Cookie`, no lifetime) is asked for again with the visitor's own request, whole, where that says more, and so are all that follow for five seconds. The client's address and the time are sent as they are. A write (POST and the like) removes what is stored for its own address at most once in a lifetime, or in ten seconds. Variables made by `set` and by captures are in the key, and so are the server and a location that `if` or a name leads to.")
        .example("cache_shared on;"),
    Directive::new("cache_stale", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 2, "TIME [TIME] | off").inherited()
        .default("off")
        .short("how old a stale page may be at most")
        .long("A stale response that is stored is shown for at most the first time past its freshness while it is renewed, and for at most the second (without one, the first again) while the upstream fails, has failed within the last 10 seconds, takes longer than `fastcgi_cache_lock_timeout` (where `timeout` is among the reasons of `fastcgi_cache_use_stale`), or too many wait for it (`cache_queue_stale`, a full `queue`). Past the first, visitors wait for the new page, all of them for one; past the second they get what the upstream says. The times bound `fastcgi_cache_use_stale` as well as what a response allows with `stale-while-revalidate` and `stale-if-error`; they allow nothing by themselves. With `off`, as in nginx, a page that nobody asked for in the meantime is shown however old it is, as long as it is kept.")
        .example("cache_stale 10s 1h;"),
    Directive::new("cache_status_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("the Cache-Status field")
        .long("With `on`, responses that the cache had a say in carry the field of RFC 9211: hit or not and why, how long the response stays fresh, whether it was stored.")
        .example("cache_status_header off;"),
    Directive::new("cache_store_authorized", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("store responses to requests with a password")
        .long("With `on`, a request with `Authorization` is no reason against storing. It is right where everybody who has a password sees the same.")
        .example("cache_store_authorized on;"),
    Directive::new("cache_store_set_cookie", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("store responses that set a cookie")
        .long("With `on`, such responses are stored without the field `Set-Cookie`. It is right only where no page depends on who asks.")
        .example("cache_store_set_cookie on;"),
    Directive::new("cache_unknown_cookies", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "bypass | remove").inherited()
        .default("bypass")
        .short("what a cookie does that no directive names")
        .long("With `cache_shared on`: `bypass` lets a request with any cookie that no directive names go past the cache, as it may be a session. `remove` is for applications whose cookies are all named: others are not sent when the answer may be shared.")
        .example("cache_unknown_cookies remove;"),
    Directive::new("slice", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("0")
        .short("fetch and store long responses in parts")
        .long("Parts of this size are asked for one by one, from the first that the client wants to the last, and each is stored on its own. The upstream must be given `$slice_range` as the field `Range`, the cache key must hold it, and `*_cache_valid` must name 206. A part that does not belong to the same version as the first (its ETag or length differs) breaks the response off. 0 turns it off.")
        .example("slice 1m;"),
];
