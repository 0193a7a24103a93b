//! The running server that a command is for: found by its control socket, which its configuration names.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use control::{ClientError, ExplainRequest, Explanation};

use crate::cli::Flags;
use crate::commands::unix_sockets;
use crate::config::{self, AcceptedConfiguration, Invocation};
use crate::paths;
use crate::processes::control_socket as socket;
use crate::processes::event_loop;
use command_line::{Exit, ServerArgs, complain};
use system_error::SystemError;

/// Sockets of `mayfly serve` that are tried.
const MAX_SOCKETS: usize = 256;
/// How long a server may take to answer that it is there.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// URLs by which a server is chosen; more of them are of the same sites.
const MAX_URLS: usize = 16;

/// The exit code of a command that failed, and its message.
pub type Failure = (Exit, String);

/// Runs a command, and shows why it fails.
pub fn run(command: impl Future<Output = Result<Exit, Failure>>) -> Exit {
    let event_loop = match event_loop::build() {
        Ok(event_loop) => event_loop,
        Err(error) => return complain(Exit::Refused, &format!("could not start: {error}")),
    };
    let done = event_loop.block_on(command);
    // Standard input may still be read by a thread.
    event_loop.shutdown_background();
    done.unwrap_or_else(|(exit, message)| complain(exit, &message))
}

/// The socket of the server that is meant. If several run, it is the one that serves `urls`.
///
/// # Errors
/// No server is found, or several are.
pub async fn find(args: &ServerArgs, urls: &[String]) -> Result<PathBuf, Failure> {
    if let Some(path) = &args.socket {
        return Ok(paths::from_here(path.clone()));
    }
    let flags = Flags::of_configuration(args.conf.as_ref(), args.prefix_folder.as_ref());
    let is_asked_for = args.conf.is_some() || args.prefix_folder.is_some();
    let mut candidates = Vec::new();
    if is_asked_for || flags.conf().exists() {
        let of_configuration = of_configuration(&flags).map_err(|it| (Exit::Refused, it))?;
        if is_asked_for {
            return Ok(of_configuration);
        }
        candidates.push(of_configuration);
    }
    let others = socket::serve_folder().map_or_else(|_| Vec::new(), |it| sockets_in(&it));
    // systemd's `RuntimeDirectory=`: the command belongs to a service, and means that one.
    let elsewhere = match std::env::var_os("RUNTIME_DIRECTORY") {
        Some(_) => Vec::new(),
        None => unix_sockets::control_sockets(),
    };
    for path in others.into_iter().chain(elsewhere) {
        if !candidates.contains(&path) {
            candidates.push(path);
        }
    }
    let mut living = Vec::new();
    for path in &candidates {
        if lives(path).await {
            living.push(path.clone());
        }
    }
    match &living[..] {
        [one] => Ok(one.clone()),
        [] => {
            let looked = match &candidates[..] {
                [] => "there is no configuration and no mayfly serve".to_owned(),
                all => format!("no server listens on {}", shown(all)),
            };
            let message =
                format!("no server was found: {looked}; -c FILE or --socket PATH says where");
            Err((Exit::NoServer, message))
        }
        several => serving(several, urls).await.ok_or_else(|| {
            let why = match urls {
                [] => "several servers run",
                [_] => "several servers run, and which of them serves this URL cannot be told",
                _ => "several servers run, and none of them is known to serve all these URLs",
            };
            let message = format!("{why}; expected --socket with one of {}", shown(several));
            (Exit::Refused, message)
        }),
    }
}

/// Whether a server listens there. One that does not answer in time counts: the command may still be for
/// it.
async fn lives(path: &Path) -> bool {
    let asked = tokio::time::timeout(ANSWERS_WITHIN, control::client::version(path)).await;
    !matches!(asked, Ok(Err(ClientError::NoServer(error))) if error.kind() != io::ErrorKind::PermissionDenied)
}

/// Returns the one server that serves the URLs; `None` if it is not exactly one, or is not known.
async fn serving(servers: &[PathBuf], urls: &[String]) -> Option<PathBuf> {
    let mut best: Option<&PathBuf> = None;
    for url in urls.iter().take(MAX_URLS) {
        let mut fits = Vec::new();
        for server in servers {
            fits.extend(fit(server, url).await.map(|fit| (fit, server)));
        }
        let most = fits.iter().map(|(fit, _)| *fit).max()?;
        fits.retain(|(fit, _)| *fit == most);
        let [(_, server)] = fits[..] else {
            return None;
        };
        if best.is_some_and(|best| best != server) {
            return None;
        }
        best = Some(server);
    }
    best.cloned()
}

