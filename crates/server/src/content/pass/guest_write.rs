//! A guest's first write (`cache_guest_sessions`): the page that it comes from was shown from memory, without a session and
//! with the server's tokens. The application is asked for that page once, with the visitor's own fields; the session
//! that it begins and its tokens go into the write, and the session goes on to the visitor.
//!
//! Only where the browser reports that the write comes from a page of the same origin: the application's own check of tokens
//! is as strong as before. Otherwise the write is sent as it came, and the application refuses it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use guest_pages::TokenPage;
use guest_pages::exchange::{Writing, with_tokens};
use guest_pages::sending::{SendingPage, argument_at, target_with};
use guest_pages::session::{self, Field, without_links};
use guest_pages::tokens::FoundToken;
use http_semantics::RequestHead;
use http1::{HeadLimits, parse_head};
use shared_request::{cookies, php};
use site::{Pass, SharedRules};
use transport::request_body::RequestBody;

use crate::content::through_cache::asking::{self, WholeAnswer};
use crate::content::through_cache::guests;
use crate::exchange::request::Request;

/// A larger body goes as it came: its tokens are not looked for.
const MAX_BODY_BYTES: u64 = 8 << 20;

/// More tokens of one text are not exchanged.
const MAX_TOKENS: usize = 64;

/// How long a write waits whose token has the time in it at which it was made.
const AFTER_TIMED_TOKEN: Duration = Duration::from_millis(3200);
/// A time in a token is of now if it is no further from it than this, in seconds.
const NOW_SECONDS: u64 = 60;

/// Has the token the present time in it?
fn is_of_now(token: Option<&[u8]>) -> bool {
    let now = clock::wall(clock::now()) / 1000;
    let words = token
        .unwrap_or_default()
        .split(|byte| !byte.is_ascii_digit());
    words.filter(|word| word.len() == 10).any(|word| {
        let time = std::str::from_utf8(word)
            .ok()
            .and_then(|word| word.parse::<u64>().ok());
        time.is_some_and(|time| time.abs_diff(now) <= NOW_SECONDS)
    })
}

/// Fields that are the write's alone, and not sent when the page is asked for; so are those of the connection.
#[rustfmt::skip]
const OF_WRITE: [&str; 17] = [
    "accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect",
    "host", "keep-alive", "origin", "referer", "te", "trailer", "transfer-encoding", "upgrade", "x-requested-with",
    "range",
];
const OF_WRITE_PREFIXES: [&str; 3] = ["if-", "proxy-", "sec-fetch-"];

/// The session that the application has begun for the visitor.
pub struct TakenSession(Vec<Field>);

impl TakenSession {
    /// Adds its cookies to the response, but for those that the response sets itself.
    pub fn put_into(self, fields: &mut Vec<Field>) {
        let given: Vec<Vec<u8>> = session::set_cookies(fields)
            .iter()
            .map(|it| it.name.to_vec())
            .collect();
        for field in self.0 {
            let own = std::slice::from_ref(&field);
            let is_given = session::set_cookies(own)
                .iter()
                .any(|it| given.iter().any(|name| name == it.name));
            if !is_given {
                fields.push(field);
            }
        }
    }
}

/// Whether a guest writes, and from which page. A guest who has written is somebody: it is asked before.
pub struct Writer {
    is_by_guest: bool,
    /// The page that the write comes from.
    before: Option<Arc<TokenPage>>,
}

impl Writer {
    pub fn of(request: &Request, pass: &Pass) -> Writer {
        let is_by_guest = guests::is_by_guest(request, pass);
        let rules = pass.cache.as_ref().and_then(|it| it.shared.as_deref());
        let rules = rules.filter(|_| is_by_guest);
        Writer {
            is_by_guest,
            before: rules.and_then(|rules| page_before(request, rules)),
        }
    }
}

