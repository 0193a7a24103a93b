//! Lowers `cache_shared` and the directives that belong to it, and finds out which cookies a
//! cache key contains.

use std::sync::Arc;

use nginx_conf::{Diagnostic, Word};
use pcre2::bytes::{Regex, RegexBuilder};
use shared_request::{NameSet, Rules, UnknownCookies};

use super::Lowering;
use super::cache::{name_set, names};
use super::level::Level;
use crate::directives::constants::*;
use crate::model::*;

/// The cookies that name a visitor's group to LiteSpeed's cache.
const LITESPEED_COOKIES: &[u8] = b"_lscache_vary*";

/// How deep maps of maps are followed.
const MAX_MAP_DEPTH: usize = 8;

/// Directives that have no effect without `cache_shared on`.
const COMPANIONS: [&str; 9] = [
    "cache_crawler_valid",
    "cache_guest_sessions",
    "cache_key_cookies",
    "cache_not_found",
    "cache_personal_args",
    "cache_personal_cookies",
    "cache_personal_paths",
    "cache_trial_cookies",
    "cache_unknown_cookies",
];

impl Lowering<'_> {
    /// The rules for requests whose answers may be shared, where `cache_shared` is on.
    pub(super) fn shared_rules(
        &mut self,
        level: &Level<'_>,
        rules: &CacheRules,
        has_key: bool,
    ) -> Option<Box<SharedRules>> {
        let litespeed = self.value(level, CACHE_LITESPEED);
        if litespeed {
            self.warn_of_shared_off(level);
        } else if !self.value(level, CACHE_SHARED) {
            return None;
        }
        let (personal_arguments, personal_argument_patterns) =
            self.names_and_patterns(level, "cache_personal_args");
        let unknown_cookies = self.value(level, CACHE_UNKNOWN_COOKIES);
        let mut key_cookies = name_set(&names(level, "cache_key_cookies"));
        if let Some(private) = &rules.private {
            // Each session has its own copy, and the application needs the cookies.
            key_cookies = key_cookies.or(&private.cookies);
        }
        let mut personal_cookies = name_set(&names(level, "cache_personal_cookies"));
        if litespeed {
            personal_cookies = personal_cookies.or(&NameSet::new([LITESPEED_COOKIES]));
        }
        let guest_sessions = self.guest_sessions(
            level,
            litespeed,
            unknown_cookies,
            !personal_cookies.is_empty(),
        );
        Some(Box::new(SharedRules {
            request: Arc::new(Rules {
                personal_cookies,
                key_cookies,
                removed_cookies: rules.ignored_cookies.or(&NameSet::new([WRITER_COOKIE])),
                tried_cookies: name_set(&names(level, "cache_trial_cookies")),
                unknown_cookies,
                personal_arguments,
                personal_argument_patterns,
                removed_arguments: name_set(&names(level, "cache_ignore_args")),
                personal_paths: self.personal_paths(level),
            }),
            key: has_key.then(|| rules.key.clone()),
            crawler_lifetime: self.value(level, CACHE_CRAWLER_VALID),
            not_found: self.value(level, CACHE_NOT_FOUND),
            litespeed,
            guest_sessions,
        }))
    }

    fn guest_sessions(
        &mut self,
        level: &Level<'_>,
        litespeed: bool,
        unknown_cookies: UnknownCookies,
        names_personal: bool,
    ) -> GuestSessions {
        let wanted = self.value(level, CACHE_GUEST_SESSIONS);
        if wanted == GuestSessions::Off {
            return wanted;
        }
        let (label, hint) = match (litespeed, unknown_cookies) {
            (false, UnknownCookies::Bypass) => return wanted,
            // Sessions are among the cookies that make a request personal.
            (false, UnknownCookies::Remove) if names_personal => return wanted,
            (true, _) => (
                "cache_litespeed is on: the application says who may share a page",
                "remove this line",
            ),
            (false, UnknownCookies::Remove) => (
                "cache_unknown_cookies is \"remove\": a session would not be seen",
                "write cache_unknown_cookies bypass; or name the session in cache_personal_cookies",
            ),
        };
        if let Some(node) = level.find("cache_guest_sessions")
            && self.warned.insert(node.span())
        {
            let message = "\"cache_guest_sessions\" has no effect here";
            self.report(
                Diagnostic::warning(node.span(), message)
                    .label(label)
                    .hint(hint),
            );
        }
        GuestSessions::Off
    }

    fn warn_of_shared_off(&mut self, level: &Level<'_>) {
        if let Some(node) = level
            .find("cache_shared")
            .filter(|node| node.arg(0).text == "off")
            && self.warned.insert(node.span())
        {
            self.report(
                Diagnostic::warning(node.span(), "\"cache_shared off\" has no effect here")
                    .label("cache_litespeed is on, which needs it")
                    .hint("remove this line"),
            );
        }
    }

    /// `NAME TIME | off`, off by default.
    /// Plain words, and the patterns after `~` and `~*`.
    fn names_and_patterns(&mut self, level: &Level<'_>, name: &str) -> (NameSet, Vec<Regex>) {
        let nodes = level.all(name).to_vec();
        let words = nodes.iter().flat_map(|node| node.args());
        let (patterns, words): (Vec<&Word>, Vec<&Word>) =
            words.partition(|word| word.starts_with('~'));
        let words = words.iter().filter(|word| word.text != "off");
        let set = NameSet::new(words.map(|word| word.as_bytes()));
        let patterns = patterns
            .into_iter()
            .filter_map(|word| self.regex(word))
            .collect();
        (set, patterns)
    }

    fn regex(&mut self, word: &Word) -> Option<Regex> {
        let text = word.strip_prefix('~')?;
        let (text, caseless) = match text.strip_prefix('*') {
            Some(text) => (text, true),
            None => (text, false),
        };
        Some(self.pattern(word, text, caseless)?.regex().clone())
    }

    fn personal_paths(&mut self, level: &Level<'_>) -> Vec<Regex> {
        let nodes = level.all("cache_personal_paths").to_vec();
        let mut found = Vec::new();
        for word in nodes.iter().flat_map(|node| node.args()) {
            if word.text == "off" {
                continue;
            }
            if word.starts_with('~') {
                found.extend(self.regex(word));
                continue;
            }
            if !word.starts_with('/') {
                self.invalid(
                    word,
                    "path",
                    "expected a path that begins with /, or ~ and a pattern",
                );
                continue;
            }
            let path = word.trim_end_matches('/');
            let text = format!("^\\Q{}\\E(?:/|$)", path.replace("\\E", ""));
            match RegexBuilder::new().jit_if_available(true).build(&text) {
                Ok(regex) => found.push(regex),
                Err(_) => self.invalid(word, "path", "expected a path that begins with /"),
            }
        }
        found
    }

    /// Warns about directives that have no effect because `cache_shared` is off.
    pub(super) fn warn_of_shared_rules_without_effect(
        &mut self,
        level: &Level<'_>,
        rules: &CacheRules,
    ) {
        if rules.shared.is_some() {
            return;
        }
        for node in COMPANIONS.iter().filter_map(|name| level.find(name)) {
            if node.arg(0).text != "off" && self.warned.insert(node.span()) {
                let message = format!("\"{}\" has no effect here", node.name());
                self.report(
                    Diagnostic::warning(node.span(), message)
                        .label("it belongs to cache_shared, which is off")
                        .hint("write cache_shared on;"),
                );
            }
        }
    }

    /// Parts of a key that are made from cookies, through maps as well.
    pub(super) fn cookies_in_key(&self, key: &Template) -> Vec<CookieInKey> {
        self.cookies_in(key, MAX_MAP_DEPTH)
    }

    fn cookies_in(&self, text: &Template, depth: usize) -> Vec<CookieInKey> {
        let variables = text.parts.iter().filter_map(|part| match part {
            Part::Variable(variable) => Some(variable),
            Part::Literal(_) => None,
        });
        variables
            .flat_map(|variable| match variable {
                Variable::RequestField(name) if **name == *b"cookie" => vec![CookieInKey::All],
                Variable::Cookie(name) => vec![CookieInKey::Named(name.clone())],
                Variable::Slot(slot) => vec![CookieInKey::Slot(*slot)],
                Variable::Map(id) => self.cookies_in_map(*id, depth),
                // `set` may have written a value that depends on no cookie.
                Variable::SetOver(..) => Vec::new(),
                _ => Vec::new(),
            })
            .collect()
    }

    fn cookies_in_map(&self, id: MapId, depth: usize) -> Vec<CookieInKey> {
        let Some((map, depth)) = self.declared.maps.get(id.0).zip(depth.checked_sub(1)) else {
            return Vec::new();
        };
        let sources = self.cookies_in(&map.source, depth);
        match sources.iter().all(|it| matches!(it, CookieInKey::Named(_))) {
            true => sources,
            false => vec![CookieInKey::Map(id)],
        }
    }
}
