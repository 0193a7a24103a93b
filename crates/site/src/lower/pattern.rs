//! Compiles patterns (PCRE), each text once, and gives their named groups slots for variables.

use std::sync::Arc;

use nginx_conf::{Diagnostic, Word};
use pcre2::bytes::RegexBuilder;

use super::Lowering;
use crate::model::Pattern;

impl Lowering<'_> {
    /// Compiles `text`, the end of `word`.
    pub fn pattern(&mut self, word: &Word, text: &str, caseless: bool) -> Option<Arc<Pattern>> {
        let key = (text.to_owned(), caseless);
        if let Some(known) = self.patterns.get(&key)
            && known.is_some()
        {
            return known.clone();
        }
        let compiled = self.compile(word, text, caseless);
        self.patterns.insert(key, compiled.clone());
        compiled
    }

    fn compile(&mut self, word: &Word, text: &str, caseless: bool) -> Option<Arc<Pattern>> {
        let built = RegexBuilder::new().caseless(caseless).build(text);
        let regex = match built {
            Ok(regex) => regex,
            Err(error) => {
                let start = word.len().saturating_sub(text.len());
                let message = error.to_string();
                let reason = message
                    .rsplit_once(": ")
                    .map_or(message.as_str(), |(_, it)| it);
                let span = match error.offset() {
                    Some(offset) => span_at(word, start, text, offset),
                    None => word.span,
                };
                self.report(
                    Diagnostic::error(
                        span,
                        format!("pattern \"{text}\" cannot be compiled: {reason}"),
                    )
                    .label(reason.to_owned())
                    .hint("patterns are PCRE; one that holds { } or ; must be in quotes"),
                );
                return None;
            }
        };
        let groups: Vec<(usize, String)> = regex
            .capture_names()
            .iter()
            .enumerate()
            .filter_map(|(group, name)| Some((group, name.clone()?)))
            .collect();
        let named = groups
            .into_iter()
            .map(|(group, name)| (group, self.variables.filled_slot(&name)))
            .collect();
        Some(Arc::new(Pattern::new(text, caseless, regex, named)))
    }
}

/// The span of byte `offset` of the pattern that begins at `start` in `word`.
fn span_at(word: &Word, start: usize, text: &str, offset: usize) -> nginx_conf::Span {
    let mut from = offset.min(text.len());
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    let to = text
        .get(from..)
        .and_then(|rest| rest.chars().next())
        .map_or(from, |c| from + c.len_utf8());
    word.part(start + from..start + to)
}
