//! Table of the `ssi*` directives (Server Side Includes).

use super::{Context, Directive};

const EVERYWHERE: &[Context] = &[Context::Http, Context::Server, Context::Location];

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("ssi", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("runs the SSI commands in pages")
        .long("\
            Commands are comments such as `<!--#include virtual=\"/path\" -->`. The commands are \
            `include`, `set`, `echo`, `if`, `config` and `block`. Parts that are included one after the \
            other are fetched at the same time. Conditions may be nested.")
        .example("ssi on;"),
    Directive::new("ssi_last_modified", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether pages with SSI keep Last-Modified")
        .long("\
            With `off`, the field is removed, because an included part may have changed when the page \
            itself has not.")
        .example("ssi_last_modified on;"),
    Directive::new("ssi_max_includes", EVERYWHERE)
        .takes(1, 1, "NUMBER").inherited()
        .default("200")
        .short("limits how many parts a page includes, at all depths together")
        .long("\
            The whole page has one count, in which fragments of ESI are counted as well. A part beyond it is an error \
            of its command, and the error log says so once for the page. nginx has no such limit.")
        .example("ssi_max_includes 20;"),
    Directive::new("ssi_min_file_chunk", EVERYWHERE)
        .takes(1, 1, "SIZE").inherited()
        .default("1k")
        .ignored("pages with SSI are always read in pieces")
        .short("sets which parts of a page nginx sends from the disk")
        .long("In nginx, parts of this size and larger are sent with `sendfile`.")
        .example("ssi_min_file_chunk 4k;"),
    Directive::new("ssi_silent_errors", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether an SSI error is shown in the page")
        .long("\
            With `off`, the page contains `[an error occurred while processing the directive]` where a \
            command failed. With `on`, it contains nothing there.")
        .example("ssi_silent_errors on;"),
    Directive::new("ssi_types", EVERYWHERE)
        .takes(1, usize::MAX, "TYPE ...").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("sets the media types in which SSI is run")
        .long("`text/html` is always included. `*` means all types.")
        .example("ssi_types text/plain;"),
    Directive::new("ssi_value_length", EVERYWHERE)
        .takes(1, 1, "LENGTH").inherited()
        .default("256")
        .ignored("the whole command is limited to 16 kilobytes")
        .short("limits the length of values in SSI commands")
        .long("In nginx, it is the largest length of one value.")
        .example("ssi_value_length 1024;"),
    Directive::new("subrequest_output_buffer_size", EVERYWHERE)
        .takes(1, 1, "SIZE").inherited()
        .default("4k")
        .short("limits an included part that is stored in a variable")
        .long("\
            It has an effect on `<!--#include virtual=\"/path\" set=\"name\" -->`. If the part is \
            longer, the page is cut off.")
        .example("subrequest_output_buffer_size 64k;"),
];
