//! Applications that keep what they know of a visitor in a session. The lines of a page that do not begin with `<` are a
//! function of the page and of the state in the session; tokens and times stand in the others.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use testkit::fake_http::{Request, Script};

use crate::attacks::random::Random;
use crate::visits::{Mark, answer_text};

/// What is sent beside a page that has begun a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limiter {
    #[default]
    NoCache,
    Private,
    PrivateNoExpire,
    Nothing,
    /// Written by the application itself: its pages are for one visitor each.
    OwnPrivate,
    OwnNoStore,
    /// Written into each page, as frameworks do.
    OwnDefault,
    /// `Vary: *` in each page, as Chyrp does.
    VaryStar,
}

impl Limiter {
    pub const ALL: [Limiter; 8] = [
        Limiter::NoCache,
        Limiter::Private,
        Limiter::PrivateNoExpire,
        Limiter::Nothing,
        Limiter::OwnPrivate,
        Limiter::OwnNoStore,
        Limiter::OwnDefault,
        Limiter::VaryStar,
    ];

    /// Does the application say that its pages are for one visitor each?
    pub fn is_own(self) -> bool {
        matches!(self, Limiter::OwnPrivate | Limiter::OwnNoStore)
    }

    fn fields(self) -> &'static str {
        match self {
            Limiter::NoCache => {
                "Expires: Thu, 19 Nov 1981 08:52:00 GMT\r\n\
                 Cache-Control: no-store, no-cache, must-revalidate\r\nPragma: no-cache\r\n"
            }
            Limiter::Private => {
                "Expires: Thu, 19 Nov 1981 08:52:00 GMT\r\nCache-Control: private, max-age=10800\r\n\
                 Last-Modified: Sat, 28 Nov 2026 10:00:00 GMT\r\n"
            }
            Limiter::PrivateNoExpire => {
                "Cache-Control: private, max-age=10800\r\n\
                 Last-Modified: Sat, 28 Nov 2026 10:00:00 GMT\r\n"
            }
            Limiter::Nothing => "",
            Limiter::OwnPrivate => "Cache-Control: private\r\n",
            Limiter::OwnNoStore => "Cache-Control: no-store\r\n",
            Limiter::OwnDefault => "Cache-Control: no-cache, private\r\n",
            Limiter::VaryStar => "Vary: *\r\n",
        }
    }
}

/// What tokens look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    #[default]
    Hex,
    Base64,
    /// The name of its field is drawn, too.
    Named,
}

/// What a token is bound to beside the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    #[default]
    Nothing,
    Agent,
    Address,
    /// It says when it was made, and is refused for three seconds.
    Time,
}

/// How a page's script or form sends its token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormEncoding {
    #[default]
    Form,
    Multipart,
    /// In the field `X-CSRF-Token`, with a body of JSON.
    Header,
    Json,
}

impl FormEncoding {
    pub const ALL: [FormEncoding; 4] = [
        FormEncoding::Form,
        FormEncoding::Multipart,
        FormEncoding::Header,
        FormEncoding::Json,
    ];
}

/// One application.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    pub limiter: Limiter,
    pub look: Look,
    pub binding: Binding,
    pub sending: FormEncoding,
    /// Begins sessions only where something is written into them; its pages have no forms.
    pub is_lazy: bool,
    /// Language and cart are shown on the first page alone.
    pub is_discreet: bool,
    /// The cart is shown on `/trolley` alone.
    pub has_trolley: bool,
    /// Pages say `Vary: Cookie`.
    pub varies: bool,
    /// The first page counts its visits.
    pub counts_visits: bool,
    /// The first page says whether its visitor has read `/page/3`.
    pub notes_reading: bool,
    /// Links that write lead to the first page.
    pub redirects: bool,
    /// All guests are given a cookie with the same value.
    pub gives_currency: bool,
    pub shows_time: bool,
    /// `/page/2` says nothing of caching, whatever the others say.
    pub is_mixed: bool,
    /// A script sends the token of a cookie in the argument `csrf_token`. The application compares both, and minds no session.
    pub has_cookie_token: bool,
}

