//! Purge requests of other software, in the form sent to Varnish and nginx. They are accepted where
//! `*_cache_purge` or `cache_purge_api` permits the client, and only there.
//!
//! A request that names a page and nothing else (`PURGE /news/5`, with a whole URL from MediaWiki)
//! is no row of `DOORS`: see `by_request`.

use cache_decision::pattern;
use control::{Refusal, TargetKind};
use http_cache::{OwnedPurgeTarget, Pattern};

use super::address_rules;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::{Method, Request};
use purge_order::{Order, Target, order};

/// One kind of request.
struct PurgeDialect {
    /// The software that sends it, and the place in its source.
    #[allow(dead_code, reason = "for readers of the table, and for a test")]
    sent_by: &'static str,
    methods: &'static [&'static str],
    /// A field that must be there, in lower case.
    field: &'static str,
    /// A value that the field must have; empty: any.
    value: &'static str,
    soft: bool,
    read: fn(&RequestAndPath<'_>, &[u8]) -> Result<Vec<Target>, Refusal>,
}

/// The first that fits counts.
#[rustfmt::skip]
const DOORS: &[PurgeDialect] = &[
    PurgeDialect {
        sent_by: "Magento 2: CacheInvalidate/Model/PurgeCache.php, Observer/InvalidateVarnishObserver.php",
        methods: &["PURGE"], field: "x-magento-tags-pattern", value: "", soft: false, read: tag_pattern,
    },
    PurgeDialect {
        sent_by: "FOSHttpCache with tag_mode=ban: src/ProxyClient/Varnish.php, invalidateByBan()",
        methods: &["BAN"], field: "x-cache-tags", value: "", soft: false, read: tag_pattern_alone,
    },
    PurgeDialect {
        sent_by: "FOSHttpCache: src/ProxyClient/Varnish.php, ban() and banPath()",
        methods: &["BAN"], field: "x-url", value: "", soft: false, read: host_and_path,
    },
    PurgeDialect {
        sent_by: "FOSHttpCache for Symfony: src/ProxyClient/Symfony.php, invalidateTags()",
        methods: &["PURGETAGS"], field: "x-cache-tags", value: "", soft: false, read: tags,
    },
    PurgeDialect {
        sent_by: "FOSHttpCache with tag_mode=purgekeys, Ibexa: src/ProxyClient/Varnish.php, invalidateByPurgekeys()",
        methods: &["PURGEKEYS", "PURGE", "BAN"], field: "xkey-softpurge", value: "", soft: true, read: tags,
    },
    PurgeDialect {
        sent_by: "vmod xkey's own example, Drupal's purgers for it, Ibexa",
        methods: &["PURGEKEYS", "PURGE", "BAN"], field: "xkey-purge", value: "", soft: false, read: tags,
    },
    PurgeDialect {
        sent_by: "Drupal: modules purge_purger_http and varnish_purge, with their example VCL",
        methods: &["BAN"], field: "cache-tags", value: "", soft: false, read: tags,
    },
    PurgeDialect {
        sent_by: "FOSHttpCache for Symfony: src/ProxyClient/Symfony.php, clear()",
        methods: &["PURGE"], field: "clear-cache", value: "true", soft: false, read: everything,
    },
    PurgeDialect {
        sent_by: "WordPress, Proxy Cache Purge: varnish-http-purge.php, purge_url()",
        methods: &["PURGE"], field: "x-purge-method", value: "regex", soft: false, read: path_pattern,
    },
    PurgeDialect {
        sent_by: "WordPress, Proxy Cache Purge from 5.4 on, with tags: varnish-http-purge.php, purge_tags()",
        methods: &["PURGE"], field: "x-cache-tags-pattern", value: "", soft: false, read: tag_pattern,
    },
    PurgeDialect {
        sent_by: "WordPress, W3 Total Cache: Varnish_Flush.php, do_flush(): PURGE /.*",
        methods: &["PURGE"], field: "host", value: "", soft: false, read: path_with_any_end,
    },
];

/// A request, and the path that it is about.
struct RequestAndPath<'a> {
    request: &'a Request,
    path: &'a [u8],
}

impl<'a> RequestAndPath<'a> {
    fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.request.received.head().field(name)
    }
}

