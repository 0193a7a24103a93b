//! Golden files: `conf/NAME.conf` contains a configuration, a line of dashes, and what must
//! come out: the diagnostics, or the facts about the site.
//!
//! `MAYFLY_BLESS=1` writes what comes out. Read the diff before you commit it.

use std::fmt::Write as _;
use std::path::Path;

use nginx_conf::{Style, render};
use site::Verdict;
use testkit::golden::{Case, assert_cases, cases};

use crate::{facts, reading};

/// Says nothing but that each kind of content is there.
const PLAIN: &str = "http {
    fastcgi_cache_path /c keys_zone=z:1m;
    server { location / { fastcgi_pass 127.0.0.1:1; fastcgi_cache z; } }
}";

#[test]
fn every_golden_file_gives_the_expected_diagnostics_and_facts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conf");
    assert_cases(&folder, outcome);
}

fn outcome(input: &str) -> String {
    let plain = reading::read(PLAIN).site.unwrap();
    let reading = reading::read(input);
    let mut text = String::new();
    for diagnostic in &reading.diagnostics {
        writeln!(text, "{}", diagnostic.one_line(&reading.sources)).unwrap();
        for line in render(diagnostic, &reading.sources, Style::Plain).lines() {
            writeln!(text, "{}", format!("    {line}").trim_end()).unwrap();
        }
    }
    if let Some(site) = &reading.site {
        text.push_str(&facts::facts(site, &plain));
    }
    text
}

#[test]
fn five_different_mistakes_are_named_in_one_go() {
    let reading = reading::read(
        "worker_processes many;\n\
         http {\n\
           server {\n\
             listen 80 ssl;\n\
             rooot /var/www;\n\
             location / { try_files $uri; }\n\
             client_max_body_size 8mb;\n\
             add_header X $reqest_uri;\n\
           }\n\
         }\n",
    );
    let found: Vec<String> = reading
        .diagnostics
        .iter()
        .map(|it| it.one_line(&reading.sources))
        .collect();
    let expected = [
        "invalid number \"many\" in /etc/mayfly/mayfly.conf:1",
        "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive in /etc/mayfly/mayfly.conf:3",
        "unknown directive \"rooot\" in /etc/mayfly/mayfly.conf:5",
        "invalid number of arguments in \"try_files\" directive in /etc/mayfly/mayfly.conf:6",
        "invalid size \"8mb\" in /etc/mayfly/mayfly.conf:7",
        "unknown \"reqest_uri\" variable in /etc/mayfly/mayfly.conf:8",
    ];
    assert_eq!(found, expected);
    assert!(reading.site.is_none());
}

#[test]
fn explain_says_what_becomes_of_each_directive() {
    let reading = reading::read(
        "events { worker_connections 10; }\n\
         http {\n\
           server { root /a; js_import a; nonsense; use epoll; types { a/b c; } }\n\
         }\n",
    );
    let lines: Vec<String> = site::explain(&reading.ast, &reading.sources, &reading.complaints)
        .iter()
        .map(ToString::to_string)
        .collect();
    let expected = [
        "1: events  -- works: holds settings for connections, as nginx groups them",
        "1:   worker_connections 10  -- ignored: only the limit on open files bounds the number of connections",
        "2: http  -- works: holds the servers, and what they share",
        "3:   server  -- works: defines a virtual server",
        "3:     root /a  -- works: sets the directory of the files",
        "3:     js_import a  -- unsupported: use `map` and `rewrite`",
        "3:     nonsense  -- unknown",
        "3:     use epoll  -- not allowed here",
        "3:     types  -- works: maps file extensions to media types",
    ];
    let expected: Vec<String> = expected
        .iter()
        .map(|line| format!("/etc/mayfly/mayfly.conf:{line}"))
        .collect();
    assert_eq!(lines, expected);
}

/// Files are often broken while they are edited.
#[test]
fn files_with_a_line_or_a_byte_missing_give_a_site_or_an_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conf");
    for Case { input, .. } in cases(&folder) {
        let lines: Vec<&str> = input.lines().collect();
        for left_out in 0..lines.len() {
            let kept: Vec<&str> = lines
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != left_out)
                .map(|(_, line)| *line)
                .collect();
            site::fuzz_read(kept.join("\n").as_bytes());
        }
        // Not every byte: each reading compiles all patterns anew.
        for at in (0..input.len()).step_by(input.len().div_ceil(40)) {
            let mut bytes = input.as_bytes().to_vec();
            bytes.remove(at);
            site::fuzz_read(&bytes);
        }
    }
}

#[test]
fn explain_says_works_of_nothing_that_is_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conf");
    let mut refused_lines = 0;
    for Case { input, .. } in cases(&folder) {
        let reading = reading::read(&input);
        let lines = site::explain(&reading.ast, &reading.sources, &reading.complaints);
        let position_of = |span| {
            let at = reading.sources.position(span)?;
            Some(format!("{}:{}", at.path.display(), at.line))
        };
        let errors = reading.complaints.iter().filter(|it| it.is_error());
        for position in errors.filter_map(|it| position_of(it.span?)) {
            let here: Vec<_> = lines
                .iter()
                .filter(|line| format!("{}:{}", line.file.display(), line.line) == position)
                .collect();
            let is_told = |line: &&site::ExplainedDirective| {
                !matches!(
                    line.verdict,
                    Verdict::Works(_) | Verdict::Ignored(_) | Verdict::Missing(_)
                )
            };
            // The line of an entry of a `map` belongs to the block.
            assert!(
                here.is_empty() || here.iter().any(is_told),
                "{position} is refused: {here:?}\n{input}"
            );
            refused_lines += usize::from(!here.is_empty());
        }
    }
    assert!(refused_lines > 50, "the golden files hold mistakes");
}
