//! The page that lists all reasons: `docs/cache-reasons.md`.

use std::fmt::Write;

use cache_decision::advice;
use http_cache::{DecidedBy, Reason};

const NOT_LEARNED: &str = "
## Why a page is not learned

With `cache_learn`, a page whose data cannot be followed has its ordinary lifetime ([learned pages](learned.md)). `mayfly
explain` shows one of these words, and the statement, address or file (`because of`). The metric
`mayfly_not_learned_renders_total` counts such pages.

| word | meaning |
| --- | --- |
";

const BEGINNING: &str = "\
# Why a page does not come from memory

Each decision of the cache against a request or a response has one word. It is the same in `$cache_reason`, in the
`detail` of the field `Cache-Status` (RFC 9211), in the log, and in what `mayfly warm` and `mayfly explain` say:

```console
$ mayfly explain https://example.org/cart -H 'Cookie: session=1'
```

The command asks the running server, which it finds as `mayfly purge` does. The answer says which server, location and
upstream the request comes to, the cache key, whether a response is stored, its age and lifetime with the line of the
configuration or the field that gave it, its variants and tags, which parts of a request are in the key, and what
would help. No upstream is asked and nothing is counted, unless `--ask` lets the request be made. `--from ADDRESS`
says as which client: `allow`, `geo`, limits and the rights to purge depend on it. Without it, the client is this
machine. `--json` is for scripts.

A request that goes past the cache keeps that reason, whatever the response says. A response that is stored has
none, unless it took the place of another variant.

`mayfly explain --search /news/` and `--tag news:5` list what is stored, and `--entry ID` shows one stored response.
Cookies are not shown, and values of arguments only where `cache_show_args` names them.

This page is made from the tables in the program.
";

/// The page.
#[must_use]
pub fn reference() -> String {
    let mut page = BEGINNING.to_owned();
    for (decided_by, title) in [
        (DecidedBy::Request, "Known before anybody is asked"),
        (
            DecidedBy::Moment,
            "Depends on what is stored and who else asks",
        ),
        (
            DecidedBy::Response,
            "Known when the head of the response is there",
        ),
        (DecidedBy::Body, "Known at the end of the response"),
    ] {
        // A text takes all that is written.
        let _ = write!(
            page,
            "\n## {title}\n\n| word | meaning | what helps |\n| --- | --- | --- |\n"
        );
        let reasons = Reason::ALL
            .iter()
            .filter(|why| why.decided_by() == decided_by);
        for why in reasons {
            let advice = advice::on(*why);
            let _ = writeln!(page, "| `{}` | {} | {advice} |", why.word(), why.sentence());
        }
    }
    page.push_str(NOT_LEARNED);
    for why in learning::Reason::ALL {
        let _ = writeln!(page, "| `{}` | {} |", why.word(), why.sentence());
    }
    page
}
