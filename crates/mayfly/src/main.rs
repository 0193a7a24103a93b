//! The program: the command line becomes a [`cli::Command`], and each command is one function of [`commands`]. A
//! start goes on in [`processes::supervisor`].
//!
//! ```text
//! cli -> config (read, judge) -> supervisor: signals, pid file
//!                                  |
//!                                activation: logs, sockets, pools, then
//!                                  |
//!                                backend: serving (threads of this process), or
//!                                worker_handle: worker_process (as another user)
//! ```

mod cli;
mod commands;
mod config;
mod paths;
mod processes;

use std::cell::OnceCell;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::io::{self, Write};
use std::process::ExitCode;
use std::rc::Rc;

use cli::{Action, Command, Flags, Refusal, ServeArgs, Word};
use command_line::{Exit, print};
use commands::serve_dashboard::Token;
use commands::unit_writes::UnitDenial;
use config::{AcceptedConfiguration, Invocation};
use inherited_files::InheritedFiles;
use processes::account::Account;
use processes::journal::Journal;
use processes::passed_sockets;
use processes::supervisor::Plan;
use processes::upgrade::predecessor::Predecessor;
use processes::upgrade::program::StartedProgram;
use processes::upgrade::wire::InheritedResources;

/// jemalloc: under many connections it keeps less than the system's allocator,
/// and gives back what it does not need (settings in `.cargo/config.toml`).
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // This comes first: memory allocated before it lies in huge pages.
    huge_pages::begin_without();
    let inherited = inherited_files::keep_from_others();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let program = StartedProgram::of_this_process();
    let exit = match cli::parse(&arguments) {
        Ok(command) => run(command, Start::of(program, inherited)),
        Err(Refusal::Flags(message)) => {
            complain(&format!("mayfly: {message}\n"));
            Exit::Refused
        }
        Err(Refusal::Words(message)) => {
            complain(&message);
            Exit::Usage
        }
    };
    exit.into()
}

/// The facts of a start for the commands that serve.
struct Start {
    program: StartedProgram,
    /// The inherited descriptors, which they close.
    inherited: InheritedFiles,
    /// They take the place of another program.
    predecessor: Option<(Predecessor, InheritedResources)>,
}

impl Start {
    fn of(program: StartedProgram, inherited: InheritedFiles) -> Start {
        Start {
            program,
            inherited,
            predecessor: None,
        }
    }
}

fn run(command: Command, start: Start) -> Exit {
    match command {
        Command::Flags(flags, action) => run_flags(&flags, action, start),
        Command::Detached(flags) => start_detached(&flags, start),
        Command::Worker => {
            start.inherited.close();
            processes::worker_process::run()
        }
        Command::Successor(command) => succeed(*command, start),
        Command::Word(word, line) => run_word(word, &line, start),
        Command::Manual(folder) => match cli::write_manual(&folder) {
            Ok(()) => Exit::Done,
            Err(error) => {
                complain(&format!("mayfly: {}: {error}\n", folder.display()));
                Exit::Refused
            }
        },
        Command::Text(text) => print(&text),
    }
}

fn run_word(word: Word, line: &[OsString], start: Start) -> Exit {
    match word {
        Word::Serve(args) => serve_folder(&args, start),
        Word::Check(args) => commands::check::check(&args),
        Word::Convert(args) => commands::convert::run(&args),
        Word::Explain(args) => commands::explain::run(&args),
        Word::Purge(args) => commands::purge::run(&args),
        Word::Warm(args) => commands::warm::run(&args),
        Word::Top(args) => commands::top::run(&args),
        // The running server is asked.
        Word::Advise(args) if args.learned => commands::noisy_statements::run(&args),
        Word::Advise(_) | Word::Bench(_) => commands::tools::run(line, start.inherited),
        Word::Doctor(args) => commands::doctor::run(&args),
        Word::Upgrade(args) => commands::upgrade::run(&args),
        Word::Nodes(args) => commands::nodes::run(&args),
        Word::Run(args) => commands::run::run(&args, start.inherited),
        Word::Cache(word) => commands::cache::run(&word),
        Word::Version => print(&cli::version_text()),
    }
}