/// The cookie that such scripts read.
pub const SCRIPT_COOKIE: &str = "XSRF-TOKEN";

/// How the paths of pages begin that write the language that they name into the session, and show it.
const CHOICE: &str = "/choose/";

impl Rules {
    pub fn random(random: &mut Random) -> Rules {
        let has_cookie_token = random.one_in(6);
        Rules {
            has_cookie_token,
            limiter: match random.below(3) {
                0 => Limiter::ALL[random.below(Limiter::ALL.len())],
                _ => Limiter::NoCache,
            },
            look: [Look::Hex, Look::Base64, Look::Named][random.below(3)],
            binding: match random.below(8) {
                0 => Binding::Agent,
                1 => Binding::Address,
                _ => Binding::Nothing,
            },
            sending: match has_cookie_token {
                true => FormEncoding::Form,
                false => FormEncoding::ALL[random.below(4)],
            },
            is_lazy: random.one_in(8),
            is_discreet: random.one_in(3),
            has_trolley: false,
            varies: random.one_in(10),
            counts_visits: random.one_in(6),
            notes_reading: random.one_in(4),
            redirects: random.one_in(2),
            gives_currency: random.one_in(3),
            shows_time: random.one_in(3),
            is_mixed: random.one_in(4),
        }
    }

    /// The lines of a page that are the same each time for this state.
    pub fn lines(&self, path: &str, state: &ApplicationState, edition: &str) -> Vec<String> {
        let mut lines = vec![
            format!("page={path}"),
            format!("edition={edition}"),
            format!("name={}", state.name),
            format!("flash={}", state.flash),
        ];
        if path == "/" || path.starts_with(CHOICE) || !self.is_discreet {
            lines.push(format!("language={}", state.language));
        }
        if path == "/trolley" || !self.has_trolley && (path == "/" || !self.is_discreet) {
            lines.push(format!("cart={}", state.cart.len()));
        }
        if path == "/add" && self.has_trolley {
            lines.push(format!("added={}", state.cart.join(" ")));
        }
        if path == "/" && self.counts_visits {
            lines.push(format!("visits={}", state.visits));
        }
        if path == "/" && self.notes_reading {
            lines.push(format!("read={}", state.has_read));
        }
        lines
    }
}

/// What is in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationState {
    pub name: String,
    pub language: String,
    pub cart: Vec<String>,
    pub partner: String,
    pub flash: String,
    pub visits: u32,
    pub has_read: bool,
}

impl ApplicationState {
    /// What a visitor writes; the page that comes next says so once.
    pub fn write(&mut self, what: &str, value: &str) {
        match what {
            "cart" => self.cart.push(value.to_owned()),
            "name" => value.clone_into(&mut self.name),
            "language" => value.clone_into(&mut self.language),
            "order" => self.cart.clear(),
            _ => {}
        }
        self.flash = format!("{what} {value} {}", self.partner);
    }

    /// What a page or a link writes.
    pub fn follow(&mut self, target: &str, rules: &Rules) {
        let (path, arguments) = target.split_once('?').unwrap_or((target, ""));
        if let Some(language) = path.strip_prefix(CHOICE) {
            language.clone_into(&mut self.language);
        }
        self.has_read |= rules.notes_reading && path == "/page/3";
        if path == "/account" && self.name.is_empty() {
            // Whoever logs in comes back.
            "account".clone_into(&mut self.partner);
        }
        for (name, value) in pairs(arguments) {
            match (path, &*name) {
                ("/set", "language") => self.language = value,
                ("/enter", "name") | ("/once", "word") => self.name = value,
                ("/add", "item") => self.cart.push(value),
                (_, "ref") => self.partner = value,
                _ => {}
            }
        }
    }
}

