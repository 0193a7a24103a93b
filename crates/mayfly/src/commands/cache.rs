//! `mayfly cache verify`: reads a folder in which a zone keeps pages, and reports its content.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use disk_tier::SystemStorage;

use crate::cli::CacheWord;
use command_line::{Exit, complain};

/// How the name of a zone's folder begins.
const OF_ZONE: &[u8] = b"mayfly-";

pub fn run(word: &CacheWord) -> Exit {
    let CacheWord::Verify { folder } = word;
    let zones = zones_below(folder);
    if zones.is_empty() {
        return verify(folder);
    }
    let exits = zones.iter().map(|zone| {
        // A pipe that was closed wants no more.
        let _ = writeln!(io::stdout(), "{}:", zone.display());
        verify(zone)
    });
    exits.fold(
        Exit::Done,
        |worst, exit| if exit == Exit::Done { worst } else { exit },
    )
}

/// The folders of zones where `folder` is the path of `*_cache_path`: pages are in one for each.
fn zones_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_of_zone = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        name.as_encoded_bytes().starts_with(OF_ZONE) && entry.path().is_dir()
    };
    let mut zones: Vec<PathBuf> = entries.filter(is_of_zone).map(|it| it.path()).collect();
    zones.sort();
    zones
}

fn verify(folder: &Path) -> Exit {
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
