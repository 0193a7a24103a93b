//! The rules of a folder on the file that a path stands for.

use crate::paths::{escaped, scheme_bytes};
use crate::rewriting::{CapturedGroups, Condition, GroupForm, NextRule, Rewriting, Rule, expand};
use crate::round::Round;

/// How often `[N]` begins again.
const MAX_ROUNDS: usize = 100;
/// A longer path comes from rules that repeat.
const MAX_PATH_BYTES: usize = 16 << 10;

/// Cookies that rules set.
const MAX_COOKIES: usize = 50;

/// The outcome of the rules.
#[derive(Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// The path stays.
    Nothing,
    Refused(u16),
    Redirect {
        status: u16,
        location: Vec<u8>,
    },
    /// Another path of the site.
    Internal {
        path: Vec<u8>,
        args: Option<Vec<u8>>,
    },
}

/// The effects of rules beside the path.
#[derive(Debug, Default)]
pub struct SideEffects {
    /// No rules are run after these.
    pub is_end: bool,
    /// `[H]` and `[T]`: whether they name PHP.
    pub handler: Option<bool>,
    /// `[CO]`: values of `Set-Cookie`.
    pub cookies: Vec<Vec<u8>>,
}

/// Whether a rule holds.
enum RuleOutcome {
    No,
    /// The path stays.
    Matched,
    Changed,
    Refused(u16),
}

/// The path while rules change it.
struct Way<'w, 'a> {
    round: &'w mut Round<'a>,
    rewriting: &'w Rewriting,
    /// The file, or the path of an address, or a whole address.
    name: Vec<u8>,
    path_info: Vec<u8>,
    args: Option<Vec<u8>>,
    status: Option<u16>,
    captured: CapturedGroups,
}

/// Runs the rules.
pub fn rewrite(round: &mut Round<'_>, rewriting: &Rewriting) -> (Rewritten, SideEffects) {
    let mut effects = SideEffects::default();
    let (name, path_info) = (round.file.name.clone(), round.file.path_info.clone());
    let before = name.clone();
    let args = round.args.clone();
    let args_before = args.clone();
    let mut way = Way {
        round,
        rewriting,
        name,
        path_info,
        args,
        status: None,
        captured: CapturedGroups::default(),
    };
    let ran = way.run(&mut effects);
    way.round.file.name.clone_from(&before);
    let rewritten = match ran {
        Err(status) => Rewritten::Refused(status),
        Ok(None) => Rewritten::Nothing,
        Ok(Some(is_plain)) => way.end((&before, args_before.as_deref()), is_plain),
    };
    (rewritten, effects)
}

impl Way<'_, '_> {
    /// `Some`: the path is another one, and whether it is sent to clients as it is.
    fn run(&mut self, effects: &mut SideEffects) -> Result<Option<bool>, u16> {
        let mut changed = None;
        let mut rounds = 1;
        let rules = &self.rewriting.rules;
        let mut at = 0;
        while let Some(rule) = rules.get(at) {
            at += 1;
            let is_redirect = rule.flags.status.is_some_and(|it| (300..400).contains(&it));
            if self.round.is_lookup && (rule.flags.not_in_lookups || is_redirect) {
                continue;
            }
            match self.apply(rule, effects) {
                RuleOutcome::Refused(status) => return Err(status),
                RuleOutcome::No => {
                    let mut is_chained = rule.flags.is_chained;
                    while is_chained {
                        is_chained = rules.get(at).is_some_and(|it| it.flags.is_chained);
                        at += 1;
                    }
                    continue;
                }
                RuleOutcome::Matched => {}
                RuleOutcome::Changed => changed = Some(rule.flags.keeps_redirect),
            }
            if self.name.len() > MAX_PATH_BYTES {
                return Err(500);
            }
            match rule.flags.next {
                NextRule::Following => {}
                NextRule::Last => break,
                NextRule::End => {
                    effects.is_end = true;
                    break;
                }
                NextRule::Again => {
                    rounds += 1;
                    if rounds >= MAX_ROUNDS {
                        return Err(500);
                    }
                    at = 0;
                }
                NextRule::Skip(count) => at += count,
            }
        }
        Ok(changed)
    }

    /// Returns the text with which the patterns of rules are compared: the path below the folder.
    fn subject(&self) -> Vec<u8> {
        let whole = [&self.name[..], &self.path_info].concat();
        match whole.strip_prefix(&self.rewriting.folder[..]) {
            Some(below) => below.to_vec(),
            None => whole,
        }
    }

