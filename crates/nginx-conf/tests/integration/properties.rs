//! Promises that hold for every text, tried on random ones.

use nginx_conf::{
    Ast, Directive, MemoryLoader, Word, did_you_mean, format, fuzz_parse, load, parse,
    parse_duration, parse_on_off, parse_size,
};
use proptest::prelude::*;

/// Texts made of parts that matter to the grammar.
fn configuration_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(" ".to_owned()),
        Just("\n".to_owned()),
        Just(";".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("\\".to_owned()),
        Just("$".to_owned()),
        Just("#".to_owned()),
        Just(")".to_owned()),
        Just("\t".to_owned()),
        Just("\r".to_owned()),
        Just("include b;".to_owned()),
        Just("include /[ab*;".to_owned()),
        Just("include /?;".to_owned()),
        Just("a b {".to_owned()),
        Just("\u{feff}".to_owned()),
        "[a-nrt]{1,3}",
        "[ä€\u{fffd}\u{1b}\0]",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn any_word() -> impl Strategy<Value = (String, bool)> {
    (r#"[ab$\\{};#"' \t\r\nrtn€]{0,8}"#, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn configuration_like_text_keeps_every_promise(text in configuration_like()) {
        fuzz_parse(text.as_bytes());
    }

    #[test]
    fn any_bytes_keep_every_promise(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz_parse(&bytes);
    }

    /// Also words that no text spells unquoted, as a program may make them.
    #[test]
    fn a_tree_made_by_hand_survives_format_and_parse(
        words in proptest::collection::vec(any_word(), 1..4)
    ) {
        let span = parse("x", b"a;").ast.directives[0].span;
        let mut words = words.into_iter().map(|(text, quoted)| Word { text, quoted, span });
        let name = words.next().unwrap();
        let directive = Directive { name, args: words.collect(), block: Some(Vec::new()), span };
        let ast = Ast { directives: vec![directive] };
        let text = format(&ast);
        let again = parse("again", text.as_bytes());
        prop_assert!(again.diagnostics.is_empty(), "{text}");
        let texts = |ast: &Ast| -> Vec<String> {
            let directive = &ast.directives[0];
            let words = std::iter::once(&directive.name).chain(&directive.args);
            words.map(|word| word.text.clone()).collect()
        };
        prop_assert_eq!(texts(&again.ast), texts(&ast), "{}", text);
    }

    #[test]
    fn values_of_any_text_are_a_value_or_an_error_inside_the_text(text in r"[0-9kKmMgGsywdh. on€,-]{0,24}") {
        let errors = [
            parse_size(&text).err(),
            parse_duration(&text).err(),
            parse_on_off(&text).err(),
        ];
        for error in errors.into_iter().flatten() {
            prop_assert!(text.get(error.range.clone()).is_some(), "{error:?}");
        }
        did_you_mean(&text, ["gzip", "root"]);
    }
}

/// Each file includes the next one eight times: 8^16 directives without a bound.
#[test]
fn files_that_multiply_end_in_a_diagnostic() {
    let files = (0..16).map(|n| {
        let text = format!("include {};\n", n + 1).repeat(8);
        (format!("/{n}"), text)
    });
    let loader: MemoryLoader = files.chain([("/16".to_owned(), "a;".to_owned())]).collect();
    let loaded = load("/0".as_ref(), "/".as_ref(), &loader);
    assert!(loaded.has_errors());
    let message = &loaded.diagnostics[0].message;
    assert!(message.contains("files are included"), "{message}");
}

#[test]
fn blocks_nested_too_deep_are_one_diagnostic_and_a_tree_of_bounded_depth() {
    let text = format!("{}{}", "a {".repeat(100_000), "}".repeat(100_000));
    let parsed = parse("deep", text.as_bytes());
    assert_eq!(parsed.diagnostics.len(), 1, "{:?}", parsed.diagnostics);
    let loader: MemoryLoader = (0..17)
        .map(|n| {
            let block = format!("{} include {}; {}", "a {".repeat(5), n + 1, "}".repeat(5));
            (format!("/{n}"), block)
        })
        .chain([("/17".to_owned(), String::new())])
        .collect();
    let loaded = load("/0".as_ref(), "/".as_ref(), &loader);
    let message = &loaded.diagnostics[0].message;
    assert!(
        message.starts_with("blocks are nested more than"),
        "{message}"
    );
}

#[test]
fn a_text_that_is_no_configuration_gives_a_bounded_number_of_diagnostics() {
    let parsed = parse("noise", ";".repeat(1_000_000).as_bytes());
    assert_eq!(parsed.diagnostics.len(), nginx_conf::MAX_DIAGNOSTICS + 1);
}
