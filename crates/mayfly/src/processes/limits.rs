//! What the process may use: open files, and folders for temporary files.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit, setrlimit};
use site::{Content, OwnFiles, PhpPool, Process, Site};

use crate::processes::account::{self, Account, is_root, to_run_php};
use crate::processes::control_socket;
use crate::processes::journal::Journal;
use system_error::SystemError;

/// Raises the number of files that may be open: to what the configuration says,
/// else as far as the system lets us. Each connection is one.
pub fn raise_open_files(wanted: Option<u64>, journal: &Journal) {
    let mut limit = getrlimit(Resource::Nofile);
    match wanted {
        None => limit.current = limit.maximum,
        Some(wanted) => {
            limit.current = Some(wanted);
            // Only root may go higher; others are told so below.
            limit.maximum = limit.maximum.map(|maximum| maximum.max(wanted));
        }
    }
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        let error = io::Error::from(error);
        let wanted = wanted.map_or_else(|| "the most".to_owned(), |wanted| wanted.to_string());
        journal.warn(format_args!(
            "setrlimit(RLIMIT_NOFILE, {wanted}) failed ({})",
            SystemError(&error)
        ));
    }
}

/// Makes the folders that large bodies are kept in, as nginx does: one level,
/// for the account that serves. A request that needs one that could not be made for want of
/// rights says so when it matters.
///
/// # Errors
/// nginx's message, where the folder that one was to be made in is missing. The usual
/// ones lie in the prefix or in `/var/lib/mayfly`, which an ordinary user need not have.
pub fn make_temp_folders(
    site: &Site,
    account: Option<&Account>,
    prefix: &Path,
    journal: &Journal,
) -> Result<(), String> {
    let usual = OwnFiles::of(prefix).state;
    if usual != prefix && !usual.exists() {
        // Where it cannot be made, the folders in it cannot, which is then said.
        let _ = trusted_path::make_open_folder(&usual);
    }
    for folder in temp_folders(site) {
        if let Err(error) = make_folder(folder, account) {
            let message = format!(
                "mkdir() \"{}\" failed ({})",
                folder.display(),
                SystemError(&error)
            );
            let is_usual = folder.parent() == Some(&*usual);
            match error.kind() {
                io::ErrorKind::NotFound if !is_usual => return Err(message),
                _ => journal.notice(message),
            }
        }
    }
    Ok(())
}

/// Makes the folder of the pid file and the control socket that no directive names, where that folder is the
/// system's and missing.
pub fn make_run_folder(process: &Process, prefix: &Path) {
    let usual = OwnFiles::of(prefix).run;
    if usual != prefix && process.pid_file.parent() == Some(&*usual) {
        control_socket::make_folder(&process.pid_file);
    }
}

/// Makes the folders in which zones keep pages, for the account that serves, where this one is another. Without
/// them the zones work in memory, and the server says so.
pub fn make_disk_folders(site: &Site, account: Option<&Account>, journal: &Journal) {
    let Some(account) = account else {
        return;
    };
    for disk in site
        .http
        .cache_zones
        .iter()
        .filter_map(|zone| zone.disk.as_ref())
    {
        if let Err((folder, error)) = make_disk_folder(&disk.folder, account) {
            journal.notice(format_args!(
                "mkdir() \"{}\" failed ({})",
                folder.display(),
                SystemError(&error)
            ));
        }
    }
}

/// Makes the folders in which PHP of the pools leaves purges while no server runs. Without them such a purge fails,
/// and PHP says so.
pub fn make_left_purges_folders(site: &Site, account: Option<&Account>, journal: &Journal) {
    let Some(folder) = site.left_purges() else {
        return;
    };
    for pool in &site.process.php_pools {
        let folder = folder.join(&pool.name);
        let made = match is_root() {
            true => make_left_purges_folder(&folder, pool, account),
            false => DirBuilder::new()
                .mode(0o700)
                .recursive(true)
                .create(&folder),
        };
        if let Err(error) = made {
            journal.notice(format_args!(
                "mkdir() \"{}\" failed ({})",
                folder.display(),
                SystemError(&error)
            ));
        }
    }
}

/// Makes the folder of a pool. Its PHP writes there, and the account that serves reads and removes.
fn make_left_purges_folder(
    folder: &Path,
    pool: &PhpPool,
    server: Option<&Account>,
) -> io::Result<()> {
    let php = to_run_php(pool).map_err(io::Error::other)?;
    make_missing_above(folder).map_err(|(_, error)| error)?;
    let group = server.map_or(0, |server| server.gid);
    trusted_path::make_folder_for_group(folder, php.uid, group)
}

/// Makes the folder of a zone and what is missing above it. What is there stays whose it is: nginx has left files
/// there, or all accounts use it. Only what a server under another number without a name has left is given to this one.
fn make_disk_folder<'a>(folder: &'a Path, account: &Account) -> Result<(), (&'a Path, io::Error)> {
    make_missing_above(folder)?;
    if disk_tier::is_in_use(folder, &*disk_tier::SystemStorage::new()) {
        return Ok(());
    }
    let is_number = |uid| account::NUMBERS.contains(&uid);
    trusted_path::make_folder_with_files(folder, account.uid, is_number)
        .map_err(|error| (folder, error))
}

fn make_missing_above(folder: &Path) -> Result<(), (&Path, io::Error)> {
    let missing = folder.ancestors().skip(1);
    let missing: Vec<&Path> = missing.take_while(|path| !path.exists()).collect();
    for above in missing.into_iter().rev() {
        trusted_path::make_open_folder(above).map_err(|error| (above, error))?;
    }
    Ok(())
}

fn make_folder(folder: &Path, account: Option<&Account>) -> io::Result<()> {
    if let Some(account) = account {
        return trusted_path::make_folder(folder, account.uid);
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
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
