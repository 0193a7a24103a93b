//! The text of a `.htaccess` as rules.

use std::sync::Arc;

use crate::directives::{
    Branch, LineOutcome, OWN_WORK, Place, SectionUse, WITHOUT_EFFECT, add, address_line,
    authentication, by_extension, closes_by_itself, end_chain, environment_condition, grants,
    names, options, patterns, redirect, require, response, rewrite_options, section_use,
    shown_name,
};
use crate::expression::Expression;
use crate::item::{Item, parse};
use crate::mistake::LineMistake;
use crate::names::{Methods, NameTest};
use crate::require::{Logic, Merging, Question, Requirement};
use crate::rewriting::{Condition, Rewriting, Rule};
use crate::server_rules::{PlaceTest, ServerRules, ServerSection};
use crate::settings::{Conditional, FilesSection, FolderRules, Note, Settings};

/// A longer file closes its folder: lines beyond it are not read.
pub const MAX_BYTES: usize = 1 << 20;
/// Lines of a file.
const MAX_LINES: usize = 20_000;
/// Patterns of a file.
const MAX_PATTERNS: usize = 2000;
/// Notes that are kept of a file.
const MAX_NOTES: usize = 50;

/// The note about an `AllowOverride` that names kinds of lines.
pub const ALL_LINES: &str = "all lines of .htaccess files count; write None or All";

const ONLY_NEGATIVE: &str = "Require not and <RequireNone> stand in <RequireAll> only: among alternatives they let nobody in";

/// Reads a `.htaccess`.
pub fn read_rules(bytes: &[u8]) -> FolderRules {
    Reader::default().read(bytes).0
}

/// Reads lines and sections of a server's configuration.
pub fn read_server_rules(text: &str) -> ServerRules {
    let reader = Reader {
        server: Some(ServerRules::default()),
        ..Reader::default()
    };
    let (mut common, server) = reader.read(text.as_bytes());
    let folder = &mut common.folder;
    let mut server = server.unwrap_or_default();
    server.folders.sort_by_key(|section| section.slashes);
    let rewriting = folder.rewriting.take();
    // Whether rules are run, and which are inherited, holds for folders as well.
    folder.rewriting = rewriting.as_ref().map(|own| Rewriting {
        engine: own.engine,
        options: own.options,
        ..Rewriting::default()
    });
    ServerRules {
        rewriting,
        redirects: std::mem::take(&mut folder.redirects),
        notes: std::mem::take(&mut common.notes),
        common: Arc::new(common),
        is_given: true,
        ..server
    }
}

impl Reader {
    fn read(self, bytes: &[u8]) -> (FolderRules, Option<ServerRules>) {
        let mut reader = self;
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
        reader.patterns = parsed.items.iter().map(patterns).sum();
        if reader.patterns > MAX_PATTERNS {
            reader.patterns = 0;
            reader.close(
                1,
                &mut settings,
                "the file has too many patterns: take lines out",
            );
            return reader.end(settings);
        }
        for mistake in &parsed.mistakes {
            reader.mistake(mistake.place.line, &mut settings, &mistake.message);
        }
        reader.items(&parsed.items, &mut settings, &Place::default());
        reader.end(settings)
    }
}

#[derive(Default)]
struct Reader {
    /// The sections of a server's configuration so far; `None` in a `.htaccess`, and within such a section.
    server: Option<ServerRules>,
    /// Lines of a server's configuration count.
    is_of_server: bool,
    files: Vec<FilesSection>,
    notes: Vec<Note>,
    patterns: usize,
    /// The `RewriteCond` lines before the next `RewriteRule`.
    conditions: Vec<Condition>,
}

