//! The `.htaccess` of the document root: what it refuses and redirects, as patterns and addresses for the
//! configuration, and which of its lines have no effect here. Of the files in folders below, what they refuse.
//!
//! Rules only refuse and redirect. PHP can write this file, so nothing in it opens what `serve` closes: an exception
//! lifts a refusal of the same file and no other.

use std::path::Path;

use super::closed_folders::{Closure, closure, read};
use super::conf_text::literal_pattern;
use super::redirects::{HtaccessRedirect, MAX_REDIRECTS};
use super::refused_queries::{MAX_QUERIES, RefusedQuery};
use apache_conf::lexer::{lines, words};
use apache_conf::patterns::{
    anchored, forbids, glob, has_flag, is_everything, network, rule_pattern,
};

/// Rules that refuse; each is matched for every request.
const MAX_REFUSED: usize = 200;
/// Addresses that are refused.
const MAX_ADDRESSES: usize = 1000;
/// A longer pattern than any rule that was written by hand.
const MAX_PATTERN_BYTES: usize = 2000;
/// Lines without an effect that are remembered.
const MAX_LINES: usize = 100;

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootRules {
    /// It closes the whole site.
    pub is_closed: bool,
    /// Patterns of paths that it refuses.
    pub refused: Vec<String>,
    /// Addresses and networks of clients that it refuses.
    pub denied: Vec<String>,
    /// Query strings that it refuses.
    pub refused_queries: Vec<RefusedQuery>,
    /// Where it sends clients to.
    pub redirects: Vec<HtaccessRedirect>,
    /// It leads folders without an index to the front controller as well.
    pub leads_folders: bool,
    /// Lines that have no effect here, with their numbers.
    pub without_effect: Vec<(usize, String)>,
}

/// Reads the file of a document root. `front_controller` answers for paths that are no files;
/// `is_pattern` says whether a pattern is one.
pub fn root_rules(
    document_root: &Path,
    front_controller: Option<&str>,
    is_pattern: &dyn Fn(&str) -> bool,
) -> RootRules {
    let file = document_root.join(".htaccess");
    match file.symlink_metadata() {
        Ok(_) => rules_of(&read(&file), "/", front_controller, is_pattern),
        Err(_) => RootRules::default(),
    }
}

/// The patterns of paths that the file of a folder refuses, which does not close it; `None` where one cannot be
/// said. `address`: the folder's, with a slash at both ends.
pub(super) fn refused_in_folder(
    text: &str,
    address: &[u8],
    is_pattern: &dyn Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let rules = rules_of(text, &literal_pattern(address), None, is_pattern);
    (!rules.is_closed).then_some(rules.refused)
}

/// `base`: a pattern of the path of the folder that the file is in.
fn rules_of(
    text: &str,
    base: &str,
    front_controller: Option<&str>,
    is_pattern: &dyn Fn(&str) -> bool,
) -> RootRules {
    let mut reader = Reader {
        rules: RootRules::default(),
        base,
        front_controller: front_controller.map(|it| it.trim_start_matches('/')),
        is_pattern,
        passed: Vec::new(),
        is_rewritten: false,
        sections: Vec::new(),
        names: Vec::new(),
        conditions: Vec::new(),
        rewrites: !text.lines().any(|line| {
            let line = line.to_ascii_lowercase();
            line.split_ascii_whitespace().eq(["rewriteengine", "off"])
        }),
    };
    for line in lines(text) {
        reader.line(line.number, &line.text);
    }
    let closure = closure(text);
    reader.rules.is_closed = closure == Some(Closure::Whole);
    reader.refuse_names(closure == Some(Closure::AllButSome));
    reader.rules
}

/// A block that the lines are in.
enum Section {
    /// It holds for all files.
    Everything,
    /// For files whose name fits the pattern; what the lines so far say of who may have them.
    Names { pattern: String, access: Access },
    /// What `serve` does by itself: it compresses, and it says how long files are fresh.
    OwnWork,
    /// It holds on a condition that is not known here.
    Unknown,
}

/// Who may have a file.
#[derive(Default)]
struct Access {
    is_denied: bool,
    is_granted: bool,
    /// `Order allow,deny`: who is not allowed is refused.
    is_allow_list: bool,
}

/// A block about names, in the order of the file.
struct NameRule {
    pattern: String,
    is_refused: bool,
}

