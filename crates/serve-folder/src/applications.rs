//! The needs of each kind of application from the web server, as tables: which requests are personal, which paths are
//! refused to all, which scripts may run. Read by [`super::write_config()`]; patterns are PCRE as in nginx's `location`
//! and `map`.
//!
//! The rules err on the side of PHP: a page that is wrongly not shared costs
//! time, one that is wrongly shared costs trust. `Set-Cookie` and
//! `Cache-Control` in the response still decide after these.

use shared_request::NameSet;

use super::kind::SiteKind;
use super::options::GuestSessions;

/// The rules of one kind of application.
pub(super) struct Rules {
    /// Cookies that make a page personal.
    pub(super) cookies: Cookies,
    /// Patterns of paths never kept in memory, each of a whole path segment or several.
    pub(super) paths: &'static [&'static str],
    /// Query arguments of pages never kept in memory: names, and patterns behind `~`.
    pub(super) arguments: &'static [&'static str],
    /// Paths that are refused to all: the reason, and the pattern of the path.
    pub(super) refused: &'static [(&'static str, &'static str)],
    /// The scripts that run.
    pub(super) scripts: Scripts,
    /// An application that is known: its answers 404 to strangers are the same for all of them, whatever their
    /// `Cache-Control` is, and so are its redirects.
    pub(super) is_known: bool,
    /// It writes the same `no-cache` into all its pages unless its settings change that.
    pub(super) says_no_cache_alike: bool,
}

impl Rules {
    /// Returns the paths whose pages are for one visitor each. For an application that is not known they are a guess,
    /// which is not needed if the server finds out the parts of a request on which a page depends.
    pub(super) fn personal_paths(&self, sessions: GuestSessions) -> &'static [&'static str] {
        match self.is_known || sessions == GuestSessions::Off {
            true => self.paths,
            false => &[],
        }
    }
}

/// The meaning of cookies in a request. The cookies of [`HARMLESS_COOKIES`] have none.
pub(super) struct Cookies {
    /// They make a page personal.
    pub(super) personal: &'static [&'static str],
    /// They shape a page that many visitors see, such as the choice of a language.
    pub(super) key: &'static [&'static str],
    /// The application's cookies are all listed: others shape nothing. Without it, any other
    /// cookie may be a session.
    pub(super) are_all_known: bool,
}

/// The scripts that visitors may run.
#[derive(Clone, Copy)]
pub(super) enum Scripts {
    /// Every `.php` that is not refused.
    All,
    /// Only those that the pattern names; others are refused, and never shown.
    Only(&'static str),
}

/// Cookies that browsers carry for analytics, advertisements and protection against robots, and those that only an administrator's own pages read; no page depends on them.
/// For `cache_ignore_cookies`.
#[rustfmt::skip]
pub(super) const HARMLESS_COOKIES: [&str; 49] = [
    // Google, Meta, Matomo, Hotjar, Microsoft, Yandex and other analytics.
    "_ga", "_ga_*", "_gid", "_gat*", "_gac_*", "_gcl_*", "_dc_gtm_*", "__utm*", "__gads", "__gpi", "__eoi",
    "_fbp", "_fbc", "_pk_*", "mtm_*", "_hj*", "_uet*", "_clck", "_clsk", "_ym_*", "ajs_*", "amp_*",
    "ph_*_posthog", "__hs*", "hubspotutk", "_mkto_trk", "_pin_unauth", "_scid*", "_tt_*", "_ttp", "li_gc",
    "li_sugr", "li_fat_id", "_lfa", "_vwo*", "__qca", "sbjs_*", "tk_ai", "tk_qs",
    // Protection against robots.
    "__cf_bm", "__cflb", "__cfruid", "__cfduid", "cf_clearance", "_cfuvid", "incap_ses_*", "visid_incap_*",
    // WordPress's choices for its administration.
    "wp-settings-*", "wordpress_test_cookie",
];

/// Cookies that hold a choice of the visitor's, which a page may show: a banner is gone, a theme is
/// another. For `cache_trial_cookies`.
#[rustfmt::skip]
pub(super) const CHOICE_COOKIES: [&str; 15] = [
    "borlabs-cookie", "catAccCookies", "cmplz_*", "cookie_consent*", "cookie_notice_accepted",
    "cookieconsent_*", "CookieConsent", "cookielawinfo-*", "cookieyes-consent", "euconsent*", "moove_gdpr_*",
    "Optanon*", "real_cookie_banner*", "viewed_cookie_policy",
    // Mixpanel has `mp_TOKEN_mixpanel`; others have `mp_` for a prefix of their own.
    "mp_*",
];

/// Query arguments that mark where a visitor came from; no page depends on
/// them. For `cache_ignore_args`.
pub(super) const ANALYTICS_ARGUMENTS: [&str; 13] = [
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid",
    "ttclid", "twclid", "mc_cid", "mc_eid",
];

/// The arguments that addresses of pages are without.
#[must_use]
pub fn ignored_arguments() -> NameSet {
    NameSet::new(ANALYTICS_ARGUMENTS.iter().map(|name| name.as_bytes()))
}

/// Paths that run as PHP on a careless server, also with a path behind them.
pub(super) const PHP: &str = "\\.(?:php\\d*|phtml?|pht|phar|phps)(?:/|$)";

#[rustfmt::skip]
const GENERIC_PATHS: &[&str] = &[
    "admin", "administrator", "login", "logout", "signin", "signup", "register", "password", "account", "user",
    "profile", "settings", "dashboard", "cart", "basket", "checkout",
];

/// The names that `mayfly advise` takes for personal, and those that it leaves out of keys, in logs that do not show
/// which application they are of.
pub struct KnownNames {
    pub personal_cookies: Vec<&'static str>,
    /// Parts of paths: `wp-admin`.
    pub personal_parts: Vec<String>,
    pub ignored_cookies: &'static [&'static str],
    pub ignored_arguments: &'static [&'static str],
}

