use super::*;

/// Each finding as a line: kind, priority, path; `!` for a resource that blocks
/// rendering.
fn found(html: &str) -> Vec<String> {
    let page = Url::parse("http://site.test/blog/").expect("a URL");
    let mut scanner = Scanner::new(&page, Viewport::default());
    let mut found = scanner.feed(html);
    found.extend(scanner.end());
    let each = found.into_iter().filter_map(|it| match it {
        Finding::Resource(it) if it.url.path() == "/favicon.ico" => None,
        Finding::Resource(it) => Some(format!(
            "{}{} {:?} {}",
            if it.blocks_rendering { "!" } else { "" },
            it.kind.word(),
            it.priority,
            it.url.as_str().trim_start_matches("http://site.test")
        )),
        Finding::Style(text) => Some(format!("style {text}")),
        Finding::StyleAttribute(text) => Some(format!("attribute {text}")),
        Finding::Lazy(url) => Some(format!("lazy {}", url.path())),
        Finding::Script => None,
    });
    each.collect()
}

#[test]
fn a_page_names_its_resources_as_browsers_find_them() {
    #[rustfmt::skip]
    let cases: &[(&str, &str, &[&str])] = &[
        ("style", "<link rel=stylesheet href=a.css>", &["!style Highest /blog/a.css"]),
        ("style for print", "<link rel=stylesheet media=print href=a.css>", &["style Lowest /blog/a.css"]),
        ("alternate style", "<link rel='alternate stylesheet' href=a.css>", &["style Lowest /blog/a.css"]),
        ("disabled style", "<link rel=stylesheet disabled href=a.css>", &[]),
        ("another type", "<link rel=stylesheet type=text/less href=a>", &[]),
        ("entities", "<img src='/a?x=1&amp;y=2'>", &["image Low /a?x=1&y=2"]),
        ("script in head", "<head><script src=/a.js></script>", &["!script High /a.js"]),
        (
            "async and defer", "<script async src=/a.js></script><script defer src=/b.js></script>",
            &["script Low /a.js", "script Low /b.js"],
        ),
        (
            "module", "<script type=module src=/a.js></script><script nomodule src=/b.js></script>",
            &["script Low /a.js"],
        ),
        ("data block", "<script type=application/ld+json src=/a.js></script>", &[]),
        ("script in body", "<body><script src=/a.js></script>", &["script Medium /a.js"]),
        ("script after head", "<head></head><script src=/a.js></script>", &["script Medium /a.js"]),
        ("markup in a script", "<script>x = '<img src=/a.png>'</script>", &[]),
        ("markup in a comment", "<!-- <img src=/a.png> -->", &[]),
        ("markup in a title", "<title><img src=/a.png></title>", &[]),
        ("noscript", "<noscript><img src=/a.png></noscript>", &[]),
        ("template", "<template><img src=/a.png></template><img src=/b.png>", &["image Low /b.png"]),
        ("image", "<img src=a.png>", &["image Low /blog/a.png"]),
        ("wanted image", "<img fetchpriority=high src=a.png>", &["image High /blog/a.png"]),
        ("lazy image", "<img loading=lazy src=a.png>", &["lazy /blog/a.png"]),
        ("srcset", "<img src=/s.png srcset='/s.png 300w, /l.png 1400w'>", &["image Low /l.png"]),
        (
            "picture",
            "<picture><source type=image/jxl srcset=/a.jxl><source type=image/webp srcset=/a.webp><img src=/a.png></picture>",
            &["image Low /a.webp"],
        ),
        (
            "picture for others",
            "<picture><source media='(max-width: 9px)' srcset=/a.webp><img src=/a.png></picture>",
            &["image Low /a.png"],
        ),
        (
            "image after a picture", "<picture><source srcset=/a.webp><img src=/a.png></picture><img src=/b.png>",
            &["image Low /a.webp", "image Low /b.png"],
        ),
        ("base", "<base href=/other/><base href=/no/><img src=a.png>", &["image Low /other/a.png"]),
        ("preload", "<link rel=preload as=font crossorigin href=/a.woff2>", &["font High /a.woff2"]),
        (
            "preload of an image", "<link rel=preload as=image imagesrcset='/s.png 300w, /l.png 1400w'>",
            &["image Low /l.png"],
        ),
        ("preload for others", "<link rel=preload as=image media='(max-width: 9px)' href=/a.png>", &[]),
        ("modulepreload", "<link rel=modulepreload href=/a.js>", &["script High /a.js"]),
        ("prefetch", "<link rel=prefetch href=/a.js><link rel=dns-prefetch href=//cdn.test>", &[]),
        ("icon", "<link rel='shortcut icon' href=/a.ico>", &["icon Lowest /a.ico"]),
        ("poster", "<video poster=/a.jpg src=/a.mp4></video>", &["image Low /a.jpg"]),
        ("frame", "<iframe src=/a></iframe><iframe loading=lazy src=/b></iframe>", &["frame Low /a", "lazy /b"]),
        ("svg", "<svg><image href=/a.png /><use href=/a.svg#x /><use href='#y' /></svg>", &[
            "image Low /a.png", "image Low /a.svg",
        ]),
        ("button", "<input type=image src=/a.png><input type=text src=/b.png>", &["image Low /a.png"]),
        ("data", "<img src='data:image/png;base64,AA'>", &[]),
        ("inline style", "<style>a{}</style><style media=print>b{}</style>", &["style a{}"]),
        (
            "style attribute", "<p style='background:url(a.png)'><p style='color:red'>",
            &["attribute background:url(a.png)"],
        ),
        ("in capitals", "<IMG SRC=/a.png><LINK REL=StyleSheet HREF=/a.css>", &[
            "image Low /a.png", "!style Highest /a.css",
        ]),
        ("blocking", "<script async blocking=render src=/a.js></script>", &["!script Low /a.js"]),
    ];
    for (name, html, expected) in cases {
        assert_eq!(found(html), *expected, "{name}");
    }
}

#[test]
fn a_resource_is_found_with_the_bytes_that_name_it() {
    let page = Url::parse("http://site.test/").expect("a URL");
    let mut scanner = Scanner::new(&page, Viewport::default());
    assert_eq!(scanner.feed("<link rel=stylesheet href=a.css").len(), 0);
    assert_eq!(scanner.feed(">").len(), 1);
    assert_eq!(scanner.feed("<p>text").len(), 0);
}

#[test]
fn a_page_without_an_icon_has_one_at_the_usual_address() {
    let page = Url::parse("http://site.test/a/b").expect("a URL");
    for (html, expected) in [("<p>", 1), ("<link rel=icon href='data:,'>", 0)] {
        let mut scanner = Scanner::new(&page, Viewport::default());
        let mut found = scanner.feed(html);
        found.extend(scanner.end());
        assert_eq!(found.len(), expected, "{html}");
    }
}
