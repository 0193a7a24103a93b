//! Purges that programs have left in a folder while no server ran: PHP on the command line, which finds no server to
//! ask. They are carried out before the first request is answered, and removed once the disk and the other nodes have
//! them.
//!
//! ```text
//! FOLDER/NAME/5f0c.json        {"tags":["news:5"]}, in the terms of a purge's request
//! ```
//!
//! These files were written by accounts that have no other right here. Each may purge anything, and do no more than
//! that: a file that cannot be understood, or more files than are read, purge everything.

use std::fs::{DirEntry, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use control::PurgeRequest;
use http_cache::Millis;
use rustix::fs::OFlags;
use site::LogLevel;

use purge_order::{Order, Target, carry_out};

use super::{PurgeCall, Scope, address_rules};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::log::purge_log::{PurgeInterface, Source};

/// Folders that are looked into: one for each pool, and those that an administrator has made.
const MAX_FOLDERS: usize = 64;
/// Files that are read of a folder.
const MAX_FILES: usize = 1024;
/// Files that are removed of a folder; those beyond purge everything at the next start as well.
const MAX_REMOVED: usize = 64 << 10;
/// Bytes read of one file, and of all files of a folder.
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_FOLDER_BYTES: u64 = 4 << 20;
/// The end of the file name of a purge. Files with other names are still being written, or are no purges.
const SUFFIX: &str = ".json";
/// How often it is tried to have the purges confirmed, before the next start does it.
const ATTEMPTS: usize = 60;
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The purges that one account has left.
#[derive(Debug)]
struct LeftFolder {
    name: String,
    files: Vec<PathBuf>,
    requests: Vec<PurgeRequest>,
    /// More was left than is read, or something that cannot be read.
    is_unclear: bool,
}

/// All purges that were left.
#[derive(Debug, Default)]
pub struct LeftPurges(Vec<LeftFolder>);

/// Carries out the purges that were left, in memory; call it before folders of zones are opened, and before the first
/// request. Blocks.
#[must_use]
pub fn begin(configuration: &Arc<ActiveConfiguration>) -> LeftPurges {
    let folder = configuration.site.left_purges();
    let left = folder.map_or_else(LeftPurges::default, |folder| LeftPurges::read(&folder));
    for folder in &left.0 {
        say(configuration, folder);
        for order in folder.orders(configuration) {
            let zones = configuration.live.alive_zones.zones();
            carry_out::carry_out(&zones, &order, None, Millis(clock::now()));
        }
    }
    left
}

/// Waits until disk and nodes have the purges, and removes them then. They are carried out once more: purges reach
/// other nodes only once a configuration is in force.
pub async fn finish(
    left: LeftPurges,
    configuration: impl Fn() -> Option<Arc<ActiveConfiguration>>,
) {
    for folder in left.0 {
        for _ in 0..ATTEMPTS {
            let Some(configuration) = configuration() else {
                return;
            };
            if !configuration.live.waits_for_disk() && folder.is_confirmed(configuration).await {
                let remove = move || folder.files.iter().for_each(|file| remove(file));
                // A file that cannot be removed purges once more at the next start.
                let _ = tokio::task::spawn_blocking(remove).await;
                break;
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }
}

fn remove(file: &Path) {
    let _ = std::fs::remove_file(file);
}

impl LeftPurges {
    fn read(path: &Path) -> LeftPurges {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let is_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|it| it.is_dir());
        let folders = entries.filter(is_folder).take(MAX_FOLDERS);
        let left = folders.map(|entry| LeftFolder::read(&entry));
        LeftPurges(left.filter(|folder| !folder.is_empty()).collect())
    }
}

impl LeftFolder {
    fn read(folder: &DirEntry) -> LeftFolder {
        let mut left = LeftFolder {
            name: folder.file_name().to_string_lossy().into_owned(),
            files: Vec::new(),
            requests: Vec::new(),
            is_unclear: false,
        };
        let entries = std::fs::read_dir(folder.path());
        let mut bytes = 0;
        for entry in entries.into_iter().flatten().flatten().take(MAX_REMOVED) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || !name.ends_with(SUFFIX) {
                continue;
            }
            left.files.push(entry.path());
            if left.files.len() > MAX_FILES || bytes > MAX_FOLDER_BYTES {
                left.is_unclear = true;
                continue;
            }
            match read_file(&entry.path()) {
                Ok(text) => {
                    bytes += text.len() as u64;
                    left.add(&text);
                }
                Err(_) => left.is_unclear = true,
            }
        }
        left
    }

    fn add(&mut self, text: &[u8]) {
        match PurgeRequest::from_json(text) {
            Ok(request) => self.requests.push(PurgeRequest {
                dry_run: false,
                ..request
            }),
            Err(_) => self.is_unclear = true,
        }
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the orders of the requests; if one of them is unclear, a single order that purges everything.
    fn orders(&self, configuration: &ActiveConfiguration) -> Vec<Order> {
        let rules = address_rules::of(configuration);
        let orders = self.requests.iter();
        let orders = orders.map(|request| Order::of_request(request, &rules));
        match orders.collect::<Result<Vec<Order>, _>>() {
            Ok(orders) if !self.is_unclear => orders,
            _ => vec![Order {
                targets: vec![Target::everything()],
                soft: false,
                dry_run: false,
            }],
        }
    }

    async fn is_confirmed(&self, configuration: Arc<ActiveConfiguration>) -> bool {
        for order in self.orders(&configuration) {
            let source = Source {
                door: PurgeInterface::Folder,
                who: self.name.clone(),
                is_own_visit: false,
            };
            let asked = PurgeCall::Order(order);
            let purged = super::purge(configuration.clone(), asked, Scope::All, source).await;
            if purged.is_err() {
                return false;
            }
        }
        true
    }
}

/// A regular file, whose length is bounded. Nothing that its owner puts in its place is waited for, or followed.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).map_err(io::Error::other)?;
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other("too long"));
    }
    Ok(text)
}

