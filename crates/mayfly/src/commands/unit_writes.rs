//! Paths that a configuration writes and the hardened unit of its service denies: logs, pages kept on disk, temporary
//! files, and folders of sites that belong to the account of PHP. `-t` and `doctor` report them before the service
//! starts, and the start reports them once more.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use machine_check::{Finding, ServiceUnit};
use site::{Content, Part, Root, Site, Template};

use crate::paths;
use crate::processes::account;
use crate::processes::logs;

/// The unit of the package.
const UNIT: &str = "mayfly.service";
/// The options of the service (`EnvironmentFile=`).
const OPTIONS: &str = "/etc/default/mayfly";
/// Folders that applications write into, below the document root.
const OF_APPLICATIONS: [&str; 6] = [
    "",
    "wp-content",
    "wp-content/uploads",
    "uploads",
    "files",
    "storage",
];

/// Folders that the unit denies, with the site's files in them.
pub struct UnitDenial {
    unit: String,
    folders: BTreeSet<(PathBuf, &'static str)>,
}

impl UnitDenial {
    /// Returns the denials of the unit that is installed below `root`; `None` if it denies nothing.
    pub fn of_installed(site: &Site, root: &Path) -> Option<UnitDenial> {
        Self::of_unit(site, root, UNIT)
    }

    /// Returns the denials if `file` is the configuration of the service: the usual one, or one that its options name.
    pub fn of_configuration(site: &Site, file: &Path) -> Option<UnitDenial> {
        let is_named = || {
            let options = std::fs::read_to_string(OPTIONS).unwrap_or_default();
            file.to_str().is_some_and(|file| options.contains(file))
        };
        let is_of_service = file == Path::new(paths::CONF) || is_named();
        is_of_service.then(|| Self::of_installed(site, Path::new("/")))?
    }

    /// Returns the denials of the unit that this process was started by.
    pub fn of_this_service(site: &Site) -> Option<UnitDenial> {
        // Set by systemd for each service.
        std::env::var_os("INVOCATION_ID")?;
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let name = unit_of(&groups)?;
        Self::of_unit(site, Path::new("/"), name)
    }

    fn of_unit(site: &Site, root: &Path, name: &str) -> Option<UnitDenial> {
        let unit = ServiceUnit::installed(root, name)?;
        let written = written(site, root).into_iter();
        let folders: BTreeSet<_> = written.filter(|(path, _)| unit.denies(path)).collect();
        (!folders.is_empty()).then_some(UnitDenial {
            unit: unit.name,
            folders,
        })
    }

    /// For people, on one line.
    pub fn warning(&self) -> String {
        format!("{}; {}", self.what(), self.mend())
    }

    pub fn finding(&self) -> Finding {
        Finding::warning("unit-denies", format!("{}.", self.what()))
            .because("0 bytes can be written there once systemd starts it: logs end the start, pages stay in memory alone, uploads fail.")
            .mended_by(self.mend())
    }

    fn what(&self) -> String {
        let places = self.folders.iter();
        let places: Vec<String> = places
            .map(|(folder, what)| format!("{} ({what})", folder.display()))
            .collect();
        format!(
            "the unit {} may not write to {}",
            self.unit,
            places.join(", ")
        )
    }

    fn mend(&self) -> String {
        let folders: BTreeSet<String> = self
            .folders
            .iter()
            .map(|(it, _)| it.display().to_string())
            .collect();
        let folders: Vec<String> = folders.into_iter().collect();
        format!(
            "systemctl edit {}, and add: [Service] ReadWritePaths={}",
            self.unit,
            folders.join(" ")
        )
    }
}

/// The name of the service in lines of `/proc/self/cgroup`.
fn unit_of(groups: &str) -> Option<&str> {
    let mut names = groups.lines().filter_map(|line| line.rsplit('/').next());
    names.find(|name| name.ends_with(".service"))
}

/// The folders that the site writes to.
fn written(site: &Site, root: &Path) -> BTreeSet<(PathBuf, &'static str)> {
    let folder = |path: &Path| path.parent().unwrap_or(path).to_owned();
    let mut found = BTreeSet::new();
    found.extend(logs::paths(site).iter().map(|path| (folder(path), "logs")));
    let disks = site
        .http
        .cache_zones
        .iter()
        .filter_map(|zone| zone.disk.as_ref());
    found.extend(disks.map(|disk| (folder(&disk.folder), "pages on disk")));
    found.insert((folder(&site.process.pid_file), "the pid file"));
    for location in site.http.servers.iter().flat_map(|it| &it.locations) {
        found.insert((folder(&location.settings.body.temp_path), "temporary files"));
        if let Content::Pass(pass) = &location.settings.content {
            found.insert((folder(&pass.exchange.temp_path), "temporary files"));
        }
    }
    found.extend(of_php(site, root).into_iter().map(|path| (path, "PHP")));
    found
}

/// Folders of sites that belong to an account that runs PHP here.
fn of_php(site: &Site, root: &Path) -> BTreeSet<PathBuf> {
    let pools = site.process.php_pools.iter();
    let accounts: BTreeSet<u32> = pools
        .filter_map(|pool| Some(account::to_run_php(pool).ok()?.uid))
        .collect();
    let mut found = BTreeSet::new();
    if accounts.is_empty() {
        return found;
    }
    let locations = site.http.servers.iter().flat_map(|it| &it.locations);
    let roots: BTreeSet<String> = locations
        .filter_map(|location| match &location.settings.files.root {
            Root::Root(path) | Root::Alias(path) => literal(path),
        })
        .collect();
    for path in roots {
        for inner in OF_APPLICATIONS {
            let inner = Path::new(&path).join(inner);
            let there = root.join(inner.strip_prefix("/").unwrap_or(&inner));
            // Debian's WordPress has links to the folders that it writes.
            let there = there.canonicalize().unwrap_or(there);
            let owned = std::fs::metadata(&there)
                .is_ok_and(|it| it.is_dir() && accounts.contains(&it.uid()));
            let is_named = found.iter().any(|above: &PathBuf| there.starts_with(above));
            if owned && !is_named {
                found.insert(there);
            }
        }
    }
    let below = |path: PathBuf| match path.strip_prefix(root) {
        Ok(path) => Path::new("/").join(path),
        Err(_) => path,
    };
    found.into_iter().map(below).collect()
}

fn literal(template: &Template) -> Option<String> {
    match &template.parts[..] {
        [Part::Literal(text)] => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_named_by_the_control_group() {
        let hybrid = "12:pids:/system.slice/mayfly.service\n0::/system.slice/mayfly.service\n";
        assert_eq!(unit_of(hybrid), Some("mayfly.service"));
        let instance = "0::/system.slice/system-mayfly.slice/mayfly@shop.service\n";
        assert_eq!(unit_of(instance), Some("mayfly@shop.service"));
        assert_eq!(unit_of("0::/user.slice/session-1.scope\n"), None);
    }
}
