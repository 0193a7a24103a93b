//! The redirects of a `.htaccess`: `Redirect`, `RedirectMatch`, and `RewriteRule` with the flag `R`, as lines of
//! `rewrite`. What `RewriteCond` asks of the path becomes a part of the pattern, and what it asks of files and
//! fields becomes an `if` in front. A redirect that cannot be said in these terms is not made, and has no effect.

use super::conf_text::{Conf, literal_pattern, quoted};
use apache_conf::patterns::{count_captures, has_back_reference, has_flag, rule_pattern};

/// Redirects of one file; each is matched for every request.
pub(super) const MAX_REDIRECTS: usize = 200;
/// The numbers of captures end with `$9`.
const MAX_CAPTURES: usize = 9;

/// What is refused before any rule (`<FilesMatch "^\.ht">`), and a `?` in a path, which would begin a query.
const NOT_REWRITTEN: &str = r"(?!.*(?:/\.ht|\?))";
/// A path with a backslash is not redirected: browsers take `/\` for the `//` before the name of another site.
const NO_BACKSLASH: &str = r"(?![^\\]*\\)";

/// One redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtaccessRedirect {
    /// What `if` asks: where one of these holds, the redirect is not made.
    unless: Vec<String>,
    pub(super) pattern: String,
    target: String,
    is_permanent: bool,
}

impl HtaccessRedirect {
    /// Of `Redirect` or `RedirectMatch` and their relatives; `None` where it is another directive.
    pub(super) fn of_alias(words: &[String]) -> Option<HtaccessRedirect> {
        let lower = |at: usize| words.get(at).map(|it| it.to_ascii_lowercase());
        let name = lower(0)?;
        let (is_permanent, rest) = match (name.as_str(), lower(1)?.as_str()) {
            ("redirectpermanent", _) => (true, words.get(1..)?),
            ("redirecttemp", _) => (false, words.get(1..)?),
            ("redirect" | "redirectmatch", "301" | "permanent") => (true, words.get(2..)?),
            ("redirect" | "redirectmatch", "302" | "temp") => (false, words.get(2..)?),
            ("redirect" | "redirectmatch", _) => (false, words.get(1..)?),
            _ => return None,
        };
        let [from, to] = rest else {
            return None;
        };
        let (pattern, target) = match name == "redirectmatch" {
            true => {
                let target = target(to, &Captures::of_pattern(from)?)?;
                (format!("{NO_BACKSLASH}(?:{from})"), target)
            }
            false if from.starts_with('/') && !to.contains(['?', '$']) => {
                let rest = if from.ends_with('/') {
                    ".*"
                } else {
                    "(?:/.*)?"
                };
                let path = literal_pattern(from.as_bytes());
                let target = target(to, &Captures::default())?;
                (format!("(?s)^{NO_BACKSLASH}{path}({rest})$"), target + "$1")
            }
            false => return None,
        };
        is_place(&target).then_some(HtaccessRedirect {
            unless: Vec::new(),
            pattern,
            target,
            is_permanent,
        })
    }

    /// Of a `RewriteRule` with what `RewriteCond` asked before it, and `passed`: the patterns at which earlier rules
    /// end the rules.
    pub(super) fn of_rewrite_rule(
        conditions: &[Vec<String>],
        (pattern, to, flags): (&str, &str, &str),
        passed: &[String],
    ) -> Option<HtaccessRedirect> {
        let is_permanent = has_flag(flags, &["r=301", "r=permanent"]);
        let is_redirect = is_permanent || has_flag(flags, &["r", "r=302", "r=temp", "redirect"]);
        let jumps = ["c", "chain", "n", "next", "s", "skip", "proxy", "p"];
        if !is_redirect || has_flag(flags, &jumps) || pattern.starts_with('!') {
            return None;
        }
        let asked = AskedConditions::of(conditions)?;
        let own = count_captures(pattern)?;
        let captures = Captures {
            before: asked.captures,
            own,
            of_conditions: Some(asked.captures),
        };
        // A number in the pattern means one of its own captures.
        let counts_own =
            pattern.contains('\\') && asked.captures > 0 && has_back_reference(pattern);
        if counts_own {
            return None;
        }
        let mut target = target(to, &captures)?;
        if target.contains('?') && !has_flag(flags, &["qsa", "qsappend"]) {
            target.push('?');
        }
        if !is_place(&target) && !to.starts_with('%') {
            target.insert(0, '/');
        }
        let caseless = if has_flag(flags, &["nc", "nocase"]) {
            "i"
        } else {
            ""
        };
        let ends: String = passed.iter().map(|it| format!("(?!{it})")).collect();
        Some(HtaccessRedirect {
            unless: asked.unless,
            pattern: format!(
                "(?s)^{NO_BACKSLASH}{NOT_REWRITTEN}{ends}{}{}",
                asked.path,
                rule_pattern("/", pattern, caseless)
            ),
            target,
            is_permanent,
        })
    }

