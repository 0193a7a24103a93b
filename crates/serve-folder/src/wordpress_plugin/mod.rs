//! The WordPress plug-in (`php/wordpress`), which this program carries with it, and its installation in a site:
//! `serve --wordpress-plugin` puts it into the folder of must-use plug-ins.
//!
//! ```text
//! mu-plugins/mayfly.php      loads the next
//! mu-plugins/mayfly/         mayfly.php, classes.php, uninstall.php
//! ```
//!
//! Only files that Mayfly has put there are written over. Files of root's stay root's, so that no script changes
//! them, and everybody may read them. Root follows no link that another account made ([`trusted_path`]).

mod sources;

use std::io;
use std::path::{Path, PathBuf};

use sources::{MAIN, SOURCES, UNINSTALL};

use crate::begin_of_text;
use system_error::SystemError;

/// The line by which the plug-in's main file is recognized, whatever its version.
const SIGN: &str = "* Plugin Name: Mayfly\n";
/// The loader that `php/wordpress/build.sh --must-use` writes.
const LOADER: &str = "<?php\n\n// WordPress loads the files of this folder, but not those of the folders in it.\n\
    require __DIR__ . '/mayfly/mayfly.php';\n";
/// The loader in the form that the head of the main file allows to write by hand.
const LOADER_BY_HAND: &str = "<?php require __DIR__ . '/mayfly/mayfly.php';";
/// More than any of its files has.
const MAX_TEXT_BYTES: u64 = 1 << 20;
const MODE: u32 = 0o644;

/// The plug-in's state in a folder of must-use plug-ins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginState {
    Absent,
    /// This program's version is there.
    Current,
    /// Another version is there, or a part of one.
    Other,
    /// This has one of its names, and is not Mayfly's.
    Foreign(PathBuf),
}

/// The reason why the plug-in was not installed.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error(
        "--wordpress-plugin: {} is there already, and is not Mayfly's plug-in; move it away first",
        .0.display()
    )]
    Foreign(PathBuf),
    #[error(
        "--wordpress-plugin: {} cannot be written ({}); the account that starts this needs the right to, \
         or php/wordpress/build.sh puts the plug-in together for another that has it",
        .0.display(),
        SystemError(.1)
    )]
    NotWritten(PathBuf, io::Error),
}

/// The plug-in in one folder of must-use plug-ins.
#[derive(Clone, Debug)]
pub struct MustUse {
    folder: PathBuf,
}

impl MustUse {
    pub fn new(folder: PathBuf) -> MustUse {
        MustUse { folder }
    }

    pub fn loader(&self) -> PathBuf {
        self.folder.join("mayfly.php")
    }

    pub fn inner(&self) -> PathBuf {
        self.folder.join("mayfly")
    }

    pub fn state(&self) -> PluginState {
        let (loader, inner) = (self.loader(), self.inner());
        let has_loader = match text_of(&loader) {
            PluginFile::Missing => false,
            PluginFile::Text(text) if text == LOADER || text.trim() == LOADER_BY_HAND => true,
            _ => return PluginState::Foreign(loader),
        };
        match inner.symlink_metadata() {
            Err(_) if !has_loader => return PluginState::Absent,
            Err(_) => return PluginState::Other,
            Ok(metadata) if !metadata.is_dir() => return PluginState::Foreign(inner),
            Ok(_) => {}
        }
        match text_of(&inner.join("mayfly.php")) {
            PluginFile::Text(text) if text.contains(SIGN) => {}
            PluginFile::Missing if is_empty(&inner) => return PluginState::Other,
            _ => return PluginState::Foreign(inner),
        }
        let is_current = |(name, text): (&str, String)| match text_of(&inner.join(name)) {
            PluginFile::Text(found) => found == text,
            _ => false,
        };
        match has_loader && files().into_iter().all(is_current) {
            true => PluginState::Current,
            false => PluginState::Other,
        }
    }

    /// Puts the plug-in there, or this version of it in the place of another. Other files there stay.
    ///
    /// # Errors
    /// The reason why it is not there now.
    pub fn install(&self) -> Result<(), PluginError> {
        match self.state() {
            PluginState::Current => Ok(()),
            PluginState::Foreign(path) => Err(PluginError::Foreign(path)),
            PluginState::Absent | PluginState::Other => {
                let written = self.write();
                written.map_err(|error| PluginError::NotWritten(self.folder.clone(), error))
            }
        }
    }

    fn write(&self) -> io::Result<()> {
        trusted_path::make_open_folder(&self.folder)?;
        let inner = self.inner();
        trusted_path::make_open_folder(&inner)?;
        for (name, text) in files() {
            trusted_path::replace(&inner.join(name), text.as_bytes(), MODE)?;
        }
        // Last: from now on WordPress loads the others.
        trusted_path::replace(&self.loader(), LOADER.as_bytes(), MODE)
    }
}