fn say(configuration: &ActiveConfiguration, folder: &LeftFolder) {
    let logs = &configuration.site.process.error_logs;
    let error_logs = &configuration.live.error_logs;
    let (level, what) = match folder.is_unclear {
        true => (
            LogLevel::Warn,
            "not all are understood: everything is purged",
        ),
        false => (LogLevel::Notice, "they are carried out"),
    };
    let message = format_args!(
        "purges were left by \"{}\" while no server ran, {} files; {what}",
        folder.name.escape_debug(),
        folder.files.len(),
    );
    error_logs.write(logs, level, 0, message, "");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Scene(tempfile::TempDir);

    impl Scene {
        fn new() -> Scene {
            let scene = Scene(tempfile::tempdir().unwrap());
            std::fs::create_dir(scene.path("shop")).unwrap();
            scene
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, name: &str, text: impl AsRef<[u8]>) {
            std::fs::write(self.path(&format!("shop/{name}")), text).unwrap();
        }

        fn read(&self) -> Option<LeftFolder> {
            LeftPurges::read(self.0.path()).0.pop()
        }

        /// Files, requests, and whether something is not understood.
        fn facts(&self) -> (usize, usize, bool) {
            let left = self.read().unwrap();
            (left.files.len(), left.requests.len(), left.is_unclear)
        }
    }

    const TAG: &str = r#"{"tags":["a"]}"#;

    #[test]
    fn purges_are_read_and_other_files_left_alone() {
        let scene = Scene::new();
        assert!(scene.read().is_none());
        scene.write(".5f.json", "half");
        scene.write("notes.txt", "of somebody else");
        assert!(scene.read().is_none());
        scene.write("1.json", TAG);
        scene.write(
            "2.json",
            r#"{"urls":["https://a/"],"soft":true,"dry_run":true}"#,
        );
        let left = scene.read().unwrap();
        assert_eq!((left.files.len(), left.is_unclear), (2, false));
        assert!(left.requests.iter().all(|request| !request.dry_run));
        assert!(LeftPurges::read(&scene.path("missing")).0.is_empty());
    }

    #[test]
    fn what_cannot_be_understood_purges_everything() {
        for text in [
            "",
            "{",
            "[]",
            "{}",
            "null",
            r#"{"tags":[1]}"#,
            r#"{"other":["a"]}"#,
        ] {
            let scene = Scene::new();
            scene.write("1.json", TAG);
            scene.write("2.json", text);
            assert_eq!(scene.facts(), (2, 1, true), "{text}");
        }
    }

    #[test]
    fn nothing_but_a_regular_file_of_bounded_length_is_read() {
        let scene = Scene::new();
        let outside = scene.path("outside");
        std::fs::write(&outside, TAG).unwrap();
        symlink(&outside, scene.path("shop/link.json")).unwrap();
        assert_eq!(scene.facts(), (1, 0, true));
        std::fs::remove_file(scene.path("shop/link.json")).unwrap();
        let fifo = scene.path("shop/fifo.json");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(scene.facts(), (1, 0, true));
        std::fs::remove_file(fifo).unwrap();
        std::fs::create_dir(scene.path("shop/folder.json")).unwrap();
        assert_eq!(scene.facts(), (1, 0, true));
        let long = format!("{{\"tags\":[\"{}\"]}}", "a".repeat(MAX_FILE_BYTES as usize));
        let scene = Scene::new();
        scene.write("long.json", long);
        assert_eq!(scene.facts(), (1, 0, true));
    }

    #[test]
    fn more_files_than_are_read_purge_everything_and_are_removed_too() {
        let scene = Scene::new();
        for number in 0..MAX_FILES {
            scene.write(&format!("{number}.json"), TAG);
        }
        assert_eq!(scene.facts(), (MAX_FILES, MAX_FILES, false));
        scene.write("more.json", TAG);
        assert_eq!(scene.facts(), (MAX_FILES + 1, MAX_FILES, true));
    }

    #[test]
    fn a_link_in_the_place_of_a_folder_is_not_entered() {
        let scene = Scene::new();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("1.json"), TAG).unwrap();
        symlink(outside.path(), scene.path("linked")).unwrap();
        assert!(scene.read().is_none());
    }
}
