//! Server Side Includes.

use super::{Context, Directive};

const EVERYWHERE: &[Context] = &[Context::Http, Context::Server, Context::Location];

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("ssi", &[Context::Http, Context::Server, Context::Location, Context::LocationIf])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("run the commands in pages")
        .long("Runs `<!--#include virtual=\"/path\" -->` and the other commands of Server Side Includes: `include`, `set`, `echo`, `if`, `config`, `block`. Includes of one stretch are asked for at the same time. Conditions may nest.")
        .example("ssi on;"),
    Directive::new("ssi_last_modified", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("keep Last-Modified of pages with commands")
        .long("With `off`, the field is removed: parts of the page may have changed when the page itself has not.")
        .example("ssi_last_modified on;"),
    Directive::new("ssi_min_file_chunk", EVERYWHERE)
        .takes(1, 1, "SIZE").inherited()
        .default("1k")
        .ignored("pages with commands are read into memory piece by piece")
        .short("which parts of a page are sent from disk")
        .long("Mayfly reads pages with commands piece by piece. The line has no effect.")
        .example("ssi_min_file_chunk 4k;"),
    Directive::new("ssi_silent_errors", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("say nothing of errors in commands")
        .long("With `off`, `[an error occurred while processing the directive]` stands where a command could not be run.")
        .example("ssi_silent_errors on;"),
    Directive::new("ssi_types", EVERYWHERE)
        .takes(1, usize::MAX, "TYPE ...").inherited_as_a_whole().repeats()
        .default("text/html")
        .short("media types whose commands are run")
        .long("Adds to `text/html`, which always counts; `*` stands for all.")
        .example("ssi_types text/plain;"),
    Directive::new("ssi_value_length", EVERYWHERE)
        .takes(1, 1, "LENGTH").inherited()
        .default("256")
        .ignored("a command is bounded as a whole")
        .short("how long values in commands may be")
        .long("A whole command may have 16 kilobytes. The line has no effect.")
        .example("ssi_value_length 1024;"),
    Directive::new("subrequest_output_buffer_size", EVERYWHERE)
        .takes(1, 1, "SIZE").inherited()
        .default("4k")
        .short("how long an included part may be that is kept in a variable")
        .long("Holds for `<!--#include ... set=\"name\" -->`. A longer part breaks the page off.")
        .example("subrequest_output_buffer_size 64k;"),
];