struct Reader<'a> {
    rules: RootRules,
    base: &'a str,
    front_controller: Option<&'a str>,
    is_pattern: &'a dyn Fn(&str) -> bool,
    sections: Vec<Section>,
    names: Vec<NameRule>,
    /// The `RewriteCond` lines before the next `RewriteRule`.
    conditions: Vec<Vec<String>>,
    /// `RewriteEngine` is not off.
    rewrites: bool,
    /// Patterns of the paths at which a rule ends the rules.
    passed: Vec<String>,
    /// A rule before this one may have made another path of it.
    is_rewritten: bool,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, line: &str) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        if line.starts_with("</") {
            self.end_section();
            return;
        }
        let is_unseen = |it: &Section| matches!(it, Section::OwnWork | Section::Unknown);
        let is_unseen = self.sections.iter().any(is_unseen);
        if let Some(head) = line.strip_prefix('<') {
            let section = section(head.trim_end_matches('>').trim());
            if matches!(section, Section::Unknown) && !is_unseen {
                self.has_no_effect(number, line);
            }
            self.sections.push(section);
            return;
        }
        if is_unseen {
            return;
        }
        let words = words(line);
        let lower: Vec<String> = words.iter().map(|it| it.to_ascii_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let names = self.sections.iter_mut().rev().find_map(|it| match it {
            Section::Names { access, .. } => Some(access),
            _ => None,
        });
        let is_understood = match names {
            Some(access) => access.read(&lower),
            None => self.directive(&words, &lower),
        };
        if !is_understood {
            self.has_no_effect(number, line);
        }
    }

    fn end_section(&mut self) {
        let Some(Section::Names { pattern, access }) = self.sections.pop() else {
            return;
        };
        let is_refused = access.is_denied || access.is_allow_list && !access.is_granted;
        if is_refused || access.is_granted {
            self.names.push(NameRule {
                pattern,
                is_refused,
            });
        }
    }

    fn has_no_effect(&mut self, number: usize, line: &str) {
        if self.rules.without_effect.len() < MAX_LINES {
            self.rules.without_effect.push((number, line.to_owned()));
        }
    }

    /// Adds a pattern of refused paths; false where it cannot be one.
    fn refuse(&mut self, pattern: String) -> bool {
        let is_known = self.rules.refused.contains(&pattern);
        let has_room = self.rules.refused.len() < MAX_REFUSED;
        let is_usable = pattern.len() <= MAX_PATTERN_BYTES && (self.is_pattern)(&pattern);
        if is_usable && has_room && !is_known {
            self.rules.refused.push(pattern);
        }
        is_known || is_usable && has_room
    }

    /// A line that holds for all files. False: it has no effect here.
    fn directive(&mut self, words: &[String], lower: &[&str]) -> bool {
        match *lower {
            ["deny", "from", "all", ..] | ["require", "all", ..] | ["order" | "allow", ..] => true,
            ["deny", "from", ..] => self.deny(&lower[2..]),
            ["require", "not", "ip", ..] => self.deny(&lower[3..]),
            ["require", "not", ..] => false,
            // Passwords and addresses close the site: `closed_folders::closure` says so.
            [
                "require" | "satisfy" | "authtype" | "authname" | "authuserfile",
                ..,
            ] => true,
            ["rewritecond", ..] => {
                self.conditions.push(words.to_vec());
                true
            }
            ["rewriterule", ..] => self.rewrite_rule(words, lower),
            ["redirectmatch", "403" | "404" | "410" | "gone", _] => {
                is_everything(&words[2]) || self.refuse(format!("(?:{})", words[2]))
            }
            ["redirect", "403" | "404" | "410" | "gone", _] => {
                let end = if words[2].ends_with('/') {
                    ""
                } else {
                    r"(?:/|\z)"
                };
                let path = literal_pattern(words[2].as_bytes());
                self.refuse(format!("^{path}{end}"))
            }
            [
                "redirect" | "redirectmatch" | "redirectpermanent" | "redirecttemp",
                ..,
            ] => self.redirect(HtaccessRedirect::of_alias(words)),
            [
                "rewriteengine" | "rewritebase" | "fileetag" | "serversignature",
                ..,
            ] => true,
            ["options", ..] => lower[1..].iter().all(|it| {
                [
                    "indexes",
                    "multiviews",
                    "followsymlinks",
                    "symlinksifownermatch",
                ]
                .contains(&it.trim_start_matches(['-', '+']))
            }),
            ["directoryindex", ..] => lower[1..]
                .iter()
                .all(|name| ["index.php", "index.html"].contains(name)),
            ["fallbackresource", target] => self.is_front_controller(target),
            ["adddefaultcharset", "utf-8"] => true,
            _ => false,
        }
    }

    fn deny(&mut self, from: &[&str]) -> bool {
        let networks: Vec<Option<String>> = from.iter().map(|text| network(text)).collect();
        let are_known = networks.iter().all(Option::is_some);
        for network in networks.into_iter().flatten() {
            if self.rules.denied.len() >= MAX_ADDRESSES {
                return false;
            }
            self.rules.denied.push(network);
        }
        are_known
    }

    fn rewrite_rule(&mut self, words: &[String], lower: &[&str]) -> bool {
        let conditions = std::mem::take(&mut self.conditions);
        let [_, pattern, target, ..] = words else {
            return false;
        };
        let flags = lower.get(3).copied().unwrap_or_default();
        if !self.rewrites {
            return forbids(flags) || target == "-" || self.is_front_controller(target);
        }
        if !forbids(flags) {
            return self.other_rule(&conditions, (pattern, target, flags));
        }
        if conditions.is_empty() && is_everything(pattern) {
            return true;
        }
        let on_path: Option<String> = conditions.iter().map(|it| condition(it)).collect();
        let Some(on_path) = on_path else {
            let query = RefusedQuery::of(&conditions, pattern, self.is_pattern);
            let has_room = self.rules.refused_queries.len() < MAX_QUERIES;
            let query = query.filter(|_| has_room);
            let is_made = query.is_some();
            self.rules.refused_queries.extend(query);
            return is_made;
        };
        let caseless = match has_flag(flags, &["nc", "nocase"]) {
            true => "i",
            false => "",
        };
        let (is_negated, pattern) = match pattern.strip_prefix('!') {
            Some(pattern) => (true, pattern),
            None => (false, pattern.as_str()),
        };
        let pattern = rule_pattern(self.base, pattern, caseless);
        self.refuse(match is_negated {
            true => format!("(?s)^{on_path}(?!{pattern})"),
            false => format!("(?s)^{on_path}{pattern}"),
        })
    }

    /// A rule that refuses nothing.
    fn other_rule(
        &mut self,
        conditions: &[Vec<String>],
        (pattern, target, flags): (&str, &str, &str),
    ) -> bool {
        let ends = has_flag(flags, &["l", "last", "end"]);
        // Without a target a rule sets variables, or ends the rules.
        if target == "-" {
            let ends_some = ends && conditions.is_empty() && !pattern.starts_with('!');
            let passed = rule_pattern(self.base, pattern, "");
            match ends_some && (self.is_pattern)(&passed) {
                true => self.passed.push(passed),
                false => self.is_rewritten |= ends,
            }
            return true;
        }
        if self.is_front_controller(target) {
            let spares_folders = conditions
                .iter()
                .any(|it| it.iter().any(|word| word == "!-d"));
            self.rules.leads_folders |= is_everything(pattern) && !spares_folders;
            self.is_rewritten = true;
            return true;
        }
        let redirect =
            HtaccessRedirect::of_rewrite_rule(conditions, (pattern, target, flags), &self.passed);
        let asked = conditions.iter().filter_map(|it| it.get(2));
        let mut patterns = asked.map(|it| it.trim_start_matches('!'));
        let are_patterns = patterns.all(|it| it.starts_with('-') || (self.is_pattern)(it));
        let is_made = are_patterns && !self.is_rewritten && self.redirect(redirect);
        self.is_rewritten |= !is_made && !has_flag(flags, &["r=301", "r=302", "r"]);
        is_made
    }

    /// Adds a redirect. False: it cannot be written, or there are too many.
    fn redirect(&mut self, redirect: Option<HtaccessRedirect>) -> bool {
        let is_usable = |it: &HtaccessRedirect| {
            it.pattern.len() <= MAX_PATTERN_BYTES && (self.is_pattern)(&it.pattern)
        };
        let redirect = redirect.filter(is_usable);
        let has_room = self.rules.redirects.len() < MAX_REDIRECTS;
        let is_made = redirect.is_some() && has_room;
        self.rules.redirects.extend(redirect.filter(|_| has_room));
        is_made
    }

    /// Does a rule lead to the script that answers for these paths anyway?
    fn is_front_controller(&self, target: &str) -> bool {
        let path = target.split('?').next().unwrap_or_default();
        let path = path.trim_start_matches('/');
        match self.front_controller {
            Some("doku.php") => {
                ["doku.php", "lib/exe/fetch.php", "lib/exe/detail.php"].contains(&path)
            }
            Some(script) => path == script,
            None => false,
        }
    }

    /// Patterns for the files that blocks refuse. A later block may lift what an earlier one refuses.
    fn refuse_names(&mut self, are_all_refused: bool) {
        let names = std::mem::take(&mut self.names);
        let all = NameRule {
            pattern: String::new(),
            is_refused: true,
        };
        let begin = are_all_refused.then_some(&all);
        let rules: Vec<&NameRule> = begin.into_iter().chain(&names).collect();
        for (at, rule) in rules.iter().enumerate().filter(|(_, it)| it.is_refused) {
            let later = rules[at + 1..].iter().filter(|it| !it.is_refused);
            let lifted: String = later
                .map(|it| format!("(?![^/]*?(?:{}))", it.pattern))
                .collect();
            // The name is the last one of the path, or one of a script, which a path may follow.
            let name = r"(?<=/)(?=[^/]+/?\z|[^/]*\.ph[^/]*/)";
            let within = match self.base {
                "/" => String::new(),
                base => format!("(?s)^{base}.*?"),
            };
            let pattern = format!("{within}{name}{lifted}(?=[^/]*?(?:{}))", rule.pattern);
            if !self.refuse(pattern) {
                self.rules.is_closed = true;
            }
        }
    }
}

