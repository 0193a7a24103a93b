//! Checks every entry of the directive table: examples and defaults are accepted, names are
//! unique, and every entry is documented.

use site::directives::{self, Context, Directive, DirectiveEnding, Effect};

use crate::reading::read;

/// A configuration around `line`, with everything that examples refer to.
fn configuration_with(context: Context, line: &str) -> String {
    let http = |inner: &str| {
        let exporter = match inner.starts_with("otel_exporter") {
            true => "",
            false => "otel_exporter { endpoint localhost:4317; }",
        };
        format!(
            "php_pool www {{ workers 2; user www-data; }}\n\
             http {{\n\
             fastcgi_cache_path /run/mayfly/pages keys_zone=pages:10m;\n\
             limit_req_zone $binary_remote_addr zone=ip:10m rate=1r/s;\n\
             limit_conn_zone $binary_remote_addr zone=addr:10m;\n\
             acme_issuer letsencrypt {{ uri https://acme.example.org/directory; }}\n\
             {exporter}\n{inner}\n}}\n"
        )
    };
    match context {
        Context::Main if line.starts_with("http") => line.to_owned(),
        Context::Main => format!("{line}\n{}", http("")),
        Context::Events => format!("events {{ {line} }}\n{}", http("")),
        Context::Http => http(line),
        Context::Server => http(&format!("server {{\n{line}\n}}")),
        Context::Location => http(&format!("server {{ location /x/ {{\n{line}\n}} }}")),
        Context::LocationIf => http(&format!(
            "server {{ location /x/ {{ if ($args) {{\n{line}\n}} }} }}"
        )),
        Context::LimitExcept => http(&format!(
            "server {{ location /x/ {{ limit_except GET {{\n{line}\n}} }} }}"
        )),
        Context::ServerIf => http(&format!("server {{ if ($args) {{\n{line}\n}} }}")),
        Context::Upstream => http(&format!(
            "upstream u {{\n{line}\nserver 127.0.0.1:9001;\n}}"
        )),
        Context::AcmeIssuer => {
            let others = [
                "uri https://acme.example.org/directory;",
                "accept_terms_of_service;",
            ];
            let is_other =
                |other: &&&str| line.split([' ', ';']).next() != other.split([' ', ';']).next();
            let others: String = others.iter().filter(is_other).copied().collect();
            http(&format!("acme_issuer i {{\n{line}\n{others} }}"))
        }
        Context::OtelExporter => {
            let endpoint = match line.starts_with("endpoint") {
                true => "",
                false => "endpoint localhost:4317;",
            };
            http(&format!("otel_exporter {{\n{line}\n{endpoint} }}"))
        }
        Context::PhpPool => format!("php_pool p {{\n{line}\n}}\n{}", http("")),
    }
}

fn errors(text: &str) -> Vec<String> {
    let reading = read(text);
    reading
        .diagnostics
        .iter()
        .filter(|it| it.is_error())
        .map(|it| it.one_line(&reading.sources))
        .collect()
}

