//! Diagnostics as people read them: the file, the line, the span underlined,
//! the expected text, and a hint.
//!
//! ```text
//! error: unexpected "}"
//!  --> nginx.conf:3:1
//!   |
//! 3 | }
//!   | ^ expected ; before it
//!   |
//!   = help: ...
//! ```

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Source, Sources, Span};

/// How a terminal or a file wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    /// With ANSI colours.
    Coloured,
}

/// The diagnostic in several lines, without a line end after the last.
pub fn render(diagnostic: &Diagnostic, sources: &Sources, style: Style) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(visible(&diagnostic.message)));
    let primary = diagnostic.span.and_then(|span| excerpt(sources, span));
    if let Some(excerpt) = &primary {
        let annotation = AnnotationKind::Primary.span(excerpt.underlined.clone());
        group = group.element(excerpt.snippet(annotation, diagnostic.label.as_deref()));
    } else if let Some(label) = &diagnostic.label {
        group = group.element(Level::NOTE.message(visible(label)));
    }
    for note in &diagnostic.notes {
        match note.span.and_then(|span| excerpt(sources, span)) {
            None => group = group.element(Level::NOTE.message(visible(&note.message))),
            Some(excerpt) => {
                let annotation = AnnotationKind::Context.span(excerpt.underlined.clone());
                group = group.element(excerpt.snippet(annotation, Some(&note.message)));
            }
        }
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.message(visible(hint)));
    }
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    renderer.render(&[group])
}

/// One line of a source and the part of it to underline.
struct Excerpt<'a> {
    path: String,
    line: &'a str,
    /// From 1.
    number: usize,
    underlined: Range<usize>,
}

impl<'a> Excerpt<'a> {
    fn snippet(
        &self,
        annotation: Annotation<'a>,
        label: Option<&str>,
    ) -> Snippet<'a, Annotation<'a>> {
        Snippet::source(self.line)
            .path(self.path.clone())
            .line_start(self.number)
            .annotation(annotation.label(label.map(visible)))
    }
}

/// The first line of the span. `None` for a span of other sources.
fn excerpt(sources: &Sources, span: Span) -> Option<Excerpt<'_>> {
    let source: &Source = sources.source(span.source)?;
    let (index, range) = source.line_at(span.range().start.min(source.text().len()));
    let line = source.text().get(range.clone())?;
    let offset = |at: usize| {
        let at = at.clamp(range.start, range.end) - range.start;
        (0..=at)
            .rev()
            .find(|at| line.is_char_boundary(*at))
            .unwrap_or(0)
    };
    let underlined = offset(span.range().start)..offset(span.range().end);
    let path = visible(&source.path().display().to_string());
    Some(Excerpt {
        path,
        line,
        number: index + 1,
        underlined,
    })
}

/// Text from a configuration with control characters made visible, so that it
/// can neither break the picture nor steer a terminal.
fn visible(text: &str) -> String {
    let escape = |char: char| -> String {
        if char.is_control() {
            char.escape_default().to_string()
        } else {
            char.to_string()
        }
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn control_characters_cannot_reach_the_terminal() {
        let parsed = parse("a\u{1b}b", b"env \"\x1b[2J\"\x1b[31m;");
        let text = render(&parsed.diagnostics[0], &parsed.sources, Style::Plain);
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn colours_are_there_when_asked_for() {
        let parsed = parse("x", b"env a");
        let text = render(&parsed.diagnostics[0], &parsed.sources, Style::Coloured);
        assert!(text.contains("\u{1b}["), "{text:?}");
    }
}
