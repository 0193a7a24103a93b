//! Folders that Apache would not hand out, because their `.htaccess` denies everybody or
//! asks for a password. Applications and administrators rely on it; a server that does
//! not read these files must know of them.
//!
//! The document root is walked once, when the configuration is written. The walk is
//! bounded, and says where it ended. The `.htaccess` of the document root itself is read by
//! [`super::root_htaccess`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::root_htaccess::refused_in_folder;
use super::site_files::begin_of_text;
use apache_conf::patterns::{forbids, is_everything};

/// A folder that is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedFolder {
    /// The path of its address, with a slash at both ends. Any bytes but NUL.
    pub path: Vec<u8>,
    pub closure: Closure,
}

/// How much of a folder is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closure {
    Whole,
    /// Some files are excepted: those that pages load, as far as anybody knows.
    AllButSome,
}

/// How far a walk goes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub depth: usize,
    /// Folders looked into.
    pub folders: usize,
    /// Closed folders: each is a location.
    pub closed: usize,
    pub time: Duration,
}

impl Default for Bounds {
    /// A Nextcloud or a Drupal has some 10,000 folders and a few that are closed.
    fn default() -> Self {
        Self {
            depth: 24,
            folders: 100_000,
            closed: 1000,
            time: Duration::from_secs(3),
        }
    }
}

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    pub closed: Vec<ClosedFolder>,
    /// Patterns of paths that other folders refuse.
    pub refused: Vec<String>,
    /// What ended the walk too early.
    pub ended_by: Option<&'static str>,
}

/// A `.htaccess` is small; what is behind this is not read.
const HTACCESS_BYTES_MAX: u64 = 256 << 10;
/// Names in one folder between two looks at the clock.
const NAMES_PER_LOOK: usize = 1024;

/// Patterns that folders refuse; each is matched for every request. A folder beyond them is closed.
const REFUSED_MAX: usize = 200;

/// Walks the folder whose address is `address` (`/` for a document root). `is_pattern` says whether a pattern is one.
pub fn closed_folders(
    root: &Path,
    address: &str,
    bounds: Bounds,
    is_pattern: &dyn Fn(&str) -> bool,
) -> Walk {
    let mut walker = Walker {
        bounds,
        is_pattern,
        until: Instant::now() + bounds.time,
        folders: 0,
        walk: Walk::default(),
    };
    walker.folder(root, address.as_bytes().to_vec(), &mut Vec::new());
    walker.walk.closed.sort_by(|a, b| a.path.cmp(&b.path));
    walker.walk
}

struct Walker<'a> {
    bounds: Bounds,
    is_pattern: &'a dyn Fn(&str) -> bool,
    until: Instant,
    folders: usize,
    walk: Walk,
}

