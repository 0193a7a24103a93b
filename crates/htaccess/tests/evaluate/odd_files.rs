//! Files with mistakes, and files that are made to do harm.

use super::*;

/// Cases that the comparison of generated trees with Apache has found.
#[test]
fn odd_files_are_read_as_apache_reads_them() {
    #[rustfmt::skip]
    let cases = [
        // The last condition has no next one.
        ("RewriteEngine on\nRewriteCond %{HTTP_COOKIE} x [OR]\nRewriteRule ^ - [F]", "/m/a.txt", "403"),
        ("AuthMerging Or\nRequire valid-user", "/m/a.txt", "/m/a.txt"),
        ("Require not ip 10.0.0.1", "/m/a.txt", "500"),
        ("<If true>\nRequire all denied\n<Files a.txt>\nRequire all granted\n</Files>\n</If>", "/m/a.txt", "403"),
        ("<IfModule mod_php5.c>\nRequire valid-user\n</IfModule>", "/m/a.txt", "403"),
        ("<IfModule mod_php5.c>\nRequire all denied\n</IfModule>", "/m/a.txt", "403"),
        ("<IfModule mod_php5.c>\nRedirect / /b\n</IfModule>", "/m/a.txt", "/m/a.txt"),
        ("FallbackResource none", "/m/none", "500"),
        ("FallbackResource none.php", "/m/none", "missing"),
        ("DirectoryIndex s/ s/ s/", "/m/", "403"),
        // The first index that is there answers, whatever would answer for it.
        ("DirectoryIndex x index.php\nRewriteEngine on\nRewriteRule ^x$ /index.php [H=text/plain]", "/m/", "403"),
        // An index is looked up by GET.
        ("<Files index.php>\nRequire method POST\n</Files>", "POST /m/", "403"),
        ("RewriteEngine on\nRewriteRule ^a\\.txt$ x [H=text/plain]", "/m/a.txt", "403"),
    ];
    for (text, request, expected) in cases {
        check(text, &[(request, expected)]);
    }
    let outer = "RewriteEngine on\nRewriteOptions InheritBefore\nRewriteRule ^ - [F]";
    let site = Site::new("/m/a.txt", &[("/", outer), ("/m", "RewriteRule ^none /b")]);
    assert_eq!(answer(&site, "/m/a.txt"), "403");
}

#[test]
fn hostile_files_are_bounded_and_close_their_folder() {
    let deep = "<IfModule mod_dir.c>\n".repeat(200);
    let long = format!("{}\nRequire all denied", "# x\n".repeat(300_000));
    let behind = format!("{}\nRequire all denied", "#".repeat(400 << 10));
    let loops = "RewriteEngine on\nRewriteRule ^(.*)$ $1$1 [N]".to_owned();
    let backtracks =
        "<FilesMatch \"^(?:(?:a|aa)+)+$\">\nRequire all denied\n</FilesMatch>".to_owned();
    let patterns = "<FilesMatch ^x>\nFileETag none\n</FilesMatch>\n".repeat(3000);
    for (text, path, expected) in [
        (patterns, "/m/a.txt", "403"),
        (deep, "/m/a.txt", "500"),
        (long, "/m/a.txt", "403"),
        (behind, "/m/a.txt", "403"),
        (loops, "/m/a.txt", "500"),
        (
            backtracks,
            "/m/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
            "403",
        ),
    ] {
        let site = Site::new("/m/a.txt", &[("/m", &text)]);
        assert_eq!(answer(&site, path), expected);
    }
    let rules = read_rules(b"<Files \"\xe9.txt\">\nRequire all denied\n</Files>");
    assert!(rules.notes[0].closes, "{:?}", rules.notes);
}
