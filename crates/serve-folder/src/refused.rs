//! Refused files, and for known applications the files that are handed out: the tables that
//! the locations of the written configuration are made from. Each row has its reason and
//! its source. Patterns are PCRE without case, on the path as files are looked up by
//! (decoded, without `..` and double slashes).
//!
//! Two principles. For an application that we know, a list has the files that are handed
//! out, and every other file is refused, so that the next kind of leftover needs no rule.
//! For others, the table of refused names is all there is, besides that files without an
//! extension are not handed out (`core`, `error_log`, `id_rsa`, `artisan`, `dump`).

use super::kind::SiteKind;

/// Files that no visitor gets.
#[derive(Debug)]
pub(super) struct Refusal {
    /// For the log and the configuration; without quotes.
    pub(super) why: &'static str,
    pub(super) pattern: String,
    /// The program that leaves such files, or whose documentation calls them private.
    pub(super) source: &'static str,
    /// A path that is no file is the application's: it may be the address of a page.
    pub(super) is_for_files_only: bool,
    /// Holds for a folder of static files, too: such a site may be there to publish
    /// sources, archives and public keys.
    pub(super) is_for_static: bool,
}

/// A suffix that makes a file a script somewhere, without the end.
pub(super) const SCRIPT: &str = r"\.(?:php\d*|phtml?|pht|phar|phps)";

/// Files that a page has a browser load, and how long a browser may keep them.
pub(super) const LIFETIMES: [(&str, &str); 2] = [
    ("1h", "css|js|mjs|map|webmanifest|wasm|xslt?"),
    (
        "7d",
        "gif|jpe?g|jfif|a?png|webp|avif|svg|ico|cur|bmp|woff2?|ttf|otf|eot|mp3|m4a|aac|og[agv]|opus|wav|flac|mp4|m4v|mov|webm|vtt|pdf",
    ),
];

/// All of it.
pub(super) fn browser_types() -> String {
    LIFETIMES.map(|(_, types)| types).join("|")
}

const ARCHIVES: &str =
    "zip|zipx|tar|tgz|tbz2?|txz|tzst|gz|bz2|xz|zst|lz4|lzma|7z|rar|cab|iso|img|lha|arj|jar|war";

/// Files that editors upload for visitors to download: WordPress's `wp_get_mime_types()`
/// without the types that a browser would run or render as a page.
const DOCUMENTS: &str = "docx?|docm|dot[mx]?|xls[bmx]?|xlt[mx]?|pptx?|pptm|pp[as][mx]?|pot[mx]?|od[bcfgpst]|rtf|wpd|pages|numbers|txt|csv|tsv|ics|vcf|md|epub|mobi|azw3|gpx|kml|kmz|geojson|json|psd|xcf|ai|eps|tiff?|heic|heif|dwg|dxf|stl|avi|mkv|mpe?g|wmv|flv|3g[2p]|m4b|midi?|wma|aiff?|srt|djvu?|zip|tar|gz|tgz|rar|7z";