/// The mark of a visitor's own request: in a cookie that only such requests have, or in the target of a write. Tokens may
/// have as many digits.
fn mark_of(head: &str) -> Option<Mark> {
    let mut found = ["?n=", "_ga=GA1.1."].into_iter();
    found.find_map(|before| Mark::of(head.split_once(before)?.1.get(..7)?))
}

fn is_written_by(target: &str, rules: &Rules) -> bool {
    let mut state = ApplicationState::default();
    state.follow(target, rules);
    state != ApplicationState::default()
}

#[derive(Clone, Default)]
struct Session {
    state: ApplicationState,
    secret: String,
}

/// What the first page is like at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrontPage {
    #[default]
    AsUsual,
    /// It is not made, since too many wait.
    Busy,
    /// It has another text each time.
    Unlike,
    /// The next guest without a session gets another text than all others.
    UnlikeOnce,
}

/// The sessions of some applications, told apart by their hosts.
pub struct Sessions {
    rules: HashMap<String, Rules>,
    kept: Mutex<HashMap<(String, String), Session>>,
    /// All tokens that were ever shown.
    issued: Mutex<HashSet<String>>,
    /// Words of links that log in once.
    used: Mutex<HashSet<String>>,
    /// Runs of each visitor's own request.
    runs: Mutex<HashMap<Mark, usize>>,
    edition: Mutex<String>,
    front_page: Mutex<FrontPage>,
    drawn: AtomicU64,
    secret: RandomState,
    /// What has happened at each host, in its order.
    history: Mutex<HashMap<String, Vec<String>>>,
}

impl Sessions {
    pub fn new(rules: impl IntoIterator<Item = (String, Rules)>) -> Sessions {
        Sessions {
            rules: rules.into_iter().collect(),
            kept: Mutex::default(),
            issued: Mutex::default(),
            used: Mutex::default(),
            runs: Mutex::default(),
            edition: Mutex::new("spring".to_owned()),
            front_page: Mutex::default(),
            drawn: AtomicU64::new(0),
            secret: RandomState::new(),
            history: Mutex::default(),
        }
    }

    /// Notes what has happened at a host.
    pub fn note(&self, host: &str, what: String) {
        let mut history = self.history.lock().expect("no panic");
        history.entry(host.to_owned()).or_default().push(what);
    }

    /// What has happened at a host until now, a line for each run of the application and for each [`Sessions::note`].
    pub fn history(&self, host: &str) -> String {
        let history = self.history.lock().expect("no panic");
        history
            .get(host)
            .map(|lines| lines.join("\n"))
            .unwrap_or_default()
    }

    pub fn edit(&self, edition: &str) {
        edition.clone_into(&mut self.edition.lock().expect("no panic"));
    }

    pub fn set_front_page(&self, front_page: FrontPage) {
        *self.front_page.lock().expect("no panic") = front_page;
    }

    fn take_front_page(&self, has_session: bool) -> FrontPage {
        let mut front_page = self.front_page.lock().expect("no panic");
        match *front_page {
            FrontPage::UnlikeOnce if has_session => FrontPage::AsUsual,
            FrontPage::UnlikeOnce => std::mem::take(&mut front_page),
            as_set => as_set,
        }
    }

    pub fn edition(&self) -> String {
        self.edition.lock().expect("no panic").clone()
    }

    pub fn own_runs(&self, mark: Mark) -> usize {
        let runs = self.runs.lock().expect("no panic");
        runs.get(&mark).copied().unwrap_or_default()
    }

    /// Sessions that were begun so far.
    pub fn count(&self) -> usize {
        self.kept.lock().expect("no panic").len()
    }

    /// What is in a session.
    pub fn state(&self, host: &str, sid: &str) -> Option<ApplicationState> {
        let kept = self.kept.lock().expect("no panic");
        let session = kept.get(&(host.to_owned(), sid.to_owned()))?;
        Some(session.state.clone())
    }

    pub fn has_issued(&self, token: &str) -> bool {
        self.issued.lock().expect("no panic").contains(token)
    }

