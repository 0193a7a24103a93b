//! `cache_learn auto`: pages of a shape are kept once enough comparisons agreed, until one does not.

use control::PurgeRequest;
use control::explain::LearnedState;
use testkit::running::RunningServer;
use testkit::wait::{TIMEOUT, until};

use super::{explained, serve_scripts, write_scripts};
use crate::has_php_fpm;

/// More pages than comparisons are needed: each is the same once when all were made twice.
const PAGES: u32 = 210;

/// How many names a file has does not show in its time and size.
const SCRIPTS: [(&str, &str); 3] = [
    (
        "links.php",
        "<?php echo stat(__DIR__ . '/data.txt')['nlink'];",
    ),
    ("chance.php", "<?php echo random_int(0, PHP_INT_MAX);"),
    ("data.txt", "data"),
];

/// Returns how a page stands: it is kept, and the sentence and detail of its explanation.
async fn standing(server: &RunningServer, path: &str) -> (bool, String) {
    let part = explained(server, path).await.learned.expect("a part");
    let is_kept = part.state == LearnedState::Fresh && part.sentence.contains("it is kept for");
    (is_kept, format!("{}\n{}", part.sentence, part.detail))
}

/// Asks for all pages of both scripts, again and again, until a line is in the error log.
async fn ask_until_logged(server: &RunningServer, line: &str) {
    let started = std::time::Instant::now();
    while !server.error_log().contains(line) {
        for number in 0..PAGES {
            for script in ["links", "chance"] {
                let path = format!("/{script}.php?page={number}");
                assert_eq!(server.target().get(&path).await.status, 200);
            }
        }
        assert!(started.elapsed() < TIMEOUT, "{}", server.error_log());
    }
}

#[tokio::test]
async fn pages_are_kept_after_200_comparisons_and_not_after_one_that_differs() {
    if !has_php_fpm() {
        return;
    }
    let folder = write_scripts(&SCRIPTS);
    let server = serve_scripts(folder.path(), "cache_learn auto;").await;
    let target = server.target();
    ask_until_logged(&server, "are kept from now on").await;
    super::database_site::until_kept(&target, &server.path("pid.control"), "/links.php?page=7")
        .await;
    assert_eq!(target.get("/links.php?page=7").await.text(), "1");
    // Pages of chance were made as often.
    let (is_kept, why) = standing(&server, "/chance.php?page=7").await;
    assert!(!is_kept && why.contains("was another"), "{why}");
    assert!(
        !server
            .error_log()
            .contains("pages like http://site.test/chance.php")
    );
    // Nothing that Mayfly sees has changed: a page that is made again shows the difference.
    let other = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let data = folder.path().join("data.txt");
    std::fs::hard_link(data, other.path().join("data.txt")).expect("a link");
    let page = PurgeRequest {
        urls: vec!["http://site.test/links.php?page=7".to_owned()],
        ..PurgeRequest::default()
    };
    control::client::purge(&server.path("pid.control"), &page)
        .await
        .expect("purged");
    assert_eq!(target.get("/links.php?page=7").await.text(), "2");
    until("the end", || {
        server.error_log().contains("are not kept any more")
    })
    .await;
    for number in 0..PAGES {
        let path = format!("/links.php?page={number}");
        assert_eq!(target.get(&path).await.text(), "2", "{path}");
    }
    // A page that nobody has asked for yet.
    target.get("/links.php?page=new").await;
    super::learned(&server, "/links.php?page=new", LearnedState::Fresh).await;
    let (is_kept, why) = standing(&server, "/links.php?page=new").await;
    assert!(!is_kept, "{why}");
    for part in ["0 of 400 comparisons", "/links.php?page=7 was another"] {
        assert!(why.contains(part), "{why}");
    }
}
