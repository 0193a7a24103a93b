//! Who may have what: `Require`, `Order`, `Allow` and `Deny`, and the scripts that may run.

use super::*;

/// All of them refuse `/m/a.txt`, the script and the index, with this status.
#[test]
fn folders_are_closed_as_in_apache() {
    #[rustfmt::skip]
    let cases = [
        (
            "401",
            "AuthType Basic\nAuthName x\nAuthUserFile /others\nOrder allow,deny\nAllow from all\nRequire valid-user",
        ),
        ("403", "Order allow,deny\nAllow from 10.9.9.9"),
        ("403", "Order allow,deny\nAllow from all\nDeny from all"),
        ("403", "<RequireAll>\nRequire all granted\nRequire ip 10.9.9.9\n</RequireAll>"),
        ("403", "<RequireAll>\nRequire all granted\nRequire not ip 192.0.2.0/24\n</RequireAll>"),
        (
            "401",
            "AuthType Basic\nAuthName x\nAuthUserFile /others\n<RequireAll>\nRequire all granted\nRequire valid-user\n</RequireAll>",
        ),
        (
            "403",
            "<RequireAll>\nRequire all granted\n<RequireNone>\nRequire ip 192.0.2.1\n</RequireNone>\n</RequireAll>",
        ),
        ("403", "Require method POST"),
        ("403", "<LimitExcept POST>\nOrder deny,allow\nDeny from all\n</LimitExcept>"),
        ("403", "<LimitExcept POST>\nRequire all denied\n</LimitExcept>"),
        ("403", "Order mutual-failure"),
        ("403", "Deny from \"all\""),
        ("403", "Order deny,allow\nDeny from 10.0.0.1 all"),
        ("403", "Order allow,deny\n<Files x>\nAllow from all\n</Files>"),
        ("403", "Deny from 192.0.2.1"),
        ("403", "<If \"%{REQUEST_METHOD} == 'GET'\">\nRequire all denied\n</If>"),
        ("403", "<If \"%{REMOTE_ADDR} -ipmatch '192.0.2.0/24'\">\nRequire all denied\n</If>"),
        ("403", "<If \"-something 'x'\">\nRequire all denied\n</If>"),
        ("403", "RewriteEngine on\nRewriteCond %{HTTP_COOKIE} !ok=1\nRewriteRule ^ - [F]"),
        ("403", "RewriteEngine off\nRewriteEngine on\nRewriteRule . - [F]\nRewriteRule ^$ - [F]"),
        ("403", "<IfModule mod_mime.c>\nRewriteEngine on\nRewriteRule ^ - [F]\n</IfModule>"),
        ("410", "RewriteEngine on\nRewriteRule ^ - [G]"),
        ("404", "RedirectMatch 404 ^/m/"),
        ("404", "Redirect 404 /"),
        ("403", "Require host example.org"),
        ("403", "Order allow,deny\nAllow from all\nDeny from example.org"),
        ("403", "SetEnvIf Request_URI ^/m bad\nOrder allow,deny\nAllow from all\nDeny from env=bad"),
        ("403", "Require env good"),
        ("403", "Require expr %{HTTP_COOKIE} =~ /ok=1/"),
        ("500", "Order allow, deny\nAllow from all"),
        ("500", "AuthType Basic\nRequire valid-user"),
        ("403", "AuthType Digest\nAuthName x\nAuthDigestDomain /\nRequire valid-user"),
        ("403", "SecRuleEngine On"),
        ("403", "SSLRequireSSL"),
        ("403", "Require all denied\nSatisfy all\nAllow from all"),
        ("500", "<Files x>\nRequire all granted"),
    ];
    for (status, text) in cases {
        for path in ["/m/a.txt", "/m/a.php", "/m/", "/m/s/b.txt"] {
            let site = Site::new(
                "/m/a.txt /m/a.php /m/index.php /m/x /m/s/b.txt",
                &[("/m", text)],
            );
            assert_eq!(answer(&site, path), status, "{text}\n{path}");
        }
    }
}

#[test]
fn folders_are_open_as_in_apache() {
    for text in [
        "Order allow,deny\nAllow from all",
        "Order deny,allow\nDeny from all\nAllow from 192.0.2",
        "Require ip 192.0.2.0/255.255.255.0",
        "Require all denied\nRequire all granted",
        "<Limit POST>\nRequire all denied\n</Limit>",
        "AuthType Basic\nAuthName x\nAuthUserFile /users\nRequire valid-user",
        "AuthType Basic\nAuthName x\nAuthUserFile /users\nAuthGroupFile /g\nRequire group staff",
        "AuthType Basic\nAuthName x\nAuthUserFile /others\nRequire valid-user\nOrder allow,deny\nAllow from all\nSatisfy any",
        "Require not-a-thing x\nRequire all granted",
        "# Deny from all",
        "<IfModule !mod_authz_core.c>\nDeny from all\n</IfModule>",
    ] {
        check(
            text,
            &[
                ("/m/a.txt", "/m/a.txt"),
                ("/m/a.php", "/m/a.php"),
                ("/m/", "/m/index.php"),
            ],
        );
    }
}

