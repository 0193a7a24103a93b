//! A folder behind a link: deployments switch `/srv/current` to a new release while the server runs.

use std::os::unix::fs::symlink;

use testkit::serving::{FolderServer, write_files};

use crate::{has_php_fpm, program};

#[tokio::test]
async fn a_link_is_followed_for_each_request() {
    if !has_php_fpm() {
        return;
    }
    let folder = FolderServer::folder();
    let page = |release: &str| format!("<?php echo 'page of {release} in ', __DIR__;");
    for release in ["one", "two"] {
        write_files(
            folder.path(),
            &[
                (&format!("{release}/index.php"), &page(release)),
                (&format!("{release}/style.css"), release),
            ],
        );
    }
    let current = folder.path().join("current");
    let lead_to = |release: Option<&str>| {
        let _ = std::fs::remove_file(&current);
        if let Some(release) = release {
            symlink(folder.path().join(release), &current).expect("a link");
        }
    };
    lead_to(Some("one"));
    let what = current.to_str().expect("a plain path");
    let server = FolderServer::start(program(), what, &["--ttl", "1h", "--workers", "1"]).await;
    let target = server.target();
    for release in ["one", "two", "one"] {
        lead_to(Some(release));
        let expected = format!(
            "page of {release} in {}",
            folder.path().join(release).display()
        );
        for _ in 0..4 {
            assert_eq!(target.get("/").await.text(), expected);
        }
        assert_eq!(target.get("/").await.x_cache(), "HIT");
        assert_eq!(target.get("/style.css").await.text(), release);
    }
    lead_to(None);
    assert_eq!(target.get("/style.css").await.status, 404);
    lead_to(Some("two"));
    assert!(target.get("/").await.text().starts_with("page of two"));
    assert_eq!(target.get("/style.css").await.text(), "two");
}
