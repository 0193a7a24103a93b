//! The files of certificates and keys: messages about them, and who reads them.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use testkit::process::{KilledOnDrop, Signal, has_pid_file, is_root, send_signal, uid};
use testkit::tls_client::TlsClient;
use testkit::wait::until;

use super::{Certificates, ask};
use crate::command_line::{code, folder, run, stderr};
use crate::program;

const CONFIGURATION: &str = "daemon off; pid %%/pid; error_log %%/error.log notice; user nobody;\n\
    events {} http { access_log off; server { listen unix:%%/http ssl;\n\
    ssl_certificate FILES/a.pem; ssl_certificate_key FILES/a.key; return 200 $pid; } }";

#[test]
fn a_test_of_the_configuration_names_the_file_that_is_missing_or_wrong() {
    let certificates = Certificates::new();
    let folder = folder(&[("test.conf", &certificates.resolve(CONFIGURATION))]);
    let test = || run(folder.path(), &["-t", "-c", "test.conf"]);
    let output = test();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let other = certificates.authority.identity("a.test").key_pem();
    let pem = std::fs::read_to_string(certificates.folder.path().join("a.pem")).expect("a file");
    #[rustfmt::skip]
    let cases = [
        ("a.key", None, "cannot load certificate key \"FILES/a.key\": "),
        ("a.key", Some("nonsense"), "cannot load certificate key \"FILES/a.key\": "),
        ("a.key", Some(&*pem), "cannot load certificate key \"FILES/a.key\": "),
        ("a.key", Some(&*other), "SSL_CTX_use_PrivateKey(\"FILES/a.key\") failed"),
        ("a.pem", None, "cannot load certificate \"FILES/a.pem\": "),
        ("a.pem", Some("nonsense"), "cannot load certificate \"FILES/a.pem\": "),
    ];
    for (file, text, message) in cases {
        certificates.add("a", "a.test");
        match text {
            Some(text) => certificates.write(file, text),
            None => std::fs::remove_file(certificates.folder.path().join(file)).expect("a file"),
        }
        let output = test();
        let said = stderr(&output);
        assert_eq!(code(&output), 1, "{file} {text:?}: {said}");
        let message = certificates.resolve(message);
        assert_eq!(said.matches(&message).count(), 1, "{message} in {said}");
        assert!(said.contains("test failed"), "{said}");
    }
}

/// Returns the process that answers.
async fn worker(client: &TlsClient, socket: &std::path::Path) -> u32 {
    let connected = client.connect(socket, "a.test").await;
    let mut connection = connected.expect("a handshake").client;
    let reply = ask(&mut connection, "a.test", "/").await;
    reply.text().parse().expect("a number")
}

#[tokio::test]
async fn a_key_that_only_root_may_read_is_served_by_somebody_else() {
    if !is_root() {
        eprintln!("skipped: only root can give up root's rights");
        return;
    }
    let certificates = Certificates::new();
    let folder = folder(&[("test.conf", &certificates.resolve(CONFIGURATION))]);
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
    };
    mode(folder.path(), 0o755);
    mode(certificates.folder.path(), 0o700);
    mode(&certificates.folder.path().join("a.key"), 0o600);
    let mut command = Command::new(program());
    command.arg("-p").arg(folder.path());
    command.args(["-c", "test.conf", "-e", "error.log"]);
    let child = command.stdin(Stdio::null()).spawn();
    let started = KilledOnDrop(child.expect("the program starts"));
    until("the pid file", || has_pid_file(folder.path())).await;
    let (client, socket) = (
        certificates.client().forgetful(),
        folder.path().join("http"),
    );
    let first = worker(&client, &socket).await;
    assert_ne!(uid(first), Some(0));
    // A certificate that is replaced comes the same way.
    let replaced = certificates.add("a", "a.test");
    mode(&certificates.folder.path().join("a.key"), 0o600);
    send_signal(started.0.id(), Signal::HUP);
    let log = || std::fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();
    until("the reload", || log().contains("reloaded")).await;
    let connection = client
        .connect(&socket, "a.test")
        .await
        .expect("a handshake");
    assert!(connection.certificate == replaced.certificate_der());
    // And so does that of a worker that takes the place of another.
    send_signal(first, Signal::KILL);
    until("another worker", || log().contains("starting another")).await;
    let connection = client
        .connect(&socket, "a.test")
        .await
        .expect("a handshake");
    assert!(connection.certificate == replaced.certificate_der());
    assert_ne!(worker(&client, &socket).await, first);
}
