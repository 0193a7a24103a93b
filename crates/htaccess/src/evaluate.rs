//! The rules of all folders on the way to a file, merged and obeyed in Apache's order: access, then rewriting,
//! redirects, the index of a folder. If rules lead to another path of the site, all of it begins again.

use std::borrow::Cow;
use std::sync::Arc;

use crate::admission::access;
use crate::alias::AliasRedirect;
use crate::environment::Variables;
use crate::judge_response::judged;
use crate::paths::{escaped, resolved, scheme_bytes};
use crate::response::ResponseRules;
use crate::rewrite::{Rewritten, SideEffects, rewrite};
use crate::round::{MappedFile, Round};
use crate::server_rules::ServerRules;
use crate::set_variables::{set_conditional_variables, set_script_variables};
use crate::settings::{Conditional, Settings};
use crate::values::FileKind;
use crate::visit::{Disk, Mount, Target, Verdict, Visit};
use crate::walk::{Walk, follows};

/// How often rules may lead to another path (Apache: `LimitInternalRecursion`).
const MAX_REDIRECTS: usize = 10;
/// Indexes that are looked at for one request.
const MAX_LOOKUPS: usize = 200;
/// Suffixes of files that are scripts somewhere.
const SCRIPT_EXTENSIONS: [&str; 5] = ["phtml", "phtm", "pht", "phar", "phps"];

/// Evaluates the rules for a request. `mounts`: the folders with the site's files, the folder of the whole site last.
/// `server`: the rules in the server's own configuration.
pub fn evaluate(
    visit: &Visit<'_>,
    disk: &dyn Disk,
    mounts: &[Mount],
    server: &ServerRules,
) -> Evaluation {
    let mut site = Evaluator {
        visit,
        disk,
        mounts,
        server,
        is_end: false,
        has_other_handler: false,
        depth: 0,
        lookups: 0,
        cookies: Vec::new(),
        response: None,
    };
    let verdict = verdict(&mut site);
    Evaluation {
        verdict,
        response: site.response,
    }
}

/// The result of evaluating a request.
#[derive(Debug)]
pub struct Evaluation {
    pub verdict: Verdict,
    /// The rules for every response of the path; `None` if no rule applies.
    pub response: Option<Box<ResponseRules>>,
}

fn verdict(site: &mut Evaluator<'_>) -> Verdict {
    let visit = site.visit;
    let mut address = Address {
        path: visit.path.to_vec(),
        args: (!visit.args.is_empty()).then(|| visit.args.to_vec()),
        variables: Variables::new(),
        is_redirected: false,
    };
    for _ in 0..=MAX_REDIRECTS {
        match site.round(address, false) {
            Step::Done(verdict) => return verdict,
            Step::Again(next) => address = next,
        }
    }
    Verdict::refused(500)
}

/// The address with which a round begins.
struct Address {
    path: Vec<u8>,
    args: Option<Vec<u8>>,
    variables: Variables,
    is_redirected: bool,
}

enum Step {
    Done(Verdict),
    Again(Address),
}

struct Evaluator<'a> {
    visit: &'a Visit<'a>,
    disk: &'a dyn Disk,
    mounts: &'a [Mount],
    server: &'a ServerRules,
    /// A rule with `[END]` has held.
    is_end: bool,
    /// A handler that is no script's would answer, also where an index was looked up.
    has_other_handler: bool,
    /// Lookups within lookups, and all of them.
    depth: usize,
    lookups: usize,
    /// Values of `Set-Cookie` that rules have made.
    cookies: Vec<Vec<u8>>,
    response: Option<Box<ResponseRules>>,
}

