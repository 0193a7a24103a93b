//! Table of the directives that bound the cost of a page's fragments, in either language (`esi`, `ssi`).

use super::{Context, Directive};

const EVERYWHERE: &[Context] = &[Context::Http, Context::Server, Context::Location];

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("fragments_max_bytes", EVERYWHERE)
        .takes(1, 1, "SIZE").inherited()
        .default("64m")
        .short("limits how long the fragments of a page are together")
        .long("\
            It holds for all fragments of a page with ESI or SSI, at all depths together, and for the values of \
            variables in it. A fragment whose length is known to be too much fails; one that turns out to be is cut off. \
            The value of the location of the page counts, also in the other limits of this kind.")
        .example("fragments_max_bytes 4m;"),
    Directive::new("fragments_max_fetches", EVERYWHERE)
        .takes(1, 1, "NUMBER").inherited()
        .default("200")
        .short("limits how often upstreams are asked for the fragments of a page")
        .long("\
            Each run of PHP counts, at all depths together; a fragment from memory costs none. Fragments beyond this \
            fail, and the error log says so once for the page. How many are asked for at the same time is \
            bounded as well: 16, and three of four workers.")
        .example("fragments_max_fetches 50;"),
    Directive::new("fragments_max_time", EVERYWHERE)
        .takes(1, 1, "TIME").inherited()
        .default("60s")
        .short("limits how long a page waits for its fragments")
        .long("\
            The times that the page waits are added up; the time that the client takes to read is not counted. Then \
            fragments that are not there fail, no other one begins, and one that is being sent is cut off.")
        .example("fragments_max_time 10s;"),
];
