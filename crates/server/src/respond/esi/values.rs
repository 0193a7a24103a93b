//! The values of the variables of a page (<https://www.w3.org/TR/esi-lang/>, section 4.1).

use esi::Values;
use http_semantics::{cookie, escape};

use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use crate::exchange::request_fields;

/// The request in whose name a page is run.
pub struct Visitor<'a>(pub &'a Request);

impl Values for Visitor<'_> {
    fn value(&self, name: &str, key: Option<&str>) -> Option<Vec<u8>> {
        let Visitor(request) = self;
        match (name, key) {
            ("QUERY_STRING", None) => Some(request.route.args.clone()),
            ("QUERY_STRING", Some(key)) => {
                let value = request_fields::argument(&request.route.args, key.as_bytes())?;
                let value: Vec<u8> = value
                    .iter()
                    .map(|&byte| if byte == b'+' { b' ' } else { byte })
                    .collect();
                Some(escape::unescape(&value).into_owned())
            }
            ("HTTP_HOST", None) => Some(request.received.host().to_vec()),
            ("HTTP_COOKIE", Some(key)) => {
                cookie::find(request.received.head(), key.as_bytes()).map(<[u8]>::to_vec)
            }
            ("HTTP_ACCEPT_LANGUAGE", Some(language)) => Some(accepts(&request.received, language)),
            ("HTTP_USER_AGENT", Some(part)) => user_agent(&request.received, part),
            (name, None) => {
                let field = name.strip_prefix("HTTP_")?.to_ascii_lowercase();
                let mut value = Vec::new();
                request_fields::put_field(request, field.as_bytes(), &mut value).then_some(value)
            }
            _ => None,
        }
    }
}

/// `true` or `false`: is the language among those that the visitor reads?
fn accepts(received: &ReceivedRequest, language: &str) -> Vec<u8> {
    let is_there = received.head().field_all(b"accept-language").any(|value| {
        value.split(|&byte| byte == b',').any(|item| {
            let range = item.split(|&byte| byte == b';').next().unwrap_or_default();
            range.trim_ascii().eq_ignore_ascii_case(language.as_bytes())
        })
    });
    is_there.to_string().into_bytes()
}

/// `browser`, `version` and `os`, in the few words that the language has for them.
fn user_agent(received: &ReceivedRequest, part: &str) -> Option<Vec<u8>> {
    let agent = String::from_utf8_lossy(received.head().field("user-agent")?).into_owned();
    let has = |name: &str| agent.contains(name);
    let found = match part {
        "browser" if has("MSIE") || has("Trident/") => "MSIE",
        "browser" if agent.starts_with("Mozilla/") => "MOZILLA",
        "os" if has("Windows") => "WIN",
        "os" if has("Mac OS") || has("Macintosh") => "MAC",
        "os" if has("Linux") || has("X11") || has("Android") => "UNIX",
        "browser" | "os" => "OTHER",
        "version" => {
            let (_, version) = agent
                .split_once("MSIE ")
                .or_else(|| agent.split_once('/'))?;
            let end = version.find(|byte: char| !byte.is_ascii_digit() && byte != '.');
            &version[..end.unwrap_or(version.len())]
        }
        _ => return None,
    };
    Some(found.as_bytes().to_vec())
}
