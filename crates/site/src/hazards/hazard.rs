//! A rule about hazards, and its findings.

use nginx_conf::{Span, Word};

use super::edit::{HazardEdit, insertion};
use super::tree::Block;

/// Looks at one block.
pub(super) type FindHazard = fn(Block<'_, '_>, &mut HazardSink<'_>);

/// How much harm it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HazardSeverity {
    /// It makes another mistake dangerous, or surprises.
    Warning,
    /// A stranger needs nothing else.
    Error,
}

/// One kind of hazard.
#[derive(Clone, Copy)]
pub struct HazardRule {
    /// Stable: scripts and baselines name it.
    pub name: &'static str,
    pub severity: HazardSeverity,
    /// The consequence, in a sentence or two.
    pub happens: &'static str,
    pub(super) find: FindHazard,
}

impl std::fmt::Debug for HazardRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A finding of a rule.
#[derive(Debug, Clone)]
pub struct Hazard {
    pub rule: &'static HazardRule,
    pub span: Span,
    /// The text in the configuration.
    pub found: String,
    /// The text to write instead.
    pub write: String,
    /// The edits that end the hazard, if there is one right answer.
    pub edits: Vec<HazardEdit>,
}

/// Collects the findings of a rule.
pub(super) struct HazardSink<'a> {
    pub rule: &'static HazardRule,
    pub found: &'a mut Vec<Hazard>,
}

impl HazardSink<'_> {
    pub fn say(&mut self, span: Span, found: impl Into<String>, write: impl Into<String>) {
        self.mend(span, found, write, Vec::new());
    }

    pub fn mend(
        &mut self,
        span: Span,
        found: impl Into<String>,
        write: impl Into<String>,
        edits: Vec<HazardEdit>,
    ) {
        self.found.push(Hazard {
            rule: self.rule,
            span,
            found: found.into(),
            write: write.into(),
            edits,
        });
    }

    /// One word in the place of another.
    pub fn replace(
        &mut self,
        word: &Word,
        text: &str,
        found: impl Into<String>,
        write: impl Into<String>,
    ) {
        let edits = vec![HazardEdit {
            span: word.span,
            text: text.to_owned(),
        }];
        self.mend(word.span, found, write, edits);
    }

    /// A text added to a word at this byte.
    pub fn insert(
        &mut self,
        word: &Word,
        at: usize,
        text: &str,
        found: impl Into<String>,
        write: impl Into<String>,
    ) {
        self.mend(word.span, found, write, insertion(word, at, text));
    }
}