impl<'a> Evaluator<'a> {
    /// Runs the rules and redirects of the server, which come before files are looked for. Gives the path that is mapped in the
    /// place of the address; sections for addresses and redirects of folders go on with the address itself.
    fn before_mapping(
        &mut self,
        address: &mut Address,
        is_lookup: bool,
    ) -> Result<Option<Vec<u8>>, Verdict> {
        let common = &self.server.common.folder;
        let rewriting = self.server.rewriting.as_ref();
        let rewriting = rewriting.filter(|it| it.engine == Some(true));
        if rewriting.is_none() && self.server.redirects.is_empty() {
            return Ok(None);
        }
        let mut round = Round {
            visit: self.visit,
            disk: self.disk,
            method: if is_lookup { "GET" } else { self.visit.method },
            root: self.mounts.last().map_or(&[], |it| &it.folder),
            path: address.path.clone(),
            mapped: None,
            args: address.args.clone(),
            file: MappedFile {
                name: address.path.clone(),
                ..MappedFile::default()
            },
            variables: std::mem::take(&mut address.variables),
            is_redirected: address.is_redirected,
            is_lookup,
        };
        if !is_lookup {
            set_conditional_variables(&mut round, &common.environment.conditions);
        }
        let (rewritten, effects) = match rewriting {
            Some(rewriting) => rewrite(&mut round, rewriting),
            None => (Rewritten::Nothing, SideEffects::default()),
        };
        self.is_end |= effects.is_end;
        self.cookies.extend(effects.cookies);
        if !is_lookup {
            self.response = judged(&common.response, &round, &self.cookies);
        }
        if effects.handler == Some(false) {
            return Err(Verdict::refused(403));
        }
        let mapped = match rewritten {
            Rewritten::Nothing => {
                if let Some(verdict) = alias_redirect(&round, &self.server.redirects) {
                    return Err(verdict);
                }
                address.args = round.args;
                None
            }
            Rewritten::Refused(status) => return Err(Verdict::refused(status)),
            Rewritten::Redirect { status, location } => {
                return Err(Verdict::Redirect { status, location });
            }
            Rewritten::Internal { path, args } => {
                address.args = args;
                Some(resolved(&path).ok_or(Verdict::refused(404))?)
            }
        };
        address.variables = round.variables;
        Ok(mapped)
    }

    fn round(&mut self, mut address: Address, is_lookup: bool) -> Step {
        let mapped = match self.before_mapping(&mut address, is_lookup) {
            Ok(mapped) => mapped,
            Err(verdict) => return Step::Done(verdict),
        };
        let path = mapped.as_ref().unwrap_or(&address.path);
        let mount = self.mounts.iter().find(|it| is_below(path, &it.prefix));
        let Some(mount) = mount else {
            return Step::Done(Verdict::refused(404));
        };
        let walk = Walk {
            disk: self.disk,
            server: self.server,
        };
        let (file, mut settings) = match walk.to(mount, path, &address.path) {
            Ok(found) => found,
            Err(status) => return Step::Done(Verdict::refused(status)),
        };
        let mut round = Round {
            visit: self.visit,
            disk: self.disk,
            method: if is_lookup { "GET" } else { self.visit.method },
            root: &mount.folder,
            path: address.path,
            mapped,
            args: address.args,
            file,
            variables: address.variables,
            is_redirected: address.is_redirected,
            is_lookup,
        };
        if let Err(status) = merge_conditionals(&round, &mut settings) {
            return Step::Done(Verdict::refused(status));
        }
        if !is_lookup {
            set_conditional_variables(&mut round, &settings.environment.conditions);
            self.response = judged(&settings.response, &round, &self.cookies);
        }
        let name = round.file.name.rsplit(|byte| *byte == b'/').next();
        if name.is_some_and(|name| name.starts_with(b".ht")) {
            return Step::Done(Verdict::refused(403));
        }
        match access(&round, &settings) {
            Err(verdict) => return Step::Done(verdict),
            Ok(None) => {}
            Ok(Some(user)) => {
                round
                    .variables
                    .insert("REMOTE_USER".to_owned(), user.into_bytes());
                round
                    .variables
                    .insert("AUTH_TYPE".to_owned(), b"Basic".to_vec());
            }
        }
        self.fix_up(round, &mut settings)
    }