    /// Writes it into a server.
    pub(super) fn write(&self, conf: &mut Conf) {
        let how = if self.is_permanent {
            "permanent"
        } else {
            "redirect"
        };
        let (pattern, target) = (quoted(&self.pattern), quoted(&self.target));
        let rewrite = format!("rewrite {pattern} {target} {how};");
        if self.unless.is_empty() {
            return conf.line(&rewrite);
        }
        conf.line("set $no_redirect \"\";");
        for condition in &self.unless {
            conf.line(&format!("if ({condition}) {{ set $no_redirect 1; }}"));
        }
        conf.open("if ($no_redirect = \"\")");
        conf.line(&rewrite);
        conf.close();
    }
}

/// Is it a path of this site, or an address?
fn is_place(target: &str) -> bool {
    ["/", "http://", "https://"]
        .iter()
        .any(|begin| target.starts_with(begin))
}

/// Which captures a target may name.
#[derive(Default)]
struct Captures {
    /// Those of the conditions, which stand before those of the rule.
    before: usize,
    own: usize,
    /// What `%1` may name; `None` where a `%` is a letter.
    of_conditions: Option<usize>,
}

impl Captures {
    fn of_pattern(pattern: &str) -> Option<Captures> {
        let own = count_captures(pattern)?;
        Some(Captures {
            own,
            ..Captures::default()
        })
    }
}

/// The target in the terms of `rewrite`.
fn target(text: &str, captures: &Captures) -> Option<String> {
    let mut target = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let (before, most) = match (letter, captures.of_conditions) {
            ('$', _) => (captures.before, captures.own),
            ('%', Some(most)) => (0, most),
            _ if letter.is_ascii_alphanumeric() || "/_.~-:?&=+,;@%".contains(letter) => {
                target.push(letter);
                continue;
            }
            _ => return None,
        };
        if letter == '%' && letters.as_str().starts_with("{HTTP_HOST}") {
            letters.nth("{HTTP_HOST}".len() - 1);
            target.push_str("$http_host");
            continue;
        }
        let number = letters.next()?.to_digit(10)? as usize;
        if number == 0 || number > most || before + number > MAX_CAPTURES {
            return None;
        }
        target.push_str(&format!("${}", before + number));
        // A digit behind it would be read as a part of the number.
        if letters
            .as_str()
            .starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
        {
            return None;
        }
    }
    Some(target)
}

/// What the conditions before a rule ask.
#[derive(Default)]
struct AskedConditions {
    /// Of the path, as lookaheads.
    path: String,
    /// The captures in them.
    captures: usize,
    unless: Vec<String>,
}

impl AskedConditions {
    fn of(conditions: &[Vec<String>]) -> Option<AskedConditions> {
        let mut asked = AskedConditions::default();
        let mut alternatives: Vec<(String, usize)> = Vec::new();
        for words in conditions {
            let condition = PathCondition::of(words);
            let Some(condition) = condition else {
                if !alternatives.is_empty() {
                    return None;
                }
                asked.unless.push(unless(words)?);
                continue;
            };
            alternatives.push((condition.look, condition.captures));
            if condition.has_alternative {
                continue;
            }
            let captures = alternatives.iter().map(|it| it.1).max().unwrap_or(0);
            if captures > 0 && asked.captures > 0 {
                // `%1` means the last of them, which a number here would not.
                return None;
            }
            asked.captures += captures;
            let looks: Vec<String> = alternatives.drain(..).map(|it| it.0).collect();
            asked.path.push_str(&format!("(?|{})", looks.join("|")));
        }
        alternatives.is_empty().then_some(asked)
    }
}

/// A condition on the path.
struct PathCondition {
    look: String,
    captures: usize,
    /// The flag `OR`: it or the next one.
    has_alternative: bool,
}

