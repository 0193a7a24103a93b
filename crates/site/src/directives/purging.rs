//! Table of the directives about purges: the interface for programs, who may use it, and the log.
//! `*_cache_purge` stands in `cache`.

use super::Directive;
use super::declaration::*;

table! {
    _ = lines("cache_purge_api", LOCATION, (0, 0), "").text(
        "lets programs purge with a POST request", "cache_purge_api;", "\
        The location takes a JSON object that says what to purge, and answers when the purge holds: no answer that \
        begins later is older. All fields are optional, but something must be named:\n\n\
        - `\"urls\"`: absolute URLs. All that is stored for them goes: both schemes, all variants, methods and \
        classes of visitors.\n\
        - `\"tags\"`: what the application calls a thing that pages are made of.\n\
        - `\"prefixes\"`: absolute URLs. All URLs that begin with one of them are removed.\n\
        - `\"patterns\"`: `*` is any text and `?` one character, as in `https://example.org/news/*`. With `~` in \
        front it is a regular expression, which is compared with the address without its scheme, as in \
        `~^example\\.org/news/[0-9]+$`.\n\
        - `\"hosts\"`: all of these names. Where a URL has no host, as in `/news/5`, it is looked for under these \
        names, and the rest of them stays.\n\
        - `\"everything\":true`: all that is stored.\n\
        - `\"soft\":true`: the stale page is shown while one request fetches the new one.\n\
        - `\"dry_run\":true`: nothing is purged, but counted.\n\n\
        The answer is 200 with the number of stored responses for each target. A mistake is answered by 400 with a \
        text that names the field. A request has at most 10,000 targets, and at most 256 of them are prefixes, \
        patterns and hosts. `client_max_body_size` holds as well.\n\n\
        Programs on this machine may use it, as with `from local` of `fastcgi_cache_purge`. `allow`, `auth_basic`, \
        `auth_request` and `cache_purge_token` let others, if they stand in this location itself: lines of the \
        blocks around it can only refuse. A token may come from anywhere as well.\n\n\
        A request that a browser sends for a page of another site is refused (`Sec-Fetch-Site`, `Origin`, \
        `Referer`), and so is a GET by a browser that does not say for which. The `Host` of programs on this \
        machine, and of browsers, must be `localhost`, an IP address or a name in a `server_name`. Patterns and \
        names that end with `*` do not count. A foreign page could make a browser on this machine send other \
        requests. Only a token or a password needs no such name.");
    _ = lines("cache_purge_fields", LEVELS, (1, 1), "on | off").inherited().text(
        "sets whether responses may purge", "cache_purge_fields on;", "\
        With `on`, an application purges by a field of a response, for example of the one to the editor who has \
        changed something. The purge is done before the response goes on. These fields count:\n\n\
        - `X-Cache-Purge-Tags`: tags, between spaces or commas.\n\
        - `X-LiteSpeed-Purge` and `X-LiteSpeed-Purge2`: as LiteSpeed defines it, for example `tag=news5,/list`, \
        `stale,tag=a` or `*` for all pages of the host.\n\
        - `Cache-Group-Invalidation` (RFC 9875): groups of the same origin, in a response to a POST, PUT, PATCH or \
        DELETE.\n\n\
        `X-Cache-Repeat: /wp-cron.php 60` purges nothing: the server asks itself for this path of the same host each \
        60 seconds, without a client's address, and after the requests of visitors. Paths with their seconds (1 to \
        86400) stand between commas. A path that no response has named for ten minutes, or ten of its turns, is not \
        asked for any more. At most 256 are kept, 32 of a server. Hosts that no `server_name` is have one request \
        for a path together, so name the hosts of a site. A request is given up after a minute.\n\n\
        The fields are never sent to clients. Without the directive, responses of the server's own PHP pools \
        (`php_pool`) may purge, and so may others where `cache_litespeed` is on. Responses of other upstreams may \
        not: a server that answers there could empty the cache.");
    _ = lines("cache_purge_log", HTTP, (1, 2), "PATH [text | json] | off").default("off").text(
        "sets where purges are logged", "cache_purge_log /var/log/mayfly/purge.log;", "\
        A line says when, by which interface (`api`, `dashboard`, `socket`, `request`, `response`, `folder`), from \
        whom, what, how many stored responses it named, and how long it took. The target is a file, `stderr`, or \
        `syslog:` with its parameters. `text` is for people, and `json` writes one object for each purge. Control \
        characters are escaped in both.");
    _ = lines("cache_purge_token", LEVELS, (1, 1), "FILE | off").default("off").inherited().text(
        "sets whose tokens `cache_purge_api` and `dashboard` ask for", "cache_purge_token /etc/mayfly/purge-tokens;", "\
        Each line of the file is a name and the SHA-256 hash of a token, as in `deploy:9f86d0...`. `mayfly purge \
        --new-token deploy` prints a new token and its line. A request must have one of the tokens in its field \
        `Authorization: Bearer TOKEN`, wherever it comes from. The file is read for each request, by the account \
        that serves. With a file that cannot be read, no token is accepted.\n\n\
        In a location with `dashboard`, a token is needed to purge, and lets one see the page from another \
        machine.\n\n\
        `allow` and `deny` hold as well. Send tokens over TLS only.");
    CACHE_REFILL: Flag = flag("cache_refill", LEVELS, "off").text(
        "sets whether purged pages are fetched again", "cache_refill on;", "\
        With `on`, pages that a purge has hit are fetched again before a visitor asks for them. The most wanted ones \
        come first: those that were asked for in the most seconds of the last minutes. The purge does not wait for \
        that. A purge is followed by at most 1000 pages, and by none that has not been fetched within a minute. The \
        fetches take the turns of refreshes: visitors come first, and a quarter of the workers is left to them.\n\n\
        A page is asked for as by a visitor without cookies who has never been here. It is fetched only if it then \
        has the same key and the same variant as what was purged. So pages with `200` whose key or `Vary` has to do \
        with a cookie, a password or the like are left to visitors. `allow`, `deny` and passwords hold as well: for \
        them the request comes from the address `192.0.0.8`, which no client has.\n\n\
        All purges count, wherever they come from, but not the removal of a page by a write to its own address. To \
        find the hit pages among those in memory takes at most a tenth of one core's time.");
    _ = lines("cache_repeat", LEVELS, (1, 2), "PATH TIME | off").default("off").inherited().text(
        "names a path that the server asks itself for again and again", "cache_repeat '/index.php?title=Special:BlankPage' 10s;", "\
        Each response of the application counts as if it said `X-Cache-Repeat` (see `cache_purge_fields`) with this \
        path and time, which is at least a second. So the first turn comes one interval after the first response. It \
        is for applications that work at the end of requests and are seldom asked while their pages are kept: \
        MediaWiki runs its jobs then. Name an address whose answer is not stored.");
}
