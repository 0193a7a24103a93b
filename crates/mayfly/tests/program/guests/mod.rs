//! Guests: visitors to whom an application gives a session although it knows nothing of them. Their pages come from
//! memory, their writes work, and nothing of one visitor is shown to another.

mod application;
mod corners;
mod crowd;
mod failing;
mod features;
mod forged;
mod property;
mod with_php;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use control::explain::SessionPart;
use testkit::client::Reply;

use self::application::{
    ApplicationState, Bound, FormEncoding, Rules, SCRIPT_COOKIE, Sessions, percent,
};
use crate::visits::explained::explain;
use crate::visits::{Application, Mark, Site, ask_port, is_from_memory, settle};

const HOST: &str = "site.test";

/// An application, and the server before it.
struct GuestSite {
    sessions: Arc<Sessions>,
    site: Site,
    _application: Application,
}

impl GuestSite {
    async fn start(rules: Rules) -> GuestSite {
        GuestSite::with_hosts([(HOST.to_owned(), rules)]).await
    }

    async fn with_hosts(rules: impl IntoIterator<Item = (String, Rules)>) -> GuestSite {
        GuestSite::started(rules, async |it| Site::of_guests(it, "1h").await).await
    }

    /// Where what the application says of caching counts in any case.
    async fn strict(rules: Rules) -> GuestSite {
        let rules = [(HOST.to_owned(), rules)];
        GuestSite::started(rules, async |it| Site::of_guests_strictly(it, "1h").await).await
    }

    async fn started(
        rules: impl IntoIterator<Item = (String, Rules)>,
        start: impl AsyncFnOnce(&Application) -> Site,
    ) -> GuestSite {
        let sessions = Arc::new(Sessions::new(rules));
        let answering = Arc::clone(&sessions);
        let application = Application::start(move |request| answering.answer(request)).await;
        let site = start(&application).await;
        GuestSite {
            sessions,
            site,
            _application: application,
        }
    }

    /// Guests ask for a page until it comes from memory.
    async fn warm(&self, path: &str) -> Reply {
        warm(&self.site, path).await
    }

    /// A guest who has got a page from memory.
    async fn arrive(&self, nth: usize, path: &str) -> (Visitor, Reply) {
        loop {
            let mut visitor = Visitor::new(HOST, nth);
            let reply = visitor.get(&self.site, path).await;
            if is_from_memory(&reply) {
                return (visitor, reply);
            }
            // What is made of the second is found a second later, and the page is made once more.
            self.warm(path).await;
        }
    }

    async fn tried(&self, path: &str) -> SessionPart {
        tried(&self.site, path).await
    }

    /// How often guests get a page from memory that has been asked for before.
    async fn tries(&self, path: &str) -> usize {
        let mut from_memory = 0;
        for nth in 0..8 {
            let reply = Visitor::new(HOST, nth).get(&self.site, path).await;
            from_memory += usize::from(is_from_memory(&reply));
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        from_memory
    }
}

/// Guests ask for a page until a trial says whether they share it.
async fn tried(site: &Site, path: &str) -> SessionPart {
    let mut last = None;
    for nth in 0..400 {
        Visitor::new(HOST, nth % 50).get(site, path).await;
        let told = explain(site, path, "", false).await;
        last = told.evidence.and_then(|evidence| evidence.session);
        match last {
            None | Some(SessionPart::Unproven) => settle().await,
            Some(verdict) => return verdict,
        }
    }
    panic!("{path} is not tried: {last:?}")
}

/// Guests ask for a page until it comes from memory.
async fn warm(site: &Site, path: &str) -> Reply {
    let mut last = String::new();
    for nth in 0..100 {
        let reply = Visitor::new(HOST, nth % 50).get(site, path).await;
        if is_from_memory(&reply) {
            return reply;
        }
        last = format!("{} {} {}", reply.status, reply.x_cache(), reply.text());
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    panic!("{path} does not come from memory: {last}")
}

/// What a browser says of where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Own(Browser),
    OtherSite,
    CrossSite,
    SameSite,
    Null,
    OtherReferer,
    Nothing,
}

const FORGED: [Origin; 6] = [
    Origin::OtherSite,
    Origin::CrossSite,
    Origin::SameSite,
    Origin::Null,
    Origin::OtherReferer,
    Origin::Nothing,
];

/// What browsers say of requests from a page of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Browser {
    Modern,
    WithOrigin,
    WithReferer,
}

