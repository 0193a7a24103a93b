//! From a stored response back to a request that would have it stored again: the request of a visitor
//! without cookies and credentials. Several are tried, as a key does not always tell the URL. Which of them
//! is the right one shows when the cache makes its key (`content/own_visit.rs`); one that leads to
//! another key is not sent to any upstream.

use http_cache::WantedResponse;
use shared_request::Class;

use super::visit;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::service::own_visit::{OwnPageRequest, listeners, port_of};

/// Requests that are tried for one response.
const MAX_TRIED: usize = 12;

/// Classes of visitors whose pages are fetched again. Pages for crawlers may be older anyway.
const CLASSES: [Class; 2] = [Class::Desktop, Class::Mobile];

/// The requests to try, the most likely one first. The list is empty if the response depends on more than the
/// URL and the fields that browsers negotiate by.
pub fn requests(
    configuration: &ConfigurationHandle,
    wanted: &WantedResponse,
) -> Vec<OwnPageRequest> {
    let Some(negotiated) = negotiated(wanted) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for url in known_urls(wanted) {
        for scheme in url.schemes() {
            let (name, port) = split_port(&url.host);
            let known = listeners(configuration, name.as_bytes(), scheme, port);
            for listener in known {
                let own = &configuration.site.http.listeners[listener.0];
                let hosts = match url.is_whole {
                    true => vec![url.host.clone()],
                    false => hosts(name, scheme, port_of(own)),
                };
                for host in hosts {
                    all.push(OwnPageRequest {
                        listener,
                        scheme,
                        host,
                        target: url.target.clone(),
                        method: "GET".to_owned(),
                        client: None,
                        fields: Vec::new(),
                    });
                }
            }
        }
    }
    all.dedup();
    let classes = match class_of_key(&wanted.key) {
        Some(class) => vec![class],
        None => CLASSES.to_vec(),
    };
    let of_classes = classes.into_iter().flat_map(|class| {
        let fields = with_negotiated(visit::fields(class), &negotiated);
        all.iter().map(move |asked| OwnPageRequest {
            fields: fields.clone(),
            ..asked.clone()
        })
    });
    of_classes.take(MAX_TRIED).collect()
}

/// A URL, as far as it is known.
struct KnownUrl {
    scheme: Option<&'static str>,
    host: String,
    target: String,
    /// The host is known with its port, and the target as it was received.
    is_whole: bool,
}

impl KnownUrl {
    fn schemes(&self) -> impl Iterator<Item = &'static str> {
        let known = self.scheme;
        let all = ["https", "http"].into_iter();
        all.filter(move |&scheme| known.is_none_or(|known| known == scheme))
    }
}

/// Returns the URLs that key and address allow. A key that begins with a URL gives it exactly, such as the
/// keys of `cache_shared`.
fn known_urls(wanted: &WantedResponse) -> impl Iterator<Item = KnownUrl> {
    let of_key = ["https", "http"].into_iter().find_map(|scheme| {
        let rest = wanted.key.strip_prefix(scheme.as_bytes())?;
        let rest = rest.strip_prefix(b"://")?;
        let end = rest.iter().position(|byte| !byte.is_ascii_graphic());
        let text = std::str::from_utf8(rest.get(..end.unwrap_or(rest.len()))?).ok()?;
        let (host, target) = text.split_at(text.find('/')?);
        Some(KnownUrl {
            scheme: Some(scheme),
            host: host.to_owned(),
            target: target.to_owned(),
            is_whole: true,
        })
    });
    let address = &*wanted.address;
    let of_address = address
        .iter()
        .position(|&byte| byte == b'/')
        .and_then(|at| {
            let (host, target) = address.split_at_checked(at)?;
            Some(KnownUrl {
                scheme: None,
                host: std::str::from_utf8(host).ok()?.to_owned(),
                target: encoded(target),
                is_whole: false,
            })
        });
    of_key.into_iter().chain(of_address)
}

