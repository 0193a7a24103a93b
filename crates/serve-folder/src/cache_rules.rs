//! How pages are stored: the zone, lifetimes, and which requests are personal. All of it is equal for PHP and for an
//! HTTP upstream, but for the spelling of the directives.

use std::time::Duration;

use super::applications::{ANALYTICS_ARGUMENTS, CHOICE_COOKIES, HARMLESS_COOKIES, Rules};
use super::conf_text::{CannotWrite, Conf, list, path, table_word, time};
use super::options::{GuestSessions, ServeOptions};

/// Crawlers get pages up to this age.
const CRAWLER_TTL: Duration = Duration::from_secs(60);

/// The longest lifetime of a 404, also of one that is purged when there is a page.
const MAX_NOT_FOUND_TTL: Duration = Duration::from_secs(300);

/// A protocol's spelling of directives, and who makes the pages.
#[derive(Clone, Copy)]
pub(super) struct Spelling {
    pub(super) prefix: &'static str,
    pub(super) maker: &'static str,
    /// Failures of the maker's that the last copy stands in for.
    pub(super) failures: &'static str,
}

pub(super) const FASTCGI: Spelling = Spelling {
    prefix: "fastcgi",
    maker: "PHP",
    failures: "error timeout invalid_header http_500 http_503",
};

/// A page that no visitor asks for is kept for at least this long.
const MIN_INACTIVE: Duration = Duration::from_secs(3600);

/// The zone for pages; `name` is the folder's or the upstream's.
///
/// # Errors
/// The path of the folder for pages cannot be written.
pub(super) fn cache_zone(
    conf: &mut Conf,
    spelling: Spelling,
    name: &[u8],
    options: &ServeOptions,
) -> Result<(), CannotWrite> {
    let Spelling { prefix, maker, .. } = spelling;
    let longest = options.ttl.max(options.vouched_ttl.unwrap_or_default());
    let inactive = longest.max(MIN_INACTIVE);
    conf.note("Pages are kept in memory, and on disk where they live long enough: they are still");
    conf.note(&format!(
        "there after a restart. A page nobody asked for in {} is let go; until then",
        time(inactive)
    ));
    conf.note(&format!("it can stand in while {maker} fails."));
    let folder = options.cache_folder.join(format!("{:016x}", digest(name)));
    conf.line(&format!(
        "{prefix}_cache_path {} levels=1:2 keys_zone=pages:8m inactive={};",
        path(&folder)?,
        time(inactive)
    ));
    conf.gap();
    Ok(())
}