impl Origin {
    fn fields(self, host: &str, page: &str) -> String {
        match self {
            Origin::Own(Browser::Modern) => format!(
                "Origin: http://{host}\r\nSec-Fetch-Site: same-origin\r\nReferer: http://{host}{page}\r\n"
            ),
            Origin::Own(Browser::WithOrigin) => {
                format!("Origin: http://{host}\r\nReferer: http://{host}{page}\r\n")
            }
            Origin::Own(Browser::WithReferer) => format!("Referer: http://{host}{page}\r\n"),
            Origin::OtherSite => "Origin: http://other.test\r\n".to_owned(),
            Origin::CrossSite => {
                format!("Origin: http://{host}\r\nSec-Fetch-Site: cross-site\r\n")
            }
            Origin::SameSite => {
                format!("Sec-Fetch-Site: same-site\r\nReferer: http://{host}{page}\r\n")
            }
            Origin::Null => "Origin: null\r\n".to_owned(),
            Origin::OtherReferer => "Referer: http://other.test/\r\n".to_owned(),
            Origin::Nothing => String::new(),
        }
    }
}

/// The token of a page.
#[derive(Clone, Debug)]
struct Form {
    page: String,
    name: String,
    token: String,
    /// The link that has the token, too.
    link: String,
    /// The token that scripts read in a cookie.
    in_cookie: String,
}

impl Form {
    fn of(page: &str, reply: &Reply) -> Option<Form> {
        let text = reply.text();
        let line = text.lines().find(|line| line.contains("name=\""))?;
        let mut quoted = line.split('"').skip(1).step_by(2);
        let mut values: Vec<&str> = quoted.by_ref().collect();
        let (token, name) = (values.pop()?, values.pop()?);
        Some(Form {
            page: page.to_owned(),
            name: name.to_owned(),
            token: token.to_owned(),
            link: Form::link(reply),
            in_cookie: String::new(),
        })
    }

    /// The link of a page that has its token.
    fn link(reply: &Reply) -> String {
        let text = reply.text();
        let link = text.split("<a href=\"").nth(1).expect("a link");
        link.split('"').next().expect("its end").to_owned()
    }
}

const AGENTS: [&str; 3] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36",
];

/// A visitor with a browser, and what the application knows of them.
#[derive(Clone, Debug)]
struct Visitor {
    id: u64,
    host: String,
    from: u8,
    agent: &'static str,
    browser: Browser,
    jar: BTreeMap<String, String>,
    /// That of the last page.
    form: Option<Form>,
    state: ApplicationState,
    has_written: bool,
}

impl Visitor {
    /// One who has never been here.
    fn new(host: &str, nth: usize) -> Visitor {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let browsers = [Browser::Modern, Browser::WithOrigin, Browser::WithReferer];
        Visitor {
            id: COUNT.fetch_add(1, Relaxed),
            host: host.to_owned(),
            from: 2 + u8::try_from(nth % 200).expect("small"),
            agent: AGENTS[nth % AGENTS.len()],
            browser: browsers[nth % browsers.len()],
            jar: BTreeMap::new(),
            form: None,
            state: ApplicationState::default(),
            has_written: false,
        }
    }

    fn bound(&self) -> Bound {
        Bound {
            agent: self.agent.to_owned(),
            address: format!("127.0.0.{}", self.from),
            time: String::new(),
        }
    }

    fn sid(&self) -> &str {
        self.jar.get("sid").map_or("", |sid| sid)
    }

