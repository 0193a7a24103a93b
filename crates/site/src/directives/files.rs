//! Table of directives about index files, listings and videos, and about responses that need no
//! file (`empty_gif`, `stub_status`).

use super::{Context, Directive};

/// The reason for ignoring directives about parts of videos that a player names by their time.
const NO_SEEKING: &str = "videos are served whole, and ranges of bytes work";

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
    Directive::new("flv", &[Context::Location])
        .takes(0, 0, "")
        .missing(NO_SEEKING)
        .short("cuts Flash videos where a player asks for it")
        .long("The files are served whole, and `?start=` does not count.")
        .example("flv;"),
    Directive::new("index", &[Context::Http, Context::Server, Context::Location])
        .takes(1, usize::MAX, "FILE ...").inherited_as_a_whole().repeats()
        .default("index.html")
        .short("sets the files for a directory")
        .long("\
            If the path ends in a slash, the names are tried in order. The first file that exists is \
            served by an internal redirect: `/index.php` is then handled by the location for PHP.")
        .example("index index.php index.html;"),
    Directive::new("mp4", &[Context::Location])
        .takes(0, 0, "")
        .missing(NO_SEEKING)
        .short("cuts MP4 videos where a player asks for it")
        .long("\
            The files are served whole, and `?start=` and `?end=` do not count. Players of browsers ask for \
            ranges instead, which work.")
        .example("mp4;"),
    Directive::new("mp4_buffer_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("512k")
        .ignored("nothing is read for `mp4`")
        .short("sets the memory for the beginning of an MP4 video")
        .long("The line may be removed.")
        .example("mp4_buffer_size 1m;"),
    Directive::new("mp4_max_buffer_size", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "SIZE").inherited()
        .default("10m")
        .ignored("nothing is read for `mp4`")
        .short("limits the memory for the beginning of an MP4 video")
        .long("The line may be removed.")
        .example("mp4_max_buffer_size 5m;"),
    Directive::new("mp4_start_key_frame", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .ignored("videos are served whole")
        .short("sets whether a cut MP4 video begins with a key frame")
        .long("The line may be removed.")
        .example("mp4_start_key_frame on;"),
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
