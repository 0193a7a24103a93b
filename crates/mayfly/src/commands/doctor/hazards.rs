//! Openings for intruders: uploads that run, secrets that are sent, cache keys that lack a part.

use std::path::{Path, PathBuf};

use machine_check::Finding;
use site::{Server, Site};

use super::served::{FileTreatment, served};
use super::subject::document_root;

/// Folders that applications let visitors write into.
const UPLOADS: [&str; 10] = [
    "wp-content/uploads",
    "uploads",
    "upload",
    "files",
    "sites/default/files",
    "media",
    "images",
    "userfiles",
    "storage",
    "attachments",
];
/// How deep secrets are looked for, and how many entries are looked at.
const MAX_DEPTH: usize = 3;
const MAX_ENTRIES: usize = 50_000;
/// Names that one finding shows.
const MAX_SHOWN: usize = 5;

/// `root` is where the paths of the configuration begin.
pub fn check(site: &Site, root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for server in &site.http.servers {
        let Some(documents) = document_root(server) else {
            continue;
        };
        let folder = root.join(documents.strip_prefix("/").unwrap_or(&documents));
        findings.extend(uploads(server, &documents, &folder));
        findings.extend(secrets(server, &documents, &folder));
    }
    findings.extend(site::unkeyed_inputs(site).iter().map(unkeyed));
    findings.dedup();
    findings
}

fn uploads(server: &Server, documents: &Path, folder: &Path) -> Option<Finding> {
    let runs = |upload: &&&str| {
        folder.join(upload).is_dir()
            && served(server, &format!("/{upload}/x.php")) == FileTreatment::Script
    };
    let found: Vec<&str> = UPLOADS.iter().filter(runs).copied().collect();
    let first = found.first()?;
    Some(
        Finding::error(
            "uploads-run",
            format!(
                "PHP runs what is uploaded to {} of {}.",
                found.join(", "),
                documents.display()
            ),
        )
        .because("1 hole in a plug-in that lets a visitor upload x.php is enough to own the site.")
        .mended_by(format!(
            "location ~* ^/{first}/.*\\.(?:php\\d*|phtml?|pht|phar|phps)(?:/|$) {{ deny all; }}  before other patterns"
        )),
    )
}

fn secrets(server: &Server, documents: &Path, folder: &Path) -> Option<Finding> {
    let mut found = Vec::new();
    let mut left = MAX_ENTRIES;
    look(server, folder, "", MAX_DEPTH, &mut left, &mut found);
    if found.is_empty() {
        return None;
    }
    let shown: Vec<&str> = found.iter().take(MAX_SHOWN).map(|it| &**it).collect();
    let more = match found.len().checked_sub(MAX_SHOWN) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    Some(
        Finding::error(
            "secrets-served",
            format!(
                "In {}, anybody can fetch {}{more}.",
                documents.display(),
                shown.join(", ")
            ),
        )
        .because(
            "Robots ask every site for these names, several times in a day: passwords and keys in them are known to \
             others.",
        )
        .mended_by(
            "move them out of the document root, change what is in them, and: location ~ /\\.(?!well-known/) { deny all; }",
        ),
    )
}

/// Looks through a folder; `above` is its path within the document root.
fn look(
    server: &Server,
    folder: &Path,
    above: &str,
    depth: usize,
    left: &mut usize,
    found: &mut Vec<String>,
) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<(String, PathBuf, bool)> = entries
        .take(*left)
        .filter_map(|entry| {
            let is_folder = entry.file_type().ok()?.is_dir();
            Some((
                entry.file_name().into_string().ok()?,
                entry.path(),
                is_folder,
            ))
        })
        .collect();
    *left -= entries.len();
    entries.sort();
    for (name, path, is_folder) in entries {
        let target = format!("{above}/{name}");
        let secret = match (is_folder, &*name) {
            (true, ".git") => Some(format!("{target}/config")),
            (true, ".svn") => Some(format!("{target}/wc.db")),
            (true, _) => {
                if depth > 1 {
                    look(server, &path, &target, depth - 1, left, found);
                }
                None
            }
            (false, _) => is_secret(&name).then_some(target),
        };
        if let Some(target) = secret
            && served(server, &target) == FileTreatment::File
        {
            found.push(target);
        }
    }
}

/// By its name: settings with passwords, copies of scripts, dumps, keys.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|it| name.ends_with(it));
    let is_example = ends(&[".example", ".sample", ".dist"]);
    let is_environment = (name == ".env" || name.starts_with(".env.")) && !is_example;
    let copies = [
        ".bak", ".old", ".orig", ".save", ".swp", ".txt", "~", ".copy", ".1", ".dist",
    ];
    let of_script = [
        ".php",
        "wp-config",
        "configuration",
        "settings",
        "config.inc",
    ];
    let is_copy = ends(&copies) && of_script.iter().any(|it| name.contains(it));
    let dumps = [
        ".sql", ".sql.gz", ".sql.zip", ".sql.bz2", ".sqlite", ".sqlite3", ".dump",
    ];
    let keys = [".pem", ".key", ".p12", ".pfx", ".ppk", ".kdbx", ".htpasswd"];
    let names = [
        "id_rsa",
        "id_ed25519",
        "auth.json",
        ".htpasswd",
        ".git-credentials",
    ];
    is_environment || is_copy || ends(&dumps) || ends(&keys) || names.contains(&&*name)
}

/// Returns a finding for a note of `mayfly check`, since the user asked for faults.
fn unkeyed(gap: &site::UnkeyedInputs) -> Finding {
    let has = |what: &str| gap.inputs.iter().any(|input| input == what);
    let name = match () {
        () if has("the host") => "key-without-host",
        () if has("cookies") => "cookies-ignored",
        () => "key-without-input",
    };
    let finding = match name {
        "key-without-input" => Finding::warning(name, gap.to_string()),
        _ => Finding::error(name, gap.to_string()),
    };
    finding
        .because(match name {
            "key-without-host" => {
                "1 request with another Host is enough: everybody gets a page whose links lead elsewhere, until its \
                 lifetime ends."
            }
            "cookies-ignored" => {
                "1 visitor who is logged in is enough: everybody gets the page that was made for them."
            }
            _ => "1 visitor decides what all others see, until the lifetime of the page ends.",
        })
        .mended_by("cache_shared on;  beside *_cache, with cache_personal_cookies for those who log in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            ".env",
            ".env.production",
            "wp-config.php.bak",
            "wp-config.php~",
            "wp-config.txt",
            "index.php.old",
            ".wp-config.php.swp",
            "dump.sql",
            "backup.SQL.gz",
            "server.key",
            "id_rsa",
            "auth.json",
            ".htpasswd",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "wp-config.php",
            "wp-config-sample.php",
            ".env.example",
            "index.php",
            "robots.txt",
            "readme.txt",
            "license.txt",
            ".htaccess",
            "style.css",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
