//! `mayfly convert`: its result for whole sites loads, files are found and kept, and exit codes report losses.

use std::io::Write as _;
use std::path::PathBuf;

use super::*;

fn sites() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../apache-conf/tests/sites")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Asserts that `mayfly check` accepts the result. `what` stands in `http`.
fn check(folder: &Path, what: &str) {
    let logs = what.replace("/var/log/apache2", path(folder));
    std::fs::write(
        folder.join("whole.conf"),
        format!("events {{}}\nhttp {{\n{logs}\n}}\n"),
    )
    .expect("a file");
    let output = words(&["check", path(&folder.join("whole.conf"))]);
    // Hazards that Apache has as well, such as scripts in a folder for uploads, are reported and are no mistakes.
    let said = stderr(&output);
    assert!(said.contains("no mistakes found"), "{said}\n{what}");
}

#[test]
fn what_is_made_of_htaccess_files_loads_in_a_server() {
    for name in [
        "wordpress",
        "drupal",
        "mediawiki",
        "laravel",
        "joomla",
        "nextcloud",
    ] {
        let folder = folder(&[]);
        let file = folder.path().join(".htaccess");
        std::fs::copy(sites().join(format!("{name}.htaccess")), &file).expect("a copy");
        for php in [&["--php", "unix:/run/php.sock"][..], &[]] {
            let output = words(&[&["convert"], php, &[path(&file)]].concat());
            assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
            let made = stdout(&output);
            check(
                folder.path(),
                &format!("server {{ listen 127.0.0.1:8080; root /srv/www; {made} }}"),
            );
        }
    }
}

#[test]
fn what_is_made_of_virtual_hosts_loads_in_http() {
    let folder = folder(&[]);
    for (name, exit) in [
        ("debian-default", 0),
        ("wordpress-tls", 0),
        ("nextcloud-folder", 3),
    ] {
        let text = std::fs::read_to_string(sites().join(format!("{name}.apache"))).expect("a text");
        // No certificate is there.
        let lines: Vec<&str> = text
            .lines()
            .filter(|it| !it.trim().starts_with("SSL"))
            .collect();
        let file = folder.path().join("site.conf");
        std::fs::write(&file, lines.join("\n")).expect("a file");
        let output = words(&["convert", path(&file)]);
        assert_eq!(code(&output), exit, "{name}: {}", stderr(&output));
        check(folder.path(), &stdout(&output));
    }
}

#[test]
fn exit_codes_of_convert_say_what_was_lost() {
    for (text, exit, said) in [
        (
            "Options -Indexes\n",
            0,
            "1 lines: 1 obeyed or translated, 0 left out without a loss, 0 not translated\n",
        ),
        (
            "Unknown x\n",
            3,
            "0 obeyed or translated, 0 left out without a loss, 1 not translated\n",
        ),
        (
            "<VirtualHost *>\n<Proxy *>\nRequire ip 10.0.0.1\n</Proxy>\n</VirtualHost>\n",
            4,
            "error: not translated: %%/.htaccess:3: Require ip 10.0.0.1: ",
        ),
        (
            "<VirtualHost *>\n<Proxy *>\nRequire ip 10.0.0.1\n</Proxy>\n</VirtualHost>\n",
            4,
            "1 not translated, 1 of which keep visitors out\n",
        ),
        (
            "<Files a>\n",
            1,
            "error: %%/.htaccess:1: <Files a> has no end: write </files>\n",
        ),
    ] {
        let folder = folder(&[(".htaccess", text)]);
        let output = words(&["convert", path(&folder.path().join(".htaccess"))]);
        let expected = said.replace("%%", path(folder.path()));
        assert_eq!(code(&output), exit, "{text}");
        assert!(
            stderr(&output).contains(&expected),
            "{text}: {}",
            stderr(&output)
        );
    }
    assert_eq!(code(&words(&["convert", "/nowhere/.htaccess"])), 1);
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let folder = folder(&[(".htaccess", "Options -Indexes\n")]);
    let (from, to) = (
        folder.path().join(".htaccess"),
        folder.path().join("made.conf"),
    );
    let arguments = ["convert", "--output", path(&to), path(&from)];
    assert_eq!(code(&words(&arguments)), 0);
    let made = std::fs::read_to_string(&to).expect("a file");
    assert!(made.contains("htaccess on;"), "{made}");
    let again = words(&arguments);
    assert_eq!(code(&again), 1);
    assert!(
        stderr(&again).contains("it is there already"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn a_text_is_read_from_standard_input() {
    let mut child = Command::new(program())
        .args(["convert", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("standard input");
    stdin
        .write_all(b"<VirtualHost *:80>\nRedirect 301 /a /b\n</VirtualHost>\n")
        .expect("a written text");
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    assert!(
        stdout(&output).contains("    Redirect 301 /a /b\n"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn included_files_of_a_virtual_host_are_read() {
    let folder = folder(&[
        ("inner.conf", "ServerAlias b.test\n"),
        (
            "site.conf",
            "<VirtualHost *:80>\nServerName a.test\nInclude %%/inner.conf\nIncludeOptional %%/none/*.conf\n</VirtualHost>\n",
        ),
        (
            "bad.conf",
            "<VirtualHost *:80>\nInclude %%/missing.conf\n</VirtualHost>\n",
        ),
    ]);
    let output = words(&["convert", path(&folder.path().join("site.conf"))]);
    assert!(
        stdout(&output).contains("server_name a.test b.test;"),
        "{}",
        stdout(&output)
    );
    let output = words(&["convert", path(&folder.path().join("bad.conf"))]);
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output).contains("missing.conf: there is no such file"),
        "{}",
        stderr(&output)
    );
}