impl Walker<'_> {
    /// How much of a folder its `.htaccess` closes; what it refuses beside that is remembered.
    fn closure(&mut self, folder: &Path, address: &[u8]) -> Option<Closure> {
        let text = read(&folder.join(".htaccess"));
        let closure = closure(&text);
        if closure.is_some() {
            return closure;
        }
        let room = REFUSED_MAX.saturating_sub(self.walk.refused.len());
        match refused_in_folder(&text, address, self.is_pattern) {
            Some(refused) if refused.len() <= room => {
                self.walk.refused.extend(refused);
                None
            }
            _ => Some(Closure::Whole),
        }
    }

    /// `above`: the folders that lead here, to notice links that lead back.
    fn folder(&mut self, folder: &Path, address: Vec<u8>, above: &mut Vec<(u64, u64)>) {
        if self.folders >= self.bounds.folders {
            self.walk.ended_by = Some("the number of folders");
        }
        if self.walk.ended_by.is_some() {
            return;
        }
        self.folders += 1;
        let Ok(facts) = std::fs::metadata(folder) else {
            return;
        };
        let identity = (facts.dev(), facts.ino());
        if above.contains(&identity) {
            return;
        }
        let Ok(names) = std::fs::read_dir(folder) else {
            return;
        };
        let mut inner = Vec::new();
        let mut has_htaccess = false;
        for (number, name) in names.flatten().enumerate() {
            if number.is_multiple_of(NAMES_PER_LOOK) && Instant::now() > self.until {
                self.walk.ended_by = Some("time");
                return;
            }
            let file_name = name.file_name();
            if file_name.as_bytes() == b".htaccess" {
                has_htaccess = true;
            } else if file_name.as_bytes().starts_with(b".") {
                // Names that begin with a dot are refused anyway.
            } else if name
                .file_type()
                .is_ok_and(|kind| kind.is_dir() || kind.is_symlink() && name.path().is_dir())
            {
                inner.push(file_name);
            }
        }
        if has_htaccess
            && !above.is_empty()
            && let Some(closure) = self.closure(folder, &address)
        {
            if self.walk.closed.len() >= self.bounds.closed {
                self.walk.ended_by = Some("the number of closed folders");
                return;
            }
            let path = address;
            // What lies within is closed with it, also where Apache would open it again.
            self.walk.closed.push(ClosedFolder { path, closure });
            return;
        }
        if above.len() >= self.bounds.depth {
            if !inner.is_empty() {
                self.walk.ended_by = Some("the depth of folders");
            }
            return;
        }
        above.push(identity);
        for name in inner {
            let below = [&address, name.as_bytes(), b"/"].concat();
            self.folder(
                &folder.join(OsStr::from_bytes(name.as_bytes())),
                below,
                above,
            );
        }
        above.pop();
    }
}

/// An unreadable file closes the folder: Apache answers 403 then. What is no file says
/// nothing.
pub(super) fn read(path: &Path) -> String {
    begin_of_text(path, HTACCESS_BYTES_MAX).unwrap_or_else(|_| match path.is_file() {
        true => "Require all denied".to_owned(),
        false => String::new(),
    })
}

/// What the text of a `.htaccess` says about who may see the folder.
pub(super) fn closure(text: &str) -> Option<Closure> {
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut sections: Vec<Section> = Vec::new();
    let (mut denies, mut allows_all, mut excepts) = (false, false, false);
    let mut has_condition = false;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.to_ascii_lowercase();
        if line.starts_with("</") {
            sections.pop();
            continue;
        }
        if let Some(head) = line.strip_prefix('<') {
            sections.push(Section::of(head.trim_end_matches('>')));
            continue;
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if sections.contains(&Section::Negated) {
            continue;
        }
        if sections.contains(&Section::SomeFiles) {
            excepts |= matches!(
                *words,
                ["allow", "from", ..] | ["require", "all", "granted"]
            );
            continue;
        }
        match *words {
            ["deny", "from", "all", ..] => denies = true,
            // `Order allow,deny` without a word on who is allowed refuses all.
            ["order", order] if order.starts_with("allow,") => denies |= !text_allows(&text),
            ["allow", "from", "all", ..] | ["require", "all", "granted"] => allows_all = true,
            // An address, a host, a password: all keep strangers out.
            ["require", "not", ..] => {}
            ["require", "method", ..] => {}
            ["require", ..] => denies = true,
            ["rewritecond", ..] => has_condition = true,
            ["rewriterule", pattern, "-", flags] => {
                denies |= !has_condition && is_everything(pattern) && forbids(flags);
                has_condition = false;
            }
            ["rewriterule", ..] => has_condition = false,
            ["redirectmatch", "403" | "404", pattern] => denies |= is_everything(pattern),
            _ => {}
        }
    }
    match (denies && !allows_all, excepts) {
        (false, _) => None,
        (true, false) => Some(Closure::Whole),
        (true, true) => Some(Closure::AllButSome),
    }
}

fn text_allows(text: &str) -> bool {
    text.to_ascii_lowercase()
        .lines()
        .any(|line| line.trim().starts_with("allow from"))
}

