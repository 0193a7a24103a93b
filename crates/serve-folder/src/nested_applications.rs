//! Applications in folders of the document root, such as a WordPress in `/blog`: who answers
//! there for paths that are no files, which of its paths are personal or refused, and which
//! of its scripts run. If the application of the document root has rules of its own, both
//! hold.

use super::applications::{Cookies, PHP, Rules, Scripts, rules};
use super::conf_text::{Conf, Refusals as _, list};
use super::detect::{DetectedSite, NestedApplication};
use super::kind::SiteKind;
use super::options::GuestSessions;

/// The named location that chooses between the applications.
pub(super) const FALLBACK: &str = "@application";

/// The rules of the document root's application. A cookie that one of the others may read
/// means something unless all of them are known.
pub(super) fn with_others(own: Rules, nested: &[NestedApplication]) -> Rules {
    let mut others = nested.iter().filter_map(|it| rules(it.kind));
    let are_all_known = own.cookies.are_all_known && others.all(|it| it.cookies.are_all_known);
    Rules {
        cookies: Cookies {
            are_all_known,
            ..own.cookies
        },
        ..own
    }
}

/// Writes the personal cookies and paths of the nested applications, beside those of the
/// document root's.
pub(super) fn personal(conf: &mut Conf, nested: &[NestedApplication], sessions: GuestSessions) {
    for (application, rules) in with_rules(nested) {
        conf.note(&format!(
            "{} in {}.",
            application.kind.name(),
            application.path
        ));
        list(conf, "cache_personal_cookies", rules.cookies.personal);
        list(conf, "cache_key_cookies", rules.cookies.key);
        let paths = rules.personal_paths(sessions);
        if !paths.is_empty() {
            let pattern = format!(
                "\"~*^{}/(?:.*/)?(?:{})(?:/|$)\"",
                pattern(&application.path),
                paths.join("|")
            );
            conf.line(&format!("cache_personal_paths {pattern};"));
        }
        list(conf, "cache_personal_args", rules.arguments);
    }
}

/// Writes the paths of nested applications that are refused to all, and which of their
/// scripts run.
pub(super) fn refused_and_scripts(
    conf: &mut Conf,
    nested: &[NestedApplication],
    own: Option<Scripts>,
    mut run: impl FnMut(&mut Conf, &str),
) {
    for (application, rules) in with_rules(nested) {
        let path = pattern(&application.path);
        conf.note(&format!(
            "{} in {}.",
            application.kind.name(),
            application.path
        ));
        for (why, refused) in rules.refused {
            conf.refuse(why, &refused.replace("^/", &format!("^{path}/")));
        }
        match (rules.scripts, own) {
            (Scripts::Only(scripts), _) => {
                run(conf, &scripts.replace("^/", &format!("^{path}/")));
                conf.refuse("A script that is not visited.", &format!("^{path}/.*{PHP}"));
            }
            (Scripts::All, Some(Scripts::Only(_))) => {
                run(conf, &format!("^{path}/.*\\.php(?:/|$)"));
            }
            (Scripts::All, _) => {}
        }
    }
}

/// The location that a path which is no file leads to.
pub(super) fn fallback(conf: &mut Conf, found: &DetectedSite) {
    conf.note("Who answers for paths that are no files.");
    conf.open(&format!("location {FALLBACK}"));
    for application in &found.nested {
        let script = match application.kind {
            SiteKind::DokuWiki => "doku.php",
            _ => "index.php",
        };
        let (path, pattern) = (&application.path, pattern(&application.path));
        conf.line(&format!(
            "rewrite \"^{pattern}(?:/|$)\" {path}/{script} last;"
        ));
    }
    match found.front_controller {
        Some(script) => conf.line(&format!("rewrite ^ {script} last;")),
        None => conf.line("return 404;"),
    }
    conf.close();
    conf.gap();
}

fn with_rules(nested: &[NestedApplication]) -> impl Iterator<Item = (&NestedApplication, Rules)> {
    nested.iter().filter_map(|it| Some((it, rules(it.kind)?)))
}

/// The path in a pattern: letters, digits, `-`, `_` and `.` are all it holds.
fn pattern(path: &str) -> String {
    path.replace('.', "\\.")
}
