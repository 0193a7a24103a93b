//! Table of the directives that show what the server knows about itself. `stub_status` stands in
//! `files`.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("dashboard", &[Context::Location])
        .takes(0, 0, "").handles_content()
        .short("shows the server's numbers in a browser")
        .long("\
            The location answers with a page that draws the numbers of [metrics.md](metrics.md), as they are now \
            and over the last hour. It also lists the pages that cost PHP most, those that are asked for most, \
            and those that are not stored, with the reason. Of arguments only the names are shown, and of \
            cookies nothing. The page is part of the program and loads nothing from elsewhere.\n\n\
            Who may see it is decided as with `metrics`.")
        .example("dashboard;"),
    Directive::new("metrics", &[Context::Location])
        .takes(0, 0, "").handles_content()
        .short("shows the server's numbers to Prometheus")
        .long("\
            The location answers with all numbers of [metrics.md](metrics.md), as OpenMetrics 1.0 where the \
            client prefers that (`Accept`), and otherwise in the text format 0.0.4 of Prometheus.\n\n\
            `allow`, `deny`, `auth_basic` and `auth_request` say who may see them. Without any of them it is \
            programs on this machine alone, as it is where `allow` and `deny` do not end with `all`. A request that a proxy on this machine sends on for somebody \
            else is refused. So is one whose `Host` is not `localhost`, an IP address or a name in a \
            `server_name`: a page of somebody else could make a browser on this machine send it. Patterns and \
            names that end with `*` do not count.")
        .example("metrics;"),
];
