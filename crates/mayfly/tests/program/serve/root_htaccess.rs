//! The `.htaccess` of the document root: Apache's rules that refuse are kept, and what has no effect is named.

use testkit::serving::FolderServer;

use crate::{has_php_fpm, program};

const RULES: &str = "RewriteEngine On\n\
    RewriteRule ^private/ - [F]\n\
    RedirectMatch 403 ^/old\n\
    Redirect 301 /here /there\n\
    <FilesMatch \"\\.(md|secret)$\">\nRequire all denied\n</FilesMatch>\n";

#[tokio::test]
async fn rules_that_refuse_are_kept_and_redirects_are_named() {
    let files = [
        (".htaccess", RULES),
        ("index.html", "the page"),
        ("private/a.html", "private"),
        ("old.html", "old"),
        ("notes.md", "notes"),
        ("here", "here"),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    let target = server.target();
    for (path, status) in [
        ("/", 200),
        ("/private/a.html", 403),
        ("/private/%61.html", 403),
        ("//private/a.html", 403),
        ("/old.html", 403),
        ("/notes.md", 403),
        ("/here", 200),
    ] {
        assert_eq!(target.get(path).await.status, status, "{path}");
    }
    let said = server.read("stdout");
    assert!(said.contains("3 of its rules are kept"), "{said}");
    let named = "have no effect here:\n  4: Redirect 301 /here /there\n";
    assert!(said.contains(named), "{said}");
}

#[tokio::test]
async fn a_site_that_its_htaccess_closes_is_closed_and_says_so() {
    let files = [
        (".htaccess", "AuthType Basic\nRequire valid-user\n"),
        ("index.html", "the page"),
        ("a/b.css", "style"),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    for path in ["/", "/index.html", "/a/b.css", "/none"] {
        assert_eq!(server.target().get(path).await.status, 403, "{path}");
    }
    let said = server.read("stdout");
    assert!(said.contains("closes the whole site"), "{said}");
}

/// Whoever gets PHP to write the file opens nothing by it.
#[tokio::test]
async fn nothing_that_serve_closes_is_opened() {
    if !has_php_fpm() {
        return;
    }
    let opens = "Require all granted\n<FilesMatch \".*\">\nRequire all granted\n</FilesMatch>\n\
        <Files dump.sql>\nRequire all granted\n</Files>\nRewriteRule . - [L]\nAddHandler php .png\n";
    let files = [
        (".htaccess", opens),
        ("index.php", "<?php echo 'page';"),
        ("b.php", "<?php echo 'b';"),
        ("dump.sql", "a dump"),
        (".env", "a key"),
        ("closed/.htaccess", "Require all denied"),
        ("closed/a.css", "closed"),
        ("a.png", "<?php echo 'run';"),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    let target = server.target();
    for (path, status) in [
        ("/", 200),
        ("/b.php", 200),
        ("/dump.sql", 403),
        ("/.env", 403),
        ("/.htaccess", 403),
        ("/closed/a.css", 403),
    ] {
        assert_eq!(target.get(path).await.status, status, "{path}");
    }
    assert_eq!(target.get("/a.png").await.text(), "<?php echo 'run';");
}

/// A denied script does not run, however it is asked for, and an exception holds for its own name.
#[tokio::test]
async fn a_script_that_the_htaccess_refuses_does_not_run() {
    if !has_php_fpm() {
        return;
    }
    let rules = "<FilesMatch \"\\.php$\">\nDeny from all\n</FilesMatch>\n\
        <FilesMatch \"^(index|open)\\.php$\">\nAllow from all\n</FilesMatch>\n";
    let files = [
        (".htaccess", rules),
        ("index.php", "<?php echo 'page';"),
        ("open.php", "<?php echo 'open';"),
        ("secret.php", "<?php echo 'run';"),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    let target = server.target();
    for path in [
        "/secret.php",
        "/secret.php/",
        "/secret.php/index.php",
        "/secret.php/open.php",
        "/x/../secret.php",
        "/%73ecret.php/a.css",
    ] {
        let reply = target.get(path).await;
        assert_eq!(reply.status, 403, "{path}");
        assert!(!reply.text().contains("run"), "{path}");
    }
    for (path, page) in [("/", "page"), ("/index.php", "page"), ("/open.php", "open")] {
        assert_eq!(target.get(path).await.text(), page, "{path}");
    }
}
