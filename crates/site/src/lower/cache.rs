//! Lowers cache zones (`*_cache_path`) and the cache rules of a level (`*_cache*`, `cache_*`),
//! the same for each protocol.
//!
//! Warns where a line would let visitors see each other's pages and is therefore not obeyed.

use std::path::Path;
use std::time::Duration;

use nginx_conf::{Diagnostic, Word};
use shared_request::NameSet;

use super::Lowering;
use super::cache_purge::PurgeDirective;
use super::exchange::{DirectivePrefix, USE_STALE};
use super::file_copy::is_on_nearest;
use super::level::Level;
use super::template::has_variables;
use super::values::{bytes, parameter, seconds, to_u32, to_usize};
use crate::check::Node;
use crate::directives::PREFIXES;
use crate::directives::constants::*;
use crate::model::*;

/// How many maps of maps are followed.
pub const MAX_MAP_DEPTH: usize = 8;

/// Statuses of `*_cache_valid TIME` without codes.
const VALID_STATUSES: [u16; 3] = [200, 301, 302];

/// Copies of private pages kept for one session, where `copies=` is not given.
const PRIVATE_COPIES: usize = 16;

/// How long a request waits for the disk, where `disk_timeout=` is not given: PHP may be slower.
const DISK_TIMEOUT: Duration = Duration::from_millis(50);

/// Free space kept on the file system of a zone without `min_free=`.
const MIN_FREE_BYTES: u64 = 512 << 20;

const DATABASE_SERVER: &str = "database server";

const ZONE_PARAMETERS: &str =
    "keys_zone memory max_size inactive min_free disk disk_timeout levels use_temp_path";

/// Bytes of one session's private pages, where `size=` is not given.
const PRIVATE_BYTES: u64 = 1 << 20;

