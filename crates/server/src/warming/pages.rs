//! A page that somebody names: stored ahead of visitors, or read for what it says.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use control::{Refusal, WarmReport, WarmResult};
use shared_request::Class;
use tokio::time::{Instant, sleep};

use super::visit::{self, Visited, visit};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::own_visit::Purpose;
use crate::exchange::request::Request;
use crate::service::own_visit::{Asked, Unaskable, listeners, request};

/// How long a page waits for visitors. Whoever asked is told, and may ask again.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether visitors still wait.
const PAUSE: Duration = Duration::from_millis(50);

/// Has the page of a URL stored. Waits while visitors stand in line for any upstream.
pub async fn warm(configuration: Arc<ActiveConfiguration>, url: &str) -> WarmReport {
    let began = Instant::now();
    let configuration = ConfigurationHandle::new(configuration);
    let mut report = WarmReport {
        url: url.to_owned(),
        result: WarmResult::Busy,
        status: None,
        reason: None,
        milliseconds: 0.0,
    };
    let fields = visit::fields(Class::Desktop);
    let is_page = made(&configuration, url, fields, Purpose::Warm).map(drop);
    if let Err(why) = is_page {
        report.result = WarmResult::Refused;
        report.reason = Some(why);
    } else {
        let visited = patient_visit(&configuration, url, began + PATIENCE).await;
        let (result, status, reason) = match visited {
            Visited::Fresh { status } => (WarmResult::Fresh, Some(status), None),
            Visited::Stored { status } => (WarmResult::Stored, Some(status), None),
            Visited::NotStored { status, why } => (WarmResult::NotStored, status, Some(why)),
            Visited::Busy | Visited::OtherPage => (WarmResult::Busy, None, None),
        };
        report.result = result;
        report.status = status;
        report.reason = reason.map(str::to_owned);
    }
    report.milliseconds = (began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
    report
}

async fn patient_visit(
    configuration: &ConfigurationHandle,
    url: &str,
    deadline: Instant,
) -> Visited {
    loop {
        if !do_visitors_wait(configuration) {
            let made = made(
                configuration,
                url,
                visit::fields(Class::Desktop),
                Purpose::Warm,
            );
            let Ok(mut request) = made else {
                return Visited::Busy;
            };
            let visited = visit(&mut request).await;
            if visited != Visited::Busy {
                return visited;
            }
        }
        if Instant::now() >= deadline {
            return Visited::Busy;
        }
        sleep(PAUSE).await;
    }
}

/// What the page of a URL says, if it is a page of this server and no longer than `max_bytes`.
///
/// # Errors
/// Why it cannot be said.
pub async fn read(
    configuration: Arc<ActiveConfiguration>,
    url: &str,
    max_bytes: usize,
) -> Result<Bytes, Refusal> {
    let deadline = Instant::now() + PATIENCE;
    let configuration = ConfigurationHandle::new(configuration);
    // Nobody else is to read it: it need not be compressed.
    let fields: Vec<_> = visit::fields(Class::Desktop)
        .into_iter()
        .filter(|(name, _)| name != "accept-encoding")
        .collect();
    loop {
        let made = made(&configuration, url, fields.clone(), Purpose::Read);
        let mut request = made.map_err(|why| Refusal::field("url", why))?;
        match visit::read(&mut request, max_bytes).await {
            Ok((200, Some(bytes))) => return Ok(bytes),
            Ok((200, None)) => {
                let why = format!("expected a whole answer of at most {max_bytes} bytes");
                return Err(Refusal::new(502, why));
            }
            Ok((status, _)) => {
                return Err(Refusal::new(502, format!("the server answers {status}")));
            }
            Err(_) if Instant::now() < deadline => sleep(PAUSE).await,
            Err(_) => {
                return Err(Refusal {
                    retry_after: Some(1),
                    ..Refusal::new(503, "visitors come first: the server is busy")
                });
            }
        }
    }
}

/// Does any visitor stand in line for an upstream?
fn do_visitors_wait(configuration: &ActiveConfiguration) -> bool {
    let groups = configuration.live.groups.groups();
    groups.iter().any(|group| group.queue_length() > 0)
}

/// The request for a URL, or why there is none.
fn made(
    configuration: &ConfigurationHandle,
    url: &str,
    fields: Vec<(String, Vec<u8>)>,
    purpose: Purpose,
) -> Result<Box<Request>, String> {
    let Url {
        scheme,
        authority,
        target,
    } = Url::parse(url).ok_or("expected an absolute URL such as https://example.org/news/5")?;
    let host = http_semantics::parse_host(authority.as_bytes());
    let host = host.ok_or("the host of this URL is not valid")?;
    let listeners = listeners(configuration, &host.name, scheme, host.port);
    let Some(&listener) = listeners.first() else {
        let name = String::from_utf8_lossy(&host.name);
        return Err(format!("this server has no site {name}"));
    };
    let asked = Asked {
        listener,
        scheme,
        host: authority.to_owned(),
        target,
        fields,
    };
    request(configuration, &asked, purpose).map_err(|why| match why {
        Unaskable::Invalid => "this URL is not valid".to_owned(),
        Unaskable::Refused(status) => format!("a visitor without a history is answered {status}"),
    })
}

/// The parts of an absolute URL that a request is made of.
#[derive(Debug, PartialEq, Eq)]
struct Url<'a> {
    scheme: &'static str,
    authority: &'a str,
    target: String,
}

impl<'a> Url<'a> {
    fn parse(url: &'a str) -> Option<Url<'a>> {
        let is = |scheme: &str| {
            let start = url.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        let scheme = ["https", "http"]
            .into_iter()
            .find(|scheme| is(&format!("{scheme}://")))?;
        let rest = url.get(scheme.len() + 3..)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        // An empty path is `/` (RFC 9110 §4.2.3).
        let slash = if target.starts_with('/') { "" } else { "/" };
        Some(Url {
            scheme,
            authority,
            target: slash.to_owned() + &encoded(target),
        })
    }
}

/// Sitemaps and lists are written by people: what a browser would encode is encoded.
fn encoded(target: &str) -> String {
    let mut out = String::with_capacity(target.len());
    for byte in target.bytes() {
        match byte {
            b'"' | b'<' | b'>' | b'`' => out.push_str(&format!("%{byte:02X}")),
            _ if byte.is_ascii_graphic() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_encoded_as_browsers_do() {
        let parsed = |url| Url::parse(url).map(|it| (it.scheme, it.authority, it.target));
        for (url, expected) in [
            (
                "https://example.org/a?b=c#d",
                Some(("https", "example.org", "/a?b=c")),
            ),
            (
                "HTTP://Example.org:8080",
                Some(("http", "Example.org:8080", "/")),
            ),
            (
                "http://example.org?a=1",
                Some(("http", "example.org", "/?a=1")),
            ),
            (
                "http://a/caf\u{e9} <1>",
                Some(("http", "a", "/caf%C3%A9%20%3C1%3E")),
            ),
            ("http://a/\r\nX: 1", Some(("http", "a", "/%0D%0AX:%201"))),
            ("/news/5", None),
            ("ftp://a/", None),
            ("https:/a", None),
        ] {
            let expected =
                expected.map(|(scheme, authority, target)| (scheme, authority, target.to_owned()));
            assert_eq!(parsed(url), expected, "{url:?}");
        }
    }
}
