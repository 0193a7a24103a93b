//! The reference page of directives and variables, made from the table.
//!
//! `docs/directives.md` contains this text, and a test compares them.

use std::fmt::Write as _;

use crate::directives::{
    Directive, DirectiveEnding, Effect, Inheritance, SECTIONS, unsupported_names,
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

Every directive that a configuration may contain, by subject, then the variables. What differs
from nginx is in [nginx-differences.md](nginx-differences.md).

How to read an entry:

- **Syntax**: words in capitals stand for values, `[ ]` for what may be left out, `|` for a
  choice, `...` for more of the same.
- **Context**: the blocks in which the directive may be written.
- **Default**: what holds where no line is written.
- **Inherited**: whether a line also holds in the blocks inside its own block.
- **Since**: the version of Mayfly that brought it.

A size is in bytes, or has a unit: `k`, `m`, `g`. A time is in seconds, or has units: `ms`, `s`,
`m`, `h`, `d`, `w`, `M`, `y`, as in `500ms` or `1h30m`.

An entry with several names, such as `fastcgi_cache` and `proxy_cache`, holds for all of them. Its
text uses the names that begin with `fastcgi_`.
";

/// The name that viewers of Markdown give the heading.
fn anchor(title: &str) -> String {
    let words = title.to_lowercase().replace(' ', "-");
    words.replace(|c: char| !c.is_alphanumeric() && c != '-', "")
}

fn entry(page: &mut String, directive: &Directive) {
    let names = directive.names();
    let title: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let _ = write!(page, "\n### {}\n\n", title.join(", "));
    if !directive.short.is_empty() {
        let _ = write!(page, "{}.\n\n", capitalised(directive.short));
    }
    for name in &names {
        let end = if directive.ending == DirectiveEnding::Semicolon {
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
        Inheritance::Joined => {
            "yes; lines of the inner block are applied after those of outer ones"
        }
        Inheritance::Whole => {
            "yes, unless the inner block has such a line: it then uses its own lines only"
        }
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
    page.push_str("\n## Variables\n\nVariables may be used in values, as `$name` or `${name}`. `set`, `map`, `geo`, `split_clients` and\nnamed groups of patterns define more.\n\n| variable | what it holds |\n| --- | --- |\n");
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
    let prefixes = "FastCGI, HTTP and the protocol of memcached";
    let _ = write!(
        page,
        "\n## What nginx has and Mayfly does not\n\nA configuration with one of these is refused, and the message says what to do instead. `*` stands for\nany text. Upstreams may speak {prefixes} so far.\n\n"
    );
    let names: Vec<String> = unsupported_names()
        .map(|name| format!("`{name}`"))
        .collect();
    let _ = writeln!(page, "{}", names.join(", "));
}
