//! The answers of nginx 1.22 (`nginx -t`) to odd texts, which ours must equal.

use nginx_conf::{MemoryLoader, load_with_globals, parse};

const END: &str = "unexpected end of file, expecting \";\" or \"}\"";

#[test]
fn the_first_complaint_is_the_one_nginx_has() {
    let cases = [
        ("text after a quote", "env \"a\"b;", "unexpected \"b\""),
        ("} after a quote", "env \"a\"}", "unexpected \"}\""),
        ("# after a quote", "env \"a\"#c\n;", "unexpected \"#\""),
        ("} without a block", "}", "unexpected \"}\""),
        ("lone ;", ";", "unexpected \";\""),
        ("lone {", "{\n}", "unexpected \"{\""),
        (
            "missing ; before }",
            "events {\n a 10\n}\n",
            "unexpected \"}\"",
        ),
        ("word at the end", "env a", END),
        ("backslash at the end", "env a\\", END),
        (
            "block at the end",
            "events {\n",
            "unexpected end of file, expecting \"}\"",
        ),
        ("} at the start of a word", "env a }b;", "unexpected \"}\""),
    ];
    for (name, text, message) in cases {
        let parsed = parse("c.conf", text.as_bytes());
        assert_eq!(parsed.diagnostics[0].message, message, "{name}");
    }
}

#[test]
fn words_are_what_nginx_takes_them_for() {
    let cases: [(&str, &str, &[&str]); 17] = [
        ("brace after $", "a ${b;", &["a", "${b"]),
        ("braces after $", "a ${{b;", &["a", "${{b"]),
        ("escaped brace", r"a b\{2};", &["a", r"b\{2}"]),
        ("escaped ;", r"a b\;c;", &["a", r"b\;c"]),
        ("brace after $ and backslash", r"a $\{b;", &["a", r"$\{b"]),
        ("# inside", "a b#c;", &["a", "b#c"]),
        ("} inside", "a b}c;", &["a", "b}c"]),
        ("quote inside", "a b\"c;", &["a", "b\"c"]),
        ("$ before the closing quote", "a \"$\";", &["a", "$"]),
        ("empty", "a \"\";", &["a", ""]),
        ("quoted name", "\"a\" b;", &["a", "b"]),
        ("CR alone", "a\rb;\r", &["a", "b"]),
        ("vertical tab is no space", "a\x0bb;", &["a\x0bb"]),
        ("NUL", "a b\0c;", &["a", "b\0c"]),
        (") after a quote", "a \"b\");", &["a", "b", ")"]),
        (
            "known escapes",
            r#"a "\t\r\n\\\"\'";"#,
            &["a", "\t\r\n\\\"'"],
        ),
        ("other escapes", r"a \x\$\1;", &["a", r"\x\$\1"]),
    ];
    for (name, text, expected) in cases {
        let parsed = parse("c.conf", text.as_bytes());
        assert_eq!(parsed.diagnostics, [], "{name}");
        let directive = &parsed.ast.directives[0];
        let words = std::iter::once(&directive.name).chain(&directive.args);
        let words: Vec<&str> = words.map(|word| word.text.as_str()).collect();
        assert_eq!(words, expected, "{name}");
    }
}

/// nginx refuses words and comments above 4096 bytes, its buffer's size.
#[test]
fn long_words_are_accepted_where_nginx_refuses_them() {
    let text = format!("a {};\n#{}\n", "x".repeat(5000), "x".repeat(5000));
    assert_eq!(parse("c.conf", text.as_bytes()).diagnostics, []);
}

#[test]
fn global_directives_come_first_and_are_simple() {
    let loader: MemoryLoader = [("/p/c.conf", "env b;")].into_iter().collect();
    let cases = [
        ("daemon off;", None),
        (
            "daemon off",
            Some("unexpected end of parameter, expecting \";\" in command line"),
        ),
        (
            "events { }",
            Some("block directives are not supported in -g option in command line"),
        ),
    ];
    for (globals, expected) in cases {
        let loaded = load_with_globals(Some(globals), "c.conf".as_ref(), "/p".as_ref(), &loader);
        let first = loaded
            .diagnostics
            .first()
            .map(|it| it.one_line(&loaded.sources));
        assert_eq!(first.as_deref(), expected, "{globals}");
        assert_eq!(loaded.ast.directives[1].name.text, "env", "{globals}");
        let files: Vec<_> = loaded.sources.files().collect();
        assert_eq!(
            files,
            [("/p/c.conf".as_ref(), "env b;")],
            "-T leaves -g out"
        );
    }
}

#[test]
fn a_missing_main_file_is_named() {
    let loader = MemoryLoader::default();
    let loaded = load_with_globals(None, "c.conf".as_ref(), "/p".as_ref(), &loader);
    let message = loaded.diagnostics[0].one_line(&loaded.sources);
    assert_eq!(
        message,
        "open() \"/p/c.conf\" failed (2: No such file or directory)"
    );
}
