//! Table of the directives that show the server's numbers. `stub_status` stands in `files`.

use super::Directive;
use super::declaration::*;

table! {
    _ = lines("dashboard", LOCATION, (0, 0), "").text(
        "shows the server's numbers and its cache in a browser", "dashboard;", "\
        The location answers with a page that draws the numbers of [metrics.md](metrics.md), as they are now and \
        over the last hour. It also lists the pages that cost PHP most, those that are asked for most, and those \
        that are not stored, with the reason. The page is part of the program and loads nothing from elsewhere.\n\n\
        It looks inside the cache as well: it finds stored responses by a part of their address or by a tag. Of each \
        it shows fields, tags, age, size, forms, and the lifetime with what gave it. It purges all that is stored \
        for an address. Of arguments only the names are shown, unless `cache_show_args` names them, of cookies \
        nothing, and of fields that are not known to be harmless the names.\n\n\
        Who may see it is decided as with `metrics`. With `cache_purge_token`, everyone with a token sees it too, \
        from anywhere: the page without any data is then for everybody whom `allow`, `deny` and `auth_request` let \
        through, and asks for the token. It is kept until the tab is closed. It may also be at the end of the page's \
        address, as in `https://example.org/dashboard#token=TOKEN`: that part is not sent, and is removed from the \
        address bar.\n\n\
        To purge always takes a token. Without `cache_purge_token` the page is read-only. It is also read-only where \
        `auth_basic` asks for a password, which takes the place of a token in the request.");
    _ = lines("metrics", LOCATION, (0, 0), "").handles_content().text(
        "shows the server's numbers to Prometheus", "metrics;", "\
        The location answers with all numbers of [metrics.md](metrics.md), as OpenMetrics 1.0 where the client \
        prefers that (`Accept`), and otherwise in the text format 0.0.4 of Prometheus.\n\n\
        Programs and browsers on this machine may see them. `allow`, `auth_basic` and `auth_request` let others, if \
        they stand in this location itself: lines of the blocks around it can only refuse. A request that a proxy on \
        this machine sends on for another client is not of this machine.\n\n\
        The `Host` of programs on this machine, and of browsers, must be `localhost`, an IP address or a name in a \
        `server_name`. A foreign page could make a browser send other requests. Patterns and names that end with `*` \
        do not count. A password needs no such name. What a page of another site embeds is refused as well.");
}