    fn apply(&mut self, rule: &Rule, effects: &mut SideEffects) -> RuleOutcome {
        let subject = self.subject();
        let Ok(groups) = rule.pattern.groups(&subject) else {
            return RuleOutcome::Refused(403);
        };
        if groups.is_some() == rule.is_negated {
            return RuleOutcome::No;
        }
        self.captured = CapturedGroups::default();
        self.captured.of_rule = groups.unwrap_or_default();
        self.round.file.name.clone_from(&self.name);
        self.round.args.clone_from(&self.args);
        match self.conditions(&rule.conditions) {
            Some(true) => {}
            Some(false) => return RuleOutcome::No,
            // It may be meant to keep visitors out.
            None => return RuleOutcome::Refused(403),
        }
        let mut form = GroupForm {
            is_escaped: rule.flags.escapes == Some(true),
            has_mark: false,
        };
        let stays = rule.output == "-";
        let output = expand(&rule.output, self.round, &self.captured, Some(&mut form));
        for (name, value) in &rule.flags.variables {
            let known = |text: &String| expand(text, self.round, &self.captured, None);
            match value.as_ref().map(known) {
                Some(value) => {
                    let value = value.unwrap_or_default();
                    self.round.variables.insert(name.clone(), value);
                }
                None => drop(self.round.variables.remove(name)),
            }
        }
        effects.handler = rule.flags.handler.or(effects.handler);
        for cookie in &rule.flags.cookies {
            let cookie = expand(cookie, self.round, &self.captured, None);
            let cookie = cookie.and_then(|it| set_cookie(&it));
            effects.cookies.extend(cookie);
            effects.cookies.truncate(MAX_COOKIES);
        }
        if let Some(status) = rule.flags.status.filter(|it| !(300..400).contains(it)) {
            return RuleOutcome::Refused(status);
        }
        if rule.flags.is_proxied {
            return RuleOutcome::Refused(403);
        }
        if stays {
            self.status = rule.flags.status.or(self.status);
            return RuleOutcome::Matched;
        }
        let Some(output) = output else {
            return RuleOutcome::Refused(403);
        };
        if form.has_mark && !rule.flags.allows_escaped_mark && rule.output.contains('?') {
            return RuleOutcome::Refused(403);
        }
        self.take(rule, output)
    }

    fn take(&mut self, rule: &Rule, mut output: Vec<u8>) -> RuleOutcome {
        let is_relative = !output.starts_with(b"/") && scheme_bytes(&output).is_none();
        if is_relative {
            output.splice(0..0, self.rewriting.folder.iter().copied());
        }
        if rule.flags.drops_path_info {
            self.path_info.clear();
        }
        self.split_args(rule, output);
        if let Some(status) = rule.flags.status {
            if scheme_bytes(&self.name).is_none() {
                if !self.name.starts_with(b"/") {
                    self.name.insert(0, b'/');
                }
                self.name.splice(0..0, self.own_address());
            }
            self.status = Some(status);
            return RuleOutcome::Changed;
        }
        let own = self.own_address();
        if self.name.len() > own.len()
            && self.name[..own.len()].eq_ignore_ascii_case(&own)
            && self.name[own.len()] == b'/'
        {
            self.name.drain(..own.len());
        }
        if scheme_bytes(&self.name).is_none() && !is_relative && !rule.output.starts_with("//") {
            let slashes = self.name.iter().take_while(|byte| **byte == b'/').count();
            self.name.drain(..slashes.saturating_sub(1));
        }
        RuleOutcome::Changed
    }

    /// `http://host`
    fn own_address(&self) -> Vec<u8> {
        let visit = self.round.visit;
        [visit.scheme.as_bytes(), b"://", visit.host].concat()
    }

    /// The output without its arguments, which become those of the request.
    fn split_args(&mut self, rule: &Rule, output: Vec<u8>) {
        let flags = rule.flags.arguments;
        if flags.dropped {
            self.args = None;
        }
        let skipped = scheme_bytes(&output).unwrap_or(0);
        let behind = &output[skipped..];
        let mark = match flags.last_mark {
            true => behind.iter().rposition(|byte| *byte == b'?'),
            false => behind.iter().position(|byte| *byte == b'?'),
        };
        let Some(mark) = mark.map(|it| it + skipped) else {
            self.name = output;
            return;
        };
        let own = &output[mark + 1..];
        self.args = match (flags.appended, self.args.take()) {
            (true, Some(args)) if !own.is_empty() => Some([own, b"&", &args].concat()),
            (true, args) if own.is_empty() => args,
            _ => Some(own.to_vec()),
        };
        if let Some(args) = &mut self.args
            && args.ends_with(b"&")
        {
            args.pop();
        }
        self.args.take_if(|args| args.is_empty());
        self.name = output[..mark].to_vec();
    }

    /// Whether all conditions hold; `None` if that is not known.
    fn conditions(&mut self, conditions: &[Condition]) -> Option<bool> {
        let mut all = Some(true);
        let mut at = 0;
        while let Some(condition) = conditions.get(at) {
            let mut holds = condition.holds(self.round, &mut self.captured);
            let mut last = condition;
            while last.or_next {
                at += 1;
                // There is no further condition: Apache takes it for one that holds.
                let Some(next) = conditions.get(at) else {
                    holds = Some(true);
                    break;
                };
                last = next;
                if holds != Some(true) {
                    holds = match (holds, next.holds(self.round, &mut self.captured)) {
                        (_, Some(true)) => Some(true),
                        (None, _) => None,
                        (_, next) => next,
                    };
                }
            }
            match holds {
                Some(false) => return Some(false),
                Some(true) => {}
                None => all = None,
            }
            at += 1;
        }
        all
    }