    /// Rewriting, redirects, the index of a folder: the steps between access and the content.
    fn fix_up(&mut self, mut round: Round<'_>, settings: &mut Settings) -> Step {
        let mut led = None;
        let mut handler = None;
        if let Some(rewriting) = settings.rewriting.as_ref().filter(|it| it.is_on()) {
            let folder = &rewriting.folder;
            let is_folder_itself = !rewriting.options.unwrap_or_default().allows_no_slash
                && folder.strip_suffix(b"/") == Some(&round.file.name);
            if !is_folder_itself && !self.is_end && !rewriting.rules.is_empty() {
                if !follows(settings.links, true) {
                    return Step::Done(Verdict::refused(403));
                }
                let (rewritten, effects) = rewrite(&mut round, rewriting);
                self.is_end |= effects.is_end;
                handler = effects.handler;
                if !effects.cookies.is_empty() && !round.is_lookup {
                    self.cookies.extend(effects.cookies);
                    self.response = judged(&settings.response, &round, &self.cookies);
                }
                match rewritten {
                    Rewritten::Nothing => {}
                    Rewritten::Refused(status) => return Step::Done(Verdict::refused(status)),
                    Rewritten::Redirect { status, location } => {
                        return Step::Done(Verdict::Redirect { status, location });
                    }
                    Rewritten::Internal { path, args } => led = Some((path, args)),
                }
            }
        }
        if let Some(verdict) = alias_redirect(&round, &settings.redirects) {
            return Step::Done(verdict);
        }
        let lacks_slash = round.file.is(FileKind::Folder) && !round.path.ends_with(b"/");
        // The slash comes first, before all rules.
        if lacks_slash && settings.folder.adds_slash != Some(false) {
            // With the arguments that rules have made.
            if let Some((_, args)) = led.take() {
                round.args = args;
            }
        }
        if let Some((path, args)) = led {
            // A handler that is no script's would answer.
            if handler == Some(false) {
                self.has_other_handler = true;
                return Step::Done(Verdict::refused(403));
            }
            return self.lead(round, settings, path, args);
        }
        if handler.is_some() {
            settings.scripts.handler = handler;
        }
        if round.file.is(FileKind::Folder) {
            if let Some(step) = self.folder(&mut round, settings) {
                return step;
            }
        } else if round.file.is(FileKind::Missing)
            && let Some(fallback) = settings.folder.fallback.as_deref()
            && !matches!(fallback, "" | "disabled")
            // A path with a handler has no fallback.
            && settings.scripts.handler.is_none()
            && !is_script(&round.file.name)
            && let Some(step) = self.fallback(&round, fallback)
        {
            return step;
        }
        Step::Done(self.target(round, settings))
    }

    /// Goes on with another path of the site.
    fn lead(
        &self,
        round: Round<'_>,
        settings: &Settings,
        path: Vec<u8>,
        args: Option<Vec<u8>>,
    ) -> Step {
        let Some(next) = resolved(&path) else {
            return Step::Done(Verdict::refused(404));
        };
        let mut variables = round.variables;
        set_script_variables(&mut variables, settings);
        let mut variables: Variables = variables
            .into_iter()
            .map(|(name, value)| (format!("REDIRECT_{name}"), value))
            .collect();
        if variables.values().map(Vec::len).sum::<usize>() > 64 << 10 {
            return Step::Done(Verdict::refused(500));
        }
        variables.insert("REDIRECT_STATUS".to_owned(), b"200".to_vec());
        variables.insert("REDIRECT_URL".to_owned(), round.path);
        if let Some(args) = &round.args {
            variables.insert("REDIRECT_QUERY_STRING".to_owned(), args.clone());
        }
        Step::Again(Address {
            path: next,
            args,
            variables,
            is_redirected: true,
        })
    }

