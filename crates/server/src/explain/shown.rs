//! A stored response as it is shown to people: no cookie's value, values of arguments masked unless
//! `cache_show_args` names them, and values of fields masked unless they are known to be harmless.
//!
//! A part of an address may be searched for, but only as it is shown here: masked parts cannot be
//! found by trying.

use control::{Entry, Form};
use http_cache::{Encoding, InspectedResponse, Millis, StoredResponse, VaryKey, Zone};
use shared_request::{NameSet, arguments};
use site::{Builtin, CacheRules, CacheZoneChoice, Content, Part, Variable};

use super::looking::id_text;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::respond::form_name;

/// Stands for a value that is not shown.
const MASK: &str = "*";

/// More tags of one response are counted and not named.
const MAX_TAGS: usize = 200;

/// Shows the stored responses of a zone.
pub struct ShownZone<'a> {
    zone: &'a Zone,
    shown_arguments: &'a NameSet,
    /// Nothing of a visitor's cookies or fields is in the zone's keys.
    are_keys_plain: bool,
}

impl<'a> ShownZone<'a> {
    pub fn new(configuration: &'a ActiveConfiguration, zone: &'a Zone) -> ShownZone<'a> {
        ShownZone {
            zone,
            shown_arguments: &configuration.site.http.shown_arguments,
            are_keys_plain: are_keys_plain(configuration, zone),
        }
    }

    pub fn zone(&self) -> &Zone {
        self.zone
    }

    /// The address of a stored response.
    pub fn address(&self, response: &StoredResponse) -> String {
        masked(response.address().unwrap_or_default(), self.shown_arguments)
    }

    /// Describes a stored response for a list.
    pub fn short(&self, found: &InspectedResponse, now: Millis) -> Entry {
        let InspectedResponse { response, .. } = found;
        let head = &response.head;
        let lifetime = head.age_at_receipt.duration() + head.expires_at.since(head.stored_at);
        let fresh = match self.zone.stale_info(response, now) {
            Some(_) => 0,
            None => clock::millis(head.fresh_for(now)),
        };
        Entry {
            id: id_text(self.zone, found.id),
            zone: self.zone.config().name.clone(),
            address: self.address(response),
            key: self
                .are_keys_plain
                .then(|| masked(&found.key, self.shown_arguments)),
            status: head.status,
            age_milliseconds: clock::millis(head.current_age(now)),
            lifetime_milliseconds: clock::millis(lifetime),
            fresh_milliseconds: if found.is_gone { 0 } else { fresh },
            lifetime_source: head.lifetime_source.word().to_owned(),
            lifetime_by: String::new(),
            tags: Vec::new(),
            vary: Vec::new(),
            fields: Vec::new(),
            body_bytes: response.body.len(),
            memory_bytes: found.size_bytes,
            forms: Vec::new(),
            used_milliseconds_ago: clock::millis(now.since(found.last_used)),
            seconds_used: found.seconds_used,
            is_private: response.group().is_some(),
            is_purged: found.is_gone,
        }
    }

    /// Describes a stored response in full.
    pub fn whole(&self, found: &InspectedResponse, now: Millis) -> Entry {
        let InspectedResponse { response, .. } = found;
        let vary = response.vary.as_ref();
        let form = |(form, bytes): (Encoding, Option<u64>)| Form {
            name: form_name(form).to_owned(),
            bytes,
        };
        Entry {
            tags: response.tags().take(MAX_TAGS).map(readable).collect(),
            vary: vary.map_or_else(Vec::new, |vary| shown_vary(vary)),
            fields: shown_fields(response, self.shown_arguments),
            forms: response.forms().into_iter().map(form).collect(),
            ..self.short(found, now)
        }
    }
}

