//! The reference page of directives and variables, made from the table.
//!
//! `docs/directives.md` is this text; a test keeps it up to date.

use std::fmt::Write as _;

use crate::directives::{
    Directive, Effect, Ending, Inheritance, PREFIXES, SECTIONS, unsupported_names,
};
use crate::model::{Builtin, PREFIXED};

/// The whole page in Markdown.
pub fn reference() -> String {
    let mut page = String::from(INTRODUCTION);
    for (title, _) in SECTIONS {
        let _ = write!(page, "\n- [{title}](#{})", anchor(title));
    }
    page.push_str("\n- [Variables](#variables)\n- [What nginx has and Mayfly does not](#what-nginx-has-and-mayfly-does-not)\n");
    for (title, table) in SECTIONS {
        let _ = write!(page, "\n## {title}\n");
        for directive in *table {
            entry(&mut page, directive);
        }
    }
    variables(&mut page);
    unsupported(&mut page);
    page
}

const INTRODUCTION: &str = "\
<!-- Made from the directive table in crates/site: change it there. -->

# Directives

Sizes are bytes, or have a unit: `k`, `m`, `g`. Times are seconds, or have units:
`ms`, `s`, `m`, `h`, `d`, `w`, `M`, `y`, as in `500ms` or `1h30m`; every time may be
given in milliseconds. What stands in an outer block holds in the inner ones as
far as an entry says so.
";

fn anchor(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}

fn entry(page: &mut String, directive: &Directive) {
    let names = directive.names();
    let title: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let _ = write!(page, "\n### {}\n\n", title.join(", "));
    if !directive.short.is_empty() {
        let _ = write!(page, "{}.\n\n", capitalised(directive.short));
    }
    for name in &names {
        let end = if directive.ending == Ending::Semicolon {
            ";"
        } else {
            ""
        };
        let syntax = if directive.syntax.is_empty() { "" } else { " " };
        let _ = writeln!(page, "- Syntax: `{name}{syntax}{}{end}`", directive.syntax);
    }
    let contexts: Vec<&str> = directive
        .contexts
        .iter()
        .map(|context| context.name())
        .collect();
    let _ = writeln!(page, "- Context: {}", contexts.join(", "));
    if let Some(default) = directive.default {
        let _ = writeln!(page, "- Default: `{default}`");
    }
    let inherited = match directive.inheritance {
        Inheritance::None => "no",
        Inheritance::Value => "yes",
        Inheritance::Whole => "yes, unless the inner block has a line of its own: it replaces all",
    };
    let _ = writeln!(page, "- Inherited: {inherited}");
    let _ = writeln!(page, "- Since: {}", directive.since);
    match directive.effect {
        Effect::Works => {}
        Effect::Ignored(why) => {
            let _ = write!(page, "\nAccepted without effect: {why}.\n");
        }
        Effect::Missing(why) => {
            let _ = write!(page, "\nAccepted without effect, with a warning: {why}.\n");
        }
    }
    if !directive.long.is_empty() {
        let _ = write!(page, "\n{}\n", directive.long);
    }
    if !directive.example.is_empty() {
        let _ = write!(page, "\n```nginx\n{}\n```\n", directive.example);
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

fn variables(page: &mut String) {
    page.push_str("\n## Variables\n\n`set`, `map`, `geo`, `split_clients` and named groups of patterns make more.\n\n| variable | what it holds |\n| --- | --- |\n");
    page.push_str("| `$1` to `$9` | groups of the last pattern that matched |\n");
    for (prefix, _, what) in PREFIXED {
        let _ = writeln!(page, "| `${prefix}NAME` | {what} |");
    }
    for builtin in Builtin::ALL {
        let _ = writeln!(
            page,
            "| `${}` | {} |",
            builtin.name(),
            builtin.documentation()
        );
    }
}

fn unsupported(page: &mut String) {
    let prefixes = PREFIXES.join(", ");
    let _ = write!(
        page,
        "\n## What nginx has and Mayfly does not\n\nA file with one of these is refused, with advice. Protocols towards upstreams so far: {prefixes}.\n\n"
    );
    let names: Vec<String> = unsupported_names()
        .map(|name| format!("`{name}`"))
        .collect();
    let _ = writeln!(page, "{}", names.join(", "));
}
