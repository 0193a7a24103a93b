//! Requests of an audit: those of a usual visitor, and those in which a variation changes one part.
//!
//! ```text
//! page ─┬─ clean request                               ┐ the same address: the page's own one with a
//!       └─ variation, values ─► altered request        ┘ cache buster, an argument that makes it cold
//!                     └─ evidence: what must not come back to another visitor
//! ```

use command_line::Target;

use super::variations::{Change, Variation};

/// The name of the argument that makes an address cold. It has no dash, so that a configuration can name it
/// as `$arg_mayfly_audit`.
pub const BUSTER: &str = "mayfly_audit";

/// More than most frameworks take for one field, and less than the 8 KB that servers take for a head.
const LONG_FIELD_BYTES: usize = 6 << 10;

const USER_AGENT: &str = concat!(
    "Mozilla/5.0 (X11; Linux x86_64) mayfly-audit/",
    env!("CARGO_PKG_VERSION")
);

/// A page that is audited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub target: Target,
    /// Fields of each request, from the command line.
    pub fields: Vec<(String, String)>,
}

/// Random values of one series of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// Letters alone: no page has it by chance, and no encoding changes it.
    pub word: String,
    pub port: u16,
    pub address: String,
}

impl Values {
    /// Makes values of random bytes.
    pub fn from_random(bytes: [u8; 16]) -> Values {
        let (letters, rest) = bytes.split_at(12);
        let [high, low, host, _] = *rest else {
            unreachable!("sixteen less twelve")
        };
        Values {
            word: word("mfw", letters),
            port: 20_000 + u16::from_be_bytes([high, low]) % 30_000,
            // TEST-NET-2 (RFC 5737).
            address: format!("198.51.100.{host}"),
        }
    }
}

/// A word of letters, made of random bytes.
pub fn word(begin: &str, random: &[u8]) -> String {
    let letters = random.iter().map(|byte| char::from(b'a' + byte % 26));
    begin.chars().chain(letters).collect()
}

/// A request that is ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRequest {
    /// Request line, fields, an empty line, and a body where there is one.
    pub bytes: String,
    pub is_head: bool,
}

/// A request of a variation, with the evidence that it may leave behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredRequest {
    pub request: AuditRequest,
    /// Texts in lower case that another visitor must not get.
    pub evidence: Vec<String>,
}

impl Page {
    fn path(&self) -> &str {
        let target = &self.target.target;
        target.split('?').next().unwrap_or_default()
    }

    fn arguments(&self) -> &str {
        self.target.target.split_once('?').map_or("", |(_, it)| it)
    }

    /// The name of the page's first argument.
    fn first_argument(&self) -> Option<&str> {
        let first = self.arguments().split('&').next()?;
        let name = first.split('=').next()?;
        (!name.is_empty()).then_some(name)
    }

    /// The request of a usual visitor.
    pub fn clean(&self, buster: Option<&str>) -> AuditRequest {
        Draft::of(self, buster).finish()
    }

    /// The request of a variation; `None` if the page does not have the part that it changes.
    pub fn altered(
        &self,
        variation: &Variation,
        values: &Values,
        buster: Option<&str>,
    ) -> Option<AlteredRequest> {
        let mut draft = Draft::of(self, buster);
        let fill = |template| self.fill(template, values);
        match variation.change {
            Change::Method(method) => draft.method = fill(method)?,
            Change::Path(path) => draft.path = fill(path)?,
            Change::AbsoluteForm(before, host) => {
                draft.before_path = fill(before)?;
                draft.host = fill(host)?;
            }
            Change::Host(host) => draft.host = fill(host)?,
            Change::Argument(argument) => draft.arguments.push(fill(argument)?),
            Change::Fields(lines) => {
                for line in fill(lines)?.split('\n') {
                    let (name, value) = line.split_once(": ")?;
                    draft.set(name, value);
                }
            }
            Change::Cookie(cookies) => draft.set("Cookie", &fill(cookies)?),
            Change::Body(form) => {
                draft.body = fill(form)?;
                draft.set("Content-Type", "application/x-www-form-urlencoded");
                draft.set("Content-Length", &draft.body.len().to_string());
            }
        }
        Some(AlteredRequest {
            request: draft.finish(),
            evidence: evidence(variation, values),
        })
    }

