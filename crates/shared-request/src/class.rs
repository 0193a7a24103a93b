//! Kinds of visitors for whom applications make pages of their own, distinguished by User-Agent. The field
//! itself is chosen by the client, so the application is sent the same one for all visitors of a class.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher};

use memchr::memmem;

use crate::crawlers::{self, NamedCrawler};
use crate::left_out::class_of;

/// The kind of a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Desktop,
    Mobile,
    /// A program that indexes the web.
    Crawler,
}

/// The words that WordPress's `wp_is_mobile()` looks for, and most other applications with it. Lower case.
const MOBILES: [&str; 9] = [
    "mobile",
    "android",
    "iphone",
    "ipad",
    "silk/",
    "kindle",
    "blackberry",
    "opera mini",
    "opera mobi",
];

/// More of a User-Agent is not looked at.
const MAX_BYTES: usize = 512;

impl Class {
    pub const ALL: [Class; 3] = [Class::Desktop, Class::Mobile, Class::Crawler];

    /// The class of who sends this User-Agent.
    #[must_use]
    pub fn of(user_agent: Option<&[u8]>) -> Class {
        Class::and_family(user_agent).0
    }

    /// The class of who sends this User-Agent, and the family of programs that it names
    /// ([`Trait::Agent`](crate::left_out::Trait::Agent)): 0 if the shared request names the same, or
    /// where there is none.
    #[must_use]
    pub(crate) fn and_family(user_agent: Option<&[u8]>) -> (Class, u32) {
        match user_agent {
            None | Some([]) => (Class::Desktop, 0),
            Some(text) => {
                let known = remembered(text.get(..MAX_BYTES).unwrap_or(text));
                (known.class, known.family)
            }
        }
    }

    /// Its letter in cache keys.
    #[must_use]
    pub fn letter(self) -> u8 {
        match self {
            Class::Desktop => b'd',
            Class::Mobile => b'm',
            Class::Crawler => b'c',
        }
    }

    /// The User-Agent that the application is sent.
    #[must_use]
    pub fn user_agent(self) -> &'static str {
        match self {
            Class::Desktop => {
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Mayfly"
            }
            Class::Mobile => {
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36 Mayfly"
            }
            Class::Crawler => "Mozilla/5.0 (compatible; Mayflybot/1.0; crawler)",
        }
    }
}

/// Returns the crawler that a User-Agent names; `"other crawler"` for one that is not known by its name.
#[must_use]
pub fn crawler_named(user_agent: &[u8]) -> Option<&'static NamedCrawler> {
    match user_agent {
        [] => None,
        text => remembered(text.get(..MAX_BYTES).unwrap_or(text)).crawler,
    }
}

/// Parts of a User-Agent by which applications tell browsers and systems apart. Lower case.
#[rustfmt::skip]
const FAMILIES: [&str; 20] = [
    "firefox/", "chrome/", "crios/", "fxios/", "edg/", "opr/", "samsungbrowser/", "safari/", "msie ", "trident/",
    "windows", "macintosh", "x11", "cros ", "android", "iphone", "ipad", "mobile", "bot", "mayfly",
];

/// The family that a User-Agent (lower case) names: the parts of [`FAMILIES`] in it; the product that it
/// begins with where it is neither a browser's nor has such a part, and the crawler's name.
fn family(lower: &[u8], class: Class) -> u32 {
    let mut parts = Vec::with_capacity(64);
    for (index, part) in FAMILIES.iter().enumerate() {
        if memmem::find(lower, part.as_bytes()).is_some() {
            parts.push(index as u8);
        }
    }
    if class == Class::Crawler {
        parts.push(crawlers::known(lower).map_or(u8::MAX, |(at, _)| at as u8));
    } else if !lower.starts_with(b"mozilla/") {
        let product = lower.split(|byte| matches!(byte, b'/' | b' ')).next();
        parts.extend_from_slice(product.unwrap_or_default());
    }
    class_of(&parts)
}

