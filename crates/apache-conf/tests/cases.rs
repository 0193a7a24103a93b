//! Lines of a `.htaccess`, and what they become: one row each.

use apache_conf::{HtaccessFile, Kind, Options, convert_htaccess, convert_servers};

/// What `mayfly convert` makes of the text in the document root, without what is always there.
fn made(text: &str) -> String {
    let file = HtaccessFile {
        name: "f",
        text,
        folder: "/",
    };
    let made = convert_htaccess(&[file], &Options::default());
    assert_eq!(made.mistakes, [], "{text}");
    let dot = "location ~ /\\.(?!well-known(?:/|$)) {\n    deny all;\n}\n";
    let guard = "# What is refused or limited is led nowhere else.\n";
    let text = made
        .text
        .replace(dot, "")
        .replace(guard, "")
        .replace("if ($uri ~ \"/\\\\.ht\") { break; }\n", "");
    text.replace("\n\n\n", "\n\n").trim().to_owned()
}

/// Each row: lines of Apache, then what they become, all of it.
fn check(rows: &[(&str, &str)]) {
    for (apache, expected) in rows {
        assert_eq!(made(apache), *expected, "{apache}");
    }
}

#[test]
fn redirects_become_rewrite_and_return() {
    check(&[
        ("Redirect /a /b", "rewrite \"^/a(/.*)?$\" /b$1 redirect;"),
        (
            "Redirect 301 /a/ https://x.test/b/",
            "rewrite \"^/a/(.*)$\" https://x.test/b/$1 permanent;",
        ),
        (
            "RedirectPermanent /a /b%20c",
            "rewrite \"^/a(/.*)?$\" /b%20c$1 permanent;",
        ),
        (
            "Redirect 301 / https://x.test/",
            "return 301 https://x.test$request_uri;",
        ),
        (
            "Redirect 410 /a.b",
            "if ($uri ~ \"^/a\\\\.b(?:/|$)\") { return 410; }",
        ),
        (
            "RedirectMatch 404 /\\.git",
            "if ($uri ~ \"/\\\\.git\") { return 404; }",
        ),
        (
            "RedirectMatch 301 ^/a/(.*)\\.html$ /b/$1",
            "rewrite \"^/a/(.*)\\\\.html$\" /b/$1 permanent;",
        ),
        (
            "Redirect /a https://x.test/?q=1",
            "rewrite \"^/a(/.*)?$\" https://x.test/?q=1$1? redirect;",
        ),
    ]);
}

