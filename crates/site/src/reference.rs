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

/// Directives that came with it do not name it.
const FIRST_VERSION: &str = "0.1";

const INTRODUCTION: &str = "\
<!-- Made from the directive table in crates/site: change it there. -->

# Directives

Every directive that a configuration may contain, by subject, then the variables. What differs
from nginx is in [nginx-differences.md](nginx-differences.md).

How to read an entry:

- The first line is what may be written: words in capitals stand for values, `[ ]` for what may be
  left out, `|` for a choice, `...` for more of the same.
- **Context**: the blocks in which the directive may be written.
- **Default**: what holds where no line is written.
- **Inherited**: a line also holds in the blocks inside its own block. \"Unless the inner block has such
  a line\": that block then uses its own lines only.
- **Since**: the version of Mayfly that brought it. Entries without it are there since `0.1`.

A size is in bytes, or has a unit: `k`, `m`, `g`. A time is in seconds, or has units: `ms`, `s`,
`m`, `h`, `d`, `w`, `M`, `y`, as in `500ms` or `1h30m`.

An entry with several names, such as `fastcgi_cache` and `proxy_cache`, holds for all of them. Its
text uses the first one.
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
    let blank = if directive.syntax.is_empty() { "" } else { " " };
    let end = match directive.ending {
        DirectiveEnding::Semicolon => ";",
        DirectiveEnding::Block | DirectiveEnding::Entries => "",
    };
    let _ = writeln!(
        page,
        "- `{}{blank}{}{end}`\n- {}",
        names[0],
        directive.syntax,
        facts(directive)
    );
    let example = directive.example;
    let is_one_line = !example.contains(['\n', '`']);
    // A line that switches a flag shows nothing that the syntax does not.
    let is_shown = !example.is_empty() && directive.syntax != "on | off";
    if is_shown && is_one_line {
        let _ = writeln!(page, "- Example: `{example}`");
    }
    description(page, directive);
    if is_shown && !is_one_line {
        let _ = write!(page, "\n```nginx\n{example}\n```\n");
    }
}

/// Where it may be written, and what holds where it is not.
fn facts(directive: &Directive) -> String {
    let contexts = directive.contexts.iter().map(|context| context.name());
    let contexts: Vec<&str> = contexts.collect();
    let mut facts = format!("Context: {}.", contexts.join(", "));
    if let Some(default) = directive.default {
        let _ = write!(facts, " Default: `{default}`.");
    }
    facts.push_str(match directive.inheritance {
        Inheritance::None => " Not inherited.",
        Inheritance::Value => " Inherited.",
        Inheritance::Joined => {
            " Inherited: lines of the inner block are applied after those of outer ones."
        }
        Inheritance::Whole => " Inherited, unless the inner block has such a line.",
    });
    if directive.since != FIRST_VERSION {
        let _ = write!(facts, " Since `{}`.", directive.since);
    }
    facts
}

fn description(page: &mut String, directive: &Directive) {
    let mut sentences = Vec::new();
    if !directive.short.is_empty() {
        sentences.push(format!("{}.", capitalised(directive.short)));
    }
    match directive.effect {
        Effect::Works => {}
        Effect::Ignored(why) => sentences.push(format!("Accepted without effect: {why}.")),
        Effect::Missing(why) => {
            sentences.push(format!("Accepted without effect, with a warning: {why}."));
        }
    }
    let begins_a_list = directive.long.starts_with("- ");
    if !directive.long.is_empty() && !begins_a_list {
        sentences.push(directive.long.to_owned());
    }
    let _ = write!(page, "\n{}\n", sentences.join(" "));
    if begins_a_list {
        let _ = write!(page, "\n{}\n", directive.long);
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