/// The facts that follow from a User-Agent.
#[derive(Clone, Copy)]
struct AgentFacts {
    class: Class,
    family: u32,
    crawler: Option<&'static NamedCrawler>,
}

/// Looks closely. A crawler may say that it is mobile as well.
fn look(user_agent: &[u8]) -> AgentFacts {
    let lower = user_agent.to_ascii_lowercase();
    let class = look_for_class(&lower);
    let is_shared_request = |class: &Class| class.user_agent().as_bytes() == user_agent;
    AgentFacts {
        class,
        family: match Class::ALL.iter().any(is_shared_request) {
            true => 0,
            false => family(&lower, class),
        },
        crawler: crawlers::named(&lower),
    }
}

fn look_for_class(lower: &[u8]) -> Class {
    let names_any = |names: &[&str]| {
        names
            .iter()
            .any(|name| memmem::find(lower, name.as_bytes()).is_some())
    };
    if crawlers::known(lower).is_some() {
        Class::Crawler
    } else if names_any(&MOBILES) {
        Class::Mobile
    } else {
        Class::Desktop
    }
}

/// User-Agents that a thread remembers; a page of browsers' names fits.
const REMEMBERED: usize = 256;

#[derive(Clone, Default)]
struct RememberedUserAgent {
    text: Box<[u8]>,
    facts: Option<AgentFacts>,
}

thread_local! {
    /// Remembered fields by hash; empty until the first question.
    static KNOWN: RefCell<Vec<RememberedUserAgent>> = const { RefCell::new(Vec::new()) };
}

/// Like [`look`], which costs a microsecond, with a memory: browsers of one kind all send the same text.
fn remembered(user_agent: &[u8]) -> AgentFacts {
    let mut hasher = foldhash::fast::FixedState::with_seed(0).build_hasher();
    hasher.write(user_agent);
    let index = (hasher.finish() % REMEMBERED as u64) as usize;
    KNOWN.with_borrow_mut(|all| {
        if all.is_empty() {
            all.resize(REMEMBERED, RememberedUserAgent::default());
        }
        let Some(known) = all.get_mut(index) else {
            return look(user_agent);
        };
        if let Some(facts) = known.facts
            && *known.text == *user_agent
        {
            return facts;
        }
        let facts = look(user_agent);
        *known = RememberedUserAgent {
            text: user_agent.into(),
            facts: Some(facts),
        };
        facts
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_fall_into_three_classes() {
        let of = |text: &str| Class::of(Some(text.as_bytes()));
        assert_eq!(Class::of(None), Class::Desktop);
        for (text, wanted) in [
            ("", Class::Desktop),
            ("curl/8.0", Class::Desktop),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/140.0 Safari/537.36",
                Class::Desktop,
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Mobile/15E148",
                Class::Mobile,
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; K) Chrome/140.0 Mobile",
                Class::Mobile,
            ),
            (
                "Mozilla/5.0 (Android 14; MOBILE) (compatible; Googlebot/2.1)",
                Class::Crawler,
            ),
            ("Mozilla/5.0 (compatible; bingbot/2.0)", Class::Crawler),
        ] {
            assert_eq!(of(text), wanted, "{text}");
            assert_eq!(of(text), wanted, "{text}, remembered");
        }
        for class in [Class::Desktop, Class::Mobile] {
            assert_eq!(of(class.user_agent()), class);
        }
    }

    #[test]
    fn crawlers_are_known_by_their_names() {
        let of = |text: &str| crawler_named(text.as_bytes()).map(|it| it.name);
        assert_eq!(of("Mozilla/5.0 (compatible; GPTBot/1.2)"), Some("gptbot"));
        assert_eq!(of("SomeBot/1.0"), Some("other crawler"));
        assert_eq!(of("Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn what_is_remembered_is_never_somebody_elses() {
        for number in 0..5000 {
            let mobile = format!("Browser/{number} Mobile");
            let desktop = format!("Browser/{number}");
            assert_eq!(Class::of(Some(mobile.as_bytes())), Class::Mobile);
            assert_eq!(Class::of(Some(desktop.as_bytes())), Class::Desktop);
        }
    }
}