/// Returns the known names of all applications together. An ordinary session cookie is not among them: many
/// applications give one to everybody.
pub fn known_names() -> KnownNames {
    let known = [&WORDPRESS, &MEDIAWIKI, &DOKUWIKI, &DRUPAL];
    let cookies = known.iter().flat_map(|rules| rules.cookies.personal);
    let paths = WORDPRESS.paths.iter().chain(GENERIC_PATHS);
    // Whole parts, without those that only a pattern can express.
    let parts = paths.map(|path| path.replace("\\.", "."));
    let is_part = |part: &String| !part.contains(['\\', '/', '(', '*', '[']);
    KnownNames {
        personal_cookies: cookies
            .copied()
            .filter(|name| *name != "PHPSESSID")
            .collect(),
        personal_parts: parts.filter(is_part).collect(),
        ignored_cookies: &HARMLESS_COOKIES,
        ignored_arguments: &ANALYTICS_ARGUMENTS,
    }
}

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
pub(super) fn rules(kind: SiteKind) -> Option<Rules> {
    match kind {
        SiteKind::WordPress => Some(WORDPRESS),
        SiteKind::MediaWiki => Some(MEDIAWIKI),
        SiteKind::DokuWiki => Some(DOKUWIKI),
        SiteKind::Drupal => Some(DRUPAL),
        SiteKind::Laravel | SiteKind::Symfony => Some(Rules {
            scripts: INDEX_ONLY,
            ..GENERIC
        }),
        SiteKind::FrontController | SiteKind::PlainPhp => Some(GENERIC),
        SiteKind::Static => None,
    }
}

/// Any cookie may be a session.
const UNKNOWN_COOKIES: Cookies = Cookies {
    personal: &[],
    key: &[],
    are_all_known: false,
};

const GENERIC: Rules = Rules {
    cookies: UNKNOWN_COOKIES,
    paths: GENERIC_PATHS,
    arguments: &[],
    refused: &[UPLOADS, LIBRARIES],
    scripts: Scripts::All,
    is_known: false,
    says_no_cache_alike: false,
};

/// Its logged-in pages have neither `private` nor `Vary`: they differ only by the request's cookies.
#[rustfmt::skip]
const WORDPRESS: Rules = Rules {
    cookies: Cookies {
        personal: &[
            "wordpress_logged_in_*", "wordpress_sec_*", "wordpress_no_cache", "wp-postpass_*",
            "comment_author_*", "woocommerce_items_in_cart", "woocommerce_cart_hash",
            "wp_woocommerce_session_*", "edd_*", "_wp_session*", "swpm_*", "PHPSESSID",
        ],
        // Polylang, WPML, TranslatePress, qTranslate, GTranslate; currencies of WooCommerce
        // Multilingual, Multi Currency, Aelia, YayCurrency.
        key: &[
            "pll_language", "wp-wpml_current_language", "_icl_current_language", "trp_language",
            "qtrans_front_language", "googtrans", "wcml_client_currency", "wcml_client_country",
            "wmc_current_currency", "wmc_current_currency_old", "aelia_cs_selected_currency",
            "aelia_customer_country", "yay_currency_widget",
        ],
        are_all_known: true,
    },
    paths: &[
        "wp-admin", "wp-login\\.php", "wp-signup\\.php", "wp-activate\\.php", "wp-cron\\.php",
        "wp-comments-post\\.php", "wp-trackback\\.php", "xmlrpc\\.php", "wc-api", "cart", "checkout",
        "my-account", "wp-json/wc",
    ],
    arguments: &["preview", "add-to-cart", "remove_item", "wc-ajax", "wc-api", "doing_wp_cron"],
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
    scripts: Scripts::All, is_known: true, says_no_cache_alike: false,
};

