//! Writes the rules of a folder or a server.

use nginx_conf::text::{Conf, quoted};

use super::captures::{captured, remove_captured, uses_condition, whole_request};
use super::condition::{CapturingPattern, SCRIPT_PATH, Surroundings, Test, not_a_pattern};
use super::expansion::{Part, parts};
use super::front::{FrontController, is_for_all, passes_only};
use super::lines::over_all_lines;
use super::rule::{Action, Condition, Rule};
use super::target::{ConditionCaptures, TargetMode, TargetText};
use crate::note::{Kind, Note};
use crate::patterns::{compiles, has_back_reference, matches, of_path, over_lines};
use htaccess::item::Place;

/// The rules of one file, or of a server.
#[derive(Debug, Default)]
pub struct RewriteSection {
    pub is_on: bool,
    /// A line said whether it is on.
    pub is_said: bool,
    /// `RewriteBase`
    pub base: Option<String>,
    pub rules: Vec<Rule>,
    /// Conditions that wait for their rule.
    pub pending: Vec<Condition>,
}

/// What the rules of a section become.
#[derive(Debug, Default)]
pub struct RewriteProgram {
    /// Lines for the server.
    pub text: String,
    pub front: Option<FrontController>,
    /// Patterns of paths that rules without a condition refuse, and their statuses: a rule before them may lead there.
    pub refused: Vec<(String, u16)>,
    /// The paths to which rules lead.
    pub targets: Vec<String>,
    pub notes: Vec<Note>,
    /// Variables that lines in the program set.
    pub environment: Vec<String>,
}

impl RewriteSection {
    /// `folder`: the path of its folder, or an empty text in a server.
    pub fn program(&self, folder: &str, is_environment: &dyn Fn(&str) -> bool) -> RewriteProgram {
        let target_base = match (&self.base, folder) {
            (Some(base), _) => format!("{}/", base.trim_end_matches('/')),
            (None, "") => "/".to_owned(),
            (None, folder) => folder.to_owned(),
        };
        let mut emitter = Emitter {
            folder,
            target_base,
            is_environment,
            conf: Conf::default(),
            program: RewriteProgram::default(),
            extra: Vec::new(),
            has_slashes: false,
            is_rewritten: false,
            skips: Vec::new(),
            numbers: 0,
            chain: None,
        };
        let front = self.front(&emitter);
        for (at, rule) in self.rules.iter().enumerate() {
            match &front {
                Some((place, front)) if *place == at => {
                    emitter.program.front = Some(front.clone());
                    // What follows is for files and folders only: all else was led to the front controller.
                    let path = format!("$document_root${SCRIPT_PATH}");
                    emitter.extra.push(Test::both(
                        format!("-e {path}"),
                        format!("!-e {path}"),
                        false,
                    ));
                }
                Some((place, front)) if at < *place && passes_only(rule, folder, front) => {}
                _ => emitter.rule(at, rule),
            }
        }
        emitter.end(&self.pending)
    }

    /// The front controller that can be `try_files`, and the place of its rule.
    fn front(&self, emitter: &Emitter<'_>) -> Option<(usize, FrontController)> {
        let fronts = self.rules.iter().enumerate().filter_map(|(at, rule)| {
            Some((
                at,
                FrontController::of(rule, emitter.folder, &emitter.target_base)?,
            ))
        });
        let mut fronts = fronts.collect::<Vec<_>>().into_iter();
        let (Some((at, front)), None) = (fronts.next(), fronts.next()) else {
            return None;
        };
        let before = &self.rules[..at];
        // A rule that ends the rules, or is skipped over, cannot keep `try_files` from its work.
        let is_free = before.iter().all(|rule| {
            let flags = &rule.flags;
            let passes = rule.is_without_target()
                && flags.action == Action::Internal
                && (flags.is_last || flags.skips > 0 || flags.is_chained);
            (!passes && !flags.is_chained && flags.skips == 0)
                || passes_only(rule, emitter.folder, &front)
        });
        is_free.then_some((at, front))
    }
}

pub struct Emitter<'a> {
    folder: &'a str,
    target_base: String,
    is_environment: &'a dyn Fn(&str) -> bool,
    pub conf: Conf,
    program: RewriteProgram,
    /// What each further rule asks as well.
    extra: Vec<Test>,
    /// The line that adds slashes to folders is there.
    has_slashes: bool,
    /// A rule before may have made another path of it, and gone on.
    is_rewritten: bool,
    /// Variables of rules that skip others, and the last rule that they skip.
    skips: Vec<(String, usize)>,
    pub numbers: usize,
    /// What the rules before ask that are chained to the next one; `None` in it: they cannot be translated.
    chain: Option<Option<Vec<Vec<Test>>>>,
}

