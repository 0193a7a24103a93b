//! Detects the application in a folder, and the part of it that visitors may see, by the
//! names of its files. Pure over [`Files`].
//!
//! The document root matters more than the name: picking the project folder
//! instead of its `public` would publish its sources.

use std::path::Path;

use super::kind::SiteKind;
use super::mediawiki_purges::PurgeSettings;
use super::refused::{LAYOUTS, Layout};
use super::site_files::Files;

/// The site found in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectedSite {
    /// The application.
    pub kind: SiteKind,
    /// The folder that visitors may see, relative to the folder of the site; empty for that
    /// folder itself.
    pub document_root: &'static str,
    /// The script that answers for paths that are no files.
    pub front_controller: Option<&'static str>,
    /// Debian keeps WordPress's `wp-content` outside of the document root:
    /// the folder that holds it.
    pub wp_content_parent: Option<&'static str>,
    /// Whether `/wiki/TITLE` can be a short address of a page, because no
    /// folder of that name is in the way.
    pub has_short_wiki_paths: bool,
    /// MediaWiki: where it sends word of pages that change (`PURGE`).
    pub purge_settings: PurgeSettings,
    /// An application that needs no rules but about its private parts.
    pub layout: Option<&'static Layout>,
    /// The files by which the application was recognized, relative to the document root;
    /// none for one that has no name.
    pub signs: &'static [&'static str],
    /// Applications in folders of the document root.
    pub nested: Vec<NestedApplication>,
    /// A link leads to the folder: it is followed for each request.
    pub is_linked: bool,
}

impl DetectedSite {
    /// Returns notes for the administrator about this kind of site.
    pub fn notes(&self) -> &'static [&'static str] {
        match self.kind {
            SiteKind::MediaWiki => &[
                "MediaWiki calls its pages private unless $wgUseCdn = true is in LocalSettings.php: they are kept in memory only with it.",
                "With $wgCdnServers = [ 'ADDRESS:PORT of this server' ] there too, an edit is seen at once, and pages are kept for as long as MediaWiki says instead of --ttl. Over HTTPS, $wgInternalServer = 'http://HOST:PORT' belongs to it.",
            ],
            SiteKind::DokuWiki => &[
                "If a plugin lets visitors in by their address instead of a login, set --ttl 0: such pages look like public ones.",
            ],
            SiteKind::Laravel => &[
                "Laravel's web routes set cookies: only routes without the session are kept in memory.",
            ],
            _ => &[],
        }
    }
}

/// An application in a folder of the document root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedApplication {
    pub kind: SiteKind,
    /// The path that visitors see, without a slash at the end: `/blog`.
    pub path: String,
}

/// Folders that are commonly the document root of a project.
const ROOTS: [&str; 6] = ["public", "web", "docroot", "htdocs", "public_html", "www"];

/// Files by which an application is recognized, relative to its document root. All of a row
/// must be there.
const SIGNS: [(SiteKind, &[&str]); 11] = [
    (
        SiteKind::WordPress,
        &["wp-load.php", "wp-includes/version.php"],
    ),
    (SiteKind::WordPress, &["wp-config.php", "wp/wp-load.php"]),
    (SiteKind::MediaWiki, &["load.php", "includes/WebStart.php"]),
    (SiteKind::DokuWiki, &["doku.php", "inc/init.php"]),
    (SiteKind::Drupal, &["index.php", "core/lib/Drupal.php"]),
    (
        SiteKind::Drupal,
        &["index.php", "includes/bootstrap.inc", "misc/drupal.js"],
    ),
    (SiteKind::Laravel, &["index.php", "../artisan"]),
    (SiteKind::Symfony, &["index.php", "../config/bundles.php"]),
    (SiteKind::Symfony, &["index.php", "../symfony.lock"]),
    (SiteKind::Symfony, &["index.php", "../bin/console"]),
    (SiteKind::Symfony, &["index.php", "../src/Kernel.php"]),
];

/// Looks at a site's files.
pub fn detect(files: &dyn Files) -> DetectedSite {
    let (mut kind, root, signs) = application(files).unwrap_or_else(|| {
        let (kind, root) = generic(files);
        (kind, root, &[])
    });
    let nested = nested_applications(files, kind, root);
    if kind == SiteKind::Static && !nested.is_empty() {
        kind = SiteKind::PlainPhp;
    }
    let front_controller = match kind {
        SiteKind::PlainPhp | SiteKind::Static => None,
        SiteKind::DokuWiki => Some("/doku.php"),
        _ => Some("/index.php"),
    };
    DetectedSite {
        kind,
        document_root: root,
        front_controller,
        wp_content_parent: debian_wp_content(files, kind),
        has_short_wiki_paths: kind == SiteKind::MediaWiki
            && files.names(&join(root, "wiki")).is_empty(),
        purge_settings: purge_settings(files, kind, root),
        layout: layout(files, kind, root),
        signs,
        nested,
        is_linked: false,
    }
}

