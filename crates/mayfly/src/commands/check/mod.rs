//! `-t`, `-T`, `check`: reads a configuration as a start would, reports all its mistakes, and starts
//! nothing. `check` also reports unsafe parts.

mod json;
mod mend;
mod report;
mod sarif;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use live_state::cache_zones::ExcessiveMemory;
use live_state::server_tls;
use live_state::tls_files::TlsFiles;
use purge_order::token;

use self::report::CheckReport;
use crate::cli::{CheckArgs, Flags, ReportFormat};
use crate::commands::unit_writes::UnitDenial;
use crate::config::{self, AcceptedConfiguration, Invocation};
use crate::paths;
use crate::processes::account;
use crate::processes::certificates;
use crate::processes::logs::{self, LogFiles};
use command_line::{Exit, print};

/// `-t` and, with `dump`, `-T`.
pub fn test(flags: &Flags, dump: bool) -> Exit {
    let invocation = Invocation::from_flags(flags);
    let path = invocation.path.display().to_string();
    let say = |message: &str| {
        let _ = writeln!(io::stderr(), "mayfly: {message}");
    };
    let accepted = match config::judge(invocation.read()) {
        Ok(accepted) => accepted,
        Err(rejected) => {
            config::show(&rejected.diagnostics, &rejected.sources);
            say(&format!("configuration file {path} test failed"));
            return Exit::Refused;
        }
    };
    config::show(&accepted.warnings, &accepted.sources);
    if !flags.quiet {
        say(&format!("the configuration file {path} syntax is ok"));
    }
    say_warnings(&accepted, &invocation.path);
    let problems = problems(&accepted, &invocation);
    if !problems.is_empty() {
        problems
            .iter()
            .for_each(|problem| say(&format!("[emerg] {problem}")));
        say(&format!("configuration file {path} test failed"));
        return Exit::Refused;
    }
    if !flags.quiet {
        say(&format!("configuration file {path} test is successful"));
    }
    if dump {
        dump_files(&accepted);
    }
    Exit::Done
}

/// Prints warnings about the configuration on this machine: who would serve and run PHP if root
/// started the server, whether the zones fit into the memory, and what the unit of the service denies.
fn say_warnings(accepted: &AcceptedConfiguration, file: &Path) {
    let excess = ExcessiveMemory::of(&accepted.site);
    let excess = excess.map(|excess| format!("{excess}; {}", excess.advice()));
    let accounts = account::shared_with_php(&accepted.site.process);
    let denied = UnitDenial::of_configuration(&accepted.site, file);
    let denied = denied.map(|denied| denied.warning());
    for message in accounts.into_iter().chain(excess).chain(denied) {
        let _ = writeln!(io::stderr(), "mayfly: [warn] {message}");
    }
}

/// Returns the problems that only the system shows: logs that cannot be opened, unknown users, bad
/// certificates.
fn problems(accepted: &AcceptedConfiguration, invocation: &Invocation) -> Vec<String> {
    let mut paths = logs::paths(&accepted.site);
    paths.extend(invocation.error_log_file());
    let mut problems = LogFiles::open(&paths).err().unwrap_or_default();
    problems.extend(account::to_serve(accepted.site.process.user.as_ref(), None).err());
    problems.extend(tls_problems(&accepted.site));
    problems
}

/// Returns the certificates that cannot be used. A certificate that is still to be issued is no
/// problem.
fn tls_problems(site: &site::Site) -> Vec<String> {
    let files = TlsFiles::default().with(certificates::files_for_test(site));
    server_tls::problems(site, &files)
}

/// Files of `cache_purge_token` that let no request in. The server starts with them all the same.
fn token_problems(site: &site::Site) -> Vec<String> {
    let locations = site.http.servers.iter().flat_map(|it| &it.locations);
    let files = locations.filter_map(|location| match &location.settings.content {
        site::Content::PurgeApi(api) => api.tokens.as_ref(),
        site::Content::Dashboard(dashboard) => dashboard.tokens.as_ref(),
        _ => None,
    });
    let files: BTreeSet<_> = files.collect();
    let problem = |file: &PathBuf| {
        let problem = token::problem(file)?;
        Some(format!(
            "cache_purge_token \"{}\" {problem}",
            file.display()
        ))
    };
    files.into_iter().filter_map(problem).collect()
}

fn dump_files(accepted: &AcceptedConfiguration) {
    let mut stdout = io::stdout().lock();
    for (path, text) in accepted.sources.files() {
        // A pipe that was closed wants no more.
        if write!(stdout, "# configuration file {}:\n{text}\n", path.display()).is_err() {
            return;
        }
    }
}

/// `check FILE`
pub fn check(args: &CheckArgs) -> Exit {
    let flags = Flags {
        conf: Some(paths::from_here(args.file.clone())),
        ..Flags::default()
    };
    let reading = Invocation::from_flags(&flags).read();
    let is_text = args.format == ReportFormat::Text;
    if args.explain && is_text {
        explain(&reading);
    }
    let mut report = CheckReport::of(&args.file, &reading);
    let mended = args.fix.then(|| mend::write(&report, args.in_place));
    match config::judge(reading) {
        Ok(accepted) => {
            if is_text {
                say_warnings(&accepted, &args.file);
            }
            report.problems = tls_problems(&accepted.site);
            report.problems.extend(token_problems(&accepted.site));
            report.notes = site::unkeyed_inputs(&accepted.site);
        }
        Err(_) => report.is_refused = true,
    }
    let exit = report.exit();
    let document = match args.format {
        ReportFormat::Text => {
            report.show_complaints();
            report.text(args.explain)
        }
        ReportFormat::Json => document(&json::report(&report)),
        ReportFormat::Sarif => document(&sarif::report(&report)),
    };
    print(&document);
    match mended {
        Some(Err(error)) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            Exit::Refused
        }
        Some(Ok(files)) => {
            for file in &files {
                let _ = writeln!(io::stderr(), "written: {}", file.display());
            }
            if files.is_empty() {
                let _ = writeln!(
                    io::stderr(),
                    "nothing has one right answer: no file was written"
                );
            }
            exit
        }
        None => exit,
    }
}

fn document(json: &serde_json::Value) -> String {
    format!("{json:#}\n")
}

/// Prints the effect of each directive, one line each.
fn explain(reading: &site::ReadConfiguration) {
    let mut stdout = io::stdout().lock();
    for line in site::explain(&reading.ast, &reading.sources, &reading.complaints) {
        // A pipe that was closed wants no more.
        if writeln!(stdout, "{line}").is_err() {
            return;
        }
    }
}
