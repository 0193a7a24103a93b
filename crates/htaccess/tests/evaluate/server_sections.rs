//! Sections of a server's own configuration.

use super::*;

/// Sections of a server's configuration, merged in the order in which Apache merges them.
#[test]
fn sections_of_a_server_hold_for_their_folders_and_addresses() {
    let closed = "<Directory /s>\nAllowOverride All\n</Directory>\n<Directory /s/m>\nRequire all denied\n</Directory>\n";
    #[rustfmt::skip]
    let cases = [
        (closed, "", "/m/a.txt", "403"),
        (closed, "", "/a.txt", "/a.txt"),
        (closed, "Require all granted", "/m/a.txt", "/m/a.txt"),
        // Without AllowOverride, such files have no effect.
        ("<Directory /s/m>\nRequire all denied\n</Directory>", "Require all granted", "/m/a.txt", "403"),
        ("ServerSignature Off", "Require all denied", "/m/a.txt", "/m/a.txt"),
        ("<Directory />\nRequire all denied\n</Directory>", "", "/a.txt", "403"),
        (
            "<Directory /s>\nRequire all granted\n</Directory>\n<Directory />\nRequire all denied\n</Directory>",
            "", "/a.txt", "/a.txt",
        ),
        ("<Directory ~ \"/m.*\">\nRequire all denied\n</Directory>", "", "/m/a.txt", "403"),
        ("<DirectoryMatch ^/s/m/>\nRequire all denied\n</DirectoryMatch>", "", "/m/index.php", "403"),
        ("<Directory /s/*>\nRequire all denied\n</Directory>", "", "/m/a.txt", "403"),
        ("<Directory s>\n</Directory>", "", "/a.txt", "500"),
        ("<FilesMatch \\.php$>\nSetHandler none\n</FilesMatch>", "", "/m/", "403"),
        ("<Files a.txt>\nRequire all denied\n</Files>", "", "/m/a.txt", "403"),
        // Locations come last.
        (
            "<Location /m>\nRequire all granted\n</Location>\n<Files a.txt>\nRequire all denied\n</Files>", "",
            "/m/a.txt", "/m/a.txt",
        ),
        ("<Location /m/>\nRequire all denied\n</Location>", "", "/m/", "403"),
        ("<LocationMatch \"\\.php$\">\nRequire method POST\n</LocationMatch>", "", "/m/", "403"),
        (
            "<Location /m>\n<LimitExcept POST>\nRequire all denied\n</LimitExcept>\n</Location>", "",
            "/m/index.php", "403",
        ),
        (
            "<Directory /s>\nRequire all denied\n</Directory>\n<Directory /s/m>\nAuthMerging And\nRequire all granted\n</Directory>",
            "", "/m/a.txt", "403",
        ),
        // Rules of the server come before files are looked for, and see the path of the address.
        ("RewriteEngine on\nRewriteRule ^/x$ /m/a.txt", "", "/x", "/m/a.txt"),
        ("RewriteEngine on\nRewriteRule ^/x$ /m/a.txt", "Require all denied", "/x", "/m/a.txt"),
        ("RewriteEngine on\nRewriteRule ^/m/ - [F]", "", "/m/a.txt", "403"),
        ("RewriteRule ^/m/ - [F]", "", "/m/a.txt", "/m/a.txt"),
        // Sections are for the address that was asked for.
        (
            "RewriteEngine on\nRewriteRule ^/x$ /m/a.txt\n<Location /x>\nRequire all denied\n</Location>", "", "/x",
            "403",
        ),
        ("<Directory /s/m/a.txt>\nRequire all denied\n</Directory>", "", "/m/a.txt", "403"),
        (
            "<Directory /s>\nRequire all denied\n</Directory>\n<Directory /s/*.php>\nRequire all granted\n</Directory>",
            "", "/index.php/a", "403",
        ),
        // An index is looked up with them, and folders inherit that rules are run.
        ("RewriteEngine on\nRewriteRule ^/m/index - [F]", "", "/m/", "403"),
        ("RewriteEngine on\n<Directory /s/m>\nRewriteRule ^ - [G]\n</Directory>", "", "/m/a.txt", "410"),
        ("RewriteEngine on\nRewriteRule ^/(.*) https://x.org/$1 [R=301]", "", "/a.txt", "301 https://x.org/a.txt"),
        ("Redirect permanent / https://x.org/", "", "/a.txt?b", "301 https://x.org/a.txt?b"),
        ("RewriteMap m txt:/x", "", "/a.txt", "403"),
    ];
    for (server, htaccess, request, expected) in cases {
        let mut site = Site::new(
            "/index.php /a.txt /m/a.txt /m/index.php",
            &[("/m", htaccess)],
        );
        site.server = read_server_rules(server);
        assert_eq!(answer(&site, request), expected, "{server}\n{htaccess}");
    }
}

#[test]
fn paths_of_other_servers_have_the_rules_of_their_addresses() {
    let mut site = Site::new("/a.txt", &[]);
    site.server = read_server_rules(
        "<Directory />\nRequire all denied\n</Directory>\n<Location /app/admin>\nRequire all denied\n</Location>",
    );
    for (path, expected) in [
        ("/app/x", "/app/x"),
        ("/app/admin/x", "403"),
        ("/a.txt", "403"),
    ] {
        assert_eq!(answer(&site, path), expected, "{path}");
    }
}