    /// A folder: its slash, and its index. `None`: neither ends the round.
    fn folder(&mut self, round: &mut Round<'_>, settings: &Settings) -> Option<Step> {
        if !round.path.ends_with(b"/") {
            if settings.folder.adds_slash == Some(false) {
                return Some(Step::Done(Verdict::refused(403)));
            }
            let mut location = escaped(&round.path);
            location.push(b'/');
            if let Some(args) = &round.args {
                location.push(b'?');
                location.extend_from_slice(args);
            }
            let status = 301;
            return Some(Step::Done(Verdict::Redirect { status, location }));
        }
        if !matches!(self.visit.method, "GET" | "HEAD" | "POST" | "OPTIONS") {
            return Some(Step::Done(Verdict::refused(405)));
        }
        let indexes = match &settings.folder.indexes {
            Some(indexes) => indexes,
            None => self.visit.indexes,
        };
        let mut refusal = None;
        for index in indexes.iter().filter(|it| *it != "disabled") {
            let path = match index.starts_with('/') {
                true => index.as_bytes().to_vec(),
                false => [&round.path[..], index.as_bytes()].concat(),
            };
            match self.lookup(round, &path) {
                Lookup::File(step) => return Some(step),
                Lookup::Missing => {}
                Lookup::Refused(verdict) => match verdict {
                    Verdict::Refused { status: 401, .. } | Verdict::Redirect { .. } => {
                        return Some(Step::Done(verdict));
                    }
                    verdict if self.has_other_handler => return Some(Step::Done(verdict)),
                    verdict => refusal = Some(verdict),
                },
            }
        }
        let lists = settings.folder.lists.unwrap_or(!self.server.is_given);
        if refusal.is_none() && lists && self.visit.lists_folders && !settings.folder.hides_names {
            return None;
        }
        Some(Step::Done(refusal.unwrap_or_else(|| Verdict::refused(403))))
    }

    fn fallback(&mut self, round: &Round<'_>, fallback: &str) -> Option<Step> {
        let base = round
            .path
            .iter()
            .rposition(|byte| *byte == b'/')
            .unwrap_or(0);
        let path = match fallback.starts_with('/') {
            true => fallback.as_bytes().to_vec(),
            false => [&round.path[..=base], fallback.as_bytes()].concat(),
        };
        match self.lookup(round, &path) {
            Lookup::File(step) => Some(step),
            Lookup::Missing => None,
            Lookup::Refused(verdict) => Some(Step::Done(verdict)),
        }
    }

    /// Looks at the file that would answer in the place of a folder or of a path without a file.
    fn lookup(&mut self, round: &Round<'_>, path: &[u8]) -> Lookup {
        let Some(path) = resolved(path) else {
            return Lookup::Missing;
        };
        let mount = self.mounts.iter().find(|it| is_below(&path, &it.prefix));
        let is_file = mount.is_some_and(|mount| {
            let below = path.get(mount.prefix.len()..).unwrap_or_default();
            let facts = self.disk.look(&[&mount.folder[..], b"/", below].concat());
            facts.kind == FileKind::File
        });
        if self.depth >= MAX_REDIRECTS || self.lookups >= MAX_LOOKUPS {
            return Lookup::Refused(Verdict::refused(500));
        }
        // A lookup has rules of its own to end.
        let is_end = std::mem::take(&mut self.is_end);
        let response = self.response.clone();
        self.lookups += 1;
        self.depth += 1;
        let step = self.round(
            Address {
                path,
                args: round.args.clone(),
                variables: round.variables.clone(),
                is_redirected: round.is_redirected,
            },
            true,
        );
        self.depth -= 1;
        self.is_end = is_end;
        let is_answer = matches!(step, Step::Done(Verdict::Target(_)) if is_file);
        if !is_answer {
            self.response = response;
        }
        match step {
            Step::Done(Verdict::Target(_)) | Step::Again(_) if !is_file => Lookup::Missing,
            Step::Done(Verdict::Refused { status: 404, .. }) => Lookup::Missing,
            Step::Done(Verdict::Target(target)) => {
                Lookup::File(Step::Done(Verdict::Target(Target {
                    is_changed: true,
                    ..target
                })))
            }
            Step::Done(refusal) => Lookup::Refused(refusal),
            again => Lookup::File(again),
        }
    }

