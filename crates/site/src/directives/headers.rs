//! Fields added to responses, and their charset.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("add_after_body", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "PATH").inherited()
        .short("append what another path of this site says")
        .long("The body of a subrequest follows the response's own. Holds for responses with status 200 of the types in `addition_types`; an empty value takes an inherited one away.")
        .example("add_after_body /footer.html;"),
    Directive::new("add_before_body", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "PATH").inherited()
        .short("prepend what another path of this site says")
        .long("As `add_after_body`, ahead of the response's own body.")
        .example("add_before_body /header.html;"),
    Directive::new("add_header", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(2, 3, "NAME VALUE [always]").inherited_as_a_whole().repeats()
        .short("add a field to responses")
        .long("Holds for 200, 201, 204, 206, 301, 302, 303, 304, 307 and 308, with `always` for all. The value may have variables; an empty value adds nothing. One line at a level replaces all inherited ones.")
        .example("add_header X-Cache $upstream_cache_status always;"),
    Directive::new("add_trailer", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(2, 3, "NAME VALUE [always]").inherited_as_a_whole().repeats()
        .short("add a field behind the body")
        .long("As `add_header`, for what is known only at the end. It needs a chunked response.")
        .example("add_trailer X-Time $request_time;"),
    Directive::new("addition_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ...").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("types that something is added to")
        .long("For `add_before_body` and `add_after_body`. `*` is all.")
        .example("addition_types text/html text/plain;"),
    Directive::new("charset", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "NAME | off").inherited()
        .default("off")
        .short("the charset of text responses")
        .long("Added to `Content-Type` of the types in `charset_types`. Where `source_charset` names another one, the body is converted by a `charset_map`.")
        .example("charset utf-8;"),
    Directive::new("charset_map", &[Context::Http])
        .takes(2, 2, "CHARSET CHARSET { CODE CODE; ... }").entries().repeats()
        .short("a table between two charsets")
        .long("Codes are in hexadecimal. The first charset has single bytes, the second single bytes too, or it is utf-8. The table serves both ways. Bytes from 80 without a line become `?`; characters of utf-8 without one become `&#NUMBER;`.")
        .example("charset_map koi8-r utf-8 { C0 D18E; C1 D0B0; }"),
    Directive::new("charset_types", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "TYPE ...").inherited_as_a_whole().repeats()
        .default("text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml")
        .short("types that get a charset")
        .long("`text/html` always counts; `*` is all.")
        .example("charset_types text/css application/json;"),
    Directive::new("expires", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 2, "[modified] TIME | epoch | max | off").inherited()
        .default("off")
        .short("how long browsers may keep a response")
        .long("Sets `Expires` and `Cache-Control`. A time counts from now, with `modified` from the last change of the file, with `@` it is a time of day; a negative one forbids keeping. `max` is ten years, `epoch` never, `off` adds nothing.")
        .example("expires 30d;"),
    Directive::new("override_charset", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("add the charset to upstreams' responses too")
        .long("With `on`, the charset that an upstream named is replaced.")
        .example("override_charset on;"),
    Directive::new("source_charset", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "NAME").inherited()
        .short("the charset that responses are in")
        .long("Where `charset` names another, the body is converted by a `charset_map` of the two. Files to 1 MB are converted in memory, so that ranges of them work; longer ones as they are sent.")
        .example("source_charset utf-8;"),
];
