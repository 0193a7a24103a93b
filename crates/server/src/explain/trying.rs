//! The page made again with one thing altered at a time, for an operator who wants to know its dependencies. Each
//! request goes past the cache with the fields that it has. Two unchanged requests show the parts that differ each
//! time.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

use control::Refusal;
use control::explain::{TriedAlteration, TriedEffect};

use super::way::Question;
use crate::content::through_cache::asking::whole_answer;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::own_visit::Purpose;

/// More of a page is not compared.
const MAX_BODY_BYTES: usize = 4 << 20;
/// More of a part is not shown.
const MAX_SHOWN_BYTES: usize = 80;

/// Fields that visitors differ in, with values that applications look for.
const FIELDS: [(&str, &str); 14] = [
    ("Accept-Language", "de-AT,de;q=0.9,en;q=0.5"),
    ("Accept-Language", "en-US,en;q=0.9"),
    ("Accept-Language", "fr"),
    (
        "User-Agent",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0",
    ),
    (
        "User-Agent",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1",
    ),
    (
        "User-Agent",
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    ),
    ("User-Agent", "curl/8.5.0"),
    ("Referer", "https://www.google.com/"),
    ("Referer", ""),
    ("Cookie", "cookie_consent=1"),
    ("Cookie", "theme=dark"),
    ("Sec-Fetch-Dest", "document"),
    ("DNT", "1"),
    ("Save-Data", "on"),
];

/// Addresses of two networks that are of no machine (RFC 5737).
const ADDRESSES: [Ipv4Addr; 2] = [
    Ipv4Addr::new(198, 51, 100, 7),
    Ipv4Addr::new(203, 0, 113, 7),
];

/// An answer: its status, where a redirect leads, and the body.
struct TriedAnswer {
    status: u16,
    location: Vec<u8>,
    body: Vec<u8>,
}

impl TriedAnswer {
    /// Its parts: text up to the next `<` or line end.
    fn parts(&self) -> Vec<&[u8]> {
        let mut parts = vec![&self.location[..]];
        for line in self.body.split_inclusive(|&byte| byte == b'\n') {
            let mut start = 0;
            for (at, byte) in line.iter().enumerate() {
                if *byte == b'<' && at > start {
                    parts.push(&line[start..at]);
                    start = at;
                }
            }
            parts.push(&line[start..]);
        }
        parts
    }
}

/// Makes the page with one thing altered at a time.
///
/// # Errors
/// It may not be made, or is not now.
pub async fn try_out(
    configuration: &ConfigurationHandle,
    question: &Question,
) -> Result<Vec<TriedAlteration>, Refusal> {
    if question.method != "GET" {
        return Err(Refusal::field(
            "try",
            "only GET is sent: other methods change something",
        ));
    }
    let busy = || Refusal {
        retry_after: Some(1),
        ..Refusal::new(
            503,
            "the application gave no whole answer, or visitors come first",
        )
    };
    let first = answer(configuration, question).await?.ok_or_else(busy)?;
    let second = answer(configuration, question).await?.ok_or_else(busy)?;
    let mut rows = vec![row("nothing, once more", &first, &second, None)];
    let unaltered = [first, second];
    for (altered, changed) in alterations(question) {
        // Lets the thread serve others between two tries.
        tokio::task::yield_now().await;
        let Some(one) = answer(configuration, &changed).await? else {
            rows.push(TriedAlteration {
                altered,
                status: 0,
                effect: TriedEffect::NoAnswer,
                was: String::new(),
                became: String::new(),
            });
            continue;
        };
        let is_new = !is_known(&one, &unaltered);
        let again = match is_new {
            true => answer(configuration, &changed).await?,
            false => None,
        };
        rows.push(compared(altered, &unaltered, &one, again.as_ref()));
    }
    Ok(rows)
}

fn is_known(one: &TriedAnswer, others: &[TriedAnswer]) -> bool {
    let is_same = |other: &TriedAnswer| {
        one.status == other.status && one.location == other.location && one.body == other.body
    };
    others.iter().any(is_same)
}

