//! Lowers `health_check` and the `match` blocks that it refers to.

use nginx_conf::{Diagnostic, Directive as Written, Word, did_you_mean};

use super::Lowering;
use super::level::Level;
use super::values::{bytes, lower_bytes, parameter, seconds, to_u32};
use crate::check::Node;
use crate::model::*;

const PARAMETERS: &str =
    "interval jitter fails passes uri mandatory persistent match port keepalive_time";

impl Lowering<'_> {
    /// The `match` blocks; checks refer to them by name.
    pub fn match_blocks(&mut self, http: &Level<'_>) {
        for node in http.own("match") {
            let name = node.arg(0);
            let mut known = self.declared.matches.iter();
            if known.any(|known| known.name == name.text) {
                self.error(name.span, format!("duplicate match \"{name}\""));
                continue;
            }
            let mut rules = MatchRules {
                name: name.text.clone(),
                ..MatchRules::default()
            };
            for entry in node.entries() {
                self.match_entry(entry, &mut rules);
            }
            self.declared.matches.push(rules);
        }
    }

    fn match_entry(&mut self, entry: &Written, rules: &mut MatchRules) {
        match entry.name.text.as_str() {
            "status" => rules.status.extend(self.status_rule(entry)),
            "header" => rules.headers.extend(self.header_rule(entry)),
            "body" => rules.bodies.extend(self.body_rule(entry)),
            "require" => {
                if entry.args.is_empty() {
                    self.no_such_form(entry, "require $VARIABLE ...;");
                }
                for word in &entry.args {
                    let value = self.template(word);
                    rules.require.push(value);
                }
            }
            name => {
                let known = ["status", "header", "body", "require"];
                let error = Diagnostic::error(
                    entry.name.span,
                    format!("unknown test \"{name}\" in \"match\""),
                );
                self.report(match did_you_mean(name, known) {
                    Some(meant) => error.hint(format!("did you mean \"{meant}\"?")),
                    None => error.label("expected status, header, body or require"),
                });
            }
        }
    }

    fn no_such_form(&mut self, entry: &Written, form: &str) {
        let error = Diagnostic::error(
            entry.head(),
            format!("invalid \"{}\" test in \"match\"", entry.name),
        );
        self.report(error.hint(format!("the form is: {form}")));
    }

    fn status_rule(&mut self, entry: &Written) -> Option<StatusRule> {
        let (negated, words) = match entry.args.split_first() {
            Some((first, rest)) if first.text == "!" => (true, rest),
            _ => (false, entry.args.as_slice()),
        };
        if words.is_empty() {
            self.no_such_form(entry, "status [!] CODE|CODE-CODE ...;");
            return None;
        }
        let ranges = words.iter().map(|word| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let first = self.status_of(word, first, 100, 599)?;
            let last = self.status_of(word, last, 100, 599)?;
            if first > last {
                self.invalid(word, "range", "expected the lower status first");
                return None;
            }
            Some((first, last))
        });
        let ranges = ranges.collect::<Option<Vec<_>>>()?;
        Some(StatusRule { negated, ranges })
    }

    fn header_rule(&mut self, entry: &Written) -> Option<HeaderRule> {
        let words: Vec<&Word> = entry.args.iter().collect();
        let (name, test) = match words.as_slice() {
            [name] if name.text != "!" => (name, HeaderTest::Present),
            [not, name] if not.text == "!" => (name, HeaderTest::Absent),
            [name, operator, value] => {
                let test = match operator.text.as_str() {
                    "=" => HeaderTest::Equal(bytes(value)),
                    "!=" => HeaderTest::Unequal(bytes(value)),
                    "~" => HeaderTest::Matches(self.pattern(value, value, false)?),
                    "~*" => HeaderTest::Matches(self.pattern(value, value, true)?),
                    "!~" => HeaderTest::Differs(self.pattern(value, value, false)?),
                    "!~*" => HeaderTest::Differs(self.pattern(value, value, true)?),
                    _ => {
                        self.invalid(operator, "operator", "expected =, !=, ~ or !~");
                        return None;
                    }
                };
                (name, test)
            }
            _ => {
                self.no_such_form(entry, "header [!] NAME; or header NAME =|!=|~|!~ VALUE;");
                return None;
            }
        };
        Some(HeaderRule {
            name: lower_bytes(name),
            test,
        })
    }

    fn body_rule(&mut self, entry: &Written) -> Option<BodyRule> {
        let [operator, value] = entry.args.as_slice() else {
            self.no_such_form(entry, "body ~ PATTERN; or body !~ PATTERN;");
            return None;
        };
        let (negated, caseless) = match operator.text.as_str() {
            "~" => (false, false),
            "~*" => (false, true),
            "!~" => (true, false),
            "!~*" => (true, true),
            _ => {
                self.invalid(operator, "operator", "expected ~ or !~");
                return None;
            }
        };
        let pattern = self.pattern(value, value, caseless)?;
        Some(BodyRule { negated, pattern })
    }

    /// The checks of a location whose settings are known by now.
    pub fn health_checks(&mut self, level: &Level<'_>, settings: &std::sync::Arc<Settings>) {
        for node in level.own("health_check").to_vec() {
            let Some(group) = settings.content.group() else {
                self.report(
                    Diagnostic::error(node.span(), "no upstream for \"health_check\"")
                        .label("this location has no *_pass to an upstream block")
                        .hint("name one in proxy_pass or fastcgi_pass of this location"),
                );
                continue;
            };
            if let Content::Pass(pass) = &settings.content
                && matches!(pass.protocol, Protocol::Memcached(_))
            {
                self.report(
                    Diagnostic::error(node.span(), "\"health_check\" cannot ask memcached")
                        .label("there is a memcached_pass in this location")
                        .hint("let `max_fails` and `fail_timeout` watch memcached's servers"),
                );
                continue;
            }
            if settings.content.is_https() {
                self.report(
                    Diagnostic::error(node.span(), "\"health_check\" over https is not supported")
                        .label("checks are sent over plain connections")
                        .hint("put it into a location whose proxy_pass begins with http://; port= names another port"),
                );
                continue;
            }
            let mut check = HealthCheck {
                group,
                settings: settings.clone(),
                interval: seconds(5),
                jitter: seconds(0),
                fails: 1,
                passes: 1,
                uri: bytes("/"),
                mandatory: false,
                persistent: false,
                matching: None,
                port: None,
                keepalive_time: None,
            };
            for word in node.args() {
                self.check_parameter(word, &mut check);
            }
            self.check_is_sound(node, &check);
            self.declared.health_checks.push(check);
        }
    }

    fn check_is_sound(&mut self, node: &Node<'_>, check: &HealthCheck) {
        if check.persistent && !check.mandatory {
            self.refuse(
                node.span(),
                "\"persistent\" requires \"mandatory\"",
                "without \"mandatory\" every server starts as healthy",
            );
        }
        if check.interval.is_zero() {
            self.refuse(
                node.span(),
                "invalid interval \"0\"",
                "expected a time above 0",
            );
        }
    }

    fn check_parameter(&mut self, word: &Word, check: &mut HealthCheck) {
        if let Some(text) = parameter(word, "interval") {
            check.interval = self.duration_in(word, text).unwrap_or(check.interval);
        } else if let Some(text) = parameter(word, "jitter") {
            check.jitter = self.duration_in(word, text).unwrap_or(check.jitter);
        } else if let Some(text) = parameter(word, "fails") {
            check.fails = self.count_in(word, text, "fails");
        } else if let Some(text) = parameter(word, "passes") {
            check.passes = self.count_in(word, text, "passes");
        } else if let Some(text) = parameter(word, "uri") {
            if text.starts_with('/') && !text.contains([' ', '$']) {
                check.uri = bytes(text);
            } else {
                self.invalid(word, "uri", "expected a path that begins with /");
            }
        } else if let Some(text) = parameter(word, "port") {
            match text.parse::<u16>() {
                Ok(port) if port > 0 => check.port = Some(port),
                _ => self.invalid(word, "port", "expected a number from 1 to 65535"),
            }
        } else if let Some(text) = parameter(word, "keepalive_time") {
            check.keepalive_time = self.duration_in(word, text);
        } else if let Some(text) = parameter(word, "match") {
            check.matching = self.match_named(word, text);
        } else if let Some(text) = parameter(word, "type") {
            if text != "http" {
                self.unsupported_parameter(word);
            }
        } else {
            match word.text.as_str() {
                "mandatory" => check.mandatory = true,
                "persistent" => check.persistent = true,
                text if text.starts_with("grpc_") => self.unsupported_parameter(word),
                _ => self.unknown_parameter(word, word, "health_check", PARAMETERS),
            }
        }
    }

    fn count_in(&mut self, word: &Word, text: &str, name: &str) -> u32 {
        match self.number_in(word, text).map(to_u32) {
            Some(0) => {
                self.invalid(word, name, "expected a number above 0");
                1
            }
            Some(count) => count,
            None => 1,
        }
    }

    fn match_named(&mut self, word: &Word, name: &str) -> Option<MatchId> {
        if let Some(index) = self
            .declared
            .matches
            .iter()
            .position(|known| known.name == name)
        {
            return Some(MatchId(index));
        }
        let names: Vec<&str> = self
            .declared
            .matches
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        let meant = did_you_mean(name, names).map(str::to_owned);
        let error = Diagnostic::error(word.span, format!("match \"{name}\" not found"));
        self.report(match meant {
            Some(meant) => error.hint(format!("did you mean \"match={meant}\"?")),
            None => error
                .label("no match block of this name")
                .hint(format!("write match {name} {{ status 200; }} in http")),
        });
        None
    }
}
