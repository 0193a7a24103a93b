//! Upgrades that fail leave the old program serving, and report the reason.

use super::{BusyClients, ReplacedServer};
use crate::program;

const SITE: &str = "server { listen unix:%%/http; location / { return 200 page; } }";

/// Returns the message of `mayfly upgrade` when it fails.
async fn refused(replaced: &mut ReplacedServer) -> String {
    let old = replaced.pid();
    let output = replaced.upgrade().await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(replaced.pid(), old);
    assert_eq!(replaced.old_pid(), None);
    assert_eq!(replaced.server.target().get("/").await.text(), "page");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn a_new_program_that_cannot_serve_leaves_the_old_one_serving() {
    let mut replaced = ReplacedServer::start("", SITE).await;
    let clients = BusyClients::http1(&replaced.server, 4);
    replaced.server.rewrite("", "server { nonsense; }");
    let said = refused(&mut replaced).await;
    assert!(said.contains("unknown directive \"nonsense\""), "{said}");
    // It is of the log as well.
    let log = replaced.server.error_log();
    assert!(
        log.contains("upgrade failed: the new program refuses to serve"),
        "{log}"
    );

    replaced
        .server
        .rewrite("", &format!("{SITE} server {{ listen unix:%%/none/x; }}"));
    let said = refused(&mut replaced).await;
    assert!(said.contains("bind() to unix:"), "{said}");
    replaced.server.rewrite("", SITE);

    replaced.point_to_script("echo 'it is broken' >&2; exit 3");
    let said = refused(&mut replaced).await;
    assert!(
        said.contains("exit status: 3") && said.contains("it is broken"),
        "{said}"
    );

    replaced.point_to(std::path::Path::new("/nowhere/mayfly"));
    let said = refused(&mut replaced).await;
    assert!(said.contains("could not start"), "{said}");

    clients.answered(20).await;
    replaced.point_to(std::path::Path::new(program()));
    let output = replaced.upgrade().await;
    assert!(output.status.success(), "{output:?}");
    clients.answered(20).await;
    assert_eq!(clients.end().await, [""; 0]);
}

#[tokio::test]
async fn a_new_program_that_hangs_is_given_up() {
    let mut replaced = ReplacedServer::start("", SITE).await;
    replaced.point_to_script("exec sleep 1000");
    let said = refused(&mut replaced).await;
    assert!(said.contains("did not answer within 10 seconds"), "{said}");
}