/// Carries out the command of the running program in its place.
fn succeed(command: Command, start: Start) -> Exit {
    match Predecessor::meet() {
        Ok(met) => run(
            command,
            Start {
                predecessor: Some(met),
                ..start
            },
        ),
        Err(message) => {
            complain(&format!("mayfly: {message}\n"));
            Exit::Refused
        }
    }
}

fn run_flags(flags: &Flags, action: Action, start: Start) -> Exit {
    match action {
        Action::Run => begin(flags, start),
        Action::Test { dump } => commands::check::test(flags, dump),
        Action::Signal(name) => commands::signal::send(flags, name),
        Action::Version => show(&cli::nginx_version_line()),
        Action::Build => show(&cli::build_text()),
        Action::Help => show(&format!(
            "{}{}",
            cli::nginx_version_line(),
            cli::flags_help()
        )),
    }
}

/// Shows a text on stderr, as nginx does.
fn show(text: &str) -> Exit {
    complain(text);
    Exit::Done
}

/// Text for the terminal; stderr may be closed.
fn complain(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn begin(flags: &Flags, mut start: Start) -> Exit {
    let invocation = Invocation::from_flags(flags);
    let (journal, accepted) = match read(&invocation, start.predecessor.as_ref()) {
        Ok(read) => read,
        Err(exit) => return exit,
    };
    let passed = passed_sockets::take(&mut start.inherited, &journal);
    start.inherited.close();
    // A predecessor has left the terminal already, so that there is none to leave; a service manager watches this
    // process.
    let leaves_terminal = start.predecessor.is_none() && !processes::service_manager::is_there();
    if accepted.site.process.daemon && leaves_terminal {
        return processes::daemon::detach(flags, &start.program).unwrap_or_else(|error| {
            journal.emerg(format_args!("could not leave the terminal: {error}"));
            Exit::Refused
        });
    }
    let plan = Plan {
        invocation,
        writes_pid_file: true,
        control_socket: None,
        when_ready: Box::new(|_| ()),
        program: start.program,
        predecessor: start.predecessor,
        passed,
    };
    serve_until_the_end(plan, journal, accepted)
}

fn start_detached(flags: &Flags, start: Start) -> Exit {
    start.inherited.close();
    let invocation = Invocation::from_flags(flags);
    let (journal, accepted) = match read(&invocation, None) {
        Ok(read) => read,
        Err(exit) => return exit,
    };
    if let Err(error) = processes::daemon::begin_session() {
        journal.warn(format_args!("setsid() failed: {error}"));
    }
    let own = journal.clone();
    let when_ready = move |_: Option<&Account>| {
        if let Err(error) = processes::daemon::leave_terminal() {
            own.warn(format_args!("the terminal could not be left: {error}"));
        }
    };
    let plan = Plan {
        invocation,
        writes_pid_file: true,
        control_socket: None,
        when_ready: Box::new(when_ready),
        program: start.program,
        predecessor: None,
        passed: Vec::new(),
    };
    serve_until_the_end(plan, journal, accepted)
}

/// Reads the configuration. Mistakes are shown and logged, and reported to the program whose place would be taken.
fn read(
    invocation: &Invocation,
    predecessor: Option<&(Predecessor, InheritedResources)>,
) -> Result<(std::sync::Arc<Journal>, AcceptedConfiguration), Exit> {
    let journal = Journal::new(invocation.error_log_file());
    match config::judge(invocation.read()) {
        Ok(accepted) => {
            config::show(&accepted.warnings, &accepted.sources);
            if let Some(denied) = UnitDenial::of_this_service(&accepted.site) {
                journal.warn(denied.warning());
            }
            Ok((journal, accepted))
        }
        Err(rejected) => {
            config::show(&rejected.diagnostics, &rejected.sources);
            processes::supervisor::log_refusal(&journal, &rejected);
            if let Some((predecessor, _)) = predecessor {
                let lines = config::lines(&rejected.diagnostics, &rejected.sources);
                let lines: Vec<String> = lines.map(|(_, line)| line).collect();
                predecessor.refuse(&lines);
            }
            Err(Exit::Refused)
        }
    }
}

fn serve_folder(args: &ServeArgs, mut start: Start) -> Exit {
    let passed = passed_sockets::take(&mut start.inherited, &Journal::default());
    start.inherited.close();
    let serve = match commands::serve::prepare(args) {
        Ok(serve) => serve,
        Err(message) => return refuse(start.predecessor, message),
    };
    if args.print_config {
        return print(&serve.text);
    }
    let inherited = start.predecessor.as_ref();
    let inherited = inherited.map_or_else(HashSet::new, |(_, it)| it.addresses());
    let takes_over = start.predecessor.is_some();
    let free = serve.dashboard.as_ref();
    if let Some(Err(message)) =
        free.map(|it| commands::serve_dashboard::expect_free(it, &inherited))
    {
        return refuse(start.predecessor, message);
    }
    let home_file = serve.home.as_ref().map(|home| home.write()).transpose();
    let _removed_at_the_end = match home_file {
        Ok(file) => file,
        Err(message) => {
            complain(&format!("mayfly: {message}\n"));
            return Exit::Refused;
        }
    };
    let invocation = serve.invocation();
    match read(&invocation, start.predecessor.as_ref()) {
        Ok((journal, accepted)) => {
            let control_socket = serve.control_socket();
            let cache = paths::cache();
            commands::serve_cache::note_site(&accepted.site, &cache, &serve.served);
            let log = journal.clone();
            let say = move |line| log.notice(line);
            commands::serve_cache::remove_unused(&accepted.site, &cache, say);
            // Kept until the end, with which it is forgotten.
            let token = Rc::new(OnceCell::new());
            let made = token.clone();
            let when_ready = Box::new(move |account: Option<&Account>| {
                let dashboard = serve.dashboard.as_ref();
                let token =
                    dashboard.map(|it| made.get_or_init(|| Token::make(it, account, takes_over)));
                serve.announce();
                if let Some((control, url)) = serve.may_lead_elsewhere() {
                    tokio::spawn(commands::serve_home::say_where_it_leads(control, url));
                }
                // Asked once, if the output has a reader.
                if let Some((control, url)) = serve.first_page()
                    && std::io::stdout().is_terminal()
                {
                    tokio::spawn(commands::serve_home::say_whether_it_is_shared(control, url));
                }
                if let (Some(dashboard), Some(token)) = (dashboard, token) {
                    commands::serve_dashboard::announce(dashboard, token);
                }
            });
            let plan = Plan {
                invocation,
                writes_pid_file: false,
                control_socket,
                when_ready,
                program: start.program,
                predecessor: start.predecessor,
                passed,
            };
            serve_until_the_end(plan, journal, accepted)
        }
        Err(exit) => exit,
    }
}

/// Reports why there is no start, here and to the program whose place would be taken.
fn refuse(predecessor: Option<(Predecessor, InheritedResources)>, message: String) -> Exit {
    complain(&format!("mayfly: {message}\n"));
    if let Some((predecessor, _)) = predecessor {
        predecessor.refuse(&[message]);
    }
    Exit::Refused
}

fn serve_until_the_end(
    plan: Plan,
    journal: std::sync::Arc<Journal>,
    accepted: AcceptedConfiguration,
) -> Exit {
    match processes::event_loop::build() {
        Ok(event_loop) => {
            let exit = event_loop.block_on(processes::supervisor::run(plan, journal, accepted));
            event_loop.shutdown_background();
            exit
        }
        Err(error) => {
            journal.emerg(format_args!("could not start: {error}"));
            Exit::Refused
        }
    }
}
