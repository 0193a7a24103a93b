//! `RewriteRule` and `RewriteCond`.

use super::*;

#[test]
fn rules_lead_elsewhere() {
    #[rustfmt::skip]
    let cases = [
        ("RewriteRule ^a$ /b [R=301,L]", "/a", "301 http://x.test/b"),
        ("RewriteRule ^a$ b [R]", "/a?q=1", "302 http://x.test/s/b?q=1"),
        ("RewriteBase /\nRewriteRule ^a$ b [R]", "/a", "302 http://x.test/b"),
        ("RewriteRule ^(.*)$ index.php?p=$1 [QSA,L]\n", "/a?q=1", "/index.php?p=index.php&p=a&q=1"),
        (
            "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^(.*)$ index.php?p=$1 [QSA,L]", "/a?q=1",
            "/index.php?p=a&q=1",
        ),
        ("RewriteCond %{ENV:REDIRECT_STATUS} ^$\nRewriteRule ^(.*)$ index.php [L]", "/a", "/index.php"),
        ("RewriteRule ^a$ c [C]\nRewriteRule ^c$ index.php", "/a", "/index.php"),
        ("RewriteRule ^a$ /c [END]\nRewriteRule ^c$ index.php", "/a", "missing"),
        ("RewriteRule ^a$ a [N]\n", "/a", "500"),
        ("RewriteRule ^a$ /b\nRewriteRule ^b$ /a", "/a", "500"),
        ("RewriteRule ^(.*)$ x$1", "/a", "500"),
        (
            "RewriteCond %{REQUEST_METHOD} ^POST [OR]\nRewriteCond %{QUERY_STRING} evil [NC]\nRewriteRule ^ - [F]",
            "/a?EVIL", "403",
        ),
        ("RewriteCond %{LA-U:REMOTE_USER} x\nRewriteRule ^ /index.php", "/a", "403"),
        (
            "RewriteCond %{HTTP_HOST} ^(x)\\.test$\nRewriteRule ^ https://%1.org%{REQUEST_URI} [R=301]", "GET /a b",
            "301 https://x.org/a%20b",
        ),
        ("RewriteRule ^ - [S=1]\nRewriteRule ^ - [F]", "/index.php", "/index.php"),
        ("Redirect permanent /a https://x.org/b", "/a/c?d", "301 https://x.org/b/c?d"),
        ("RedirectMatch ^/a/(.*)$ /b/$1", "/a/c", "302 /b/c"),
        ("Redirect gone /a", "/a", "410"),
        ("RewriteRule ^link$ /index.php?a=b", "/link", "301 /link/?a=b"),
        ("FallbackResource /index.php", "/a/b", "/index.php"),
        ("FallbackResource /index.php", "/none.php", "missing"),
        ("FallbackResource /index.php\nSetHandler default-handler", "/none", "missing"),
        ("DirectoryIndex x.html index.php", "/", "/index.php"),
        ("Options -FollowSymLinks", "/link/a", "403"),
        ("Options -FollowSymLinks +SymLinksIfOwnerMatch", "/link/a", "403"),
        ("RewriteRule ^(.*)$ $1? [R]", "/a?b\u{7f}", "302 http://x.test/s/a"),
    ];
    for (text, request, expected) in cases {
        let text = format!("RewriteEngine on\n{text}");
        let site = Site::new("/index.php /link/a", &[("/", &text)]);
        assert_eq!(answer(&site, request), expected, "{text}\n{request}");
    }
}

#[test]
fn an_inner_file_with_rules_takes_the_place_of_outer_rules() {
    let outer = "RewriteEngine on\nRewriteRule ^ - [F]";
    for (inner, expected) in [
        ("RewriteEngine on", "/m/a.txt"),
        ("RewriteEngine off", "/m/a.txt"),
        ("Options -Indexes", "403"),
        ("RewriteEngine on\nRewriteOptions Inherit", "403"),
    ] {
        let site = Site::new("/m/a.txt", &[("/", outer), ("/m", inner)]);
        assert_eq!(answer(&site, "/m/a.txt"), expected, "{inner}");
    }
}
