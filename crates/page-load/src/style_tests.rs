use std::time::Duration;

use super::*;
use crate::media::Viewport;

fn needed_of(html: &str, css: &str) -> NeededFiles {
    let base = Url::parse("http://site.test/css/").expect("a URL");
    let sheet = StyleSheet::parse(css, Viewport::default());
    let deadline = Instant::now() + Duration::from_secs(600);
    let applies = true;
    let sheet = LoadedSheet {
        base,
        sheet,
        applies,
    };
    needed(html, &[sheet], deadline)
}

fn paths(urls: &BTreeSet<Url>) -> Vec<&str> {
    urls.iter().map(Url::path).collect()
}

#[test]
fn pictures_of_rules_with_elements_are_needed() {
    #[rustfmt::skip]
    let cases = [
        ("an element", "<p class=a>", ".a { background: url(x) }", vec!["/css/x"]),
        ("no element", "<p>", ".a { background: url(x) }", vec![]),
        ("one of a list", "<p>", ".a, p { background: url(x) }", vec!["/css/x"]),
        ("a part", "<p>", "p::before { content: url(x) }", vec!["/css/x"]),
        ("an old part", "<p>", "p:after { content: url(x) }", vec!["/css/x"]),
        ("a part of no element", "<p>", "b::before { content: url(x) }", vec![]),
        ("a pointer over it", "<a href=#>", "a:hover { background: url(x) }", vec![]),
        ("beside one that cannot be tried", "<p>", "a:hover, p { background: url(x) }", vec!["/css/x"]),
        ("a link", "<a href=#>", "a:link { background: url(x) }", vec!["/css/x"]),
        ("not", "<p>", "p:not(.a) { background: url(x) }", vec!["/css/x"]),
        ("a template", "<template><p></template>", "p { background: url(x) }", vec![]),
        ("a variable", "<p>", ":root { --x: url(x) } p { background: var(--x) }", vec!["/css/x"]),
        ("a variable nobody uses", "<p>", ":root { --x: url(x) }", vec![]),
        ("a circle", "<p>", "p { --x: var(--y) url(x); --y: var(--x); background: var(--y) }", vec!["/css/x"]),
        ("children", "<ul><li>", "ul > li { list-style: url(x) }", vec!["/css/x"]),
        ("data", "<p>", "p { background: url(data:,x) }", vec![]),
    ];
    for (name, html, css, expected) in cases {
        let needed = needed_of(html, css);
        assert_eq!(paths(&needed.pictures), expected, "{name}");
        assert!(!needed.is_cut, "{name}");
    }
}

#[test]
fn fonts_are_needed_for_families_that_are_used() {
    let face = |rest: &str| format!("@font-face {{ font-family: A; {rest} }}");
    #[rustfmt::skip]
    let cases = [
        ("used", "<p>x", face("src: url(a)") + "p { font-family: 'a', serif }", vec!["/css/a"]),
        ("not used", "<p>x", face("src: url(a)"), vec![]),
        ("not on this page", "<p>x", face("src: url(a)") + "b { font-family: A }", vec![]),
        ("short form", "<p>x", face("src: url(a)") + "p { font: 12px A }", vec!["/css/a"]),
        (
            "by a variable", "<p>x", face("src: url(a)") + ":root { --f: A } p { font-family: var(--f) }",
            vec!["/css/a"],
        ),
        (
            "by letters", "<p>Wort",
            face("src: url(l); unicode-range: U+0-FF") + &face(
                "src: url(c); unicode-range: U+400-4FF",
            ) + "p { font-family: A }",
            vec!["/css/l"],
        ),
        (
            "by weight", "<p>x",
            face("src: url(r); font-weight: 400") + &face("src: url(b); font-weight: 700") + "p { font-family: A }",
            vec!["/css/r"],
        ),
        (
            "bold as well", "<p><b>x",
            face("src: url(r)") + &face("src: url(b); font-weight: 700") + "p { font-family: A }",
            vec!["/css/b", "/css/r"],
        ),
        (
            "slanted only where something is", "<p>x",
            face("src: url(r)") + &face("src: url(i); font-style: italic") + "p { font-family: A }", vec!["/css/r"],
        ),
    ];
    for (name, html, css, expected) in cases {
        assert_eq!(paths(&needed_of(html, &css).fonts), expected, "{name}");
    }
}

#[test]
fn rules_are_tried_until_the_time_is_over() {
    let base = Url::parse("http://site.test/").expect("a URL");
    let sheet = StyleSheet::parse("p { background: url(x) }", Viewport::default());
    let loaded = LoadedSheet {
        base,
        sheet,
        applies: true,
    };
    let sheets = std::slice::from_ref(&loaded);
    let cut = needed("<p>", sheets, Instant::now());
    assert!(cut.is_cut && cut.pictures.is_empty());
}

#[test]
fn sheets_for_other_media_need_nothing() {
    let base = Url::parse("http://site.test/").expect("a URL");
    let sheet = StyleSheet::parse("p { background: url(x) }", Viewport::default());
    let loaded = |applies| LoadedSheet {
        base: base.clone(),
        sheet: sheet.clone(),
        applies,
    };
    let deadline = Instant::now() + Duration::from_secs(600);
    let count = |applies| needed("<p>", &[loaded(applies)], deadline).pictures.len();
    assert_eq!((count(true), count(false)), (1, 0));
}
