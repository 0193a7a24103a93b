//! `mayfly doctor`: is this machine set up for the server, and is the configuration safe? Changes nothing.

mod hazards;
mod kept;
mod nodes;
mod served;
mod subject;

use std::path::Path;

use machine_check::{Finding, Severity};

use crate::cli::{DoctorArgs, Flags};
use crate::commands::unit_writes::UnitDenial;
use crate::config::{self, Invocation};
use command_line::{Exit, print, printable};

pub fn run(args: &DoctorArgs) -> Exit {
    let flags = Flags::of_configuration(args.conf.as_ref(), args.prefix_folder.as_ref());
    let root = args.root.as_deref().unwrap_or(Path::new("/"));
    let is_asked_for = args.conf.is_some() || args.prefix_folder.is_some();
    let mut findings = Vec::new();
    if is_asked_for || flags.conf().exists() {
        match config::judge(Invocation::from_flags(&flags).read()) {
            Ok(accepted) => {
                let subject = subject::of(&accepted.site, root);
                findings.extend(machine_check::check(root, &subject));
                findings.extend(hazards::check(&accepted.site, root));
                findings.extend(kept::check(&accepted.site, root));
                let denied = UnitDenial::of_installed(&accepted.site, root);
                findings.extend(denied.map(|denied| denied.finding()));
                if root == Path::new("/") {
                    findings.extend(nodes::check(&accepted.site));
                }
            }
            Err(rejected) => {
                config::show(&rejected.diagnostics, &rejected.sources);
                return Exit::Refused;
            }
        }
    } else {
        findings.extend(machine_check::check(
            root,
            &subject::without_configuration(),
        ));
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let text = match args.json {
        // Texts are always JSON.
        true => serde_json::to_string_pretty(&findings).unwrap_or_default() + "\n",
        false => findings.iter().map(shown).collect(),
    };
    print(&text);
    exit(&findings)
}

/// Notes are no reason to fail.
fn exit(findings: &[Finding]) -> Exit {
    match findings.iter().map(|finding| finding.severity).max() {
        None | Some(Severity::Note) => Exit::Done,
        Some(Severity::Warning) => Exit::Warnings,
        Some(Severity::Error) => Exit::Errors,
    }
}

/// A finding for people. Names of files are in it, which strangers may have chosen.
fn shown(finding: &Finding) -> String {
    let text = |text: &str| text.chars().map(printable).collect::<String>();
    format!(
        "{}: {} [{}]\n  why:  {}\n  mend: {}\n\n",
        finding.severity.word(),
        text(&finding.what),
        finding.name,
        text(&finding.why),
        text(&finding.mend)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_that_of_the_worst() {
        let (note, warning, error) = (
            Finding::note("a", "a"),
            Finding::warning("b", "b"),
            Finding::error("c", "c"),
        );
        for (findings, expected) in [
            (vec![], Exit::Done),
            (vec![note.clone()], Exit::Done),
            (vec![note.clone(), warning.clone()], Exit::Warnings),
            (vec![error, warning, note], Exit::Errors),
        ] {
            assert_eq!(exit(&findings), expected);
        }
    }

    #[test]
    fn a_finding_is_what_why_and_a_command() {
        let finding = Finding::error("secret", "a\u{1b}[2J")
            .because("b")
            .mended_by("rm a");
        assert_eq!(
            shown(&finding),
            "error: a?[2J [secret]\n  why:  b\n  mend: rm a\n\n"
        );
    }
}