/// What the lines of a block hold for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// For everything, as without it (`<IfModule>`, `<Files *>`).
    Everything,
    /// For some files.
    SomeFiles,
    /// For what we do not know, or the opposite of what is written.
    Negated,
}

impl Section {
    /// `head`: `files "*.php"`, in lower case.
    fn of(head: &str) -> Section {
        let (name, argument) = head.split_once([' ', '\t']).unwrap_or((head, ""));
        let argument = argument.trim();
        match name {
            "ifmodule" | "ifversion" | "ifdefine" | "requireall" | "requireany" => {
                Section::Everything
            }
            "files" | "filesmatch" => {
                let pattern = argument.trim_start_matches('~').trim().trim_matches('"');
                match pattern == "*" || is_everything(pattern) {
                    true => Section::Everything,
                    false => Section::SomeFiles,
                }
            }
            "limit"
                if argument
                    .split_ascii_whitespace()
                    .any(|method| method == "get") =>
            {
                Section::Everything
            }
            _ => Section::Negated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_htaccess_says_is_read() {
        use Closure::*;
        let cases: [(&str, &str, Option<Closure>); 22] = [
            ("nothing", "", None),
            ("2.2", "Order deny,allow\nDeny from all", Some(Whole)),
            ("2.4", "Require all denied", Some(Whole)),
            ("case and tabs", "\tREQUIRE\tALL  Denied\r\n", Some(Whole)),
            (
                "both",
                "<IfModule mod_authz_core.c>\n Require all denied\n</IfModule>\n<IfModule !mod_authz_core.c>\n Deny from all\n</IfModule>",
                Some(Whole),
            ),
            ("comment", "# Deny from all", None),
            ("granted", "Require all granted", None),
            ("allowed", "Order allow,deny\nAllow from all", None),
            ("nobody is allowed", "Order allow,deny", Some(Whole)),
            (
                "an address",
                "Order deny,allow\nDeny from all\nAllow from 127.0.0.1",
                Some(Whole),
            ),
            ("local", "Require local", Some(Whole)),
            (
                "a password",
                "AuthType Basic\nRequire valid-user",
                Some(Whole),
            ),
            (
                "scripts",
                "<FilesMatch \"\\.php$\">\nDeny from all\n</FilesMatch>",
                None,
            ),
            (
                "all files",
                "<Files *>\nDeny from all\n</Files>",
                Some(Whole),
            ),
            (
                "all names",
                "<FilesMatch \".*\">\nRequire all denied\n</FilesMatch>",
                Some(Whole),
            ),
            (
                "reading",
                "<Limit GET POST>\ndeny from all\n</Limit>",
                Some(Whole),
            ),
            (
                "writing",
                "<LimitExcept GET>\ndeny from all\n</LimitExcept>",
                None,
            ),
            (
                "rewritten",
                "RewriteEngine on\nRewriteRule ^ - [F,L]",
                Some(Whole),
            ),
            (
                "on a condition",
                "RewriteCond %{HTTPS} off\nRewriteRule ^ - [F]",
                None,
            ),
            ("redirected", "RedirectMatch 403 ^.*$", Some(Whole)),
            (
                "but some",
                "<IfModule mod_authz_core.c>\nRequire all denied\n</IfModule>\n<FilesMatch \"^(a\\.js|b\\.css)$\">\nRequire all granted\n</FilesMatch>",
                Some(AllButSome),
            ),
            ("continued", "Require \\\n all denied", Some(Whole)),
        ];
        for (name, text, expected) in cases {
            assert_eq!(closure(text), expected, "{name}");
        }
    }

    fn folder(root: &Path, path: &str, htaccess: Option<&str>) {
        std::fs::create_dir_all(root.join(path)).unwrap();
        if let Some(text) = htaccess {
            std::fs::write(root.join(path).join(".htaccess"), text).unwrap();
        }
    }

    fn paths(walk: &Walk) -> Vec<String> {
        let text = |folder: &ClosedFolder| String::from_utf8_lossy(&folder.path).into_owned();
        walk.closed.iter().map(text).collect()
    }

    #[test]
    fn closed_folders_are_found_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let denied = Some("Require all denied");
        folder(root.path(), "", denied);
        folder(root.path(), "open", Some("Options -Indexes"));
        folder(root.path(), "a/private", denied);
        folder(root.path(), "a/private/inner", denied);
        folder(root.path(), "data", denied);
        folder(root.path(), ".git/x", denied);
        std::os::unix::fs::symlink(root.path(), root.path().join("a/back")).unwrap();
        std::os::unix::fs::symlink(root.path().join("data"), root.path().join("link")).unwrap();
        let walk = closed_folders(root.path(), "/", Bounds::default(), &|_| true);
        assert_eq!(paths(&walk), ["/a/private/", "/data/", "/link/"]);
        assert_eq!(walk.ended_by, None);
    }

    /// An account that may write to the site must not be able to hold up root.
    #[test]
    fn a_fifo_in_the_place_of_a_htaccess_does_not_hold_up_the_walk() {
        let root = tempfile::tempdir().unwrap();
        folder(root.path(), "a", None);
        folder(root.path(), "b", Some("Require all denied"));
        let fifo = root.path().join("a/.htaccess");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let walk = closed_folders(root.path(), "/", Bounds::default(), &|_| true);
        assert_eq!(paths(&walk), ["/b/"]);
    }

    #[test]
    fn what_a_folder_refuses_of_itself_is_a_pattern_for_its_path_alone() {
        let root = tempfile::tempdir().unwrap();
        let scripts = "<FilesMatch \"\\.(?i:php)$\">\nRequire all denied\n</FilesMatch>";
        folder(root.path(), "up.loads", Some(scripts));
        folder(root.path(), "a/b", Some("RewriteRule ^c - [F]"));
        let walk = closed_folders(root.path(), "/", Bounds::default(), &|_| true);
        assert_eq!(paths(&walk), <[&str; 0]>::default());
        let is_refused = |path: &str| {
            let patterns = walk
                .refused
                .iter()
                .map(|it| pcre2::bytes::Regex::new(it).unwrap());
            patterns
                .into_iter()
                .any(|it| it.is_match(path.as_bytes()).unwrap())
        };
        for path in [
            "/up.loads/a.php",
            "/up.loads/a/b.PHP",
            "/up.loads/a.php/x.jpg",
            "/a/b/c",
            "/a/b/cd",
        ] {
            assert!(is_refused(path), "{path} {:?}", walk.refused);
        }
        for path in [
            "/a.php",
            "/up.loads/a.jpg",
            "/upxloads/a.php",
            "/x/up.loads/a.php",
            "/a/c",
            "/c",
        ] {
            assert!(!is_refused(path), "{path} {:?}", walk.refused);
        }
        // Names that cannot be kept close the folder.
        let walk = closed_folders(root.path(), "/", Bounds::default(), &|_| false);
        assert_eq!(paths(&walk), ["/up.loads/"]);
    }

    #[test]
    fn a_walk_is_bounded_and_says_by_what() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..20 {
            folder(
                root.path(),
                &format!("{number}/1/2/3"),
                Some("Require all denied"),
            );
        }
        let usual = Bounds::default();
        let cases = [
            (usual, None),
            (Bounds { depth: 2, ..usual }, Some("the depth of folders")),
            (
                Bounds {
                    folders: 7,
                    ..usual
                },
                Some("the number of folders"),
            ),
            (
                Bounds { closed: 3, ..usual },
                Some("the number of closed folders"),
            ),
            (
                Bounds {
                    time: Duration::ZERO,
                    ..usual
                },
                Some("time"),
            ),
        ];
        for (bounds, ended_by) in cases {
            let walk = closed_folders(root.path(), "/", bounds, &|_| true);
            assert_eq!(walk.ended_by, ended_by, "{bounds:?}");
        }
    }
}
