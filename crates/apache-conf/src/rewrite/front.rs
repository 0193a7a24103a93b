//! The front controller: `RewriteRule . /index.php [L]` for what is no file, which nginx writes as `try_files`.

use super::condition::{Surroundings, Test};
use super::rule::{Action, Condition, Rule};
use super::target::{TargetMode, TargetText};
use crate::patterns::{is_everything, matches};

/// A script that answers for paths that are no files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontController {
    /// Its path, with a slash at the begin.
    pub script: String,
    /// What the rule leads to, as an argument of `try_files`, or of a `rewrite` of the whole path where it names what was
    /// captured.
    pub target: String,
    /// The pattern of that `rewrite`.
    pub pattern: Option<String>,
    /// Folders are handed out as such.
    pub keeps_folders: bool,
    /// Paths that are no files and not for it, either.
    pub without: Vec<String>,
}

impl FrontController {
    /// `base`: the path of the folder of the rule. `None` where the rule is another one.
    pub fn of(rule: &Rule, base: &str, target_base: &str) -> Option<FrontController> {
        let flags = &rule.flags;
        let is_plain = flags.action == Action::Internal
            && !rule.is_negated
            && !rule.is_without_target()
            && !flags.is_chained
            && flags.skips == 0
            && flags.unknown.is_empty()
            && is_for_all(&rule.pattern);
        if !is_plain || base.is_empty() {
            return None;
        }
        let text = TargetText::of(rule, target_base, TargetMode::Internal, None).ok()?;
        let script = text.path().to_owned();
        if script.contains('$') && !script.contains("/$1") {
            return None;
        }
        let script_file = script.split("/$").next().unwrap_or_default().to_owned();
        if !script_file.starts_with('/') || script_file.contains('$') || script_file.ends_with('/')
        {
            return None;
        }
        let mut front = FrontController {
            script: script_file,
            target: match text.has_captures() {
                true => text.for_rewrite(),
                false => text.for_try_files(),
            },
            pattern: text
                .has_captures()
                .then(|| crate::patterns::of_path(base, &rule.pattern, false)),
            keeps_folders: false,
            without: Vec::new(),
        };
        let mut keeps_files = false;
        for condition in &rule.conditions {
            match front.condition(condition)? {
                Kind::Files => keeps_files = true,
                Kind::Folders => front.keeps_folders = true,
                Kind::Other => {}
            }
        }
        keeps_files.then_some(front)
    }

    fn condition(&mut self, condition: &Condition) -> Option<Kind> {
        let subject = condition.subject.to_ascii_uppercase();
        if condition.has_alternative || !condition.is_negated {
            return None;
        }
        match (subject.as_str(), condition.pattern.as_str()) {
            (
                "%{REQUEST_FILENAME}" | "%{SCRIPT_FILENAME}" | "%{DOCUMENT_ROOT}%{REQUEST_URI}",
                file,
            ) => match file {
                "-f" | "-s" => Some(Kind::Files),
                "-d" => Some(Kind::Folders),
                "-l" | "-L" | "-h" => Some(Kind::Other),
                _ => None,
            },
            ("%{REQUEST_URI}", pattern) => match pattern.strip_prefix('=') {
                Some(path) if path.starts_with('/') && !path.contains(['$', '"', ' ']) => {
                    self.without.push(path.to_owned());
                    Some(Kind::Other)
                }
                Some(_) => None,
                // Its own path is a file.
                None if matches(pattern, &self.script) == Some(true)
                    && is_only(pattern, &self.script) =>
                {
                    Some(Kind::Other)
                }
                None => None,
            },
            _ => {
                let around = Surroundings {
                    is_environment: &|_| false,
                    path_variable: "uri",
                };
                matches!(Test::of(condition, &around), Ok(Test::Always)).then_some(Kind::Other)
            }
        }
    }
}

enum Kind {
    Files,
    Folders,
    Other,
}

/// Does a rule with this pattern hold for each path in its folder, but perhaps for the folder itself?
pub fn is_for_all(pattern: &str) -> bool {
    is_everything(pattern) && pattern != "/" && pattern != "^/.*$"
        || ["^(.+)$", "(.+)", "^.+$", ".+", "^(.*)", "(.*)$", "^."].contains(&pattern)
}

/// Is the pattern one that fits this path and such as begin with it?
fn is_only(pattern: &str, path: &str) -> bool {
    let literal = crate::patterns::literal(path);
    let pattern = pattern.strip_prefix('^').unwrap_or_default();
    pattern == literal || pattern.strip_suffix('$') == Some(&literal)
}

/// Does a rule let the front controller's own path pass, and no other?
pub fn passes_only(rule: &Rule, base: &str, front: &FrontController) -> bool {
    let pattern = crate::patterns::of_path(base, &rule.pattern, rule.flags.is_caseless);
    rule.is_without_target()
        && rule.flags.action == Action::Internal
        && !rule.is_negated
        && is_only(&pattern, &front.script)
}
