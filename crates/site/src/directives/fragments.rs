//! Table of the directives that bound the cost of a page's fragments, in either language (`esi`, `ssi`).

use super::Directive;
use super::declaration::*;

table! {
    FRAGMENTS_MAX_BYTES: Size = size("fragments_max_bytes", LEVELS).default("64m").text(
        "limits how long the fragments of a page are together", "fragments_max_bytes 4m;", "\
        It holds for all fragments of a page with ESI or SSI, at all depths together, and for the values of \
        variables in it. A fragment whose length is known to be too much fails; one that turns out to be is cut off. \
        The value of the location of the page counts, also in the other limits of this kind.");
    FRAGMENTS_MAX_FETCHES: Number = number("fragments_max_fetches", LEVELS).default("200").text(
        "limits how often upstreams are asked for the fragments of a page", "fragments_max_fetches 50;", "\
        Each run of PHP counts, at all depths together; a fragment from memory costs none. Fragments beyond this \
        fail, and the error log says so once for the page. How many are asked for at the same time is bounded as \
        well: 16, and three of four workers.");
    FRAGMENTS_MAX_TIME: Time = time("fragments_max_time", LEVELS).default("60s").text(
        "limits how long a page waits for its fragments", "fragments_max_time 10s;", "\
        The times that the page waits are added up; the time that the client takes to read is not counted. Then \
        fragments that are not there fail, no other one begins, and one that is being sent is cut off.");
}