/// Puts session and tokens into the write of a guest, whose body is there. Who is somebody by now may have a form of before
/// open; but no link of theirs is given a token, since what others have written on the site may have that link.
pub async fn prepare(
    request: &Request,
    pass: &Pass,
    writer: Writer,
) -> Option<(CompletedWrite, TakenSession)> {
    let Writer {
        is_by_guest,
        before,
    } = writer;
    let rules = pass.cache.as_ref()?.shared.as_deref()?;
    if !rules.guest_sessions.are_shared() || request.is_own_visit() {
        return None;
    }
    if !is_by_guest && !request.route.method.is_write() || !is_of_document(request) {
        return None;
    }
    let body = body_of(request)?;
    let mut found = FoundTokens::of(request, &body);
    let page = found.page(request).or_else(|| before.clone())?;
    if page.host != guests::named_host(request) || !is_of_same_origin(request) {
        return None;
    }
    let answer = asking::ask_as_client(request, head_of_page(request, &page)).await?;
    // A page with status 403 or 404 may have a form, too.
    if answer.status >= 500 {
        return None;
    }
    let shown = without_links(&answer.fields, answer.body.clone());
    let tokens = page.form.tokens_of(&shown);
    let own = OwnTokens {
        page: &page,
        tokens: &tokens,
        cookies: in_cookies(&answer),
        sending: SendingPage::of(&shown, &page.target),
    };
    found.retain(request, &body, &own);
    if found.all().next().is_none() && before.is_none() {
        return None;
    }
    if found.all().any(|it| is_of_now(own.of(it))) {
        // The application may refuse who writes sooner than a person can; this visitor has had the page for longer.
        tokio::time::sleep(AFTER_TIMED_TOKEN).await;
    }
    let written = CompletedWrite::of(request, &body, &found, &own, &answer)?;
    let is_cookie = |field: &Field| field.0.eq_ignore_ascii_case(b"set-cookie");
    let session = answer.fields.into_iter().filter(is_cookie).collect();
    Some((written, TakenSession(session)))
}

/// Is it a write, a page that a browser shows, or a request of a script? A picture in a page that somebody else has written is
/// none.
fn is_of_document(request: &Request) -> bool {
    let destination = request.received.head().field("sec-fetch-dest");
    request.route.method.is_write()
        || destination.is_none_or(|it| matches!(it, b"document" | b"empty"))
}

fn is_of_script(request: &Request) -> bool {
    request.received.head().field("sec-fetch-dest") == Some(b"empty")
}

/// The application's tokens of the visitor, in the page that it was asked for.
struct OwnTokens<'p> {
    page: &'p Arc<TokenPage>,
    tokens: &'p [Option<Vec<u8>>],
    /// The cookies that it sets, decoded as a script does it.
    cookies: Vec<(Vec<u8>, Vec<u8>)>,
    sending: SendingPage<'p>,
}

impl OwnTokens<'_> {
    /// Returns the application's token for one of the server's.
    fn of(&self, found: &FoundToken) -> Option<&[u8]> {
        let of = &found.place.page;
        let is_of_page = Arc::ptr_eq(of, self.page) || of.target == self.page.target;
        let token = match found.place.cookie() {
            Some(name) => {
                let mut cookies = self.cookies.iter();
                &cookies.find(|(it, _)| it == name)?.1
            }
            None => self.tokens.get(found.place.token)?.as_deref()?,
        };
        is_of_page.then_some(token)
    }

    /// The server's tokens in a text, each with the application's, where there is one.
    fn pairs<'a>(
        &'a self,
        text: &'a [u8],
        all: &'a [FoundToken],
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        all.iter()
            .filter_map(move |it| Some((text.get(it.range.clone())?, self.of(it)?)))
    }
}

fn in_cookies(answer: &WholeAnswer) -> Vec<(Vec<u8>, Vec<u8>)> {
    let given = session::set_cookies(&answer.fields);
    let given = given.iter().filter(|it| !it.is_removed);
    given
        .map(|it| (it.name.to_vec(), php::decode(it.value, false)))
        .collect()
}

