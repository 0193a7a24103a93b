//! `mayfly cache verify`: reads a folder in which a zone keeps pages, and says what is in it.

use std::io::{self, Write};

use disk_tier::SystemStorage;

use crate::cli::CacheWord;
use crate::commands::running_server::complain;
use crate::exit::Exit;

/// Does what was typed.
pub fn run(word: &CacheWord) -> Exit {
    let CacheWord::Verify { folder } = word;
    match disk_tier::verify(folder, &*SystemStorage::new()) {
        Ok(report) => {
            // A pipe that was closed wants no more.
            let _ = writeln!(io::stdout(), "{report}");
            match report.is_whole() {
                true => Exit::Done,
                false => Exit::Refused,
            }
        }
        Err(error) => complain(Exit::Refused, &error.to_string()),
    }
}