/// Files that no visitor gets, whatever the application.
pub(super) fn refused_files() -> Vec<Refusal> {
    let row = |why, pattern: &str, source| Refusal {
        why,
        pattern: pattern.to_owned(),
        source,
        is_for_files_only: false,
        is_for_static: false,
    };
    let everywhere = |row| Refusal {
        is_for_static: true,
        ..row
    };
    let if_a_file = |row| Refusal {
        is_for_files_only: true,
        ..row
    };
    let browser = browser_types();
    vec![
        everywhere(row(
            "A copy of a script, which would be shown as text.",
            // Sites mirrored by wget, and pictures that WordPress renames, keep `.php`
            // within their names.
            &format!(r"^(?!.*\.(?:html?|{browser})$).*{SCRIPT}[^/]*$"),
            "vim, Emacs and cp (.php~ .php.bak .php.1 .php_ .php-), dpkg(1) conffiles (.dpkg-old), Apache mod_php's FilesMatch (.pht .phtml .phps)",
        )),
        everywhere(row(
            "A copy that an editor or a package manager left.",
            r"(?:~|#|\.(?:bak|bk|bkp|backup|copy|old|orig|original|rej|save[d\d]?|sw[a-p]|tmp|part|rpm(?:save|new|orig)|(?:dpkg|ucf)-[a-z]+|pacnew|pacsave|un~)\d*|\.[a-z]+-(?:dist|old|bak|orig|copy))$",
            "vim (swap-file, backup), Emacs (auto-save), nano (.save), patch(1) (.orig .rej), dpkg, ucf, rpm and pacman manuals",
        )),
        everywhere(row(
            "A database or a dump of one.",
            &format!(
                r"\.(?:m?sql|psql|sqlite\d?|sqlitedb|s3db|sdb|db\d?|dbf|mdb|accdb|rdb|bson|dmp|dump|frm|ibd|my[di])(?:-(?:wal|shm|journal))?(?:[.-]?\d+)?(?:\.(?:{ARCHIVES}|bak|old))?$"
            ),
            "sqlite.org/tempfiles.html (-wal -shm -journal), mysqldump(1), pg_dump(1), mongodump, Redis (dump.rdb), Access",
        )),
        everywhere(row(
            "A private key, a certificate with one, or a store of passwords.",
            r"\.(?:pem|key|ppk|p12|pfx|p8|pk8|jks|keystore|bcfks|kdbx?|agekey|ovpn|htpasswd)$|/(?:id_(?:rsa|dsa|ecdsa|ed25519)[^/]*|[^/]*htpasswd[^/]*|[^/]*\.tfstate(?:\.[^/]*)?|wallet\.dat)$",
            "openssl(1), ssh-keygen(1), PuTTY, keytool, KeePass, htpasswd(1), Terraform state",
        )),
        everywhere(row(
            "Credentials.",
            r"/(?:auth|\.?secrets?|credentials?|client_?secrets?[^/]*|service-?account[^/]*|[^/]*firebase-adminsdk[^/]*|appsettings[^/]*|s?ftp(?:-config|sync)?|remote-sync|passwords?|passwd|logins?)\.(?:json|ya?ml|xml|ini|txt|csv|xlsx?)$|/(?:filezilla|sitemanager|recentservers)\.xml$|/ws_ftp\.[a-z]+$|/kubeconfig[^/]*$",
            "Composer (auth.json), Google Cloud (client_secret, service account), ASP.NET (appsettings), VS Code and Sublime SFTP, FileZilla, WS_FTP, kubectl",
        )),
        everywhere(row(
            "A log or a memory image.",
            r"\.(?:log|err|cachegrind|prof|hprof|stackdump|mdmp)(?:[-._]?\d[^/]*)?(?:\.(?:gz|bz2|xz|zst|old))?$|/(?:[^/]*_)?(?:error|access|debug|mail|php_?errors?)_log[^/]*$|/cachegrind\.out[^/]*$|/nohup\.out$|/core\.\d+$",
            "php.net/error-log (error_log), logrotate(8), Xdebug (cachegrind.out), core(5), nohup(1)",
        )),
        row(
            "A certificate or a signature.",
            r"\.(?:crt|cer|der|csr|crl|p7[bcs]|asc|gpg|pgp|sig)$",
            "openssl(1), gpg(1)",
        ),
        row(
            "A setting or a source, not a part of a page.",
            r"\.(?:inc|ini|env(?:\.[^/]*)?|conf|cnf|cfg|config|properties|ya?ml|toml|neon|twig|tpl|latte|blade|mustache|hbs|ejs|lock|dist|sh|bash|zsh|fish|bat|cmd|ps1|py[co]?|rb|pl|pm|cgi|lua|java|class|go|rs|c|cc|cpp|cs|vb|aspx?|asmx|jspx?|cfm|ts|tsx|jsx|vue|less|s[ac]ss|coffee|phpt|po|pot|module|install|make|engine|theme|profile|info|xtmpl|tf|tfvars|psd1|iml|sln|csproj|npmrc)$",
            "Drupal's .htaccess (engine, inc, install, make, module, profile, po, sh, theme, twig, xtmpl, yml), Symfony and Nette (yaml, neon), Smarty (tpl), Grav's nginx.conf",
        ),
        row(
            "A file of the project, not of the page.",
            r"/(?:composer\.(?:json|lock|phar)|symfony\.lock|package(?:-lock)?\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-[^/]*|bower\.json|[jt]sconfig[^/]*\.json|(?:gulp|grunt)file[^/]*|(?:astro|babel|cypress|eslint|jest|karma|metro|next|nuxt|playwright|postcss|rollup|svelte|tailwind|vite|vitest|vue|webpack)\.config\.[cm]?[jt]s|web\.config[^/]*|htaccess\.txt|(?:phpunit|phpcs|psalm|build|pom|robo|ruleset)\.xml[^/]*|(?:docker|make|proc|vagrant|gem|rake|jenkins|cap)file(?:\.(?!m?js$)[^/]*)?|docker-compose[^/]*|codeception[^/]*|(?:release-)?notes\.php)$",
            "Composer, npm, Yarn, TypeScript, gulp, Grunt, webpack, IIS, PHPUnit, Docker, Vagrant, Joomla (htaccess.txt, web.config.txt)",
        ),
        row(
            "A folder of a version control or of Java's private parts.",
            r"/(?:CVS|RCS|SCCS|_darcs|_svn|nbproject|WEB-INF|META-INF)(?:/|$)",
            "cvs(1), rcs(1), darcs(1), NetBeans, the Servlet specification",
        ),
        row(
            "An archive that may be a backup of the site.",
            // Downloads that are named for something else lie in folders of their own.
            &format!(
                r"^/(?!(?:[^/]*sitemap[^/]*\.xml|[^/]*\.(?:css|m?js|svg|html|json|wasm))\.(?:gz|br|zst)$)[^/]*\.(?:{ARCHIVES}|wpress|jpa|daf|bin|exe|apk)$|\.(?:wpress|jpa|daf|vma|ova|vmdk|vhdx?|qcow2)$|/(?:[^/]*(?:backup|bkup|dump|db|database|sauvegarde|respaldo)|www|htdocs|public_html|wwwroot|httpdocs|html|web|site|website|src|source|wordpress|wp|mysql)(?:[-_.]?\d[^/]*)?(?:\.tar)?\.(?:{ARCHIVES})$|/(?:[^/]*backups?[^/]*|backwpup[^/]*|updraft|ai1wm[^/]*|wpvivid[^/]*|dumps?)/.*\.(?:{ARCHIVES})(?:\.[^/]*)?$"
            ),
            "All-in-One WP Migration (.wpress), Akeeba Backup (.jpa), Duplicator (.daf), UpdraftPlus, BackWPup, WPvivid, cPanel and Plesk folder names",
        ),
        if_a_file(row(
            "A library's file that no page loads.",
            &format!(r"/(?:vendor|node_modules|bower_components)/(?!.*\.(?:json|{browser})$)"),
            "Composer and npm: their folders are not made to be visited",
        )),
        if_a_file(row(
            "A file in a folder that is named for private things.",
            &format!(
                r"^/(?:te?mp|cache|config|conf|settings|databases?|migrations|bin|cli|cron|storage/(?:framework|logs|app/private))/(?!.*\.(?:{browser})$)|/(?:backups?|logs?|sessions?|private|secrets?|sql|dumps?)/(?!.*\.(?:css|m?js|map|png|gif|svg|ico|woff2?)$)"
            ),
            "the .htaccess files of Joomla, Roundcube, Grav, PrestaShop and Nextcloud",
        )),
    ]
}

