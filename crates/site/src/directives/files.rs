//! Table of directives about index files and listings, and about responses that need no file
//! (`empty_gif`, `stub_status`).

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("autoindex", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("shows a list of files for a directory")
        .long("\
            With `on`, a request for a directory without an index file gets a list of its files. With \
            `off`, it gets 403.")
        .example("autoindex on;"),
    Directive::new("autoindex_exact_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether lists show exact sizes")
        .long("\
            With `on`, sizes are in bytes. With `off`, they are rounded to kilobytes, megabytes and \
            gigabytes.")
        .example("autoindex_exact_size off;"),
    Directive::new("autoindex_format", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "html | json | jsonp | xml").inherited()
        .default("html")
        .short("sets the format of lists")
        .long("`html` is for people, and `json`, `jsonp` and `xml` are for programs.")
        .example("autoindex_format json;"),
    Directive::new("autoindex_localtime", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether lists show local time")
        .long("With `off`, times are in GMT.")
        .example("autoindex_localtime on;"),
    Directive::new("empty_gif", &[Context::Location])
        .takes(0, 0, "").handles_content()
        .short("serves a transparent picture of one pixel")
        .long("Every request for the location gets the picture, from memory. Use it for counting views.")
        .example("empty_gif;"),
    Directive::new("index", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "FILE ...").inherited_as_a_whole().repeats()
        .default("index.html")
        .short("sets the files for a directory")
        .long("\
            If the path ends in a slash, the names are tried in order. The first file that exists is \
            served by an internal redirect: `/index.php` is then handled by the location for PHP.")
        .example("index index.php index.html;"),
    Directive::new("random_index", &[Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("serves one of the files of a directory by chance")
        .long("\
            A request for a directory gets a file that is in it, another one each time; names with a dot before are \
            left out. It goes before `index`, which is used where the directory has no file.")
        .example("random_index on;"),
    Directive::new("stub_status", &[Context::Server, Context::Location])
        .takes(0, 1, "[on]").handles_content()
        .short("serves a page with counters of the server")
        .long("\
            The page has the form of nginx, which monitoring programs read: connections that are open, \
            accepted and handled, and the number of requests. Who may see it is decided as with `metrics`: \
            programs on this machine, and whom `allow`, `auth_basic` or `auth_request` of this location \
            itself let in.")
        .example("stub_status;"),
];