    /// Turns the final path into the outcome.
    fn end(mut self, (before, args_before): (&[u8], Option<&[u8]>), is_plain: bool) -> Rewritten {
        let is_outside = scheme_bytes(&self.name);
        let has_control = |args: &Vec<u8>| args.iter().any(|byte| *byte <= b' ' || *byte == 127);
        if self.args.as_ref().is_some_and(has_control) && (is_outside.is_none() || is_plain) {
            return Rewritten::Refused(403);
        }
        let Some(skipped) = is_outside else {
            return self.internal(before);
        };
        let slash = self.name[skipped..].iter().position(|byte| *byte == b'/');
        if let (Some(base), Some(slash)) = (&self.rewriting.base, slash) {
            let slash = slash + skipped;
            let below = self.name[slash..].strip_prefix(&self.rewriting.folder[..]);
            if let Some(below) = below {
                let whole = [&self.name[..slash], base.as_bytes(), below].concat();
                self.name = whole;
            }
        }
        let mut location = match is_plain {
            true => self.name.clone(),
            false => {
                let rest = &self.name[skipped..];
                let place = rest
                    .iter()
                    .position(|byte| *byte == b'/')
                    .unwrap_or(rest.len());
                let (place, path) = rest.split_at(place);
                [&self.name[..skipped], place, &escaped(path)].concat()
            }
        };
        if let Some(args) = &self.args {
            location.push(b'?');
            match is_plain || args_before == Some(args) {
                true => location.extend_from_slice(args),
                false => location.extend(escaped(args)),
            }
        }
        if location.iter().any(|byte| *byte < b' ' || *byte == 127) {
            return Rewritten::Refused(403);
        }
        let status = self.status.filter(|it| (300..400).contains(it));
        Rewritten::Redirect {
            status: status.unwrap_or(302),
            location,
        }
    }

    fn internal(self, before: &[u8]) -> Rewritten {
        if !self.name.starts_with(b"/") {
            return Rewritten::Refused(400);
        }
        if self.name == before {
            // The arguments may be other ones.
            self.round.args = self.args;
            return Rewritten::Nothing;
        }
        let folder = &self.rewriting.folder;
        let path = match (&self.rewriting.base, self.name.strip_prefix(&folder[..])) {
            (Some(base), Some(below)) => [base.as_bytes(), below].concat(),
            (Some(_), None) => self.name,
            (None, _) => match self.name.strip_prefix(self.round.root) {
                Some(below) if below.starts_with(b"/") => below.to_vec(),
                _ => self.name,
            },
        };
        Rewritten::Internal {
            path,
            args: self.args,
        }
    }
}

/// The value of `Set-Cookie` for the text behind the `=` of `[CO]`: name, value, domain, minutes, path, and texts that
/// begin with `secure`, `httponly` and the value of `SameSite`.
fn set_cookie(flag: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(flag);
    let (separator, text) = match text.strip_prefix(';') {
        Some(text) => (';', text),
        None => (':', &*text),
    };
    let mut parts = text.split(separator);
    let mut next = || parts.next().filter(|it| !it.is_empty());
    let (name, value, domain) = (next()?, next().unwrap_or_default(), next()?);
    let is_set = |word: Option<&str>, name: &str| {
        word.is_some_and(|it| {
            it == "1" || it.eq_ignore_ascii_case("true") || it.eq_ignore_ascii_case(name)
        })
    };
    let minutes = next().and_then(|it| it.parse::<i64>().ok());
    let path = next().unwrap_or("/");
    let (secure, http_only, same_site) = (next(), next(), next());
    let mut cookie = format!("{name}={value}; path={path}; domain={domain}");
    if let Some(minutes) = minutes.filter(|it| *it != 0) {
        let seconds = minutes.saturating_mul(60);
        cookie.push_str(&format!("; Max-Age={seconds}"));
    }
    if is_set(secure, "secure") {
        cookie.push_str("; secure");
    }
    if is_set(http_only, "HttpOnly") {
        cookie.push_str("; HttpOnly");
    }
    if let Some(same_site) = same_site.filter(|it| !matches!(*it, "0" | "false")) {
        cookie.push_str(&format!("; SameSite={same_site}"));
    }
    // Text from the request must not end the field or add an attribute.
    let is_plain = !cookie.bytes().any(|byte| byte < b' ' || byte == 127);
    (is_plain && !name.contains([';', '=']) && !value.contains(';')).then(|| cookie.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::set_cookie;

    #[test]
    fn a_cookie_has_its_attributes() {
        for (flag, expected) in [
            ("a:b:x.test", Some("a=b; path=/; domain=x.test")),
            (
                "a:b:x.test:10:/p:true:1:Lax",
                Some("a=b; path=/p; domain=x.test; Max-Age=600; secure; HttpOnly; SameSite=Lax"),
            ),
            (";a;b:c;x.test", Some("a=b:c; path=/; domain=x.test")),
            ("a:b; domain=evil:x.test", None),
            ("a:b\r\nB: c:x.test", None),
            ("a:b", None),
        ] {
            let found = set_cookie(flag.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{flag}");
        }
    }
}
