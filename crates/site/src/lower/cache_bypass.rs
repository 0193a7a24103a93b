//! A response that `*_cache_bypass` fetches for one visitor is not stored for the others: a condition
//! that depends on the visitor counts for `*_no_cache` as well, unless `cache_store_bypassed` is on.
//! One that depends on nothing but the address, the method and ordinary fields renews the stored
//! response, like in nginx.

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::cache::MAX_MAP_DEPTH;
use super::exchange::DirectivePrefix;
use super::level::Level;
use crate::directives::constants::*;
use crate::model::{Builtin, CacheRules, Part, Template, Variable};

/// Request fields that say who asks, spelt as in `$http_NAME`.
const PERSONAL_FIELDS: [&[u8]; 3] = [b"cookie", b"authorization", b"proxy_authorization"];

impl Lowering<'_> {
    /// Adds the conditions of `*_cache_bypass` that depend on the visitor to those of `*_no_cache`.
    pub fn keep_bypassed_from_others(
        &mut self,
        level: &Level<'_>,
        protocol: &DirectivePrefix,
        rules: &mut CacheRules,
        is_handled: bool,
    ) {
        // With `cache_shared`, bypassing responses are not stored.
        if self.value(level, CACHE_STORE_BYPASSED) || rules.shared.is_some() {
            return;
        }
        let nodes = level.all(&protocol.name("_cache_bypass")).to_vec();
        let words: Vec<&Word> = nodes.iter().flat_map(|node| node.args()).collect();
        let conditions = std::mem::take(&mut rules.bypass);
        for (condition, word) in conditions.iter().zip(words) {
            if rules.no_cache.contains(condition) || self.is_anybodys(condition, MAX_MAP_DEPTH) {
                continue;
            }
            if is_handled && self.warned.insert(word.span) {
                let no_cache = protocol.name("_no_cache");
                self.report(
                    Diagnostic::warning(word.span, "responses to requests that bypass the cache by this condition are not stored")
                        .label("nginx would store what one visitor gets and show it to everybody")
                        .hint(format!(
                            "{no_cache} {word} says the same in nginx too; if all visitors get the same page, write cache_store_bypassed on"
                        )),
                );
            }
            rules.no_cache.push(condition.clone());
        }
        rules.bypass = conditions;
    }

    /// Is the value of a condition the same for all visitors?
    fn is_anybodys(&self, condition: &Template, depth: usize) -> bool {
        condition.parts.iter().all(|part| match part {
            Part::Literal(_) | Part::Variable(Variable::Argument(_)) => true,
            Part::Variable(Variable::RequestField(name)) => !PERSONAL_FIELDS.contains(&&**name),
            Part::Variable(Variable::Builtin(builtin)) => is_of_address(*builtin),
            Part::Variable(Variable::Map(id)) => {
                let (Some(map), Some(depth)) = (self.declared.maps.get(id.0), depth.checked_sub(1))
                else {
                    return false;
                };
                let wildcards = map.leading_wildcard.iter().chain(&map.trailing_wildcard);
                let values = map.exact.values().chain(wildcards.map(|(_, value)| value));
                let values = values.chain(map.patterns.iter().map(|(_, value)| value));
                let mut all = values.chain([&map.source, &map.default]);
                all.all(|text| self.is_anybodys(text, depth))
            }
            // `set` and `if` may have looked at anything.
            Part::Variable(_) => false,
        })
    }
}

fn is_of_address(builtin: Builtin) -> bool {
    use Builtin as B;
    matches!(
        builtin,
        B::Args
            | B::QueryString
            | B::IsArgs
            | B::Uri
            | B::DocumentUri
            | B::Request
            | B::RequestUri
            | B::RequestMethod
            | B::RequestFilename
            | B::FastcgiScriptName
            | B::FastcgiPathInfo
            | B::DocumentRoot
            | B::Host
            | B::Scheme
            | B::Https
            | B::ServerName
            | B::ServerPort
            | B::ServerProtocol
            | B::ClientIsLocal
    )
}
