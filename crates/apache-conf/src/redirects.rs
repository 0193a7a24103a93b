//! `Redirect`, `RedirectMatch` and their relatives, as rules of mod_rewrite that say the same.

use crate::collect::{Collector, LineOutcome, Scope};
use crate::patterns::literal;
use crate::rewrite::{Rule, status};
use htaccess::item::Item;

/// One line.
pub fn redirect(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    if scope.names.is_some() {
        return LineOutcome::Not("redirects hold for whole folders only".to_owned());
    }
    let (code, rest) = match (item.name.as_str(), &item.args[..]) {
        ("redirectpermanent", rest) => (301, rest),
        ("redirecttemp", rest) => (302, rest),
        ("redirect" | "redirectmatch", [first, rest @ ..])
            if !first.starts_with('/') && !rest.is_empty() =>
        {
            match status(first) {
                Some(code) => (code, rest),
                None if item.name == "redirectmatch" => (302, &item.args[..]),
                None => return LineOutcome::Not(format!("{first} is no status of a redirect")),
            }
        }
        (_, rest) => (302, rest),
    };
    let is_match = item.name == "redirectmatch";
    let (from, to) = match rest {
        [from, to] if (300..400).contains(&code) => (from, Some(to.as_str())),
        [from] if code >= 400 => (from, None),
        [from, _] if code >= 400 => (from, None),
        _ => return LineOutcome::Not("a path and an address were expected".to_owned()),
    };
    if !is_match && !from.starts_with('/') {
        return LineOutcome::Not("it is no path".to_owned());
    }
    let rule = match (is_match, to) {
        (true, Some(to)) => rule(from, to, &format!("R={code},NE,L")),
        (true, None) => rule(from, "-", &format!("R={code},L")),
        (false, None) => rule(&path_pattern(from, ""), "-", &format!("R={code},L")),
        (false, Some(to)) => prefix(from, to, code),
    };
    match rule.and_then(|words| of_words(item, &words)) {
        Some(rule) => {
            let redirects = &mut collector.rules(scope).redirects;
            redirects.is_on = true;
            redirects.rules.push(rule);
            LineOutcome::Taken
        }
        None => LineOutcome::Not(
            "this address cannot be written; write a location with return".to_owned(),
        ),
    }
}

type Words = [String; 3];

fn rule(pattern: &str, target: &str, flags: &str) -> Option<Words> {
    Some([pattern.to_owned(), target.to_owned(), format!("[{flags}]")])
}

/// Paths that begin with this one, up to a slash.
fn path_pattern(from: &str, rest: &str) -> String {
    let path = from.strip_suffix('/').unwrap_or(from);
    let path = literal(path);
    match (from.ends_with('/'), rest) {
        (true, "") => format!("^{path}/"),
        (false, "") => format!("^{path}(?:/|$)"),
        (true, _) => format!("^{path}/(.*)$"),
        (false, _) => format!("^{path}(/.*)?$"),
    }
}

fn prefix(from: &str, to: &str, code: u16) -> Option<Words> {
    if to.contains(['$', '%']) && to.contains('$') {
        return None;
    }
    // A `$` before a digit would be a capture, and a `%{` a variable.
    let to = to.replace('\\', "\\\\").replace("%{", "\\%{");
    let is_address = ["/", "http://", "https://"]
        .iter()
        .any(|it| to.starts_with(it));
    if !is_address {
        return None;
    }
    if from == "/" && to.contains("://") && to.ends_with('/') {
        return rule(
            "^(.*)$",
            &format!("{}$1", to.trim_end_matches('/')),
            &format!("R={code},NE,L"),
        );
    }
    rule(
        &path_pattern(from, "rest"),
        &format!("{}$1", escape_numbers(&to)),
        &format!("R={code},NE,L"),
    )
}

/// A `%` before a digit is no capture of a condition here.
fn escape_numbers(text: &str) -> String {
    let mut escaped = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '%' && letters.peek().is_some_and(char::is_ascii_digit) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

fn of_words(item: &Item, words: &Words) -> Option<Rule> {
    let mut rule = Rule::of(
        &Item {
            args: words.to_vec(),
            ..item.clone()
        },
        Vec::new(),
    )?;
    rule.item = item.clone();
    Some(rule)
}
