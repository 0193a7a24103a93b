//! `mayfly serve` under test: the program with a folder or a URL and no configuration,
//! on a unix socket in a folder of its own, stopped when dropped.

use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::started::StartedProcess;
use crate::wait::TIMEOUT;

/// A running `mayfly serve`.
pub struct FolderServer {
    started: StartedProcess,
    /// The site that it serves, where [`FolderServer::start_site`] made one.
    _site: Option<TempDir>,
}

impl FolderServer {
    /// An empty site for [`FolderServer::start`]. When root starts the server, the account that serves
    /// can read it.
    ///
    /// # Panics
    /// When the folder cannot be made.
    pub fn folder() -> TempDir {
        let folder = tempfile::Builder::new()
            .prefix("mayfly-site")
            .tempdir()
            .expect("a folder");
        open_to_all(folder.path());
        folder
    }

    /// Starts `program serve WHAT ARGUMENTS`; waits until it answers.
    ///
    /// # Panics
    /// When it does not start; with its output.
    pub async fn start(program: &str, what: &str, arguments: &[&str]) -> FolderServer {
        FolderServer::start_with_cache(program, what, arguments, "cache").await
    }

    /// Like [`FolderServer::start`], with a folder for the pages that it keeps; a relative path goes
    /// with the test.
    ///
    /// # Panics
    /// When it does not start; with its output.
    pub async fn start_with_cache(
        program: &str,
        what: &str,
        arguments: &[&str],
        cache: &str,
    ) -> FolderServer {
        let folder = FolderServer::folder();
        let output = |name| std::fs::File::create(folder.path().join(name)).expect("a file");
        let child = Command::new(program)
            .arg("serve")
            .arg(what)
            .arg("--listen")
            .arg(format!("unix:{}", folder.path().join("http").display()))
            .args(arguments)
            .env("RUNTIME_DIRECTORY", folder.path())
            .env("CACHE_DIRECTORY", folder.path().join(cache))
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .expect("the program starts");
        let mut started = StartedProcess::new(child, folder, &["stderr"]);
        // The program prints its announcement when everything listens.
        let announced = |folder: &Path| {
            std::fs::read_to_string(folder.join("stdout")).is_ok_and(|text| text.contains("Ctrl-C"))
        };
        started.wait_for_start(announced).await;
        FolderServer {
            started,
            _site: None,
        }
    }

    /// Starts `program serve FOLDER ARGUMENTS` for a site with these files.
    ///
    /// # Panics
    /// When it does not start; with its output.
    pub async fn start_site(
        program: &str,
        files: &[(&str, &str)],
        arguments: &[&str],
    ) -> FolderServer {
        let site = FolderServer::folder();
        write_files(site.path(), files);
        let shown = site.path().to_str().expect("a plain path");
        let mut serving = FolderServer::start(program, shown, arguments).await;
        serving._site = Some(site);
        serving
    }

    /// The folder of a site that was started with its files.
    ///
    /// # Panics
    /// When it was started otherwise.
    pub fn site(&self) -> &Path {
        self._site.as_ref().expect("a site").path()
    }

    /// Returns the path of its control socket.
    ///
    /// # Panics
    /// When there is no such socket.
    pub fn control(&self) -> PathBuf {
        let files = std::fs::read_dir(self.path("")).expect("its folder");
        let mut paths = files.filter_map(|file| Some(file.ok()?.path()));
        let control = paths.find(|path| path.extension().is_some_and(|it| it == "control"));
        control.expect("a control socket")
    }
}

impl Deref for FolderServer {
    type Target = StartedProcess;

    fn deref(&self) -> &StartedProcess {
        &self.started
    }
}

impl DerefMut for FolderServer {
    fn deref_mut(&mut self) -> &mut StartedProcess {
        &mut self.started
    }
}

impl Drop for FolderServer {
    fn drop(&mut self) {
        // PHP is stopped by its parent, which therefore must not be killed outright.
        self.started.terminate();
        self.started.stop(TIMEOUT);
    }
}

/// Writes files with the folders that they lie in.
///
/// # Panics
/// When that fails.
pub fn write_files(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

/// Lets every account enter and read a folder.
///
/// # Panics
/// When it is not ours.
pub fn open_to_all(folder: &Path) {
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("a mode");
}
