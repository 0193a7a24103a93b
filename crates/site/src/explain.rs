//! What becomes of each directive of a configuration: `mayfly check --explain`.
//!
//! One line for each, in the order of the files, indented like the blocks.

use nginx_conf::{Ast, Directive as Written, Sources};

use crate::check::inside;
use crate::directives::{self, Context, Effect, Ending, Found};

/// What becomes of one directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// `FILE:LINE`
    pub place: String,
    /// How many blocks it stands in.
    pub depth: usize,
    /// Name and arguments as they are understood.
    pub text: String,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// What it is for.
    Works(&'static str),
    /// Accepted without effect, and why.
    Ignored(&'static str),
    /// What nginx has and Mayfly does not, and what to do instead.
    Unsupported(&'static str),
    /// It exists, but not here.
    Misplaced,
    Unknown,
}

impl std::fmt::Display for Explained {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let indent = "  ".repeat(self.depth);
        write!(out, "{}: {indent}{}  -- ", self.place, self.text)?;
        match self.verdict {
            Verdict::Works(what) => write!(out, "works: {what}"),
            Verdict::Ignored(why) => write!(out, "ignored: {why}"),
            Verdict::Unsupported(advice) => write!(out, "unsupported: {advice}"),
            Verdict::Misplaced => out.write_str("not allowed here"),
            Verdict::Unknown => out.write_str("unknown"),
        }
    }
}

/// Explains every directive of a tree.
pub fn explain(ast: &Ast, sources: &Sources) -> Vec<Explained> {
    let mut lines = Vec::new();
    level(&ast.directives, Context::Main, 0, sources, &mut lines);
    lines
}

fn level(
    written: &[Written],
    context: Context,
    depth: usize,
    sources: &Sources,
    lines: &mut Vec<Explained>,
) {
    for directive in written {
        let found = directives::find(&directive.name, context);
        lines.push(Explained {
            place: place(directive, sources),
            depth,
            text: text(directive),
            verdict: verdict(&directive.name, found),
        });
        if let (Some(block), Found::Directive(spec)) = (&directive.block, found)
            && spec.ending == Ending::Block
        {
            level(block, inside(spec.name, context), depth + 1, sources, lines);
        }
    }
}

fn verdict(name: &str, found: Found) -> Verdict {
    match found {
        Found::Directive(spec) => match spec.effect {
            Effect::Works => Verdict::Works(spec.short),
            Effect::Ignored(why) => Verdict::Ignored(why),
        },
        Found::Elsewhere(_) => Verdict::Misplaced,
        Found::Unknown => match directives::advice_for_unsupported(name) {
            Some(advice) => Verdict::Unsupported(advice),
            None => Verdict::Unknown,
        },
    }
}

fn place(directive: &Written, sources: &Sources) -> String {
    match sources.position(directive.span) {
        Some(position) => format!("{}:{}", position.path.display(), position.line),
        None => String::new(),
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