/// The class that a key of `cache_shared` is for: its letter follows the URL and a zero byte.
fn class_of_key(key: &[u8]) -> Option<Class> {
    let end = key.iter().position(|&byte| byte == 0)?;
    let letter = *key.get(end + 1)?;
    Class::ALL
        .into_iter()
        .find(|class| class.letter() == letter)
}

fn split_port(host: &str) -> (&str, Option<u16>) {
    let split = host.rsplit_once(':');
    match split.and_then(|(name, port)| Some((name, port.parse().ok()?))) {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    }
}

/// Returns the values of visitors' Host fields: with the port unless it is the usual one, or without if
/// another machine stands before this one.
fn hosts(name: &str, scheme: &str, port: Option<u16>) -> Vec<String> {
    let usual = if scheme == "https" { 443 } else { 80 };
    match port.filter(|&port| port != usual) {
        Some(port) => vec![format!("{name}:{port}"), name.to_owned()],
        None => vec![name.to_owned()],
    }
}

/// The path of an address is decoded, its arguments are not. Encoded as browsers do.
fn encoded(target: &[u8]) -> String {
    let path_end = target.iter().position(|&byte| byte == b'?');
    let (path, rest) = target.split_at(path_end.unwrap_or(target.len()));
    let mut out = String::with_capacity(target.len());
    for &byte in path {
        match byte {
            b'"' | b'#' | b'%' | b'<' | b'>' | b'`' | b'{' | b'}' => {
                out.push_str(&format!("%{byte:02X}"));
            }
            _ if byte.is_ascii_graphic() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    // Arguments that no head can hold lead to no request.
    out.push_str(&String::from_utf8_lossy(rest));
    out
}

/// The fields that the variant was chosen by, each with the value to send, or none if it was not
/// sent. `None`: it was chosen by something that only its visitor has.
fn negotiated(wanted: &WantedResponse) -> Option<Vec<(String, Option<Vec<u8>>)>> {
    let Some(vary) = &wanted.vary else {
        return Some(Vec::new());
    };
    let sent = vary.negotiated()?;
    let names = vary.spec().names().iter();
    let fields = names.map(|name| {
        let value = sent.iter().find(|(sent, _)| sent == name);
        (name.clone(), value.map(|(_, value)| value.clone()))
    });
    Some(fields.collect())
}

fn with_negotiated(
    mut fields: Vec<(String, Vec<u8>)>,
    negotiated: &[(String, Option<Vec<u8>>)],
) -> Vec<(String, Vec<u8>)> {
    // The `User-Agent` of the class stays: `cache_shared` sends it for all.
    fields.retain(|(name, _)| name == "user-agent" || !negotiated.iter().any(|(it, _)| it == name));
    let sent = negotiated.iter();
    let sent = sent.filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    fields.extend(sent);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_encoded_as_browsers_send_it() {
        for (address, expected) in [
            ("/news/5", "/news/5"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/a b#c%d", "/a%20b%23c%25d"),
            ("/wiki/A:B,(c)'!", "/wiki/A:B,(c)'!"),
            ("/x?a=%20&b", "/x?a=%20&b"),
        ] {
            assert_eq!(encoded(address.as_bytes()), expected);
        }
    }

    #[test]
    fn hosts_have_the_port_unless_it_is_the_usual_one() {
        assert_eq!(hosts("a", "http", Some(80)), ["a"]);
        assert_eq!(hosts("a", "https", Some(80)), ["a:80", "a"]);
        assert_eq!(hosts("a", "http", None), ["a"]);
        assert_eq!(split_port("a:81"), ("a", Some(81)));
        assert_eq!(split_port("[::1]"), ("[::1]", None));
    }

    #[test]
    fn a_shared_key_tells_the_class() {
        for class in Class::ALL {
            let key = [&b"https://a/\0"[..], &[class.letter()], b"443\0"].concat();
            assert_eq!(class_of_key(&key), Some(class));
        }
        assert_eq!(class_of_key(b"httpsGETa/"), None);
    }

    #[test]
    fn own_requests_are_of_the_class_that_they_ask_for() {
        for class in CLASSES {
            assert_eq!(Class::of(Some(class.user_agent().as_bytes())), class);
        }
    }
}
