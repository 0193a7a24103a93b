//! Who may have what: `Order`, `Allow` and `Deny` of Apache 2.2, and `Require` of 2.4, as lines of `allow`, `deny`,
//! `auth_basic` and `return 403`. What cannot be said so is closed.

use nginx_conf::text::quoted;

use crate::item::Item;
use crate::note::{Kind, Note};
use crate::patterns::network;
use crate::rewrite::environment;

/// The lines of one section or file.
#[derive(Clone, Debug, Default)]
pub struct AccessLines {
    allows_first: bool,
    has_order: bool,
    allow: Vec<Item>,
    deny: Vec<Item>,
    require: Vec<Item>,
    is_any: bool,
    auth_type: Option<String>,
    realm: Option<String>,
    user_file: Option<Item>,
    /// A kind of password that nginx does not have.
    strange: Option<Item>,
    /// Methods that are refused, as a condition of `if`.
    refused_methods: Vec<String>,
}

/// Who may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    Open,
    Closed,
    Limited(Limits),
}

/// Lines for a location or a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `allow` and `deny`, in order.
    pub addresses: Vec<String>,
    /// `auth_basic` and its file.
    pub password: Vec<String>,
    pub is_any: bool,
    /// What `if` asks, to refuse.
    pub refused: Vec<String>,
}

impl Limits {
    /// All that stands in a location.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .refused
            .iter()
            .map(|it| format!("if ({it}) {{ return 403; }}"))
            .collect();
        lines.extend(self.locking_lines());
        lines
    }

    /// What cannot be an `if`.
    pub fn locking_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_any && !self.addresses.is_empty() && !self.password.is_empty() {
            lines.push("satisfy any;".to_owned());
        }
        lines.extend(self.addresses.iter().cloned());
        lines.extend(self.password.iter().cloned());
        lines
    }
}

/// What a tree of `Require` asks.
#[derive(Default)]
struct Asked {
    is_granted: bool,
    is_denied: bool,
    ips: Vec<String>,
    not_ips: Vec<String>,
    user: bool,
    refused: Vec<String>,
    /// What has no counterpart.
    strange: Vec<Note>,
    /// Parts that narrow, of which there may be one.
    parts: usize,
}

impl AccessLines {
    /// Takes a line of this kind; false where it is another one.
    pub fn take(&mut self, item: &Item) -> bool {
        match item.name.as_str() {
            "order" => {
                self.has_order = true;
                self.allows_first =
                    item.lower(0).starts_with("allow") || item.lower(0) == "mutual-failure";
            }
            "allow" => self.allow.push(item.clone()),
            "deny" => self.deny.push(item.clone()),
            "require" | "requireall" | "requireany" | "requirenone" => {
                self.require.push(item.clone())
            }
            "satisfy" => self.is_any = item.lower(0) == "any",
            "authtype" => self.auth_type = Some(item.lower(0)),
            "authname" => self.realm = item.args.first().cloned(),
            "authuserfile" => self.user_file = Some(item.clone()),
            "authbasicprovider" if item.all_lower() == ["file"] => {}
            "authgroupfile" | "authdigestprovider" | "authbasicprovider" | "authformprovider" => {
                self.strange = Some(item.clone());
            }
            _ => return false,
        }
        true
    }

    pub fn refuse_methods(&mut self, question: String) {
        self.refused_methods.push(question);
    }

    pub fn is_empty(&self) -> bool {
        self.allow.is_empty()
            && self.deny.is_empty()
            && self.require.is_empty()
            && !self.has_order
            && self.refused_methods.is_empty()
    }

    /// Those that hold inside of these, where their own say nothing: passwords are asked as around them.
    pub fn with_password_of(mut self, outer: &AccessLines) -> AccessLines {
        self.auth_type = self.auth_type.or_else(|| outer.auth_type.clone());
        self.realm = self.realm.or_else(|| outer.realm.clone());
        self.user_file = self.user_file.or_else(|| outer.user_file.clone());
        self
    }

