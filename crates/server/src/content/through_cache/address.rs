//! The address by which what is stored for a request can be purged, whatever its key is made of: host,
//! path and the arguments that count. Scheme, method, class of visitor and cookies are not in it, so
//! that a purge of a URL reaches all variants.

use http_semantics::Target;
use shared_request::NameSet;
use site::CacheRules;

use crate::exchange::request::Request;

/// The address of a request: of what the client asked for, not of what rewriting made of it.
pub fn of_request(request: &Request, rules: &CacheRules) -> Vec<u8> {
    let removed = match &rules.shared {
        Some(shared) => &shared.request.removed_arguments,
        None => &rules.ignored_arguments,
    };
    let target = request.received_target();
    of_target(&request.host, target, removed).unwrap_or_default()
}

/// The address of a host and a target (path and arguments as they stand in a request), less the
/// arguments that `removed` names; none where it is no target.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