impl PathCondition {
    fn of(words: &[String]) -> Option<PathCondition> {
        let [_, subject, pattern, flags @ ..] = words else {
            return None;
        };
        if !subject.eq_ignore_ascii_case("%{REQUEST_URI}") {
            return None;
        }
        let flags = flags
            .first()
            .map_or("", String::as_str)
            .to_ascii_lowercase();
        let (look, pattern) = match pattern.strip_prefix('!') {
            Some(pattern) => ("?!", pattern),
            None => ("?=", pattern.as_str()),
        };
        let pattern = match pattern.strip_prefix('=') {
            Some(literal) => format!("^{}$", literal_pattern(literal.as_bytes())),
            None if pattern.starts_with(['-', '<', '>']) => return None,
            None => pattern.to_owned(),
        };
        let caseless = if has_flag(&flags, &["nc", "nocase"]) {
            "i"
        } else {
            ""
        };
        let counted = count_captures(&pattern)?;
        Some(PathCondition {
            look: format!("({look}.*?(?{caseless}:{pattern}))"),
            captures: if look == "?=" { counted } else { 0 },
            has_alternative: has_flag(&flags, &["or", "ornext"]),
        })
    }
}

/// What `RewriteCond` can ask of, beside the path, and the variable that has it.
const SUBJECTS: [(&str, &str); 7] = [
    ("%{HTTP_USER_AGENT}", "$http_user_agent"),
    ("%{HTTP_REFERER}", "$http_referer"),
    ("%{HTTP_COOKIE}", "$http_cookie"),
    ("%{HTTP_HOST}", "$http_host"),
    ("%{QUERY_STRING}", "$args"),
    ("%{REQUEST_METHOD}", "$request_method"),
    ("%{REMOTE_ADDR}", "$remote_addr"),
];