#[test]
fn every_example_is_accepted_in_every_context_of_its_directive() {
    let mut wrong = Vec::new();
    for directive in directives::all() {
        for &context in directive.contexts {
            // These two share a line with what they need around them.
            if directive.name == "http" && context != Context::Main {
                continue;
            }
            let text = configuration_with(context, directive.example);
            let reading = read(&text);
            let errors: Vec<_> = reading
                .diagnostics
                .iter()
                .filter(|it| it.is_error())
                .collect();
            if !errors.is_empty() || reading.site.is_none() {
                wrong.push(format!(
                    "{} in {}: {errors:#?}",
                    directive.name,
                    context.name()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_default_is_accepted_as_a_value() {
    let mut wrong = Vec::new();
    for directive in directives::all() {
        let Some(default) = directive
            .default
            .filter(|_| directive.ending == DirectiveEnding::Semicolon)
        else {
            continue;
        };
        // Defaults that are described rather than written.
        if default.contains("\"...\"") || default.contains(" or ") {
            continue;
        }
        for name in directive.names() {
            let context = directive.contexts[0];
            let line = format!("{name} {default};");
            let found = errors(&configuration_with(context, &line));
            if !found.is_empty() {
                wrong.push(format!("{line} {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `memcached_read_timeout` is read by the declaration of `*_read_timeout`.
#[test]
fn directives_of_memcached_have_the_defaults_of_the_families() {
    let mut compared = 0;
    for family in directives::all() {
        let Some(rest) = family.name.strip_prefix('*') else {
            continue;
        };
        for member in directives::by_name(&format!("memcached{rest}")) {
            assert_eq!(member.default, family.default, "{}", member.name);
            compared += 1;
        }
    }
    assert!(compared > 5, "{compared}");
}

#[test]
fn names_are_sorted_and_unique_within_their_context() {
    let mut seen = std::collections::HashSet::new();
    for (_, table) in directives::SECTIONS {
        assert!(table.is_sorted_by_key(|it| it.name), "sorted by name");
        for directive in *table {
            for name in directive.names() {
                for context in directive.contexts {
                    assert!(
                        seen.insert((name.clone(), *context)),
                        "{name} in {}",
                        context.name()
                    );
                }
            }
        }
    }
}

#[test]
fn every_entry_is_documented() {
    for directive in directives::all() {
        let Directive {
            name,
            short,
            long,
            example,
            syntax,
            arguments,
            effect,
            ..
        } = directive;
        assert!(
            !short.is_empty() && !short.ends_with('.') && short.len() < 80,
            "{name}: {short}"
        );
        assert!(long.ends_with('.') && long.len() > 20, "{name}: {long}");
        assert!(example.ends_with([';', '}']), "{name}: {example}");
        let has_syntax = !syntax.is_empty() && !syntax.starts_with('{');
        assert_eq!(arguments.1 > 0, has_syntax, "{name}: {syntax}");
        if let Effect::Ignored(why) | Effect::Missing(why) = effect {
            assert!(!why.is_empty() && !why.ends_with('.'), "{name}: {why}");
        }
    }
}

/// More words than this are hard to follow for many readers.
const MAX_SENTENCE_WORDS: usize = 32;

#[test]
fn no_sentence_of_an_entry_is_long() {
    let mut long = Vec::new();
    for directive in directives::all() {
        // Text in backticks counts as one word.
        let pieces = directive.long.split('`').enumerate();
        let prose: String = pieces
            .map(|(index, piece)| if index % 2 == 0 { piece } else { "code" })
            .collect();
        let lines = prose.split('\n').flat_map(|line| line.split(". "));
        for sentence in lines {
            let words = sentence.split_whitespace().count();
            if words > MAX_SENTENCE_WORDS {
                long.push(format!("{}: {words} words: {sentence}", directive.name));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn what_is_unsupported_is_not_supported() {
    for directive in directives::all() {
        for name in directive.names() {
            let advice = directives::unsupported(&name);
            // A family of another protocol may have a member that is accepted.
            let is_exception = name.ends_with("_temp_path")
                || ["scgi_cache_path", "uwsgi_cache_path"].contains(&name.as_str());
            assert!(
                advice.is_none() || is_exception,
                "{name} is in the list of what is missing"
            );
        }
    }
    for name in directives::unsupported_names() {
        let shown = name.trim_end_matches('*');
        assert!(
            directives::unsupported(shown).is_some_and(|it| !it.advice.is_empty()),
            "{name}"
        );
    }
}

/// `Level` asserts in debug builds that a directive of the name exists, which tests that lower a
/// configuration would see. This finds a name that is misspelled in code that no test reaches.
#[test]
fn lowering_names_only_directives_of_the_table() {
    // Texts before a name, and the prefix of a name that is looked up by its end.
    const BEFORE_A_NAME: [(&str, &str); 8] = [
        ("level, \"", ""),
        (".find(\"", ""),
        (".own(\"", ""),
        (".all(\"", ""),
        ("outer, \"", ""),
        ("name() == \"", ""),
        ("name(\"_", "proxy_"),
        ("protocol, \"_", "proxy_"),
    ];
    let text = lowering();
    let mut names = Vec::new();
    for (before, prefix) in BEFORE_A_NAME {
        let found = text.split(before).skip(1);
        names.extend(found.filter_map(|it| Some(format!("{prefix}{}", it.split_once('"')?.0))));
    }
    for arms in text.split("match node.name() {").skip(1) {
        let arms = arms.split("_ =>").next().unwrap_or_default();
        let ends = arms.match_indices("\" =>").map(|(end, _)| &arms[..end]);
        names.extend(ends.filter_map(|it| Some(it.rsplit_once('"')?.1.to_owned())));
    }
    assert!(names.len() > 150, "the names are found: {}", names.len());
    names.retain(|name| directives::by_name(name).is_empty());
    assert!(names.is_empty(), "no directives: {}", names.join(", "));
}

/// A directive that is renamed in the table, or no longer read, would be accepted without effect.
#[test]
fn every_directive_of_the_table_is_named_in_the_lowering() {
    // The block alone counts, and its directives are read.
    const NOT_READ: [&str; 1] = ["events"];
    let text = lowering();
    // The compiler refuses a constant that is not read.
    let constants: std::collections::HashSet<&str> = text
        .split(|it: char| it != '_' && !it.is_alphanumeric())
        .collect();
    // Half of the name may be that of a protocol or of a kind of limits, which are put before it.
    let is_named = |name: &str| {
        let prefixes = ["*", "fastcgi", "proxy", "memcached"];
        let ends = prefixes.iter().filter_map(|it| name.strip_prefix(it));
        let kinds = ["limit_conn", "limit_req"];
        let of_kinds = kinds.iter().filter_map(|it| name.strip_prefix(it));
        let rest = name.strip_prefix("memcached_").unwrap_or(name);
        let constant = rest.trim_start_matches("*_").to_uppercase();
        constants.contains(&*constant)
            || constants.contains(&*name.to_uppercase())
            || constants.contains(&*format!("UPSTREAM_{constant}"))
            || text.contains(&format!("\"{name}\""))
            || ends
                .into_iter()
                .any(|end| text.contains(&format!("\"{end}\"")))
            || of_kinds
                .into_iter()
                .any(|end| text.contains(&format!("{{kind}}{end}\"")))
    };
    let unread: Vec<&str> = directives::all()
        .filter(|it| it.effect == Effect::Works && !it.handles_content)
        .map(|it| it.name)
        .filter(|name| !NOT_READ.contains(name) && !is_named(name))
        .collect();
    assert!(unread.is_empty(), "not read: {}", unread.join(", "));
}

/// The sources of the lowering, with one space for each gap.
fn lowering() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lower");
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("the folder is readable").path();
        text += &std::fs::read_to_string(path).expect("a source is text");
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace("( \"", "(\"")
}
