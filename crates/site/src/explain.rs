//! Explains each directive of a configuration, for `mayfly check --explain`.
//!
//! One line for each directive, in the order of the files, indented like the blocks. It has a
//! verdict (works, ignored, unsupported, misplaced, unknown or refused) and its reason.

use std::path::PathBuf;

use nginx_conf::{Ast, Diagnostic, Directive as Written, Sources, Span};

use crate::check::{asks_for_nothing, inside};
use crate::directives::{self, Context, DirectiveEnding, DirectiveLookup, Effect};

/// A directive and its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedDirective {
    /// The file of the directive.
    pub file: PathBuf,
    pub line: usize,
    /// How many blocks it is in.
    pub depth: usize,
    /// Name and arguments after quotes and escapes are resolved.
    pub text: String,
    pub verdict: Verdict,
    /// The warning of the same reading at this directive.
    pub warning: Option<String>,
    /// The hint of the same reading's warning or error.
    pub hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It works; its purpose.
    Works(&'static str),
    /// Accepted without effect, and why nothing is lost by it.
    Ignored(&'static str),
    /// Accepted without the effect that the operator may rely on, and why.
    Missing(&'static str),
    /// A directive that nginx has and Mayfly does not; the advice for a replacement.
    Unsupported(&'static str),
    /// It exists, but not here.
    Misplaced,
    Unknown,
    /// It exists and may be written here, and the same reading refuses its arguments.
    Refused(String),
}

impl std::fmt::Display for ExplainedDirective {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let indent = "  ".repeat(self.depth);
        let file = self.file.display();
        write!(out, "{file}:{}: {indent}{}  -- ", self.line, self.text)?;
        match &self.verdict {
            Verdict::Works(what) => write!(out, "works: {what}"),
            Verdict::Ignored(why) | Verdict::Missing(why) => write!(out, "ignored: {why}"),
            Verdict::Unsupported(advice) => write!(out, "unsupported: {advice}"),
            Verdict::Misplaced => out.write_str("not allowed here"),
            Verdict::Unknown => out.write_str("unknown"),
            Verdict::Refused(why) => write!(out, "refused: {why}"),
        }?;
        match &self.warning {
            Some(warning) => write!(out, " (warning: {warning})"),
            None => Ok(()),
        }
    }
}

/// Explains every directive of a tree; `found` is every complaint about it.
pub fn explain(ast: &Ast, sources: &Sources, found: &[Diagnostic]) -> Vec<ExplainedDirective> {
    let mut lines = Vec::new();
    let explainer = Explainer { sources, found };
    explainer.level(&ast.directives, Context::Main, 0, &mut lines);
    lines
}

struct Explainer<'a> {
    sources: &'a Sources,
    found: &'a [Diagnostic],
}

impl Explainer<'_> {
    fn level(
        &self,
        written: &[Written],
        context: Context,
        depth: usize,
        lines: &mut Vec<ExplainedDirective>,
    ) {
        for directive in written {
            let found = directives::find(&directive.name, context);
            // Directives in a block have lines of their own.
            let (inner, about) = match (&directive.block, found) {
                (Some(block), DirectiveLookup::Directive(spec))
                    if spec.ending == DirectiveEnding::Block =>
                {
                    (Some((block, inside(spec.name, context))), directive.head())
                }
                _ => (None, directive.span),
            };
            let mut verdict = verdict(directive, found);
            let error = self.complaint(about, true);
            if let (Verdict::Works(_) | Verdict::Ignored(_) | Verdict::Missing(_), Some(error)) =
                (&verdict, error)
            {
                verdict = Verdict::Refused(error.message.clone());
            }
            let warning = match verdict {
                Verdict::Works(_) => self.complaint(about, false),
                _ => None,
            };
            let position = self.sources.position(directive.span);
            lines.push(ExplainedDirective {
                file: position.map_or_else(PathBuf::new, |at| at.path.to_owned()),
                line: position.map_or(0, |at| at.line),
                depth,
                text: text(directive),
                verdict,
                warning: warning.map(|warning| warning.message.clone()),
                hint: error
                    .or(warning)
                    .and_then(|complaint| complaint.hint.clone()),
            });
            if let Some((block, context)) = inner {
                self.level(block, context, depth + 1, lines);
            }
        }
    }

    /// The first error or warning that points into this span.
    fn complaint(&self, about: Span, is_error: bool) -> Option<&Diagnostic> {
        self.found.iter().find(|it| {
            it.is_error() == is_error && it.span.is_some_and(|span| is_within(span, about))
        })
    }
}

fn is_within(inner: Span, outer: Span) -> bool {
    inner.source == outer.source && inner.start >= outer.start && inner.end <= outer.end
}

fn verdict(directive: &Written, found: DirectiveLookup) -> Verdict {
    match found {
        DirectiveLookup::Directive(spec) => match spec.effect {
            Effect::Works => Verdict::Works(spec.short),
            Effect::Missing(why) if !asks_for_nothing(directive) => Verdict::Missing(why),
            Effect::Ignored(why) | Effect::Missing(why) => Verdict::Ignored(why),
        },
        DirectiveLookup::Elsewhere(_) => Verdict::Misplaced,
        DirectiveLookup::Unknown => match directives::unsupported(&directive.name) {
            Some(unsupported) => Verdict::Unsupported(unsupported.advice),
            None => Verdict::Unknown,
        },
    }
}

/// Name and arguments in one line; long ones are cut.
fn text(directive: &Written) -> String {
    /// Enough to recognise a line by.
    const MAX_CHARS: usize = 60;
    let words = std::iter::once(&directive.name).chain(&directive.args);
    let whole = words
        .map(|word| word.text.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    let line: String = whole
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().count() <= MAX_CHARS {
        return line;
    }
    let start: String = line.chars().take(MAX_CHARS - 3).collect();
    format!("{start}...")
}
