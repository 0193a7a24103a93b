//! Complaints about a configuration: the mistake, its place, and its remedy.
//!
//! Used by this crate for the grammar and by `site` for the meaning, so that
//! all complaints look alike and come out in one go. Messages begin in lower
//! case and use nginx's own wording where nginx has one.

use crate::source::{Origin, Sources, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration is used all the same.
    Warning,
    /// The configuration is refused.
    Error,
}

/// One complaint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The mistake: `unexpected "}"`.
    pub message: String,
    /// The place. `None` when the complaint is about no text, such as a file that
    /// cannot be opened.
    pub span: Option<Span>,
    /// The expected words, written under the text.
    pub label: Option<String>,
    /// The remedy.
    pub hint: Option<String>,
    pub notes: Vec<Note>,
    /// The shared cause of several complaints, which can be reported as one (see
    /// [`merge_by_cause`]).
    pub cause: Option<String>,
}

/// A further fact, perhaps about another span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub message: String,
    pub span: Option<Span>,
}

impl Diagnostic {
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, Some(span), message)
    }

    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, Some(span), message)
    }

    /// Makes an error about no text.
    pub fn error_without_span(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, None, message)
    }

    fn new(severity: Severity, span: Option<Span>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            severity,
            message,
            span,
            label: None,
            hint: None,
            notes: Vec::new(),
            cause: None,
        }
    }

    #[must_use]
    pub fn label(mut self, expected: impl Into<String>) -> Self {
        self.label = Some(expected.into());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn note(mut self, message: impl Into<String>) -> Self {
        self.notes.push(Note {
            message: message.into(),
            span: None,
        });
        self
    }

    #[must_use]
    pub fn note_at(mut self, span: Span, message: impl Into<String>) -> Self {
        self.notes.push(Note {
            message: message.into(),
            span: Some(span),
        });
        self
    }

    #[must_use]
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// nginx's rendering: `message in FILE:LINE`, `message in command line`
    /// for the argument of `-g`, the bare message without a position.
    pub fn one_line(&self, sources: &Sources) -> String {
        let message = &self.message;
        let Some(span) = self.span else {
            return message.clone();
        };
        let origin = sources.source(span.source).map(|source| source.origin());
        match sources.position(span) {
            Some(position) if origin == Some(Origin::File) => {
                format!("{message} in {}:{}", position.path.display(), position.line)
            }
            Some(position) => format!("{message} in {}", position.path.display()),
            None => message.clone(),
        }
    }
}

/// At most this many further spans of one cause are shown.
const MAX_SPANS_SHOWN: usize = 5;

/// One complaint for each cause and severity: the first keeps its span and words, the
/// spans of the others become notes of it.
pub fn merge_by_cause(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut merged: Vec<Diagnostic> = Vec::with_capacity(diagnostics.len());
    let mut others: Vec<Vec<Span>> = Vec::with_capacity(diagnostics.len());
    for diagnostic in diagnostics {
        let first = merged.iter().position(|first| {
            diagnostic.cause.is_some()
                && first.cause == diagnostic.cause
                && first.severity == diagnostic.severity
        });
        match (first.and_then(|at| others.get_mut(at)), diagnostic.span) {
            (Some(spans), Some(span)) => spans.push(span),
            _ => {
                merged.push(diagnostic);
                others.push(Vec::new());
            }
        }
    }
    for (diagnostic, spans) in merged.iter_mut().zip(others) {
        let hidden = spans.len().saturating_sub(MAX_SPANS_SHOWN);
        for span in spans.into_iter().take(MAX_SPANS_SHOWN) {
            diagnostic.notes.push(Note {
                message: "for the same reason".to_owned(),
                span: Some(span),
            });
        }
        if hidden > 0 {
            let noun = if hidden == 1 { "place" } else { "places" };
            diagnostic.notes.push(Note {
                message: format!("and {hidden} more {noun}"),
                span: None,
            });
        }
    }
    merged
}