/// Returns the purge order that a request names beside its own page; `None` without one.
///
/// # Errors
/// The purge request is invalid.
pub fn of_request(request: &Request) -> Option<Result<Order, Refusal>> {
    // The target as received: `try_files` and `rewrite` may have led to a script with another path.
    let sent = http_semantics::Target::parse(request.received.target(), true);
    let path = sent
        .as_ref()
        .map_or(&request.route.path[..], |target| &target.path[..]);
    of_path(request, path)
}

fn of_path(request: &Request, path: &[u8]) -> Option<Result<Order, Refusal>> {
    let asked = RequestAndPath { request, path };
    let method = request.method_name();
    for door in DOORS {
        if !door.methods.iter().any(|name| name.as_bytes() == method) {
            continue;
        }
        let Some(value) = request.received.head().field(door.field) else {
            continue;
        };
        if !door.value.is_empty() && !value.eq_ignore_ascii_case(door.value.as_bytes()) {
            continue;
        }
        match (door.read)(&asked, value) {
            Ok(targets) if targets.is_empty() => {}
            read => {
                return Some(read.map(|targets| Order {
                    targets,
                    soft: door.soft,
                    dry_run: false,
                }));
            }
        }
    }
    None
}

/// Returns the purge order of a request in a location with `cache_purge_api`, where the path behind
/// that of the location names a page as well: `GET /purge/news/5` of WordPress's Nginx Helper
/// (`admin/class-fastcgi-purger.php`), and `PURGE` with the `purge_location` of FOSHttpCache
/// (`src/ProxyClient/Nginx.php`).
pub fn in_api_location(request: &Request) -> Option<Result<Order, Refusal>> {
    let path = path_behind_location(request);
    if let Some(order) = of_path(request, path.unwrap_or(&request.route.path)) {
        return Some(order);
    }
    match (request.route.method, target_behind_location(request)) {
        (Method::Get | Method::Purge, Some(target)) => Some(Ok(page(request, target))),
        _ => None,
    }
}

/// `/news/5` of `/purge/news/5`, where the location is `/purge/`.
fn path_behind_location(request: &Request) -> Option<&[u8]> {
    let folder = folder_bytes(request)?;
    let path = request.route.path.get(folder..)?;
    (path.first() == Some(&b'/')).then_some(path)
}

/// Returns the part behind the location of the target as received.
fn target_behind_location(request: &Request) -> Option<&[u8]> {
    let folder = folder_bytes(request)?;
    let (start, target) = request.received.target().split_at_checked(folder)?;
    let is_plain = request.route.path.get(..folder) == Some(start);
    (is_plain && target.first() == Some(&b'/')).then_some(target)
}

/// Returns how long the path of the location is without its last slash.
fn folder_bytes(request: &Request) -> Option<usize> {
    let location = request.location();
    let is_folder = location.name.ends_with('/');
    let bytes = location.prefix_bytes.filter(|_| is_folder)?;
    bytes.checked_sub(1)
}

/// The page of a target.
fn page(request: &Request, target: &[u8]) -> Order {
    let host = request.received.host();
    let addresses = address_rules::of(&request.configuration).of_target(host, target);
    Order {
        targets: vec![Target::url(&[host, target].concat(), addresses)],
        soft: false,
        dry_run: false,
    }
}

/// Returns the client of a request, for the log.
pub fn client_name(received: &ReceivedRequest) -> String {
    match received.client_ip() {
        Some(address) => address.to_string(),
        None => "unix:".to_owned(),
    }
}

/// All that is stored here.
fn everything(_: &RequestAndPath<'_>, _: &[u8]) -> Result<Vec<Target>, Refusal> {
    Ok(vec![Target::everything()])
}

/// Tags one after another: `a b` (xkey), `a,b` (Symfony), `a|b` (Drupal).
fn tags(_: &RequestAndPath<'_>, value: &[u8]) -> Result<Vec<Target>, Refusal> {
    let is_between = |byte: &u8| matches!(byte, b' ' | b'\t' | b',' | b'|');
    let tags = value.split(is_between).filter(|tag| !tag.is_empty());
    let tags: Vec<Target> = tags.map(Target::tag).collect();
    match tags.is_empty() {
        true => Err(Refusal::new(400, "expected one tag or several")),
        false => Ok(tags),
    }
}

