//! Who is asking, and may they: `allow` and `deny`, the client's address as
//! trusted proxies tell it, and `valid_referers`. Pure look-ups in lists that
//! the configuration made
//! (<https://nginx.org/en/docs/http/ngx_http_access_module.html>,
//! `ngx_http_realip_module`, `ngx_http_referer_module`).

use std::net::{IpAddr, SocketAddr};

use site::{AccessRule, Network, Pattern, RealIpHeader, ValidReferers};

use crate::exchange::pattern;
use crate::exchange::pattern::GivenUp;
use crate::exchange::request::Request;

/// Longest host in a Referer that is looked at; nginx's bound.
const MAX_REFERER_HOST_BYTES: usize = 256;

/// Do `allow` and `deny` let this request in? The first rule that holds the
/// client's address decides; without one it is let in.
pub fn is_allowed(request: &Request) -> bool {
    decision(request).unwrap_or(true)
}

/// The first rule that holds the client's address; `None` where none does.
pub fn decision(request: &Request) -> Option<bool> {
    decide(&request.settings().access, request.client_ip())
}

fn decide(rules: &[AccessRule], address: Option<IpAddr>) -> Option<bool> {
    rules
        .iter()
        .find(|rule| rule.network.contains(address))
        .map(|rule| rule.allow)
}

/// Takes the client's address from what a trusted proxy says. Does nothing
/// once that has happened, so it may be called again in the final location.
pub fn apply_real_ip(request: &mut Request) {
    let rules = &request.settings().real_ip;
    if rules.from.is_empty() {
        return;
    }
    let peer = request.connection.peer;
    if request.client != peer {
        return;
    }
    let client = match &rules.header {
        RealIpHeader::ProxyProtocol => match &request.connection.proxy {
            Some(proxy) if is_trusted(peer.map(|peer| peer.ip()), &rules.from) => {
                Some(proxy.client)
            }
            _ => None,
        },
        RealIpHeader::Field(name) if name.eq_ignore_ascii_case(b"x-forwarded-for") => {
            let chain: Vec<&[u8]> = request.head.field_all(name).collect();
            walk(peer, &chain, &rules.from, rules.recursive)
        }
        RealIpHeader::Field(name) => match request.head.field(name) {
            Some(value) => walk(peer, &[value], &rules.from, rules.recursive),
            None => None,
        },
    };
    if client.is_some() {
        request.client = client;
    }
}

/// What a trusted proxy says of the request that it forwards (`trusted_proxy`).
#[derive(Debug, PartialEq, Eq)]
pub struct Forwarded {
    pub scheme: &'static str,
    /// Host and perhaps port, as the proxy wrote them.
    pub host: Option<Vec<u8>>,
}

/// The same for `request`; `None` where its peer is not trusted. Of several values the last
/// counts: the proxy itself has added it.
pub fn forwarded(request: &Request) -> Option<Forwarded> {
    let rules = &request.settings().real_ip;
    let peer = request.connection.peer.map(|peer| peer.ip());
    if !rules.believes_forwarded || !is_trusted(peer, &rules.from) {
        return None;
    }
    let last = |name: &'static [u8]| {
        let value = request.head.field_all(name).last()?;
        let value = value.rsplit(|&byte| byte == b',').next()?.trim_ascii();
        (!value.is_empty()).then_some(value)
    };
    let is_https = last(b"x-forwarded-proto").is_some_and(|it| it.eq_ignore_ascii_case(b"https"));
    Some(Forwarded {
        scheme: if is_https { "https" } else { "http" },
        host: last(b"x-forwarded-host").map(<[u8]>::to_vec),
    })
}

/// The address that `chain` (the values of X-Forwarded-For, in order) gives for
/// a peer at `address`: the last one, or with `recursive` the last that is not
/// trusted itself. `address` again where it is not trusted or nothing is said.
pub fn forwarded_address(
    address: Option<IpAddr>,
    chain: &[&[u8]],
    trusted: &[Network],
    recursive: bool,
) -> Option<IpAddr> {
    let peer = address.map(|address| SocketAddr::new(address, 0));
    walk(peer, chain, trusted, recursive)
        .map(|found| found.ip())
        .or(address)
}

