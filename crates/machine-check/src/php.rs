//! PHP: its settings files, and its pools.

use crate::database;
use crate::finding::Finding;
use crate::machine::Machine;
use crate::{Pool, Subject};

/// Since this version, opcache is a part of PHP.
const OPCACHE_WITHIN: (u64, u64) = (8, 5);
const LITTLE_OPCACHE_MEGABYTES: u64 = 64;

pub fn check(machine: &Machine, subject: &Subject, findings: &mut Vec<Finding>) {
    if !subject.has_php {
        return;
    }
    if let Some(settings) = Settings::newest(machine) {
        findings.extend(opcache(&settings, subject));
    }
    for pool in &subject.pools {
        findings.extend(max_requests(pool));
        findings.extend(slow_log(pool));
    }
    for root in &subject.document_roots {
        findings.extend(database::check(machine, root));
    }
}

/// The lines of php.ini and of the files beside it, for the newest PHP-FPM.
struct Settings {
    version: Option<(u64, u64)>,
    lines: Vec<(String, String)>,
}

impl Settings {
    fn newest(machine: &Machine) -> Option<Settings> {
        // Debian has a folder for each version, others have one for all.
        let mut versions: Vec<(u64, u64)> = machine
            .names("etc/php")
            .iter()
            .filter_map(|name| {
                let (major, minor) = name.split_once('.')?;
                Some((major.parse().ok()?, minor.parse().ok()?))
            })
            .collect();
        versions.sort_unstable();
        let candidates = versions.into_iter().rev().map(|version| {
            let folder = format!("etc/php/{}.{}/fpm", version.0, version.1);
            (
                Some(version),
                format!("{folder}/php.ini"),
                format!("{folder}/conf.d"),
            )
        });
        let others = [
            ("etc/php.ini", "etc/php.d"),
            ("usr/local/etc/php/php.ini", "usr/local/etc/php/conf.d"),
            ("etc/php83/php.ini", "etc/php83/conf.d"),
        ];
        let others = others.map(|(file, folder)| (None, file.to_owned(), folder.to_owned()));
        let (version, file, folder) = candidates
            .chain(others)
            .find(|(_, file, folder)| machine.exists(file) || machine.exists(folder))?;
        let mut lines = Vec::new();
        let within = machine.names(&folder);
        let within = within.iter().filter(|name| name.ends_with(".ini"));
        let files =
            std::iter::once(file.clone()).chain(within.map(|name| format!("{folder}/{name}")));
        for file in files {
            put_lines(&machine.read(&file).unwrap_or_default(), &mut lines);
        }
        Some(Settings { version, lines })
    }

    /// The last line with this name.
    fn value(&self, name: &str) -> Option<&str> {
        let mut lines = self.lines.iter().rev();
        lines
            .find(|(known, _)| known == name)
            .map(|(_, value)| &**value)
    }

    fn loads(&self, extension: &str) -> bool {
        self.lines
            .iter()
            .any(|(name, value)| name == "zend_extension" && value.contains(extension))
    }
}

fn put_lines(text: &str, lines: &mut Vec<(String, String)>) {
    for line in text.lines() {
        let line = line.split(';').next().unwrap_or_default();
        if let Some((name, value)) = line.split_once('=') {
            let value = value.trim().trim_matches('"');
            lines.push((name.trim().to_owned(), value.to_owned()));
        }
    }
}

fn is_off(value: &str) -> bool {
    ["0", "off", "no", "false", ""]
        .iter()
        .any(|it| value.eq_ignore_ascii_case(it))
}

fn opcache(settings: &Settings, subject: &Subject) -> Option<Finding> {
    let why = "Without it, PHP compiles every file for every page: an application such as WordPress takes \
               about 3 times as long.";
    let is_built_in = settings.version.is_some_and(|it| it >= OPCACHE_WITHIN);
    if !settings.loads("opcache") && !is_built_in {
        return Some(
            Finding::error("opcache", "PHP-FPM does not load opcache.")
                .because(why)
                .mended_by(
                    "apt install php-opcache, or phpenmod -s fpm opcache; then mayfly -s reload",
                ),
        );
    }
    let in_pool = subject.pools.iter().find_map(|pool| {
        let mut set = pool.settings.iter();
        set.find(|(name, value)| name == "opcache.enable" && is_off(value))
            .map(|_| pool.name.clone())
    });
    if in_pool.is_some() || settings.value("opcache.enable").is_some_and(is_off) {
        let whose = in_pool.map_or("PHP-FPM".to_owned(), |pool| format!("The pool {pool}"));
        return Some(
            Finding::error("opcache", format!("{whose} has opcache switched off."))
                .because(why)
                .mended_by("opcache.enable=1 in php.ini of FPM; then mayfly -s reload"),
        );
    }
    let memory: u64 = settings.value("opcache.memory_consumption")?.parse().ok()?;
    (memory < LITTLE_OPCACHE_MEGABYTES).then(|| {
        Finding::warning("opcache-memory", format!("opcache has {memory} MB."))
            .because("A WordPress with plug-ins fills about 100 MB; when it is full, files are compiled again and again.")
            .mended_by("opcache.memory_consumption=128 in php.ini of FPM; then mayfly -s reload")
    })
}

fn max_requests(pool: &Pool) -> Option<Finding> {
    pool.max_requests.is_none_or(|it| it == 0).then(|| {
        Finding::note(
            "max-requests",
            format!("The workers of the pool {} live for ever.", pool.name),
        )
        .because("An extension that loses 100 KB with each page holds 1 GB after 10000 pages.")
        .mended_by("php_pool: max_requests 1000;")
    })
}

fn slow_log(pool: &Pool) -> Option<Finding> {
    (!pool.has_slow_log).then(|| {
        Finding::note("slow-log", format!("The pool {} has no slow log.", pool.name))
            .because(
                "It says in which line of PHP a page hangs that takes longer than 5 s; without it, nobody knows.",
            )
            .mended_by(format!("php_pool: slow_log /var/log/mayfly/{}-slow.log 5s;", pool.name))
    })
}
