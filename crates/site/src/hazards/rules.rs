//! The table of rules. A function looks at one block and at those around it, and is silent where it cannot
//! know: a report that was wrong once is not read again.

mod access;
mod cache;
mod files;
mod php;
mod responses;
mod upstreams;

use access::*;
use cache::*;
use files::*;
use php::*;
use responses::*;
use upstreams::*;

use super::hazard::{FindHazard, HazardRule, HazardSeverity};

const fn error(name: &'static str, happens: &'static str, find: FindHazard) -> HazardRule {
    HazardRule {
        name,
        severity: HazardSeverity::Error,
        happens,
        find,
    }
}

const fn warning(name: &'static str, happens: &'static str, find: FindHazard) -> HazardRule {
    HazardRule {
        name,
        severity: HazardSeverity::Warning,
        happens,
        find,
    }
}

/// All rules, by subject.
#[rustfmt::skip]
pub static RULES: &[HazardRule] = &[
    // The cache.
    warning("cache-stores-cookies", "A response that sets a cookie may be stored: nginx sends the session of one visitor to all others. Here, responses that set a cookie are not stored despite this line, unless cache_store_set_cookie is on; then the page is stored without its cookie.", cache_stores_cookies),
    warning("cache-stores-private", "Pages that the application marks as private may be stored, and others see them. Here, private and no-store still count for visitors whose cookies are not in the cache key.", cache_stores_private),
    error("leak", "What a visitor gets who is logged in is stored, and nginx shows it to everybody. Here, it is not stored, unless cache_store_bypassed is on.", leak),
    error("key-without-host", "All names of the site share their pages: whoever sends another Host chooses what the others see.", key_without_host),
    warning("key-without-scheme", "A redirect from http to https is stored and sent to those who came by https: they go in circles.", key_without_scheme),
    warning("key-without-method", "The answer to one method is sent to those who used another.", key_without_method),
    warning("cache-ignores-vary", "The application says which fields of the request change the page; without it, one visitor gets what was made for another's language or encoding.", cache_ignores_vary),
    warning("purge-by-capture", "What a pattern captures is decoded, and keys are not: nginx does not find pages with escapes in their addresses. Here, the path is purged as it was sent, decoded, and with escapes of capital and of small digits; a page that a visitor asked for by yet another spelling stays until it is stale.", purge_by_capture),
    // PHP.
    error("php-in-uploads", "A visitor who can upload a file x.php runs it on the server.", php_in_uploads),
    error("access-lost-in-pattern", "A location by pattern is chosen before this prefix: its scripts run without the restriction that is written here.", access_lost_in_pattern),
    warning("php-pattern", "Files that are no scripts reach PHP, such as x.php.jpg or xphp, which visitors may have uploaded.", php_pattern),
    warning("php-path-info", "The script is not looked for before PHP is asked: with cgi.fix_pathinfo, /avatar.jpg/x.php runs what is in avatar.jpg.", php_path_info),
    error("php-value-from-request", "The visitor chooses settings of PHP, such as auto_prepend_file, and so what runs.", php_value_from_request),
    // Files.
    error("alias-slash", "A path such as /name../ leads out of the folder, or two names run together.", alias_slash),
    warning("dotfiles-served", "Whoever asks for /.git/config or /.env gets it if it is there: source code and passwords.", dotfiles_served),
    error("root-too-high", "The configuration, keys or the files of other accounts are below this folder.", root_too_high),
    error("secret-in-root", "The file is below the folder that is served: whoever asks for its name gets it.", secret_in_root),
    warning("autoindex-uploads", "Everybody sees the names of all files that visitors have uploaded.", autoindex_uploads),
    warning("default-type-html", "A file without a known ending is shown as a page: an uploaded one runs scripts in the name of the site.", default_type_html),
    // Redirects and fields of responses.
    error("uri-in-redirect", "$uri is decoded: with %0d%0a in a path, a visitor's link adds fields or a body to the response (header injection).", uri_in_redirect),
    warning("capture-in-field", "The pattern matches a line break too, and what it captures is decoded: with %0d%0a in a path, a link adds fields to the response (header injection).", capture_in_field),
    error("open-redirect", "A link to this site leads wherever its author wants, which helps to steal passwords.", open_redirect),
    warning("add-header-lost", "A block with add_header of its own inherits none: pages of this block go out without the fields that protect them.", add_header_lost),
    warning("add-header-multiline", "A line break in a field is refused by HTTP/2 and by many clients.", add_header_multiline),
    error("cors-any-origin", "Every other site can read, with the visitor's cookies, what this one answers.", cors_any_origin),
    // Requests passed to upstreams.
    error("proxy-to-any-host", "The visitor chooses which host is asked: services within the network, too (SSRF).", proxy_to_any_host),
    warning("proxy-slash", "A path such as /name../ leads to the upstream's folder above.", proxy_slash),
    warning("host-from-request", "$http_host is what the client wrote, and may differ from the host by which the server was chosen: links and cached pages name a stranger's host.", host_from_request),
    error("real-ip-from-all", "Everybody may claim any address: limits, allow and deny, and logs believe it.", real_ip_from_all),
    warning("resolver-external", "Answers come over the internet without protection: who forges one gets the requests.", resolver_external),
    // Who is let in.
    warning("allow-without-deny", "Who is not listed is let in as well.", allow_without_deny),
    error("return-before-access", "return is obeyed before addresses and passwords are looked at: everybody gets the text.", return_before_access),
    warning("valid-referers-none", "A request without Referer passes, and every other site can make browsers leave it out.", valid_referers_none),
    warning("merge-slashes-off", "//admin is another path than /admin for locations, and the same file: restrictions are passed by.", merge_slashes_off),
    warning("status-open", "nginx shows everybody how busy the server is. Here, only this machine sees it until the location itself lets others in.", status_open),
    // Traps.
    warning("if-trap", "Where two conditions are true, only the last block with settings of its own holds; try_files is not used in such a block.", if_trap),
    warning("error-log-off", "\"off\" is the name of a file here: errors are written to a file of this name.", error_log_off),
];
