//! A `RewriteRule` with the conditions before it.

use super::condition::Condition;
use crate::mistake::LineMistake;
use crate::pattern::Pattern;

#[derive(Clone, Debug)]
pub struct Rule {
    pub pattern: Pattern,
    pub is_negated: bool,
    /// `-`: the path stays.
    pub output: String,
    pub conditions: Vec<Condition>,
    pub flags: Flags,
}

/// The effects of a rule beside its output.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `[R]` with its status, `[F]`, `[G]`.
    pub status: Option<u16>,
    pub arguments: ArgumentFlags,
    pub next: NextRule,
    pub escapes: Option<bool>,
    /// `[NE]`
    pub keeps_redirect: bool,
    pub is_chained: bool,
    pub not_in_lookups: bool,
    pub drops_path_info: bool,
    pub is_proxied: bool,
    pub allows_escaped_mark: bool,
    /// `[E=name:value]`; without a value the variable is removed.
    pub variables: Vec<(String, Option<String>)>,
    /// `[CO]`: the text behind the `=`.
    pub cookies: Vec<String>,
    /// `[H]` or `[T]`: whether it names PHP.
    pub handler: Option<bool>,
}

/// The changes to the arguments of the request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgumentFlags {
    pub appended: bool,
    pub dropped: bool,
    pub last_mark: bool,
}

/// The rule that follows one that holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextRule {
    #[default]
    Following,
    Skip(usize),
    /// From the first one.
    Again,
    Last,
    End,
}

impl Rule {
    /// # Errors
    /// The mistake in the words behind `RewriteRule`.
    pub fn of(args: &[String], conditions: Vec<Condition>) -> Result<Rule, LineMistake> {
        let (pattern, output, flags) = match args {
            [pattern, output] => (pattern, output, ""),
            [pattern, output, flags] => (pattern, output, flags.as_str()),
            _ => return Err("it needs a pattern, a target and, at most, flags".into()),
        };
        let flags_text = match flags {
            "" => "",
            flags => flags
                .strip_prefix('[')
                .and_then(|it| it.strip_suffix(']'))
                .ok_or("flags stand in brackets")?,
        };
        let (mut flags, mut is_caseless) = (Flags::default(), false);
        for flag in flags_text.split(',').map(str::trim) {
            flags.take(flag, &mut is_caseless)?;
        }
        let (is_negated, text) = match pattern.strip_prefix('!') {
            Some(text) => (true, text),
            None => (false, pattern.as_str()),
        };
        let mut output = output.clone();
        if output.ends_with('?') && !output.ends_with("\\?") && output.matches('?').count() == 1 {
            output.pop();
            flags.arguments.dropped = true;
        }
        Ok(Rule {
            pattern: Pattern::new(text, is_caseless).ok_or("the pattern cannot be read")?,
            is_negated,
            output,
            conditions,
            flags,
        })
    }
}

impl Flags {
    fn take(&mut self, flag: &str, is_caseless: &mut bool) -> Result<(), LineMistake> {
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        match name.to_ascii_lowercase().as_str() {
            "co" | "cookie" => self.cookies.extend(value.map(str::to_owned)),
            "" | "unsafeprefixstat" | "unc" | "bne" | "bctls" => {}
            "b" | "escapebackreferences" => self.escapes = Some(true),
            "bnp" | "backrefnoplus" => self.escapes = Some(true),
            "c" | "chain" => self.is_chained = true,
            "dpi" | "discardpath" => self.drops_path_info = true,
            "e" | "env" => self.variables.extend(value.map(variable)),
            "end" => self.next = NextRule::End,
            "l" | "last" | "pt" | "passthrough" if self.next != NextRule::End => {
                self.next = NextRule::Last;
            }
            "l" | "last" | "pt" | "passthrough" => {}
            "f" | "forbidden" => self.status = Some(403),
            "g" | "gone" => self.status = Some(410),
            "h" | "handler" | "t" | "type" => {
                let value = value.unwrap_or_default().to_ascii_lowercase();
                self.handler = Some(value.contains("php") || value.starts_with("proxy:"));
            }
            "n" | "next" => self.next = NextRule::Again,
            "nc" | "nocase" => *is_caseless = true,
            "ne" | "noescape" => self.keeps_redirect = true,
            "ns" | "nosubreq" => self.not_in_lookups = true,
            "p" | "proxy" => self.is_proxied = true,
            "qsa" | "qsappend" => self.arguments.appended = true,
            "qsd" | "qsdiscard" => self.arguments.dropped = true,
            "qsl" | "qslast" => self.arguments.last_mark = true,
            "r" | "redirect" => self.status = Some(status(value)?),
            "s" | "skip" => {
                let count = value.and_then(|it| it.parse().ok());
                self.next = NextRule::Skip(count.ok_or("S needs a number")?);
            }
            "unsafeallow3f" => self.allows_escaped_mark = true,
            other => return Err(LineMistake::UnknownFlag(other.to_owned())),
        }
        Ok(())
    }
}

fn variable(text: &str) -> (String, Option<String>) {
    match (text.strip_prefix('!'), text.split_once(':')) {
        (Some(name), _) => (name.to_owned(), None),
        (None, Some((name, value))) => (name.to_owned(), Some(value.to_owned())),
        (None, None) => (text.to_owned(), Some(String::new())),
    }
}

fn status(value: Option<&str>) -> Result<u16, LineMistake> {
    match value.unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "temp" => Ok(302),
        "permanent" => Ok(301),
        "seeother" => Ok(303),
        text => {
            let status = text.parse().ok().filter(|it| (100..600).contains(it));
            status.ok_or_else(|| LineMistake::InvalidStatus(text.to_owned()))
        }
    }
}