    /// The file, or the script.
    fn target(&mut self, round: Round<'_>, settings: &Settings) -> Verdict {
        self.response = judged(&settings.response, &round, &self.cookies);
        let is_file = round.file.is(FileKind::File);
        if is_file && !may_run(&round.file.name, settings) {
            return Verdict::refused(403);
        }
        // Only scripts take the path behind a file.
        if is_file && !round.file.path_info.is_empty() && !is_script(&round.file.name) {
            return Verdict::refused(404);
        }
        let is_led = settings
            .rewriting
            .as_ref()
            .is_some_and(|it| it.is_on() && !it.rules.is_empty());
        let has_fallback = settings.folder.fallback.is_some();
        let mut variables = round.variables;
        set_script_variables(&mut variables, settings);
        let args = round.args.unwrap_or_default();
        let path = round.mapped.unwrap_or(round.path);
        let is_changed = round.is_redirected || path != self.visit.path || args != self.visit.args;
        Verdict::Target(Target {
            is_changed,
            is_missing: round.file.is(FileKind::Missing) && (is_led || has_fallback),
            path,
            args,
            variables: variables.into_iter().collect(),
        })
    }
}

enum Lookup {
    File(Step),
    Missing,
    Refused(Verdict),
}

fn is_below(path: &[u8], prefix: &[u8]) -> bool {
    path.starts_with(prefix) || prefix.strip_suffix(b"/") == Some(path)
}

fn extensions(file: &[u8]) -> Vec<String> {
    let name = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    name.split('.').skip(1).map(str::to_owned).collect()
}

fn is_script(file: &[u8]) -> bool {
    extensions(file).last().is_some_and(|it| {
        let version = it.strip_prefix("php");
        SCRIPT_EXTENSIONS.contains(&it.as_str())
            || version.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Whether a script may run: it does unless a rule forbids scripts, and is not shown as text then.
fn may_run(file: &[u8], settings: &Settings) -> bool {
    let last = extensions(file).pop().unwrap_or_default();
    !is_script(file) || settings.scripts.run(&last)
}

/// Merges the `<If>` sections whose conditions hold.
fn merge_conditionals(round: &Round<'_>, settings: &mut Settings) -> Result<(), u16> {
    let mut at = 0;
    // Sections within sections add to the list.
    while let Some(conditional) = settings.conditional.get(at).cloned() {
        at += 1;
        if at > 1000 {
            return Err(500);
        }
        if let Some(found) = branch(round, &conditional)? {
            settings.merge(&found);
        }
    }
    Ok(())
}

fn branch(
    round: &Round<'_>,
    conditional: &Conditional,
) -> Result<Option<Cow<'static, Settings>>, u16> {
    if let Some(names) = &conditional.names {
        let name = round.file.name.rsplit(|byte| *byte == b'/').next();
        if !names.holds(name.unwrap_or_default(), conditional.closes) {
            return Ok(None);
        }
    }
    for (expression, settings) in &conditional.branches {
        let holds = match expression {
            None => Some(true),
            Some(expression) => expression.holds(&mut round.scope()),
        };
        match holds {
            Some(true) => return Ok(Some(Cow::Owned(Settings::clone(settings)))),
            Some(false) => {}
            None if conditional.closes => return Err(403),
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// `Redirect` and `RedirectMatch`
fn alias_redirect(round: &Round<'_>, redirects: &[Arc<AliasRedirect>]) -> Option<Verdict> {
    for redirect in redirects {
        let Some(location) = redirect.target(&round.path, round.args.as_deref()) else {
            continue;
        };
        if !(300..400).contains(&redirect.status) {
            return Some(Verdict::refused(redirect.status));
        }
        if scheme_bytes(&location).is_none() && !location.starts_with(b"/")
            || location.iter().any(|byte| *byte <= b' ' || *byte == 127)
        {
            return Some(Verdict::refused(500));
        }
        return Some(Verdict::Redirect {
            status: redirect.status,
            location,
        });
    }
    None
}
