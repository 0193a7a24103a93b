//! Properties that hold for any bytes at all; fuzz targets and property tests
//! call them.

use std::path::Path;

use crate::ast::{Directive, Word};
use crate::diagnostic::Diagnostic;
use crate::format::{format, reformat};
use crate::load::{load, parse};
use crate::loader::MemoryLoader;
use crate::render::{Style, render};
use crate::source::{Sources, Span};

/// Parses, renders, formats and loads the bytes.
///
/// # Panics
///
/// When a promise of the crate is broken.
pub fn fuzz_parse(bytes: &[u8]) {
    let parsed = parse("fuzz.conf", bytes);
    let (_, text) = parsed.sources.files().next().unwrap_or((Path::new(""), ""));
    assert_eq!(text, String::from_utf8_lossy(bytes), "the text is kept");
    check_directives(&parsed.sources, &parsed.ast.directives, bytes.len() * 3);
    check_diagnostics(&parsed.sources, &parsed.diagnostics);

    let formatted = format(&parsed.ast);
    let again = parse("formatted.conf", formatted.as_bytes());
    assert!(
        !again.has_errors(),
        "formatted text has no errors:\n{formatted}"
    );
    assert!(
        again.ast.says_the_same(&parsed.ast),
        "formatting keeps the tree:\n{formatted}"
    );
    assert_eq!(format(&again.ast), formatted, "formatting is idempotent");

    if let Ok(tidy) = reformat("fuzz.conf", text) {
        let again = parse("tidy.conf", tidy.as_bytes());
        assert!(
            again.ast.says_the_same(&parsed.ast),
            "tidying keeps the tree:\n{tidy}"
        );
        assert_eq!(
            reformat("tidy.conf", &tidy).as_ref(),
            Ok(&tidy),
            "tidying is idempotent"
        );
    }

    let loader: MemoryLoader = [("/a", bytes), ("/b", bytes)].into_iter().collect();
    let loaded = load(Path::new("a"), Path::new("/"), &loader);
    check_diagnostics(&loaded.sources, &loaded.diagnostics);
    let handed_over = load(
        Path::new("/a"),
        Path::new("/"),
        &MemoryLoader::from(&loaded.sources),
    );
    assert!(
        handed_over.ast.says_the_same(&loaded.ast),
        "a worker reads the same tree"
    );
}

fn check_span(sources: &Sources, span: Span) {
    let source = sources.source(span.source).expect("span of a known source");
    let range = span.start as usize..span.end as usize;
    assert!(
        source.text().get(range).is_some(),
        "{span:?} lies in its source"
    );
    assert!(sources.position(span).is_some(), "{span:?} has a position");
}

fn check_directives(sources: &Sources, directives: &[Directive], longest: usize) {
    for directive in directives {
        check_span(sources, directive.span);
        check_span(sources, directive.head());
        for word in std::iter::once(&directive.name).chain(&directive.args) {
            check_word(sources, word, longest);
        }
        check_directives(
            sources,
            directive.block.as_deref().unwrap_or_default(),
            longest,
        );
    }
}

fn check_word(sources: &Sources, word: &Word, longest: usize) {
    check_span(sources, word.span);
    check_span(sources, word.part(0..word.text.len()));
    check_span(sources, word.part(word.text.len() / 2..word.text.len()));
    assert!(
        word.text.len() <= longest,
        "a word is no longer than its text"
    );
}

fn check_diagnostics(sources: &Sources, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        for span in diagnostic
            .notes
            .iter()
            .filter_map(|note| note.span)
            .chain(diagnostic.span)
        {
            check_span(sources, span);
        }
        assert!(!diagnostic.one_line(sources).is_empty());
        for style in [Style::Plain, Style::Coloured] {
            assert!(render(diagnostic, sources, style).contains(": "));
        }
    }
}