/// A regular expression over the tags of a page with commas between them, such as
/// `((^|,)cat_p_5(,|$))|((^|,)cms_p_1(,|$))`. It is compared with each tag by itself: an expression
/// that spans two of them finds nothing.
fn tag_pattern(_: &RequestAndPath<'_>, value: &[u8]) -> Result<Vec<Target>, Refusal> {
    if value == b".*" {
        return Ok(vec![Target::everything()]);
    }
    let names = OwnedPurgeTarget::Tags(pattern::matching(expression(value)?));
    let text = [b"~", value].concat();
    Ok(vec![order::target(TargetKind::Tag, &text, [names])])
}

/// Like [`tag_pattern`], for requests that also send host, path and type, which must match everything.
fn tag_pattern_alone(asked: &RequestAndPath<'_>, value: &[u8]) -> Result<Vec<Target>, Refusal> {
    for field in ["x-host", "x-url", "x-content-type"] {
        if asked.field(field).is_some_and(|value| value != b".*") {
            return Err(Refusal::field(
                field,
                "expected .* beside X-Cache-Tags: a purge is by tags or by addresses",
            ));
        }
    }
    tag_pattern(asked, value)
}

/// Regular expressions for path and host, where `.*` means any.
fn host_and_path(asked: &RequestAndPath<'_>, url: &[u8]) -> Result<Vec<Target>, Refusal> {
    if asked
        .field("x-content-type")
        .is_some_and(|value| value != b".*")
    {
        return Err(Refusal::field(
            "x-content-type",
            "expected .*: addresses do not say of which type a page is",
        ));
    }
    let host = asked.field("x-host").unwrap_or(b".*");
    if (url, host) == (b".*", b".*") {
        return Ok(vec![Target::everything()]);
    }
    let of = |value: &[u8]| match value {
        b".*" => Ok(None),
        value => expression(value).map(Some),
    };
    let text = [b"~", host, b" ~", url].concat();
    let pattern = pattern::by_host_and_path(of(host)?, of(url)?);
    Ok(vec![Target::walk(TargetKind::Pattern, &text, [pattern])])
}

/// The path of the request is a regular expression for paths of its host.
fn path_pattern(asked: &RequestAndPath<'_>, _: &[u8]) -> Result<Vec<Target>, Refusal> {
    let path = std::str::from_utf8(asked.path).map_err(|_| not_utf8())?;
    let host = regex::escape(&String::from_utf8_lossy(asked.request.received.host()));
    let text = format!("~^{host}{path}");
    let found = pattern::matching(expression(format!("^{host}(?:{path})").as_bytes())?);
    Ok(vec![Target::walk(
        TargetKind::Pattern,
        text.as_bytes(),
        [found],
    )])
}

/// `PURGE /.*`, `PURGE /blog/.*`: all that begin so. No row for other paths.
fn path_with_any_end(asked: &RequestAndPath<'_>, _: &[u8]) -> Result<Vec<Target>, Refusal> {
    let Some(start) = asked.path.strip_suffix(b"/.*") else {
        return Ok(Vec::new());
    };
    let prefix = [asked.request.received.host(), start, b"/"].concat();
    let walk = Pattern::Prefix(prefix.clone().into());
    Ok(vec![Target::walk(TargetKind::Prefix, &prefix, [walk])])
}

fn expression(value: &[u8]) -> Result<regex::bytes::Regex, Refusal> {
    let text = std::str::from_utf8(value).map_err(|_| not_utf8())?;
    pattern::regex(text).map_err(|error| Refusal::new(400, error.to_string()))
}

fn not_utf8() -> Refusal {
    Refusal::new(400, "expected a regular expression in UTF-8")
}

#[cfg(test)]
mod tests {
    use super::DOORS;

    #[test]
    fn each_row_names_its_source_and_its_field_in_lower_case() {
        for door in DOORS {
            assert!(door.sent_by.len() > 20, "{}", door.field);
            assert_eq!(door.field, door.field.to_ascii_lowercase());
            assert!(!door.methods.is_empty());
        }
    }
}