/// The body, where it can be looked through.
fn body_of(request: &Request) -> Option<Bytes> {
    match &request.body {
        RequestBody::None => Some(Bytes::new()),
        RequestBody::Memory(body) => Some(body.clone()),
        RequestBody::Spooled(spooled) if spooled.length() <= MAX_BODY_BYTES => {
            let mut body = vec![0; usize::try_from(spooled.length()).ok()?];
            spooled.read_exact_at(&mut body, 0).ok()?;
            Some(body.into())
        }
        RequestBody::Spooled(_) | RequestBody::Unread | RequestBody::Streamed(_) => None,
    }
}

/// The server's tokens in a request.
#[derive(Default)]
struct FoundTokens {
    target: Vec<FoundToken>,
    /// In the arguments of the target, which may be rewritten.
    args: Vec<FoundToken>,
    body: Vec<FoundToken>,
    /// In fields, by their places in the head.
    fields: Vec<(usize, Vec<FoundToken>)>,
}

impl FoundTokens {
    fn of(request: &Request, body: &[u8]) -> FoundTokens {
        let tokens = &guests::seen(request).guests.tokens;
        let head = request.received.head();
        if tokens.is_empty() {
            return FoundTokens::default();
        }
        let find = |text: &[u8]| {
            let mut found = tokens.find(text);
            // Each is looked for in the page with all others.
            found.truncate(MAX_TOKENS);
            found
        };
        let is_sent = |name: &[u8]| {
            !name.eq_ignore_ascii_case(b"referer") && !name.eq_ignore_ascii_case(b"cookie")
        };
        let fields = head.fields().enumerate();
        let fields = fields.filter(|(_, (name, _))| is_sent(name));
        FoundTokens {
            target: find(head.target()),
            args: find(&request.route.args),
            body: find(body),
            fields: fields
                .map(|(at, (_, value))| (at, find(value)))
                .filter(|(_, found)| !found.is_empty())
                .collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &FoundToken> {
        let of_fields = self.fields.iter().flat_map(|(_, found)| found);
        self.target.iter().chain(&self.body).chain(of_fields)
    }

    /// The page that they are of: the one that the browser names, or the first.
    fn page(&self, request: &Request) -> Option<Arc<TokenPage>> {
        let host = guests::named_host(request);
        let referer = request.received.head().field("referer");
        let named = referer.and_then(|it| own_target(it, request.received.scheme(), &host));
        let is_named = |token: &&FoundToken| Some(&token.place.page.target[..]) == named;
        let found = self.all().find(is_named).or_else(|| self.all().next());
        found.map(|token| token.place.page.clone())
    }

    /// Keeps those that the page sends where they stand. Others may stand in what the visitor has written, or in a link that
    /// others have written: with the application's token in it, they would learn it.
    fn retain(&mut self, request: &Request, body: &[u8], own: &OwnTokens<'_>) {
        let is_write = request.route.method.is_write();
        let received = request.received.head();
        let argument = |text: &[u8], found: &FoundToken, all: &[FoundToken], writing| {
            own.of(found)?;
            let sent = argument_at(text, &found.range, writing)?;
            Some(
                own.pairs(text, all)
                    .fold(sent, |sent, (server, own)| sent.with(server, own)),
            )
        };
        let sends = |text: &[u8], found: &FoundToken, all: &[FoundToken], writing| {
            let argument = argument(text, found, all, writing);
            argument.is_some_and(|it| match found.place.cookie().and(own.of(found)) {
                Some(token) => own.sending.sends_of_cookie(&it, token),
                None => own.sending.sends(&it),
            })
        };
        let target = received.target();
        let led_to = target_with(target, own.pairs(target, &self.target));
        let arguments: Option<Vec<_>> = self
            .target
            .iter()
            .map(|found| argument(target, found, &self.target, Writing::Percent))
            .collect();
        let is_led = match is_write {
            true => own.sending.writes_to(&led_to),
            false => own
                .sending
                .leads_to(&led_to, &arguments.unwrap_or_default()),
        };
        let keep = |all: &mut Vec<FoundToken>, text: &[u8], is_led: bool, writing| {
            let known = all.clone();
            let is_argument = is_write || is_of_script(request);
            all.retain(|found| match is_led {
                true => own.of(found).is_some(),
                false => is_argument && sends(text, found, &known, writing),
            });
        };
        keep(&mut self.target, target, is_led, Writing::Percent);
        keep(
            &mut self.args,
            &request.route.args,
            is_led,
            Writing::Percent,
        );
        let writing = Writing::of_body(received.field("content-type").unwrap_or_default());
        keep(&mut self.body, body, false, writing);
        let values: Vec<&[u8]> = received.fields().map(|(_, value)| value).collect();
        for (at, found) in &mut self.fields {
            let value = values.get(*at).copied().unwrap_or_default();
            let sent = target_with(value, own.pairs(value, found));
            let is_in_page = own.sending.has_value(&sent);
            found.retain(|found| match found.place.cookie() {
                // A script sends it whole, in a field such as `X-XSRF-TOKEN`.
                Some(_) => found.range == (0..value.len()) && own.of(found).is_some(),
                None => is_in_page && own.of(found).is_some(),
            });
        }
        self.fields.retain(|(_, found)| !found.is_empty());
    }
}

/// The page that a write comes from, by its `Referer`: its session may be needed although it has no token (a time, the
/// answer to a question). `None` where the visitor has a session, and was not shown the page from memory.
fn page_before(request: &Request, rules: &SharedRules) -> Option<Arc<TokenPage>> {
    if !request.route.method.is_write() {
        return None;
    }
    let known = &guests::seen(request).guests;
    let host = guests::named_host(request);
    let referer = request.received.head().field("referer")?;
    let target = own_target(referer, request.received.scheme(), &host)?;
    let target = target
        .split(|&byte| byte == b'#')
        .next()
        .unwrap_or_default();
    let page = known.at(&host, target)?;
    let is_needed =
        guests::is_without_session(request, rules) || guests::was_shown(request, &host, target);
    is_needed.then(|| page.known().clone())
}

/// Returns the part behind the origin in a URL of this origin. A proxy that nobody has named may have taken TLS off.
fn own_target<'u>(url: &'u [u8], scheme: &str, host: &[u8]) -> Option<&'u [u8]> {
    let is_named = |scheme: &str| url.strip_prefix(scheme.as_bytes())?.strip_prefix(b"://");
    let rest = is_named(scheme).or_else(|| is_named("https"))?;
    let (named, target) = rest.split_at_checked(host.len())?;
    let is_own = named.eq_ignore_ascii_case(host)
        && matches!(target.first(), None | Some(b'/' | b'?' | b'#'));
    is_own.then_some(target)
}