/// Declares itself which pages may be kept (`s-maxage`, `Vary: Cookie`).
#[rustfmt::skip]
const MEDIAWIKI: Rules = Rules {
    cookies: Cookies {
        personal: &[
            "*UserID", "*UserName", "*Token", "*_session",
            // After an edit: past the cache for a while.
            "UseCDNCache", "UseDC",
            // By http: led to https.
            "forceHTTPS",
        ],
        // The mobile view.
        key: &["mf_useformat", "stopMobileRedirect"], are_all_known: true,
    },
    paths: &["mw-config", "Special:User[Ll]ogin", "Special:User[Ll]ogout", "Special:CreateAccount"],
    arguments: &[
        "~^action=(?!(?:view|raw|history|render|info)$)",
        "~*^title=Special:(?:User_?Log|CreateAccount|Preferences|Watchlist)", "veaction", "returnto",
        "wpLogin*",
    ],
    refused: &[
        (
            "Nobody runs or renders what visitors upload.",
            "^/images/.*\\.(?:php\\d*|phtml?|pht|phar|phps|s?html?|xhtml|cgi|pl|py)(?:/|$)",
        ),
        ("Deleted and unfinished uploads.", "^/images/(?:deleted|lockdir|temp)(?:/|$)"),
        (
            "Parts that MediaWiki includes and nobody visits.",
            "^/(?:cache|docs|includes|languages|maintenance|serialized|tests|vendor)(?:/|$)|^/(?:LocalSettings|autoload)\\.php",
        ),
    ],
    scripts: Scripts::Only("^/(?:[^/]+|mw-config/[^/]+)\\.php(?:/|$)"), is_known: true,
    says_no_cache_alike: false,
};

/// Gives every visitor a session and sends `no-store` on every page, because PHP's sessions do: `write_config`
/// describes the remedy. Only an ordinary look at a page is shared, and only without a cookie that may be a session.
#[rustfmt::skip]
const DOKUWIKI: Rules = Rules {
    cookies: UNKNOWN_COOKIES, paths: &["lib", "install\\.php", "_media", "_detail", "_export"],
    arguments: &[
        "~^do=(?!(?:show|recent|backlink|index|revisions|diff|search)?$)",
        // An action may be the index of an array: `do[edit]=`.
        "~^do_[^=]*\\]=", "u", "p", "sectok", "purge",
    ],
    refused: &[
        ("Pages, settings with passwords, programs and sources.", "^/(?:data|conf|bin|inc|vendor)(?:/|$)"),
        LIBRARIES,
    ],
    scripts: Scripts::All, is_known: true, says_no_cache_alike: false,
};

/// Declares itself which pages may be kept.
#[rustfmt::skip]
const DRUPAL: Rules = Rules {
    cookies: Cookies {
        personal: &["SESS*", "SSESS*", "NO_CACHE", "Drupal.visitor.*"], key: &[], are_all_known: true,
    },
    paths: &[
        "admin", "user", "batch", "cart", "checkout", "node/add", "update\\.php", "cron\\.php", "install\\.php",
    ],
    arguments: &["destination"],
    refused: &[
        (
            "Nobody runs what visitors upload.",
            "^/(?:sites/[^/]+/files|files)/.*\\.(?:php\\d*|phtml?|pht|phar|phps)(?:/|$)",
        ),
        ("Private files are handed out by Drupal.", "^/sites/.*/private/"),
        (
            "Sources of modules and themes.",
            "\\.(?:engine|install|make|module|profile|po|theme|tpl\\.php|xtmpl|info)$|^/(?:scripts|core/scripts)/",
        ),
        LIBRARIES,
    ],
    scripts: Scripts::Only(
        "^/(?:index|update|cron|install|authorize|xmlrpc|core/(?:install|authorize|rebuild)|core/modules/statistics/statistics)\\.php(?:/|$)",
    ),
    is_known: true, says_no_cache_alike: true,
};