#[test]
fn rules_become_rewrite_and_if() {
    let on = |it: &str| format!("RewriteEngine On\n{it}");
    for (apache, expected) in [
        (
            "RewriteRule ^a/(.*)$ b/$1 [L]",
            "rewrite \"^/a/(.*)$\" /b/$1 last;",
        ),
        (
            "RewriteRule ^a$ /b?c=d [L]",
            "rewrite \"^/a$\" /b?c=d? last;",
        ),
        (
            "RewriteRule ^a$ /b?c=d [L,QSA]",
            "rewrite \"^/a$\" /b?c=d last;",
        ),
        (
            "RewriteRule ^A$ /b [R=301,NC,L]",
            "rewrite \"(?i)^/A$\" /b permanent;",
        ),
        (
            "RewriteRule ^a$ /b#c [R,NE]",
            "rewrite \"^/a$\" \"/b#c\" redirect;",
        ),
        (
            "RewriteRule ^a$ /b#c [R]",
            "rewrite \"^/a$\" /b%23c redirect;",
        ),
        (
            "RewriteRule ^a$ - [F]",
            "if ($uri ~ \"^/a$\") { return 403; }",
        ),
        (
            "RewriteRule ^a/.* - [G]",
            "if ($uri ~ \"(?s)^/a/.*\") { return 410; }",
        ),
        (
            "RewriteRule !^a/ - [F]",
            "if ($uri !~ \"^/a/\") { return 403; }",
        ),
        ("RewriteRule ^ - [F]", "return 403;"),
        (
            "RewriteRule ^a|b$ - [F]",
            "if ($uri ~ \"(?s)^/.*?(?:(?<=^/)a|b$)\") { return 403; }",
        ),
        (
            "RewriteRule ^a - [L]\nRewriteRule ^b - [F]",
            "if ($uri ~ \"^/a\") { break; }\nif ($uri ~ \"^/b\") { return 403; }",
        ),
        (
            "RewriteRule ^a$ /b [R=308,L]",
            "if ($uri ~ \"^/a$\") { return 308 /b$is_args$args; }",
        ),
        (
            "RewriteCond %{HTTPS} off\nRewriteRule ^ https://%{HTTP_HOST}%{REQUEST_URI} [R=301,L]",
            "if ($https != on) { return 301 https://$host$request_uri; }",
        ),
        (
            "RewriteCond %{HTTPS} !=on\nRewriteRule ^(.*)$ https://example.com/$1 [R=301,L]",
            "if ($https != on) { return 301 https://example.com$request_uri; }",
        ),
        (
            "RewriteCond %{HTTP_HOST} ^www\\.(.+)$ [NC]\nRewriteRule ^(.*)$ http://%1/$1 [R=301,L]",
            "if ($http_host ~* \"^www\\\\.(.+)$\") {\n    set $captured_1 $1;\n    rewrite \"^/(.*)$\" http://$captured_1/$1 permanent;\n}",
        ),
        (
            "RewriteCond %{REQUEST_URI} (.+)/$\nRewriteRule ^ %1 [L,R=301]",
            "rewrite \"(.+)/$\" $1 permanent;",
        ),
        (
            "RewriteCond %{HTTP_USER_AGENT} bad [NC,OR]\nRewriteCond %{REMOTE_ADDR} ^10\\.\nRewriteRule ^ - [F]",
            "set $applies_1 1;\nset $one_of \"\";\nif ($remote_addr ~ \"^10\\\\.\") { set $one_of 1; }\n\
             if ($http_user_agent ~* \"bad\") { set $one_of 1; }\nif ($one_of = \"\") { set $applies_1 \"\"; }\n\
             if ($applies_1) { return 403; }",
        ),
        (
            "RewriteCond %{REQUEST_METHOD} ^TRACE\nRewriteCond %{THE_REQUEST} \\ /a\\ HTTP\nRewriteRule ^ - [F]",
            "set $applies_1 1;\nif ($request_method !~ \"^TRACE\") { set $applies_1 \"\"; }\n\
             if ($request !~ \"\\\\ /a\\\\ HTTP\") { set $applies_1 \"\"; }\nif ($applies_1) { return 403; }",
        ),
        (
            "RewriteRule ^a - [S=1]\nRewriteRule ^b - [F]",
            "set $skips_1 \"\";\nif ($uri ~ \"^/a\") { set $skips_1 1; }\nset $applies_2 1;\n\
             if ($skips_1 != \"\") { set $applies_2 \"\"; }\nif ($uri !~ \"^/b\") { set $applies_2 \"\"; }\n\
             if ($applies_2) { return 403; }",
        ),
        (
            "RewriteCond %{QUERY_STRING} ^$\nRewriteRule ^a$ - [F]",
            "set $applies_1 1;\nif ($args != \"\") { set $applies_1 \"\"; }\nif ($uri !~ \"^/a$\") { set $applies_1 \"\"; }\nif ($applies_1) { return 403; }",
        ),
        (
            "RewriteCond %{DOCUMENT_ROOT}/cache/%{HTTP_HOST}.html -f\nRewriteRule ^a$ /cache/b.html [L]",
            "if (-f $document_root/cache/$http_host.html) { rewrite \"^/a$\" /cache/b.html last; }",
        ),
        (
            "RewriteBase /blog\nRewriteRule ^a$ b [L]",
            "rewrite \"^/a$\" /blog/b last;",
        ),
    ] {
        assert_eq!(made(&on(apache)), expected, "{apache}");
    }
}

