//! The verdicts of `.htaccess` files on requests. The expected answers are those of Apache 2.4 for the same files,
//! except in cases that are marked as stricter.

use std::collections::BTreeMap;
use std::sync::Arc;

use htaccess::{
    Disk, FileFacts, FileKind, Mount, RuleFile, ServerRules, UserCheck, Verdict, Visit, evaluate,
    read_rules, read_server_rules,
};

/// A site in memory: the paths of its files, and its `.htaccess` files by folder.
struct Site {
    files: Vec<String>,
    rules: BTreeMap<String, Arc<htaccess::FolderRules>>,
    /// The rules in the server's own configuration.
    server: ServerRules,
    lists: bool,
}

impl Site {
    fn new(files: &str, rules: &[(&str, &str)]) -> Site {
        Site {
            files: files
                .split_whitespace()
                .map(|it| format!("/s{it}"))
                .collect(),
            rules: rules
                .iter()
                .map(|(folder, text)| {
                    let folder = format!("/s{}", folder.trim_end_matches('/'));
                    (folder, Arc::new(read_rules(text.as_bytes())))
                })
                .collect(),
            server: ServerRules::default(),
            lists: false,
        }
    }
}

impl Disk for Site {
    fn look(&self, path: &[u8]) -> FileFacts {
        let path = std::str::from_utf8(path).unwrap();
        let path = path.trim_end_matches('/');
        let is_folder = |it: &String| it.starts_with(&format!("{path}/"));
        let kind = match () {
            () if self.files.iter().any(|it| it == path) => FileKind::File,
            () if self.files.iter().any(is_folder) => FileKind::Folder,
            () => FileKind::Missing,
        };
        FileFacts {
            kind,
            link_of_owner: path.contains("/link").then_some(false),
            length: 1,
            is_executable: false,
        }
    }

    fn rules(&self, path: &[u8]) -> RuleFile {
        match self.rules.get(std::str::from_utf8(path).unwrap()) {
            Some(rules) => RuleFile::Rules(rules.clone()),
            None => RuleFile::None,
        }
    }

    fn check_user(&self, user_file: &str) -> UserCheck {
        match user_file {
            "/users" => UserCheck::Right,
            "/others" => UserCheck::Wrong,
            _ => UserCheck::NoFile,
        }
    }

    fn user(&self) -> Option<String> {
        Some("ada".to_owned())
    }

    fn is_in_group(&self, _: &str, group: &str, _: &str) -> Option<bool> {
        Some(group == "staff")
    }
}

/// `GET /path?args`, and fields behind it, each on a line of its own.
fn answer(site: &Site, request: &str) -> String {
    let mut lines = request.lines();
    let line = lines.next().unwrap();
    let (method, target) = line.split_once(' ').unwrap_or(("GET", line));
    let (path, args) = target.split_once('?').unwrap_or((target, ""));
    let fields: BTreeMap<String, Vec<u8>> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.as_bytes().to_vec()))
        .collect();
    let field = |name: &str| fields.get(&name.to_ascii_lowercase()).cloned();
    let names = || fields.keys().cloned().collect();
    let client = fields
        .get("x-client")
        .map(|it| String::from_utf8_lossy(it).into_owned());
    let request_line = format!("{method} {target} HTTP/1.1");
    let visit = Visit {
        method,
        path: path.as_bytes(),
        args: args.as_bytes(),
        request_line: request_line.as_bytes(),
        scheme: "http",
        host: b"x.test",
        port: 80,
        server_address: None,
        client: Some(client.as_deref().unwrap_or("192.0.2.1").parse().unwrap()),
        field: &field,
        field_names: &names,
        time: (0, [1970, 1, 1, 0, 0, 0, 4]),
        indexes: &["index.php".to_owned(), "index.html".to_owned()],
        lists_folders: site.lists,
    };
    let mounts = [("/app/", ""), ("/", "/s")].map(|(prefix, folder)| Mount {
        prefix: prefix.into(),
        folder: folder.into(),
    });
    match evaluate(&visit, site, &mounts, &site.server).verdict {
        Verdict::Target(target) if target.is_missing => "missing".to_owned(),
        Verdict::Target(target) => {
            let mut text = String::from_utf8(target.path).unwrap();
            if !target.args.is_empty() {
                text += &format!("?{}", String::from_utf8(target.args).unwrap());
            }
            text
        }
        Verdict::Refused { status, .. } => status.to_string(),
        Verdict::Redirect { status, location } => {
            format!("{status} {}", String::from_utf8(location).unwrap())
        }
    }
}

