//! Lines of Apache's configuration, and their translation.

use apache_conf::{Conversion, HtaccessFile, NoteKind, Options, convert_htaccess, convert_servers};

fn of_server(text: &str) -> Conversion {
    let text = format!("<VirtualHost *:80>\nDocumentRoot /srv/www\n{text}\n</VirtualHost>");
    convert_servers("f", &text, &|_| Ok(Vec::new()), &Options::default())
}

fn of_htaccess(text: &str) -> Conversion {
    convert_htaccess(&[HtaccessFile { name: "f", text }], &Options::default())
}

/// Returns the counts of lines left out, of lines not translated, and of those that then let visitors
/// in.
fn counts(conversion: &Conversion) -> [usize; 3] {
    [NoteKind::LeftOut, NoteKind::NotTranslated, NoteKind::Unsafe]
        .map(|kind| conversion.count(kind))
}

/// A line of access control is evaluated as it is: none of it becomes a location that hides another one.
#[test]
fn sections_and_rules_are_kept_as_they_are() {
    for section in [
        "<Directory /srv/www/m>\n<LimitExcept POST>\nDeny from all\n</LimitExcept>\n</Directory>",
        "<Location /m>\nRequire method POST\n</Location>",
        "<Location /m>\nRequire env good\n</Location>",
        "<Directory /srv/www/m>\nOrder allow,deny\nAllow from all\nDeny from env=bad\n</Directory>",
        "<Directory ~ \"/srv/www/m.*\">\nRequire all denied\n</Directory>",
        "<FilesMatch \\.php$>\nSetHandler none\n</FilesMatch>",
        "<Directory /srv/www/m>\nAuthMerging And\nRequire ip 10.0.0.1\n</Directory>",
        "<Directory /srv/www>\nRewriteEngine on\nRewriteRule !\\.(png|css)$ - [F]\n</Directory>",
        "<If \"%{REQUEST_METHOD} == 'PUT'\">\nRequire all denied\n</If>",
        "RewriteEngine on\nRewriteCond %{HTTP_HOST} ^www\\.(.*)$\nRewriteRule ^/(.*) https://%1/$1 [R=301,L]",
        "Header always set X-A \"it's a\\b\"",
        "Redirect gone /old",
        "ErrorDocument 404 /404.html",
    ] {
        let made = of_server(section);
        assert_eq!(
            (made.mistakes.len(), counts(&made)),
            (0, [0, 0, 0]),
            "{section}"
        );
        let parsed = nginx_conf::parse("made", made.text.as_bytes());
        let server = parsed.ast.directives[0].block.iter().flatten();
        let mut directives = server.filter(|it| it.name.text == "apache_rules");
        let rules = directives.next().map(|it| it.args[0].text.clone());
        let rules = rules.unwrap_or_else(|| panic!("{}", made.text));
        let kept: Vec<&str> = rules
            .lines()
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .collect();
        assert_eq!(kept, section.lines().collect::<Vec<&str>>());
    }
}

#[test]
fn lines_that_are_lost_are_named_and_those_that_then_let_visitors_in_are_loud() {
    for (text, expected) in [
        ("ServerSignature Off", [1, 0, 0]),
        (
            "<Directory /srv/www>\nAllowOverride All\n</Directory>",
            [0, 0, 0],
        ),
        (
            "<Directory /srv/www>\nAllowOverride AuthConfig\n</Directory>",
            [0, 0, 1],
        ),
        ("<Proxy *>\nRequire ip 10.0.0.1\n</Proxy>", [0, 0, 1]),
        (
            "<Directory /srv/www>\nRequire host a.test\n</Directory>",
            [0, 0, 0],
        ),
        ("RewriteMap m txt:/m", [0, 1, 0]),
        ("Unknown x", [0, 1, 0]),
        ("AddHandler cgi-script .cgi", [0, 1, 0]),
        (
            "<Directory /srv/www>\nphp_value a b\n</Directory>",
            [0, 1, 0],
        ),
    ] {
        assert_eq!(counts(&of_server(text)), expected, "{text}");
    }
}

#[test]
fn a_server_is_said_in_the_syntax_of_nginx() {
    #[rustfmt::skip]
    let cases = [
        ("ServerName a.test:80\nServerAlias *.a.test", "server_name a.test *.a.test;"),
        ("LimitRequestBody 5", "client_max_body_size 5;"),
        ("php_value post_max_size 8M", "client_max_body_size 8388608;"),
        ("AddOutputFilterByType DEFLATE text/css text/html", "gzip_types text/css;"),
        ("<Directory /srv/www>\nOptions Indexes\n</Directory>", "autoindex on;"),
        ("<Directory /srv/www>\nAllowOverride All\n</Directory>", "htaccess on;"),
        ("ProxyPass /app http://127.0.0.1:3000", "location ^~ /app/ {"),
        ("<Location /app>\nProxyPass http://127.0.0.1:3000\n</Location>", "location = /app {"),
        ("Alias /x /srv/y", "alias /srv/y/;"),
        (
            "<FilesMatch \\.php$>\nSetHandler \"proxy:unix:/run/a.sock|fcgi://localhost\"\n</FilesMatch>",
            "fastcgi_pass unix:/run/a.sock;",
        ),
        (
            "RequestHeader unset Proxy early\nRequestHeader set X-A b\nProxyPass / http://127.0.0.1:3000/",
            "proxy_set_header X-A \"b\";",
        ),
    ];
    for (text, line) in cases {
        let made = of_server(text);
        let is_there = made.text.lines().any(|it| it.trim() == line);
        assert!(
            is_there && made.count(NoteKind::NotTranslated) == 0,
            "{text}\n{}",
            made.text
        );
    }
    let made = of_server("ServerName a.test");
    assert!(!made.text.contains("htaccess on") && !made.text.contains("apache_rules"));
}

#[test]
fn htaccess_files_are_read_by_the_server_and_not_translated() {
    let made = of_htaccess("Require all denied\nphp_value a b\nServerSignature Off\n");
    assert_eq!(counts(&made), [0, 1, 0]);
    assert_eq!(made.translated(), 2);
    assert!(made.text.ends_with("\nhtaccess on;\n"), "{}", made.text);
    let made = of_htaccess("<Files a>\n");
    assert_eq!(made.mistakes.len(), 1);
}
