//! `cache_tags`: which fields of a response name the data that it was made of.

use super::level::Level;
use super::values::bytes;
use crate::model::{TagField, TagRules, TagSeparator};

const LITESPEED_TAGS: &str = "x-litespeed-tag";

/// The fields that count without a directive, each as those who invented it write it.
const KNOWN: [(&str, TagSeparator); 7] = [
    // Fastly: https://www.fastly.com/documentation/reference/http/http-headers/Surrogate-Key/
    ("surrogate-key", TagSeparator::Spaces),
    // Cloudflare: https://developers.cloudflare.com/cache/how-to/purge-cache/purge-by-tags/
    ("cache-tag", TagSeparator::Commas),
    // vmod_xkey of varnish-modules: blanks and commas
    ("xkey", TagSeparator::Both),
    // FOSHttpCache, Symfony: https://foshttpcache.readthedocs.io/en/latest/response-tagging.html
    ("x-cache-tags", TagSeparator::Commas),
    // Magento's VCL
    ("x-magento-tags", TagSeparator::Commas),
    // https://docs.litespeedtech.com/lscache/devguide/controls/
    (LITESPEED_TAGS, TagSeparator::LiteSpeed),
    // RFC 9875
    ("cache-groups", TagSeparator::Groups),
];

/// Lowers `cache_tags` of a level; `None` with `off`. LiteSpeed's field always counts if its protocol
/// is spoken.
pub(super) fn tag_rules(level: &Level<'_>) -> Option<TagRules> {
    let Some(node) = level.find("cache_tags") else {
        return Some(rules(known(), level));
    };
    let speaks_litespeed = speaks_litespeed(level);
    if node.args().iter().any(|word| word.text == "off") {
        return speaks_litespeed.then(|| rules(vec![named(LITESPEED_TAGS)], level));
    }
    let has = |option: &str| node.args().iter().any(|word| word.text == option);
    let names = node
        .args()
        .iter()
        .filter(|word| !["on", "stderr", "sent"].contains(&word.text.as_str()))
        .map(|word| word.text.to_ascii_lowercase());
    let mut fields: Vec<TagField> = names.map(|name| named(&name)).collect();
    if fields.is_empty() {
        fields = known();
    }
    if speaks_litespeed && !fields.iter().any(|field| &*field.name == LITESPEED_TAGS) {
        fields.push(named(LITESPEED_TAGS));
    }
    Some(TagRules {
        from_stderr: has("stderr"),
        are_sent: has("sent"),
        ..rules(fields, level)
    })
}

/// Does `cache_litespeed` of a level say so?
pub(super) fn speaks_litespeed(level: &Level<'_>) -> bool {
    level
        .word("cache_litespeed")
        .is_some_and(|word| word.text == "on")
}

fn known() -> Vec<TagField> {
    KNOWN.map(|(name, separator)| field(name, separator)).into()
}

fn rules(fields: Vec<TagField>, level: &Level<'_>) -> TagRules {
    TagRules {
        names: fields.iter().map(|field| bytes(&field.name)).collect(),
        fields: fields.into(),
        from_stderr: false,
        are_sent: false,
        control: control(level),
    }
}

/// Lowers `cache_tagged_control` of a level: no purge reaches a browser, so that it has to ask.
fn control(level: &Level<'_>) -> Option<Box<str>> {
    let said = level.find("cache_tagged_control");
    let said = said.map_or("no-cache", |node| node.arg(0).text.as_str());
    (said != "off").then(|| said.into())
}

/// A field of this name in lower case; the tags of an unknown field may be separated in either way.
fn named(name: &str) -> TagField {
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    field(
        name,
        known.map_or(TagSeparator::Both, |(_, separator)| *separator),
    )
}

fn field(name: &str, separator: TagSeparator) -> TagField {
    TagField {
        name: name.into(),
        separator,
    }
}
