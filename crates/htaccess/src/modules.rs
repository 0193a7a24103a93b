//! `<IfModule>`, `<IfVersion>` and `<IfDefine>`: whether they hold for an Apache 2.4 as distributions build it.

use crate::item::Item;

/// Whether a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionVerdict {
    Yes,
    No,
}

/// Modules that this Apache does not have: those of 2.2, of other servers, and firewalls, whose rules nothing here stands
/// for.
const ABSENT: [&str; 12] = [
    "mod_access",
    "mod_bandwidth",
    "mod_cband",
    "mod_evasive20",
    "mod_gzip",
    "mod_pagespeed",
    "mod_security",
    "mod_security2",
    "mod_suphp",
    "pagespeed",
    "security2",
    "litespeed",
];

/// Whether the lines in a conditional section hold; `None` for another section.
pub fn holds(item: &Item) -> Option<SectionVerdict> {
    let holds = match item.name.as_str() {
        "ifmodule" => {
            let name = item.lower(0);
            let (is_negated, name) = negated(&name);
            let name = name.trim_end_matches(".c").trim_end_matches(".cpp");
            ABSENT.contains(&name.trim_end_matches("_module")) == is_negated
        }
        "ifdefine" => negated(&item.lower(0)).0,
        "ifdirective" | "ifsection" | "iffile" => !negated(&item.lower(0)).0,
        "ifversion" => version(&item.all_lower()),
        _ => return None,
    };
    Some(if holds {
        SectionVerdict::Yes
    } else {
        SectionVerdict::No
    })
}

fn negated(name: &str) -> (bool, &str) {
    match name.strip_prefix('!') {
        Some(name) => (true, name),
        None => (false, name),
    }
}

/// Compares with 2.4.99, the last that one could have.
fn version(args: &[String]) -> bool {
    let (compares, version) = match args {
        [version] => ("=", version),
        [compares, version, ..] => (compares.as_str(), version),
        [] => return true,
    };
    let mut asked = version.split('.').map(|it| it.parse::<u32>().unwrap_or(0));
    let asked = (
        asked.next().unwrap_or(0),
        asked.next().unwrap_or(0),
        asked.next().unwrap_or(0),
    );
    let (is_negated, compares) = negated(compares);
    let ours = (2, 4, 99);
    let holds = match compares {
        "<" | "<=" => ours < asked,
        ">" | ">=" => ours > asked,
        _ => (asked.0, asked.1) == (2, 4),
    };
    holds != is_negated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::parse;

    #[test]
    fn sections_hold_for_a_current_apache() {
        for (head, expected) in [
            ("IfModule mod_rewrite.c", Some(SectionVerdict::Yes)),
            ("IfModule !mod_authz_core.c", Some(SectionVerdict::No)),
            ("IfModule rewrite_module", Some(SectionVerdict::Yes)),
            ("IfModule mod_security2.c", Some(SectionVerdict::No)),
            ("IfModule !pagespeed_module", Some(SectionVerdict::Yes)),
            ("IfVersion >= 2.4", Some(SectionVerdict::Yes)),
            ("IfVersion < 2.4", Some(SectionVerdict::No)),
            ("IfVersion 2.2", Some(SectionVerdict::No)),
            ("IfDefine SSL", Some(SectionVerdict::No)),
            ("IfDefine !X", Some(SectionVerdict::Yes)),
            ("Files x", None),
        ] {
            let name = head.split(' ').next().unwrap_or_default();
            let parsed = parse(&format!("<{head}>\n</{name}>"), "f");
            assert_eq!(holds(&parsed.items[0]), expected, "{head}");
        }
    }
}
