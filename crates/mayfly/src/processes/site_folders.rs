//! Folders that a site needs and that the server makes: for temporary files, for pages that zones keep, and for purges that PHP
//! leaves while no server runs. One that cannot be made, as on a full disk, is tried again while the server runs.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use site::{Content, OwnFiles, PhpPool, Site};
use system_error::SystemError;
use tokio::task::JoinHandle;

use crate::processes::account::{self, Account, is_root, to_run_php};
use crate::processes::journal::Journal;

/// How long a folder that could not be made waits for its next try: twice as long each time, up to the longest.
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_LONGEST: Duration = Duration::from_secs(60);

/// A folder, and who uses it.
struct WantedFolder {
    path: PathBuf,
    usage: FolderUsage,
}

enum FolderUsage {
    /// Large bodies, as in nginx: one level is made. A request that needs the folder reports that it is missing.
    TemporaryFiles,
    /// Pages of a zone. Without the folder the zone works in memory, and the server reports it.
    Pages,
    /// Purges of this pool. Without the folder such a purge fails, and PHP reports it.
    LeftPurges(Box<PhpPool>),
}

/// Goes on trying to make the folders of a configuration that could not be made, until it is dropped.
pub struct FolderRetries(Option<JoinHandle<()>>);

/// Makes the folders of a site.
///
/// # Errors
/// nginx's message, where the folder that one for temporary files was to be made in is missing. The usual
/// ones lie in the prefix or in `/var/lib/mayfly`, which an ordinary user need not have.
pub fn make(
    site: &Site,
    account: Option<&Account>,
    prefix: &Path,
    journal: &Arc<Journal>,
) -> Result<FolderRetries, String> {
    let usual = OwnFiles::of(prefix).state;
    if usual != prefix && !usual.exists() {
        // If this folder cannot be made, the folders in it cannot, which is then reported.
        let _ = trusted_path::make_open_folder(&usual);
    }
    let mut missing = Vec::new();
    for folder in wanted(site) {
        let Err((path, error)) = folder.make(account) else {
            continue;
        };
        let message = format!(
            "mkdir() \"{}\" failed ({})",
            path.display(),
            SystemError(&error)
        );
        let is_temporary = matches!(folder.usage, FolderUsage::TemporaryFiles);
        let is_usual = folder.path.parent() == Some(&*usual);
        if is_temporary && error.kind() == io::ErrorKind::NotFound && !is_usual {
            return Err(message);
        }
        journal.notice(message);
        missing.push(folder);
    }
    if missing.is_empty() {
        return Ok(FolderRetries(None));
    }
    let retries = make_again(missing, account.cloned(), Arc::clone(journal));
    Ok(FolderRetries(Some(tokio::spawn(retries))))
}

async fn make_again(
    mut missing: Vec<WantedFolder>,
    account: Option<Account>,
    journal: Arc<Journal>,
) {
    let mut wait = RETRY_FIRST;
    while !missing.is_empty() {
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RETRY_LONGEST);
        let (account, journal) = (account.clone(), Arc::clone(&journal));
        // By a thread of its own: the disk may not answer.
        let tried = tokio::task::spawn_blocking(move || {
            missing.retain(|folder| folder.make(account.as_ref()).is_err() || folder.say(&journal));
            missing
        });
        match tried.await {
            Ok(left) => missing = left,
            // A panic there has printed its message.
            Err(_) => return,
        }
    }
}

impl Drop for FolderRetries {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

impl WantedFolder {
    fn make(&self, account: Option<&Account>) -> Result<(), (PathBuf, io::Error)> {
        let own = |error| (self.path.clone(), error);
        match (&self.usage, account) {
            (FolderUsage::TemporaryFiles, Some(account)) => {
                trusted_path::make_folder(&self.path, account.uid).map_err(own)
            }
            (FolderUsage::TemporaryFiles, None) => {
                match DirBuilder::new().mode(0o700).create(&self.path) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(own(error)),
                    _ => Ok(()),
                }
            }
            (FolderUsage::Pages, Some(account)) => make_for_pages(&self.path, account),
            // The account that serves makes it itself.
            (FolderUsage::Pages, None) => Ok(()),
            (FolderUsage::LeftPurges(pool), _) if is_root() => {
                make_for_purges(&self.path, pool, account)
            }
            (FolderUsage::LeftPurges(_), _) => DirBuilder::new()
                .mode(0o700)
                .recursive(true)
                .create(&self.path)
                .map_err(own),
        }
    }

    /// Logs that the folder is there now; returns `false`, as it needs no further try.
    fn say(&self, journal: &Journal) -> bool {
        journal.notice(format_args!(
            "\"{}\" could be made now",
            self.path.display()
        ));
        false
    }
}

fn wanted(site: &Site) -> Vec<WantedFolder> {
    let temporary = temp_folders(site).into_iter().map(|path| WantedFolder {
        path: path.clone(),
        usage: FolderUsage::TemporaryFiles,
    });
    let zones = site.http.cache_zones.iter();
    let disks = zones.filter_map(|zone| zone.disk.as_ref());
    let pages = disks.map(|disk| WantedFolder {
        path: disk.folder.clone(),
        usage: FolderUsage::Pages,
    });
    let left = site.left_purges();
    let pools = site.process.php_pools.iter();
    let purges = pools.filter_map(|pool| {
        Some(WantedFolder {
            path: left.as_ref()?.join(&pool.name),
            usage: FolderUsage::LeftPurges(Box::new(pool.clone())),
        })
    });
    temporary.chain(pages).chain(purges).collect()
}

/// Makes the folder of a pool. Its PHP writes there, and the account that serves reads and removes.
fn make_for_purges(
    folder: &Path,
    pool: &PhpPool,
    server: Option<&Account>,
) -> Result<(), (PathBuf, io::Error)> {
    let own = |error| (folder.to_owned(), error);
    let php = to_run_php(pool).map_err(|error| own(io::Error::other(error)))?;
    make_missing_above(folder)?;
    let group = server.map_or(0, |server| server.gid);
    trusted_path::make_folder_for_group(folder, php.uid, group).map_err(own)
}

/// Makes the folder of a zone and the missing ones above it. Existing files keep their owner: nginx has left files
/// there, or all accounts use it. Only files that a server under another number without a name has left are given to
/// this one.
fn make_for_pages(folder: &Path, account: &Account) -> Result<(), (PathBuf, io::Error)> {
    make_missing_above(folder)?;
    if disk_tier::is_in_use(folder, &*disk_tier::SystemStorage::new()) {
        return Ok(());
    }
    let is_number = |uid| account::NUMBERS.contains(&uid);
    trusted_path::make_folder_with_files(folder, account.uid, is_number)
        .map_err(|error| (folder.to_owned(), error))
}

fn make_missing_above(folder: &Path) -> Result<(), (PathBuf, io::Error)> {
    let missing = folder.ancestors().skip(1);
    let missing: Vec<&Path> = missing.take_while(|path| !path.exists()).collect();
    for above in missing.into_iter().rev() {
        trusted_path::make_open_folder(above).map_err(|error| (above.to_owned(), error))?;
    }
    Ok(())
}

fn temp_folders(site: &Site) -> BTreeSet<&PathBuf> {
    let settings = site
        .http
        .servers
        .iter()
        .flat_map(|server| &server.locations);
    settings
        .flat_map(|location| {
            let upstream = match &location.settings.content {
                Content::Pass(pass) => Some(&pass.exchange.temp_path),
                _ => None,
            };
            [Some(&location.settings.body.temp_path), upstream]
        })
        .flatten()
        .collect()
}
