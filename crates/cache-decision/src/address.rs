//! From a URL as a user writes it to the addresses of the responses stored for it.
//!
//! An address is host (lower case, without port), decoded and normalised path, and `?` with the
//! arguments that count, if there are any. Scheme, method and class of visitor are not part of it.
//! Which arguments count depends on the location, which a text alone does not tell: there is an
//! address for each set of arguments that some location leaves out.

use http_semantics::{Target, parse_host};
use shared_request::NameSet;
use site::{CacheRules, Content, Site};

/// Returns the address of a request, by the target that the client sent, not by the rewritten one.
/// Empty if the target has none.
pub fn of_request(host: &[u8], target: &[u8], rules: &CacheRules) -> Vec<u8> {
    of_target(host, target, removed_arguments(rules)).unwrap_or_default()
}

/// The arguments that are in no address.
fn removed_arguments(rules: &CacheRules) -> &NameSet {
    match &rules.shared {
        Some(shared) => &shared.request.removed_arguments,
        None => &rules.ignored_arguments,
    }
}

/// The address of a host and a target (path and arguments as they stand in a request), less the
/// arguments that `removed` names; none if it is no target.
pub fn of_target(host: &[u8], target: &[u8], removed: &NameSet) -> Option<Vec<u8>> {
    let target = Target::parse(target, true).ok()?;
    let query = target.query.unwrap_or_default();
    let mut address = Vec::with_capacity(host.len() + target.path.len() + 1 + query.len());
    address.extend(host.iter().map(u8::to_ascii_lowercase));
    address.extend_from_slice(&target.path);
    let path_end = address.len();
    address.push(b'?');
    shared_request::arguments::put_counted(query, removed, &mut address);
    if address.len() == path_end + 1 {
        address.truncate(path_end);
    }
    Some(address)
}

/// The configuration's rules for addresses: sets of arguments that some location leaves out. The
/// empty one is the first.
pub struct AddressRules(Vec<NameSet>);

/// Why a text names no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnAddress {
    /// It begins with `/`, and the host is not named.
    #[error("expected an absolute URL such as https://example.org/news/5, or a host in \"hosts\"")]
    NoHost,
    #[error("the host of this URL is not valid")]
    InvalidHost,
    #[error("the path of this URL is not valid: wrong percent-encoding, or above the root")]
    InvalidPath,
    /// It is no URL at all.
    #[error("expected an absolute URL such as https://example.org/news/5")]
    NotAUrl,
}

impl AddressRules {
    /// Collects the rules of a site.
    #[must_use]
    pub fn of_site(site: &Site) -> AddressRules {
        let mut rules = AddressRules::default();
        let locations = site.http.servers.iter().flat_map(|it| &it.locations);
        for location in locations {
            let Content::Pass(pass) = &location.settings.content else {
                continue;
            };
            let Some(cache) = &pass.cache else { continue };
            let removed = removed_arguments(cache);
            if !rules.0.contains(removed) {
                rules.0.push(removed.clone());
            }
        }
        rules
    }

    /// Returns rules under which some location leaves these arguments out.
    #[must_use]
    pub fn without(removed: NameSet) -> AddressRules {
        AddressRules(vec![NameSet::default(), removed])
    }

