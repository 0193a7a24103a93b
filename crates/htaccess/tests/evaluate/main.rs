//! The verdicts of `.htaccess` files on requests. The expected answers are those of Apache 2.4 for the same files,
//! except in cases that are marked as stricter.

mod access;
mod odd_files;
mod rewriting;
mod server_sections;

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
