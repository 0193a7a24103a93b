use super::*;

fn parse(text: &str) -> StyleSheet {
    StyleSheet::parse(text, Viewport::default())
}

/// `selector { property: value }` of each rule.
fn rules(text: &str) -> Vec<String> {
    let sheet = parse(text);
    let each = sheet.rules.iter().map(|rule| {
        let declarations = rule.declarations.iter();
        let declarations: Vec<String> = declarations
            .map(|it| format!("{}: {}", it.property, it.value))
            .collect();
        format!("{} {{ {} }}", rule.selector, declarations.join("; "))
    });
    each.collect()
}

#[test]
fn rules_that_name_addresses_fonts_and_variables_are_kept() {
    for (text, expected) in [
        ("a { color: red }", vec![]),
        (
            "a, b > c { color: red; background: url(x.png) no-repeat }",
            vec!["a, b > c { background: url(x.png) no-repeat }"],
        ),
        (
            "a { BACKGROUND-IMAGE: URL('x.png') }",
            vec!["a { background-image: URL('x.png') }"],
        ),
        (
            "@media print { a { background: url(p) } } @media screen { a { background: url(s) } }",
            vec!["a { background: url(s) }"],
        ),
        (
            "@supports (display: grid) { @layer base { a { background: url(x) } } }",
            vec!["a { background: url(x) }"],
        ),
        (
            ":root { --Logo: url(x); } a { background: var(--Logo) }",
            vec![":root { --Logo: url(x) }", "a { background: var(--Logo) }"],
        ),
        (
            "a { *zoom: 1; background: url(x); nonsense; font-family: B }",
            vec!["a { background: url(x); font-family: B }"],
        ),
        ("a { x", vec![]),
        (
            "} a { background: url(x) }",
            vec!["} a { background: url(x) }"],
        ),
        (
            "a { color: red; & b { background: url(x) } c { background: url(y) } background: url(z) }",
            vec![
                ":is(a) b { background: url(x) }",
                ":is(a) c { background: url(y) }",
                "a { background: url(z) }",
            ],
        ),
        (
            "/* a { background: url(x) } */ b { background: url(\"data:a;b{c}\") }",
            vec!["b { background: url(\"data:a;b{c}\") }"],
        ),
        ("@keyframes k { from { background: url(x) } }", vec![]),
    ] {
        assert_eq!(rules(text), expected, "{text}");
    }
}

#[test]
fn imports_say_whether_they_apply() {
    for (text, expected) in [
        ("@import 'a.css';", vec![("a.css", true)]),
        (
            "@import url(a.css) screen; @import url(\"b.css\") print;",
            vec![("a.css", true), ("b.css", false)],
        ),
        (
            "@import 'a.css' layer(base) supports(display: grid) (min-width: 1px);",
            vec![("a.css", true)],
        ),
        (
            "@import 'a.css' layer (max-width: 1px);",
            vec![("a.css", false)],
        ),
        ("@import;", vec![]),
        ("a { @import 'a.css'; }", vec![]),
    ] {
        let sheet = parse(text);
        let found: Vec<(&str, bool)> = sheet
            .imports
            .iter()
            .map(|it| (it.address.as_str(), it.applies))
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn the_first_readable_source_of_a_font_is_taken() {
    for (src, expected) in [
        ("url(a.woff2)", Some("a.woff2")),
        (
            "url('a.eot?#iefix') format('embedded-opentype'), url(a.woff) format('woff')",
            Some("a.woff"),
        ),
        (
            "local('A'), url(a.woff2) format(\"woff2\")",
            Some("a.woff2"),
        ),
        (
            "url(a.eot), url(a.ttf) format(truetype), url(a.svg)",
            Some("a.ttf"),
        ),
        ("local(A)", None),
    ] {
        let sheet = parse(&format!(
            "@font-face {{ font-family: \"A B\"; src: {src}; font-weight: 100 900; font-style: italic; unicode-range: U+0-FF, U+4?? }}"
        ));
        let face = sheet.faces.first().expect("a face");
        assert_eq!(face.source.as_deref(), expected, "{src}");
        assert_eq!(
            (face.family.as_str(), face.weights),
            ("a b", (100.0, 900.0))
        );
        assert_eq!(face.ranges, [(0, 0xff), (0x400, 0x4ff)]);
        assert!(face.is_italic);
    }
}

#[test]
fn families_are_read_from_both_properties() {
    for (value, expected) in [
        ("Inter, sans-serif", vec!["inter", "sans-serif"]),
        ("\"Open Sans\", Some Name", vec!["open sans", "some name"]),
        (
            "italic bold 12px/1.5 Some Name, serif",
            vec!["some name", "serif"],
        ),
        ("var(--x)", vec![""]),
    ] {
        assert_eq!(families(value), expected, "{value}");
    }
}

#[test]
fn values_name_addresses_and_variables() {
    for (value, addresses, variables) in [
        ("url(a.png), url('b.png')", vec!["a.png", "b.png"], vec![]),
        (
            "linear-gradient(red, blue), url(a.png)",
            vec!["a.png"],
            vec![],
        ),
        ("var(--a, url(x.png))", vec![], vec!["--a"]),
        ("image-set('a.png' 1x, 'b.png' 2x)", vec!["a.png"], vec![]),
        (
            "cross-fade(url(a.png), var(--b))",
            vec!["a.png"],
            vec!["--b"],
        ),
    ] {
        let found = addresses_and_variables(value);
        let expected: (Vec<String>, Vec<String>) = (
            addresses.into_iter().map(str::to_owned).collect(),
            variables.into_iter().map(str::to_owned).collect(),
        );
        assert_eq!(found, expected, "{value}");
    }
}

#[test]
fn blocks_within_blocks_end_somewhere() {
    let deep = "@media all {".repeat(20_000);
    assert_eq!(parse(&deep), StyleSheet::default());
    let wide = format!("a {{ {} }}", "x:{}".repeat(50_000));
    assert_eq!(parse(&wide), StyleSheet::default());
    let deep = format!(
        "a {{ background: {}url(x){} }}",
        "f(".repeat(5000),
        ")".repeat(5000)
    );
    let _ = parse(&deep);
    let _ = addresses_and_variables(&deep);
}
