//! Table of the `esi*` directives (Edge Side Includes).

use super::Directive;
use super::declaration::*;
use crate::model::EsiMode;

table! {
    ESI: Choice<EsiMode> = choice("esi", LEVELS, "off | on | always", &[
        ("off", EsiMode::Off), ("on", EsiMode::On), ("always", EsiMode::Always),
    ])
        .default("off").text("puts pages together from fragments (Edge Side Includes)", "esi on;", "\
        A page includes a fragment by `<esi:include src=\"/path\"/>`. Each fragment is a page of its own: it has its \
        own lifetime, tags and cache key, or is not stored at all. So a page that all visitors share can hold a cart \
        or a name. Fragments are fetched at the same time. They are asked for with the visitor's own cookies and \
        fields, at the fragment's own URL.\n\n\
        With `on`, the page must ask for it with the field `Surrogate-Control: content=\"ESI/1.0\"`. With `always`, \
        every page of the types in `esi_types` is put together: use it only where no visitor's text can get into a \
        page unescaped. A fragment is treated as a page: if it does not ask, its tags are text.\n\n\
        The application is told `Surrogate-Capability: mayfly=\"ESI/1.0\"`, and is not told what compression the \
        client accepts. The client gets `Cache-Control: private, no-cache` and no validators. `include` (with `alt` \
        and `onerror`), `choose`, `try`, `vars`, `remove`, `comment` and `<!--esi -->` are understood. Values of \
        variables are escaped where they are put in.");
    ESI_MAX_DEPTH: Number = number("esi_max_depth", LEVELS).range(0, 20).default("5").text(
        "limits how deep fragments include fragments", "esi_max_depth 2;",
        "A fragment beyond this fails, and the error log says so. The largest number is 20.");
    ESI_MAX_INCLUDES: Number = number("esi_max_includes", LEVELS).default("200").text(
        "limits how many fragments a page includes, at all depths together", "esi_max_includes 20;", "\
        The whole page has one count: fragments of fragments, alternatives and parts of SSI in it are counted as \
        well. Fragments beyond it fail, and the error log says so once for the page.");
    ESI_TIMEOUT: Time = time("esi_timeout", LEVELS).default("10s").text(
        "limits how long a page waits for a fragment", "esi_timeout 500ms;", "\
        If a fragment has not begun to answer by then, it fails: its `alt` is asked for, or the page goes on without \
        it.");
    ESI_TYPES: Lines = lines("esi_types", LEVELS, (1, MANY), "TYPE ...").default("text/html").inherited_as_a_whole().repeats().text(
        "sets the media types of the pages that `esi always` puts together", "esi_types application/xhtml+xml;",
        "`text/html` is always included. `*` means all types.");
}
