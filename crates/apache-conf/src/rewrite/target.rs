//! Where a rule leads to, in the terms of `rewrite` and `return`.

use super::expansion::{Part, parts, put, variable};
use super::rule::Rule;
use crate::patterns::count_captures;

/// For whom the target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetMode {
    /// A path of this server.
    Internal,
    /// A client.
    Redirect,
}

/// The captures of a condition that `%1` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionCaptures {
    /// They stand in the pattern of `rewrite`, before those of the rule.
    InPattern(usize),
    /// They were put into variables.
    InVariables(usize),
}

/// A target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetText {
    text: String,
    drops_query: bool,
    appends_query: bool,
    captures: bool,
}

/// The numbers of captures end with `$9`.
const MAX_CAPTURES: usize = 9;

impl TargetText {
    /// `base`: what a relative target begins with.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn of(
        rule: &Rule,
        base: &str,
        mode: TargetMode,
        of_conditions: Option<ConditionCaptures>,
    ) -> Result<TargetText, String> {
        let parts = parts(&rule.target).ok_or("RewriteMap has no counterpart; write a map")?;
        let own = match rule.is_negated {
            true => 0,
            false => count_captures(&rule.pattern).ok_or("its captures have names")?,
        };
        let mut writer = Writer {
            text: String::new(),
            rule,
            mode,
            of_conditions,
            own,
            captures: false,
        };
        let mut parts = &parts[..];
        if let [Part::Variable(root), rest @ ..] = parts
            && root.eq_ignore_ascii_case("DOCUMENT_ROOT")
        {
            parts = rest;
        }
        for at in 0..parts.len() {
            writer.part(parts, at)?;
        }
        let (mut text, captures) = (writer.text, writer.captures);
        let begins = ["/", "http://", "https://"]
            .iter()
            .any(|it| text.starts_with(it));
        let begins_with_path = matches!(
            parts.first(),
            Some(Part::OfCondition(_) | Part::Variable(_))
        );
        if !begins && !begins_with_path {
            if text.contains("://") {
                return Err("only http:// and https:// are addresses here".to_owned());
            }
            text.insert_str(0, base);
        }
        let has_query = text.contains('?');
        Ok(TargetText {
            drops_query: rule.flags.drops_query || has_query && !rule.flags.appends_query,
            appends_query: rule.flags.appends_query,
            text,
            captures,
        })
    }

    /// As the second argument of `rewrite`.
    pub fn for_rewrite(&self) -> String {
        let text = self.text.strip_suffix('?').unwrap_or(&self.text);
        match self.drops_query {
            true => format!("{text}?"),
            false => text.to_owned(),
        }
    }

    /// As the last argument of `try_files`, which keeps no query by itself.
    pub fn for_try_files(&self) -> String {
        let text = self.text.strip_suffix('?').unwrap_or(&self.text);
        match (self.drops_query, text.contains('?')) {
            (true, _) => text.to_owned(),
            (false, true) => format!("{text}&$args"),
            (false, false) => format!("{text}?$args"),
        }
    }

    /// As the address of `return`; `None` where what was captured would have to be escaped.
    pub fn for_return(&self) -> Option<String> {
        let text = self.text.strip_suffix('?').unwrap_or(&self.text);
        if self.captures {
            return None;
        }
        Some(match (self.drops_query, text.contains('?')) {
            (true, _) => text.to_owned(),
            (false, true) => format!("{text}&$args"),
            (false, false) => format!("{text}$is_args$args"),
        })
    }

    pub fn path(&self) -> &str {
        self.text.split('?').next().unwrap_or_default()
    }

    pub fn has_captures(&self) -> bool {
        self.captures
    }
}

struct Writer<'a> {
    text: String,
    rule: &'a Rule,
    mode: TargetMode,
    of_conditions: Option<ConditionCaptures>,
    own: usize,
    captures: bool,
}

impl Writer<'_> {
    fn part(&mut self, parts: &[Part], at: usize) -> Result<(), String> {
        let next = match parts.get(at + 1) {
            Some(Part::Text(text)) => text.chars().next(),
            _ => None,
        };
        match &parts[at] {
            Part::Text(plain) => self.plain(plain),
            Part::OfRule(0) => {
                Err("$0 has no counterpart; put the whole pattern into ( )".to_owned())
            }
            Part::OfRule(number) if *number > self.own => Ok(()),
            Part::OfRule(number) => {
                let before = match self.of_conditions {
                    Some(ConditionCaptures::InPattern(count)) => count,
                    _ => 0,
                };
                self.capture(before + number, next)
            }
            Part::OfCondition(number) => match self.of_conditions {
                Some(ConditionCaptures::InPattern(count)) if (1..=count).contains(number) => {
                    self.capture(*number, next)
                }
                Some(ConditionCaptures::InVariables(count)) if (1..=count).contains(number) => {
                    put(&mut self.text, &format!("captured_{number}"), next);
                    Ok(())
                }
                _ => Err(format!("no condition captures what %{number} means")),
            },
            Part::Variable(name) => {
                let variable = self.variable(name)?;
                put(&mut self.text, &variable, next);
                Ok(())
            }
        }
    }

    fn capture(&mut self, number: usize, next: Option<char>) -> Result<(), String> {
        // A digit behind it would be read as a part of the number.
        if number > MAX_CAPTURES || next.is_some_and(|it| it.is_ascii_digit()) {
            return Err(format!("${number} cannot be written here"));
        }
        self.captures = true;
        self.text.push_str(&format!("${number}"));
        Ok(())
    }

    fn plain(&mut self, plain: &str) -> Result<(), String> {
        let is_redirect = self.mode == TargetMode::Redirect;
        for letter in plain.chars() {
            match letter {
                '$' => return Err("a $ cannot be written".to_owned()),
                '#' if is_redirect && !self.rule.flags.is_not_escaped => self.text.push_str("%23"),
                '%' if is_redirect && !self.rule.flags.is_not_escaped => self.text.push_str("%25"),
                ' ' if is_redirect => self.text.push_str("%20"),
                letter if letter.is_control() => {
                    return Err("it has a control character".to_owned());
                }
                letter => self.text.push(letter),
            }
        }
        Ok(())
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        let variable = variable(name, &|_| false)?;
        let is_path = ["uri", "request_filename"].contains(&variable.as_str());
        match (self.mode, variable.as_str()) {
            (TargetMode::Internal, _) if is_path && !self.text.contains('?') => Ok("uri".to_owned()),
            (TargetMode::Internal, "args") => Ok(variable),
            (TargetMode::Redirect, "http_host" | "host") => {
                let is_tls = self.text.starts_with("https://");
                Ok(if is_tls { "host" } else { "http_host" }.to_owned())
            }
            (TargetMode::Redirect, "args" | "server_port" | "scheme") => Ok(variable),
            (TargetMode::Redirect, "uri") => Err(
                "the path would be put in without being escaped; capture it in the pattern and write $1"
                    .to_owned(),
            ),
            _ => Err(format!("%{{{name}}} cannot be a part of a target here")),
        }
    }
}