/// Compares the answer to an altered request with the others; `again` is a second answer to it, if the first was
/// new.
fn compared(
    altered: String,
    unaltered: &[TriedAnswer; 2],
    one: &TriedAnswer,
    again: Option<&TriedAnswer>,
) -> TriedAlteration {
    let stays = |of: [&TriedAnswer; 2], others: [&TriedAnswer; 2]| {
        let second: HashSet<&[u8]> = of[1].parts().into_iter().collect();
        let others: HashSet<&[u8]> = others.iter().flat_map(|it| it.parts()).collect();
        let mut parts = of[0].parts().into_iter();
        let own = parts.find(|part| second.contains(part) && !others.contains(part));
        own.map(shown)
    };
    let Some(again) = again else {
        return row(&altered, one, one, Some(TriedEffect::Same));
    };
    let before = [&unaltered[0], &unaltered[1]];
    let (was, became) = (stays(before, [one, again]), stays([one, again], before));
    let differs = was.is_some() || became.is_some() || one.status != unaltered[0].status;
    TriedAlteration {
        altered,
        status: one.status,
        effect: match differs {
            true => TriedEffect::Differs,
            false => TriedEffect::Same,
        },
        was: was.unwrap_or_default(),
        became: became.unwrap_or_default(),
    }
}

fn row(
    altered: &str,
    one: &TriedAnswer,
    other: &TriedAnswer,
    known: Option<TriedEffect>,
) -> TriedAlteration {
    let pairs = one.parts().into_iter().zip(other.parts());
    let first = pairs.into_iter().find(|(one, other)| one != other);
    let is_same = is_known(one, std::slice::from_ref(other));
    TriedAlteration {
        altered: altered.to_owned(),
        status: other.status,
        effect: known.unwrap_or(match is_same {
            true => TriedEffect::Same,
            false => TriedEffect::Differs,
        }),
        was: first.map_or_else(String::new, |(one, _)| shown(one)),
        became: first.map_or_else(String::new, |(_, other)| shown(other)),
    }
}

fn shown(part: &[u8]) -> String {
    let part = part.get(..MAX_SHOWN_BYTES).unwrap_or(part);
    String::from_utf8_lossy(part.trim_ascii()).into_owned()
}

/// Requests that differ in one thing, with its name.
fn alterations(question: &Question) -> Vec<(String, Question)> {
    let mut all = Vec::new();
    for (name, value) in FIELDS {
        let value = match (name, value) {
            ("Referer", "") => question.url.clone(),
            _ => value.to_owned(),
        };
        let mut changed = question.clone();
        let given = &mut changed.fields;
        match given
            .iter()
            .position(|(given, _)| given.eq_ignore_ascii_case(name))
        {
            Some(at) if name == "Cookie" => {
                let cookies = &mut given[at].1;
                cookies.extend_from_slice(b"; ");
                cookies.extend_from_slice(value.as_bytes());
            }
            Some(at) => given[at].1 = value.clone().into_bytes(),
            None => given.push((name.to_owned(), value.clone().into_bytes())),
        }
        all.push((format!("{name}: {value}"), changed));
    }
    for address in ADDRESSES {
        let mut changed = question.clone();
        changed.from = Some(IpAddr::V4(address));
        all.push((format!("from {address}"), changed));
    }
    all
}

/// Asks once; `None`: there was no whole answer.
async fn answer(
    configuration: &ConfigurationHandle,
    question: &Question,
) -> Result<Option<TriedAnswer>, Refusal> {
    let request = question.request(configuration, Purpose::Try)?;
    let answer = whole_answer(request, MAX_BODY_BYTES).await;
    Ok(answer.map(|answer| TriedAnswer {
        status: answer.status,
        location: answer.field(b"location").unwrap_or_default().to_vec(),
        body: answer.body,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> TriedAnswer {
        TriedAnswer {
            status: 200,
            location: Vec::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn an_alteration_is_told_from_what_differs_each_time() {
        let timed = |text: &str, time| page(&format!("<h1>{text}</h1>\n<i>{time}</i>"));
        let unaltered = [timed("Hello", 1), timed("Hello", 2)];
        let (one, again) = (timed("Hallo", 3), timed("Hallo", 4));
        let row = compared("x".to_owned(), &unaltered, &one, Some(&again));
        assert_eq!(row.effect, TriedEffect::Differs);
        assert_eq!((&*row.was, &*row.became), ("<h1>Hello", "<h1>Hallo"));
        let (one, again) = (timed("Hello", 3), timed("Hello", 4));
        let row = compared("x".to_owned(), &unaltered, &one, Some(&again));
        assert_eq!((row.effect, &*row.was), (TriedEffect::Same, ""));
    }
}