    fn draw(&self) -> String {
        let number = self.drawn.fetch_add(1, Relaxed);
        self.digest(&format!("{number}"))
    }

    /// 32 digits for a text.
    fn digest(&self, text: &str) -> String {
        let half = |salt: u8| self.secret.hash_one((salt, text));
        format!("{:016x}{:016x}", half(0), half(1))
    }

    /// The name and the token of a form.
    fn form(&self, rules: &Rules, secret: &str, bound: &Bound) -> (String, String) {
        let bound = match rules.binding {
            Binding::Nothing => "",
            Binding::Agent => &bound.agent,
            Binding::Address => &bound.address,
            Binding::Time => &bound.time,
        };
        let digest = self.digest(&format!("{secret} {bound}"));
        let name = match rules.look {
            Look::Named => format!("f{}", &self.digest(secret)[..9]),
            _ => "key".to_owned(),
        };
        let token = match rules.look {
            Look::Base64 => base64(&format!("{digest}{}", self.digest(&digest))),
            _ => digest,
        };
        let token = match rules.binding {
            Binding::Time => format!("{bound}:{token}"),
            _ => token,
        };
        (name, token)
    }

    /// Is this a token of the session `sid` for a visitor with these fields?
    pub fn is_token_of(&self, host: &str, sid: &str, bound: &Bound, token: &str) -> bool {
        let kept = self.kept.lock().expect("no panic");
        let Some(session) = kept.get(&(host.to_owned(), sid.to_owned())) else {
            return false;
        };
        self.accepts(&self.rules[host], session, bound, token)
    }

    fn accepts(&self, rules: &Rules, session: &Session, bound: &Bound, token: &str) -> bool {
        let mut bound = bound.clone();
        if let (Binding::Time, Some((time, _))) = (rules.binding, token.split_once(':')) {
            time.clone_into(&mut bound.time);
        }
        self.form(rules, &session.secret, &bound).1 == token
    }

    pub fn answer(&self, request: &Request) -> Script {
        let text = self.answer_text(request);
        let field = |name| request.field(name);
        let run = format!(
            "run {} {} from {} [{}]: {}",
            request.method,
            request.target,
            field("x-real-ip"),
            field("cookie"),
            text.replace("\r\n", "\n").replace('\n', " | ")
        );
        self.note(field("host"), run);
        match (request.method.as_str(), text.find("\r\n\r\n")) {
            ("HEAD", Some(end)) => Script::new().raw(&text[..end + 4]),
            _ => Script::new().raw(text),
        }
    }

