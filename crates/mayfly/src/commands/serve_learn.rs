//! `mayfly serve --learn`: whether pages of a folder are learned, and by which account the database is asked.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use serve_folder::{
    AccountError, DatabaseLogin, DetectedSite, Files, SiteKind, account_of_file, database_login,
    object_cache_login,
};
use system_error::SystemError;

use crate::cli::{LearnMode, ServeArgs};
use crate::paths;

/// A site whose pages are learned.
pub struct LearnedSite {
    pub mode: serve_folder::LearnMode,
    /// The account by which the database is asked, or why it is not known.
    pub login: Result<DatabaseLogin, AccountError>,
    /// The account by which its object cache is followed, if it needs one.
    pub object_cache: Option<DatabaseLogin>,
    is_default: bool,
}

/// Applies `--learn`. The printed configuration goes to terminals and into files that others may read: it has no
/// password.
pub fn learned_site(
    args: &ServeArgs,
    (files, document_root): (&dyn Files, &Path),
    found: &DetectedSite,
    has_plugin: bool,
) -> Result<Option<LearnedSite>, String> {
    let is_wordpress = found.kind == SiteKind::WordPress;
    let mode = match args.learn {
        Some(LearnMode::Off) if args.learn_account.is_some() => {
            return Err(
                "--learn-account FILE is for --learn, and --learn=off was given".to_owned(),
            );
        }
        Some(LearnMode::Off) => return Ok(None),
        Some(LearnMode::Watch) => serve_folder::LearnMode::Watch,
        Some(LearnMode::Auto) => serve_folder::LearnMode::Auto,
        None if !is_wordpress => serve_folder::LearnMode::Auto,
        Some(LearnMode::On) | None => serve_folder::LearnMode::On,
    };
    let is_default = args.learn.is_none();
    let may_be_learned = match is_default {
        true => {
            let is_of_use = is_wordpress || !learning::has_unreliable_times(document_root);
            found.kind != SiteKind::Static
                && is_of_use
                && !has_plugin
                && args.ttl != Some(Duration::ZERO)
        }
        false => found.kind != SiteKind::Static,
    };
    if !may_be_learned {
        return Ok(None);
    }
    let is_socket = |path: &str| std::fs::metadata(path).is_ok_and(|it| it.file_type().is_socket());
    let login = match &args.learn_account {
        Some(file) => Ok(written_account(file)?),
        None => database_login(files, found, &is_socket),
    };
    let shown = |login: DatabaseLogin| DatabaseLogin {
        password: login.password.filter(|_| !args.print_config),
        ..login
    };
    let login = login.map(shown);
    let object_cache = object_cache_login(files, found).map(shown);
    let is_learned = login.is_ok() || !is_default || !is_wordpress;
    Ok(is_learned.then_some(LearnedSite {
        mode,
        login,
        object_cache,
        is_default,
    }))
}

/// `--learn-account`
fn written_account(file: &Path) -> Result<DatabaseLogin, String> {
    const MAX_BYTES: u64 = 4096;
    let (shown, path) = (file.display(), paths::from_here(file.to_owned()));
    let failed = |error| format!("--learn-account {shown}: {}", SystemError(&error));
    let text = serve_folder::begin_of_text(&path, MAX_BYTES + 1).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!(
            "--learn-account {shown}: the file has more than {MAX_BYTES} bytes, and one line with an account was expected"
        ));
    }
    let mode = std::fs::metadata(&path).map_err(failed)?.mode();
    if mode & 0o007 != 0 {
        return Err(format!(
            "--learn-account {shown}: every account of the machine may read or write the password in it: chmod 600 {shown}"
        ));
    }
    account_of_file(&text).map_err(|why| format!("--learn-account {shown}:{why}"))
}

impl LearnedSite {
    /// Returns a note with the owner of the account, or the remedy.
    pub fn note(&self, document_root: &Path) -> String {
        if learning::has_unreliable_times(document_root) {
            return format!(
                "no page is learned: {} lies among files that come and go, whose times say nothing. Move the site, for \
                 instance below /srv.",
                document_root.display()
            );
        }
        const KEPT_LATER: &str = "pages are kept until what they were made of changes, once 200 pages with such \
             addresses were made again and were the same (--learn=off: they are not)";
        match &self.login {
            Err(_) if self.is_default => format!("{KEPT_LATER}."),
            Ok(login) => {
                let why = match (self.is_default, self.mode) {
                    (true, serve_folder::LearnMode::Auto) => &format!("{KEPT_LATER}. For that"),
                    (true, _) => {
                        "pages are kept until what they were made of changes (--learn=off: they are not). For that"
                    }
                    (false, _) => "for --learn",
                };
                format!(
                    "{why}, the database is asked about its tables with the account of {} ({} at {}).",
                    login.settings, login.user, login.server
                )
            }
            Err(why) => format!(
                "pages of files and of SQLite are learned; pages of MySQL or MariaDB are not, before it is known by which \
                 account the database can be asked about its tables. {why}.\n  Write one line into a file that only \
                 you can read, and give it with --learn-account FILE:\n  unix:/run/mysqld/mysqld.sock USER PASSWORD\n  \
                 mayfly explain shows the address of the server in its place."
            ),
        }
    }
}
