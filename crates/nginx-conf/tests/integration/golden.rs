//! Golden files: `conf/NAME.conf` holds a configuration, a rule line, and the
//! expected diagnostics and tree below it. `MAYFLY_BLESS=1` writes the results;
//! read the diff before committing it.
//!
//! A line `=== PATH` in the upper part begins another file, for `include`.

use std::fmt::Write as _;
use std::path::Path;

use nginx_conf::{Directive, LoadedConfiguration, MemoryLoader, Style, load, render};

#[test]
fn every_golden_file_gives_the_expected_diagnostics_and_tree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conf");
    testkit::golden::assert_cases(&folder, outcome);
}

fn outcome(input: &str) -> String {
    let mut files = vec![("/etc/nginx.conf".to_owned(), String::new())];
    for line in input.split_inclusive('\n') {
        match line.strip_prefix("=== ") {
            Some(path) => files.push((path.trim().to_owned(), String::new())),
            None => files.last_mut().unwrap().1.push_str(line),
        }
    }
    let loader: MemoryLoader = files.into_iter().collect();
    let loaded = load("nginx.conf".as_ref(), "/etc".as_ref(), &loader);
    let mut text = String::new();
    write_diagnostics(&mut text, &loaded);
    write_tree(&mut text, &loaded.ast.directives, 0);
    text
}

fn write_diagnostics(text: &mut String, loaded: &LoadedConfiguration) {
    for diagnostic in &loaded.diagnostics {
        writeln!(text, "{}", diagnostic.one_line(&loaded.sources)).unwrap();
        let rendered = render(diagnostic, &loaded.sources, Style::Plain);
        for line in rendered.lines() {
            writeln!(text, "{}", format!("    {line}").trim_end()).unwrap();
        }
    }
}

fn write_tree(text: &mut String, directives: &[Directive], depth: usize) {
    for directive in directives {
        text.push_str(&"  ".repeat(depth));
        for word in std::iter::once(&directive.name).chain(&directive.args) {
            let quote = if word.quoted { "q" } else { "" };
            write!(text, "{quote}{:?} ", word.text).unwrap();
        }
        match &directive.block {
            None => text.push_str(";\n"),
            Some(block) => {
                text.push_str("{\n");
                write_tree(text, block, depth + 1);
                text.push_str(&"  ".repeat(depth));
                text.push_str("}\n");
            }
        }
    }
}