/// How well a server fits a URL, the strongest sign first: a server block has the host as its name,
/// it listens at the URL's address, at its port, and something is stored for the URL. `None`: it does
/// not serve the URL.
async fn fit(server: &Path, url: &str) -> Option<[bool; 4]> {
    let request = ExplainRequest {
        url: url.to_owned(),
        ..ExplainRequest::default()
    };
    let explanation = control::client::explain(server, &request);
    let explanation = tokio::time::timeout(ANSWERS_WITHIN, explanation)
        .await
        .ok()?
        .ok()?;
    fit_of(&explanation, url)
}

/// Returns a warning that names the server which has answered, if it is not known to serve the URL.
pub async fn doubt(
    args: &ServerArgs,
    path: &Path,
    url: &str,
    explanation: &Explanation,
) -> Option<String> {
    if is_named(args)
        || fit_of(explanation, url)
            .is_some_and(|[named, listens, port, _]| named || listens || port)
    {
        return None;
    }
    let process = control::client::version(path).await.ok()?.pid;
    Some(format!(
        "no server here has the name or the port of {url}: process {process} answers, which listens at {1} and takes \
         commands at {0}; --socket or -c says which server is meant",
        path.display(),
        explanation.listen
    ))
}

fn fit_of(explanation: &Explanation, url: &str) -> Option<[bool; 4]> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let usual = match scheme.eq_ignore_ascii_case("https") {
        true => "443",
        false => "80",
    };
    let (_, port) = with_port(authority).unwrap_or((authority, usual));
    let listened = with_port(&explanation.listen);
    Some([
        !matches!(explanation.server.as_str(), "" | "_"),
        explanation.listen == authority,
        listened.is_some_and(|(_, at)| at == port),
        explanation.entry.is_some(),
    ])
}

/// Host and port; `None` if there is no port.
fn with_port(place: &str) -> Option<(&str, &str)> {
    let (host, port) = place.rsplit_once(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then_some((host, port))
}

fn shown(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
    paths.join(", ")
}

/// Whether the arguments name one server, whether it runs or not.
pub fn is_named(args: &ServerArgs) -> bool {
    args.conf.is_some() || args.prefix_folder.is_some() || args.socket.is_some()
}

/// The configuration of a server that does not run, where one is at hand.
pub fn configuration_at_hand(args: &ServerArgs) -> Option<AcceptedConfiguration> {
    let flags = Flags::of_configuration(args.conf.as_ref(), args.prefix_folder.as_ref());
    let is_there = args.conf.is_some() || args.prefix_folder.is_some() || flags.conf().exists();
    let read = is_there.then(|| config::judge(Invocation::from_flags(&flags).read()));
    read?.ok()
}

fn of_configuration(flags: &Flags) -> Result<PathBuf, String> {
    match config::judge(Invocation::from_flags(flags).read()) {
        Ok(accepted) => socket::path(&accepted.site.process, None).ok_or_else(|| {
            "the configuration says control_socket off: its server takes no commands".to_owned()
        }),
        Err(rejected) => {
            config::show(&rejected.diagnostics, &rejected.sources);
            Err(
                "the configuration is not valid; --socket PATH names the socket without it"
                    .to_owned(),
            )
        }
    }
}

fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|it| it == "control");
    let paths = entries.map(|entry| entry.path()).filter(is_socket);
    let mut found: Vec<PathBuf> = paths.take(MAX_SOCKETS).collect();
    found.sort();
    found
}

/// Returns the failure of a command that the server at `path` did not obey.
pub fn explained(path: &Path, error: &ClientError) -> Failure {
    let shown = path.display();
    match error {
        ClientError::NoServer(error) if error.kind() == io::ErrorKind::PermissionDenied => (
            Exit::Refused,
            format!(
                "{shown} is for the account that started the server and for root ({})",
                SystemError(error)
            ),
        ),
        ClientError::NoServer(error) => (
            Exit::NoServer,
            format!("no server listens on {shown} ({})", SystemError(error)),
        ),
        ClientError::Refused(refusal) => (Exit::Refused, refusal.to_string()),
        ClientError::Ended(what) | ClientError::Broken(what) => {
            (Exit::Refused, format!("{shown}: {what}"))
        }
    }
}