#[test]
fn front_controllers_become_try_files() {
    let front = |conditions: &str, rule: &str| {
        format!("RewriteEngine On\n{conditions}\nRewriteRule {rule}")
    };
    let both = "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d";
    for (conditions, rule, expected) in [
        (
            both,
            ". /index.php [L]",
            "location / {\n    try_files $uri $uri/ /index.php?$args;\n}",
        ),
        (
            both,
            "^(.*)$ index.php?q=$1 [L,QSA]",
            "location / {\n    try_files $uri $uri/ @index_php;\n}\n\nlocation @index_php {\n    rewrite ^/(.*)$ /index.php?q=$1 last;\n}",
        ),
        (
            both,
            "^(.*)$ index.php/$1 [L]",
            "location / {\n    try_files $uri $uri/ @index_php;\n}\n\nlocation @index_php {\n    rewrite ^/(.*)$ /index.php/$1 last;\n}",
        ),
        (
            "RewriteCond %{REQUEST_FILENAME} !-f",
            "^ index.php [L]",
            "location / {\n    try_files $uri /index.php?$args;\n}",
        ),
        (
            "RewriteRule ^index\\.php$ - [L]\nRewriteCond %{REQUEST_FILENAME} !-f",
            ". /index.php [L]",
            "location / {\n    try_files $uri /index.php?$args;\n}",
        ),
    ] {
        assert_eq!(
            made(&front(conditions, rule)),
            expected,
            "{conditions} {rule}"
        );
    }
    check(&[(
        "FallbackResource /a.php",
        "location / {\n    try_files $uri $uri/ /a.php?$args;\n}",
    )]);
}

#[test]
fn access_becomes_allow_deny_and_passwords() {
    let password = "AuthType Basic\nAuthName \"The \\\"inner\\\" part\"\nAuthUserFile /etc/users\n";
    let lines = "auth_basic \"The \\\"inner\\\" part\";\nauth_basic_user_file /etc/users;";
    check(&[
        ("Require all granted", ""),
        ("Require all denied", "deny all;"),
        (
            "Require ip 10.1 192.0.2.0/24",
            "allow 10.1.0.0/16;\nallow 192.0.2.0/24;\ndeny all;",
        ),
        ("Require local", "allow 127.0.0.0/8;\nallow ::1;\ndeny all;"),
        (
            "<RequireAll>\nRequire all granted\nRequire not ip 10.0.0.1\n</RequireAll>",
            "deny 10.0.0.1;",
        ),
        ("Order deny,allow\nDeny from all", "deny all;"),
        (
            "Order deny,allow\nDeny from all\nAllow from 10.0.0.1",
            "allow 10.0.0.1;\ndeny all;",
        ),
        (
            "Order allow,deny\nAllow from all\nDeny from 10.0.0.1",
            "deny 10.0.0.1;",
        ),
        ("Order allow,deny", "deny all;"),
        ("Order allow,deny\nAllow from all", ""),
        (&format!("{password}Require valid-user"), lines),
        (
            &format!(
                "{password}Require valid-user\nOrder deny,allow\nDeny from all\nAllow from 10.0.0.1\nSatisfy any"
            ),
            &format!("satisfy any;\nallow 10.0.0.1;\ndeny all;\n{lines}"),
        ),
        (
            &format!(
                "{password}<RequireAny>\nRequire ip 10.0.0.1\nRequire valid-user\n</RequireAny>"
            ),
            &format!("satisfy any;\nallow 10.0.0.1;\ndeny all;\n{lines}"),
        ),
        (
            &format!(
                "{password}<RequireAll>\nRequire ip 10.0.0.1\nRequire valid-user\n</RequireAll>"
            ),
            &format!("allow 10.0.0.1;\ndeny all;\n{lines}"),
        ),
        (
            "<Files a.sql>\nRequire all denied\n</Files>",
            "location ~ /a\\.sql$ {\n    deny all;\n}",
        ),
        (
            "<FilesMatch \"\\.(bak|inc)$\">\nDeny from all\n</FilesMatch>",
            "location ~ \\.(?:bak|inc)$ {\n    deny all;\n}",
        ),
        (
            "<Limit PUT DELETE>\nRequire all denied\n</Limit>",
            "if ($request_method ~ ^(?:PUT|DELETE)$) { return 403; }",
        ),
        (
            "<LimitExcept GET POST>\nDeny from all\n</LimitExcept>",
            "if ($request_method !~ ^(?:GET|POST|HEAD)$) { return 403; }",
        ),
        (
            "SetEnvIfNoCase User-Agent bot bad\nOrder allow,deny\nAllow from all\nDeny from env=bad",
            "set $env_bad \"\";\nif ($http_user_agent ~* \"bot\") { set $env_bad \"1\"; }\n\nif ($env_bad) { return 403; }",
        ),
        (
            "<IfModule !mod_authz_core.c>\nDeny from all\n</IfModule>",
            "# left out: f:1: <IfModule !mod_authz_core.c>: it does not hold for Apache 2.4 as distributions build it\n\
             # left out: f:2: Deny from all: it is in the section above",
        ),
    ]);
}