impl Lowering<'_> {
    pub fn cache_zones(&mut self, level: &Level<'_>) {
        for prefix in PREFIXES {
            for node in level.own(&format!("{prefix}_cache_path")) {
                let Some(zone) = self.cache_zone(node) else {
                    continue;
                };
                let mut known = self.declared.cache_zones.iter();
                if known.any(|known| known.name == zone.name) {
                    self.error(node.span(), format!("duplicate zone \"{}\"", zone.name));
                    continue;
                }
                self.declared.cache_zones.push(zone);
            }
        }
    }

    fn cache_zone(&mut self, node: &Node<'_>) -> Option<CacheZone> {
        let path = self.own_files.cache.join(&node.arg(0).text);
        let mut name = None;
        let (mut memory_bytes, mut max_size_bytes) = (None, None);
        let (mut min_free_bytes, mut disk_timeout) = (MIN_FREE_BYTES, DISK_TIMEOUT);
        let mut is_on_disk = true;
        let mut inactive = seconds(600);
        for word in node.args().iter().skip(1) {
            let (parameter, text) = word.split_once('=').unwrap_or((word, ""));
            match parameter {
                "keys_zone" => {
                    name = text.split_once(':').map(|(name, _)| name.to_owned());
                    match text.split_once(':') {
                        Some((name, size)) if !name.is_empty() => {
                            self.size_in(word, size);
                        }
                        _ => {
                            self.invalid(word, "keys zone", "expected keys_zone=NAME:SIZE");
                            return None;
                        }
                    }
                }
                "memory" => memory_bytes = self.size_in(word, text),
                "max_size" => max_size_bytes = self.size_in(word, text),
                "inactive" => inactive = self.duration_in(word, text).unwrap_or(inactive),
                "min_free" => min_free_bytes = self.size_in(word, text).unwrap_or(min_free_bytes),
                "disk" => match text {
                    "on" | "off" => is_on_disk = text == "on",
                    _ => self.invalid(word, "disk", "expected disk=on or disk=off"),
                },
                "disk_timeout" => {
                    disk_timeout = self.duration_in(word, text).unwrap_or(disk_timeout);
                }
                // They are about one file for each response, which does not exist here.
                "levels" | "use_temp_path" | "manager_files" | "manager_sleep"
                | "manager_threshold" | "loader_files" | "loader_sleep" | "loader_threshold"
                | "purger" | "purger_files" | "purger_sleep" | "purger_threshold" => {}
                _ => self.unknown_parameter(word, parameter, node.name(), ZONE_PARAMETERS),
            }
        }
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            let message = format!("\"{}\" must have \"keys_zone\" parameter", node.name());
            self.refuse(node.span(), message, "expected keys_zone=NAME:SIZE");
            return None;
        };
        let is_on_tmpfs = is_on_tmpfs(&path);
        if memory_bytes.is_none() && is_on_tmpfs {
            // The `max_size` of a path in memory limits the memory of the cache.
            memory_bytes = max_size_bytes;
        }
        let disk = (is_on_disk && !is_on_tmpfs).then(|| CacheDisk {
            folder: path.join(folder_name(&name)),
            max_bytes: max_size_bytes,
            min_free_bytes,
            timeout: disk_timeout,
        });
        Some(CacheZone {
            name,
            path,
            memory_bytes,
            inactive,
            disk,
        })
    }

    /// The rules of a level, if it has a cache. With `is_handled`, requests are passed on at this
    /// level, so that warnings are given here.
    pub fn cache_rules(
        &mut self,
        level: &Level<'_>,
        protocol: &DirectivePrefix,
        exchange: &Exchange,
        purge: &PurgeDirective,
        is_handled: bool,
    ) -> Option<CacheRules> {
        let name = |rest: &str| protocol.name(rest);
        let zone = self.cache_choice(level, protocol);
        let use_stale = self.flags(level, &name("_cache_use_stale"), USE_STALE, true);
        let mut rules = CacheRules {
            zone: CacheZoneChoice::Variable(Template::default()),
            key: self
                .optional_template(level, &name("_cache_key"))
                .unwrap_or_else(|| default_key(protocol)),
            valid: self.valid_rules(level, &name("_cache_valid")),
            methods: self.cache_methods(level, &name("_cache_methods")),
            min_uses: to_u32(self.value(level, CACHE_MIN_USES.of(protocol.prefix))),
            bypass: self.templates(level, &name("_cache_bypass")),
            no_cache: self.templates(level, &name("_no_cache")),
            use_stale,
            lock: self.value(level, CACHE_LOCK.of(protocol.prefix)),
            lock_timeout: self.value(level, CACHE_LOCK_TIMEOUT.of(protocol.prefix)),
            lock_age: self.value(level, CACHE_LOCK_AGE.of(protocol.prefix)),
            background_update: self.value(level, CACHE_BACKGROUND_UPDATE.of(protocol.prefix)),
            revalidation: self.revalidation(level, &name("_cache_revalidate")),
            max_range_offset: self.given(level, CACHE_MAX_RANGE_OFFSET.of(protocol.prefix)),
            convert_head: self.value(level, CACHE_CONVERT_HEAD.of(protocol.prefix)),
            purge: Vec::new(),
            purges_everything: false,
            read_your_writes: self
                .value(level, CACHE_READ_YOUR_WRITES)
                .filter(|time| !time.is_zero()),
            private: self.private_rule(level),
            ignored_arguments: name_set(&names(level, "cache_ignore_args")),
            ignored_cookies: name_set(&names(level, "cache_ignore_cookies")),
            cookies_in_key: Vec::new(),
            shared: None,
            tags: super::cache_tags::tag_rules(level),
            stores_set_cookie: self.value(level, CACHE_STORE_SET_COOKIE),
            stores_authorized: self.value(level, CACHE_STORE_AUTHORIZED),
            queue_stale: self.value(level, CACHE_QUEUE_STALE).map(to_usize),
            heuristic: self.value(level, CACHE_HEURISTIC),
            refill: self.value(level, CACHE_REFILL),
            shares_pages: self.shares_pages(level),
            learn: self.learn(level),
            max_valid: self.max_valid(level),
            stale: self.stale(level),
            lines: self.rule_lines(level, protocol),
        };
        match purge {
            PurgeDirective::None => {}
            PurgeDirective::Conditions(conditions) => rules.purge.clone_from(conditions),
            PurgeDirective::Everything(conditions) => {
                rules.purge.clone_from(conditions);
                rules.purges_everything = true;
            }
            PurgeDirective::Handler { zone, key } => {
                rules.zone = CacheZoneChoice::Zone(*zone);
                rules.key = key.clone();
                rules.purge = vec![Template::literal("1")];
                return Some(rules);
            }
        }
        rules.zone = zone?;
        rules.shared = self.shared_rules(level, &rules, level.find(&name("_cache_key")).is_some());
        rules.cookies_in_key = self.cookies_in_key(&rules.key);
        self.forbid_post_without_body_in_key(level, protocol, &mut rules, is_handled);
        self.keep_bypassed_from_others(level, protocol, &mut rules, is_handled);
        if is_handled && !rules.purge.is_empty() {
            self.warn_of_purges_that_find_nothing(level, protocol, &rules);
        }
        if is_handled {
            self.warn_of_shared_rules_without_effect(level, &rules);
            self.warn_of_ignored_fields(level, protocol, exchange, &rules);
        }
        Some(rules)
    }

    fn cache_choice(
        &mut self,
        level: &Level<'_>,
        protocol: &DirectivePrefix,
    ) -> Option<CacheZoneChoice> {
        let node = level.find(&protocol.name("_cache"))?;
        let word = node.arg(0);
        if word.text == "off" || is_on_nearest(level, protocol, "_store") {
            return None;
        }
        if has_variables(word) {
            return Some(CacheZoneChoice::Variable(self.template(word)));
        }
        let by = protocol.name("_cache_path");
        self.cache_zone_named(word, &by).map(CacheZoneChoice::Zone)
    }

    pub fn cache_zone_named(&mut self, word: &Word, by: &str) -> Option<CacheZoneId> {
        let names: Vec<String> = self
            .declared
            .cache_zones
            .iter()
            .map(|zone| zone.name.clone())
            .collect();
        self.zone_index(word, word, &names, by).map(CacheZoneId)
    }

    /// Warns of a line that would switch off the protection of visitors from each other.
    fn warn_of_ignored_fields(
        &mut self,
        level: &Level<'_>,
        protocol: &DirectivePrefix,
        exchange: &Exchange,
        rules: &CacheRules,
    ) {
        let nodes = level.all(&protocol.name("_ignore_headers")).to_vec();
        let words: Vec<&Word> = nodes.iter().flat_map(|node| node.args()).collect();
        let named = |name: &str| words.iter().find(|word| word.eq_ignore_ascii_case(name));
        let ignored = &exchange.ignored_fields;
        if let Some(word) = named("set-cookie").filter(|_| ignored.set_cookie)
            && level.find("cache_store_set_cookie").is_none()
            && self.warned.insert(word.span)
        {
            self.report(
                Diagnostic::warning(word.span, "responses that set a cookie are not stored despite this line")
                    .label("nginx would store the cookie of one visitor and send it to everybody")
                    .hint("if no page here depends on the visitor, write cache_store_set_cookie on; the response is then stored without the cookie"),
            );
        }
        if let Some(word) = named("cache-control").filter(|_| ignored.cache_control)
            && rules.shared.is_none()
            && self.warned.insert(word.span)
        {
            self.report(
                Diagnostic::warning(word.span, "private and no-store still count for visitors whose cookies are not in the cache key")
                    .label("nginx would store such a page and show it to everybody; WordPress 6.1 sends neither to those who are logged in")
                    .hint("write cache_shared on; requests with personal cookies then bypass the cache"),
            );
        }
    }

    /// Responses to POST are stored only if the key contains the body.
    fn forbid_post_without_body_in_key(
        &mut self,
        level: &Level<'_>,
        protocol: &DirectivePrefix,
        rules: &mut CacheRules,
        is_handled: bool,
    ) {
        let is_body_in_key = rules.shared.is_some()
            || self.contains_variable(&rules.key, Builtin::RequestBody, MAX_MAP_DEPTH);
        if !rules.methods.post || is_body_in_key {
            return;
        }
        rules.methods.post = false;
        let nodes = level.all(&protocol.name("_cache_methods")).to_vec();
        let mut words = nodes.iter().flat_map(|node| node.args());
        if let Some(word) = words.find(|word| word.eq_ignore_ascii_case("POST"))
            && is_handled
            && self.warned.insert(word.span)
        {
            let key = protocol.name("_cache_key");
            self.report(
                Diagnostic::warning(word.span, "responses to POST are not stored despite this line")
                    .label("the request body is not in the cache key: everybody would get the answer to one visitor's body")
                    .hint(format!("add $request_body to {key}")),
            );
        }
    }

    /// Does the text contain this variable, directly or through maps?
    fn contains_variable(&self, text: &Template, wanted: Builtin, depth: usize) -> bool {
        text.parts.iter().any(|part| match part {
            Part::Variable(Variable::Builtin(builtin)) => *builtin == wanted,
            Part::Variable(Variable::Map(id)) => depth.checked_sub(1).is_some_and(|depth| {
                let map = self.declared.maps.get(id.0);
                map.is_some_and(|map| self.contains_variable(&map.source, wanted, depth))
            }),
            _ => false,
        })
    }

    /// Warns about keys under which a purge cannot find the responses that GET and HEAD have
    /// stored.
    fn warn_of_purges_that_find_nothing(
        &mut self,
        level: &Level<'_>,
        protocol: &DirectivePrefix,
        rules: &CacheRules,
    ) {
        let Some(node) = level.find(&protocol.name("_cache_key")) else {
            return;
        };
        let why = if rules.purges_everything || rules.shared.is_some() {
            return;
        } else if self.contains_variable(&rules.key, Builtin::Request, MAX_MAP_DEPTH) {
            "$request contains the method, and a purge has another method; write $request_uri instead"
        } else if self.contains_variable(&rules.key, Builtin::RequestBody, MAX_MAP_DEPTH)
            && rules.methods.post
        {
            // A purge does not have the bodies that are in the keys of POST.
            "a purge has no $request_body: responses to POST stay until they are stale"
        } else if rules.key.parts.iter().any(|part| match part {
            Part::Variable(Variable::Slot(slot)) => self.variables.is_set_from_method(*slot),
            _ => false,
        }) {
            "a variable in it is set from $request_method, and a purge has another method; write $request_method itself"
        } else {
            return;
        };
        let span = node.arg(0).span;
        if self.warned.insert(span) {
            let message = "a purge cannot find all responses stored under this key";
            self.report(Diagnostic::warning(span, message).label(why));
        }
    }

    fn valid_rules(&mut self, level: &Level<'_>, name: &str) -> Vec<ValidRule> {
        let mut rules = Vec::new();
        for node in level.all(name).to_vec() {
            let Some((time, codes)) = node.args().split_last() else {
                continue;
            };
            let Some(lifetime) = self.duration_of(time) else {
                continue;
            };
            let statuses = match codes {
                [] => VALID_STATUSES.to_vec(),
                codes if codes.iter().any(|code| code.text == "any") => Vec::new(),
                codes => {
                    let mut statuses = Vec::with_capacity(codes.len());
                    for word in codes {
                        statuses.extend(self.status_of(word, word, 100, 599));
                    }
                    if statuses.is_empty() {
                        continue;
                    }
                    statuses
                }
            };
            rules.push(ValidRule { statuses, lifetime });
        }
        rules
    }

    fn cache_methods(&mut self, level: &Level<'_>, name: &str) -> CacheMethods {
        let mut methods = CacheMethods::default();
        for word in level.all(name).to_vec().iter().flat_map(|node| node.args()) {
            match word.to_ascii_uppercase().as_str() {
                "GET" | "HEAD" => {}
                "POST" => methods.post = true,
                _ => self.unknown_parameter(word, word, name, "GET HEAD POST"),
            }
        }
        methods
    }

    fn revalidation(&mut self, level: &Level<'_>, name: &str) -> Revalidation {
        match level.word(name).and_then(|word| self.flag_of(word)) {
            None => Revalidation::BeyondDoubt,
            Some(true) => Revalidation::On,
            Some(false) => Revalidation::Off,
        }
    }

    fn private_rule(&mut self, level: &Level<'_>) -> Option<PrivateRule> {
        let node = level.find("cache_private")?;
        if node.args().len() == 1 && node.arg(0).text == "off" {
            return None;
        }
        let mut cookies = Vec::new();
        let mut rule = PrivateRule {
            cookies: NameSet::default(),
            copies: PRIVATE_COPIES,
            size_bytes: PRIVATE_BYTES,
        };
        for word in node.args() {
            if let Some(text) = parameter(word, "copies") {
                rule.copies = self.number_in(word, text).map_or(PRIVATE_COPIES, to_usize);
            } else if let Some(text) = parameter(word, "size") {
                rule.size_bytes = self.size_in(word, text).unwrap_or(PRIVATE_BYTES);
            } else if word.contains('=') {
                self.unknown_parameter(word, word, "cache_private", "copies size");
            } else {
                cookies.push(bytes(word));
            }
        }
        if cookies.is_empty() {
            self.refuse(
                node.span(),
                "\"cache_private\" names no cookie",
                "expected the names of the cookies that identify a session",
            );
            return None;
        }
        rule.cookies = name_set(&cookies);
        Some(rule)
    }

    fn learn(&mut self, level: &Level<'_>) -> Option<LearnRules> {
        let most = self.value(level, CACHE_LEARN_MAX);
        let mode = self.value(level, CACHE_LEARN);
        let database = self.learn_database(level);
        let object_cache = level.find("cache_learn_object_cache");
        let object_cache = object_cache.and_then(|node| self.learned_server(node, "object cache"));
        let flags = [
            (CACHE_LEARN_REPLAY, database.is_some()),
            (CACHE_LEARN_BINARY_LOG, false),
        ];
        let [replays, follows] = flags.map(|(directive, default)| {
            let is_on = self.given(level, directive).unwrap_or(default);
            let name = directive.entry.name;
            if is_on
                && matches!(mode, Some(LearnMode::Auto | LearnMode::On))
                && database.is_none()
                && let Some(node) = level.find(name)
            {
                let message = format!("\"{name}\" has no account to ask by");
                let expected = "expected \"cache_learn_database SERVER USER [PASSWORD]\" beside it";
                self.refuse(node.span(), message, expected);
            }
            is_on
        });
        Some(LearnRules {
            mode: mode?,
            most,
            replays,
            follows,
            database,
            object_cache,
        })
    }

    fn learn_database(&mut self, level: &Level<'_>) -> Option<LearnDatabase> {
        let node = level.find("cache_learn_database")?;
        if node.args().len() == 1 && node.arg(0).text != "off" {
            let expected = "expected SERVER USER [PASSWORD], or off";
            self.invalid(node.arg(0), "database", expected);
            return None;
        }
        self.learned_server(node, DATABASE_SERVER)
    }

    /// A server with an account: SERVER [USER [PASSWORD]], or off.
    fn learned_server(&mut self, node: &Node<'_>, kind: &str) -> Option<LearnDatabase> {
        let server = node.arg(0);
        if server.text == "off" {
            return None;
        }
        let of_postgres = match kind {
            DATABASE_SERVER => server.strip_prefix("postgres:"),
            _ => None,
        };
        let address = match of_postgres {
            Some(rest) => rest.rsplit_once('/').map_or("", |(address, _)| address),
            None => &server.text,
        };
        let is_path = address.starts_with("unix:/");
        if !is_path && address.parse::<std::net::SocketAddr>().is_err() {
            let expected = match of_postgres {
                Some(_) => {
                    "expected postgres:unix:/PATH/DATABASE, or postgres:ADDRESS:PORT/DATABASE with an IP address"
                }
                None => "expected unix:/PATH, or an IP address with a port",
            };
            self.invalid(server, kind, expected);
            return None;
        }
        let argument = |at: usize| {
            node.args()
                .get(at)
                .map_or_else(String::new, |it| it.text.clone())
        };
        Some(LearnDatabase {
            server: server.text.clone(),
            user: argument(1),
            password: argument(2),
        })
    }

    fn max_valid(&mut self, level: &Level<'_>) -> Option<MaxValid> {
        let time = self.value(level, CACHE_MAX_VALID)?;
        let lifted = match level.find("cache_max_valid")?.args().get(1) {
            None => LiftedByPurges::Never,
            Some(word) => self.choice_of(
                word,
                &[
                    ("purges=seen", LiftedByPurges::OnceSeen),
                    ("purges=expected", LiftedByPurges::FromStart),
                ],
            )?,
        };
        Some(MaxValid { time, lifted })
    }

    fn stale(&mut self, level: &Level<'_>) -> Option<StaleTimes> {
        let node = level.unless_off("cache_stale")?;
        let while_renewed = self.duration_of(node.arg(0))?;
        let while_failing = match node.args().get(1) {
            Some(word) => self.duration_of(word)?,
            None => while_renewed,
        };
        if while_failing < while_renewed {
            let message = "the second time of \"cache_stale\" is shorter than the first";
            let label = "the time while the upstream fails must not be shorter than the time while the page is renewed";
            self.refuse(node.arg(1).span, message, label);
            return None;
        }
        Some(StaleTimes {
            while_renewed,
            while_failing,
        })
    }
}