fn is_trusted(address: Option<IpAddr>, trusted: &[Network]) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// Goes back through the chain while the sender of each step is trusted;
/// `None` where not a single step can be taken.
fn walk(
    peer: Option<SocketAddr>,
    chain: &[&[u8]],
    trusted: &[Network],
    recursive: bool,
) -> Option<SocketAddr> {
    let mut sender = peer.map(|peer| peer.ip());
    let mut found = None;
    let steps = chain.iter().rev().flat_map(|value| {
        let blank = |byte: &u8| matches!(byte, b',' | b' ');
        let mut texts = value
            .rsplit(blank)
            .filter(|text| !text.is_empty())
            .peekable();
        // A field that says nothing ends the chain, as anything unreadable does.
        let nothing: Option<&[u8]> = texts.peek().is_none().then_some(&[]);
        texts.chain(nothing)
    });
    for text in steps {
        if !is_trusted(sender, trusted) {
            break;
        }
        let Some(address) = parse_address(text) else {
            break;
        };
        found = Some(address);
        sender = Some(address.ip());
        if !recursive {
            break;
        }
    }
    found
}

/// An address with or without a port; IPv6 with one is in brackets. Without a
/// port it is 0.
fn parse_address(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(SocketAddr::new(address, 0));
    }
    text.parse::<SocketAddr>()
        .ok()
        .filter(|address| address.port() > 0)
}

/// `$invalid_referer`: is the Referer none of those that `valid_referers` names?
pub fn is_referer_invalid(request: &mut Request) -> bool {
    let is_valid = match &request.settings().valid_referers {
        Some(valid) => is_referer_valid(valid, request.head.field("referer"), |pattern, text| {
            pattern::is_match(request, pattern, text)
        }),
        None => Ok(true),
    };
    !is_valid.unwrap_or_else(|GivenUp| pattern::refuse(request))
}

fn is_referer_valid(
    valid: &ValidReferers,
    referer: Option<&[u8]>,
    is_match: impl Fn(&Pattern, &[u8]) -> Result<bool, GivenUp>,
) -> Result<bool, GivenUp> {
    let Some(referer) = referer else {
        return Ok(valid.none);
    };
    let Some(rest) = without_scheme(referer) else {
        return Ok(valid.blocked);
    };
    let host_end = rest.iter().position(|&byte| byte == b'/' || byte == b':');
    let (host, after) = rest.split_at(host_end.unwrap_or(rest.len()));
    if host.len() > MAX_REFERER_HOST_BYTES {
        return Ok(false);
    }
    if let Some(path_prefix) = named_referer(valid, &host.to_ascii_lowercase()) {
        let path_start = memchr::memchr(b'/', after).unwrap_or(after.len());
        let path = after.get(path_start..).unwrap_or_default();
        return Ok(path.starts_with(path_prefix));
    }
    for pattern in &valid.patterns {
        if is_match(pattern, rest)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What follows the scheme; `None` where there is none ("blocked" by a firewall).
fn without_scheme(referer: &[u8]) -> Option<&[u8]> {
    // nginx's measure of what is too short to be a Referer.
    if referer.len() < b"http://i.ru".len() {
        return None;
    }
    [&b"http://"[..], b"https://"]
        .into_iter()
        .find_map(|scheme| {
            let (start, rest) = referer.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        })
}

/// The path prefix that goes with the name `host` matches: exact names first,
/// then the longest `*.` name, then the longest `.*` name.
fn named_referer<'a>(valid: &'a ValidReferers, host: &[u8]) -> Option<&'a [u8]> {
    let names = &valid.names;
    let exact = names
        .iter()
        .find(|(name, _)| is_exact(name) && name.eq_ignore_ascii_case(host));
    let longest = |matches: &dyn Fn(&[u8]) -> bool| {
        names
            .iter()
            .filter(|(name, _)| matches(name))
            .max_by_key(|(name, _)| name.len())
    };
    exact
        .or_else(|| longest(&|name| matches_leading(name, host)))
        .or_else(|| longest(&|name| matches_trailing(name, host)))
        .map(|(_, path)| &path[..])
}