    /// Who may have it. What cannot be said is noted, and closed.
    pub fn access(&self, is_environment: &dyn Fn(&str) -> bool, notes: &mut Vec<Note>) -> Access {
        let mut limits = Limits {
            refused: self.refused_methods.clone(),
            is_any: self.is_any,
            ..Limits::default()
        };
        let old = match self.allow.is_empty() && self.deny.is_empty() && !self.has_order {
            true => Access::Open,
            false => self.of_2_2(is_environment, notes),
        };
        let mut user = false;
        let new = match self.require.is_empty() {
            true => Access::Open,
            false => self.of_2_4(is_environment, notes, &mut user),
        };
        for access in [old, new] {
            match access {
                Access::Open => {}
                Access::Closed if self.is_any && user => {
                    limits.addresses.push("deny all;".to_owned())
                }
                Access::Closed => return Access::Closed,
                Access::Limited(more)
                    if !more.addresses.is_empty() && !limits.addresses.is_empty() =>
                {
                    self.all().for_each(|it| {
                        notes.push(Note::of(
                            it,
                            "addresses are limited twice; this is closed",
                            Kind::Unsafe,
                        ))
                    });
                    return Access::Closed;
                }
                Access::Limited(more) => {
                    limits.addresses.extend(more.addresses);
                    limits.refused.extend(more.refused);
                    limits.is_any |= more.is_any;
                }
            }
        }
        if user {
            match self.password() {
                Ok(lines) => limits.password = lines,
                Err((item, why)) => {
                    let item = item.or(self.require.first());
                    notes.extend(
                        item.map(|it| {
                            Note::of(it, &format!("{why}; this is closed"), Kind::Unsafe)
                        }),
                    );
                    return Access::Closed;
                }
            }
        }
        match limits.addresses.is_empty() && limits.password.is_empty() && limits.refused.is_empty()
        {
            true => Access::Open,
            false => Access::Limited(limits),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Item> {
        self.allow.iter().chain(&self.deny).chain(&self.require)
    }

    fn password(&self) -> Result<Vec<String>, (Option<&Item>, String)> {
        if let Some(item) = &self.strange {
            return Err((
                Some(item),
                "nginx knows passwords in files only, and no groups".to_owned(),
            ));
        }
        if self.auth_type.as_deref().unwrap_or("basic") != "basic" {
            return Err((
                None,
                "of the kinds of passwords, nginx has Basic only".to_owned(),
            ));
        }
        let Some(file) = &self.user_file else {
            return Err((None, "no AuthUserFile is said here".to_owned()));
        };
        let path = file.args.first().map_or("", String::as_str);
        if path.contains('$') || !path.starts_with('/') {
            return Err((Some(file), "write the whole path of the file".to_owned()));
        }
        let realm = self
            .realm
            .as_deref()
            .unwrap_or("Restricted")
            .replace('$', "");
        Ok(vec![
            format!("auth_basic {};", quoted(&realm)),
            format!("auth_basic_user_file {};", argument(path)),
        ])
    }

    fn of_2_2(&self, is_environment: &dyn Fn(&str) -> bool, notes: &mut Vec<Note>) -> Access {
        let allow = from(&self.allow, is_environment, notes, Kind::NotTranslated);
        let deny = from(&self.deny, is_environment, notes, Kind::Unsafe);
        let mut lines = Vec::new();
        let allowed: Vec<String> = allow
            .networks
            .iter()
            .map(|it| format!("allow {it};"))
            .collect();
        let denied: Vec<String> = deny
            .networks
            .iter()
            .map(|it| format!("deny {it};"))
            .collect();
        let mut refused = Vec::new();
        if self.allows_first {
            // Refusals count more, and what is not allowed is refused.
            if deny.is_all || !allow.is_all && allow.networks.is_empty() {
                return Access::Closed;
            }
            refused = deny
                .environment
                .iter()
                .map(|it| format!("${}", environment(it)))
                .collect();
            lines.extend(denied);
            if !allow.is_all {
                lines.extend(allowed);
                lines.push("deny all;".to_owned());
            }
        } else {
            if allow.is_all {
                return Access::Open;
            }
            if deny.is_all && allowed.is_empty() {
                return Access::Closed;
            }
            if !deny.is_all && allowed.is_empty() {
                refused = deny
                    .environment
                    .iter()
                    .map(|it| format!("${}", environment(it)))
                    .collect();
            } else if !deny.environment.is_empty() && !deny.is_all {
                let lines = self.deny.iter();
                notes.extend(lines.map(|it| {
                    Note::of(it, "env= beside addresses that are allowed", Kind::Unsafe)
                }));
            }
            if deny.is_all {
                lines.extend(allowed);
                lines.push("deny all;".to_owned());
            } else if !denied.is_empty() {
                lines.extend(allowed);
                lines.extend(denied);
            }
        }
        Access::Limited(Limits {
            addresses: lines,
            refused,
            ..Limits::default()
        })
    }

    fn of_2_4(
        &self,
        is_environment: &dyn Fn(&str) -> bool,
        notes: &mut Vec<Note>,
        user: &mut bool,
    ) -> Access {
        let asked = any(&self.require, is_environment);
        let is_strange = !asked.strange.is_empty();
        notes.extend(asked.strange);
        if asked.is_granted && !is_strange && asked.parts == 0 {
            return Access::Open;
        }
        let has_list = asked.user || !asked.ips.is_empty();
        let narrows = has_list || !asked.refused.is_empty() || !asked.not_ips.is_empty();
        if asked.is_denied || !narrows || is_strange && !has_list {
            return Access::Closed;
        }
        *user = asked.user;
        let mut addresses: Vec<String> = asked
            .not_ips
            .iter()
            .map(|it| format!("deny {it};"))
            .collect();
        if !asked.ips.is_empty() {
            addresses.extend(asked.ips.iter().map(|it| format!("allow {it};")));
            addresses.push("deny all;".to_owned());
        }
        Access::Limited(Limits {
            addresses,
            refused: asked.refused,
            is_any: asked.user && !asked.ips.is_empty() && asked.parts < 2,
            password: Vec::new(),
        })
    }
}

fn argument(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-".contains(it);
    if text.chars().all(is_plain) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// What stands behind `Allow from` or `Deny from`.
#[derive(Default)]
struct From {
    is_all: bool,
    networks: Vec<String>,
    environment: Vec<String>,
}

fn from(
    lines: &[Item],
    is_environment: &dyn Fn(&str) -> bool,
    notes: &mut Vec<Note>,
    kind: Kind,
) -> From {
    let mut from = From::default();
    for item in lines {
        for word in item.args.iter().skip(1) {
            let lower = word.to_ascii_lowercase();
            let env = lower.strip_prefix("env=").map(|_| &word[4..]);
            match (network(&lower), env) {
                _ if lower == "all" => from.is_all = true,
                (Some(network), _) => from.networks.push(network),
                (None, Some(name)) if is_environment(name) && kind == Kind::Unsafe => {
                    from.environment.push(name.to_owned());
                }
                (None, Some(_)) => notes.push(Note::of(
                    item,
                    "no line that was translated sets this variable",
                    kind,
                )),
                (None, None) => {
                    notes.push(Note::of(
                        item,
                        "names of hosts are not looked up; write addresses",
                        kind,
                    ));
                }
            }
        }
    }
    from
}

/// What lines ask of which one must hold.
fn any(lines: &[Item], is_environment: &dyn Fn(&str) -> bool) -> Asked {
    let mut asked = Asked::default();
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
        return Asked {
            is_granted: true,
            ..Asked::default()
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
fn all(lines: &[Item], is_environment: &dyn Fn(&str) -> bool) -> Asked {
    let mut asked = Asked::default();
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

fn none(lines: &[Item], is_environment: &dyn Fn(&str) -> bool) -> Asked {
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
        return Asked {
            strange,
            is_denied: true,
            ..Asked::default()
        };
    }
    Asked {
        not_ips: inner.ips,
        parts: 1,
        ..Asked::default()
    }
}

fn strange(item: &Item, why: &str) -> Note {
    Note::of(item, &format!("{why}; this is closed"), Kind::Unsafe)
}

fn leaf(item: &Item, is_environment: &dyn Fn(&str) -> bool) -> Asked {
    let lower = item.all_lower();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let (is_negated, words) = match &lower[..] {
        ["not", words @ ..] => (true, words),
        words => (false, words),
    };
    let mut asked = Asked {
        parts: 1,
        ..Asked::default()
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