impl Reader {
    fn end(self, folder: Settings) -> (FolderRules, Option<ServerRules>) {
        let rules = FolderRules {
            folder,
            files: self.files,
            notes: self.notes,
            patterns: self.patterns,
        };
        (rules, self.server)
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
        // An `<If>` with its `<ElseIf>` and `<Else>`.
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
                    Err((line, why)) => self.mistake(line, settings, &why.to_string()),
                }
            }
            "directory" | "directorymatch" | "location" | "locationmatch"
                if self.server.is_some() =>
            {
                self.server_section(item, block, settings, place);
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

    /// A section for folders or addresses.
    fn server_section(
        &mut self,
        item: &Item,
        block: &[Item],
        settings: &mut Settings,
        place: &Place,
    ) {
        let line = item.place.line;
        let Some(test) = PlaceTest::of(&item.name, &item.args) else {
            let why = "the path of this section cannot be read";
            return self.mistake(line, settings, why);
        };
        let is_of_addresses = item.name.starts_with("location");
        let mut reader = Reader {
            is_of_server: true,
            ..Reader::default()
        };
        let mut inner = Settings::default();
        let place_within = Place {
            is_inner: is_of_addresses,
            ..place.clone()
        };
        reader.items(block, &mut inner, &place_within);
        if matches!(test, PlaceTest::Pattern(_)) && inner.rewriting.take().is_some() {
            reader.close(
                line,
                &mut inner,
                "rules of a section by pattern are not run",
            );
        }
        let (mut rules, _) = reader.end(inner);
        self.notes.append(&mut rules.notes);
        let Some(server) = &mut self.server else {
            return;
        };
        let sections = match is_of_addresses {
            true => &mut server.addresses,
            false => &mut server.folders,
        };
        let head = item.args.last().map_or("", String::as_str);
        let head = match test {
            PlaceTest::Pattern(_) => head,
            _ => head.trim_end_matches('/'),
        };
        sections.push(ServerSection {
            place: test,
            slashes: head.matches('/').count(),
            rules: Arc::new(rules),
        });
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
    ) -> Result<Requirement, (usize, LineMistake)> {
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
                Err((item.place.line, ONLY_NEGATIVE.into()))
            }
            true => Err((item.place.line, "the section has no Require".into())),
            false => Ok(Requirement::section(logic, is_negated, parts)),
        }
    }

    fn requirement_parts(
        &mut self,
        block: &[Item],
        place: &Place,
        parts: &mut Vec<Requirement>,
    ) -> Result<(), (usize, LineMistake)> {
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
                        return Err((line, "it is not known whether this section holds".into()));
                    }
                },
                _ => return Err((line, LineMistake::Misplaced(shown_name(item)))),
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
                    LineOutcome::Mistake(ONLY_NEGATIVE.into())
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
                    _ => return LineOutcome::Mistake("write And, Or or Off".into()),
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
            "options" => options(item, settings, self.is_of_server),
            "indexignore" => {
                settings.folder.hides_names = true;
                LineOutcome::Without("folders with such a line are not listed")
            }
            "allowoverride" if self.is_of_server => {
                settings.overrides = Some(first != "none");
                match args.len() == 1 && matches!(first.as_str(), "none" | "all") {
                    true => LineOutcome::Yes,
                    false => LineOutcome::Without(ALL_LINES),
                }
            }
            "rewritemap" => LineOutcome::Closes("maps of addresses are not read"),
            "php_flag" | "php_value" if first == "engine" => {
                let value = item.lower(1);
                let is_on = matches!(value.as_str(), "on" | "1" | "yes" | "true");
                settings.scripts.engine = Some(is_on);
                LineOutcome::Yes
            }
            "sethandler" | "forcetype" => {
                let names_php = first.contains("php") || first.starts_with("proxy:");
                settings.scripts.handler = Some(names_php);
                self.media_type(item, settings, names_php)
            }
            "addhandler" | "addtype" if args.len() < 2 => {
                LineOutcome::Mistake("it needs a value and extensions".into())
            }
            "addhandler" | "addtype" => {
                let runs = first.contains("php");
                by_extension(settings, args.get(1..), runs);
                self.media_type(item, settings, runs)
            }
            "removehandler" | "removetype" => {
                by_extension(settings, args.get(..), false);
                self.media_type(item, settings, false)
            }
            "header" | "errordocument" | "expiresactive" | "expiresdefault" | "expiresbytype"
            | "addcharset" | "removecharset" | "adddefaultcharset" => {
                response(item, &mut settings.response)
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
            name => {
                let mut known = WITHOUT_EFFECT.iter();
                let known = known.find(|(begin, _)| name.starts_with(begin));
                LineOutcome::Without(known.map_or("there is no such directive here", |it| it.1))
            }
        }
    }

    /// Reads a line about the types of files, which may name a handler.
    fn media_type(&self, item: &Item, settings: &mut Settings, names_php: bool) -> LineOutcome {
        match item.name.ends_with("type") && !names_php {
            true => response(item, &mut settings.response),
            false => LineOutcome::Yes,
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
                    _ => return LineOutcome::Mistake("write on or off".into()),
                };
                LineOutcome::Yes
            }
            "rewritebase" => match item.args.first() {
                Some(base) if base.starts_with('/') => {
                    let base = base.trim_end_matches('/');
                    rewriting.base = Some(format!("{base}/"));
                    LineOutcome::Yes
                }
                _ => LineOutcome::Mistake("write a path that begins with a slash".into()),
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
                    let is_proxied = rule.flags.is_proxied;
                    rewriting.rules.push(Arc::new(rule));
                    if is_proxied {
                        let why =
                            "rewriterule: no other server is asked; what [P] is for is refused";
                        self.note(item.place.line, why, true);
                    }
                    LineOutcome::Yes
                }
                Err(why) => LineOutcome::Mistake(why),
            },
        }
    }
}
