//! Control sequences for a terminal.

use std::ffi::OsStr;
use std::io::IsTerminal;

/// Whether colours are wanted there. `NO_COLOR` (<https://no-color.org>) and
/// `TERM=dumb` switch them off.
pub fn wants_colours(output: &impl IsTerminal) -> bool {
    let variable = |name: &str| std::env::var_os(name);
    output.is_terminal()
        && !forbids_colours(variable("NO_COLOR").as_deref(), variable("TERM").as_deref())
}

/// Whether the cursor may be moved there.
pub fn moves_cursor(output: &impl IsTerminal) -> bool {
    output.is_terminal() && !is_dumb(std::env::var_os("TERM").as_deref())
}

fn forbids_colours(no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    no_color.is_some_and(|value| !value.is_empty()) || is_dumb(term)
}

fn is_dumb(term: Option<&OsStr>) -> bool {
    term.is_some_and(|name| name == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_and_a_dumb_terminal_forbid_colours() {
        for (no_color, term, expected) in [
            (None, Some("xterm"), false),
            (None, None, false),
            (Some(""), Some("xterm"), false),
            (Some("1"), Some("xterm"), true),
            (None, Some("dumb"), true),
        ] {
            assert_eq!(
                forbids_colours(no_color.map(OsStr::new), term.map(OsStr::new)),
                expected
            );
        }
    }
}