/// Reads the addresses to which MediaWiki sends purges of changed pages.
fn purge_settings(files: &dyn Files, kind: SiteKind, root: &str) -> PurgeSettings {
    let settings = files.text(&join(root, "LocalSettings.php"));
    let settings = settings.filter(|_| kind == SiteKind::MediaWiki);
    settings.map_or_else(PurgeSettings::default, |text| PurgeSettings::of(&text))
}

/// The application whose files are all there, the folder itself first.
fn application(files: &dyn Files) -> Option<(SiteKind, &'static str, &'static [&'static str])> {
    std::iter::once("").chain(ROOTS).find_map(|root| {
        let has_all = |signs: &[&str]| signs.iter().all(|sign| files.is_file(&join(root, sign)));
        SIGNS
            .iter()
            .find(|(_, signs)| has_all(signs))
            .map(|(kind, signs)| (*kind, root, *signs))
    })
}

/// Folders looked into for an application of their own.
const MAX_NESTED: usize = 1000;

/// Finds applications in folders of the document root that answer there for paths that are
/// no files: an application that we know, or an `index.php` named in a rule for Apache.
fn nested_applications(files: &dyn Files, kind: SiteKind, root: &str) -> Vec<NestedApplication> {
    if kind == SiteKind::DokuWiki {
        // It has addresses of its own for everything.
        return Vec::new();
    }
    let is_plain = |name: &String| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        name.bytes().all(is_plain) && !name.starts_with('.')
    };
    let mut names: Vec<String> = files.names(root).into_iter().filter(is_plain).collect();
    names.sort();
    names.dedup();
    let has_settings = |folder: &str| files.is_file(&join(folder, "wp-config.php"));
    let kind_of = |folder: &str| {
        let is_here = |(kind, signs): &&(SiteKind, &'static [&str])| {
            // The core of a project by Composer belongs to the WordPress above.
            let is_core =
                *kind == SiteKind::WordPress && has_settings(root) && !has_settings(folder);
            let is_sign =
                |sign: &&str| !sign.starts_with("../") && files.is_file(&join(folder, sign));
            signs.iter().all(is_sign) && !is_core
        };
        let is_generic = matches!(
            kind,
            SiteKind::FrontController | SiteKind::PlainPhp | SiteKind::Static
        );
        let has_front =
            || files.is_file(&join(folder, "index.php")) && rewrites_to_index(files, folder);
        match SIGNS.iter().find(is_here) {
            Some((kind, _)) => Some(*kind),
            None if is_generic && has_front() => Some(SiteKind::FrontController),
            None => None,
        }
    };
    let found = names.into_iter().take(MAX_NESTED).filter_map(|name| {
        Some(NestedApplication {
            kind: kind_of(&join(root, &name))?,
            path: format!("/{name}"),
        })
    });
    found.collect()
}

/// No application we know by name.
fn generic(files: &dyn Files) -> (SiteKind, &'static str) {
    let root = std::iter::once("")
        .chain(ROOTS)
        .find(|root| {
            ["index.php", "index.html"]
                .iter()
                .any(|name| files.is_file(&join(root, name)))
        })
        .unwrap_or("");
    let names = files.names(root);
    let scripts = names.iter().filter(|name| name.ends_with(".php")).count();
    let has_index = files.is_file(&join(root, "index.php"));
    let kind = match scripts {
        0 if has_scripts_below(files, root, &names) => SiteKind::PlainPhp,
        0 => SiteKind::Static,
        1 if has_index => SiteKind::FrontController,
        _ if has_index && rewrites_to_index(files, root) => SiteKind::FrontController,
        _ => SiteKind::PlainPhp,
    };
    (kind, root)
}

/// Has a folder directly below a first page in PHP, as phpList's `lists` has? A library's folder is none.
fn has_scripts_below(files: &dyn Files, root: &str, names: &[String]) -> bool {
    let is_place = |name: &&String| {
        !name.starts_with('.') && !matches!(name.as_str(), "vendor" | "node_modules")
    };
    let mut places = names.iter().filter(is_place);
    places.any(|name| files.is_file(&join(root, &format!("{name}/index.php"))))
}