/// Each row closes what it limits, is loud, and ends with an error.
#[test]
fn limits_that_cannot_be_said_are_closed() {
    for text in [
        "Require user anna",
        "Require group admins",
        "Require host example.com",
        "Require expr true",
        "AuthType Digest\nAuthUserFile /x\nRequire valid-user",
        "AuthType Basic\nRequire valid-user",
        "AuthType Basic\nAuthUserFile users\nRequire valid-user",
        "<RequireAll>\nRequire ip 10.0.0.1\nRequire host a\n</RequireAll>",
        "<RequireNone>\nRequire valid-user\n</RequireNone>",
    ] {
        let file = HtaccessFile {
            name: "f",
            text,
            folder: "/",
        };
        let made = convert_htaccess(&[file], &Options::default());
        assert!(made.text.contains("\ndeny all;\n"), "{text}: {}", made.text);
        assert!(made.count(Kind::Unsafe) > 0, "{text}: {}", made.text);
        assert!(
            made.text.contains("(IT KEEPS VISITORS OUT)"),
            "{text}: {}",
            made.text
        );
    }
}

#[test]
fn lines_that_keep_visitors_out_and_have_no_counterpart_are_loud() {
    for text in [
        "RewriteEngine On\nRewriteCond %{REMOTE_HOST} bad\nRewriteRule ^ - [F]",
        "RewriteEngine On\nRewriteCond %{TIME_HOUR} >10\nRewriteRule ^a - [R=404]",
        "Order allow,deny\nAllow from all\nDeny from example.com",
        "<If \"%{HTTP_HOST} == 'x'\">\nRequire all denied\n</If>",
        "<IfModule mod_security2.c>\nSecRule ARGS x deny\n</IfModule>",
        "SecFilterEngine On",
        "<Files ~ \"(\">\nDeny from all\n</Files>",
        "SSLVerifyClient require",
    ] {
        let file = HtaccessFile {
            name: "f",
            text,
            folder: "/",
        };
        let made = convert_htaccess(&[file], &Options::default());
        assert!(made.count(Kind::Unsafe) > 0, "{text}: {}", made.text);
    }
}

#[test]
fn what_files_are_given_stands_in_locations_for_their_extensions() {
    check(&[
        (
            "Header set X-A b",
            "add_header X-A \"b\";\nfastcgi_hide_header X-A;",
        ),
        (
            "Header always set X-A b",
            "add_header X-A \"b\" always;\nfastcgi_hide_header X-A;",
        ),
        ("Header append Vary Accept", "add_header Vary \"Accept\";"),
        (
            "Header unset X-Powered-By",
            "fastcgi_hide_header X-Powered-By;",
        ),
        (
            "ExpiresActive On\nExpiresDefault \"access plus 1 week\"",
            "expires 7d;",
        ),
        (
            "ExpiresActive On\nExpiresByType image/jpeg A3600",
            "location ~* \\.(?:jpeg|jpg)$ {\n    expires 1h;\n}",
        ),
        (
            "AddType font/woff2 .woff2",
            "location ~* \\.woff2$ {\n    types { }\n    default_type font/woff2;\n}",
        ),
        (
            "<FilesMatch \"\\.(css|js)$\">\nHeader set Cache-Control \"max-age=60\"\n</FilesMatch>",
            "location ~* \\.(?:css|js)$ {\n    add_header Cache-Control \"max-age=60\";\n}",
        ),
        (
            "AddOutputFilterByType DEFLATE text/html text/css",
            "gzip on;\ngzip_vary on;\ngzip_types text/css;",
        ),
        ("AddDefaultCharset UTF-8", "charset utf-8;"),
        ("DirectoryIndex a.php b.html", "index a.php b.html;"),
        ("ErrorDocument 404 /x.html", "error_page 404 /x.html;"),
        (
            "ErrorDocument 403 \"Go away\"",
            "error_page 403 @error_403;\n\nlocation @error_403 {\n    internal;\n    default_type text/html;\n    return 403 \"Go away\";\n}",
        ),
        ("Options -Indexes -MultiViews", "autoindex off;"),
        ("Options +Indexes", "autoindex on;"),
        ("FileETag None", "etag off;"),
        ("LimitRequestBody 1000", "client_max_body_size 1000;"),
        (
            "php_flag engine off",
            "location ~ \\.(?i:ph(?:p\\d?|ar|tml|t))(?:/|$) {\n    deny all;\n}",
        ),
    ]);
}