/// The files of its folder, in the order in which they are written: the one that loads the others is last.
fn files() -> [(&'static str, String); 3] {
    [
        ("uninstall.php", UNINSTALL.to_owned()),
        ("classes.php", classes()),
        ("mayfly.php", MAIN.to_owned()),
    ]
}

/// All classes in one file, as `php/wordpress/build.sh` makes it.
fn classes() -> String {
    let mut text = "<?php\n\n// Made by php/wordpress/build.sh from php/library/src and php/wordpress/mayfly/src.\n\n\
        declare(strict_types=1);\n"
        .to_owned();
    // Interfaces first: a class can be declared when its interfaces are.
    let is_interface = |source: &&&str| source.lines().any(|line| line.starts_with("interface "));
    let interfaces = SOURCES.iter().filter(is_interface);
    let others = SOURCES.iter().filter(|source| !is_interface(source));
    let lines = interfaces.chain(others).flat_map(|source| source.lines());
    let mut is_gap = false;
    for line in lines.filter(|line| !matches!(*line, "<?php" | "declare(strict_types=1);")) {
        if !(line.is_empty() && is_gap) {
            text.push_str(line);
            text.push('\n');
        }
        is_gap = line.is_empty();
    }
    text
}

enum PluginFile {
    Missing,
    Text(String),
    Unreadable,
}

/// A file's text. Root follows a link that root made; another account's may lead to a file that is not its own.
fn text_of(path: &Path) -> PluginFile {
    match begin_of_text(path, MAX_TEXT_BYTES) {
        Ok(text) => PluginFile::Text(text),
        // Not a link that leads nowhere: another program may use it.
        Err(_) if path.symlink_metadata().is_err() => PluginFile::Missing,
        Err(_) => PluginFile::Unreadable,
    }
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut names| names.next().is_none())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn folder() -> (tempfile::TempDir, MustUse) {
        let content = tempfile::tempdir().unwrap();
        let plugin = MustUse::new(content.path().join("mu-plugins"));
        (content, plugin)
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn what_is_installed_is_what_the_script_builds() {
        let (_content, plugin) = folder();
        plugin.install().unwrap();
        let built = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../php/wordpress/build.sh");
        let status = Command::new(script)
            .arg("--must-use")
            .arg(built.path())
            .status();
        assert!(status.unwrap().success());
        for name in [
            "mayfly.php",
            "mayfly/mayfly.php",
            "mayfly/classes.php",
            "mayfly/uninstall.php",
        ] {
            assert_eq!(
                read(&plugin.folder.join(name)),
                read(&built.path().join(name)),
                "{name}"
            );
        }
        assert_eq!(
            MustUse::new(built.path().to_owned()).state(),
            PluginState::Current
        );
    }

    #[test]
    fn it_is_installed_once_and_an_older_one_is_brought_up_to_date() {
        let (_content, plugin) = folder();
        assert_eq!(plugin.state(), PluginState::Absent);
        plugin.install().unwrap();
        assert_eq!(plugin.state(), PluginState::Current);
        let changed = || {
            std::fs::metadata(plugin.loader())
                .unwrap()
                .modified()
                .unwrap()
        };
        let first = changed();
        plugin.install().unwrap();
        assert_eq!(changed(), first, "nothing is written twice");
        for older in ["mayfly/classes.php", "mayfly/mayfly.php"] {
            std::fs::write(plugin.folder.join(older), format!("<?php\n/** {SIGN} */")).unwrap();
            assert_eq!(plugin.state(), PluginState::Other, "{older}");
            plugin.install().unwrap();
            assert_eq!(plugin.state(), PluginState::Current, "{older}");
        }
        std::fs::remove_file(plugin.loader()).unwrap();
        assert_eq!(plugin.state(), PluginState::Other);
        std::fs::write(plugin.loader(), format!("{LOADER_BY_HAND}\n")).unwrap();
        assert_eq!(plugin.state(), PluginState::Current);
    }

    #[test]
    fn everybody_may_read_it_and_nobody_else_write_it() {
        use std::os::unix::fs::PermissionsExt;
        let (_content, plugin) = folder();
        plugin.install().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&plugin.folder), 0o755);
        assert_eq!(mode(&plugin.inner()), 0o755);
        assert_eq!(mode(&plugin.loader()), 0o644);
        assert_eq!(mode(&plugin.inner().join("classes.php")), 0o644);
        let names = std::fs::read_dir(plugin.inner()).unwrap().count();
        assert_eq!(names, 3, "nothing is left over");
    }

    #[test]
    fn what_is_not_mayflys_stays() {
        let cases = [
            ("mayfly.php", "<?php // mine"),
            (
                "mayfly.php",
                "<?php require __DIR__ . '/mayfly/mayfly.php'; echo 1;",
            ),
            ("mayfly/mayfly.php", "<?php // mine"),
            ("mayfly/other.php", "<?php // mine"),
            ("mayfly", "a file"),
        ];
        for (name, text) in cases {
            let (_content, plugin) = folder();
            let path = plugin.folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            let refused = plugin.install().unwrap_err();
            assert!(
                matches!(refused, PluginError::Foreign(_)),
                "{name}: {refused}"
            );
            assert_eq!(read(&path), text, "{name}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_its_folder_is_not_followed() {
        let (content, plugin) = folder();
        let elsewhere = content.path().join("elsewhere");
        std::fs::create_dir_all(&plugin.folder).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, plugin.inner()).unwrap();
        assert_eq!(plugin.state(), PluginState::Foreign(plugin.inner()));
        assert!(plugin.install().is_err());
        assert!(is_empty(&elsewhere));
    }
}