/// Whether Apache's configuration in the folder sends other paths to
/// `index.php`.
fn rewrites_to_index(files: &dyn Files, root: &str) -> bool {
    let text = files.text(&join(root, ".htaccess")).unwrap_or_default();
    text.lines().map(str::trim_start).any(|line| {
        let line = line.to_ascii_lowercase();
        (line.starts_with("rewriterule") || line.starts_with("fallbackresource"))
            && line.contains("index.php")
    })
}

/// An application of the table of layouts.
fn layout(files: &dyn Files, kind: SiteKind, root: &str) -> Option<&'static Layout> {
    if !matches!(kind, SiteKind::FrontController | SiteKind::PlainPhp) {
        return None;
    }
    LAYOUTS.iter().find(|layout| {
        let mut signs = layout.signs.iter();
        signs.all(|sign| files.is_file(&join(root, sign)))
    })
}

/// Debian's WordPress: the settings are chosen by host name from
/// `/etc/wordpress`, themes and uploads are below `/var/lib/wordpress`.
fn debian_wp_content(files: &dyn Files, kind: SiteKind) -> Option<&'static str> {
    let is_debian = kind == SiteKind::WordPress
        && files
            .text("wp-config.php")
            .is_some_and(|text| text.contains("/etc/wordpress/"))
        && !files.names("/var/lib/wordpress/wp-content").is_empty();
    is_debian.then_some("/var/lib/wordpress")
}

