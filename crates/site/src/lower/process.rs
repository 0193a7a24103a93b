//! Lowers the `main` and `events` contexts, which concern the whole process.

use nginx_conf::Diagnostic;

use super::Lowering;
use super::level::Level;
use crate::directives::constants::*;
use crate::model::*;

/// The largest number of threads, far more than any machine has cores.
const MAX_WORKERS: u64 = 1024;

impl Lowering<'_> {
    pub fn process(&mut self, main: &Level<'_>, http: Option<&Level<'_>>) -> Process {
        self.needs_events(main);
        let pid_file = main.word("pid");
        Process {
            daemon: self.value(main, DAEMON),
            user: main.find("user").map(|node| User {
                name: node.arg(0).text.clone(),
                group: node.args().get(1).map(|word| word.text.clone()),
            }),
            workers: self.workers(main),
            pid_file: pid_file.map_or_else(
                || self.own_files.unnamed_pid_file(),
                |word| self.own_files.run.join(&word.text),
            ),
            control_socket: match main.word("control_socket") {
                None => ControlSocket::BesidePidFile,
                Some(word) if word.text == "off" => ControlSocket::Off,
                Some(word) => ControlSocket::Path(self.own_files.run.join(&word.text)),
            },
            env: main
                .all("env")
                .iter()
                .map(|node| match node.arg(0).split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => (node.arg(0).text.clone(), None),
                })
                .collect(),
            open_files_limit: self.given(main, WORKER_RLIMIT_NOFILE),
            error_logs: self.process_logs(main, http),
            shutdown_timeout: self
                .given(main, WORKER_SHUTDOWN_TIMEOUT)
                .filter(|timeout| !timeout.is_zero()),
            php_pools: std::mem::take(&mut self.pools),
        }
    }

    /// Returns the logs of the program itself. If neither the main context nor the command line
    /// sets one, but `http` does, the operator looks there and not at the default file.
    fn process_logs(&mut self, main: &Level<'_>, http: Option<&Level<'_>>) -> Vec<ErrorLog> {
        let is_said = !main.own("error_log").is_empty() || self.options.error_log.is_some();
        match http.filter(|_| !is_said) {
            Some(http) => self.error_logs(http),
            None => self.error_logs(main),
        }
    }

    fn workers(&mut self, main: &Level<'_>) -> Option<usize> {
        let Some(node) = main.find("worker_processes") else {
            return Some(1);
        };
        let word = node.arg(0);
        if word.text == "auto" {
            return None;
        }
        let count = self.number_of(word)?;
        if count == 0 || count > MAX_WORKERS {
            self.invalid(
                word,
                "number of workers",
                format!("expected auto or 1 to {MAX_WORKERS}"),
            );
            return Some(1);
        }
        usize::try_from(count).ok()
    }

    /// nginx refuses a file without `events`. Here the block has no effect, so only a missing
    /// `http` is reported.
    fn needs_events(&mut self, main: &Level<'_>) {
        if main.own("http").is_empty() && !self.diagnostics.iter().any(Diagnostic::is_error) {
            let mut warning =
                Diagnostic::error_without_span("no \"http\" block: nothing is served");
            warning.severity = nginx_conf::Severity::Warning;
            self.report(warning.hint("write http { server { listen 80; root /var/www; } }"));
        }
    }
}
