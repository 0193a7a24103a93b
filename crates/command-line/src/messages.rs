//! Messages of a command beside its result.

use std::io::{self, Write};

use crate::exit::Exit;

/// A terminal is not sent what moves its cursor.
#[must_use]
pub fn printable(letter: char) -> char {
    if letter.is_control() { '?' } else { letter }
}

/// Prints the result of a command. A pipe that was closed wants no more.
pub fn print(text: &str) -> Exit {
    let _ = io::stdout().write_all(text.as_bytes());
    Exit::Done
}

/// Says why the command does nothing, or no more.
pub fn complain(exit: Exit, message: &str) -> Exit {
    let _ = io::stderr().write_all(format!("mayfly: {message}\n").as_bytes());
    exit
}
