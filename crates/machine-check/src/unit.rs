//! The folders that the service's hardened unit lets it write: systemd mounts everything else read-only
//! (`ProtectSystem=strict`). The unit and its drop-ins are read as files, so that a configuration can be judged before
//! the service starts.

use std::path::{Path, PathBuf};

/// Folders of units, the stronger one last.
const PLACES: [&str; 3] = [
    "usr/lib/systemd/system",
    "lib/systemd/system",
    "etc/systemd/system",
];
/// Directives that make folders writable, and the folder to which their values are relative.
const FOLDERS: [(&str, &str); 5] = [
    ("ReadWritePaths", "/"),
    ("RuntimeDirectory", "/run"),
    ("StateDirectory", "/var/lib"),
    ("CacheDirectory", "/var/cache"),
    ("LogsDirectory", "/var/log"),
];
/// Writable in each service; temporary files are in folders of its own.
const ALWAYS: [&str; 5] = ["/dev", "/proc", "/sys", "/tmp", "/var/tmp"];

/// An installed unit that restricts the writes of its service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceUnit {
    pub name: String,
    writable: Vec<PathBuf>,
}

impl ServiceUnit {
    /// The unit of this name, such as `mayfly.service` or `mayfly@shop.service`, below `root`; `None` if there is none,
    /// or it restricts nothing.
    #[must_use]
    pub fn installed(root: &Path, name: &str) -> Option<ServiceUnit> {
        let (template, instance) = match name.split_once('@') {
            Some((kind, rest)) => (format!("{kind}@.service"), rest.strip_suffix(".service")?),
            None => (name.to_owned(), ""),
        };
        let places = PLACES.map(|place| root.join(place));
        let text = |path: PathBuf| std::fs::read_to_string(path).ok();
        let mut lines = places
            .iter()
            .rev()
            .find_map(|it| text(it.join(&template)))?;
        for folder in [&template, name] {
            for place in &places {
                let entries = std::fs::read_dir(place.join(format!("{folder}.d")));
                let paths = entries.into_iter().flatten().flatten().map(|it| it.path());
                let mut paths: Vec<PathBuf> = paths.collect();
                paths.sort();
                for more in paths.into_iter().filter_map(text) {
                    lines.push('\n');
                    lines.push_str(&more);
                }
            }
            if template == name {
                break;
            }
        }
        Self::read(name, &lines.replace("%i", instance))
    }

    fn read(name: &str, text: &str) -> Option<ServiceUnit> {
        let (mut is_strict, mut writable) = (false, Vec::new());
        for line in text.lines() {
            let Some((key, value)) = line.trim().split_once('=') else {
                continue;
            };
            if key == "ProtectSystem" {
                is_strict = value == "strict";
            }
            if let Some((_, above)) = FOLDERS.iter().find(|(known, _)| *known == key) {
                if value.is_empty() {
                    writable.retain(|path: &PathBuf| *above != "/" && !path.starts_with(above));
                }
                let words = value.split_whitespace();
                let paths = words.map(|word| word.trim_start_matches(['-', '+']));
                writable.extend(paths.map(|path| Path::new(above).join(path)));
            }
        }
        let name = name.to_owned();
        is_strict.then_some(ServiceUnit { name, writable })
    }

    /// Whether the service may write nothing there.
    #[must_use]
    pub fn denies(&self, path: &Path) -> bool {
        let always = ALWAYS.iter().map(Path::new);
        let mut writable = self.writable.iter().map(PathBuf::as_path).chain(always);
        !writable.any(|folder| path.starts_with(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_denies_what_neither_it_nor_a_drop_in_names() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(ServiceUnit::installed(root.path(), "mayfly.service"), None);
        write(
            "lib/systemd/system/mayfly.service",
            "[Service]\nProtectSystem=strict\nRuntimeDirectory=mayfly\nReadWritePaths=-/var/log/mayfly\nReadWritePaths=-/srv /var/www\n",
        );
        write(
            "lib/systemd/system/mayfly@.service",
            "ProtectSystem=strict\nReadWritePaths=-/srv/%i\n",
        );
        let denied = |name: &str, path: &str| {
            ServiceUnit::installed(root.path(), name)
                .unwrap()
                .denies(Path::new(path))
        };
        for (path, expected) in [
            ("/var/log/mayfly/access.log", false),
            ("/var/log/apache2/access.log", true),
            ("/run/mayfly/pid", false),
            ("/run/nginx.pid", true),
            ("/srv/site", false),
            ("/srvother", true),
            ("/tmp/x", false),
        ] {
            assert_eq!(denied("mayfly.service", path), expected, "{path}");
        }
        assert!(
            !denied("mayfly@shop.service", "/srv/shop/a")
                && denied("mayfly@shop.service", "/srv/other")
        );
        write(
            "etc/systemd/system/mayfly.service.d/override.conf",
            "[Service]\nReadWritePaths=/var/log/apache2\n",
        );
        assert!(!denied("mayfly.service", "/var/log/apache2/access.log"));
        write(
            "etc/systemd/system/mayfly.service",
            "[Service]\nType=notify\n",
        );
        assert_eq!(ServiceUnit::installed(root.path(), "mayfly.service"), None);
    }
}