impl Access {
    /// A line of a block about files. False: it has no effect here.
    fn read(&mut self, words: &[&str]) -> bool {
        match *words {
            ["require", "all", "granted"] | ["allow", "from", "all", ..] => self.is_granted = true,
            ["order", order] if order.starts_with("allow,") => self.is_allow_list = true,
            [
                "order" | "allow" | "satisfy" | "authtype" | "authname" | "authuserfile",
                ..,
            ] => {}
            ["deny", "from", "all", ..] => self.is_denied = true,
            ["deny", ..] | ["require", "not" | "method", ..] => return false,
            ["require", ..] => self.is_denied = true,
            _ => return false,
        }
        true
    }
}

/// `head`: `Files "*.php"`
fn section(head: &str) -> Section {
    let (name, argument) = head.split_once([' ', '\t']).unwrap_or((head, ""));
    let argument = argument.trim();
    let is_regex = argument.strip_prefix('~').map(str::trim);
    let unquoted = |text: &str| text.trim_matches(['"', '\'']).to_owned();
    match name.to_ascii_lowercase().as_str() {
        "ifmodule" => match argument.to_ascii_lowercase().as_str() {
            "mod_deflate.c" | "mod_brotli.c" | "mod_expires.c" | "mod_mime.c" => Section::OwnWork,
            _ => Section::Everything,
        },
        "ifversion" | "ifdefine" | "requireall" | "requireany" => Section::Everything,
        "limit" if argument.to_ascii_lowercase().contains("get") => Section::Everything,
        "filesmatch" => names(&unquoted(is_regex.unwrap_or(argument))),
        "files" => match is_regex {
            Some(regex) => names(&unquoted(regex)),
            None if matches!(argument, "*" | "\"*\"") => Section::Everything,
            None => Section::Names {
                pattern: glob(&unquoted(argument)),
                access: Access::default(),
            },
        },
        _ => Section::Unknown,
    }
}

