//! Table of the `esi*` directives (Edge Side Includes).

use super::{Context, Directive};

const EVERYWHERE: &[Context] = &[Context::Http, Context::Server, Context::Location];

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("esi", EVERYWHERE)
        .takes(1, 1, "off | on | always").inherited()
        .default("off")
        .short("puts pages together from fragments (Edge Side Includes)")
        .long("\
            A page includes a fragment by `<esi:include src=\"/path\"/>`. Each fragment is a page of its own: \
            it has its own lifetime, tags and cache key, or is not stored at all. So a page that all visitors \
            share can hold a cart or a name. Fragments are fetched at the same time. They are asked for with \
            the visitor's own cookies and fields, at the fragment's own URL.\n\
            \n\
            With `on`, the page must ask for it with the field `Surrogate-Control: content=\"ESI/1.0\"`. With \
            `always`, every page of the types in `esi_types` is put together: use it only where no visitor's text can get \
            into a page unescaped. A fragment is treated as a page: if it does not ask, its tags are text.\n\
            \n\
            The application is told `Surrogate-Capability: mayfly=\"ESI/1.0\"`, and is not told what compression \
            the client accepts. The client gets `Cache-Control: private, no-cache` and no validators. \
            `include` (with `alt` and `onerror`), `choose`, `try`, `vars`, `remove`, `comment` and `<!--esi -->` are \
            understood. Values of variables are escaped where they are put in.")
        .example("esi on;"),
    Directive::new("esi_max_depth", EVERYWHERE)
        .takes(1, 1, "NUMBER").inherited()
        .default("5")
        .short("limits how deep fragments include fragments")
        .long("A fragment beyond this fails, and the error log says so. The largest number is 20.")
        .example("esi_max_depth 2;"),
    Directive::new("esi_max_includes", EVERYWHERE)
        .takes(1, 1, "NUMBER").inherited()
        .default("200")
        .short("limits how many fragments a page includes, at all depths together")
        .long("\
            The whole page has one count: fragments of fragments, alternatives and parts of SSI in it are counted as \
            well. Fragments beyond it fail, and the error log says so once for the page.")
        .example("esi_max_includes 20;"),
    Directive::new("esi_timeout", EVERYWHERE)
        .takes(1, 1, "TIME").inherited()
        .default("10s")
        .short("limits how long a page waits for a fragment")
        .long("\
            If a fragment has not begun to answer by then, it fails: its `alt` is asked for, or the page goes on \
            without it.")
        .example("esi_timeout 500ms;"),
    Directive::new("esi_types", EVERYWHERE)
        .takes(1, usize::MAX, "TYPE ...").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("sets the media types of the pages that `esi always` puts together")
        .long("`text/html` is always included. `*` means all types.")
        .example("esi_types application/xhtml+xml;"),
];
