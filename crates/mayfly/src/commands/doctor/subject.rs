//! The needs of a configuration towards the machine.

use std::path::{Path, PathBuf};

use machine_check::{Pool, Subject, Workers, Zone};
use site::{
    Content, ListenAddress, Part, PhpPool, Process, Root, Server, Settings, Site, Template,
};

use crate::processes::account;

/// The needs of a server without a configuration yet.
pub fn without_configuration() -> Subject {
    Subject {
        is_root: account::is_root(),
        has_php: true,
        ..Subject::default()
    }
}

/// `root` is where `/proc` is looked for.
pub fn of(site: &Site, root: &Path) -> Subject {
    let http = &site.http;
    let tcp = |address: &ListenAddress| match address {
        ListenAddress::Tcp(address) => Some(*address),
        ListenAddress::Udp(_) | ListenAddress::Unix(_) => None,
    };
    let listeners = &http.listeners;
    let backlogs = listeners.iter().filter_map(|it| it.options.backlog);
    let all_settings = || http.servers.iter().flat_map(|it| &it.locations);
    let mut temporary_folders: Vec<PathBuf> = all_settings()
        .map(|location| location.settings.body.temp_path.clone())
        .collect();
    temporary_folders.sort();
    temporary_folders.dedup();
    let mut document_roots: Vec<PathBuf> = http.servers.iter().filter_map(document_root).collect();
    document_roots.sort();
    document_roots.dedup();
    Subject {
        is_root: account::is_root(),
        is_running: is_running(&site.process, root),
        open_files: site.process.open_files_limit,
        ports: listeners.iter().filter_map(|it| tcp(&it.address)).collect(),
        backlog: backlogs.max().map_or(0, u64::from),
        zones: http
            .cache_zones
            .iter()
            .map(|zone| Zone {
                name: zone.name.clone(),
                path: zone.path.clone(),
                memory_bytes: zone.memory_bytes,
            })
            .collect(),
        temporary_folders,
        pools: site
            .process
            .php_pools
            .iter()
            .map(|it| pool(it, root))
            .collect(),
        has_php: all_settings().any(|it| is_php(&it.settings)),
        document_roots,
    }
}

/// Whether it passes requests to PHP.
pub fn is_php(settings: &Settings) -> bool {
    matches!(&settings.content, Content::Pass(pass) if pass.fastcgi().is_some())
}

/// The document root of a server, if it is one and the same for all requests.
pub fn document_root(server: &Server) -> Option<PathBuf> {
    match &server.location(Server::ROOT).settings.files.root {
        Root::Root(path) => literal(path).map(PathBuf::from),
        Root::Alias(_) => None,
    }
}

fn literal(template: &Template) -> Option<String> {
    match &template.parts[..] {
        [Part::Literal(text)] => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

fn pool(pool: &PhpPool, root: &Path) -> Pool {
    let settings = pool.settings.iter();
    Pool {
        name: pool.name.clone(),
        workers: match pool.workers {
            Some(count) => Workers::Count(u64::try_from(count).unwrap_or(u64::MAX)),
            None => auto_workers(root),
        },
        max_requests: pool.max_requests,
        has_slow_log: pool.slow_log.is_some(),
        settings: settings
            .map(|it| (it.name.clone(), it.value.clone()))
            .collect(),
    }
}

/// Returns the number of workers that `workers auto` would choose at a start.
fn auto_workers(root: &Path) -> Workers {
    let machine = php_pool::Machine::observe_below(root);
    let bytes_each = php_pool::WORKER_BYTES_ASSUMED;
    Workers::Auto {
        chosen: php_pool::auto_workers(machine, bytes_each).into(),
        bytes_each,
    }
}

/// Whether the process that the pid file names is alive.
fn is_running(process: &Process, root: &Path) -> bool {
    let pid = std::fs::read_to_string(&process.pid_file).ok();
    let pid = pid.and_then(|text| text.trim().parse::<u32>().ok());
    pid.is_some_and(|pid| root.join("proc").join(pid.to_string()).exists())
}