    fn answer_text(&self, request: &Request) -> String {
        if let Some(mark) = mark_of(&request.head) {
            *self.runs.lock().expect("no panic").entry(mark).or_default() += 1;
        }
        let host = request.field("host").to_owned();
        let rules = self.rules[&host];
        let path = request.target.split('?').next().unwrap_or_default();
        let is_post = request.method == "POST";
        let mut kept = self.kept.lock().expect("no panic");
        let cookies = cookies(request.field("cookie"));
        let known = cookies.get("sid").filter(|sid| {
            let name = (host.clone(), (*sid).clone());
            kept.contains_key(&name)
        });
        let mut fields = "Content-Type: text/html\r\n".to_owned();
        let needs = !rules.is_lazy || is_post || is_written_by(&request.target, &rules);
        let mut sid = match known {
            Some(sid) => sid.clone(),
            None => self.draw(),
        };
        let mut session = kept.get(&(host.clone(), sid.clone())).cloned();
        if session.is_none() && needs {
            let secret = self.draw();
            let state = ApplicationState::default();
            session = Some(Session { state, secret });
            fields.push_str(&format!("Set-Cookie: sid={sid}; path=/; HttpOnly\r\n"));
        }
        let mut line = "200 OK";
        let mut body = String::new();
        if let Some(session) = &mut session {
            if path != "/page/2" || !rules.is_mixed {
                fields.push_str(rules.limiter.fields());
            }
            let is_account = path == "/account" && session.state.name.is_empty();
            let mut used = self.used.lock().expect("no panic");
            if path != "/once" || used.insert(request.target.clone()) {
                session.state.follow(&request.target, &rules);
            }
            drop(used);
            let sent = sent_by(request);
            let sent_token = || {
                let form = self.form(&rules, &session.secret, &Bound::of(request));
                let named = |name: &str| sent.get(name).cloned();
                named(&form.0).or_else(|| named("x-csrf-token"))
            };
            let bound = Bound::of(request);
            let in_cookie = cookies.get(SCRIPT_COOKIE);
            let is_sent_twice = in_cookie.is_some() && in_cookie == sent.get("csrf_token");
            if rules.has_cookie_token && in_cookie.is_none() {
                let token = self.form(&rules, &session.secret, &bound).1;
                let token = self.digest(&token);
                fields.push_str(&format!("Set-Cookie: {SCRIPT_COOKIE}={token}; path=/\r\n"));
            }
            let is_accepted = is_post && rules.has_cookie_token && is_sent_twice
                || (path == "/leave" || is_post && !rules.has_cookie_token)
                    && sent_token().is_some_and(|token| {
                        let is_late = || match token.split_once(':') {
                            Some((time, _)) => {
                                time.parse().is_ok_and(|time: u64| now() >= time + 3)
                            }
                            None => true,
                        };
                        self.accepts(&rules, session, &bound, &token) && is_late()
                    });
            match (is_post, path, is_accepted) {
                (true, _, true) => {
                    let value = |name: &str| sent.get(name).cloned().unwrap_or_default();
                    session.state.write(&value("what"), &value("value"));
                    if value("what") == "name" {
                        // Who logs in gets another session.
                        kept.remove(&(host.clone(), sid.clone()));
                        sid = self.draw();
                        fields.push_str(&format!("Set-Cookie: sid={sid}; path=/; HttpOnly\r\n"));
                    }
                    line = "303 See Other";
                    fields.push_str("Location: /\r\n");
                }
                (true, _, false) | (false, "/leave", false) => {
                    line = "403 Forbidden";
                    "refused".clone_into(&mut body);
                }
                (false, "/leave", true) => {
                    kept.remove(&(host.clone(), sid.clone()));
                    line = "303 See Other";
                    fields.push_str(
                        "Location: /\r\nSet-Cookie: sid=deleted; \
                         expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0; path=/\r\n",
                    );
                    return answer_text(line, &fields, "");
                }
                (false, "/set" | "/add", _) if rules.redirects => {
                    line = "302 Found";
                    fields.push_str("Location: /\r\n");
                }
                (false, "/enter" | "/once", _) => {
                    line = "302 Found";
                    fields.push_str("Location: /\r\n");
                }
                (false, "/account", _) if is_account => {
                    line = "302 Found";
                    fields.push_str("Location: /page/1\r\n");
                }
                _ => {}
            }
        }
        let front_page = match path {
            "/" => self.take_front_page(known.is_some()),
            _ => FrontPage::AsUsual,
        };
        if front_page == FrontPage::Busy {
            line = "503 Service Unavailable";
        }
        if line == "200 OK" {
            line = status_line(path);
            body = self.page(&rules, path, session.as_mut(), &Bound::of(request));
            if matches!(front_page, FrontPage::Unlike | FrontPage::UnlikeOnce) {
                body.push_str(&format!("\nnews={}", self.draw()));
            }
        }
        if rules.varies {
            fields.push_str("Vary: Cookie\r\n");
        }
        if rules.gives_currency && !cookies.contains_key("currency") {
            fields.push_str("Set-Cookie: currency=USD; path=/\r\n");
        }
        if let Some(session) = session {
            kept.insert((host, sid), session);
        }
        answer_text(line, &fields, &body)
    }

