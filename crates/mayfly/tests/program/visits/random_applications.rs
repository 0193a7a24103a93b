//! Random applications: pages that depend on parts of the request, and do something else for some
//! visitors. Their answers are functions of the request but for chance and time, which stand in lines
//! that begin with `<`.

use testkit::fake_http::Script;

use crate::attacks::random::Random;

/// A part of the request that an application may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    Language,
    Agent,
    IsMobile,
    Address,
    /// Whether the address is a certain one.
    IsInsider,
    Referer,
    Consent,
    Theme,
    Session,
    Field,
}

const FACTS: [Fact; 10] = [
    Fact::Language,
    Fact::Agent,
    Fact::IsMobile,
    Fact::Address,
    Fact::IsInsider,
    Fact::Referer,
    Fact::Consent,
    Fact::Theme,
    Fact::Session,
    Fact::Field,
];

const INSIDER: &str = "127.0.0.3";

impl Fact {
    /// The kind under which wrong answers are counted.
    pub fn kind(self) -> &'static str {
        match self {
            Fact::Language => "language",
            Fact::Agent | Fact::IsMobile => "agent",
            Fact::Address | Fact::IsInsider => "address",
            Fact::Referer => "referer",
            Fact::Consent | Fact::Theme | Fact::Session => "cookies",
            Fact::Field => "field",
        }
    }

    /// Returns the part of the request that an application reads.
    fn read(self, head: &str, address: &str) -> String {
        let agent = field(head, "user-agent");
        let cookies = field(head, "cookie");
        let text = match self {
            Fact::Language => primary_tag(field(head, "accept-language")),
            Fact::Agent => family(agent),
            Fact::IsMobile => yes_or_no(agent.contains("Mobile")),
            Fact::Address => address,
            Fact::IsInsider => yes_or_no(address == INSIDER),
            Fact::Referer => referer(field(head, "referer"), field(head, "host")),
            Fact::Consent => cookie(cookies, "cookie_consent").unwrap_or_default(),
            Fact::Theme => cookie(cookies, "mp_theme").unwrap_or_default(),
            Fact::Session => cookie(cookies, "PHPSESSID").unwrap_or_default(),
            Fact::Field => match field(head, "x-tenant") {
                "" => field(head, "x-invented"),
                tenant => tenant,
            },
        };
        text.to_owned()
    }

    /// A value that some visitors have.
    fn usual_value(self, random: &mut Random) -> &'static str {
        let values: &[&str] = match self {
            Fact::Language => &["de", "en", "fr", ""],
            Fact::Agent => &["bot", "Firefox", "Chrome", "Safari", "other"],
            Fact::Address => &["127.0.0.2", "127.0.0.4"],
            Fact::Referer => &["none", "own", "other"],
            Fact::Theme => &["dark", "light", ""],
            Fact::Consent => &["1", ""],
            Fact::Session => &["abc", ""],
            Fact::Field => &["acme", ""],
            Fact::IsMobile | Fact::IsInsider => &["yes", "no"],
        };
        values[random.below(values.len())]
    }
}

fn field<'h>(head: &'h str, name: &str) -> &'h str {
    let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let found = lines.find(|(field, _)| field.eq_ignore_ascii_case(name));
    found.map_or("", |(_, value)| value.trim())
}

fn primary_tag(languages: &str) -> &str {
    let end = languages.find(|letter: char| !letter.is_ascii_alphabetic());
    &languages[..end.unwrap_or(languages.len())]
}

fn family(agent: &str) -> &'static str {
    let names = ["bot", "Firefox", "Chrome", "Safari"];
    let found = names.into_iter().find(|name| agent.contains(name));
    found.unwrap_or("other")
}

fn referer(referer: &str, host: &str) -> &'static str {
    let authority = referer.split('/').nth(2).unwrap_or_default();
    match authority {
        "" => "none",
        own if own == host => "own",
        _ => "other",
    }
}

fn cookie<'h>(cookies: &'h str, name: &str) -> Option<&'h str> {
    let mut pairs = cookies
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
}

fn yes_or_no(is_so: bool) -> &'static str {
    match is_so {
        true => "yes",
        false => "no",
    }
}

/// The effect of an application for some visitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    Forbidden,
    NotFound,
    Gone,
    Moved,
    Found,
    Cookie,
    Private,
}

impl Effect {
    pub fn status_line(self) -> &'static str {
        match self {
            Effect::None | Effect::Cookie | Effect::Private => "200 OK",
            Effect::Forbidden => "403 Forbidden",
            Effect::NotFound => "404 Not Found",
            Effect::Gone => "410 Gone",
            Effect::Moved => "301 Moved Permanently",
            Effect::Found => "302 Found",
        }
    }

    fn fields(self, run: usize) -> String {
        match self {
            Effect::Moved | Effect::Found => "Location: /elsewhere\r\n".to_owned(),
            Effect::Cookie => format!("Set-Cookie: visit={run}\r\n"),
            Effect::Private => "Cache-Control: private\r\n".to_owned(),
            Effect::None | Effect::Forbidden | Effect::NotFound | Effect::Gone => String::new(),
        }
    }
}

const EFFECTS: [Effect; 7] = [
    Effect::Forbidden,
    Effect::NotFound,
    Effect::Gone,
    Effect::Moved,
    Effect::Found,
    Effect::Cookie,
    Effect::Private,
];

/// One address of an application.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub reads: Vec<Fact>,
    /// The effect for visitors for whom a fact has a value.
    pub effect: Option<(Fact, &'static str, Effect)>,
    /// The effect is the same for all visitors.
    has_effect_for_all: bool,
    has_chance: bool,
    has_time: bool,
}

impl Page {
    pub fn random(random: &mut Random) -> Page {
        let mut page = Page::default();
        for fact in FACTS {
            if random.one_in(5) {
                page.reads.push(fact);
            }
        }
        if random.one_in(3) {
            let fact = FACTS[random.below(FACTS.len())];
            let effect = EFFECTS[random.below(EFFECTS.len())];
            page.effect = Some((fact, fact.usual_value(random), effect));
            page.has_effect_for_all = random.one_in(4);
        }
        page.has_chance = random.one_in(8);
        page.has_time = random.one_in(8);
        page
    }

    pub fn effect_for(&self, head: &str, address: &str) -> Effect {
        match self.effect {
            Some((fact, value, effect))
                if self.has_effect_for_all || fact.read(head, address) == value =>
            {
                effect
            }
            _ => Effect::None,
        }
    }

    /// The lines that depend on the visitor.
    pub fn lines(&self, head: &str, address: &str) -> Vec<String> {
        let facts = self.reads.iter();
        let read = |fact: &Fact| format!("{fact:?}={}", fact.read(head, address));
        let mut lines: Vec<String> = facts.map(read).collect();
        lines.push(format!("effect={:?}", self.effect_for(head, address)));
        lines
    }

    pub fn answer(&self, head: &str, address: &str, run: usize) -> Script {
        let effect = self.effect_for(head, address);
        let mut lines = self.lines(head, address);
        if self.has_chance {
            lines.push(format!("<chance>{run}</chance>"));
        }
        if self.has_time {
            lines.push(format!("<time>{}</time>", run / 50));
        }
        let body = lines.join("\n");
        let (line, fields) = (effect.status_line(), effect.fields(run));
        let length = body.len();
        Script::new().raw(format!(
            "HTTP/1.1 {line}\r\nContent-Type: text/html\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
        ))
    }
}
