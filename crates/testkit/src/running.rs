//! A server under test: the built program with a configuration of the test's,
//! in a folder of its own, killed when dropped. It listens on a unix socket,
//! so that no two tests can want the same port.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::process::{has_pid_file, is_root};
use crate::serving::FolderServer;
use crate::started::StartedProcess;

pub struct RunningServer {
    started: StartedProcess,
    /// `user`, where root starts it; `None`: the account that the program chooses.
    account: Option<&'static str>,
}

impl RunningServer {
    /// Starts `program` with `http` as the content of the http block; `%%` in it stands for the folder. The pid file
    /// appears when it listens.
    ///
    /// # Panics
    /// When it does not start; with its output.
    pub async fn start(program: &str, main: &str, http: &str) -> RunningServer {
        let folder = tempfile::Builder::new()
            .prefix("mayfly-test")
            .tempdir()
            .expect("a folder");
        // A server started as root would serve as another user, who may not read the folder.
        RunningServer::start_in(folder, program, main, http, Some("root")).await
    }

    /// Like [`RunningServer::start`], with root as the starter and an account of its own for the process that serves:
    /// its parent keeps the rights of root, and PHP.
    ///
    /// # Panics
    /// When it does not start; with its output.
    pub async fn start_divided(program: &str, main: &str, http: &str) -> RunningServer {
        let folder = FolderServer::folder();
        RunningServer::start_in(folder, program, main, http, Some("nobody")).await
    }

    /// Like [`RunningServer::start_divided`], with the account that the program chooses.
    ///
    /// # Panics
    /// When it does not start; with its output.
    pub async fn start_as_chosen(program: &str, main: &str, http: &str) -> RunningServer {
        RunningServer::start_in(FolderServer::folder(), program, main, http, None).await
    }

    async fn start_in(
        folder: TempDir,
        program: &str,
        main: &str,
        http: &str,
        account: Option<&'static str>,
    ) -> RunningServer {
        write_configuration(folder.path(), main, http);
        let child = spawn(program, folder.path(), account);
        let mut started = StartedProcess::new(child, folder, &["error.log", "stderr"]);
        started.wait_for_start(has_pid_file).await;
        RunningServer { started, account }
    }

    /// Starts `program` again in the same folder, with the configuration that is there, after it has ended.
    ///
    /// # Panics
    /// When it does not start; with its output.
    pub async fn start_again(&mut self, program: &str) {
        // After a `kill -9` they still lie there.
        for name in ["pid", "http"] {
            let _ = std::fs::remove_file(self.path(name));
        }
        let child = spawn(program, self.folder_path(), self.account);
        self.started.replace_child(child);
        self.started.wait_for_start(has_pid_file).await;
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
        &self.started
    }
}

impl DerefMut for RunningServer {
    fn deref_mut(&mut self) -> &mut StartedProcess {
        &mut self.started
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

fn spawn(program: &str, folder: &Path, account: Option<&str>) -> Child {
    let stderr = std::fs::File::create(folder.join("stderr")).expect("a file for stderr");
    let mut command = Command::new(program);
    command.arg("-p").arg(folder);
    if let (true, Some(account)) = (is_root(), account) {
        command.arg("-g").arg(format!("user {account};"));
    }
    command
        .args(["-c", "test.conf", "-e", "error.log"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .expect("the program starts")
}