    fn page(
        &self,
        rules: &Rules,
        path: &str,
        session: Option<&mut Session>,
        bound: &Bound,
    ) -> String {
        let mut none = Session::default();
        let is_there = session.is_some();
        let session = session.unwrap_or(&mut none);
        session.state.visits += u32::from(is_there && path == "/" && rules.counts_visits);
        let mut lines = rules.lines(path, &session.state, &self.edition());
        session.state.flash.clear();
        if is_there {
            let (name, token) = self.form(rules, &session.secret, bound);
            let mut issued = self.issued.lock().expect("no panic");
            issued.insert(token.clone());
            lines.push(match rules.sending {
                FormEncoding::Header => format!("<meta name=\"csrf-token\" content=\"{token}\">"),
                _ => format!(
                    "<form><input type=\"hidden\" name=\"{name}\" value=\"{token}\"></form>"
                ),
            });
            let link = percent(&token);
            lines.push(format!("<a href=\"/leave?{name}={link}\">"));
        }
        if rules.has_cookie_token {
            lines.push("<script src=\"/app.js\"></script>".to_owned());
        }
        if rules.shows_time {
            lines.push(format!("<time>{}</time>", now()));
        }
        if path == "/large" {
            lines.push(format!("<p>{}</p>", "a".repeat(MANY_BYTES)));
        }
        lines.join("\n")
    }
}

/// More than is compared of a page.
const MANY_BYTES: usize = 2_200_000;

pub fn status_line(path: &str) -> &'static str {
    match path {
        "/missing" => "404 Not Found",
        "/forbidden" => "403 Forbidden",
        "/broken" => "500 Internal Server Error",
        _ => "200 OK",
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

/// What tokens may be bound to.
#[derive(Clone, Debug)]
pub struct Bound {
    pub agent: String,
    pub address: String,
    pub time: String,
}

impl Bound {
    fn of(request: &Request) -> Bound {
        Bound {
            agent: request.field("user-agent").to_owned(),
            address: request.field("x-real-ip").to_owned(),
            time: now().to_string(),
        }
    }
}

pub fn cookies(field: &str) -> HashMap<String, String> {
    let pairs = field
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The fields of a form, of a link and of a script.
fn sent_by(request: &Request) -> HashMap<String, String> {
    let body = String::from_utf8_lossy(&request.body);
    let arguments = request
        .target
        .split_once('?')
        .map_or("", |(_, after)| after);
    let mut sent: HashMap<String, String> = pairs(arguments).into_iter().collect();
    let kind = request.field("content-type");
    if kind.starts_with("multipart/") {
        for part in body.split("--boundary") {
            let Some((head, value)) = part.split_once("\r\n\r\n") else {
                continue;
            };
            let name = head.split("name=\"").nth(1).unwrap_or_default();
            let name = name.split('"').next().unwrap_or_default();
            sent.insert(name.to_owned(), value.trim_end().to_owned());
        }
    } else if kind.ends_with("json") {
        let members = body.trim_matches(['{', '}']).split("\",\"");
        for member in members {
            if let Some((name, value)) = member.trim_matches('"').split_once("\":\"") {
                sent.insert(name.to_owned(), value.replace("\\/", "/"));
            }
        }
    } else {
        sent.extend(pairs(&body));
    }
    let token = request.field("x-csrf-token");
    if !token.is_empty() {
        sent.insert("x-csrf-token".to_owned(), token.to_owned());
    }
    sent
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

/// A text that is written with percent signs.
fn plain(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| byte == b'%');
        let digits = digits.and_then(|it| std::str::from_utf8(it).ok());
        match digits.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                out.push(if byte == b'+' { b' ' } else { byte });
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

pub fn percent(text: &str) -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// 43 letters of base64 and their `=`, for 64 digits.
fn base64(digits: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |at: usize| usize::from_str_radix(&digits[at..=at], 16).expect("a digit");
    let letter = |at: usize| LETTERS[(digit(at) * 16 + digit(at + 1)) % 64];
    let letters = (0..43).map(|at| char::from(letter(at)));
    letters.chain(['=']).collect()
}