#[test]
fn folders_below_have_their_own_locations() {
    let files = [
        HtaccessFile {
            name: "a",
            text: "RewriteEngine On\nRewriteRule ^x$ /y [L]",
            folder: "/",
        },
        HtaccessFile {
            name: "b",
            text: "Require all denied",
            folder: "/cache/",
        },
        HtaccessFile {
            name: "c",
            text: "RewriteEngine On\nRewriteRule ^p$ q [L]",
            folder: "/blog/",
        },
        HtaccessFile {
            name: "d",
            text: "Require ip 10.0.0.1",
            folder: "/admin/",
        },
    ];
    let made = convert_htaccess(
        &files,
        &Options {
            php: Some("unix:/p".to_owned()),
            ..Options::default()
        },
    )
    .text;
    for part in [
        "if ($uri ~ \"^/cache(?:/|$)\") { break; }\nif ($uri ~ \"^/admin(?:/|$)\") { break; }\n",
        "rewrite \"^/blog/p$\" /blog/q last;\nif ($uri ~ ^/blog/) { break; }\nrewrite \"^/x$\" /y last;\n",
        "location ~ ^/cache(?:/|$) {\n    deny all;\n}\n",
        "location ^~ /admin/ {\n    allow 10.0.0.1;\n    deny all;\n",
    ] {
        assert!(made.contains(part), "{part}\n{made}");
    }
    // Scripts of a limited folder run in its location, and nowhere else.
    assert_eq!(made.matches("fastcgi_pass unix:/p;").count(), 2, "{made}");
}

/// Apache begins again with the path to which a rule leads, and so comes to rules that refuse it.
#[test]
fn a_rule_does_not_lead_to_what_another_one_refuses() {
    let text = "RewriteEngine On\nRewriteRule ^a/(.*)$ /$1 [L]\nRewriteRule ^secret - [F]";
    let location = "location ~ ^/secret {\n    return 403;\n}";
    assert!(made(text).contains(location), "{}", made(text));
    let text = "RewriteEngine On\nRewriteRule ^a$ /b [L]\nRewriteRule ^secret - [F]";
    assert!(!made(text).contains(location), "{}", made(text));
}

#[test]
fn what_is_said_of_a_folder_takes_the_place_of_what_is_said_around_it() {
    let password = "AuthType Basic\nAuthName a\nAuthUserFile /etc/users\nRequire valid-user\n";
    for (outer, inner, expected) in [
        (password, "Require all granted", "auth_basic off;"),
        (
            password,
            "Require ip 10.0.0.1",
            "allow 10.0.0.1;\n    deny all;\n    auth_basic off;",
        ),
        ("Require all denied", "Require all granted", "allow all;"),
        (
            "Require all denied",
            password,
            "auth_basic \"a\";\n    auth_basic_user_file /etc/users;\n    allow all;",
        ),
    ] {
        let files = [
            HtaccessFile {
                name: "a",
                text: outer,
                folder: "/",
            },
            HtaccessFile {
                name: "b",
                text: inner,
                folder: "/b/",
            },
        ];
        let made = convert_htaccess(&files, &Options::default()).text;
        assert!(
            made.contains(&format!("location ^~ /b/ {{\n    {expected}\n")),
            "{outer} {inner}: {made}"
        );
    }
}

/// Lines of 2.2 around a section of 2.4 hold in it as well, and the other way round.
#[test]
fn lines_of_2_2_and_2_4_take_the_place_of_their_own_kind_only() {
    let password = "AuthType Basic\nAuthName a\nAuthUserFile /etc/users\n";
    for (text, expected) in [
        (
            format!("Deny from 10.0.0.1\n<Files a.txt>\n{password}Require valid-user\n</Files>"),
            "location ~ /a\\.txt$ {\n    deny 10.0.0.1;\n    auth_basic \"a\";",
        ),
        (
            "Require all denied\n<Files a.txt>\nOrder allow,deny\nAllow from all\n</Files>"
                .to_owned(),
            "location ~ /a\\.txt$ {\n    deny all;",
        ),
    ] {
        assert!(made(&text).contains(expected), "{text}\n{}", made(&text));
    }
}

