//! Index files, listings and content without files.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("autoindex", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("list folders")
        .long("With `on`, a folder without an index file is shown as a list.")
        .example("autoindex on;"),
    Directive::new("autoindex_exact_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sizes in bytes")
        .long("With `off`, sizes are rounded to kilobytes, megabytes and gigabytes.")
        .example("autoindex_exact_size off;"),
    Directive::new("autoindex_format", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "html | json | jsonp | xml").inherited()
        .default("html")
        .short("the form of lists")
        .long("HTML for people; JSON, JSONP and XML for programs.")
        .example("autoindex_format json;"),
    Directive::new("autoindex_localtime", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("times in local time")
        .long("With `off`, times are in GMT.")
        .example("autoindex_localtime on;"),
    Directive::new("empty_gif", &[Context::Location])
        .takes(0, 0, "").handles_content()
        .short("a transparent picture of one pixel")
        .long("Every request of the location gets it. It is sent from memory.")
        .example("empty_gif;"),
    Directive::new("index", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "FILE ...").inherited_as_a_whole().repeats()
        .default("index.html")
        .short("files that stand for a folder")
        .long("The names are tried in order where the path ends in a slash. The first that is there is taken by an internal redirect, so that `index.php` finds its location.")
        .example("index index.php index.html;"),
    Directive::new("stub_status", &[Context::Server, Context::Location])
        .takes(0, 1, "[on]").handles_content()
        .short("a page with counters")
        .long("Connections that are open, accepted and handled, and requests, in nginx's form, which monitoring tools read.")
        .example("stub_status;"),
];