/// Checks the verdicts of a folder's file on requests below that folder.
fn check(text: &str, cases: &[(&str, &str)]) {
    let files = "/index.php /m/a.txt /m/a.php /m/index.php /m/x /m/s/b.txt /m/c.zip /m/style.css /m/thumb_1.jpg /m/other.jpg";
    let site = Site::new(files, &[("/m", text)]);
    for (request, expected) in cases {
        assert_eq!(&answer(&site, request), expected, "{text}\n{request}");
    }
}

/// All of them refuse `/m/a.txt`, the script and the index, with this status.
#[test]
fn folders_are_closed_as_in_apache() {
    for (status, text) in [
        (
            "401",
            "AuthType Basic\nAuthName x\nAuthUserFile /others\nOrder allow,deny\nAllow from all\nRequire valid-user",
        ),
        ("403", "Order allow,deny\nAllow from 10.9.9.9"),
        ("403", "Order allow,deny\nAllow from all\nDeny from all"),
        (
            "403",
            "<RequireAll>\nRequire all granted\nRequire ip 10.9.9.9\n</RequireAll>",
        ),
        (
            "403",
            "<RequireAll>\nRequire all granted\nRequire not ip 192.0.2.0/24\n</RequireAll>",
        ),
        (
            "401",
            "AuthType Basic\nAuthName x\nAuthUserFile /others\n<RequireAll>\nRequire all granted\nRequire valid-user\n</RequireAll>",
        ),
        (
            "403",
            "<RequireAll>\nRequire all granted\n<RequireNone>\nRequire ip 192.0.2.1\n</RequireNone>\n</RequireAll>",
        ),
        ("403", "Require method POST"),
        (
            "403",
            "<LimitExcept POST>\nOrder deny,allow\nDeny from all\n</LimitExcept>",
        ),
        (
            "403",
            "<LimitExcept POST>\nRequire all denied\n</LimitExcept>",
        ),
        ("403", "Order mutual-failure"),
        ("403", "Deny from \"all\""),
        ("403", "Order deny,allow\nDeny from 10.0.0.1 all"),
        (
            "403",
            "Order allow,deny\n<Files x>\nAllow from all\n</Files>",
        ),
        ("403", "Deny from 192.0.2.1"),
        (
            "403",
            "<If \"%{REQUEST_METHOD} == 'GET'\">\nRequire all denied\n</If>",
        ),
        (
            "403",
            "<If \"%{REMOTE_ADDR} -ipmatch '192.0.2.0/24'\">\nRequire all denied\n</If>",
        ),
        ("403", "<If \"-something 'x'\">\nRequire all denied\n</If>"),
        (
            "403",
            "RewriteEngine on\nRewriteCond %{HTTP_COOKIE} !ok=1\nRewriteRule ^ - [F]",
        ),
        (
            "403",
            "RewriteEngine off\nRewriteEngine on\nRewriteRule . - [F]\nRewriteRule ^$ - [F]",
        ),
        (
            "403",
            "<IfModule mod_mime.c>\nRewriteEngine on\nRewriteRule ^ - [F]\n</IfModule>",
        ),
        ("410", "RewriteEngine on\nRewriteRule ^ - [G]"),
        ("404", "RedirectMatch 404 ^/m/"),
        ("404", "Redirect 404 /"),
        ("403", "Require host example.org"),
        (
            "403",
            "Order allow,deny\nAllow from all\nDeny from example.org",
        ),
        (
            "403",
            "SetEnvIf Request_URI ^/m bad\nOrder allow,deny\nAllow from all\nDeny from env=bad",
        ),
        ("403", "Require env good"),
        ("403", "Require expr %{HTTP_COOKIE} =~ /ok=1/"),
        ("500", "Order allow, deny\nAllow from all"),
        ("500", "AuthType Basic\nRequire valid-user"),
        (
            "403",
            "AuthType Digest\nAuthName x\nAuthDigestDomain /\nRequire valid-user",
        ),
        ("403", "SecRuleEngine On"),
        ("403", "SSLRequireSSL"),
        ("403", "Require all denied\nSatisfy all\nAllow from all"),
        ("500", "<Files x>\nRequire all granted"),
    ] {
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

#[test]
fn rules_lead_elsewhere() {
    for (text, request, expected) in [
        ("RewriteRule ^a$ /b [R=301,L]", "/a", "301 http://x.test/b"),
        (
            "RewriteRule ^a$ b [R]",
            "/a?q=1",
            "302 http://x.test/s/b?q=1",
        ),
        (
            "RewriteBase /\nRewriteRule ^a$ b [R]",
            "/a",
            "302 http://x.test/b",
        ),
        (
            "RewriteRule ^(.*)$ index.php?p=$1 [QSA,L]\n",
            "/a?q=1",
            "/index.php?p=index.php&p=a&q=1",
        ),
        (
            "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^(.*)$ index.php?p=$1 [QSA,L]",
            "/a?q=1",
            "/index.php?p=a&q=1",
        ),
        (
            "RewriteCond %{ENV:REDIRECT_STATUS} ^$\nRewriteRule ^(.*)$ index.php [L]",
            "/a",
            "/index.php",
        ),
        (
            "RewriteRule ^a$ c [C]\nRewriteRule ^c$ index.php",
            "/a",
            "/index.php",
        ),
        (
            "RewriteRule ^a$ /c [END]\nRewriteRule ^c$ index.php",
            "/a",
            "missing",
        ),
        ("RewriteRule ^a$ a [N]\n", "/a", "500"),
        ("RewriteRule ^a$ /b\nRewriteRule ^b$ /a", "/a", "500"),
        ("RewriteRule ^(.*)$ x$1", "/a", "500"),
        (
            "RewriteCond %{REQUEST_METHOD} ^POST [OR]\nRewriteCond %{QUERY_STRING} evil [NC]\nRewriteRule ^ - [F]",
            "/a?EVIL",
            "403",
        ),
        (
            "RewriteCond %{LA-U:REMOTE_USER} x\nRewriteRule ^ /index.php",
            "/a",
            "403",
        ),
        (
            "RewriteCond %{HTTP_HOST} ^(x)\\.test$\nRewriteRule ^ https://%1.org%{REQUEST_URI} [R=301]",
            "GET /a b",
            "301 https://x.org/a%20b",
        ),
        (
            "RewriteRule ^ - [S=1]\nRewriteRule ^ - [F]",
            "/index.php",
            "/index.php",
        ),
        (
            "Redirect permanent /a https://x.org/b",
            "/a/c?d",
            "301 https://x.org/b/c?d",
        ),
        ("RedirectMatch ^/a/(.*)$ /b/$1", "/a/c", "302 /b/c"),
        ("Redirect gone /a", "/a", "410"),
        (
            "RewriteRule ^link$ /index.php?a=b",
            "/link",
            "301 /link/?a=b",
        ),
        ("FallbackResource /index.php", "/a/b", "/index.php"),
        ("FallbackResource /index.php", "/none.php", "missing"),
        (
            "FallbackResource /index.php\nSetHandler default-handler",
            "/none",
            "missing",
        ),
        ("DirectoryIndex x.html index.php", "/", "/index.php"),
        ("Options -FollowSymLinks", "/link/a", "403"),
        (
            "Options -FollowSymLinks +SymLinksIfOwnerMatch",
            "/link/a",
            "403",
        ),
        (
            "RewriteRule ^(.*)$ $1? [R]",
            "/a?b\u{7f}",
            "302 http://x.test/s/a",
        ),
    ] {
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

/// Cases that the comparison of generated trees with Apache has found.
#[test]
fn odd_files_are_read_as_apache_reads_them() {
    for (text, request, expected) in [
        // The last condition has no next one.
        (
            "RewriteEngine on\nRewriteCond %{HTTP_COOKIE} x [OR]\nRewriteRule ^ - [F]",
            "/m/a.txt",
            "403",
        ),
        ("AuthMerging Or\nRequire valid-user", "/m/a.txt", "/m/a.txt"),
        ("Require not ip 10.0.0.1", "/m/a.txt", "500"),
        (
            "<If true>\nRequire all denied\n<Files a.txt>\nRequire all granted\n</Files>\n</If>",
            "/m/a.txt",
            "403",
        ),
        (
            "<IfModule mod_php5.c>\nRequire valid-user\n</IfModule>",
            "/m/a.txt",
            "403",
        ),
        (
            "<IfModule mod_php5.c>\nRequire all denied\n</IfModule>",
            "/m/a.txt",
            "403",
        ),
        (
            "<IfModule mod_php5.c>\nRedirect / /b\n</IfModule>",
            "/m/a.txt",
            "/m/a.txt",
        ),
        ("FallbackResource none", "/m/none", "500"),
        ("FallbackResource none.php", "/m/none", "missing"),
        ("DirectoryIndex s/ s/ s/", "/m/", "403"),
        // The first index that is there answers, whatever would answer for it.
        (
            "DirectoryIndex x index.php\nRewriteEngine on\nRewriteRule ^x$ /index.php [H=text/plain]",
            "/m/",
            "403",
        ),
        // An index is looked up by GET.
        (
            "<Files index.php>\nRequire method POST\n</Files>",
            "POST /m/",
            "403",
        ),
        (
            "RewriteEngine on\nRewriteRule ^a\\.txt$ x [H=text/plain]",
            "/m/a.txt",
            "403",
        ),
    ] {
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

#[test]
fn folders_are_listed_where_options_say_so() {
    for (server, text, expected) in [
        (None, "Require all granted", "/d/"),
        (None, "Options -Indexes", "403"),
        (None, "Options FollowSymLinks", "403"),
        (None, "Options +Indexes\nIndexIgnore *", "403"),
        (
            Some("<Directory /s>\nAllowOverride All\n</Directory>"),
            "",
            "403",
        ),
        (
            Some("<Directory /s>\nAllowOverride All\nOptions Indexes\n</Directory>"),
            "",
            "/d/",
        ),
        (
            Some("<Directory /s>\nAllowOverride All\nOptions Indexes\n</Directory>"),
            "Options -Indexes",
            "403",
        ),
    ] {
        let mut site = Site::new("/index.php /d/a.txt", &[("/d", text)]);
        site.lists = true;
        site.server = server.map(read_server_rules).unwrap_or_default();
        assert_eq!(answer(&site, "/d/"), expected, "{server:?} {text}");
    }
}

#[test]
fn variables_reach_scripts() {
    let site = Site::new(
        "/index.php",
        &[("/", "SetEnv A b\nSetEnvIf Host (.*) H=$1\nUnsetEnv C")],
    );
    let field = |name: &str| (name == "Host").then(|| b"x.test".to_vec());
    let visit = Visit {
        method: "GET",
        path: b"/index.php",
        args: b"",
        request_line: b"GET /index.php HTTP/1.1",
        scheme: "http",
        host: b"x.test",
        port: 80,
        server_address: None,
        client: None,
        field: &field,
        field_names: &Vec::new,
        time: (0, [0; 7]),
        indexes: &[],
        lists_folders: false,
    };
    let mounts = [Mount {
        prefix: b"/".to_vec(),
        folder: b"/s".to_vec(),
    }];
    let Verdict::Target(target) = evaluate(&visit, &site, &mounts, &site.server).verdict else {
        panic!("it is not refused");
    };
    let expected = [
        ("A".to_owned(), b"b".to_vec()),
        ("H".to_owned(), b"x.test".to_vec()),
    ];
    assert_eq!(target.variables, expected);
}

/// Sections of a server's configuration, merged in the order in which Apache merges them.
#[test]
fn sections_of_a_server_hold_for_their_folders_and_addresses() {
    let closed = "<Directory /s>\nAllowOverride All\n</Directory>\n<Directory /s/m>\nRequire all denied\n</Directory>\n";
    for (server, htaccess, request, expected) in [
        (closed, "", "/m/a.txt", "403"),
        (closed, "", "/a.txt", "/a.txt"),
        (closed, "Require all granted", "/m/a.txt", "/m/a.txt"),
        // Without AllowOverride, such files have no effect.
        (
            "<Directory /s/m>\nRequire all denied\n</Directory>",
            "Require all granted",
            "/m/a.txt",
            "403",
        ),
        (
            "ServerSignature Off",
            "Require all denied",
            "/m/a.txt",
            "/m/a.txt",
        ),
        (
            "<Directory />\nRequire all denied\n</Directory>",
            "",
            "/a.txt",
            "403",
        ),
        (
            "<Directory /s>\nRequire all granted\n</Directory>\n<Directory />\nRequire all denied\n</Directory>",
            "",
            "/a.txt",
            "/a.txt",
        ),
        (
            "<Directory ~ \"/m.*\">\nRequire all denied\n</Directory>",
            "",
            "/m/a.txt",
            "403",
        ),
        (
            "<DirectoryMatch ^/s/m/>\nRequire all denied\n</DirectoryMatch>",
            "",
            "/m/index.php",
            "403",
        ),
        (
            "<Directory /s/*>\nRequire all denied\n</Directory>",
            "",
            "/m/a.txt",
            "403",
        ),
        ("<Directory s>\n</Directory>", "", "/a.txt", "500"),
        (
            "<FilesMatch \\.php$>\nSetHandler none\n</FilesMatch>",
            "",
            "/m/",
            "403",
        ),
        (
            "<Files a.txt>\nRequire all denied\n</Files>",
            "",
            "/m/a.txt",
            "403",
        ),
        // Locations come last.
        (
            "<Location /m>\nRequire all granted\n</Location>\n<Files a.txt>\nRequire all denied\n</Files>",
            "",
            "/m/a.txt",
            "/m/a.txt",
        ),
        (
            "<Location /m/>\nRequire all denied\n</Location>",
            "",
            "/m/",
            "403",
        ),
        (
            "<LocationMatch \"\\.php$\">\nRequire method POST\n</LocationMatch>",
            "",
            "/m/",
            "403",
        ),
        (
            "<Location /m>\n<LimitExcept POST>\nRequire all denied\n</LimitExcept>\n</Location>",
            "",
            "/m/index.php",
            "403",
        ),
        (
            "<Directory /s>\nRequire all denied\n</Directory>\n<Directory /s/m>\nAuthMerging And\nRequire all granted\n</Directory>",
            "",
            "/m/a.txt",
            "403",
        ),
        // Rules of the server come before files are looked for, and see the path of the address.
        (
            "RewriteEngine on\nRewriteRule ^/x$ /m/a.txt",
            "",
            "/x",
            "/m/a.txt",
        ),
        (
            "RewriteEngine on\nRewriteRule ^/x$ /m/a.txt",
            "Require all denied",
            "/x",
            "/m/a.txt",
        ),
        (
            "RewriteEngine on\nRewriteRule ^/m/ - [F]",
            "",
            "/m/a.txt",
            "403",
        ),
        ("RewriteRule ^/m/ - [F]", "", "/m/a.txt", "/m/a.txt"),
        // Sections are for the address that was asked for.
        (
            "RewriteEngine on\nRewriteRule ^/x$ /m/a.txt\n<Location /x>\nRequire all denied\n</Location>",
            "",
            "/x",
            "403",
        ),
        (
            "<Directory /s/m/a.txt>\nRequire all denied\n</Directory>",
            "",
            "/m/a.txt",
            "403",
        ),
        (
            "<Directory /s>\nRequire all denied\n</Directory>\n<Directory /s/*.php>\nRequire all granted\n</Directory>",
            "",
            "/index.php/a",
            "403",
        ),
        // An index is looked up with them, and folders inherit that rules are run.
        (
            "RewriteEngine on\nRewriteRule ^/m/index - [F]",
            "",
            "/m/",
            "403",
        ),
        (
            "RewriteEngine on\n<Directory /s/m>\nRewriteRule ^ - [G]\n</Directory>",
            "",
            "/m/a.txt",
            "410",
        ),
        (
            "RewriteEngine on\nRewriteRule ^/(.*) https://x.org/$1 [R=301]",
            "",
            "/a.txt",
            "301 https://x.org/a.txt",
        ),
        (
            "Redirect permanent / https://x.org/",
            "",
            "/a.txt?b",
            "301 https://x.org/a.txt?b",
        ),
        ("RewriteMap m txt:/x", "", "/a.txt", "403"),
    ] {
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
