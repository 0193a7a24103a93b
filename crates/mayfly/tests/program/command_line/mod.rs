//! The command line: flags, words, exit codes, and reports about a configuration.

mod check_hazards;
mod check_report;
mod convert;
mod messages;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::program;

/// Runs the program to its end in `folder` as the prefix.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program())
        .arg("-p")
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

pub fn words(arguments: &[&str]) -> Output {
    Command::new(program())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

pub fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder with these files; `%%` in them stands for the folder.
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::Builder::new()
        .prefix("mayfly-test")
        .tempdir()
        .expect("a folder");
    let place = folder.path().to_str().expect("a plain path");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text.replace("%%", place)).expect("a file");
    }
    folder
}

pub const SMALL: &str = "daemon off;\npid %%/pid;\nerror_log %%/error.log notice;\nevents {}\n\
    http { access_log off; server { listen unix:%%/http; location / { return 200 one; } } }\n";

#[test]
fn test_of_a_file_with_five_mistakes_names_all_five() {
    let folder = folder(&[(
        "test.conf",
        "worker_processess 2;\nevents {}\nhttp {\n    keepalive_timeout soon;\n    server {\n\
         \x20       listen 127.0.0.1:99999;\n        root a b;\n        fastcgi_cache nowhere;\n    }\n}\n",
    )]);
    let output = run(folder.path(), &["-t", "-c", "test.conf"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 1, "{said}");
    let mistakes = [
        ("worker_processess", 1),
        ("soon", 4),
        ("99999", 6),
        ("root", 7),
        ("nowhere", 8),
    ];
    for (mistake, line) in mistakes {
        assert!(said.contains(mistake), "{mistake} in:\n{said}");
        assert!(
            said.contains(&format!("test.conf:{line}:")),
            "line {line} in:\n{said}"
        );
    }
    assert_eq!(said.matches("error: ").count(), 5, "{said}");
    assert!(said.contains("^^^^"), "underlined:\n{said}");
    assert!(
        said.contains("did you mean \"worker_processes\"?"),
        "{said}"
    );
    assert!(said.ends_with("test.conf test failed\n"), "{said}");
}

#[test]
fn test_of_a_good_file_says_so_and_q_says_nothing() {
    let folder = folder(&[("test.conf", SMALL)]);
    let output = run(folder.path(), &["-t", "-c", "test.conf"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 0, "{said}");
    assert!(said.contains("/test.conf syntax is ok\n"), "{said}");
    assert!(said.ends_with("/test.conf test is successful\n"), "{said}");
    let output = run(folder.path(), &["-tqc", "test.conf"]);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
}

#[test]
fn test_fails_when_a_log_cannot_be_opened() {
    let folder = folder(&[(
        "test.conf",
        &SMALL.replace("%%/error.log", "%%/test.conf/error.log"),
    )]);
    let output = run(folder.path(), &["-t", "-c", "test.conf"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(
        said.contains("test.conf/error.log\" failed (20: Not a directory)"),
        "{said}"
    );
    assert!(
        said.contains("syntax is ok") && said.ends_with("test failed\n"),
        "{said}"
    );
}

#[test]
fn dump_shows_each_file_once() {
    let folder = folder(&[
        (
            "test.conf",
            "events {}\npid %%/pid;\nerror_log %%/error.log;\nhttp { access_log off; include part; server { include part; } }\n",
        ),
        ("part", "root /x;\n"),
    ]);
    let output = run(folder.path(), &["-T", "-c", "test.conf"]);
    let text = stdout(&output);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(text.matches("# configuration file ").count(), 2, "{text}");
    let part = format!(
        "# configuration file {}/part:\nroot /x;\n\n",
        folder.path().display()
    );
    assert!(text.ends_with(&part), "{text}");
}

#[test]
fn exit_codes_are_0_1_and_2() {
    let folder = folder(&[("good", SMALL), ("bad", "evnts {}\n")]);
    let at = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("a plain path")
            .to_owned()
    };
    let cases: &[(&[&str], i32)] = &[
        (&["-v"], 0),
        (&["-V"], 0),
        (&["-h"], 0),
        (&["help"], 0),
        (&["version"], 0),
        (&["check", &at("good")], 0),
        (&["check", "--explain", &at("good")], 0),
        (&["-t", "-c", &at("good")], 0),
        (&["check", &at("bad")], 1),
        (&["-c", &at("bad")], 1),
        (&["-c", &at("none")], 1),
        (&["-z"], 1),
        (&["nonsense"], 2),
        (&["-s", "quit", "-c", &at("good")], 1),
        (&["serve", &at("none")], 1),
        (&["serve", "http://127.0.0.1:1/path"], 1),
        (&["serve", "https://127.0.0.1:1"], 1),
        (&["serve", "http://127.0.0.1:1", "--workers", "2"], 1),
        (&["serve", "http://127.0.0.1:1", "--print-config"], 0),
        (&["serve"], 2),
        (&["serve", "--ttl", "soon", "/"], 2),
        (&["check", "--bogus"], 2),
    ];
    for (arguments, expected) in cases {
        let output = words(arguments);
        assert_eq!(
            code(&output),
            *expected,
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn unknown_directives_are_named_with_the_nearest_one() {
    let folder = folder(&[(
        "test.conf",
        "events {}\nhttp { server { loction / { } } }\n",
    )]);
    let output = run(folder.path(), &["-c", "test.conf", "-e", "early.log"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 1);
    assert!(said.contains("unknown directive \"loction\""), "{said}");
    assert!(said.contains("did you mean \"location\"?"), "{said}");
    let log = std::fs::read_to_string(folder.path().join("early.log")).expect("a log");
    assert!(
        log.contains("[emerg]") && log.contains("unknown directive \"loction\" in"),
        "{log}"
    );
}

#[test]
fn build_text_is_what_the_public_suite_reads() {
    let said = stderr(&words(&["-V"]));
    assert!(
        said.starts_with("nginx version: nginx/1.31.5 (mayfly "),
        "{said}"
    );
    assert!(said.contains("--without-http_grpc_module"), "{said}");
    assert!(!said.contains("--without-http_fastcgi_module"), "{said}");
}

#[test]
fn explanation_says_what_becomes_of_each_directive() {
    let folder = folder(&[("test.conf", "events { use epoll; }\n")]);
    let path = folder.path().join("test.conf");
    let output = words(&["check", "--explain", path.to_str().expect("a plain path")]);
    let text = stdout(&output);
    assert!(
        text.lines()
            .any(|line| line.contains("use epoll") && line.contains("ignored")),
        "{text}"
    );
}
