//! Table of the `ssi*` directives (Server Side Includes).

use super::Directive;
use super::declaration::*;

table! {
    SSI: Flag = flag("ssi", LEVELS_AND_IF, "off").text("runs the SSI commands in pages", "ssi on;", "\
        Commands are comments such as `<!--#include virtual=\"/path\" -->`. The commands are `include`, `set`, \
        `echo`, `if`, `config` and `block`. Parts that are included one after the other are fetched at the same \
        time. Conditions may be nested.");
    SSI_LAST_MODIFIED: Flag = flag("ssi_last_modified", LEVELS, "off").text(
        "sets whether pages with SSI keep Last-Modified", "ssi_last_modified on;",
        "With `off`, the field is removed, because an included part may have changed when the page itself has not.");
    SSI_MAX_INCLUDES: Number = number("ssi_max_includes", LEVELS).default("200").text(
        "limits how many parts a page includes, at all depths together", "ssi_max_includes 20;", "\
        The whole page has one count, in which fragments of ESI are counted as well. A part beyond it is an error of \
        its command, and the error log says so once for the page. nginx has no such limit.");
    _ = size("ssi_min_file_chunk", LEVELS).default("1k").ignored("pages with SSI are always read in pieces").text(
        "sets which parts of a page nginx sends from the disk", "ssi_min_file_chunk 4k;",
        "In nginx, parts of this size and larger are sent with `sendfile`.");
    SSI_SILENT_ERRORS: Flag = flag("ssi_silent_errors", LEVELS, "off").text(
        "sets whether an SSI error is shown in the page", "ssi_silent_errors on;", "\
        With `off`, the page contains `[an error occurred while processing the directive]` where a command failed. \
        With `on`, it contains nothing there.");
    SSI_TYPES: Lines = lines("ssi_types", LEVELS, (1, MANY), "TYPE ...").default("text/html").inherited_as_a_whole().repeats().text(
        "sets the media types in which SSI is run", "ssi_types text/plain;",
        "`text/html` is always included. `*` means all types.");
    _ = lines("ssi_value_length", LEVELS, (1, 1), "LENGTH")
        .default("256").inherited().ignored("the whole command is limited to 16 kilobytes").text(
        "limits the length of values in SSI commands", "ssi_value_length 1024;",
        "In nginx, it is the largest length of one value.");
    SUBREQUEST_OUTPUT_BUFFER_SIZE: Size = size("subrequest_output_buffer_size", LEVELS).default("4k").text(
        "limits an included part that is stored in a variable", "subrequest_output_buffer_size 64k;", "\
        It has an effect on `<!--#include virtual=\"/path\" set=\"name\" -->`. If the part is longer, the page is \
        cut off.");
}