/// Files without an extension that no visitor gets from a folder of static files, which may
/// hold pages without one. (Other kinds hand out no such file.)
pub(super) const REFUSED_NAMES: &str = "/(?:core|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]*htpasswd[^/]*|passwd|shadow|(?:[^/]*_)?(?:error|access|debug)_log|dump|backup)$";

/// Files that are handed out beside [`LIFETIMES`], of applications that we know: for each
/// row why, and the pattern. Every other file of them is refused.
pub(super) type HandedOut = Vec<(&'static str, String)>;

/// Returns the files that are handed out; `None`: everything that the table does not
/// refuse.
pub(super) fn handed_out(kind: SiteKind) -> Option<HandedOut> {
    // Folders in which visitors find the uploads of editors.
    let uploads = match kind {
        SiteKind::WordPress => Some("/(?:wp-content|app)/(?:uploads|files|blogs\\.dir)/"),
        SiteKind::MediaWiki => Some("^/images/"),
        SiteKind::Drupal => Some("^/(?:sites/[^/]+/)?files/"),
        // The folder is made for publishing, but files are forgotten there.
        SiteKind::Laravel | SiteKind::Symfony => {
            Some("^/(?:storage|uploads?|files|media|downloads?|documents?|docs|assets|images?)/")
        }
        // lib/exe/fetch.php hands its media out, after asking who may see them.
        SiteKind::DokuWiki => None,
        SiteKind::FrontController | SiteKind::PlainPhp | SiteKind::Static => return None,
    };
    let mut rows: HandedOut = vec![
        (
            "What robots and browsers ask for by its name, and proofs of ownership.",
            r"/(?:[^/]*sitemap[^/]*\.xml(?:\.gz)?|(?:robots|ads|app-ads|humans|security|llms|llms-full|[0-9a-f-]{8,128})\.txt|(?:browserconfig|crossdomain|bingsiteauth|wlwmanifest|opensearch|rss|feed|atom)\.xml|(?:[^/]*manifest|version|assetlinks)\.json|favicon\.[a-z]+)$|^/\.well-known/".to_owned(),
        ),
        (
            "Pages, and data that themes and extensions load.",
            r"\.html?$|^/.+/[^/]+\.json$|\.(?:css|m?js|svg|html|json|wasm)\.(?:gz|br|zst)$".to_owned(),
        ),
    ];
    if let Some(folders) = uploads {
        rows.push((
            "What editors upload for visitors.",
            format!(r"{folders}.*\.(?:{DOCUMENTS})$"),
        ));
    }
    Some(rows)
}

/// An application whose pages need no rules of their own, but whose private parts are
/// known.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    pub(super) name: &'static str,
    /// Files by which it is recognized, relative to the document root. All must be there.
    pub(super) signs: &'static [&'static str],
    /// Paths that no visitor may open: files and scripts.
    pub(super) refused: &'static str,
    pub(super) source: &'static str,
}