/// Returns the response fields without those that name a cookie.
fn shown_fields(response: &StoredResponse, shown: &NameSet) -> Vec<(String, String)> {
    let is_shown = |name: &[u8]| {
        !name
            .to_ascii_lowercase()
            .windows(6)
            .any(|it| it == b"cookie")
    };
    let fields = response.head.fields.iter();
    let fields = fields.filter(|(name, _)| is_shown(name));
    fields
        .map(|(name, value)| (readable(name), shown_value(name, value, shown)))
        .collect()
}

/// Fields whose values are shown: they say how to use a response, and nothing of a visitor. The values
/// of all others are masked, since an application may put anything there.
#[rustfmt::skip]
const HARMLESS_FIELDS: &[&str] = &[
    "accept-ranges", "access-control-allow-headers", "access-control-allow-methods",
    "access-control-allow-origin", "age", "allow", "alt-svc", "cache-control", "cache-status",
    "cache-tag", "cache-tags", "cdn-cache-control", "content-encoding", "content-language",
    "content-length", "content-range", "content-type", "cross-origin-embedder-policy",
    "cross-origin-opener-policy", "cross-origin-resource-policy", "date", "edge-cache-tag", "etag",
    "expires", "last-modified", "permissions-policy", "pragma", "referrer-policy", "retry-after",
    "server", "strict-transport-security", "surrogate-control", "surrogate-key", "vary", "via",
    "x-accel-expires", "x-cache", "x-cache-tags", "x-content-type-options",
    "x-dns-prefetch-control", "x-drupal-cache", "x-drupal-cache-contexts", "x-drupal-cache-tags",
    "x-drupal-dynamic-cache", "x-frame-options", "x-generator", "x-litespeed-cache-control",
    "x-litespeed-tag", "x-litespeed-vary", "x-magento-cache-control", "x-magento-tags",
    "x-powered-by", "x-redirect-by", "x-robots-tag", "x-ua-compatible", "x-xss-protection", "xkey",
];
/// Fields whose values are addresses: shown with masks, as all addresses are.
const ADDRESS_FIELDS: &[&str] = &[
    "content-location",
    "link",
    "location",
    "refresh",
    "x-pingback",
];

/// The value of a field, as far as it is shown.
fn shown_value(name: &[u8], value: &[u8], shown: &NameSet) -> String {
    let is_in = |names: &[&str]| {
        let mut names = names.iter();
        names.any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    };
    if is_in(HARMLESS_FIELDS) {
        readable(value)
    } else if is_in(ADDRESS_FIELDS) {
        masked(value, shown)
    } else {
        MASK.to_owned()
    }
}

/// Returns the fields that a response varies on; values only of fields by which browsers negotiate.
fn shown_vary(vary: &VaryKey) -> Vec<(String, String)> {
    let values = vary.negotiated().unwrap_or_default();
    let value = |name: &String| {
        let found = values.iter().find(|(other, _)| other == name);
        found.map_or_else(|| MASK.to_owned(), |(_, value)| readable(value))
    };
    let names = vary.spec().names().iter();
    names.map(|name| (name.clone(), value(name))).collect()
}

/// Is every key of the zone made of the address, the method and constants alone?
fn are_keys_plain(configuration: &ActiveConfiguration, zone: &Zone) -> bool {
    rules_of_zone(configuration, zone).all(is_key_plain)
}

/// The rules of all locations that may store in the zone.
pub fn rules_of_zone<'a>(
    configuration: &'a ActiveConfiguration,
    zone: &'a Zone,
) -> impl Iterator<Item = &'a CacheRules> {
    let names = &configuration.site.http.cache_zones;
    let is_of_zone = |rules: &&CacheRules| match &rules.zone {
        CacheZoneChoice::Zone(id) => names
            .get(id.0)
            .is_some_and(|it| it.name == zone.config().name),
        CacheZoneChoice::Variable(_) => true,
    };
    let servers = configuration.site.http.servers.iter();
    let locations = servers.flat_map(|server| &server.locations);
    let rules = locations.filter_map(|location| match &location.settings.content {
        Content::Pass(pass) => pass.cache.as_deref(),
        _ => None,
    });
    rules.filter(is_of_zone)
}

