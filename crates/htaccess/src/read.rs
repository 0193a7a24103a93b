//! The text of a `.htaccess` as rules.

use std::sync::Arc;

use crate::access::{AddressAccess, Order, Source};
use crate::address::Network;
use crate::alias::{AliasRedirect, From};
use crate::environment::{EnvironmentCondition, Subject};
use crate::expression::Expression;
use crate::item::{Item, parse};
use crate::modules;
use crate::names::{Methods, NameTest};
use crate::pattern::Pattern;
use crate::require::{Logic, Merging, Question, Requirement};
use crate::rewriting::{Condition, Inheritance, RewriteOptions, Rewriting, Rule};
use crate::settings::{Conditional, FilesSection, FolderRules, LinkOptions, Note, Settings};

/// A longer file closes its folder: what stands behind this is not read.
pub const MAX_BYTES: usize = 1 << 20;
/// Lines of a file.
const MAX_LINES: usize = 20_000;
/// Notes that are kept of a file.
const MAX_NOTES: usize = 50;

const ONLY_NEGATIVE: &str = "Require not and <RequireNone> stand in <RequireAll> only: among alternatives they let nobody in";

/// Reads a file.
pub fn read_rules(bytes: &[u8]) -> FolderRules {
    let mut reader = Reader::default();
    let mut settings = Settings::default();
    let Ok(text) = std::str::from_utf8(bytes) else {
        let line = bytes
            .split(|byte| *byte == b'\n')
            .position(|line| std::str::from_utf8(line).is_err());
        reader.close(
            line.unwrap_or(0) + 1,
            &mut settings,
            "the line is not UTF-8: write the file in UTF-8",
        );
        return reader.end(settings);
    };
    if bytes.len() > MAX_BYTES || text.lines().count() > MAX_LINES {
        reader.close(1, &mut settings, "the file is too long: take lines out");
        return reader.end(settings);
    }
    let parsed = parse(text, "");
    for mistake in &parsed.mistakes {
        reader.mistake(mistake.place.line, &mut settings, &mistake.message);
    }
    reader.items(&parsed.items, &mut settings, &Place::default());
    reader.end(settings)
}

/// Where lines stand.
#[derive(Clone, Default)]
struct Place {
    methods: Methods,
    /// In `<Files>` or `<If>`.
    is_inner: bool,
    /// It is not known whether Apache would read the lines: only what closes holds.
    is_doubtful: bool,
}

#[derive(Default)]
struct Reader {
    files: Vec<FilesSection>,
    notes: Vec<Note>,
    /// The `RewriteCond` lines before the next `RewriteRule`.
    conditions: Vec<Condition>,
}

