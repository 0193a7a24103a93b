//! `mayfly check`: the report, its forms, its exit codes, and `--fix`.

use serde_json::Value;

use super::*;

/// One hazard that has one right answer, one that has not, a line without a meaning and one that is missing.
const HAZARDS: &str = "events { use epoll; }\nhttp {\n  access_log off;\n  server {\n    listen unix:m.sock;\n    \
     root /srv/www;\n    include part/*;\n    location /i { alias /data/i/; }\n  }\n}\n";
const PART: &str =
    "location /go { return 302 $arg_to; }\nlocation /old { return 301 https://$host$uri; }\n";

fn hazardous() -> tempfile::TempDir {
    let folder = folder(&[("test.conf", HAZARDS)]);
    std::fs::create_dir(folder.path().join("part")).expect("a folder");
    std::fs::write(folder.path().join("part/one"), PART).expect("a file");
    folder
}

fn check(folder: &Path, more: &[&str]) -> Output {
    let file = folder.join("test.conf");
    let file = file.to_str().expect("a plain path");
    words(&[&["check"], more, &[file]].concat())
}

#[test]
fn the_report_names_rule_place_effect_and_what_to_write() {
    let folder = hazardous();
    let output = check(folder.path(), &[]);
    let text = stdout(&output);
    assert_eq!(code(&output), 4, "{text}{}", stderr(&output));
    for part in [
        "unsafe: 3\n",
        "error alias-slash",
        "test.conf:8: location /i with alias /data/i/",
        "happens: A path such as /name../",
        "write:   location /i/  (--fix writes it)",
        "error open-redirect",
        "part/one:1: ",
        "error uri-in-redirect",
        "part/one:2: ",
        "without a meaning here: 1\n",
        "test.conf:1: use epoll",
        "runs as it is: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn json_and_sarif_hold_what_the_text_says() {
    let folder = hazardous();
    let json: Value =
        serde_json::from_slice(&check(folder.path(), &["--format", "json"]).stdout).expect("JSON");
    assert_eq!(json["accepted"], true, "{json:#}");
    let hazard = &json["unsafe"][0];
    assert_eq!(
        (&hazard["rule"], &hazard["line"]),
        (&"alias-slash".into(), &8.into()),
        "{json:#}"
    );
    assert_eq!(json["unsafe"].as_array().map(Vec::len), Some(3), "{json:#}");
    assert_eq!(
        json["without_meaning"][0]["directive"], "use epoll",
        "{json:#}"
    );

    let output = check(folder.path(), &["--format", "sarif"]);
    let sarif: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(code(&output), 4);
    let run = &sarif["runs"][0];
    let result = &run["results"][0];
    let rule = result["ruleIndex"]
        .as_u64()
        .and_then(|at| usize::try_from(at).ok())
        .expect("a rule");
    assert_eq!(
        run["tool"]["driver"]["rules"][rule]["id"], "alias-slash",
        "{sarif:#}"
    );
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["startLine"], 8, "{sarif:#}");
    let uri = place["artifactLocation"]["uri"].as_str().expect("a URI");
    assert!(
        uri.starts_with("file:///") && uri.ends_with("/test.conf"),
        "{uri}"
    );
    let change = &result["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(change["insertedContent"]["text"], "/", "{sarif:#}");
}

#[test]
fn fix_writes_copies_and_leaves_the_files() {
    let folder = hazardous();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    let output = check(folder.path(), &["--fix"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert_eq!(
        (read("test.conf"), read("part/one")),
        (HAZARDS.to_owned(), PART.to_owned())
    );
    let mended = HAZARDS.replace("location /i ", "location /i/ ");
    let mended_part = PART.replace("$host$uri", "$host$request_uri");
    assert_eq!(read("test.conf.fixed"), mended);
    assert_eq!(read("part/.one.fixed"), mended_part);
    // The copy in the folder that is included is not read.
    assert!(stdout(&check(folder.path(), &[])).contains("unsafe: 3\n"));

    check(folder.path(), &["--fix", "--in-place"]);
    assert_eq!((read("test.conf"), read("part/one")), (mended, mended_part));
    assert!(stdout(&check(folder.path(), &[])).contains("unsafe: 1\n"));
}

#[test]
fn exit_codes_say_the_worst_that_was_found() {
    let server = |lines: &str| {
        format!("events {{}} http {{ access_log off; server {{ listen unix:m.sock; {lines} }} }}\n")
    };
    for (lines, expected) in [
        ("root /srv/www;", 0),
        ("merge_slashes off;", 3),
        ("merge_slashes off; return 302 $arg_to;", 4),
        (
            "merge_slashes off; return 302 $arg_to; no_such_directive on;",
            1,
        ),
    ] {
        let folder = folder(&[("test.conf", &server(lines))]);
        let output = check(folder.path(), &[]);
        assert_eq!(
            code(&output),
            expected,
            "{lines}: {}{}",
            stdout(&output),
            stderr(&output)
        );
    }
}

#[test]
fn a_directive_that_is_missing_is_told_with_what_to_write() {
    let text = "events {}\nhttp { server { listen unix:m.sock; js_content main.hello; } }\n";
    let folder = folder(&[("test.conf", text)]);
    let output = check(folder.path(), &["--format", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(code(&output), 1);
    assert_eq!(json["accepted"], false, "{json:#}");
    let missing = &json["missing"][0];
    assert_eq!(missing["line"], 2, "{json:#}");
    assert!(
        missing["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("write: ")),
        "{json:#}"
    );
}
