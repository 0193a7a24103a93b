//! What each kind of application needs from the web server, as tables: which
//! requests are personal, what nobody may fetch, which scripts may run. Read by
//! [`super::write_config()`]; patterns are PCRE as in nginx's `location` and
//! `map`.
//!
//! The rules err on the side of PHP: a page that is wrongly not shared costs
//! time, one that is wrongly shared costs trust. `Set-Cookie` and
//! `Cache-Control` in the response still decide after these.

use super::detect::Kind;

/// The rules of one kind of application.
pub(super) struct Rules {
    /// Cookies that make a page personal.
    pub(super) cookies: Cookies,
    /// Paths never kept in memory, each a whole path segment or several.
    pub(super) paths: &'static [&'static str],
    /// Patterns of query arguments that are never kept in memory.
    pub(super) arguments: &'static [&'static str],
    /// What nobody may fetch: why, and the pattern of the path.
    pub(super) refused: &'static [(&'static str, &'static str)],
    /// Which scripts run.
    pub(super) scripts: Scripts,
}

/// Which cookies make a page personal.
pub(super) enum Cookies {
    /// Those whose name matches one of the patterns, which the application
    /// documents.
    Named(&'static [&'static str]),
    /// All but analytics: we do not know the application.
    Any,
}

/// Which scripts visitors may run.
#[derive(Clone, Copy)]
pub(super) enum Scripts {
    /// Every `.php` that is not refused.
    All,
    /// Only those that the pattern names; others are refused, and never shown.
    Only(&'static str),
}

/// Cookies that browsers carry for analytics and consent; no page depends on
/// them. For `cache_ignore_cookies` and, as patterns, for `map`.
pub(super) const ANALYTICS_COOKIES: [&str; 16] = [
    "_ga",
    "_ga_*",
    "_gid",
    "_gat*",
    "_gcl_*",
    "_fbp",
    "_fbc",
    "_pk_*",
    "_hj*",
    "_uet*",
    "_clck",
    "_clsk",
    "__utm*",
    "_ym_*",
    "_dc_gtm_*",
    "mp_*",
];

/// Query arguments that mark where a visitor came from; no page depends on
/// them. For `cache_ignore_args`.
pub(super) const ANALYTICS_ARGUMENTS: [&str; 13] = [
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid",
    "ttclid", "twclid", "mc_cid", "mc_eid",
];

/// Programs that index the web: they read much, and nobody minds if they read
/// a page of a minute ago.
pub(super) const CRAWLERS: [&str; 16] = [
    "googlebot",
    "bingbot",
    "duckduckbot",
    "baiduspider",
    "yandex(?:bot|images)",
    "applebot",
    "amazonbot",
    "gptbot",
    "claudebot",
    "ccbot",
    "bytespider",
    "petalbot",
    "semrushbot",
    "ahrefsbot",
    "mj12bot",
    "facebookexternalhit",
];

/// What runs as PHP on a careless server, also with a path behind it.
pub(super) const PHP: &str = "\\.(?:php\\d*|phtml?|pht|phar|phps)(?:/|$)";

const GENERIC_PATHS: &[&str] = &[
    "admin",
    "administrator",
    "login",
    "logout",
    "signin",
    "signup",
    "register",
    "password",
    "account",
    "user",
    "profile",
    "settings",
    "dashboard",
    "cart",
    "basket",
    "checkout",
];

const UPLOADS: (&str, &str) = (
    "Nobody runs what visitors upload or what is kept for a while.",
    "/(?:uploads?|userfiles|attachments|te?mp|cache)/.*\\.(?:php\\d*|phtml?|pht|phar|phps)(?:/|$)",
);

/// At any depth: plug-ins bring libraries as well. Automated attacks have asked for
/// PHPUnit's `eval-stdin.php` since 2017 (CVE-2017-9841).
const LIBRARIES: (&str, &str) = (
    "The scripts of libraries are for other scripts.",
    "/(?:vendor|node_modules|bower_components|phpunit)/.*\\.(?:php\\d*|phtml?|pht|phar|phps)(?:/|$)",
);

const INDEX_ONLY: Scripts = Scripts::Only("^/index\\.php(?:/|$)");

/// The rules for a kind of application; `None` for one without PHP.
pub(super) fn rules(kind: Kind) -> Option<Rules> {
    match kind {
        Kind::WordPress => Some(WORDPRESS),
        Kind::MediaWiki => Some(MEDIAWIKI),
        Kind::DokuWiki => Some(DOKUWIKI),
        Kind::Drupal => Some(DRUPAL),
        Kind::Laravel | Kind::Symfony => Some(Rules {
            scripts: INDEX_ONLY,
            ..GENERIC
        }),
        Kind::FrontController | Kind::PlainPhp => Some(GENERIC),
        Kind::Static => None,
    }
}

const GENERIC: Rules = Rules {
    cookies: Cookies::Any,
    paths: GENERIC_PATHS,
    arguments: &[],
    refused: &[UPLOADS, LIBRARIES],
    scripts: Scripts::All,
};

/// Its logged-in pages say neither `private` nor `Vary`: only the request's
/// cookies tell them apart.
const WORDPRESS: Rules = Rules {
    cookies: Cookies::Named(&[
        "wordpress_logged_in_[^=;]*",
        "wordpress_sec_[^=;]*",
        "wp-postpass_[^=;]*",
        "comment_author_[^=;]*",
        "woocommerce_items_in_cart",
        "woocommerce_cart_hash",
        "wp_woocommerce_session_[^=;]*",
        "edd_[^=;]*",
        "PHPSESSID",
    ]),
    paths: &[
        "wp-admin",
        "wp-login\\.php",
        "wp-signup\\.php",
        "wp-activate\\.php",
        "wp-cron\\.php",
        "wp-comments-post\\.php",
        "wp-trackback\\.php",
        "xmlrpc\\.php",
        "wc-api",
        "cart",
        "checkout",
        "my-account",
        "wp-json/wc",
    ],
    arguments: &[
        "preview",
        "add-to-cart",
        "remove_item",
        "wc-ajax",
        "wc-api",
        "doing_wp_cron",
        "replytocom",
    ],
    refused: &[
        (
            "Nobody runs what visitors upload.",
            "/(?:wp-content|app)/(?:uploads|files|blogs\\.dir|cache|upgrade|languages)/.*\\.(?:php\\d*|phtml?|pht|phar|phps)(?:/|$)",
        ),
        (
            "Parts that WordPress includes and nobody visits.",
            "/(?:wp-includes/(?!js/tinymce/wp-tinymce\\.php$|ms-files\\.php$).*\\.php|wp-admin/includes/|wp-config(?:-sample)?\\.php|wp-config[^/]*$)",
        ),
        LIBRARIES,
    ],
    scripts: Scripts::All,
};

/// Says itself what may be kept (`s-maxage`, `Vary: Cookie`).
const MEDIAWIKI: Rules = Rules {
    cookies: Cookies::Named(&["[^=;]*(?:UserID|UserName|Token|_session)"]),
    paths: &[
        "mw-config",
        "Special:User[Ll]ogin",
        "Special:User[Ll]ogout",
        "Special:CreateAccount",
    ],
    arguments: &[
        "action=(?!(?:view|raw|history|render|info)(?:&|$))[^&]*",
        "veaction",
        "returnto",
        "wpLogin[^=&]*",
    ],
    refused: &[
        (
            "Nobody runs or renders what visitors upload.",
            "^/images/.*\\.(?:php\\d*|phtml?|pht|phar|phps|s?html?|xhtml|cgi|pl|py)(?:/|$)",
        ),
        (
            "Deleted and unfinished uploads.",
            "^/images/(?:deleted|lockdir|temp)(?:/|$)",
        ),
        (
            "Parts that MediaWiki includes and nobody visits.",
            "^/(?:cache|docs|includes|languages|maintenance|serialized|tests|vendor)(?:/|$)|^/(?:LocalSettings|autoload)\\.php",
        ),
    ],
    scripts: Scripts::Only("^/(?:[^/]+|mw-config/[^/]+)\\.php(?:/|$)"),
};

/// Gives every visitor a session and says `no-store` on every page, because
/// PHP's sessions do: see `write_config` for what is done about it. Only an
/// ordinary look at a page is shared, and only without any cookie.
const DOKUWIKI: Rules = Rules {
    cookies: Cookies::Any,
    paths: &["lib", "install\\.php", "_media", "_detail", "_export"],
    arguments: &[
        "do=(?!(?:show|recent|backlink|index|revisions|diff|search)?(?:&|$))[^&]*",
        "do(?:\\[|%5B)[^&]*",
        "u",
        "p",
        "sectok",
        "purge",
        // A name in disguise.
        "[^=&]*%[^&]*",
    ],
    refused: &[
        (
            "Pages, settings with passwords, programs and sources.",
            "^/(?:data|conf|bin|inc|vendor)(?:/|$)",
        ),
        LIBRARIES,
    ],
    scripts: Scripts::All,
};

/// Says itself what may be kept.
const DRUPAL: Rules = Rules {
    cookies: Cookies::Named(&["S?SESS[0-9a-f]{32,64}", "NO_CACHE"]),
    paths: &[
        "admin",
        "user",
        "batch",
        "cart",
        "checkout",
        "node/add",
        "update\\.php",
        "cron\\.php",
        "install\\.php",
    ],
    arguments: &["destination"],
    refused: &[
        (
            "Nobody runs what visitors upload.",
            "^/(?:sites/[^/]+/files|files)/.*\\.(?:php\\d*|phtml?|pht|phar|phps)(?:/|$)",
        ),
        (
            "Private files are handed out by Drupal.",
            "^/sites/.*/private/",
        ),
        (
            "Sources of modules and themes.",
            "\\.(?:engine|install|make|module|profile|po|theme|tpl\\.php|xtmpl|info)$|^/(?:scripts|core/scripts)/",
        ),
        LIBRARIES,
    ],
    scripts: Scripts::Only(
        "^/(?:index|update|cron|install|authorize|xmlrpc|core/(?:install|authorize|rebuild)|core/modules/statistics/statistics)\\.php(?:/|$)",
    ),
};