    /// Fills in a template; `None` if the page lacks a part that the template needs.
    fn fill(&self, template: &str, values: &Values) -> Option<String> {
        let authority = &self.target.authority;
        let usual_port = if self.target.is_tls { 443 } else { 80 };
        let colon = match self.target.port == usual_port {
            true => String::new(),
            false => format!(":{}", self.target.port),
        };
        let name = authority.strip_suffix(&colon).unwrap_or(authority);
        let mut text = template.to_owned();
        let mut replace = |placeholder: &str, value: &str| {
            if text.contains(placeholder) {
                text = text.replace(placeholder, value);
            }
        };
        if template.contains("{coded}") {
            replace("{coded}", &self.coded_path()?);
        }
        if template.contains("{first}") {
            replace("{first}", self.first_argument()?);
        }
        if template.contains("{long}") {
            replace(
                "{long}",
                &values.word.repeat(LONG_FIELD_BYTES / values.word.len()),
            );
        }
        replace("{word}", &values.word);
        replace("{port}", &values.port.to_string());
        replace("{address}", &values.address);
        replace("{host}", authority);
        replace("{HOST}", &authority.to_ascii_uppercase());
        replace("{name}", name);
        replace("{colon}", &colon);
        replace("{path}", self.path());
        replace(
            "{scheme}",
            if self.target.is_tls { "http" } else { "https" },
        );
        Some(text)
    }

    /// The path with its first letter or digit percent-encoded.
    fn coded_path(&self) -> Option<String> {
        let path = self.path();
        let at = path.find(|it: char| it.is_ascii_alphanumeric())?;
        let (before, rest) = path.split_at_checked(at)?;
        let letter = rest.bytes().next()?;
        Some(format!("{before}%{letter:02X}{}", rest.get(1..)?))
    }
}

/// Parts of a request before they become its bytes.
struct Draft {
    method: String,
    before_path: String,
    path: String,
    arguments: Vec<String>,
    host: String,
    fields: Vec<(String, String)>,
    body: String,
}

