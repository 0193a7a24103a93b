//! Variables: `SetEnvIf` and its kin, which conditions may ask for, and `SetEnv`, which only scripts see.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::expression::Expression;
use crate::pattern::Pattern;

/// Variables of a request.
pub type Variables = BTreeMap<String, Vec<u8>>;

/// The part of a request that a condition compares.
#[derive(Clone, Debug)]
pub enum Subject {
    Attribute(String),
    /// Fields whose names a pattern matches.
    Fields(Pattern),
    Expression(Arc<Expression>),
}

/// A line of `SetEnvIf`, `BrowserMatch` or `SetEnvIfExpr`.
#[derive(Clone, Debug)]
pub struct EnvironmentCondition {
    pub subject: Subject,
    pub pattern: Option<Pattern>,
    /// Names, and their values; `None` removes one.
    pub sets: Vec<(String, Option<String>)>,
}

/// The lines of a section that set or unset variables.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub conditions: Vec<Arc<EnvironmentCondition>>,
    /// `SetEnv` and `UnsetEnv`.
    pub set: Vec<(String, Option<String>)>,
}
