//! Explains how the parts of a request affect its answer: each part is left out once, or added if it is
//! missing, and the request goes through the stages again. The differences show the effect.

use cache_decision::ForeseenReason;
use control::explain::{Effect, Part};
use shared_request::Class;

use super::way::{Question, Way, walk};
use crate::content::through_cache::outlook::Outlook;
use crate::exchange::configuration_handle::ConfigurationHandle;

/// The most parts that are tried.
const MAX_PARTS: usize = 64;

/// A request that differs in one part.
struct Other {
    name: String,
    /// The field that differs, in lower case.
    field: Option<String>,
    question: Question,
    is_example: bool,
}

/// Returns the effects of a request's parts, if the cache is used for it or would be without one of
/// them.
pub async fn of(configuration: &ConfigurationHandle, question: &Question, way: &Way) -> Vec<Part> {
    let is_cached = way
        .outlook
        .as_ref()
        .is_some_and(|outlook| outlook.lookup.is_some());
    if !is_cached {
        return Vec::new();
    }
    let mut parts = Vec::new();
    for other in others(question).into_iter().take(MAX_PARTS) {
        let effect = match walk(configuration, &other.question).await {
            Ok(changed) => effect(way, &changed, other.field.as_deref()),
            Err(_) => Some(Effect::ChoosesWay),
        };
        if let Some(effect) = effect {
            parts.push(Part {
                name: other.name,
                effect,
                is_example: other.is_example,
            });
        }
        // Lets the thread serve others between two tries.
        tokio::task::yield_now().await;
    }
    parts
}

/// Returns the effect of the part in which two requests differ; `None` if it cannot be seen.
fn effect(way: &Way, other: &Way, field: Option<&str>) -> Option<Effect> {
    let is_same_place = |one: &Way, two: &Way| {
        one.request.route.server() == two.request.route.server()
            && one.request.location().name == two.request.location().name
            && one.plan == two.plan
    };
    if !is_same_place(way, other) {
        return Some(Effect::ChoosesWay);
    }
    let past = |way: &Way| match way.outlook.as_ref().and_then(|it| it.reason.as_ref()) {
        Some(ForeseenReason::ByRequest(why)) => Some(*why),
        _ => None,
    };
    if past(way) != past(other) {
        return Some(Effect::PastCache);
    }
    let lookup = |way: &'_ Way| way.outlook.as_ref().and_then(key_of);
    match (lookup(way), lookup(other)) {
        (Some(one), Some(two)) if one != two => return Some(Effect::InKey),
        (Some(_), Some(_)) => {}
        _ => return Some(Effect::PastCache),
    }
    if past(way).is_some() {
        // It goes past the cache as before, so there is no copy to compare.
        return None;
    }
    let spec = way.outlook.as_ref()?.lookup.as_ref()?.varies_on.as_ref();
    let selects = field.is_some_and(|field| {
        let mut names = spec.iter().flat_map(|spec| spec.names());
        names.any(|name| name == field)
    });
    Some(match selects {
        true => Effect::SelectsVariant,
        false => Effect::Shares,
    })
}

fn key_of(outlook: &Outlook) -> Option<Vec<u8>> {
    Some(outlook.lookup.as_ref()?.key.clone())
}

/// Requests that differ from this one in one part each.
fn others(question: &Question) -> Vec<Other> {
    let mut others = Vec::new();
    for (at, (name, value)) in question.fields.iter().enumerate() {
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "cookie" => others.extend(without_each_cookie(question, at, value)),
            // Fields for the request's target and the length of its body.
            "host" | "content-length" | "transfer-encoding" => {}
            // Fields that every browser sends, and in which other visitors differ.
            "user-agent" | "accept" | "accept-encoding" => {}
            _ => {
                let mut changed = question.clone();
                changed.fields.remove(at);
                others.push(Other {
                    name: format!("field {name}"),
                    field: Some(lower),
                    question: changed,
                    is_example: false,
                });
            }
        }
    }
    others.extend(without_each_argument(question));
    others.extend(examples(question));
    others
}