fn join(root: &str, path: &str) -> String {
    // `../artisan` of the folder itself lies outside, where the folder is
    // itself a project's `public`.
    match root {
        "" => path.to_owned(),
        _ => Path::new(root).join(path).to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use SiteKind::*;

    use super::*;

    /// Paths, `..` taken out, with contents.
    struct Listing(Vec<(&'static str, &'static str)>);

    fn plain(path: &str) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
                _ => parts.push(part),
            }
        }
        parts.join("/")
    }

    impl Files for Listing {
        fn is_file(&self, path: &str) -> bool {
            self.0.iter().any(|(name, _)| *name == plain(path))
        }

        fn names(&self, folder: &str) -> Vec<String> {
            let within = |name: &'static str| match folder {
                "" => Some(name),
                _ => name.strip_prefix(folder)?.strip_prefix('/'),
            };
            let first = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
            self.0
                .iter()
                .filter_map(|(name, _)| within(name).map(first))
                .collect()
        }

        fn text(&self, path: &str) -> Option<String> {
            let (_, text) = self.0.iter().find(|(name, _)| *name == path)?;
            Some((*text).to_owned())
        }
    }

    /// Name, files, and the expected kind and document root.
    #[rustfmt::skip]
    const KINDS: &[(&str, &[&str], SiteKind, &str)] = &[
        ("nothing", &[], Static, ""),
        ("pages", &["index.html", "a.css"], Static, ""),
        ("built pages", &["package.json", "public/index.html"], Static, "public"),
        ("wordpress", &["index.php", "wp-load.php", "wp-includes/version.php"], WordPress, ""),
        (
            "wordpress by composer", &["composer.json", "web/index.php", "web/wp-config.php", "web/wp/wp-load.php"],
            WordPress, "web",
        ),
        ("mediawiki", &["index.php", "load.php", "includes/WebStart.php"], MediaWiki, ""),
        ("dokuwiki", &["index.php", "doku.php", "inc/init.php"], DokuWiki, ""),
        ("drupal", &["index.php", "core/lib/Drupal.php"], Drupal, ""),
        ("drupal project", &["composer.json", "web/index.php", "web/core/lib/Drupal.php"], Drupal, "web"),
        ("drupal 7", &["index.php", "includes/bootstrap.inc", "misc/drupal.js"], Drupal, ""),
        ("laravel", &["artisan", "public/index.php"], Laravel, "public"),
        ("laravel's public", &["../artisan", "index.php"], Laravel, ""),
        ("symfony", &["config/bundles.php", "public/index.php"], Symfony, "public"),
        ("symfony's public", &["../config/bundles.php", "index.php"], Symfony, ""),
        ("symfony without bundles", &["src/Kernel.php", "public/index.php"], Symfony, "public"),
        ("symfony with its console", &["bin/console", "public/index.php"], Symfony, "public"),
        ("wordpress below", &["blog/wp-load.php", "blog/wp-includes/version.php"], PlainPhp, ""),
        ("front controller in public", &["composer.json", "public/index.php"], FrontController, "public"),
        ("front controller", &["index.php", "style.css"], FrontController, ""),
        ("scripts", &["index.php", "about.php"], PlainPhp, ""),
        ("scripts without index", &["about.php"], PlainPhp, ""),
        ("scripts below alone", &["index.html", "lists/index.php", "lists/admin/index.php"], PlainPhp, ""),
        ("libraries below", &["index.html", "vendor/index.php", ".git/index.php"], Static, ""),
        ("own index before a subfolder's", &["index.php", "about.php", "www/index.php"], PlainPhp, ""),
        ("half a wordpress", &["wp-load.php", "index.html"], PlainPhp, ""),
    ];

    #[test]
    fn kind_and_document_root_are_told_by_files() {
        for (name, paths, kind, root) in KINDS {
            let found = detect(&Listing(paths.iter().map(|path| (*path, "")).collect()));
            assert_eq!((found.kind, found.document_root), (*kind, *root), "{name}");
        }
    }

    #[test]
    fn applications_below_the_document_root_are_found() {
        let wordpress = |folder: &str| {
            ["index.php", "wp-load.php", "wp-includes/version.php"].map(|it| join(folder, it))
        };
        type Case = (
            &'static str,
            Vec<String>,
            &'static [(SiteKind, &'static str)],
        );
        let cases: [Case; 5] = [
            (
                "blog beside a site",
                [
                    &wordpress("blog")[..],
                    &["index.php".into(), "about.html".into()],
                ]
                .concat(),
                &[(SiteKind::WordPress, "/blog")],
            ),
            (
                "two in public",
                [
                    &wordpress("public/news")[..],
                    &["public/index.php".into(), "public/wiki/load.php".into()],
                    &["public/wiki/includes/WebStart.php".into()],
                ]
                .concat(),
                &[
                    (SiteKind::WordPress, "/news"),
                    (SiteKind::MediaWiki, "/wiki"),
                ],
            ),
            (
                "the core of a project by Composer",
                [&wordpress("web/wp")[..], &["web/wp-config.php".into()]].concat(),
                &[],
            ),
            (
                "a name that no pattern should hold",
                wordpress("my blog").to_vec(),
                &[],
            ),
            (
                "parts of WordPress itself",
                [&wordpress("")[..], &["wp-content/index.php".into()]].concat(),
                &[],
            ),
        ];
        for (name, paths, expected) in cases {
            let paths = paths.into_iter().map(|path| (&*path.leak(), ""));
            let found = detect(&Listing(paths.collect()));
            let below: Vec<(SiteKind, &str)> =
                found.nested.iter().map(|it| (it.kind, &*it.path)).collect();
            assert_eq!(below, expected, "{name}");
        }
    }

    #[test]
    fn rewriting_to_index_makes_scripts_a_front_controller() {
        let cases = [
            (
                "rewrite",
                "  RewriteRule ^ index.php [L]",
                SiteKind::FrontController,
            ),
            (
                "fallback",
                "FallbackResource /index.php",
                SiteKind::FrontController,
            ),
            ("comment", "# RewriteRule ^ index.php", SiteKind::PlainPhp),
            ("other", "RewriteRule ^old$ new.php", SiteKind::PlainPhp),
        ];
        for (name, text, kind) in cases {
            let files = Listing(vec![("index.php", ""), ("b.php", ""), (".htaccess", text)]);
            assert_eq!(detect(&files).kind, kind, "{name}");
        }
    }

    #[test]
    fn debian_wordpress_has_its_content_elsewhere() {
        let mut files = vec![
            ("wp-load.php", ""),
            ("wp-includes/version.php", ""),
            ("wp-config.php", "$debian_file = '/etc/wordpress/config-'"),
        ];
        assert_eq!(detect(&Listing(files.clone())).wp_content_parent, None);
        files.push(("/var/lib/wordpress/wp-content/index.php", ""));
        let found = detect(&Listing(files));
        assert_eq!(found.wp_content_parent, Some("/var/lib/wordpress"));
    }

    #[test]
    fn short_wiki_paths_give_way_to_a_folder_of_that_name() {
        let mut files = vec![("load.php", ""), ("includes/WebStart.php", "")];
        assert!(detect(&Listing(files.clone())).has_short_wiki_paths);
        files.push(("wiki/old.html", ""));
        assert!(!detect(&Listing(files)).has_short_wiki_paths);
    }
}