/// Does the browser say that a page of this origin has sent the request?
fn is_of_same_origin(request: &Request) -> bool {
    let head = request.received.head();
    let (scheme, host) = (request.received.scheme(), guests::named_host(request));
    let is_own = |url: &[u8]| own_target(url, scheme, &host).is_some();
    // A page can have its browser hide the origin; it cannot change the fields that the browser sends by itself.
    match (head.field("sec-fetch-site"), head.field("origin")) {
        (Some(site), Some(origin)) if origin != b"null" => site == b"same-origin" && is_own(origin),
        (Some(site), _) => site == b"same-origin",
        (None, Some(origin)) => is_own(origin),
        (None, None) => head.field("referer").is_some_and(is_own),
    }
}

/// The head of the request for the page, as this visitor would have sent it.
fn head_of_page(request: &Request, page: &TokenPage) -> Vec<u8> {
    let mut head = [
        b"GET ",
        &page.target[..],
        b" HTTP/1.1\r\nHost: ",
        &page.host,
    ]
    .concat();
    head.extend_from_slice(b"\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8\r\n");
    let tokens = &guests::seen(request).guests.tokens;
    for (name, value) in request.received.head().fields() {
        let lower = name.to_ascii_lowercase();
        let is_of_write = OF_WRITE.iter().any(|it| lower == it.as_bytes())
            || OF_WRITE_PREFIXES
                .iter()
                .any(|it| lower.starts_with(it.as_bytes()));
        if !is_of_write && tokens.find(value).is_empty() {
            put_field(name, value, &mut head);
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn put_field(name: &[u8], value: &[u8], head: &mut Vec<u8>) {
    for part in [name, b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}

/// The write as it is sent.
pub struct CompletedWrite {
    pub head: RequestHead,
    pub args: Vec<u8>,
    pub body: Option<Vec<u8>>,
}

impl CompletedWrite {
    /// `None`: the page has not all tokens.
    fn of(
        request: &Request,
        body: &Bytes,
        found: &FoundTokens,
        own: &OwnTokens<'_>,
        answer: &WholeAnswer,
    ) -> Option<CompletedWrite> {
        let token = |found: &FoundToken| own.of(found);
        let received = request.received.head();
        let target = with_tokens(received.target(), &found.target, Writing::Percent, &token)?;
        let writing = Writing::of_body(received.field("content-type").unwrap_or_default());
        let body = match found.body.is_empty() {
            true => None,
            false => Some(with_tokens(body, &found.body, writing, &token)?),
        };
        let mut head = [received.method(), b" ", &target[..], b" HTTP/1.1\r\n"].concat();
        for (at, (name, value)) in received.fields().enumerate() {
            let is = |field: &str| name.eq_ignore_ascii_case(field.as_bytes());
            let in_field = found.fields.iter().find(|(it, _)| *it == at);
            match (&body, in_field) {
                _ if is("cookie") => {}
                (Some(_), _) if is("transfer-encoding") => {}
                (Some(body), _) if is("content-length") => {
                    put_field(name, body.len().to_string().as_bytes(), &mut head);
                }
                (_, Some((_, found))) => {
                    put_field(
                        name,
                        &with_tokens(value, found, Writing::Plain, &token)?,
                        &mut head,
                    );
                }
                _ => put_field(name, value, &mut head),
            }
        }
        if let Some(body) = &body
            && received.field("content-length").is_none()
        {
            put_field(
                b"Content-Length",
                body.len().to_string().as_bytes(),
                &mut head,
            );
        }
        let cookies = cookies_with(request, answer);
        if !cookies.is_empty() {
            put_field(b"Cookie", &cookies, &mut head);
        }
        head.extend_from_slice(b"\r\n");
        Some(CompletedWrite {
            head: parse_head(head, &HeadLimits::OF_OWN_HEADS).ok()?,
            args: with_tokens(&request.route.args, &found.args, Writing::Percent, &token)?,
            body,
        })
    }
}

/// The visitor's cookies with those that the page has set.
fn cookies_with(request: &Request, answer: &WholeAnswer) -> Vec<u8> {
    let set = session::set_cookies(&answer.fields);
    let own = cookies::pairs(request.received.head().view());
    let own = own.filter(|(name, _)| !set.iter().any(|cookie| cookie.name == *name));
    let given = set.iter().filter(|cookie| !cookie.is_removed);
    let pairs: Vec<Vec<u8>> = own
        .chain(given.map(|cookie| (cookie.name, cookie.value)))
        .map(|(name, value)| [name, b"=", value].concat())
        .collect();
    pairs.join(&b"; "[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_of_this_origin_or_not() {
        let of = |url: &'static str| own_target(url.as_bytes(), "http", b"a.example:8080");
        assert_eq!(of("http://a.example:8080/x?y"), Some(&b"/x?y"[..]));
        assert_eq!(of("http://A.example:8080"), Some(&b""[..]));
        assert_eq!(of("https://a.example:8080/"), Some(&b"/"[..]));
        let over_tls = own_target(b"http://a.example:8080/", "https", b"a.example:8080");
        assert_eq!(over_tls, None);
        for other in [
            "httpss://a.example:8080/",
            "http://a.example/",
            "http://a.example:80801/",
            "http://b.example:8080/",
            "http://a.example:8080.b.example/",
            "null",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn the_response_sets_its_own_cookies() {
        let field = |text: &'static str| {
            (
                Bytes::from_static(b"Set-Cookie"),
                Bytes::from_static(text.as_bytes()),
            )
        };
        let mut fields = vec![field("sid=new; path=/")];
        TakenSession(vec![field("sid=old; path=/"), field("lang=en")]).put_into(&mut fields);
        assert_eq!(fields, [field("sid=new; path=/"), field("lang=en")]);
    }
}