/// The key without a `*_cache_key`: `$scheme$proxy_host$request_uri` for `proxy_pass`, as in
/// nginx, and `$scheme$http_host$request_uri` for `fastcgi_pass`, where nginx has no default.
/// The host is the one that the upstream sees.
fn default_key(protocol: &DirectivePrefix) -> Template {
    let host = match protocol.prefix {
        "proxy" => Variable::Builtin(Builtin::ProxyHost),
        _ => Variable::RequestField(bytes("host")),
    };
    let scheme = Variable::Builtin(Builtin::Scheme);
    let target = Variable::Builtin(Builtin::RequestUri);
    Template {
        parts: [scheme, host, target].map(Part::Variable).into(),
    }
}

pub(super) fn name_set(names: &[Box<[u8]>]) -> NameSet {
    NameSet::new(names.iter().map(|name| &**name))
}

/// The names of a list that `off` empties.
pub(super) fn names(level: &Level<'_>, name: &str) -> Vec<Box<[u8]>> {
    let words = level.all(name).iter().flat_map(|node| node.args());
    words
        .filter(|word| word.text != "off")
        .map(|word| bytes(word))
        .collect()
}

/// Is the path, or the part of it that exists, on a file system in memory?
/// The folder of a zone below its path. Two zones may have the same path.
fn folder_name(zone: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let name = zone
        .chars()
        .map(|letter| if is_plain(letter) { letter } else { '_' });
    format!("mayfly-{}", name.collect::<String>())
}

fn is_on_tmpfs(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .filter(|(mount, _)| path.starts_with(mount))
        // The path is on the longest mount point. The last of equal ones hides the others.
        .max_by_key(|(mount, _)| mount.len())
        .is_some_and(|(_, kind)| kind == "tmpfs" || kind == "ramfs")
}