fn names(regex: &str) -> Section {
    match is_everything(regex) {
        true => Section::Everything,
        false => Section::Names {
            pattern: anchored(regex, "(?<=/)", r"(?=/|\z)", "[^/]"),
            access: Access::default(),
        },
    }
}

/// A condition on the path as a part of a pattern that begins at its first byte; `None` for others.
fn condition(words: &[String]) -> Option<String> {
    let [_, subject, pattern, flags @ ..] = words else {
        return None;
    };
    let flags = flags
        .first()
        .map_or(String::new(), |it| it.to_ascii_lowercase());
    let is_path = subject.eq_ignore_ascii_case("%{REQUEST_URI}");
    if !is_path || has_flag(&flags, &["or", "ornext"]) {
        return None;
    }
    let (look, pattern) = match pattern.strip_prefix('!') {
        Some(pattern) => ("?!", pattern),
        None => ("?=", pattern.as_str()),
    };
    // Comparisons and tests of files.
    if pattern.starts_with(['-', '<', '>', '=']) {
        return None;
    }
    let caseless = match has_flag(&flags, &["nc", "nocase"]) {
        true => "i",
        false => "",
    };
    Some(format!("({look}.*?(?{caseless}:{pattern}))"))
}

#[cfg(test)]
mod tests {
    use pcre2::bytes::Regex;

