//! Hazards of a configuration: lines that are accepted and give strangers access that the operator did not intend,
//! for `mayfly check`.
//!
//! ```text
//! Ast ──tree──► Blocks ──rules::RULES──► Hazards, in the order of the text
//! ```
//!
//! A rule is one entry of a table with one function; it sees one block and the blocks around it. A finding has its
//! place, its consequence and the text to write instead; if only one correction is right, it has the edits, too.

mod edit;
mod hazard;
mod rules;
#[cfg(test)]
mod tests;
mod tree;
mod values;

use std::collections::HashSet;

use nginx_conf::Ast;

pub use edit::{HazardEdit, edited};
pub use hazard::{Hazard, HazardRule, HazardSeverity};
pub use rules::RULES;

/// Returns all hazards, in the order of the text. A line that is included twice is reported once.
pub fn hazards(ast: &Ast) -> Vec<Hazard> {
    let blocks = tree::Blocks::of(ast);
    let mut found = Vec::new();
    for block in blocks.all() {
        for rule in RULES {
            let mut sink = hazard::HazardSink {
                rule,
                found: &mut found,
            };
            (rule.find)(block, &mut sink);
        }
    }
    let mut seen = HashSet::new();
    found.retain(|hazard| seen.insert((hazard.rule.name, hazard.span)));
    found.sort_by_key(|hazard| (hazard.span.source, hazard.span.start, hazard.rule.name));
    found
}