/// The path that was asked for.
const ASKED_PATH: &str = "asked_path";

impl Emitter<'_> {
    fn rule(&mut self, at: usize, rule: &Rule) {
        let chain = self.chain.take();
        let result = match chain {
            Some(None) => Err("it is chained to a rule that could not be translated".to_owned()),
            Some(Some(groups)) => self.translate(at, rule, groups),
            None => self.translate(at, rule, Vec::new()),
        };
        if let Err(why) = result {
            if rule.flags.is_chained {
                self.chain = Some(None);
            }
            self.not_translated(rule, &why);
        }
    }

    fn not_translated(&mut self, rule: &Rule, why: &str) {
        let kind = match rule.flags.action {
            Action::Refuse(_) => Kind::Unsafe,
            _ => Kind::NotTranslated,
        };
        for condition in &rule.conditions {
            self.note(
                &condition.place,
                &condition.text,
                "it belongs to the rule below",
                kind,
            );
        }
        self.note(&rule.item.place, &rule.item.text, why, kind);
    }

    fn note(&mut self, place: &Place, text: &str, why: &str, kind: Kind) {
        self.program.notes.push(Note::new(place, text, why, kind));
    }

    fn translate(&mut self, at: usize, rule: &Rule, chained: Vec<Vec<Test>>) -> Result<(), String> {
        if let Some(flag) = rule.flags.unknown.first() {
            return Err(format!("the flag {flag} has no counterpart"));
        }
        if !compiles(&rule.pattern) {
            return Err(not_a_pattern(&rule.pattern));
        }
        let Some(mut groups) = self.groups(rule)? else {
            return Ok(());
        };
        groups.splice(0..0, chained);
        if rule.flags.is_chained {
            if !rule.is_without_target() || rule.flags.action != Action::Internal {
                return Err(
                    "a rule that is chained to the next one and changes the path".to_owned(),
                );
            }
            groups.extend(self.pattern_group(rule));
            self.chain = Some(Some(groups));
            return Ok(());
        }
        let skips = self.skips.iter().filter(|(_, last)| at <= *last);
        for (variable, _) in skips {
            groups.push(vec![Test::both(
                format!("${variable} = \"\""),
                format!("${variable} != \"\""),
                false,
            )]);
        }
        groups.extend(self.extra.iter().map(|it| vec![it.clone()]));
        match rule.flags.action {
            Action::Proxy => Err("write a location with proxy_pass for these paths".to_owned()),
            Action::Refuse(status) => {
                self.refuse(rule, groups, status);
                Ok(())
            }
            Action::Redirect(status) => self.redirect(rule, groups, status),
            Action::Internal if rule.is_without_target() => self.without_target(at, rule, groups),
            Action::Internal => self.internal(rule, groups),
        }
    }

    /// What the conditions ask: of each group one must hold. `None`: they never hold.
    fn groups(&self, rule: &Rule) -> Result<Option<Vec<Vec<Test>>>, String> {
        let around = Surroundings {
            is_environment: self.is_environment,
            path_variable: if self.is_rewritten { ASKED_PATH } else { "uri" },
        };
        let mut groups = Vec::new();
        let mut group = Vec::new();
        for (at, condition) in rule.conditions.iter().enumerate() {
            group.push(Test::of(condition, &around)?);
            if condition.has_alternative && at + 1 < rule.conditions.len() {
                continue;
            }
            let mut tests = std::mem::take(&mut group);
            if tests.contains(&Test::Always) {
                continue;
            }
            tests.retain(|it| *it != Test::Never);
            if tests.is_empty() {
                return Ok(None);
            }
            groups.push(tests);
        }
        Ok(Some(groups))
    }

    /// The pattern of the rule as a condition; none where it fits every path.
    fn pattern_group(&self, rule: &Rule) -> Option<Vec<Test>> {
        let pattern = of_path(self.folder, &rule.pattern, rule.flags.is_caseless);
        let fits_folder = matches(&pattern, self.top()) == Some(true);
        let is_whole = is_for_all(&rule.pattern) && !rule.is_negated && fits_folder;
        let within = || {
            Test::pattern(
                "$uri",
                &format!("^{}", crate::patterns::literal(self.folder)),
                false,
                false,
            )
        };
        match is_whole {
            true if self.folder.len() <= 1 => None,
            true => Some(vec![within()]),
            false => Some(vec![Test::pattern(
                "$uri",
                &pattern,
                false,
                rule.is_negated,
            )]),
        }
    }

    fn refuse(&mut self, rule: &Rule, mut groups: Vec<Vec<Test>>, status: u16) {
        let is_unconditional = groups.is_empty() && !rule.is_negated && self.folder.len() <= 1;
        if let Some(mut tests) = self.pattern_group(rule) {
            for test in &mut tests {
                *test = over_all_lines(test);
            }
            if is_unconditional {
                let pattern = of_path(self.folder, &rule.pattern, rule.flags.is_caseless);
                self.program.refused.push((over_lines(&pattern), status));
            }
            groups.push(tests);
        }
        self.write(&groups, None, &[format!("return {status};")]);
    }

    fn without_target(
        &mut self,
        at: usize,
        rule: &Rule,
        mut groups: Vec<Vec<Test>>,
    ) -> Result<(), String> {
        groups.extend(self.pattern_group(rule));
        let mut lines = Vec::new();
        for (name, value) in &rule.flags.environment {
            match self.environment(name, value)? {
                Some(line) => lines.push(line),
                None => self.note(
                    &rule.item.place,
                    &rule.item.text,
                    "FastCGI passes on the fields of requests, and what follows a script's name, by itself",
                    Kind::LeftOut,
                ),
            }
        }
        if rule.flags.skips > 0 {
            self.numbers += 1;
            let variable = format!("skips_{}", self.numbers);
            self.conf.line(&format!("set ${variable} \"\";"));
            lines.push(format!("set ${variable} 1;"));
            self.skips.push((variable, at + rule.flags.skips));
        }
        if rule.flags.is_last {
            lines.push("break;".to_owned());
        }
        if !lines.is_empty() {
            self.write(&groups, None, &lines);
        }
        Ok(())
    }

    /// The line that sets a variable of the environment; `None` where PHP has it anyway.
    fn environment(&mut self, name: &str, value: &str) -> Result<Option<String>, String> {
        let upper = name.to_ascii_uppercase();
        if upper.starts_with("HTTP_") && value.to_ascii_uppercase().starts_with("%{HTTP:")
            || upper == "PATH_INFO"
        {
            return Ok(None);
        }
        let parts = parts(value).ok_or("RewriteMap has no counterpart")?;
        let mut text = String::new();
        for part in &parts {
            match part {
                Part::Text(plain) if !plain.contains('$') => text.push_str(plain),
                Part::Variable(variable) => {
                    let variable = super::expansion::variable(variable, self.is_environment)?;
                    text.push_str(&format!("${{{variable}}}"));
                }
                _ => {
                    return Err(
                        "what was captured cannot be put into the environment here".to_owned()
                    );
                }
            }
        }
        if !name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_')
        {
            return Err(format!("{name} is no name of a variable"));
        }
        self.program.environment.push(name.to_owned());
        Ok(Some(format!(
            "set ${} {};",
            super::expansion::environment(name),
            quoted(&text)
        )))
    }

    fn internal(&mut self, rule: &Rule, mut groups: Vec<Vec<Test>>) -> Result<(), String> {
        if rule.is_negated {
            groups.extend(self.pattern_group(rule));
        }
        let captured = captured(&groups);
        let captures = captured
            .as_ref()
            .map(|it| ConditionCaptures::InVariables(it.count));
        let target = TargetText::of(rule, &self.target_base, TargetMode::Internal, captures)?;
        if !target.path().starts_with(['/', '$']) {
            return Err("its target is no path".to_owned());
        }
        let uses = uses_condition(&rule.target).then_some(captured).flatten();
        let whole = of_path(self.folder, &rule.pattern, rule.flags.is_caseless);
        let is_whole = matches(&whole, self.top()) == Some(true) && is_for_all(&rule.pattern);
        let is_whole = is_whole && self.folder.len() <= 1 && !target.has_captures();
        let script = target.path();
        if script.ends_with(".php") && matches(&whole, &format!("{script}/x")) == Some(true) {
            // A path that leads to the script already is left as it is, with what follows its name.
            groups.push(vec![Test::both(
                format!("${SCRIPT_PATH} != {script}"),
                format!("${SCRIPT_PATH} = {script}"),
                false,
            )]);
        }
        self.program.targets.push(script.to_owned());
        self.add_slashes(rule);
        let pattern = match rule.is_negated || is_whole {
            true => "^".to_owned(),
            false => quoted(&whole),
        };
        let how = if rule.flags.is_last { " last" } else { "" };
        let line = format!(
            "rewrite {pattern} {}{how};",
            argument(&target.for_rewrite())
        );
        self.is_rewritten |= !rule.flags.is_last;
        self.write(&groups, uses.as_ref(), &[line]);
        Ok(())
    }

    /// The shortest path that its rules see.
    fn top(&self) -> &str {
        if self.folder.is_empty() {
            "/"
        } else {
            self.folder
        }
    }

    /// Before a rule that would lead folders elsewhere: mod_dir redirects them to their address with a slash all the same.
    fn add_slashes(&mut self, rule: &Rule) {
        let asks_for_folders = rule.conditions.iter().any(|it| it.pattern == "-d");
        let is_wanted = is_for_all(&rule.pattern) && !asks_for_folders && !self.folder.is_empty();
        if is_wanted && !self.has_slashes {
            self.has_slashes = true;
            self.conf
                .line("if (-d $request_filename) { rewrite ^(.*[^/])$ $1/ permanent; }");
        }
    }

    fn redirect(
        &mut self,
        rule: &Rule,
        mut groups: Vec<Vec<Test>>,
        status: u16,
    ) -> Result<(), String> {
        if let Some(address) = whole_request(rule, self.folder)
            && !self.is_rewritten
        {
            self.write(
                &groups,
                None,
                &[format!("return {status} {};", argument(&address))],
            );
            return Ok(());
        }
        let found = captured(&groups);
        let uses = uses_condition(&rule.target);
        let captures = match &found {
            Some(it) if it.is_of_path => ConditionCaptures::InPattern(it.count),
            Some(it) => ConditionCaptures::InVariables(it.count),
            None => ConditionCaptures::InVariables(0),
        };
        let in_pattern = found.clone().filter(|it| uses && it.is_of_path);
        let captures = (uses).then_some(captures);
        let target = TargetText::of(rule, &self.target_base, TargetMode::Redirect, captures)?;
        let pattern = match in_pattern {
            Some(captured) => {
                if has_back_reference(&rule.pattern) || self.is_rewritten {
                    return Err(
                        "what its conditions capture cannot stand in its pattern".to_owned()
                    );
                }
                remove_captured(&mut groups);
                self.with_condition(rule, &captured)
            }
            None if rule.is_negated => {
                groups.extend(self.pattern_group(rule));
                "^".to_owned()
            }
            None => of_path(self.folder, &rule.pattern, rule.flags.is_caseless),
        };
        let variables = found.filter(|it| uses && !it.is_of_path);
        let how = match status {
            301 => "permanent",
            302 => "redirect",
            _ => {
                let address = target.for_return().ok_or_else(|| {
                    format!("rewrite knows 301 and 302 only, and return does not escape what was captured: write a location with return {status}")
                })?;
                groups.extend(self.pattern_group(rule));
                self.write(
                    &groups,
                    variables.as_ref(),
                    &[format!("return {status} {};", argument(&address))],
                );
                return Ok(());
            }
        };
        let line = format!(
            "rewrite {} {} {how};",
            quoted(&pattern),
            argument(&target.for_rewrite())
        );
        self.write(&groups, variables.as_ref(), &[line]);
        Ok(())
    }

    /// The pattern of a rule with that of a condition on the path, whose captures come first.
    fn with_condition(&self, rule: &Rule, captured: &CapturingPattern) -> String {
        if is_for_all(&rule.pattern) && !rule.is_negated && self.folder.len() <= 1 {
            return captured.pattern.clone();
        }
        let own = of_path(self.folder, &rule.pattern, rule.flags.is_caseless);
        format!("(?s)^(?=.*?(?:{}))(?=.*?(?:{own}))", captured.pattern)
    }

    fn end(mut self, pending: &[Condition]) -> RewriteProgram {
        for condition in pending {
            self.note(
                &condition.place,
                &condition.text,
                "no RewriteRule follows it",
                Kind::NotTranslated,
            );
        }
        let body = std::mem::take(&mut self.conf.text);
        if body.contains(&format!("${SCRIPT_PATH}")) {
            self.conf.note(
                "A script's own path, without what follows its name, as Apache looks for files.",
            );
            self.conf.line(&format!("set ${SCRIPT_PATH} $uri;"));
            self.conf.line(&format!(
                "if ($uri ~ \"^(.+?\\\\.php)/\") {{ set ${SCRIPT_PATH} $1; }}"
            ));
        }
        if body.contains(&format!("${ASKED_PATH}")) {
            self.conf.line(&format!("set ${ASKED_PATH} $uri;"));
        }
        self.program.text = self.conf.text + &body;
        self.program
    }
}

/// Text with variables as an argument.
pub fn argument(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-:?&=+,@%$~[]".contains(it);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}