#[test]
fn an_inner_folder_says_its_own_and_merges_where_it_says_so() {
    for (inner, expected) in [
        ("Require all granted", "/m/s/b.txt"),
        ("AuthMerging And\nRequire all granted", "403"),
        ("AuthMerging Or\nRequire all granted", "/m/s/b.txt"),
        ("Options -Indexes", "403"),
        ("Order allow,deny\nAllow from all", "403"),
    ] {
        let rules = [("/m", "Require all denied"), ("/m/s", inner)];
        let site = Site::new("/m/s/b.txt", &rules);
        assert_eq!(answer(&site, "/m/s/b.txt"), expected, "{inner}");
    }
    let rules = [
        ("/m", "Order deny,allow\nDeny from all"),
        ("/m/s", "Order deny,allow"),
    ];
    let site = Site::new("/m/s/b.txt", &rules);
    assert_eq!(answer(&site, "/m/s/b.txt"), "/m/s/b.txt");
}

#[test]
fn a_front_controller_keeps_files_from_visitors() {
    let rules = "RewriteEngine on\nRewriteRule ^content/ yellow.php [L]\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule ^.*$ /yourls-loader.php [L,QSA]";
    let site = Site::new(
        "/yellow.php /yourls-loader.php /content/a.md /x.css /index.html",
        &[("/", rules)],
    );
    for (request, expected) in [
        ("/content/a.md", "/yellow.php"),
        ("/content/a.md?b=c", "/yellow.php?b=c"),
        ("/link-1?a=b", "/yourls-loader.php?a=b"),
        ("/x.css", "/x.css"),
        ("/", "/index.html"),
    ] {
        assert_eq!(answer(&site, request), expected, "{request}");
    }
}

#[test]
fn scripts_run_only_where_they_may() {
    for text in [
        "php_flag engine off",
        "SetHandler none",
        "<FilesMatch \\.php$>\nRequire all denied\n</FilesMatch>",
        "<FilesMatch \"\\\\.php$\">\nDeny from all\n</FilesMatch>",
        "RewriteEngine on\nRewriteRule \\.php$ - [F]",
        "RedirectMatch 403 ^/m/.*\\.php$",
        "<FilesMatch \\.php$>\nSetHandler none\n</FilesMatch>",
        "RemoveHandler .php .phtml",
        "AddType text/plain .php",
        "<IfModule mod_php5.c>\nphp_flag engine off\n</IfModule>",
        "<Files *.php>\nForceType application/octet-stream\n</Files>",
    ] {
        check(
            text,
            &[
                ("/m/a.php", "403"),
                ("/m/", "403"),
                ("/m/a.txt", "/m/a.txt"),
            ],
        );
    }
    let text = "php_flag engine off\n<Files a.php>\nphp_flag engine on\n</Files>";
    check(text, &[("/m/a.php", "/m/a.php"), ("/m/index.php", "403")]);
}

#[test]
fn a_closed_folder_opens_the_files_that_it_names() {
    let text = "Require all denied\n<FilesMatch \"^(style\\.css|thumb_.*\\.jpg|.*\\.zip)$\">\nRequire all granted\n</FilesMatch>";
    check(
        text,
        &[
            ("/m/style.css", "/m/style.css"),
            ("/m/thumb_1.jpg", "/m/thumb_1.jpg"),
            ("/m/c.zip", "/m/c.zip"),
            ("/m/other.jpg", "403"),
            ("/m/a.txt", "403"),
            ("/m/", "403"),
        ],
    );
}

#[test]
fn a_file_says_nothing_of_what_is_beside_its_folder() {
    let files = "/index.php /i/index.php /i/x /private/a /other/a.css";
    let site = Site::new(
        files,
        &[
            ("/private", "Redirect 404 /"),
            (
                "/i",
                "<FilesMatch \"^[^.]+$\">\nRequire all denied\n</FilesMatch>",
            ),
            (
                "/other",
                "RewriteEngine on\nRewriteRule !\\.(png|css)$ - [F]",
            ),
        ],
    );
    for (request, expected) in [
        ("/", "/index.php"),
        ("/private/a", "404"),
        ("/i/", "/i/index.php"),
        ("/i/x", "403"),
        ("/i", "403"),
        ("/other/a.css", "/other/a.css"),
        ("/other/a.txt", "403"),
    ] {
        assert_eq!(answer(&site, request), expected, "{request}");
    }
}
