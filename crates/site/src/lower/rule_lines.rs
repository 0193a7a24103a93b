//! Notes the lines of a configuration that decide about storing and lifetimes, to explain why a
//! page is stored or not.

use super::Lowering;
use super::exchange::DirectivePrefix;
use super::level::Level;
use crate::check::Node;
use crate::model::RuleLine;

/// Directives of each protocol, less their prefix.
const OF_PROTOCOL: [&str; 12] = [
    "_cache",
    "_cache_bypass",
    "_cache_convert_head",
    "_cache_key",
    "_cache_lock_timeout",
    "_cache_max_range_offset",
    "_cache_methods",
    "_cache_min_uses",
    "_cache_purge",
    "_cache_valid",
    "_ignore_headers",
    "_no_cache",
];

/// Directives that all protocols share.
const SHARED: [&str; 17] = [
    "cache_crawler_valid",
    "cache_ignore_args",
    "cache_ignore_cookies",
    "cache_key_cookies",
    "cache_max_valid",
    "cache_not_found",
    "cache_personal_args",
    "cache_personal_cookies",
    "cache_personal_paths",
    "cache_private",
    "cache_read_your_writes",
    "cache_shared",
    "cache_stale",
    "cache_store_authorized",
    "cache_store_bypassed",
    "cache_store_set_cookie",
    "cache_unknown_cookies",
];

impl Lowering<'_> {
    /// The lines that are in force at a level, in the order of their directives here and of the
    /// text.
    pub fn rule_lines(&self, level: &Level<'_>, protocol: &DirectivePrefix) -> Vec<RuleLine> {
        let own = OF_PROTOCOL.iter().map(|rest| protocol.name(rest));
        let shared = SHARED.iter().map(|name| (*name).to_owned());
        let names: Vec<String> = own.chain(shared).collect();
        let nodes = names.iter().flat_map(|name| level.all(name));
        nodes.map(|node| self.rule_line(node)).collect()
    }

    fn rule_line(&self, node: &Node<'_>) -> RuleLine {
        let mut text = node.name().to_owned();
        for word in node.args() {
            text.push(' ');
            text.push_str(&word.text);
        }
        let at = self.sources.position(node.span());
        RuleLine {
            directive: node.name().into(),
            text: text.into(),
            at: match (at, self.options.text_name) {
                (Some(at), Some(name)) => format!("line {} of {name}", at.line).into(),
                (Some(at), None) => format!("{}:{}", at.path.display(), at.line).into(),
                (None, _) => "".into(),
            },
        }
    }
}