fn is_exact(name: &[u8]) -> bool {
    !name.starts_with(b"*.") && !name.starts_with(b".") && !name.ends_with(b".*")
}

/// `*.example.org` holds names below it, `.example.org` that name as well.
fn matches_leading(name: &[u8], host: &[u8]) -> bool {
    match name.strip_prefix(b"*") {
        Some(suffix) => host.len() > suffix.len() && ends_with_ignore_case(host, suffix),
        None => match name.strip_prefix(b".") {
            Some(bare) => host.eq_ignore_ascii_case(bare) || ends_with_ignore_case(host, name),
            None => false,
        },
    }
}

fn matches_trailing(name: &[u8], host: &[u8]) -> bool {
    let Some(prefix) = name.strip_suffix(b"*") else {
        return false;
    };
    prefix.ends_with(b".")
        && host
            .split_at_checked(prefix.len())
            .is_some_and(|(start, rest)| start.eq_ignore_ascii_case(prefix) && !rest.is_empty())
}

fn ends_with_ignore_case(host: &[u8], suffix: &[u8]) -> bool {
    host.len()
        .checked_sub(suffix.len())
        .and_then(|start| host.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        match text {
            "all" => Network::All,
            "unix:" => Network::Unix,
            _ => {
                let (address, bits) = text.split_once('/').unwrap();
                Network::Block {
                    address: address.parse().unwrap(),
                    prefix_bits: bits.parse().unwrap(),
                }
            }
        }
    }

    #[test]
    fn the_first_rule_that_holds_the_address_decides() {
        let rules = |texts: &[&str]| -> Vec<AccessRule> {
            texts
                .iter()
                .map(|text| {
                    let (verb, block) = text.split_once(' ').unwrap();
                    AccessRule {
                        network: network(block),
                        allow: verb == "allow",
                    }
                })
                .collect()
        };
        let inside: &[&str] = &[
            "deny 10.0.0.1/32",
            "allow 10.0.0.0/8",
            "allow fd00::/8",
            "deny all",
        ];
        for (rules_text, address, wanted) in [
            (inside, Some("10.0.0.1"), false),
            (inside, Some("10.0.0.2"), true),
            (inside, Some("::ffff:10.0.0.2"), true),
            (inside, Some("fd00::1"), true),
            (inside, Some("11.0.0.1"), false),
            (inside, None, false),
            (&["allow unix:", "deny all"], None, true),
            (&["deny unix:"], None, false),
            (&["deny unix:"], Some("127.0.0.1"), true),
            (&["deny 127.0.0.0/8"], None, true),
            (&[], Some("127.0.0.1"), true),
        ] {
            let address = address.map(|text| text.parse().unwrap());
            assert_eq!(
                decide(&rules(rules_text), address).unwrap_or(true),
                wanted,
                "{rules_text:?} {address:?}"
            );
        }
    }

    #[test]
    fn proxies_are_believed_as_far_as_they_are_trusted() {
        let trusted = [network("127.0.0.0/8"), network("10.0.0.0/8")];
        for (name, peer, chain, recursive, wanted) in [
            (
                "untrusted peer",
                "192.0.2.9",
                &["192.0.2.1"][..],
                true,
                None,
            ),
            (
                "one address",
                "127.0.0.1",
                &["192.0.2.1"],
                false,
                Some("192.0.2.1:0"),
            ),
            (
                "with a port",
                "127.0.0.1",
                &["192.0.2.1:8080"],
                false,
                Some("192.0.2.1:8080"),
            ),
            (
                "IPv6",
                "127.0.0.1",
                &["2001:db8::1"],
                false,
                Some("[2001:db8::1]:0"),
            ),
            (
                "IPv6 with a port",
                "127.0.0.1",
                &["[2001:db8::1]:8080"],
                false,
                Some("[2001:db8::1]:8080"),
            ),
            (
                "port 0 is no port",
                "127.0.0.1",
                &["192.0.2.1:0"],
                false,
                None,
            ),
            (
                "the last one",
                "127.0.0.1",
                &["192.0.2.1, 192.0.2.2"],
                false,
                Some("192.0.2.2:0"),
            ),
            (
                "the last field",
                "127.0.0.1",
                &["192.0.2.1", "192.0.2.2"],
                false,
                Some("192.0.2.2:0"),
            ),
            (
                "blanks and commas",
                "127.0.0.1",
                &["192.0.2.1 ,, "],
                false,
                Some("192.0.2.1:0"),
            ),
            (
                "back to the first untrusted",
                "127.0.0.1",
                &["192.0.2.1, 192.0.2.2, 10.0.0.3"],
                true,
                Some("192.0.2.2:0"),
            ),
            (
                "across fields",
                "127.0.0.1",
                &["192.0.2.1", "10.0.0.2", "10.0.0.3"],
                true,
                Some("192.0.2.1:0"),
            ),
            (
                "all trusted",
                "127.0.0.1",
                &["10.0.0.2, 10.0.0.3"],
                true,
                Some("10.0.0.2:0"),
            ),
            (
                "stops at rubbish",
                "127.0.0.1",
                &["192.0.2.1, rubbish, 10.0.0.3"],
                true,
                Some("10.0.0.3:0"),
            ),
            (
                "an empty field",
                "127.0.0.1",
                &["192.0.2.1", " , "],
                false,
                None,
            ),
            ("only rubbish", "127.0.0.1", &["rubbish"], true, None),
            ("nothing", "127.0.0.1", &[], true, None),
            (
                "mapped peer",
                "::ffff:127.0.0.1",
                &["192.0.2.1"],
                false,
                Some("192.0.2.1:0"),
            ),
        ] {
            let peer: SocketAddr = SocketAddr::new(peer.parse().unwrap(), 1);
            let chain: Vec<&[u8]> = chain.iter().map(|text| text.as_bytes()).collect();
            let wanted = wanted.map(|text| text.parse().unwrap());
            assert_eq!(
                walk(Some(peer), &chain, &trusted, recursive),
                wanted,
                "{name}"
            );
        }
        assert_eq!(walk(None, &[b"192.0.2.1"], &trusted, false), None);
        let unix = walk(None, &[b"192.0.2.1"], &[Network::Unix], false);
        assert_eq!(unix, Some("192.0.2.1:0".parse().unwrap()));
        let peer = Some("192.0.2.9".parse().unwrap());
        assert_eq!(
            forwarded_address(peer, &[b"192.0.2.1"], &trusted, false),
            peer
        );
    }

    #[test]
    fn referers_are_told_apart_as_by_nginx() {
        let name = |name: &str, path: &str| (name.as_bytes().into(), path.as_bytes().into());
        let valid = ValidReferers {
            none: true,
            blocked: true,
            names: vec![
                name("www.example.org", ""),
                name("example.com", "/path"),
                name("*.example.net", ""),
                name(".both.example", ""),
                name("tail.*", ""),
            ],
            patterns: Vec::new(),
        };
        let strict = ValidReferers {
            none: false,
            blocked: false,
            ..valid.clone()
        };
        for (referer, lenient, wanted) in [
            (None, true, false),
            (Some("secret"), true, false),
            (Some("ftp://www.example.org/"), true, false),
            (Some("http://a"), true, false),
            (Some("http://www.example.org"), true, true),
            (Some("HTTPS://WWW.Example.org/x"), true, true),
            (Some("http://www.example.org:8080/x"), true, true),
            (Some("http://example.com/path/x"), true, true),
            (Some("http://example.com:80/path"), true, true),
            (Some("http://example.com/other"), false, false),
            (Some("http://example.com"), false, false),
            (Some("http://example.net/"), false, false),
            (Some("http://a.example.net/"), true, true),
            (Some("http://both.example/"), true, true),
            (Some("http://a.both.example/"), true, true),
            (Some("http://tail.de/"), true, true),
            (Some("http://other.de/x"), false, false),
        ] {
            let bytes = referer.map(str::as_bytes);
            let is_valid = |valid| is_referer_valid(valid, bytes, |_, _| Err(GivenUp)).ok();
            assert_eq!(is_valid(&valid), Some(lenient), "{referer:?}");
            assert_eq!(is_valid(&strict), Some(wanted), "{referer:?}");
        }
    }
}
