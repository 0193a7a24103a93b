//! Errors of the operating system as nginx writes them: `98: Address already in use`.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "Mayfly runs on Linux alone: docs/questions.md lists the calls that FreeBSD, macOS and others lack. Use a container \
     or a virtual machine with Linux."
);

use std::fmt;
use std::io;

/// Shows an error with its number in front; an error without a number by its text alone.
pub struct SystemError<'a>(pub &'a io::Error);

impl fmt::Display for SystemError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(number) = self.0.raw_os_error() else {
            return match self.0.kind() {
                // A timer of ours has ended, and not one of the kernel's.
                io::ErrorKind::TimedOut => f.write_str("110: Connection timed out"),
                _ => self.0.fmt(f),
            };
        };
        let text = self.0.to_string();
        let suffix = format!(" (os error {number})");
        let text = text.strip_suffix(&suffix).unwrap_or(&text);
        write!(f, "{number}: {text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(error: &io::Error) -> String {
        SystemError(error).to_string()
    }

    #[test]
    fn a_number_stands_before_the_text() {
        let error = io::Error::from_raw_os_error(98);
        assert_eq!(shown(&error), "98: Address already in use");
    }

    #[test]
    fn an_error_without_a_number_is_its_text() {
        assert_eq!(shown(&io::Error::other("odd")), "odd");
        let ended = io::Error::from(io::ErrorKind::TimedOut);
        assert_eq!(shown(&ended), "110: Connection timed out");
    }
}
