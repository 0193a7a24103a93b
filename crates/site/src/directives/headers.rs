//! Table of directives that add something to responses: fields, charsets, other bodies.

use super::Directive;
use super::declaration::*;

table! {
    _ = lines("add_after_body", LEVELS, (1, 1), "PATH").inherited().text(
        "adds another path of this site after the body", "add_after_body /footer.html;", "\
        The body of a subrequest to the path follows the body of the response. It holds for responses with status \
        200 and a type from `addition_types`. An empty value removes an inherited one.");
    _ = lines("add_before_body", LEVELS, (1, 1), "PATH").inherited().text(
        "adds another path of this site before the body", "add_before_body /header.html;",
        "It works like `add_after_body`, before the body of the response.");
    _ = lines("add_header", LEVELS_AND_IF, (2, 3), "NAME VALUE [always]").inherited_as_a_whole().repeats().text(
        "adds a field to responses", "add_header X-Cache $upstream_cache_status always;", "\
        The field is added if the status is 200, 201, 204, 206, 301, 302, 303, 304, 307 or 308. With `always`, it is \
        added to all responses. The value may contain variables. A field with an empty value is not added. If a \
        level has one line or more, nothing is inherited from the outer levels, unless `add_header_inherit` says \
        otherwise.");
    _ = lines("add_header_inherit", LEVELS_AND_IF, (1, 1), "on | off | merge").default("on").inherited().text(
        "sets how add_header is inherited", "add_header_inherit merge;", "\
        With `on`, a level that has no line of its own has those of the level around it. With `merge`, they are \
        added to its own lines, behind them. With `off`, they do not hold here. The value is itself inherited: \
        `merge` in `http` holds everywhere.");
    _ = lines("add_trailer", LEVELS_AND_IF, (2, 3), "NAME VALUE [always]").inherited_as_a_whole().repeats().text(
        "adds a field after the body of responses", "add_trailer X-Time $request_time;", "\
        It works like `add_header`, for values that are known only when the body has been sent. It has an effect on \
        chunked responses only.");
    _ = lines("add_trailer_inherit", LEVELS_AND_IF, (1, 1), "on | off | merge").default("on").inherited().text(
        "sets how add_trailer is inherited", "add_trailer_inherit merge;",
        "It works like `add_header_inherit`, for `add_trailer`.");
    ADDITION_TYPES: Lines = lines("addition_types", LEVELS, (1, MANY), "TYPE ...")
        .default("text/html").inherited_as_a_whole().repeats().text(
        "sets the media types for add_before_body and add_after_body", "addition_types text/html text/plain;",
        "Only responses with one of these types are changed. `*` means all types.");
    _ = lines("charset", LEVELS_AND_IF, (1, 1), "NAME | off").default("off").inherited().text(
        "sets the charset of text responses", "charset utf-8;", "\
        It is added to the field `Content-Type` of responses with a type from `charset_types`. If `source_charset` \
        names another charset, the body is converted, for which a `charset_map` is needed.");
    _ = lines("charset_map", HTTP, (2, 2), "CHARSET CHARSET { CODE CODE; ... }").entries().repeats().text(
        "defines a table to convert one charset into another", "charset_map koi8-r utf-8 { C0 D18E; C1 D0B0; }", "\
        Each entry is a code of the first charset and a code of the second, in hexadecimal. The first charset has \
        one byte for each character. The second one has too, or is utf-8. The table is used in both directions. A \
        byte from 80 on without an entry becomes `?`. A character of utf-8 without an entry becomes `&#NUMBER;`.");
    CHARSET_TYPES: Lines = lines("charset_types", LEVELS, (1, MANY), "TYPE ...")
        .default("text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml").inherited_as_a_whole().repeats().text(
        "sets the media types that get a charset", "charset_types text/css application/json;",
        "`text/html` is always included. `*` means all types.");
    _ = lines("expires", LEVELS_AND_IF, (1, 2), "[modified] TIME | epoch | max | off")
        .default("off").inherited().text("sets how long browsers may keep a response", "expires 30d;", "\
        It sets the fields `Expires` and `Cache-Control`:\n\n\
        - a time: from now on; a negative time forbids keeping the response,\n\
        - `modified` and a time: from the modification time of the file on,\n\
        - `@15h30m`: until this time of the day,\n\
        - `max`: ten years,\n\
        - `epoch`: the response must not be kept,\n\
        - `off`: no field is added.\n\n\
        The value may be a variable.");
    _ = lines("more_clear_headers", LEVELS_AND_IF, (1, MANY), "[-s STATUSES] [-t TYPES] NAME ...").inherited_and_joined().repeats().text(
        "removes fields of responses", "more_clear_headers X-Powered-By 'X-Debug-*';",
        "It works like `more_set_headers`. `*` at the end of a name stands for any text.");
    _ = lines("more_set_headers", LEVELS_AND_IF, (1, MANY), "[-s STATUSES] [-t TYPES] 'NAME: VALUE' ...").inherited_and_joined().repeats().text(
        "sets fields of responses, in place of those that they have", "more_set_headers 'X-Frame-Options: SAMEORIGIN';", "\
        It is from the module headers-more. A field with this name, of the upstream or of the server, is replaced; \
        an empty value removes it. It holds for all statuses, or for those after `-s`, and for all media types, or \
        for those after `-t`, in quotes and with spaces between them. Lines of outer levels are applied first, and \
        `add_header` afterwards. `Server` sets what `server_tokens` sets. Fields by which the server delimits a body \
        or keeps a connection cannot be set.");
    OVERRIDE_CHARSET: Flag = flag("override_charset", LEVELS_AND_IF, "off").text(
        "sets whether charset replaces the one of an upstream", "override_charset on;",
        "With `on`, `charset` also holds for responses of upstreams that name a charset themselves.");
    _ = lines("source_charset", LEVELS_AND_IF, (1, 1), "NAME").inherited().text(
        "sets the charset in which responses are written", "source_charset utf-8;", "\
        If `charset` names another one, the body is converted with the `charset_map` of the two. Bodies up to 1 MB \
        are converted in memory and keep their length and ranges. Longer bodies, and those of upstreams, are \
        converted while they are sent.");
    _ = lines("sub_filter", LEVELS, (2, 2), "STRING REPLACEMENT").inherited_as_a_whole().repeats().text(
        "replaces a string in the body of responses", "sub_filter '<a href=\"http://example.org/' '<a href=\"https://$host/';", "\
        The case of ASCII letters does not matter. Both may contain variables, and then are made once for a \
        response; a string that is empty or longer than 256 bytes because of its variables is not looked for. Of \
        several lines, the first string in the body counts; of those that begin at the same byte, the one of the \
        first line. Only bodies of a type from `sub_filter_types` are changed, whatever the status is, except 206 \
        (parts of a body) and compressed bodies: use `gunzip on`, or `proxy_set_header Accept-Encoding \"\"`. The \
        cache stores the body of the upstream; each visitor gets it with the replacements of their own request. The \
        body is changed before SSI is run, and before it is compressed. If a level has one line or more, nothing is \
        inherited from the outer levels.");
    SUB_FILTER_LAST_MODIFIED: Flag = flag("sub_filter_last_modified", LEVELS, "off").text(
        "sets whether responses changed by sub_filter keep Last-Modified", "sub_filter_last_modified on;",
        "With `on`, `ETag` is kept too, as a weak one. With `off`, both are removed.");
    SUB_FILTER_ONCE: Flag = flag("sub_filter_once", LEVELS, "on").text(
        "sets whether each string of sub_filter is replaced only once", "sub_filter_once off;",
        "With `off`, it is replaced wherever it is found.");
    SUB_FILTER_TYPES: Lines = lines("sub_filter_types", LEVELS, (1, MANY), "TYPE ...")
        .default("text/html").inherited_as_a_whole().repeats().text(
        "sets the media types for sub_filter", "sub_filter_types text/css application/json;",
        "`text/html` is always included. `*` means all types.");
    _ = lines("userid", LEVELS, (1, 1), "on | v1 | log | off").default("off").inherited().text(
        "gives clients a cookie by which they are known again", "userid on;", "\
        A client without the cookie gets one with the response; stored responses have none. `$uid_got` is the \
        identifier that a client sent, and `$uid_set` the one that it gets, for logs. `log` gives out none. If `map` \
        or `set` makes `$uid_reset`, a value other than empty and `0` replaces the client's cookie, and `log` writes \
        a line about it.");
    _ = lines("userid_domain", LEVELS, (1, 1), "NAME | none").default("none").inherited().text(
        "sets the domain of the cookie of userid", "userid_domain example.org;",
        "With `none`, the cookie is for this host alone.");
    _ = lines("userid_expires", LEVELS, (1, 1), "TIME | max | off").default("off").inherited().text(
        "sets how long browsers keep the cookie of userid", "userid_expires 365d;",
        "With `off`, it ends with the browser. `max` is the end of 2037.");
    _ = lines("userid_flags", LEVELS, (1, 3), "off | secure | httponly | samesite=strict|lax|none ...")
        .default("off").inherited().text(
        "sets flags of the cookie of userid", "userid_flags secure httponly samesite=lax;",
        "They are sent with the cookie.");
    _ = lines("userid_mark", LEVELS, (1, 1), "LETTER | DIGIT | = | off").default("off").inherited().text(
        "sends the cookie of userid again, with a mark", "userid_mark a;", "\
        The mark stands in place of the padding. A client whose cookie does not have it gets the cookie again with \
        the same identifier, so that a changed domain or time reaches it.");
    _ = lines("userid_name", LEVELS, (1, 1), "NAME").default("uid").inherited().text(
        "sets the name of the cookie of userid", "userid_name visitor;",
        "The variables `$uid_got` and `$uid_set` begin with it.");
    _ = lines("userid_p3p", LEVELS, (1, 1), "TEXT | none").default("none").inherited().text(
        "sends the field P3P with the cookie of userid", "userid_p3p policyref=/w3c/p3p.xml;",
        "Old browsers asked for it.");
    _ = lines("userid_path", LEVELS, (1, 1), "PATH").default("/").inherited().text(
        "sets the path of the cookie of userid", "userid_path /shop;",
        "Browsers send the cookie for addresses below it.");
    _ = number("userid_service", LEVELS).text("sets the number of this server in identifiers", "userid_service 7;", "\
        It keeps the identifiers of several servers apart. Without it, the number is the end of the server's \
        address, and 0 for `v1`.");
}