#[test]
fn a_folder_is_closed_at_each_address_at_which_it_is_handed_out() {
    let text = "Alias /inner /srv/www/\n<VirtualHost *:80>\nDocumentRoot /srv/www\n\
        <Directory /srv/www/data>\nRequire all denied\n</Directory>\n</VirtualHost>";
    let made = convert_servers("f", text, &|_| Ok(Vec::new()), &Options::default()).text;
    assert!(
        made.contains("location ~ ^/data(?:/|$) {\n        deny all;"),
        "{made}"
    );
    assert!(
        made.contains("location ^~ /inner/data/ {\n        deny all;"),
        "{made}"
    );
    // No line says what runs scripts, which would be shown otherwise.
    assert!(!made.contains("fastcgi_pass unix"), "{made}");
    assert!(made.contains("location ~ \\.php(?:/|$) {"), "{made}");
}

/// A location for a script without anything that runs it would show its source.
#[test]
fn scripts_are_refused_where_it_is_not_known_what_runs_them() {
    for text in [
        "<Files a.php>\nRequire ip 10.0.0.1\n</Files>",
        "Require ip 10.0.0.1",
    ] {
        let file = HtaccessFile {
            name: "f",
            text,
            folder: "/a/",
        };
        let made = convert_htaccess(&[file], &Options::default()).text;
        let location = made.find(".php").expect("a location for scripts");
        assert!(made[location..].contains("deny all;"), "{made}");
        assert!(!made.contains("fastcgi_pass unix"), "{made}");
    }
}

/// An `if` of a location does not hold in the locations within it.
#[test]
fn limits_of_methods_and_variables_hold_for_scripts_of_the_folder() {
    for limit in [
        "<LimitExcept POST>\nDeny from all\n</LimitExcept>",
        "Require method POST",
        "SetEnvIf X-A b bad\nOrder allow,deny\nAllow from all\nDeny from env=bad",
    ] {
        let file = HtaccessFile {
            name: "f",
            text: limit,
            folder: "/m/",
        };
        let options = Options {
            php: Some("unix:/x".to_owned()),
            ..Options::default()
        };
        let made = convert_htaccess(&[file], &options);
        let (_, folder) = made.text.split_once("location ^~ /m/ {\n").expect(limit);
        let (folder, _) = folder.split_once("\n}\n").expect("its end");
        let (_, php) = folder
            .split_once("location ~ \\.php(?:/|$) {\n")
            .expect("scripts");
        let first = php.lines().next().unwrap_or_default().trim();
        assert!(
            first.starts_with("if ($") && first.ends_with("{ return 403; }"),
            "{}",
            made.text
        );
    }
}

#[test]
fn lines_that_open_by_being_lost_are_unsafe_or_close() {
    for (text, kind) in [
        ("AuthMerging And\nRequire all granted", Kind::Unsafe),
        (
            "<LimitExcept POST>\nDeny from env=!good\n</LimitExcept>",
            Kind::Unsafe,
        ),
    ] {
        let file = HtaccessFile {
            name: "f",
            text,
            folder: "/m/",
        };
        let made = convert_htaccess(&[file], &Options::default());
        assert_eq!(made.count(kind), 1, "{text}: {:?}", made.notes);
    }
    let made = made("<FilesMatch \\.php$>\nSetHandler none\n</FilesMatch>");
    assert!(made.contains("deny all;"), "{made}");
    let made = made_server("<Directory ~ \"/srv/a/m.*\">\nRequire all denied\n</Directory>");
    // The section, and the line in it.
    assert_eq!(made, 2);
}

/// How many lines of a virtual host with its files in `/srv/a` are unsafe.
fn made_server(text: &str) -> usize {
    let text =
        format!("<VirtualHost *:80>\nServerName x\nDocumentRoot /srv/a\n{text}\n</VirtualHost>\n");
    let made = convert_servers("f", &text, &|_| Ok(Vec::new()), &Options::default());
    made.count(Kind::Unsafe)
}