fn is_key_plain(rules: &CacheRules) -> bool {
    let is_plain = |part: &Part| match part {
        Part::Literal(_) => true,
        Part::Variable(Variable::Builtin(builtin)) => matches!(
            builtin,
            Builtin::Args
                | Builtin::DocumentUri
                | Builtin::Host
                | Builtin::IsArgs
                | Builtin::QueryString
                | Builtin::RequestMethod
                | Builtin::RequestUri
                | Builtin::Scheme
                | Builtin::ServerName
                | Builtin::ServerPort
                | Builtin::Uri
        ),
        Part::Variable(_) => false,
    };
    rules.shared.is_none() && rules.private.is_none() && rules.key.parts.iter().all(is_plain)
}

/// An address or a key without the values of its arguments.
pub fn masked(text: &[u8], shown: &NameSet) -> String {
    let Some(at) = text.iter().position(|&byte| byte == b'?') else {
        return readable(text);
    };
    let (path, args) = text.split_at(at);
    let mut out = readable(path);
    let args = args.get(1..).unwrap_or_default();
    for (number, piece) in args.split(|&byte| byte == b'&').enumerate() {
        out.push(if number == 0 { '?' } else { '&' });
        let mut kept = Vec::new();
        // An argument that is named leaves nothing.
        arguments::put_counted(piece, shown, &mut kept);
        let equals = piece.iter().position(|&byte| byte == b'=');
        match equals {
            _ if piece.is_empty() => {}
            _ if kept.is_empty() => out.push_str(&readable(piece)),
            Some(equals) => {
                out.push_str(&readable(piece.get(..equals).unwrap_or_default()));
                out.push('=');
                out.push_str(MASK);
            }
            // A name without a value may be a secret as well.
            None => out.push_str(MASK),
        }
    }
    out
}

/// Bytes as a text that a terminal can be sent.
pub fn readable(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter.is_control() {
                true => out.extend(letter.escape_default()),
                false => out.push(letter),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_arguments_are_masked_unless_they_are_named() {
        let shown = NameSet::new([&b"page"[..], b"lang*"]);
        for (address, expected) in [
            ("a.test/news", "a.test/news"),
            ("a.test/?page=2", "a.test/?page=2"),
            ("a.test/?token=abc&page=2", "a.test/?token=*&page=2"),
            ("a.test/?language=de&x=", "a.test/?language=de&x=*"),
            ("a.test/?s3cret", "a.test/?*"),
            ("a.test/?a=b=c?d=e", "a.test/?a=*"),
            ("a.test/?", "a.test/?"),
            ("a.test/\u{1b}[2J\u{0}x", "a.test/\\u{1b}[2J\\u{0}x"),
        ] {
            assert_eq!(masked(address.as_bytes(), &shown), expected);
        }
        assert_eq!(readable(b"a\xffb"), "a\\xffb");
    }

    #[test]
    fn values_of_fields_are_masked_unless_they_are_known_to_be_harmless() {
        let shown = NameSet::new([&b"page"[..]]);
        for (name, value, expected) in [
            ("Cache-Control", "max-age=60", "max-age=60"),
            ("CONTENT-TYPE", "text/html", "text/html"),
            (
                "Location",
                "/reset?key=secret&page=2",
                "/reset?key=*&page=2",
            ),
            ("X-Auth-Token", "secret", "*"),
            ("Authorization", "Basic secret", "*"),
            ("X-WP-Nonce", "secret", "*"),
            ("X-User", "ada@example.org", "*"),
            ("Content-Security-Policy", "script-src 'nonce-secret'", "*"),
            ("X_Cache_Control", "secret", "*"),
        ] {
            let value = shown_value(name.as_bytes(), value.as_bytes(), &shown);
            assert_eq!(value, expected, "{name}");
        }
    }
}