/// Known layouts of others.
pub(super) const LAYOUTS: [Layout; 7] = [
    Layout {
        name: "Joomla",
        signs: &["administrator/index.php", "includes/framework.php"],
        refused: r"^/(?:bin|cli|includes|language|layouts|libraries|logs|tmp|administrator/(?:includes|language|logs|manifests))/|^/(?:administrator/)?cache/.*\.(?:php|json|xml)|^/(?:images|media|plugins|templates|modules|components)/.*\.php\d*(?:/|$)|^/configuration\.php|^/README\.txt$",
        source: "docs.joomla.org, Htaccess examples (security)",
    },
    Layout {
        name: "phpMyAdmin",
        signs: &["index.php", "libraries/config.default.php"],
        refused: r"^/(?:libraries|templates|sql|locale|examples|vendor|tmp|upload|save|setup/(?:lib|frames))(?:/|$)|^/config\.inc\.php|^/(?:ChangeLog|RELEASE-DATE[^/]*)$",
        source: "docs.phpmyadmin.net, Securing your phpMyAdmin installation",
    },
    Layout {
        name: "Roundcube",
        signs: &["index.php", "program/include/iniset.php"],
        refused: r"^/(?:SQL|bin|config|logs|temp|tests|vendor|localization|program/(?:actions|include|lib|localization|steps))(?:/|$)|^/(?:plugins|skins|program)/.*(?:\.php\d*(?:/|$)|\.html$|\.json$)|^/(?:CHANGELOG|INSTALL|LICENSE|README|SECURITY|UPGRADING)",
        source: "Roundcube's .htaccess",
    },
    Layout {
        name: "Nextcloud",
        signs: &["occ", "remote.php", "status.php"],
        refused: r"^/(?:build|tests|config|lib|3rdparty|templates|data)(?:/|$)|^/(?:autotest|occ|issue|indie|db_|console)|^/(?!core/ajax/update\.php(?:/|$))(?:apps|core|themes)/(?!.*/proxy\.php).*\.php(?:/|$)",
        source: "docs.nextcloud.com, NGINX configuration",
    },
    Layout {
        name: "Grav",
        signs: &["bin/grav", "system/defines.php"],
        refused: r"^/(?:cache|bin|logs|backup|tests|webserver-configs)/|^/(?:system|vendor)/.*\.(?:txt|xml|md|html?|shtml?|json|ya?ml|php\d?|phar|phtml|pl|py|cgi|twig|sh|bat)(?:/|$)|^/user/(?:accounts|config|data|env)/|^/user/.*\.(?:txt|md|json|ya?ml|php\d?|phar|phtml|pl|py|cgi|twig|sh|bat)(?:/|$)",
        source: "Grav's webserver-configs/nginx.conf",
    },
    Layout {
        name: "Kirby",
        signs: &["index.php", "kirby/bootstrap.php"],
        refused: r"^/(?:content|site|kirby|storage)/",
        source: "getkirby.com/docs, Kirby on nginx",
    },
    Layout {
        name: "PrestaShop",
        signs: &["init.php", "config/defines.inc.php"],
        refused: r"^/(?:app|bin|cache|classes|config|controllers|docs|localization|override|src|tests|tools|translations|var|vendor)/|^/modules/.*/vendor/|^/(?:img|upload|download|mails|themes)/.*\.php\d*(?:/|$)",
        source: "devdocs.prestashop-project.org, nginx",
    },
];

#[cfg(test)]
mod tests {
    use pcre2::bytes::RegexBuilder;

    use super::*;

    #[test]
    fn each_row_says_why_and_from_where_and_can_be_written() {
        let rows = refused_files();
        let mut written: Vec<(&str, &str, &str)> = rows
            .iter()
            .map(|row| (row.why, &*row.pattern, row.source))
            .collect();
        written.extend(
            LAYOUTS
                .iter()
                .map(|row| (row.name, row.refused, row.source)),
        );
        for (why, pattern, source) in written {
            assert!(!why.is_empty() && !source.is_empty(), "{pattern}");
            assert!(!why.contains(['"', '$', '\\']), "{why}");
            assert!(!pattern.contains('"'), "{pattern}");
            let built = RegexBuilder::new().caseless(true).build(pattern);
            assert!(built.is_ok(), "{why} {built:?}");
        }
    }
}