    /// The head of a request without its empty line.
    fn head(&self, line: &str, fields: &str) -> String {
        let cookies: Vec<String> = self
            .jar
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookies = match cookies.is_empty() {
            true => String::new(),
            false => format!("Cookie: {}\r\n", cookies.join("; ")),
        };
        let Visitor { host, agent, .. } = self;
        format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nUser-Agent: {agent}\r\n\
             Accept: text/html,*/*;q=0.8\r\nAccept-Language: de\r\n{cookies}{fields}"
        )
    }

    fn get_text(&self, line: &str, mark: Mark, fields: &str) -> String {
        let fetch = match self.browser {
            Browser::Modern => "Sec-Fetch-Site: same-origin\r\n",
            _ => "",
        };
        let mut visitor = self.clone();
        // No shared request and no trial has this cookie.
        visitor
            .jar
            .insert("_ga".to_owned(), format!("GA1.1.{}", mark.0));
        let referer = format!("Referer: http://{}/\r\n", self.host);
        visitor.head(line, &format!("{fetch}{referer}{fields}")) + "\r\n"
    }

    /// The link of a page that has its token: the page is asked for with the visitor's own fields but the one that has the
    /// mark.
    fn link_text(&self, link: &str, mark: Mark, origin: Origin) -> String {
        let origin = origin.fields(&self.host, "/page/1");
        let fields = format!("{origin}X-Requested-With: ?n={}\r\n\r\n", mark.0);
        self.head(&format!("GET {link}"), &fields)
    }

    async fn follow(&mut self, site: &Site, link: &str) -> Reply {
        let text = self.link_text(link, Mark::next(), Origin::Own(self.browser));
        let reply = ask_port(site.port, self.from, &text).await;
        self.note("", &reply);
        reply
    }

    async fn get(&mut self, site: &Site, path: &str) -> Reply {
        let text = self.get_text(&format!("GET {path}"), Mark::next(), "");
        let reply = ask_port(site.port, self.from, &text).await;
        self.note(path, &reply);
        reply
    }

    /// A browser remembers the cookies and shows the page.
    fn note(&mut self, path: &str, reply: &Reply) {
        for (_, line) in reply.fields.iter().filter(|(name, _)| name == "set-cookie") {
            let pair = line.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a cookie");
            match (name, value) {
                // It lets its visitor past the cache for a while, which is over before the next page.
                ("mayfly_writer", _) => {}
                (_, "deleted") => drop(self.jar.remove(name)),
                _ => drop(self.jar.insert(name.to_owned(), value.to_owned())),
            }
        }
        if ![206, 303, 304].contains(&reply.status) {
            self.form = Form::of(path, reply).or(self.form.take());
        }
        if let (Some(form), Some(token)) = (&mut self.form, self.jar.get(SCRIPT_COOKIE)) {
            form.in_cookie.clone_from(token);
        }
    }

    /// The write of the last page's form.
    fn write_text(
        &self,
        rules: &Rules,
        (what, value): (&str, &str),
        origin: Origin,
        mark: Mark,
    ) -> String {
        let form = self.form.as_ref().expect("a page with a form");
        let (name, token) = (&form.name, &form.token);
        let multipart = "multipart/form-data; boundary=boundary";
        let (kind, body) = match rules.sending {
            FormEncoding::Form => (
                "application/x-www-form-urlencoded",
                match rules.has_cookie_token {
                    true => format!("what={what}&value={value}&csrf_token={}", form.in_cookie),
                    false => format!("what={what}&{name}={}&value={value}", percent(token)),
                },
            ),
            FormEncoding::Multipart => {
                let part = |name: &str, value: &str| {
                    format!(
                        "--boundary\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
                    )
                };
                let parts = [part("what", what), part(name, token), part("value", value)];
                (multipart, parts.concat() + "--boundary--\r\n")
            }
            FormEncoding::Header => (
                "application/json",
                format!("{{\"what\":\"{what}\",\"value\":\"{value}\"}}"),
            ),
            FormEncoding::Json => (
                "application/json",
                format!("{{\"what\":\"{what}\",\"{name}\":\"{token}\",\"value\":\"{value}\"}}"),
            ),
        };
        let token = match rules.sending {
            FormEncoding::Header => format!("X-CSRF-Token: {token}\r\n"),
            _ => String::new(),
        };
        let length = body.len();
        let from = origin.fields(&self.host, &form.page);
        let fields =
            format!("{from}{token}Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}");
        self.head(&format!("POST /write?n={}", mark.0), &fields)
    }

    async fn write_from(
        &mut self,
        site: &Site,
        rules: &Rules,
        what: (&str, &str),
        origin: Origin,
    ) -> Reply {
        let text = self.write_text(rules, what, origin, Mark::next());
        let reply = ask_port(site.port, self.from, &text).await;
        self.note("", &reply);
        reply
    }

    /// The write of the last page's form, from the page.
    async fn write(&mut self, site: &Site, rules: &Rules, what: (&str, &str)) -> Reply {
        let origin = Origin::Own(self.browser);
        self.write_from(site, rules, what, origin).await
    }
}

/// The value of a line of a page.
fn line(reply: &Reply, name: &str) -> String {
    let text = reply.text();
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    let found = lines.find(|(own, _)| *own == name);
    found.map_or_else(
        || format!("no {name} in {text}"),
        |(_, value)| value.to_owned(),
    )
}
