//! The lines of mod_rewrite as values: conditions, rules and their flags.

use htaccess::item::{Item, Place};

/// A `RewriteCond`.
#[derive(Clone, Debug)]
pub struct Condition {
    pub place: Place,
    pub text: String,
    pub subject: String,
    /// Without its `!`.
    pub pattern: String,
    pub is_negated: bool,
    pub is_caseless: bool,
    /// The flag `OR`: it or the next one.
    pub has_alternative: bool,
}

/// A `RewriteRule` with the conditions before it.
#[derive(Clone, Debug)]
pub struct Rule {
    pub item: Item,
    pub conditions: Vec<Condition>,
    /// Without its `!`.
    pub pattern: String,
    pub is_negated: bool,
    pub target: String,
    pub flags: Flags,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `-`, or another path.
    Internal,
    /// To another address, with this status.
    Redirect(u16),
    Refuse(u16),
    /// The flag `P`.
    Proxy,
}

/// The flags of a rule.
#[derive(Clone, Debug)]
pub struct Flags {
    pub action: Action,
    pub is_last: bool,
    pub is_chained: bool,
    pub is_caseless: bool,
    pub appends_query: bool,
    pub drops_query: bool,
    pub is_not_escaped: bool,
    /// Rules that are left out where this one fits.
    pub skips: usize,
    /// Names and values of the environment.
    pub environment: Vec<(String, String)>,
    /// Flags that mean nothing here.
    pub unknown: Vec<String>,
}

impl Condition {
    /// `None` where arguments are missing.
    pub fn of(item: &Item) -> Option<Condition> {
        let [subject, pattern, flags @ ..] = &item.args[..] else {
            return None;
        };
        let flags = flags.concat().to_ascii_lowercase();
        let has = |names: &[&str]| crate::patterns::has_flag(&flags, names);
        let (is_negated, pattern) = without_not(pattern);
        Some(Condition {
            place: item.place.clone(),
            text: item.text.clone(),
            subject: subject.clone(),
            pattern,
            is_negated,
            is_caseless: has(&["nc", "nocase"]),
            has_alternative: has(&["or", "ornext"]),
        })
    }
}

impl Rule {
    /// `None` where arguments are missing.
    pub fn of(item: &Item, conditions: Vec<Condition>) -> Option<Rule> {
        let [pattern, target, flags @ ..] = &item.args[..] else {
            return None;
        };
        let (is_negated, pattern) = without_not(pattern);
        let mut flags = Flags::of(&flags.concat());
        let is_address = target.contains("://") && flags.action == Action::Internal;
        if is_address {
            flags.action = Action::Redirect(302);
        }
        if conditions.last().is_some_and(|it| it.has_alternative) {
            // Apache takes it for one that holds.
            flags.unknown.push("OR without a next condition".to_owned());
        }
        Some(Rule {
            item: item.clone(),
            conditions,
            pattern,
            is_negated,
            target: target.clone(),
            flags,
        })
    }

    /// It leaves the path as it is.
    pub fn is_without_target(&self) -> bool {
        self.target == "-"
    }
}

fn without_not(pattern: &str) -> (bool, String) {
    match pattern.strip_prefix('!') {
        Some(pattern) => (true, pattern.to_owned()),
        None => (false, pattern.to_owned()),
    }
}

impl Flags {
    /// `text`: `[L,R=301]`
    fn of(text: &str) -> Flags {
        let mut flags = Flags {
            action: Action::Internal,
            is_last: false,
            is_chained: false,
            is_caseless: false,
            appends_query: false,
            drops_query: false,
            is_not_escaped: false,
            skips: 0,
            environment: Vec::new(),
            unknown: Vec::new(),
        };
        let text = text.trim().trim_start_matches('[').trim_end_matches(']');
        for flag in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            flags.add(flag);
        }
        flags
    }

    fn add(&mut self, flag: &str) {
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        match name.to_ascii_lowercase().as_str() {
            "l" | "last" | "end" | "pt" | "passthrough" => self.is_last = true,
            "c" | "chain" => self.is_chained = true,
            "nc" | "nocase" => self.is_caseless = true,
            "qsa" | "qsappend" => self.appends_query = true,
            "qsd" | "qsdiscard" => self.drops_query = true,
            "ne" | "noescape" => self.is_not_escaped = true,
            "f" | "forbidden" => self.action = Action::Refuse(403),
            "g" | "gone" => self.action = Action::Refuse(410),
            "p" | "proxy" => self.action = Action::Proxy,
            "r" | "redirect" => match status(value) {
                Some(code @ 300..=399) => self.action = Action::Redirect(code),
                Some(code) => self.action = Action::Refuse(code),
                None => self.unknown.push(flag.to_owned()),
            },
            "s" | "skip" => match value.parse() {
                Ok(count) => self.skips = count,
                Err(_) => self.unknown.push(flag.to_owned()),
            },
            "e" | "env" => {
                let (name, value) = value.split_once(':').unwrap_or((value, "1"));
                self.environment.push((name.to_owned(), value.to_owned()));
            }
            // What these say is so here anyway: requests inside of the server are not rewritten, and what is put into a
            // query is escaped.
            "ns" | "nosubreq" | "b" | "bnp" | "bne" | "dpi" | "discardpath" | "unsafeallow3f"
            | "unsafeprefixstat" => {}
            _ => self.unknown.push(flag.to_owned()),
        }
    }
}

/// The status of a redirect as Apache names it.
pub fn status(text: &str) -> Option<u16> {
    Some(match text.to_ascii_lowercase().as_str() {
        "" | "temp" => 302,
        "permanent" => 301,
        "seeother" => 303,
        "gone" => 410,
        digits => digits
            .parse()
            .ok()
            .filter(|code| (300..600).contains(code))?,
    })
}