fn without_each_cookie(question: &Question, at: usize, value: &[u8]) -> Vec<Other> {
    let pairs: Vec<&[u8]> = value
        .split(|&byte| byte == b';')
        .map(<[u8]>::trim_ascii)
        .collect();
    let named = pairs
        .iter()
        .enumerate()
        .filter(|(_, pair)| !pair.is_empty())
        .take(MAX_PARTS);
    let without = named.map(|(left_out, pair)| {
        let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
        let kept = pairs.iter().enumerate().filter(|(at, _)| *at != left_out);
        let kept: Vec<&[u8]> = kept.map(|(_, pair)| *pair).collect();
        let mut changed = question.clone();
        match kept.is_empty() {
            true => {
                changed.fields.remove(at);
            }
            false => changed.fields[at].1 = kept.join(&b"; "[..]),
        }
        Other {
            name: format!("cookie {}", String::from_utf8_lossy(name)),
            field: Some("cookie".to_owned()),
            question: changed,
            is_example: false,
        }
    });
    without.collect()
}

fn without_each_argument(question: &Question) -> Vec<Other> {
    let Some((path, args)) = question.url.split_once('?') else {
        return Vec::new();
    };
    let pairs: Vec<&str> = args.split('&').collect();
    let named = pairs
        .iter()
        .enumerate()
        .filter(|(_, pair)| !pair.is_empty())
        .take(MAX_PARTS);
    let without = named.map(|(left_out, pair)| {
        let kept = pairs.iter().enumerate().filter(|(at, _)| *at != left_out);
        let kept: Vec<&str> = kept.map(|(_, pair)| *pair).collect();
        let url = match kept.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{}", kept.join("&")),
        };
        Other {
            name: format!("argument {}", pair.split('=').next().unwrap_or_default()),
            field: None,
            question: Question {
                url,
                ..question.clone()
            },
            is_example: false,
        }
    });
    without.collect()
}

/// Returns requests with parts that other requests for the page may have.
fn examples(question: &Question) -> Vec<Other> {
    let argument = |name: &str, argument: &str| {
        let separator = if question.url.contains('?') { '&' } else { '?' };
        // The part after `#` is not sent.
        let url = question.url.split('#').next().unwrap_or_default();
        Other {
            name: name.to_owned(),
            field: None,
            question: Question {
                url: format!("{url}{separator}{argument}"),
                ..question.clone()
            },
            is_example: true,
        }
    };
    let field = |name: &str, field: &str, value: &str| {
        let mut changed = question.clone();
        let lower = field.to_ascii_lowercase();
        let given = changed
            .fields
            .iter()
            .position(|(name, _)| name.eq_ignore_ascii_case(field));
        match given {
            Some(at) if lower == "cookie" => {
                let joined = [&changed.fields[at].1, &b"; "[..], value.as_bytes()].concat();
                changed.fields[at].1 = joined;
            }
            Some(at) => changed.fields[at].1 = value.as_bytes().to_vec(),
            None => changed
                .fields
                .push((field.to_owned(), value.as_bytes().to_vec())),
        }
        Other {
            name: name.to_owned(),
            field: Some(lower),
            question: changed,
            is_example: true,
        }
    };
    vec![
        argument("any other argument", "mayfly_example=1"),
        argument("argument utm_source", "utm_source=example"),
        field("any other cookie", "Cookie", "mayfly_example=1"),
        field(
            "User-Agent of a phone",
            "User-Agent",
            Class::Mobile.user_agent(),
        ),
        field(
            "User-Agent of a crawler",
            "User-Agent",
            Class::Crawler.user_agent(),
        ),
        field(
            "field Accept-Language",
            "Accept-Language",
            "de-AT, de;q=0.9",
        ),
        field("field Authorization", "Authorization", "Basic ZXhhbXBsZTo="),
    ]
}
