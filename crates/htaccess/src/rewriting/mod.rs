//! `RewriteEngine`, `RewriteRule` and `RewriteCond` of a folder (`mod_rewrite`).

mod condition;
mod expand;
mod rule;

pub use condition::Condition;
pub use expand::{CapturedGroups, GroupForm, expand, substituted};
pub use rule::{NextRule, Rule};

use std::sync::Arc;

/// The rules of a folder.
#[derive(Clone, Debug, Default)]
pub struct Rewriting {
    pub engine: Option<bool>,
    pub base: Option<String>,
    pub options: Option<RewriteOptions>,
    pub rules: Vec<Arc<Rule>>,
    /// The folder of files that the rules are of, with a slash at the end; empty if they are of no folder.
    pub folder: Vec<u8>,
}

/// `RewriteOptions`
#[derive(Clone, Copy, Debug, Default)]
pub struct RewriteOptions {
    pub inherit: Option<Inheritance>,
    pub inherit_down: Option<Inheritance>,
    pub ignores_inherited: bool,
    pub allows_no_slash: bool,
    pub merges_base: bool,
}

/// The place of the outer folder's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inheritance {
    Before,
    After,
}

impl Rewriting {
    /// These rules in a folder within one that has `outer`.
    pub fn within(&self, outer: Option<&Rewriting>) -> Rewriting {
        let mut merged = self.clone();
        let Some(outer) = outer else {
            return merged;
        };
        merged.engine = self.engine.or(outer.engine);
        merged.options = self.options.or(outer.options);
        let options = merged.options.unwrap_or_default();
        if options.merges_base && self.base.is_none() {
            merged.base.clone_from(&outer.base);
        }
        let outer_options = outer.options.unwrap_or_default();
        let from_above = outer_options
            .inherit_down
            .filter(|_| !options.ignores_inherited);
        match options.inherit.or(from_above) {
            Some(Inheritance::Before) => {
                merged.rules = outer.rules.iter().chain(&self.rules).cloned().collect();
            }
            Some(Inheritance::After) => merged.rules.extend(outer.rules.iter().cloned()),
            None => {}
        }
        merged
    }

    pub fn is_on(&self) -> bool {
        self.engine == Some(true) && !self.folder.is_empty()
    }
}
