//! Who may have what: `Order`, `Allow` and `Deny` of Apache 2.2, and `Require` of 2.4, as lines of `allow`, `deny`,
//! `auth_basic` and `return 403`. What cannot be said so is closed.

use nginx_conf::text::quoted;

use crate::note::{Kind, Note};
use crate::patterns::network;
use crate::require;
use crate::rewrite::environment;
use htaccess::item::Item;

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
        let mut lines = self.refused_lines();
        lines.extend(self.locking_lines());
        lines
    }

    /// Each `if`.
    pub fn refused_lines(&self) -> Vec<String> {
        let lines = self.refused.iter();
        lines
            .map(|it| format!("if ({it}) {{ return 403; }}"))
            .collect()
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

    /// These lines where `outer` holds around them. Those of 2.2 and those of 2.4 each take the place of their own kind only.
    pub fn within(mut self, outer: &AccessLines) -> AccessLines {
        if self.allow.is_empty() && self.deny.is_empty() && !self.has_order {
            self.allow.clone_from(&outer.allow);
            self.deny.clone_from(&outer.deny);
            self.has_order = outer.has_order;
            self.allows_first = outer.allows_first;
        }
        if self.require.is_empty() {
            self.require.clone_from(&outer.require);
        }
        self.strange = self.strange.or_else(|| outer.strange.clone());
        self.with_password_of(outer)
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
        let asked = require::any(&self.require, is_environment);
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
struct AccessOrigins {
    is_all: bool,
    networks: Vec<String>,
    environment: Vec<String>,
}

fn from(
    lines: &[Item],
    is_environment: &dyn Fn(&str) -> bool,
    notes: &mut Vec<Note>,
    kind: Kind,
) -> AccessOrigins {
    let mut from = AccessOrigins::default();
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