/// A condition on a file or a field, turned round for `if`.
fn unless(words: &[String]) -> Option<String> {
    let [_, subject, pattern, flags @ ..] = words else {
        return None;
    };
    let flags = flags
        .first()
        .map_or("", String::as_str)
        .to_ascii_lowercase();
    if has_flag(&flags, &["or", "ornext"]) {
        return None;
    }
    if subject.eq_ignore_ascii_case("%{REQUEST_FILENAME}") {
        return match pattern.as_str() {
            "!-f" => Some("-f $request_filename".to_owned()),
            "!-d" => Some("-d $request_filename".to_owned()),
            "-f" => Some("!-f $request_filename".to_owned()),
            "-d" => Some("!-d $request_filename".to_owned()),
            _ => None,
        };
    }
    let known = |it: &&(&str, &str)| it.0.eq_ignore_ascii_case(subject);
    let (_, variable) = SUBJECTS.iter().find(known)?;
    let (compares, pattern) = match pattern.strip_prefix('!') {
        Some(pattern) => ("~", pattern),
        None => ("!~", pattern.as_str()),
    };
    if pattern.starts_with(['-', '<', '>', '=']) || pattern.is_empty() {
        return None;
    }
    let caseless = if has_flag(&flags, &["nc", "nocase"]) {
        "*"
    } else {
        ""
    };
    Some(format!(
        "{variable} {compares}{caseless} {}",
        quoted(pattern)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_ascii_whitespace().map(str::to_owned).collect()
    }

    /// The lines that the redirect of `rule` after these conditions becomes; an empty text without a redirect.
    fn written(conditions: &[&str], rule: &str) -> String {
        let conditions: Vec<Vec<String>> = conditions.iter().map(|it| words(it)).collect();
        let rule = words(rule);
        let redirect = match rule[0].as_str() {
            "RewriteRule" => HtaccessRedirect::of_rewrite_rule(
                &conditions,
                (&rule[1], &rule[2], &rule[3].to_ascii_lowercase()),
                &[],
            ),
            _ => HtaccessRedirect::of_alias(&rule),
        };
        let mut conf = Conf::default();
        if let Some(redirect) = redirect {
            redirect.write(&mut conf);
        }
        conf.text.trim_end().to_owned()
    }

    #[test]
    fn redirects_become_lines_of_rewrite() {
        for (rule, expected) in [
            (
                "Redirect /a /b",
                r#"rewrite "(?s)^(?![^\\\\]*\\\\)/a((?:/.*)?)$" "/b$1" redirect;"#,
            ),
            (
                "Redirect permanent /a/ https://x.test/b/",
                r#"rewrite "(?s)^(?![^\\\\]*\\\\)/a/(.*)$" "https://x.test/b/$1" permanent;"#,
            ),
            (
                "RedirectPermanent /a /b%20c",
                r#"rewrite "(?s)^(?![^\\\\]*\\\\)/a((?:/.*)?)$" "/b%20c$1" permanent;"#,
            ),
            (
                "RedirectMatch 302 ^/a/(.*)$ /b/$1",
                r#"rewrite "(?![^\\\\]*\\\\)(?:^/a/(.*)$)" "/b/$1" redirect;"#,
            ),
            (
                "RewriteRule ^a/(.*)$ /b/$1 [R=301,L]",
                r#"rewrite "(?s)^(?![^\\\\]*\\\\)(?!.*(?:/\\.ht|\\?))/.*?(?:(?<=^/)a/(.*)$)" "/b/$1" permanent;"#,
            ),
            (
                "RewriteRule ^a$ b?c=d [R,NC]",
                r#"rewrite "(?s)^(?![^\\\\]*\\\\)(?!.*(?:/\\.ht|\\?))/.*?(?i:(?<=^/)a$)" "/b?c=d?" redirect;"#,
            ),
            (
                "RewriteRule ^a$ /b?c=d [R,QSA]",
                r#"rewrite "(?s)^(?![^\\\\]*\\\\)(?!.*(?:/\\.ht|\\?))/.*?(?:(?<=^/)a$)" "/b?c=d" redirect;"#,
            ),
        ] {
            assert_eq!(written(&[], rule), expected, "{rule}");
        }
    }

    #[test]
    fn conditions_stand_in_the_pattern_or_before_it() {
        let laravel = [
            "RewriteCond %{REQUEST_FILENAME} !-d",
            "RewriteCond %{REQUEST_URI} (.+)/$",
        ];
        let lines = written(&laravel, "RewriteRule ^ %1 [L,R=301]");
        let expected = "set $no_redirect \"\";\nif (-d $request_filename) { set $no_redirect 1; }\n\
            if ($no_redirect = \"\") {\n    \
            rewrite \"(?s)^(?![^\\\\\\\\]*\\\\\\\\)(?!.*(?:/\\\\.ht|\\\\?))(?|(?=.*?(?:(.+)/$)))/.*?(?:(?<=^/))\" \"$1\" permanent;\n}";
        assert_eq!(lines, expected);
        let either = [
            r"RewriteCond %{REQUEST_URI} ^(.*)/(a\.php) [OR]",
            r"RewriteCond %{REQUEST_URI} ^(.*)/(b\.php)",
            "RewriteCond %{REQUEST_URI} !core",
        ];
        let lines = written(&either, "RewriteRule ^ %1/core/%2 [L,QSA,R=301]");
        assert!(lines.ends_with("\"$1/core/$2\" permanent;"), "{lines}");
        let lines = written(
            &["RewriteCond %{HTTP_HOST} !^www [NC]"],
            "RewriteRule ^(.*)$ http://www.x.test/$1 [R]",
        );
        assert!(lines.contains("if ($http_host ~* \"^www\")"), "{lines}");
    }

    #[test]
    fn what_cannot_be_said_is_no_redirect() {
        for (conditions, rule) in [
            (&[][..], "Redirect 307 /a /b"),
            (&[], "Redirect a /b"),
            (&[], "RedirectMatch ^/(?<x>a) /b$1"),
            (&[], "RedirectMatch ^/a /b$1"),
            (&[], "RedirectMatch ^/(a) b$1"),
            (&[], "RewriteRule ^a$ /b [L]"),
            (&[], "RewriteRule ^a$ /b [R=308]"),
            (&[], "RewriteRule ^a$ /b [R,C]"),
            (&[], "RewriteRule !^a$ /b [R]"),
            (&[], "RewriteRule ^a$ /b%1 [R]"),
            (&[], "RewriteRule ^a$ %{REQUEST_URI}x [R]"),
            (
                &["RewriteCond %{HTTPS} off"],
                "RewriteRule ^ https://%{HTTP_HOST}/ [R]",
            ),
            (
                &["RewriteCond %{HTTP_HOST} a [OR]"],
                "RewriteRule ^a$ /b [R]",
            ),
            (
                &["RewriteCond %{REQUEST_URI} a [OR]"],
                "RewriteRule ^a$ /b [R]",
            ),
            (
                &[
                    "RewriteCond %{REQUEST_URI} (a)",
                    "RewriteCond %{REQUEST_URI} (b)",
                ],
                "RewriteRule ^a$ /b [R]",
            ),
        ] {
            assert_eq!(written(conditions, rule), "", "{conditions:?} {rule}");
        }
    }
}
