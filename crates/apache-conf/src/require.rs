//! `Require` and the sections that hold it: what they ask, in terms that `allow`, `deny`, passwords and `if` have.

use crate::note::{Kind, Note};
use crate::patterns::network;
use crate::rewrite::environment;
use htaccess::item::Item;

/// What a tree of `Require` asks.
#[derive(Default)]
pub struct RequiredAccess {
    pub is_granted: bool,
    pub is_denied: bool,
    pub ips: Vec<String>,
    pub not_ips: Vec<String>,
    pub user: bool,
    pub refused: Vec<String>,
    /// What has no counterpart.
    pub strange: Vec<Note>,
    /// Parts that narrow, of which there may be one.
    pub parts: usize,
}

/// What lines ask of which one must hold.
pub fn any(lines: &[Item], is_environment: &dyn Fn(&str) -> bool) -> RequiredAccess {
    let mut asked = RequiredAccess::default();
    let mut is_one_granted = false;
    let lines_count = lines.len();
    let mut denied = 0;
    let mut nested = Vec::new();
    for item in lines {
        let inner = match (item.name.as_str(), &item.block) {
            ("requireall", Some(block)) => all(block, is_environment),
            ("requireany", Some(block)) => any(block, is_environment),
            ("requirenone", Some(_)) => {
                asked
                    .strange
                    .push(strange(item, "RequireNone stands alone"));
                continue;
            }
            _ => leaf(item, is_environment),
        };
        is_one_granted |= inner.is_granted && inner.parts == 0 && inner.strange.is_empty();
        if inner.is_denied {
            denied += 1;
            asked.strange.extend(inner.strange);
            continue;
        }
        nested.push(inner);
    }
    if is_one_granted {
        return RequiredAccess {
            is_granted: true,
            ..RequiredAccess::default()
        };
    }
    if denied == lines_count && asked.strange.is_empty() {
        asked.is_denied = true;
        return asked;
    }
    let is_single = nested.len() == 1;
    for inner in nested {
        // Alternatives can be addresses and passwords; all else is one part alone.
        let is_plain = inner.not_ips.is_empty() && inner.refused.is_empty() && inner.parts < 2;
        if !is_single && !is_plain {
            let item = &lines[0];
            asked
                .strange
                .push(strange(item, "these alternatives cannot be said together"));
            continue;
        }
        asked.ips.extend(inner.ips);
        asked.not_ips.extend(inner.not_ips);
        asked.user |= inner.user;
        asked.refused.extend(inner.refused);
        asked.strange.extend(inner.strange);
        asked.is_granted |= inner.is_granted;
        asked.parts = inner.parts;
    }
    if !is_single {
        asked.parts = 1;
    }
    asked
}

/// What lines ask that must all hold.
fn all(lines: &[Item], is_environment: &dyn Fn(&str) -> bool) -> RequiredAccess {
    let mut asked = RequiredAccess::default();
    for item in lines {
        let inner = match (item.name.as_str(), &item.block) {
            ("requireall", Some(block)) => all(block, is_environment),
            ("requireany", Some(block)) => any(block, is_environment),
            ("requirenone", Some(block)) => none(block, is_environment),
            _ => leaf(item, is_environment),
        };
        let is_either = inner.user && !inner.ips.is_empty() && inner.parts < 2;
        if !asked.ips.is_empty() && !inner.ips.is_empty() || is_either && lines.len() > 1 {
            asked
                .strange
                .push(strange(item, "these conditions cannot be said together"));
            continue;
        }
        asked.is_granted |= inner.is_granted;
        asked.is_denied |= inner.is_denied;
        asked.ips.extend(inner.ips);
        asked.not_ips.extend(inner.not_ips);
        asked.user |= inner.user;
        asked.refused.extend(inner.refused);
        asked.strange.extend(inner.strange);
        asked.parts += inner.parts;
    }
    if !asked.strange.is_empty() {
        // What cannot be asked does not hold.
        asked.is_denied = true;
    }
    asked
}

fn none(lines: &[Item], is_environment: &dyn Fn(&str) -> bool) -> RequiredAccess {
    let inner = any(lines, is_environment);
    if inner.user
        || inner.is_granted
        || !inner.refused.is_empty()
        || !inner.not_ips.is_empty()
        || !inner.strange.is_empty()
    {
        let strange = lines
            .iter()
            .map(|it| strange(it, "its opposite cannot be said"))
            .collect();
        return RequiredAccess {
            strange,
            is_denied: true,
            ..RequiredAccess::default()
        };
    }
    RequiredAccess {
        not_ips: inner.ips,
        parts: 1,
        ..RequiredAccess::default()
    }
}

fn strange(item: &Item, why: &str) -> Note {
    Note::of(item, &format!("{why}; this is closed"), Kind::Unsafe)
}

fn leaf(item: &Item, is_environment: &dyn Fn(&str) -> bool) -> RequiredAccess {
    let lower = item.all_lower();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let (is_negated, words) = match &lower[..] {
        ["not", words @ ..] => (true, words),
        words => (false, words),
    };
    let mut asked = RequiredAccess {
        parts: 1,
        ..RequiredAccess::default()
    };
    let why = match words {
        ["all", "granted"] | ["all", "denied"] => {
            asked.parts = 0;
            match (words[1] == "granted") != is_negated {
                true => asked.is_granted = true,
                false => asked.is_denied = true,
            }
            return asked;
        }
        ["ip", networks @ ..] => match networks
            .iter()
            .map(|it| network(it))
            .collect::<Option<Vec<_>>>()
        {
            Some(networks) if is_negated => {
                asked.not_ips = networks;
                return asked;
            }
            Some(networks) => {
                asked.ips = networks;
                return asked;
            }
            None => "an address cannot be read",
        },
        ["local"] if !is_negated => {
            asked.ips = vec!["127.0.0.0/8".to_owned(), "::1".to_owned()];
            return asked;
        }
        ["valid-user"] if !is_negated => {
            asked.user = true;
            return asked;
        }
        ["env", name] if is_environment(name) => {
            let variable = environment(name);
            asked.refused.push(if is_negated {
                format!("${variable}")
            } else {
                format!("${variable} = \"\"")
            });
            return asked;
        }
        ["method", methods @ ..] => {
            asked.refused.push(method_question(methods, !is_negated));
            return asked;
        }
        ["user" | "group", ..] => {
            "users cannot be chosen among those of the file; give the others another file"
        }
        ["host" | "forward-dns", ..] => "names of hosts are not looked up; write addresses",
        ["env", ..] => "no line that was translated sets this variable",
        ["expr", ..] => "expressions have no counterpart",
        _ => "there is no such condition",
    };
    asked.strange.push(strange(item, why));
    asked.is_denied = true;
    asked
}

/// What `if` asks, so that methods are refused: all but these, or these.
pub fn method_question(methods: &[&str], are_allowed: bool) -> String {
    let mut methods: Vec<String> = methods.iter().map(|it| it.to_ascii_uppercase()).collect();
    methods.retain(|it| it.bytes().all(|byte| byte.is_ascii_alphabetic()));
    if methods.iter().any(|it| it == "GET") && !methods.iter().any(|it| it == "HEAD") {
        methods.push("HEAD".to_owned());
    }
    let compares = if are_allowed { "!~" } else { "~" };
    format!("$request_method {compares} ^(?:{})$", methods.join("|"))
}
