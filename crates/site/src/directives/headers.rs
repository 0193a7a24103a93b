//! Table of directives that add something to responses: fields, charsets, other bodies.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("add_after_body", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "PATH").inherited()
        .short("adds another path of this site after the body")
        .long("\
            The body of a subrequest to the path follows the body of the response. It holds for \
            responses with status 200 and a type from `addition_types`. An empty value removes an \
            inherited one.")
        .example("add_after_body /footer.html;"),
    Directive::new("add_before_body", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "PATH").inherited()
        .short("adds another path of this site before the body")
        .long("It works like `add_after_body`, before the body of the response.")
        .example("add_before_body /header.html;"),
    Directive::new("add_header", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(2, 3, "NAME VALUE [always]").inherited_as_a_whole().repeats()
        .short("adds a field to responses")
        .long("\
            The field is added if the status is 200, 201, 204, 206, 301, 302, 303, 304, 307 or 308. With \
            `always`, it is added to all responses. The value may contain variables. A field with an \
            empty value is not added. If a level has one line or more, nothing is inherited from the \
            outer levels, unless `add_header_inherit` says otherwise.")
        .example("add_header X-Cache $upstream_cache_status always;"),
    Directive::new("add_header_inherit", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off | merge").inherited()
        .default("on")
        .short("sets how add_header is inherited")
        .long("\
            With `on`, a level that has no line of its own has those of the level around it. With `merge`, \
            they are added to its own lines, behind them. With `off`, they do not hold here. The value is \
            itself inherited: `merge` in `http` holds everywhere.")
        .example("add_header_inherit merge;"),
    Directive::new("add_trailer", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(2, 3, "NAME VALUE [always]").inherited_as_a_whole().repeats()
        .short("adds a field after the body of responses")
        .long("\
            It works like `add_header`, for values that are known only when the body has been sent. It \
            has an effect on chunked responses only.")
        .example("add_trailer X-Time $request_time;"),
    Directive::new("add_trailer_inherit", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off | merge").inherited()
        .default("on")
        .short("sets how add_trailer is inherited")
        .long("\
            It works like `add_header_inherit`, for `add_trailer`.")
        .example("add_trailer_inherit merge;"),
    Directive::new("addition_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ...").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("sets the media types for add_before_body and add_after_body")
        .long("Only responses with one of these types are changed. `*` means all types.")
        .example("addition_types text/html text/plain;"),
    Directive::new("charset", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "NAME | off").inherited()
        .default("off")
        .short("sets the charset of text responses")
        .long("\
            It is added to the field `Content-Type` of responses with a type from `charset_types`. If \
            `source_charset` names another charset, the body is converted, for which a `charset_map` is \
            needed.")
        .example("charset utf-8;"),
    Directive::new("charset_map", &[Context::Http])
        .takes(2, 2, "CHARSET CHARSET { CODE CODE; ... }").entries().repeats()
        .short("defines a table to convert one charset into another")
        .long("\
            Each entry is a code of the first charset and a code of the second, in hexadecimal. The \
            first charset has one byte for each character. The second one has too, or is utf-8. The \
            table is used in both directions. A byte from 80 on without an entry becomes `?`. A \
            character of utf-8 without an entry becomes `&#NUMBER;`.")
        .example("charset_map koi8-r utf-8 { C0 D18E; C1 D0B0; }"),
    Directive::new("charset_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ...").inherited_as_a_whole().repeats()
        .default("text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml")
        .short("sets the media types that get a charset")
        .long("`text/html` is always included. `*` means all types.")
        .example("charset_types text/css application/json;"),
    Directive::new("expires", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 2, "[modified] TIME | epoch | max | off").inherited()
        .default("off")
        .short("sets how long browsers may keep a response")
        .long("\
            It sets the fields `Expires` and `Cache-Control`:\n\n\
            - a time: from now on; a negative time forbids keeping the response,\n\
            - `modified` and a time: from the modification time of the file on,\n\
            - `@15h30m`: until this time of the day,\n\
            - `max`: ten years,\n\
            - `epoch`: the response must not be kept,\n\
            - `off`: no field is added.\n\n\
            The value may be a variable.")
        .example("expires 30d;"),
    Directive::new("more_clear_headers", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, usize::MAX, "[-s STATUSES] [-t TYPES] NAME ...").inherited_and_joined().repeats()
        .short("removes fields of responses")
        .long("\
            It works like `more_set_headers`. `*` at the end of a name stands for any text.")
        .example("more_clear_headers X-Powered-By 'X-Debug-*';"),
    Directive::new("more_set_headers", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, usize::MAX, "[-s STATUSES] [-t TYPES] 'NAME: VALUE' ...").inherited_and_joined().repeats()
        .short("sets fields of responses, in place of those that they have")
        .long("\
            It is from the module headers-more. A field with this name, of the upstream or of the server, is \
            replaced; an empty value removes it. It holds for all statuses, or for those after `-s`, and for all \
            media types, or for those after `-t`, in quotes and with spaces between them. Lines of outer levels \
            are applied first, and `add_header` afterwards. `Server` sets what `server_tokens` sets. Fields by \
            which the server delimits a body or keeps a connection cannot be set.")
        .example("more_set_headers 'X-Frame-Options: SAMEORIGIN';"),
    Directive::new("override_charset", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether charset replaces the one of an upstream")
        .long("With `on`, `charset` also holds for responses of upstreams that name a charset themselves.")
        .example("override_charset on;"),
    Directive::new("source_charset", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "NAME").inherited()
        .short("sets the charset in which responses are written")
        .long("\
            If `charset` names another one, the body is converted with the `charset_map` of the two. \
            Bodies up to 1 MB are converted in memory and keep their length and ranges. Longer bodies, \
            and those of upstreams, are converted while they are sent.")
        .example("source_charset utf-8;"),
    Directive::new("sub_filter", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "STRING REPLACEMENT").inherited_as_a_whole().repeats()
        .short("replaces a string in the body of responses")
        .long("\
            The case of ASCII letters does not matter. Both may contain variables, and then are made once for a \
            response; a string that is empty or longer than 256 bytes because of its variables is not looked for. \
            Of several lines, the first string in the body counts; of those that begin at the same byte, the one of \
            the first line. Only bodies of a type from `sub_filter_types` are changed, whatever the status is, except \
            206 (parts of a body) and compressed bodies: use `gunzip on`, or `proxy_set_header Accept-Encoding \"\"`. \
            The cache stores the body of the upstream; each visitor gets it with the replacements of their own \
            request. The body is changed before SSI is run, and before it is compressed. If a level has one line or \
            more, nothing is inherited from the outer levels.")
        .example("sub_filter '<a href=\"http://example.org/' '<a href=\"https://$host/';"),
    Directive::new("sub_filter_last_modified", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether responses changed by sub_filter keep Last-Modified")
        .long("With `on`, `ETag` is kept too, as a weak one. With `off`, both are removed.")
        .example("sub_filter_last_modified on;"),
    Directive::new("sub_filter_once", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether each string of sub_filter is replaced only once")
        .long("With `off`, it is replaced wherever it is found.")
        .example("sub_filter_once off;"),
    Directive::new("sub_filter_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ...").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("sets the media types for sub_filter")
        .long("`text/html` is always included. `*` means all types.")
        .example("sub_filter_types text/css application/json;"),
    Directive::new("userid", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | v1 | log | off").inherited()
        .default("off")
        .short("gives clients a cookie by which they are known again")
        .long("\
            A client without the cookie gets one with the response; stored responses have none. `$uid_got` is the \
            identifier that a client sent, and `$uid_set` the one that it gets, for logs. `log` gives out none. \
            If `map` or `set` makes `$uid_reset`, a value other than empty and `0` replaces the client's \
            cookie, and `log` writes a line about it.")
        .example("userid on;"),
    Directive::new("userid_domain", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NAME | none").inherited()
        .default("none")
        .short("sets the domain of the cookie of userid")
        .long("With `none`, the cookie is for this host alone.")
        .example("userid_domain example.org;"),
    Directive::new("userid_expires", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME | max | off").inherited()
        .default("off")
        .short("sets how long browsers keep the cookie of userid")
        .long("With `off`, it ends with the browser. `max` is the end of 2037.")
        .example("userid_expires 365d;"),
    Directive::new("userid_flags", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 3, "off | secure | httponly | samesite=strict|lax|none ...").inherited()
        .default("off")
        .short("sets flags of the cookie of userid")
        .long("They are sent with the cookie.")
        .example("userid_flags secure httponly samesite=lax;"),
    Directive::new("userid_mark", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "LETTER | DIGIT | = | off").inherited()
        .default("off")
        .short("sends the cookie of userid again, with a mark")
        .long("\
            The mark stands in place of the padding. A client whose cookie does not have it gets the cookie \
            again with the same identifier, so that a changed domain or time reaches it.")
        .example("userid_mark a;"),
    Directive::new("userid_name", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NAME").inherited()
        .default("uid")
        .short("sets the name of the cookie of userid")
        .long("The variables `$uid_got` and `$uid_set` begin with it.")
        .example("userid_name visitor;"),
    Directive::new("userid_p3p", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TEXT | none").inherited()
        .default("none")
        .short("sends the field P3P with the cookie of userid")
        .long("Old browsers asked for it.")
        .example("userid_p3p policyref=/w3c/p3p.xml;"),
    Directive::new("userid_path", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "PATH").inherited()
        .default("/")
        .short("sets the path of the cookie of userid")
        .long("Browsers send the cookie for addresses below it.")
        .example("userid_path /shop;"),
    Directive::new("userid_service", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "NUMBER").inherited()
        .short("sets the number of this server in identifiers")
        .long("\
            It keeps the identifiers of several servers apart. Without it, the number is the end of the \
            server's address, and 0 for `v1`.")
        .example("userid_service 7;"),
];