    /// The addresses of a URL: absolute, or of one of `hosts` where it begins with `/`.
    ///
    /// # Errors
    /// [`NotAnAddress`]
    pub fn of_url(&self, url: &[u8], hosts: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, NotAnAddress> {
        let mut addresses = Vec::new();
        each_host(url, hosts, |host, target| {
            self.put(host, target, &mut addresses)
        })?;
        Ok(addresses)
    }

    /// Returns the addresses of a request's target (path and arguments as they were received).
    pub fn of_target(&self, host: &[u8], target: &[u8]) -> Vec<Vec<u8>> {
        let mut addresses = Vec::new();
        // A target that does not decode was refused long before, and nothing is stored for it.
        let _ = self.put(host, target, &mut addresses);
        addresses
    }

    fn put(&self, host: &[u8], target: &[u8], out: &mut Vec<Vec<u8>>) -> Result<(), NotAnAddress> {
        for removed in &self.0 {
            let address = of_target(host, target, removed).ok_or(NotAnAddress::InvalidPath)?;
            push_new(out, address);
            // Without arguments there is nothing to leave out.
            if !target.contains(&b'?') {
                break;
            }
        }
        Ok(())
    }
}

impl Default for AddressRules {
    fn default() -> AddressRules {
        AddressRules(vec![NameSet::default()])
    }
}

/// Returns the prefixes of the addresses whose URLs begin with `url`. Arguments stay as they are.
///
/// # Errors
/// [`NotAnAddress`]
pub fn prefixes(url: &[u8], hosts: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, NotAnAddress> {
    let all = NameSet::default();
    let mut prefixes = Vec::new();
    each_host(url, hosts, |host, target| {
        let mut prefix = of_target(host, target, &all).ok_or(NotAnAddress::InvalidPath)?;
        // An address ends before a `?` with nothing behind it; a prefix does not.
        if target.ends_with(b"?") {
            prefix.push(b'?');
        }
        push_new(&mut prefixes, prefix);
        Ok(())
    })?;
    Ok(prefixes)
}

/// Calls `put` with the host of the URL and its target, or with each of `hosts` where it has none.
fn each_host(
    url: &[u8],
    hosts: &[Vec<u8>],
    mut put: impl FnMut(&[u8], &[u8]) -> Result<(), NotAnAddress>,
) -> Result<(), NotAnAddress> {
    let (named, target) = split(url)?;
    let hosts = match &named {
        Some(host) => std::slice::from_ref(host),
        None if hosts.is_empty() => return Err(NotAnAddress::NoHost),
        None => hosts,
    };
    hosts.iter().try_for_each(|host| put(host, target))
}

fn push_new(out: &mut Vec<Vec<u8>>, address: Vec<u8>) {
    if !out.contains(&address) {
        out.push(address);
    }
}

/// A host's name as addresses have it; `None` if it is not valid.
pub fn host(text: &[u8]) -> Option<Vec<u8>> {
    parse_host(text).map(|host| host.name.into_owned())
}

/// The host of an absolute URL, and its path with its query.
fn split(url: &[u8]) -> Result<(Option<Vec<u8>>, &[u8]), NotAnAddress> {
    let rest = match without_scheme(url) {
        Some(rest) => rest,
        None if url.first() == Some(&b'/') => return Ok((None, url)),
        None => return Err(NotAnAddress::NotAUrl),
    };
    let end = memchr::memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let host = host(authority).ok_or(NotAnAddress::InvalidHost)?;
    match target.first() {
        Some(b'/') => Ok((Some(host), target)),
        // An empty path is `/` (RFC 9110 §4.2.3).
        None | Some(b'#') => Ok((Some(host), b"/")),
        // A query without a path, which no user writes.
        _ => Err(NotAnAddress::InvalidPath),
    }
}

/// Returns the part after `https://`, `http://` or `//`.
pub fn without_scheme(url: &[u8]) -> Option<&[u8]> {
    ["https://", "http://", "//"].iter().find_map(|scheme| {
        let (start, rest) = url.split_at_checked(scheme.len())?;
        start
            .eq_ignore_ascii_case(scheme.as_bytes())
            .then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(removed: &[&[&str]]) -> AddressRules {
        let set = |names: &&[&str]| NameSet::new(names.iter().map(|name| name.as_bytes()));
        AddressRules(removed.iter().map(set).collect())
    }

    fn addresses(rules: &AddressRules, url: &str) -> Result<Vec<String>, NotAnAddress> {
        let found = rules.of_url(url.as_bytes(), &[])?;
        Ok(found
            .into_iter()
            .map(|address| String::from_utf8(address).unwrap())
            .collect())
    }

    #[test]
    fn an_address_is_the_same_however_it_was_written() {
        let removed = NameSet::new([&b"utm_*"[..]]);
        let address = |host: &str, target: &str| {
            let address = of_target(host.as_bytes(), target.as_bytes(), &removed);
            address.map(|address| String::from_utf8_lossy(&address).into_owned())
        };
        for (target, expected) in [
            ("/news/5", "example.org/news/5"),
            ("/news/%35", "example.org/news/5"),
            ("/a/../news//5", "example.org/news/5"),
            ("/news/5?", "example.org/news/5"),
            ("/news/5?utm_source=x", "example.org/news/5"),
            ("/news/5?utm_source=x&page=2", "example.org/news/5?page=2"),
            ("http://ignored/news/5?page=2", "example.org/news/5?page=2"),
        ] {
            assert_eq!(address("Example.ORG", target).as_deref(), Some(expected));
        }
        assert_eq!(address("example.org", "/a/../.."), None);
    }

    #[test]
    fn an_address_has_neither_scheme_nor_port_and_a_decoded_path() {
        let rules = rules(&[&[]]);
        for (url, expected) in [
            ("https://example.org/news/5", "example.org/news/5"),
            ("HTTP://Example.ORG:8080/a%20b//c/../d", "example.org/a b/d"),
            ("//example.org./", "example.org/"),
            ("https://example.org", "example.org/"),
            ("https://[::1]:81/x?b=%20&a", "[::1]/x?b=%20&a"),
            ("https://example.org/x?", "example.org/x"),
            ("https://example.org/x?y#z", "example.org/x?y"),
            ("https://example.org/x#z", "example.org/x"),
            ("https://example.org#z", "example.org/"),
        ] {
            assert_eq!(addresses(&rules, url).unwrap(), [expected], "{url}");
        }
    }

    #[test]
    fn each_rule_for_arguments_gives_an_address() {
        let rules = rules(&[&[], &["utm_*"], &["utm_*", "page"]]);
        assert_eq!(
            addresses(&rules, "https://a/x?utm_source=m&page=2").unwrap(),
            ["a/x?utm_source=m&page=2", "a/x?page=2", "a/x"]
        );
        assert_eq!(addresses(&rules, "https://a/x").unwrap(), ["a/x"]);
    }

    #[test]
    fn what_is_no_address_says_why() {
        let rules = rules(&[&[]]);
        for (url, expected) in [
            ("/news/5", NotAnAddress::NoHost),
            ("news/5", NotAnAddress::NotAUrl),
            ("ftp://example.org/", NotAnAddress::NotAUrl),
            ("https:///x", NotAnAddress::InvalidHost),
            ("https://a b/x", NotAnAddress::InvalidHost),
            ("https://a/%zz", NotAnAddress::InvalidPath),
            ("https://a/../../x", NotAnAddress::InvalidPath),
            ("https://a/%00", NotAnAddress::InvalidPath),
        ] {
            assert_eq!(addresses(&rules, url), Err(expected), "{url:?}");
        }
        let hosts = [b"a".to_vec(), b"b".to_vec()];
        let found = rules.of_url(b"/x", &hosts).unwrap();
        assert_eq!(found, [b"a/x".to_vec(), b"b/x".to_vec()]);
    }

    #[test]
    fn a_prefix_may_end_anywhere() {
        for (url, expected) in [
            ("https://a/news/", "a/news/"),
            ("https://a/new", "a/new"),
            ("https://a", "a/"),
            ("https://a/x?page=", "a/x?page="),
            ("https://a/x?", "a/x?"),
        ] {
            let found = prefixes(url.as_bytes(), &[]).unwrap();
            assert_eq!(found, [expected.as_bytes().to_vec()], "{url}");
        }
    }
}
