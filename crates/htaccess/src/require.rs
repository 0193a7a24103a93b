//! `Require` and its sections (`mod_authz_core`), merged by the rule of
//! `AuthMerging`.

use std::sync::Arc;

use crate::address::Network;
use crate::expression::Expression;
use crate::names::Methods;

/// How a section's lines go together with those of outer sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    Off,
    And,
    Or,
}

/// The condition of one `Require` line.
#[derive(Clone, Debug)]
pub enum Question {
    All(bool),
    Networks(Vec<Network>),
    Local,
    ValidUser,
    Users(Vec<String>),
    Groups(Vec<String>),
    Variables(Vec<String>),
    Methods(Vec<String>),
    Expression(Arc<Expression>),
    /// Names of hosts, and conditions that no module here evaluates.
    Unknown,
}

/// Whether all parts must hold, or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logic {
    All,
    Any,
}

#[derive(Clone, Debug)]
enum RequirementKind {
    Line(Methods, Question),
    Section(Logic, Vec<Requirement>),
}

/// A line, or a section of lines.
#[derive(Clone, Debug)]
pub struct Requirement {
    is_negated: bool,
    kind: RequirementKind,
}

/// The result of a requirement, in the order in which `mod_authz_core` knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Granted,
    Denied,
    /// A name and a password may change it.
    DeniedWithoutUser,
    Neutral,
    /// A question could not be answered that decides.
    Unknown,
}

impl Requirement {
    pub fn line(is_negated: bool, methods: Methods, question: Question) -> Requirement {
        Requirement {
            is_negated,
            kind: RequirementKind::Line(methods, question),
        }
    }

    pub fn section(logic: Logic, is_negated: bool, parts: Vec<Requirement>) -> Requirement {
        Requirement {
            is_negated,
            kind: RequirementKind::Section(logic, parts),
        }
    }

    pub fn is_negated(&self) -> bool {
        self.is_negated
    }

    /// Adds a part, in a section whose parts are alternatives.
    pub fn push(&mut self, part: Requirement) {
        if let RequirementKind::Section(_, parts) = &mut self.kind {
            parts.push(part);
        }
    }

    /// Outer and inner lines together.
    pub fn merged(merging: Merging, outer: &Requirement, inner: &Requirement) -> Requirement {
        let logic = match merging {
            Merging::Or => Logic::Any,
            Merging::And | Merging::Off => Logic::All,
        };
        Requirement::section(logic, false, vec![outer.clone(), inner.clone()])
    }

    fn is_of(&self, method: &str) -> bool {
        match &self.kind {
            RequirementKind::Line(methods, _) => methods.include(method),
            RequirementKind::Section(_, parts) => parts.iter().any(|it| it.is_of(method)),
        }
    }

    /// Whether it holds; `answer` answers a line.
    pub fn outcome(&self, method: &str, answer: &mut dyn FnMut(&Question) -> Outcome) -> Outcome {
        self.within(Logic::All, method, answer)
    }

    fn within(
        &self,
        outer: Logic,
        method: &str,
        answer: &mut dyn FnMut(&Question) -> Outcome,
    ) -> Outcome {
        if !self.is_of(method) {
            return match outer {
                Logic::All => Outcome::Granted,
                Logic::Any => Outcome::Neutral,
            };
        }
        let outcome = match &self.kind {
            RequirementKind::Line(_, question) => answer(question),
            RequirementKind::Section(logic, parts) => {
                let mut found = Outcome::Neutral;
                for part in parts {
                    let next = part.within(*logic, method, answer);
                    found = match logic {
                        Logic::All => all(found, next),
                        Logic::Any => any(found, next),
                    };
                }
                found
            }
        };
        match (self.is_negated, outcome) {
            (true, Outcome::Granted) => Outcome::Denied,
            (true, Outcome::Denied | Outcome::DeniedWithoutUser) => Outcome::Neutral,
            (_, outcome) => outcome,
        }
    }
}

fn all(found: Outcome, next: Outcome) -> Outcome {
    use Outcome::*;
    match (found, next) {
        (Denied, _) | (_, Denied) => Denied,
        (Unknown, _) | (_, Unknown) => Unknown,
        (found, Neutral) => found,
        (Neutral, next) => next,
        (DeniedWithoutUser, _) | (_, DeniedWithoutUser) => DeniedWithoutUser,
        (Granted, Granted) => Granted,
    }
}

fn any(found: Outcome, next: Outcome) -> Outcome {
    use Outcome::*;
    match (found, next) {
        (Granted, _) | (_, Granted) => Granted,
        (Unknown, _) | (_, Unknown) => Unknown,
        (found, Neutral) => found,
        (Neutral, next) => next,
        (DeniedWithoutUser, _) | (_, DeniedWithoutUser) => DeniedWithoutUser,
        (Denied, Denied) => Denied,
    }
}