    use super::*;

    fn is_pattern(pattern: &str) -> bool {
        Regex::new(pattern).is_ok()
    }

    fn rules(text: &str) -> RootRules {
        rules_of(text, "/", Some("/index.php"), &is_pattern)
    }

    fn refuses(rules: &RootRules, path: &str) -> bool {
        let mut patterns = rules.refused.iter();
        patterns.any(|it| Regex::new(it).unwrap().is_match(path.as_bytes()).unwrap())
    }

    /// A text, paths that it refuses, and paths that it does not.
    type Case = (
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
    );

    const CASES: [Case; 16] = [
        (
            "<Files wp-config.php>\nOrder allow,deny\nDeny from all\n</Files>",
            &[
                "/wp-config.php",
                "/a/wp-config.php",
                "/wp-config.php/x",
                "/wp-config.php/",
            ],
            &[
                "/",
                "/my-wp-config.php",
                "/wp-config.php.html",
                "/wp-config-php",
            ],
        ),
        (
            "<FilesMatch \"\\.(sql|bak)$\">\nRequire all denied\n</FilesMatch>",
            &["/dump.sql", "/a/b.bak"],
            &["/dump.sqlite", "/a.sql.html"],
        ),
        (
            "<Files ~ \"^\\.ht\">\nRequire all denied\n</Files>",
            &["/.htpasswd", "/a/.htaccess"],
            &["/a.ht"],
        ),
        (
            "<Files \"*.[iI]n?\">\nDeny from all\n</Files>",
            &["/a.inc", "/a.Ini"],
            &["/a.in", "/a.inner"],
        ),
        (
            "<Files xmlrpc.php>\nOrder allow,deny\nAllow from 10.0.0.1\n</Files>",
            &["/xmlrpc.php"],
            &["/index.php"],
        ),
        (
            "<FilesMatch \"\\.php$\">\nDeny from all\n</FilesMatch>\n\
             <FilesMatch \"^(index|login)\\.php$\">\nAllow from all\n</FilesMatch>",
            &["/secret.php", "/secret.php/index.php", "/a/secret.php/x"],
            &["/index.php", "/login.php", "/index.php/a/b", "/a.css", "/"],
        ),
        (
            "Require all denied\n<FilesMatch \"\\.(css|png)$\">\nRequire all granted\n</FilesMatch>",
            &["/a.html", "/a/b", "/a.php", "/a.php/b.css", "/a.css.php"],
            &["/a.css", "/a/b.png"],
        ),
        (
            "RewriteEngine On\nRewriteRule ^(vendor|secret)/ - [F,L]",
            &["/vendor/a", "/secret/"],
            &["/vendors", "/a/vendor/", "/"],
        ),
        (
            "RewriteRule \\.INC$ - [NC,F]",
            &["/a.inc", "/b/c.INC"],
            &["/a.inc.html"],
        ),
        ("RewriteRule !^public/ - [F]", &["/a", "/"], &["/public/a"]),
        ("RewriteRule ^a+$ - [R=404,L]", &["/a", "/aaa"], &["/ab"]),
        (
            "RewriteCond %{REQUEST_URI} ^/uploads/ [NC]\nRewriteCond %{REQUEST_URI} !\\.jpg$\nRewriteRule . - [F]",
            &["/uploads/a.php", "/Uploads/a"],
            &["/uploads/a.jpg", "/a/uploads/b"],
        ),
        (
            "RedirectMatch 403 ^/private",
            &["/private", "/private/a"],
            &["/a/private"],
        ),
        (
            "Redirect 404 /old.d\nRedirect gone /x/",
            &["/old.d", "/old.d/a", "/x/a"],
            &["/old.dd", "/oldxd", "/x"],
        ),
        ("RewriteEngine off\nRewriteRule ^a - [F]", &[], &["/a"]),
        ("RewriteRule ^b \\\n- [F]", &["/b"], &["/a"]),
    ];

