//! The `.htaccess` of the document root: Apache's rules that refuse or redirect are kept, and what has no effect is
//! named. Of those of folders, what refuses.

use testkit::serving::FolderServer;

use crate::{has_php_fpm, program};

const RULES: &str = "RewriteEngine On\n\
    RewriteRule ^private/ - [F]\n\
    RedirectMatch 403 ^/old\n\
    Redirect 301 /here /there\n\
    AddHandler php .png\n\
    RewriteCond %{REQUEST_FILENAME} !-d\n\
    RewriteRule ^(.+)/$ /$1 [R=301,L]\n\
    RewriteCond %{QUERY_STRING} (GLOBALS|_REQUEST)= [NC]\n\
    RewriteRule .* - [F]\n\
    <FilesMatch \"\\.(md|secret)$\">\nRequire all denied\n</FilesMatch>\n";

#[tokio::test]
async fn rules_that_refuse_or_redirect_are_kept_and_others_are_named() {
    let files = [
        (".htaccess", RULES),
        ("index.html", "the page"),
        ("private/a.html", "private"),
        ("old.html", "old"),
        ("notes.md", "notes"),
        ("here", "here"),
        (
            "up/.htaccess",
            "<FilesMatch \"\\.(?i:php)$\">\nRequire all denied\n</FilesMatch>\n",
        ),
        ("up/a.txt", "text"),
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
        ("/?globals=1", 403),
        // Browsers would take it for the name of another site.
        ("/%5cx.test/", 404),
        ("/up/a.txt", 200),
        ("/up/a.PHP", 403),
    ] {
        assert_eq!(target.get(path).await.status, status, "{path}");
    }
    for (path, place) in [
        ("/here", "/there"),
        ("/here/a%0d%0ab?c", "/there/a%0D%0Ab?c"),
        ("/a%20b/?c", "/a%20b?c"),
        ("//x.test/", "/x.test"),
        ("/%2f/x.test/", "/x.test"),
    ] {
        let reply = target.get(path).await;
        assert_eq!(reply.status, 301, "{path}");
        assert_eq!(reply.field("location"), place, "{path}");
    }
    let said = server.read("stdout");
    for part in [
        "addresses: 4 of its rules are kept",
        "redirects: 2 of its rules are kept",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let named = "have no effect here:\n  5: AddHandler php .png\n";
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
