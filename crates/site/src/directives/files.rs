//! Table of directives about index files, listings and videos, and about responses that need no
//! file (`empty_gif`, `stub_status`).

use super::declaration::*;
use super::{Context, Directive};
use crate::model::AutoindexFormat;

/// The reason for ignoring directives about parts of videos that a player names by their time.
const NO_SEEKING: &str = "videos are served whole, and ranges of bytes work";

table! {
    AUTOINDEX: Flag = flag("autoindex", LEVELS, "off").text(
        "shows a list of files for a directory", "autoindex on;", "\
        With `on`, a request for a directory without an index file gets a list of its files. With `off`, it gets \
        403.");
    AUTOINDEX_EXACT_SIZE: Flag = flag("autoindex_exact_size", LEVELS, "on").text(
        "sets whether lists show exact sizes", "autoindex_exact_size off;",
        "With `on`, sizes are in bytes. With `off`, they are rounded to kilobytes, megabytes and gigabytes.");
    AUTOINDEX_FORMAT: Choice<AutoindexFormat> = choice("autoindex_format", LEVELS, "html | json | jsonp | xml", &[
        ("html", AutoindexFormat::Html), ("json", AutoindexFormat::Json), ("jsonp", AutoindexFormat::Jsonp),
        ("xml", AutoindexFormat::Xml),
    ])
        .default("html").text("sets the format of lists", "autoindex_format json;",
        "`html` is for people, and `json`, `jsonp` and `xml` are for programs.");
    AUTOINDEX_LOCALTIME: Flag = flag("autoindex_localtime", LEVELS, "off").text(
        "sets whether lists show local time", "autoindex_localtime on;", "With `off`, times are in GMT.");
    _ = lines("empty_gif", LOCATION, (0, 0), "").handles_content().text(
        "serves a transparent picture of one pixel", "empty_gif;",
        "Every request for the location gets the picture, from memory. Use it for counting views.");
    _ = lines("flv", LOCATION, (0, 0), "").missing(NO_SEEKING).text(
        "cuts Flash videos where a player asks for it", "flv;",
        "The files are served whole, and `?start=` does not count.");
    _ = lines("index", LEVELS, (1, MANY), "FILE ...").default("index.html").inherited_as_a_whole().repeats().text(
        "sets the files for a directory", "index index.php index.html;", "\
        If the path ends in a slash, the names are tried in order. The first file that exists is served by an \
        internal redirect: `/index.php` is then handled by the location for PHP.");
    _ = lines("mp4", LOCATION, (0, 0), "").missing(NO_SEEKING).text(
        "cuts MP4 videos where a player asks for it", "mp4;", "\
        The files are served whole, and `?start=` and `?end=` do not count. Players of browsers ask for ranges \
        instead, which work.");
    _ = size("mp4_buffer_size", LEVELS).default("512k").ignored("nothing is read for `mp4`").text(
        "sets the memory for the beginning of an MP4 video", "mp4_buffer_size 1m;", "The line may be removed.");
    _ = size("mp4_max_buffer_size", LEVELS).default("10m").ignored("nothing is read for `mp4`").text(
        "limits the memory for the beginning of an MP4 video", "mp4_max_buffer_size 5m;", "The line may be removed.");
    _ = flag("mp4_start_key_frame", LEVELS, "off").ignored("videos are served whole").text(
        "sets whether a cut MP4 video begins with a key frame", "mp4_start_key_frame on;",
        "The line may be removed.");
    RANDOM_INDEX: Flag = flag("random_index", LOCATION, "off").inherited().text(
        "serves one of the files of a directory by chance", "random_index on;", "\
        A request for a directory gets a file that is in it, another one each time; names with a dot before are left \
        out. It goes before `index`, which is used where the directory has no file.");
    _ = lines("stub_status", &[Context::Server, Context::Location], (0, 1), "[on]").handles_content().text(
        "serves a page with counters of the server", "stub_status;", "\
        The page has the form of nginx, which monitoring programs read: connections that are open, accepted and \
        handled, and the number of requests. Who may see it is decided as with `metrics`: programs on this machine, \
        and whom `allow`, `auth_basic` or `auth_request` of this location itself let in.");
}