    #[test]
    fn rules_that_refuse_become_patterns() {
        for (text, refused, open) in CASES {
            let rules = rules(text);
            for path in refused {
                assert!(refuses(&rules, path), "{path} {rules:#?}");
            }
            for path in open {
                assert!(!refuses(&rules, path), "{path} {rules:#?}");
            }
            assert!(!rules.is_closed, "{text}");
            assert_eq!(rules.without_effect, [], "{text}");
        }
    }

    #[test]
    fn addresses_that_are_refused_are_networks() {
        let rules = rules(
            "Order allow,deny\nAllow from all\nDeny from 192.0.2.1 10.1. 2001:db8::/32 198.51.100.0/24\n\
             <RequireAll>\nRequire all granted\nRequire not ip 203.0.113.7\n</RequireAll>",
        );
        let denied = [
            "192.0.2.1",
            "10.1.0.0/16",
            "2001:db8::/32",
            "198.51.100.0/24",
            "203.0.113.7",
        ];
        assert_eq!(rules.denied, denied);
        assert_eq!((rules.is_closed, rules.without_effect), (false, vec![]));
    }

    #[test]
    fn a_site_that_is_closed_is_closed() {
        for text in [
            "Require all denied",
            "Order deny,allow\nDeny from all\nAllow from 127.0.0.1",
            "AuthType Basic\nAuthName x\nAuthUserFile /x\nRequire valid-user",
            "RewriteRule ^ - [F]",
            // A pattern that is none.
            "<FilesMatch \"(\">\nDeny from all\n</FilesMatch>",
        ] {
            assert!(rules(text).is_closed, "{text}");
        }
    }

    #[test]
    fn lines_without_an_effect_are_named_and_what_serve_does_by_itself_is_not() {
        let wordpress = "RewriteEngine On\nRewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]\n\
            RewriteBase /\nRewriteRule ^index\\.php$ - [L]\nRewriteCond %{REQUEST_FILENAME} !-f\n\
            RewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule . /index.php [L]\nOptions -Indexes\n\
            <IfModule mod_expires.c>\nExpiresActive On\n</IfModule>\n";
        assert_eq!(rules(wordpress), RootRules::default());
        let cases = [
            "Redirect 307 /old /new",
            "RewriteRule ^old$ /new [R=308,L]",
            "RedirectMatch ^/a(.*) b$1",
            "Deny from env=bad",
            "php_value memory_limit 1G",
            "RewriteRule ^a$ /other.php [L]",
        ];
        for case in cases {
            let text = format!("# comment\n{case}\n");
            assert_eq!(rules(&text).without_effect, [(2, case.to_owned())]);
        }
        let blocks = rules("<LimitExcept GET>\nDeny from all\n</LimitExcept>\nHeader set A b");
        let numbers: Vec<usize> = blocks.without_effect.iter().map(|it| it.0).collect();
        assert_eq!(numbers, [1, 4]);
        assert!(!rules(wordpress).leads_folders);
        let nextcloud = "RewriteCond %{REQUEST_FILENAME} !\\.css$\nRewriteRule . index.php [PT]";
        assert!(rules(nextcloud).leads_folders);
        let conditions = rules("RewriteCond %{REMOTE_HOST} x\nRewriteRule .* - [F]");
        assert_eq!(conditions.without_effect.len(), 1);
    }

    #[test]
    fn a_huge_file_has_bounded_rules() {
        let text: String = (0..5000)
            .map(|at| {
                format!(
                    "Redirect 403 /{at}\nDeny from 10.{}.{}.1\nHeader x\n",
                    at / 256,
                    at % 256
                )
            })
            .collect();
        let rules = rules(&text);
        assert_eq!(rules.refused.len(), MAX_REFUSED);
        assert_eq!(rules.denied.len(), MAX_ADDRESSES);
        assert_eq!(rules.without_effect.len(), MAX_LINES);
    }
}
