//! A server under test: the built program with a configuration of the test's,
//! in a folder of its own, killed when dropped. It listens on a unix socket,
//! so that no two tests can want the same port.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::process::{has_pid_file, is_root};
use crate::started::StartedProcess;

/// A running server.
pub struct RunningServer(StartedProcess);

impl RunningServer {
    /// Starts `program` with `http` as the content of the http block; `%%` in
    /// it stands for the folder. The pid file says that it listens.
    ///
    /// # Panics
    /// When it does not start; with what it said.
    pub async fn start(program: &str, main: &str, http: &str) -> RunningServer {
        let folder = tempfile::Builder::new()
            .prefix("mayfly-test")
            .tempdir()
            .expect("a folder");
        let child = spawn(program, folder.path(), main, http);
        let mut started = StartedProcess::new(child, folder, &["error.log", "stderr"]);
        started.wait_for_start(has_pid_file).await;
        RunningServer(started)
    }

    /// Starts `program` again in the same folder, with the configuration that is there, after it has ended.
    ///
    /// # Panics
    /// When it does not start; with what it said.
    pub async fn start_again(&mut self, program: &str) {
        // After a `kill -9` they still lie there.
        for name in ["pid", "http"] {
            let _ = std::fs::remove_file(self.path(name));
        }
        let child = spawn_configured(program, self.folder_path());
        self.0.replace_child(child);
        self.0.wait_for_start(has_pid_file).await;
    }

    /// Replaces the configuration file.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn rewrite(&self, main: &str, http: &str) {
        write_configuration(self.folder_path(), main, http);
    }
}

impl Deref for RunningServer {
    type Target = StartedProcess;

    fn deref(&self) -> &StartedProcess {
        &self.0
    }
}

impl DerefMut for RunningServer {
    fn deref_mut(&mut self) -> &mut StartedProcess {
        &mut self.0
    }
}

fn write_configuration(folder: &Path, main: &str, http: &str) {
    let shown = folder.to_str().expect("a plain path");
    let text = format!(
        "daemon off;\npid {shown}/pid;\nerror_log {shown}/error.log info;\n{main}\nevents {{}}\n\
         http {{\nroot {shown};\naccess_log off;\n{http}\n}}\n"
    );
    std::fs::write(folder.join("test.conf"), text.replace("%%", shown)).expect("a configuration");
}

fn spawn(program: &str, folder: &Path, main: &str, http: &str) -> Child {
    write_configuration(folder, main, http);
    spawn_configured(program, folder)
}

fn spawn_configured(program: &str, folder: &Path) -> Child {
    let stderr = std::fs::File::create(folder.join("stderr")).expect("a file for stderr");
    let mut command = Command::new(program);
    command.arg("-p").arg(folder);
    if is_root() {
        // As root it would serve as another user, who may not read the folder.
        command.args(["-g", "user root;"]);
    }
    command
        .args(["-c", "test.conf", "-e", "error.log"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .expect("the program starts")
}