/// A short name for a site (FNV-1a, 64 bits): two sites on one machine must
/// never share a cache's path.
fn digest(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// For how long past its lifetime the last copy is shown: while the maker of pages keeps up,
/// and while it fails or too many wait for it. A page without a request in the meantime
/// is made anew.
const STALE_TIMES: &str = "10s 1h";
/// The first of these times.
const STALE_TTL: Duration = Duration::from_secs(10);
/// Visitors who have written something get pages of their own for no longer, however long pages are kept.
const MAX_WRITER_TTL: Duration = Duration::from_secs(60);

/// How many waiting requests are too many: more than a moment's crowd.
const LONG_QUEUE: usize = 10;

fn guest_sessions(conf: &mut Conf, wanted: GuestSessions) {
    let word = match wanted {
        GuestSessions::Off => return,
        GuestSessions::On => "on",
        GuestSessions::Uniform => "uniform",
    };
    conf.note(
        "A session that every visitor is given makes no page personal that is the same for all.",
    );
    if wanted == GuestSessions::Uniform {
        conf.note("Nor does a Cache-Control that is the same in all pages.");
    }
    conf.line(&format!("cache_guest_sessions {word};"));
}

pub(super) fn cache_rules(
    conf: &mut Conf,
    spelling: Spelling,
    rules: &Rules,
    options: &ServeOptions,
) {
    let Spelling {
        prefix,
        maker,
        failures,
    } = spelling;
    conf.gap();
    conf.note(&format!(
        "One request per page and lifetime reaches {maker}; while it is renewed or {maker}"
    ));
    conf.note("fails, the last copy is shown.");
    conf.line(&format!("{prefix}_cache pages;"));
    conf.line(&valid(spelling, options.ttl));
    if rules.is_known {
        conf.note("Redirects of strangers, as of /favicon.ico.");
        conf.line(&format!(
            "{prefix}_cache_valid 302 307 {};",
            time(options.ttl)
        ));
    }
    conf.line(&format!("{prefix}_cache_use_stale {failures} updating;"));
    conf.line(&format!("{prefix}_cache_background_update on;"));
    conf.line(&format!("cache_stale {STALE_TIMES};"));
    conf.line(&format!("cache_queue_stale {LONG_QUEUE};"));
    conf.line(&format!("{prefix}_cache_lock on;"));
    conf.note(&format!(
        "A page that many may see is made for a request that Mayfly writes: {maker} sees"
    ));
    conf.note("nothing of a visitor that is not in the cache key. All other requests are");
    conf.note("forwarded as they are, and what comes of them is never stored.");
    conf.line("cache_shared on;");
    let cookies = &rules.cookies;
    list(conf, "cache_personal_cookies", cookies.personal);
    list(conf, "cache_key_cookies", cookies.key);
    if cookies.are_all_known {
        conf.line("cache_unknown_cookies remove;");
    }
    if !cookies.are_all_known || rules.says_no_cache_alike {
        guest_sessions(conf, options.guest_sessions);
    }
    let paths = rules.personal_paths(options.guest_sessions);
    if !paths.is_empty() {
        let pattern = format!("~*/(?:{})(?:/|$)", paths.join("|"));
        conf.line(&format!("cache_personal_paths {};", table_word(&pattern)));
    }
    list(conf, "cache_personal_args", rules.arguments);
    conf.note("Consent and the like: whether a page depends on it is tried.");
    list(conf, "cache_trial_cookies", &CHOICE_COOKIES);
    conf.note("Crawlers read everything and may get pages that are a little older.");
    if options.ttl < CRAWLER_TTL {
        conf.line(&format!("cache_crawler_valid {};", time(CRAWLER_TTL)));
    }
    conf.note(
        "Who has just written something sees it, also while others get the page from before.",
    );
    let writer_ttl = (options.ttl + STALE_TTL).min(MAX_WRITER_TTL);
    conf.line(&format!("cache_read_your_writes {};", time(writer_ttl)));
    conf.note("What only statistics read makes no page of its own.");
    list(conf, "cache_ignore_args", &ANALYTICS_ARGUMENTS);
    list(conf, "cache_ignore_cookies", &HARMLESS_COOKIES);
    conf.line("add_header X-Cache $upstream_cache_status always;");
}

/// Writes the lifetime of a 404, which is that of a page: the page that is missing may be made by a program that sends
/// no purge. `is_purged`: the application purges the addresses of the pages that it makes.
pub(super) fn not_found(conf: &mut Conf, rules: &Rules, options: &ServeOptions, is_purged: bool) {
    if !rules.is_known {
        return;
    }
    let lifetime = match is_purged {
        true => MAX_NOT_FOUND_TTL,
        false => options.ttl.min(MAX_NOT_FOUND_TTL),
    };
    conf.note(
        "Wrong addresses: the application forbids to keep these answers, and crawlers ask for",
    );
    conf.note("them again and again. A request that writes drops them: there may be a page now.");
    conf.line(&format!("cache_not_found {};", time(lifetime)));
}

/// Writes the bound on the lifetime that an application sets itself.
pub(super) fn max_valid(conf: &mut Conf, options: &ServeOptions) {
    conf.note("Nobody tells when a page has changed: it is kept no longer than this, whatever its");
    conf.note("Cache-Control says.");
    conf.line(&format!("cache_max_valid {};", time(options.ttl)));
}

fn valid(spelling: Spelling, lifetime: Duration) -> String {
    format!(
        "{}_cache_valid 200 203 301 308 404 410 {};",
        spelling.prefix,
        time(lifetime)
    )
}