impl Draft {
    fn of(page: &Page, buster: Option<&str>) -> Draft {
        let own = Some(page.arguments()).filter(|it| !it.is_empty());
        let own = own.map(str::to_owned);
        let buster = buster.map(|value| format!("{BUSTER}={value}"));
        let fields = [
            ("User-Agent", USER_AGENT),
            (
                "Accept",
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            ),
            ("Accept-Language", "en"),
            // Bodies are compared as text.
            ("Accept-Encoding", "identity"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut draft = Draft {
            method: "GET".to_owned(),
            before_path: String::new(),
            path: page.path().to_owned(),
            arguments: own.into_iter().chain(buster).collect(),
            host: page.target.authority.clone(),
            fields: fields.to_vec(),
            body: String::new(),
        };
        for (name, value) in &page.fields {
            draft.set(name, value);
        }
        draft
    }

    /// Sets a field in place of one with the same name.
    fn set(&mut self, name: &str, value: &str) {
        self.fields.retain(|(it, _)| !it.eq_ignore_ascii_case(name));
        self.fields.push((name.to_owned(), value.to_owned()));
    }

    fn finish(self) -> AuditRequest {
        let question = if self.arguments.is_empty() { "" } else { "?" };
        let mut bytes = format!(
            "{} {}{}{question}{} HTTP/1.1\r\nHost: {}\r\n",
            self.method,
            self.before_path,
            self.path,
            self.arguments.join("&"),
            self.host,
        );
        for (name, value) in &self.fields {
            bytes.push_str(&format!("{name}: {value}\r\n"));
        }
        bytes.push_str("\r\n");
        bytes.push_str(&self.body);
        AuditRequest {
            bytes,
            is_head: self.method == "HEAD",
        }
    }
}

/// The random values that a variation sends.
fn evidence(variation: &Variation, values: &Values) -> Vec<String> {
    let templates = variation.change.templates().concat();
    let all = [
        ("{word}", values.word.clone()),
        ("{long}", values.word.clone()),
        ("{port}", values.port.to_string()),
        ("{address}", values.address.clone()),
    ];
    let sent = all.into_iter().filter(|(it, _)| templates.contains(it));
    sent.map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::super::variations::VARIATIONS;
    use super::*;

    fn page(url: &str) -> Page {
        Page {
            target: Target::parse(url).unwrap(),
            fields: Vec::new(),
        }
    }

    fn values() -> Values {
        Values {
            word: "mfwabc".to_owned(),
            port: 20_001,
            address: "198.51.100.7".to_owned(),
        }
    }

    /// The request line and `Host` of a variation.
    fn line(page: &Page, name: &str) -> Option<String> {
        let variation = VARIATIONS.iter().find(|row| row.name == name).unwrap();
        let altered = page.altered(variation, &values(), Some("b"))?;
        let lines: Vec<&str> = altered.request.bytes.split("\r\n").take(2).collect();
        Some(lines.join(" "))
    }

    #[test]
    fn the_buster_follows_the_own_arguments() {
        for (url, buster, expected) in [
            ("http://a/", None, "GET / HTTP/1.1\r\n"),
            ("http://a/?x=1", None, "GET /?x=1 HTTP/1.1\r\n"),
            (
                "http://a/p",
                Some("b"),
                "GET /p?mayfly_audit=b HTTP/1.1\r\n",
            ),
            (
                "http://a/p?x=1",
                Some("b"),
                "GET /p?x=1&mayfly_audit=b HTTP/1.1\r\n",
            ),
        ] {
            let request = page(url).clean(buster);
            assert!(request.bytes.starts_with(expected), "{}", request.bytes);
            assert!(request.bytes.ends_with("\r\n\r\n"));
        }
    }

    #[test]
    fn one_part_is_changed() {
        let page = page("http://site.test:8080/news?id=5");
        let end = "?id=5&mayfly_audit=b";
        let own = "Host: site.test:8080";
        #[rustfmt::skip]
        let cases = [
            ("utm_source", format!("GET /news{end}&utm_source=mfwabc HTTP/1.1 {own}")),
            ("repeated own argument", format!("GET /news{end}&id=mfwabc HTTP/1.1 {own}")),
            ("HEAD", format!("HEAD /news{end} HTTP/1.1 {own}")),
            ("path parameter", format!("GET /news;mfwabc{end} HTTP/1.1 {own}")),
            ("dot segments", format!("GET /mfwabc/../news{end} HTTP/1.1 {own}")),
            ("encoded path", format!("GET /%6Eews{end} HTTP/1.1 {own}")),
            ("Host with another port", format!("GET /news{end} HTTP/1.1 Host: site.test:20001")),
            ("Host with a trailing dot", format!("GET /news{end} HTTP/1.1 Host: site.test.:8080")),
            ("Host in upper case", format!("GET /news{end} HTTP/1.1 Host: SITE.TEST:8080")),
            ("absolute-form target", format!("GET http://site.test:8080/news{end} HTTP/1.1 Host: mfwabc.test")),
        ];
        for (name, expected) in cases {
            assert_eq!(line(&page, name), Some(expected), "{name}");
        }
    }

    #[test]
    fn parts_that_a_page_lacks_are_not_changed() {
        let page = page("http://site.test/");
        assert_eq!(line(&page, "repeated own argument"), None);
        assert_eq!(line(&page, "encoded path"), None);
    }

    #[test]
    fn every_row_is_filled_in() {
        let page = page("http://site.test/news?id=5");
        for row in VARIATIONS {
            let altered = page.altered(row, &values(), Some("b")).expect(row.name);
            let text = &altered.request.bytes;
            assert!(!text.contains(['{', '}']), "{}: {text}", row.name);
            for value in &altered.evidence {
                assert!(text.contains(value.as_str()), "{}: {value}", row.name);
            }
            let clean = page.clean(Some("b")).bytes;
            assert_ne!(*text, clean, "{}", row.name);
        }
    }

    #[test]
    fn a_field_takes_the_place_of_one_with_its_name() {
        let mut page = page("http://site.test/");
        page.fields = vec![("accept-language".to_owned(), "fr".to_owned())];
        let clean = page.clean(None).bytes;
        assert!(clean.contains("accept-language: fr\r\n") && !clean.contains(": en\r\n"));
        let row = VARIATIONS.iter().find(|row| row.name == "Accept-Language");
        let altered = page.altered(row.unwrap(), &values(), None).unwrap();
        let text = altered.request.bytes;
        assert!(text.contains("Accept-Language: de\r\n") && !text.contains(": fr\r\n"));
    }

    #[test]
    fn a_body_has_its_length() {
        let row = VARIATIONS
            .iter()
            .find(|row| matches!(row.change, Change::Body(_)));
        let altered = page("http://a/").altered(row.unwrap(), &values(), None);
        let text = altered.unwrap().request.bytes;
        assert!(text.contains("Content-Length: 18\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\nmayfly_form=mfwabc"), "{text}");
    }

    #[test]
    fn random_values_are_words_ports_and_addresses() {
        let made = Values::from_random([255; 16]);
        assert_eq!(made.word, "mfwvvvvvvvvvvvv");
        assert!((20_000..50_000).contains(&made.port));
        assert_eq!(made.address, "198.51.100.255");
    }
}