/// What a line came to.
enum LineOutcome {
    Yes,
    /// The line is none that Apache takes.
    Mistake(String),
    /// It cannot be obeyed, and may limit access.
    Closes(&'static str),
    /// It has no effect here, and opens nothing by that.
    Without(&'static str),
}

impl Reader {
    fn end(self, folder: Settings) -> FolderRules {
        FolderRules {
            folder,
            files: self.files,
            notes: self.notes,
        }
    }

    fn note(&mut self, line: usize, text: &str, closes: bool) {
        if self.notes.len() < MAX_NOTES {
            let text = text.to_owned();
            self.notes.push(Note { line, text, closes });
        }
    }

    fn close(&mut self, line: usize, settings: &mut Settings, why: &str) {
        self.note(line, why, true);
        settings.closed = Some(settings.closed.unwrap_or(403));
    }

    /// Apache answers 500 for all that is in the folder.
    fn mistake(&mut self, line: usize, settings: &mut Settings, why: &str) {
        self.note(line, why, true);
        settings.closed = Some(500);
    }

    fn items(&mut self, items: &[Item], settings: &mut Settings, place: &Place) {
        // An `<If>` with what belongs to it.
        let mut chain: Vec<Branch> = Vec::new();
        for item in items {
            let is_branch = matches!(item.name.as_str(), "if" | "elseif" | "else");
            if !is_branch || item.name == "if" {
                end_chain(&mut chain, settings);
            }
            match &item.block {
                Some(block) if is_branch => chain.push(self.branch(item, block, place)),
                Some(block) => self.section(item, block, settings, place),
                None => self.line(item, settings, place),
            }
        }
        end_chain(&mut chain, settings);
    }

    fn line(&mut self, item: &Item, settings: &mut Settings, place: &Place) {
        if place.is_doubtful && !closes_by_itself(item) {
            return;
        }
        let (name, line) = (shown_name(item), item.place.line);
        match self.directive(item, settings, place) {
            LineOutcome::Yes => {}
            LineOutcome::Mistake(why) => {
                let why = format!("{name}: {why}; Apache answers 500");
                self.mistake(line, settings, &why);
            }
            LineOutcome::Closes(why) => self.close(line, settings, &format!("{name}: {why}")),
            LineOutcome::Without(why) => self.note(line, &format!("{name}: {why}"), false),
        }
    }

    fn section(&mut self, item: &Item, block: &[Item], settings: &mut Settings, place: &Place) {
        let line = item.place.line;
        match item.name.as_str() {
            "ifmodule" | "ifversion" | "ifdefine" | "iffile" | "ifdirective" | "ifsection" => {
                match section_use(item) {
                    SectionUse::None => {}
                    SectionUse::All => self.items(block, settings, place),
                    SectionUse::Closing if block.iter().any(grants) => {
                        let why = "it is not known whether Apache would read this section, and it says who is let in";
                        self.close(line, settings, why);
                    }
                    SectionUse::Closing => {
                        let place = Place {
                            is_doubtful: true,
                            ..place.clone()
                        };
                        self.items(block, settings, &place);
                    }
                }
            }
            "files" | "filesmatch" => match names(item) {
                Some(names) => self.files_section(block, (settings, place), names, line),
                None => self.mistake(line, settings, "the pattern of this section cannot be read"),
            },
            "limit" | "limitexcept" => {
                let names = Methods::named(&item.args);
                let methods = match item.name.as_str() {
                    "limit" => Methods::Only(names),
                    _ => Methods::Except(names),
                };
                let inner = Place {
                    methods,
                    ..place.clone()
                };
                self.items(block, settings, &inner);
            }
            "requireall" | "requireany" | "requirenone" => {
                match self.requirements(item, block, place) {
                    Ok(requirement) if requirement.is_negated() => {
                        self.mistake(line, settings, ONLY_NEGATIVE);
                    }
                    Ok(requirement) => add(settings, requirement),
                    Err((line, why)) => self.mistake(line, settings, &why),
                }
            }
            _ if item.denies() => {
                let why =
                    "this section has no effect in a .htaccess of Mayfly, and has refusals in it";
                self.close(line, settings, why);
            }
            name => {
                let why = format!("<{name}>: Apache takes no such section here");
                self.mistake(line, settings, &why);
            }
        }
    }

    fn files_section(
        &mut self,
        block: &[Item],
        (settings, place): (&mut Settings, &Place),
        names: NameTest,
        line: usize,
    ) {
        let mut inner = Settings::default();
        let place_within = Place {
            is_inner: true,
            ..place.clone()
        };
        self.items(block, &mut inner, &place_within);
        let closes = block.iter().any(Item::denies) || inner.closed.is_some();
        if !place.is_inner {
            return self.files.push(FilesSection {
                names,
                settings: inner,
                closes,
            });
        }
        // Apache does not look into it. It may have been meant to close, and opens nothing.
        if closes && !block.iter().any(grants) {
            let closed = Settings {
                closed: Some(403),
                ..Settings::default()
            };
            settings.conditional.push(Arc::new(Conditional {
                names: Some(names),
                branches: vec![(None, Arc::new(closed))],
                closes,
            }));
        }
        self.note(
            line,
            "<Files> within another section: Apache does not obey it",
            closes,
        );
    }

    fn branch(&mut self, item: &Item, block: &[Item], place: &Place) -> Branch {
        let mut inner = Settings::default();
        let place_within = Place {
            is_inner: true,
            ..place.clone()
        };
        self.items(block, &mut inner, &place_within);
        let head = item.text.trim_start_matches('<').trim_end_matches('>');
        let text = head
            .trim()
            .split_once(char::is_whitespace)
            .map_or("", |it| it.1);
        let whole = item.args.first().filter(|_| item.args.len() == 1);
        let expression = whole.and_then(|it| Expression::of(it));
        let expression = match item.name.as_str() {
            "else" => None,
            _ => Some(
                expression
                    .or_else(|| Expression::of(text))
                    .unwrap_or_else(|| {
                        let why = "the condition is not understood: what it may refuse is refused";
                        self.note(item.place.line, why, true);
                        Expression::unknown()
                    }),
            ),
        };
        (expression, Arc::new(inner))
    }

    /// `<RequireAll>` and its kin.
    fn requirements(
        &mut self,
        item: &Item,
        block: &[Item],
        place: &Place,
    ) -> Result<Requirement, (usize, String)> {
        let (logic, is_negated) = match item.name.as_str() {
            "requireall" => (Logic::All, false),
            "requireany" => (Logic::Any, false),
            _ => (Logic::Any, true),
        };
        let mut parts = Vec::new();
        self.requirement_parts(block, place, &mut parts)?;
        let has_negative = parts.iter().any(Requirement::is_negated);
        match parts.is_empty() {
            false if has_negative && logic == Logic::Any => {
                Err((item.place.line, ONLY_NEGATIVE.to_owned()))
            }
            true => Err((item.place.line, "the section has no Require".to_owned())),
            false => Ok(Requirement::section(logic, is_negated, parts)),
        }
    }

    fn requirement_parts(
        &mut self,
        block: &[Item],
        place: &Place,
        parts: &mut Vec<Requirement>,
    ) -> Result<(), (usize, String)> {
        for item in block {
            let line = item.place.line;
            match (item.name.as_str(), &item.block) {
                ("require", None) => {
                    let part = require(item, place).map_err(|why| (line, why))?;
                    parts.push(part);
                }
                ("requireall" | "requireany" | "requirenone", Some(inner)) => {
                    parts.push(self.requirements(item, inner, place)?);
                }
                ("ifmodule" | "ifversion" | "ifdefine", Some(inner)) => match section_use(item) {
                    SectionUse::All => self.requirement_parts(inner, place, parts)?,
                    SectionUse::None => {}
                    SectionUse::Closing => {
                        return Err((
                            line,
                            "it is not known whether this section holds".to_owned(),
                        ));
                    }
                },
                _ => return Err((line, format!("{} may not stand here", shown_name(item)))),
            }
        }
        Ok(())
    }

    fn directive(&mut self, item: &Item, settings: &mut Settings, place: &Place) -> LineOutcome {
        let first = item.lower(0);
        let args = &item.args;
        match item.name.as_str() {
            "order" | "allow" | "deny" | "satisfy" => {
                let access = settings.access.get_or_insert_default();
                address_line(item, Arc::make_mut(access), place)
            }
            "require" => match require(item, place) {
                Ok(requirement) if requirement.is_negated() => {
                    LineOutcome::Mistake(ONLY_NEGATIVE.to_owned())
                }
                Ok(requirement) => {
                    add(settings, requirement);
                    LineOutcome::Yes
                }
                Err(why) => LineOutcome::Mistake(why),
            },
            "authmerging" => {
                settings.merging = match first.as_str() {
                    "off" => Some(Merging::Off),
                    "and" => Some(Merging::And),
                    "or" => Some(Merging::Or),
                    _ => return LineOutcome::Mistake("write And, Or or Off".to_owned()),
                };
                LineOutcome::Yes
            }
            name if name.starts_with("auth") => authentication(item, settings),
            "rewriteengine" | "rewritebase" | "rewriteoptions" | "rewritecond" | "rewriterule" => {
                self.rewriting(item, settings, place)
            }
            "redirect" | "redirectmatch" | "redirectpermanent" | "redirecttemp" => {
                match redirect(item) {
                    Ok(redirect) => {
                        settings.redirects.push(Arc::new(redirect));
                        LineOutcome::Yes
                    }
                    Err(why) => LineOutcome::Mistake(why),
                }
            }
            "directoryindex" => {
                let indexes = settings.folder.indexes.get_or_insert_default();
                match first.as_str() {
                    "disabled" if args.len() == 1 => indexes.clear(),
                    _ => indexes.extend(args.iter().cloned()),
                }
                LineOutcome::Yes
            }
            "directoryslash" => {
                settings.folder.adds_slash = Some(first != "off");
                LineOutcome::Yes
            }
            "fallbackresource" => {
                settings.folder.fallback = args.first().cloned();
                LineOutcome::Yes
            }
            "options" => options(item, settings),
            "php_flag" | "php_value" if first == "engine" => {
                let value = item.lower(1);
                let is_on = matches!(value.as_str(), "on" | "1" | "yes" | "true");
                settings.scripts.engine = Some(is_on);
                LineOutcome::Yes
            }
            "sethandler" | "forcetype" => {
                let names_php = first.contains("php") || first.starts_with("proxy:");
                settings.scripts.handler = Some(names_php);
                LineOutcome::Yes
            }
            "addhandler" | "addtype" => {
                let runs = first.contains("php");
                by_extension(settings, args.get(1..), runs);
                LineOutcome::Yes
            }
            "removehandler" | "removetype" => {
                by_extension(settings, args.get(..), false);
                LineOutcome::Yes
            }
            "setenv" | "unsetenv" | "passenv" => {
                let value = args.get(1).cloned().unwrap_or_default();
                let names = match item.name.as_str() {
                    "setenv" => args.get(..1),
                    "unsetenv" => args.get(..),
                    _ => None,
                };
                let value = (item.name == "setenv").then_some(value);
                for name in names.into_iter().flatten() {
                    settings.environment.set.push((name.clone(), value.clone()));
                }
                LineOutcome::Yes
            }
            "setenvif" | "setenvifnocase" | "browsermatch" | "browsermatchnocase"
            | "setenvifexpr" => match environment_condition(item) {
                Ok(condition) => {
                    settings.environment.conditions.push(Arc::new(condition));
                    LineOutcome::Yes
                }
                Err(why) => LineOutcome::Mistake(why),
            },
            "sslrequiressl" => {
                let question =
                    Expression::of("%{HTTPS} == 'on'").unwrap_or_else(Expression::unknown);
                let question = Question::Expression(Arc::new(question));
                let line = Requirement::line(false, place.methods.clone(), question);
                let before = settings.require.take();
                let before = before
                    .unwrap_or_else(|| Requirement::line(false, Methods::All, Question::All(true)));
                settings.require = Some(Requirement::merged(Merging::And, &before, &line));
                LineOutcome::Yes
            }
            _ if item.denies() => LineOutcome::Closes(
                "this line may limit access and is not obeyed; write it with Require",
            ),
            name if OWN_WORK.iter().any(|it| name.starts_with(it)) => LineOutcome::Yes,
            name if WITHOUT_EFFECT.iter().any(|it| name.starts_with(it)) => {
                LineOutcome::Without("the line has no effect here")
            }
            _ => LineOutcome::Without("there is no such directive here"),
        }
    }

    fn rewriting(&mut self, item: &Item, settings: &mut Settings, place: &Place) -> LineOutcome {
        let first = item.lower(0);
        if place.is_inner {
            // Apache runs no rules of these sections.
            self.conditions.clear();
            return match item.denies() {
                true => LineOutcome::Closes(
                    "rules of this section are not run; write Require all denied",
                ),
                false => LineOutcome::Without("rules of this section are not run"),
            };
        }
        let rewriting = settings.rewriting.get_or_insert_default();
        match item.name.as_str() {
            "rewriteengine" => {
                rewriting.engine = match first.as_str() {
                    "on" => Some(true),
                    "off" => Some(false),
                    _ => return LineOutcome::Mistake("write on or off".to_owned()),
                };
                LineOutcome::Yes
            }
            "rewritebase" => match item.args.first() {
                Some(base) if base.starts_with('/') => {
                    let base = base.trim_end_matches('/');
                    rewriting.base = Some(format!("{base}/"));
                    LineOutcome::Yes
                }
                _ => LineOutcome::Mistake("write a path that begins with a slash".to_owned()),
            },
            "rewriteoptions" => {
                rewrite_options(item, rewriting);
                LineOutcome::Yes
            }
            "rewritecond" => match Condition::of(&item.args) {
                Ok(condition) => {
                    self.conditions.push(condition);
                    LineOutcome::Yes
                }
                Err(why) => LineOutcome::Mistake(why),
            },
            _ => match Rule::of(&item.args, std::mem::take(&mut self.conditions)) {
                Ok(rule) => {
                    rewriting.rules.push(Arc::new(rule));
                    LineOutcome::Yes
                }
                Err(why) => LineOutcome::Mistake(why),
            },
        }
    }
}

/// What Mayfly does by itself, or what concerns no visitor.
const OWN_WORK: [&str; 16] = [
    "addoutputfilter",
    "addcharset",
    "adddefaultcharset",
    "addencoding",
    "addlanguage",
    "brotli",
    "deflate",
    "expires",
    "filter",
    "fileetag",
    "serversignature",
    "limitrequest",
    "enable",
    "defaultlanguage",
    "languagepriority",
    "cachedisable",
];

/// What is known and has no effect.
const WITHOUT_EFFECT: [&str; 13] = [
    "acceptpathinfo",
    "addalt",
    "adddescription",
    "addicon",
    "addinputfilter",
    "contentdigest",
    "errordocument",
    "header",
    "index",
    "php_",
    "requestheader",
    "setinputfilter",
    "setoutputfilter",
];

/// The name of a directive, short enough for a note. The file may be one of another account.
fn shown_name(item: &Item) -> String {
    let letters = item
        .name
        .chars()
        .filter(|it| it.is_ascii_alphanumeric() || *it == '_');
    letters.take(40).collect()
}

fn closes(settings: &Settings) -> bool {
    settings.closed.is_some()
        || settings.require.is_some()
        || settings.access.is_some()
        || settings.conditional.iter().any(|it| it.closes)
        || settings.redirects.iter().any(|it| it.status >= 400)
        || !settings.scripts.by_extension.is_empty()
        || settings.scripts.engine == Some(false)
        || settings.scripts.handler == Some(false)
}

/// Which lines of a conditional section hold.
enum SectionUse {
    All,
    None,
    /// It is not known whether Apache has the module: those that close.
    Closing,
}

fn section_use(item: &Item) -> SectionUse {
    let holds = modules::holds(item) == Some(modules::SectionVerdict::Yes);
    let name = item.lower(0);
    let is_known = match item.name.as_str() {
        "ifmodule" => is_usual(&name) || holds == name.starts_with('!'),
        "iffile" | "ifdirective" | "ifsection" => false,
        _ => true,
    };
    match (is_known, holds) {
        (false, _) => SectionUse::Closing,
        (true, true) => SectionUse::All,
        (true, false) => SectionUse::None,
    }
}

/// A line that only takes away: a refusal, scripts that do not run, rules (among which others refuse).
fn closes_by_itself(item: &Item) -> bool {
    let takes_scripts = [
        "php_flag",
        "php_value",
        "sethandler",
        "removehandler",
        "removetype",
        "forcetype",
    ];
    item.denies() || takes_scripts.contains(&item.name.as_str())
}

type Branch = (Option<Expression>, Arc<Settings>);

fn end_chain(chain: &mut Vec<Branch>, settings: &mut Settings) {
    if chain.is_empty() {
        return;
    }
    let branches = std::mem::take(chain);
    let closes = branches.iter().any(|(_, settings)| closes(settings));
    settings.conditional.push(Arc::new(Conditional {
        names: None,
        branches,
        closes,
    }));
}

/// Modules that every Apache 2.4 for such sites has.
fn is_usual(name: &str) -> bool {
    let name = name.trim_start_matches('!');
    let usual = [
        "access_compat",
        "alias",
        "auth_basic",
        "authn_core",
        "authn_file",
        "authz_core",
        "authz_host",
        "authz_user",
        "autoindex",
        "deflate",
        "dir",
        "env",
        "expires",
        "filter",
        "headers",
        "mime",
        "negotiation",
        "rewrite",
        "setenvif",
    ];
    let name = name.trim_start_matches("mod_").trim_end_matches(".c");
    usual.contains(&name.trim_end_matches("_module"))
}

/// Does a line let visitors in?
fn grants(item: &Item) -> bool {
    let is_own = match item.name.as_str() {
        "require" => !item.denies() || item.lower(0) != "all",
        "allow" => true,
        "satisfy" => item.lower(0) == "any",
        _ => false,
    };
    is_own || item.block.iter().flatten().any(grants)
}

/// The names of `<Files>` and `<FilesMatch>`.
fn names(item: &Item) -> Option<NameTest> {
    match (item.name.as_str(), &item.args[..]) {
        ("files", [tilde, regex, ..]) if tilde == "~" => {
            Pattern::new(regex, false).map(NameTest::Pattern)
        }
        ("filesmatch", [regex, ..]) => Pattern::new(regex, false).map(NameTest::Pattern),
        ("files", [glob, ..]) => Some(NameTest::Glob(glob.clone())),
        _ => None,
    }
}

fn add(settings: &mut Settings, requirement: Requirement) {
    let all = settings
        .require
        .get_or_insert_with(|| Requirement::section(Logic::Any, false, Vec::new()));
    all.push(requirement);
}

fn require(item: &Item, place: &Place) -> Result<Requirement, String> {
    let (is_negated, words) = match &item.args[..] {
        [first, words @ ..] if first.eq_ignore_ascii_case("not") => (true, words),
        words => (false, words),
    };
    let [kind, words @ ..] = words else {
        return Err("it needs to say who is let in".to_owned());
    };
    let question = match kind.to_ascii_lowercase().as_str() {
        "all" => match words.first().map(|it| it.to_ascii_lowercase()).as_deref() {
            Some("granted") => Question::All(true),
            Some("denied") => Question::All(false),
            _ => return Err("write granted or denied behind all".to_owned()),
        },
        "ip" => {
            let networks: Option<Vec<Network>> = words.iter().map(|it| Network::of(it)).collect();
            let networks = networks.filter(|it| !it.is_empty());
            Question::Networks(networks.ok_or("an address cannot be read")?)
        }
        "local" => Question::Local,
        "valid-user" => Question::ValidUser,
        "user" => Question::Users(words.to_vec()),
        "group" => Question::Groups(words.to_vec()),
        "env" => Question::Variables(words.to_vec()),
        "method" => Question::Methods(Methods::named(words)),
        "expr" => {
            let text = item.text.trim();
            let at = text.to_ascii_lowercase().find("expr").unwrap_or(0) + "expr".len();
            let whole = words.first().filter(|_| words.len() == 1);
            let expression = whole.and_then(|it| Expression::of(it));
            let expression = expression.or_else(|| Expression::of(&text[at..]));
            expression.map_or(Question::Unknown, |it| Question::Expression(Arc::new(it)))
        }
        _ => Question::Unknown,
    };
    Ok(Requirement::line(
        is_negated,
        place.methods.clone(),
        question,
    ))
}

fn address_line(item: &Item, access: &mut AddressAccess, place: &Place) -> LineOutcome {
    let first = item.lower(0);
    let methods = || place.methods.clone();
    match item.name.as_str() {
        "order" => {
            let order = match (first.as_str(), item.args.len()) {
                ("allow,deny", 1) => Order::AllowDeny,
                ("deny,allow", 1) => Order::DenyAllow,
                ("mutual-failure", 1) => Order::MutualFailure,
                _ => {
                    return LineOutcome::Mistake(
                        "write deny,allow or allow,deny without a space".to_owned(),
                    );
                }
            };
            access.orders.push((methods(), order));
        }
        "satisfy" => match first.as_str() {
            "any" => access.satisfies_any.push((methods(), true)),
            "all" => access.satisfies_any.push((methods(), false)),
            _ => return LineOutcome::Mistake("write any or all".to_owned()),
        },
        name => {
            if first != "from" || item.args.len() < 2 {
                return LineOutcome::Mistake("write from and whom".to_owned());
            }
            let lines = match name {
                "allow" => &mut access.allows,
                _ => &mut access.denies,
            };
            for word in &item.args[1..] {
                let Some(source) = source(word) else {
                    return LineOutcome::Mistake("an address cannot be read".to_owned());
                };
                lines.push((methods(), source));
            }
        }
    }
    LineOutcome::Yes
}

fn source(word: &str) -> Option<Source> {
    let lower = word.to_ascii_lowercase();
    if let Some(name) = lower.strip_prefix("env=") {
        let (is_negated, name) = match name.starts_with('!') {
            true => (true, &word[5..]),
            false => (false, &word[4..]),
        };
        let name = name.to_owned();
        return Some(Source::Variable { name, is_negated });
    }
    match (lower.as_str(), Network::of(word)) {
        ("all", _) => Some(Source::All),
        ("localhost", _) => Some(Source::Loopback),
        (_, Some(network)) => Some(Source::Network(network)),
        _ if word.contains(['/', '#']) => None,
        _ => Some(Source::Host),
    }
}

fn authentication(item: &Item, settings: &mut Settings) -> LineOutcome {
    let own = &mut settings.authentication;
    let first = item.args.first().cloned();
    match item.name.as_str() {
        "authtype" => own.kind = Some(item.lower(0)),
        "authname" => own.realm = first,
        "authuserfile" => own.user_file = first,
        "authgroupfile" => own.group_file = first,
        "authbasicprovider" => own.has_other_provider = Some(item.all_lower() != ["file"]),
        "authzsendforbiddenonfailure" => own.refuses_with_403 = Some(item.lower(0) == "on"),
        "authbasicauthoritative" | "authuserfileauthoritative" | "authgroupfileauthoritative" => {}
        _ => {
            return LineOutcome::Closes(
                "names and passwords are asked for with AuthType Basic and AuthUserFile only",
            );
        }
    }
    LineOutcome::Yes
}

fn options(item: &Item, settings: &mut Settings) -> LineOutcome {
    let links = settings.links.get_or_insert(LinkOptions {
        follows: None,
        follows_of_owner: None,
    });
    let is_absolute = |word: &String| !word.starts_with(['+', '-']);
    if item.args.iter().any(is_absolute) {
        links.follows = Some(false);
        links.follows_of_owner = Some(false);
    }
    for word in item.all_lower() {
        let is_on = !word.starts_with('-');
        match word.trim_start_matches(['+', '-']) {
            "followsymlinks" => links.follows = Some(is_on),
            "symlinksifownermatch" => links.follows_of_owner = Some(is_on),
            "all" => links.follows = Some(is_on),
            "none" => {
                links.follows = Some(false);
                links.follows_of_owner = Some(false);
            }
            "indexes" | "multiviews" | "execcgi" | "includes" | "includesnoexec" => {}
            _ => return LineOutcome::Mistake("there is no such option".to_owned()),
        }
    }
    LineOutcome::Yes
}

fn by_extension(settings: &mut Settings, extensions: Option<&[String]>, runs: bool) {
    for extension in extensions.into_iter().flatten() {
        let extension = extension.trim_start_matches('.').to_ascii_lowercase();
        let is_script = extension.starts_with("ph");
        if is_script {
            settings.scripts.by_extension.push((extension, runs));
        }
    }
}

fn environment_condition(item: &Item) -> Result<EnvironmentCondition, String> {
    let is_caseless = item.name.ends_with("nocase");
    let args = &item.args[..];
    let (subject, pattern, sets) = match item.name.as_str() {
        "setenvifexpr" => {
            let [text, sets @ ..] = args else {
                return Err("it needs a condition and variables".to_owned());
            };
            let expression = Expression::of(text).unwrap_or_else(Expression::unknown);
            (Subject::Expression(Arc::new(expression)), None, sets)
        }
        "browsermatch" | "browsermatchnocase" => {
            let [pattern, sets @ ..] = args else {
                return Err("it needs a pattern and variables".to_owned());
            };
            (
                Subject::Attribute("User-Agent".to_owned()),
                Some(pattern),
                sets,
            )
        }
        _ => {
            let [name, pattern, sets @ ..] = args else {
                return Err("it needs an attribute, a pattern and variables".to_owned());
            };
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            let subject = match name.bytes().all(is_name) {
                true => Subject::Attribute(name.clone()),
                false => {
                    let names = Pattern::new(name, true).ok_or("the attribute cannot be read")?;
                    Subject::Fields(names)
                }
            };
            (subject, Some(pattern), sets)
        }
    };
    if sets.is_empty() {
        return Err("it needs a variable".to_owned());
    }
    let pattern = match pattern {
        Some(text) => Some(Pattern::new(text, is_caseless).ok_or("the pattern cannot be read")?),
        None => None,
    };
    let set = |word: &String| match (word.strip_prefix('!'), word.split_once('=')) {
        (Some(name), _) => (name.to_owned(), None),
        (None, Some((name, value))) => (name.to_owned(), Some(value.to_owned())),
        (None, None) => (word.clone(), Some("1".to_owned())),
    };
    Ok(EnvironmentCondition {
        subject,
        pattern,
        sets: sets.iter().map(set).collect(),
    })
}

fn redirect(item: &Item) -> Result<AliasRedirect, String> {
    let (mut status, mut args) = match item.name.as_str() {
        "redirectpermanent" => (301, &item.args[..]),
        _ => (302, &item.args[..]),
    };
    if let [first, rest @ ..] = args
        && item.name.len() <= "redirectmatch".len()
        && !first.starts_with(['/', '^', '(', '.'])
    {
        let named = match first.to_ascii_lowercase().as_str() {
            "permanent" => Some(301),
            "temp" => Some(302),
            "seeother" => Some(303),
            "gone" => Some(410),
            text => text.parse().ok().filter(|it| (100..600).contains(it)),
        };
        if let Some(named) = named {
            (status, args) = (named, rest);
        }
    }
    let is_redirect = (300..400).contains(&status);
    let (from, to) = match (args, is_redirect) {
        ([from, to], true) => (from, to.clone()),
        ([from], false) => (from, String::new()),
        _ => return Err("it needs a path and, for a redirect, where it leads".to_owned()),
    };
    let from = match item.name.as_str() {
        "redirectmatch" => {
            From::Pattern(Pattern::new(from, false).ok_or("the pattern cannot be read")?)
        }
        _ if from.starts_with('/') => From::Prefix(from.clone()),
        _ => return Err("the path begins with a slash".to_owned()),
    };
    Ok(AliasRedirect { from, status, to })
}

fn rewrite_options(item: &Item, rewriting: &mut Rewriting) {
    let options: &mut RewriteOptions = rewriting.options.get_or_insert_default();
    for word in item.all_lower() {
        match word.as_str() {
            "inherit" => options.inherit = Some(Inheritance::After),
            "inheritbefore" => options.inherit = Some(Inheritance::Before),
            "inheritdown" => options.inherit_down = Some(Inheritance::After),
            "inheritdownbefore" => options.inherit_down = Some(Inheritance::Before),
            "ignoreinherit" => options.ignores_inherited = true,
            "allownoslash" => options.allows_no_slash = true,
            "mergebase" => options.merges_base = true,
            _ => {}
        }
    }
}
