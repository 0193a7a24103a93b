//! `mayfly purge`: finds the running server by its control socket, and has it purge. If none runs, the purge is
//! written down for its next start.

use std::path::PathBuf;

use control::{PurgeReport, PurgeRequest};
use purge_order::token;
use purge_order::while_stopped::{self, KeptFolders};

use crate::cli::PurgeArgs;
use crate::commands::running_server::{self, configuration_at_hand, explained, find, is_named};
use crate::paths;
use command_line::{Exit, complain, print, printable};

/// Folders that a message names.
const SHOWN_FOLDERS: usize = 3;

pub fn run(args: &PurgeArgs) -> Exit {
    if let Some(name) = &args.new_token {
        return new_token(name);
    }
    let request = PurgeRequest {
        urls: args.urls.clone(),
        tags: args.tag.clone(),
        prefixes: args.prefix.clone(),
        patterns: args.pattern.clone(),
        hosts: args.host.clone(),
        everything: args.all,
        soft: args.soft,
        dry_run: args.dry_run,
    };
    running_server::run(async {
        let done = match find(&args.server, &urls_of(args)).await {
            Ok(path) => {
                let done = control::client::purge(&path, &request).await;
                done.map_err(|error| explained(&path, &error))
            }
            Err(failure) => Err(failure),
        };
        match done {
            Ok(report) => Ok(print(&match args.json {
                true => report.to_json() + "\n",
                false => table(&report),
            })),
            Err((Exit::NoServer, message)) => Ok(while_stopped(args, &request, &message)),
            Err(failure) => Err(failure),
        }
    })
}

/// Returns the URLs by which one of several servers is chosen.
fn urls_of(args: &PurgeArgs) -> Vec<String> {
    let written = args.urls.iter().chain(&args.prefix);
    let hosts = args.host.iter().map(|host| format!("http://{host}/"));
    let whole = written.filter(|url| url.contains("://")).cloned();
    whole.chain(hosts).collect()
}

/// Purges pages on disk while no server runs: the next start applies it. `no_server` is the message that none
/// runs.
fn while_stopped(args: &PurgeArgs, request: &PurgeRequest, no_server: &str) -> Exit {
    if request.dry_run {
        return complain(Exit::NoServer, no_server);
    }
    let configuration = configuration_at_hand(&args.server);
    let of_site = configuration.map(|it| KeptFolders::of_site(&it.site));
    let of_served = (!is_named(&args.server))
        .then(|| KeptFolders::of_served(&paths::cache(), serve_folder::ignored_arguments()));
    let kept: Vec<KeptFolders> = of_site.into_iter().chain(of_served).collect();
    let done = match while_stopped::write_down(&kept, request) {
        Ok(done) => done,
        Err(refusal) => return complain(Exit::Refused, &refusal.to_string()),
    };
    if let Some(failure) = done.failures.first() {
        return complain(Exit::NoServer, &format!("{no_server}; {failure}"));
    }
    if done.folders.is_empty() {
        return complain(Exit::NoServer, no_server);
    }
    print(&format!(
        "No server runs. The purge is written down in {}: it holds from the next start on\n",
        named(&done.folders)
    ))
}

/// The first of these folders, and how many more there are.
fn named(folders: &[PathBuf]) -> String {
    let (shown, left) = folders.split_at(folders.len().min(SHOWN_FOLDERS));
    let shown: Vec<String> = shown.iter().map(|it| it.display().to_string()).collect();
    match left.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn new_token(name: &str) -> Exit {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || !name.chars().all(is_name) {
        let message = format!("{name}: expected a name of letters, digits, -, _ and .");
        return complain(Exit::Refused, &message);
    }
    match token::new(name) {
        Ok((token, line)) => print(&format!(
            "Token, for the program that purges (it is shown once):\n  {token}\n\
             Line for the file of cache_purge_token:\n  {line}\n"
        )),
        Err(error) => complain(Exit::Refused, &error.to_string()),
    }
}

/// A report for people.
fn table(report: &PurgeReport) -> String {
    let count = report.responses();
    let responses = if count == 1 { "response" } else { "responses" };
    let done = match (report.dry_run, report.soft) {
        (true, _) => "Would purge",
        (false, true) => "Marked stale",
        (false, false) => "Purged",
    };
    let mut text = format!(
        "{done} {count} stored {responses} in {:.1} ms\n",
        report.milliseconds
    );
    for target in &report.targets {
        let name: String = target.text.chars().map(printable).collect();
        let (kind, count) = (target.kind.word(), target.responses);
        text.push_str(&format!("{count:>9}  {kind:<10}  {name}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::{TargetKind, TargetReport};

    #[test]
    fn a_report_is_a_table() {
        let target = |kind, text: &str, responses| TargetReport {
            kind,
            text: text.to_owned(),
            responses,
        };
        let mut report = PurgeReport {
            soft: false,
            dry_run: false,
            targets: vec![
                target(TargetKind::Url, "https://example.org/", 2),
                target(TargetKind::Tag, "a\u{1b}[2J", 1),
            ],
            zones: Vec::new(),
            milliseconds: 0.4,
        };
        assert_eq!(
            table(&report),
            "Purged 3 stored responses in 0.4 ms\n\
             \x20       2  url         https://example.org/\n\
             \x20       1  tag         a?[2J\n"
        );
        report.targets.truncate(0);
        report.dry_run = true;
        assert_eq!(table(&report), "Would purge 0 stored responses in 0.4 ms\n");
    }
}
