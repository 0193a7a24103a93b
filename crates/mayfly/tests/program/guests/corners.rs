//! Guests in rarer situations: requests of one guest at the same time, pages that are errors or large, hosts with ports.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use testkit::fake_http::{Request, Script};
use testkit::wait::until;
use tokio::sync::Semaphore;

use super::application::{Binding, Limiter, Rules, cookies};
use super::{FORGED, GuestSite, HOST, Origin, Visitor, line, warm};
use crate::visits::{Application, Mark, Site, ask_port, is_from_memory};

/// An application that gives its visitor another cookie of the same session with each answer. `/held` waits for the gate.
struct Renewing {
    carts: Mutex<HashSet<String>>,
    drawn: AtomicU64,
    held: AtomicU64,
    gate: Arc<Semaphore>,
}

impl Renewing {
    fn answer(&self, request: &Request) -> Script {
        let number = self.drawn.fetch_add(1, Relaxed);
        let cookies = cookies(request.field("cookie"));
        let sid = match cookies.get("sid").and_then(|value| value.split_once('.')) {
            Some((sid, _)) => sid.to_owned(),
            None => format!("5e{number:014x}"),
        };
        let mut carts = self.carts.lock().expect("no panic");
        if request.method == "POST" {
            carts.insert(sid.clone());
        }
        let body = match carts.contains(&sid) {
            true => "cart=full",
            false => "cart=empty",
        };
        let fields =
            format!("Content-Type: text/html\r\nSet-Cookie: sid={sid}.7a{number:014x}; path=/\r\n");
        let is_held = request.target == "/held" && cookies.contains_key("sid");
        let script = match is_held {
            true => {
                self.held.fetch_add(1, Relaxed);
                Script::new().wait_for(&self.gate)
            }
            false => Script::new(),
        };
        script.raw(crate::visits::answer_text("200 OK", &fields, body))
    }
}

/// A page is under way while its visitor gets another cookie, and writes with it. The cookie that comes with the page is
/// somebody's, too.
#[tokio::test]
async fn an_answer_that_comes_after_a_write_makes_nobody_a_guest_again() {
    let renewing = Arc::new(Renewing {
        carts: Mutex::default(),
        drawn: AtomicU64::new(0),
        held: AtomicU64::new(0),
        gate: Arc::new(Semaphore::new(0)),
    });
    let answering = Arc::clone(&renewing);
    let application = Application::start(move |request| answering.answer(request)).await;
    let site = Site::of_guests(&application, "1h").await;
    let mut visitor = Visitor::new(HOST, 0);
    visitor.get(&site, "/").await;
    let early = visitor.clone();
    let text = early.get_text("GET /held", Mark::next(), "");
    let port = site.port;
    let held = tokio::spawn(async move { ask_port(port, early.from, &text).await });
    until("the page is made", || renewing.held.load(Relaxed) > 0).await;
    visitor.get(&site, "/page").await;
    let write = "Content-Length: 0\r\n\r\n";
    let text = visitor.head(
        "POST /cart-add",
        &format!("Origin: http://{HOST}\r\n{write}"),
    );
    let reply = ask_port(site.port, visitor.from, &text).await;
    assert_eq!(reply.text(), "cart=full");
    renewing.gate.add_permits(1000);
    // It is the last answer that the browser gets.
    let reply = held.await.expect("no panic");
    visitor.note("/held", &reply);
    for page in ["/", "/page", "/held"] {
        warm(&site, page).await;
    }
    for page in ["/", "/page", "/held"] {
        let reply = visitor.get(&site, page).await;
        assert_eq!(reply.text(), "cart=full", "{page}, {}", reply.x_cache());
    }
}

#[tokio::test]
async fn a_cart_that_only_its_own_page_shows_is_filled_by_a_link() {
    let rules = Rules {
        has_trolley: true,
        ..Rules::default()
    };
    let guests = GuestSite::start(rules).await;
    for page in ["/", "/page/1", "/trolley"] {
        guests.warm(page).await;
    }
    for nth in 0..8 {
        let mut visitor = Visitor::new(HOST, nth);
        visitor.get(&guests.site, "/add?item=rose").await;
        let reply = visitor.get(&guests.site, "/trolley").await;
        assert_eq!(line(&reply, "cart"), "1", "{nth}");
        tokio::time::sleep(std::time::Duration::from_millis(40)).await;
    }
}

#[tokio::test]
async fn errors_that_begin_sessions_have_their_status_and_no_others_session() {
    let guests = GuestSite::start(Rules::default()).await;
    for (page, status) in [("/missing", 404), ("/forbidden", 403), ("/broken", 500)] {
        let mut sids = HashSet::new();
        for nth in 0..10 {
            let mut visitor = Visitor::new(HOST, nth);
            let reply = visitor.get(&guests.site, page).await;
            assert_eq!(reply.status, status, "{page}");
            assert!(!is_from_memory(&reply) || visitor.jar.is_empty(), "{page}");
            let is_new = visitor.jar.is_empty() || sids.insert(visitor.sid().to_owned());
            assert!(is_new, "{page}");
            assert_eq!(line(&reply, "page"), page);
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
    }
}

#[tokio::test]
async fn a_page_that_is_too_large_to_compare_is_of_each_visitors_own_run() {
    let guests = GuestSite::start(Rules::default()).await;
    for nth in 0..6 {
        let mut visitor = Visitor::new(HOST, nth);
        let reply = visitor.get(&guests.site, "/large").await;
        assert!(reply.is_complete && !visitor.jar.is_empty(), "{nth}");
        let form = visitor.form.clone().expect("a form");
        let (sid, bound) = (visitor.sid(), visitor.bound());
        let sessions = &guests.sessions;
        assert!(sessions.is_token_of(HOST, sid, &bound, &form.token));
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
}

#[tokio::test]
async fn a_host_with_a_port_is_an_origin_of_its_own() {
    let rules = Rules::default();
    let host = "site.test:8080";
    let both = [HOST, host].map(|host| (host.to_owned(), rules));
    let guests = GuestSite::with_hosts(both).await;
    let mut visitor = Visitor::new(host, 0);
    for nth in 0.. {
        visitor = Visitor::new(host, nth);
        let reply = visitor.get(&guests.site, "/page/1").await;
        if is_from_memory(&reply) {
            break;
        }
        assert!(nth < 100, "{}", reply.text());
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    let form = visitor.form.clone();
    let mut victim = Visitor::new(host, 1);
    victim.form = form.clone();
    let forged = Origin::Own(super::Browser::WithOrigin).fields(HOST, "/page/1");
    let text = victim.write_text(&rules, ("cart", "x"), Origin::Nothing, Mark::next());
    let text = text.replacen("\r\n", &format!("\r\n{forged}"), 1);
    let reply = ask_port(guests.site.port, 3, &text).await;
    assert_eq!(reply.text(), "refused");
    let reply = visitor.write(&guests.site, &rules, ("cart", "rose")).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
}

/// The key in a form is made of the second alone, so that answers of one second have the same.
#[tokio::test]
async fn a_key_that_is_made_of_the_second_is_shown_to_nobody_else() {
    let shown: Arc<Mutex<HashSet<String>>> = Arc::default();
    let keys = Arc::clone(&shown);
    let drawn = AtomicU64::new(0);
    let application = Application::start(move |_| {
        let number = drawn.fetch_add(1, Relaxed);
        let seconds = unix_seconds();
        let key = format!(
            "{seconds}:2:{:032x}",
            u128::from(seconds) * 0x9e37_79b9_7f4a_7c15_f39c
        );
        let body = format!("<form method=post><input type=hidden name=key value=\"{key}\"></form>");
        keys.lock().expect("no panic").insert(key);
        let fields = format!("Content-Type: text/html\r\nSet-Cookie: sid=5e{number:014x}\r\n");
        Script::new().raw(crate::visits::answer_text("200 OK", &fields, &body))
    })
    .await;
    let site = Site::of_guests(&application, "1h").await;
    let mut from_memory = 0;
    for nth in 0.. {
        assert!(nth < 300, "{from_memory}");
        let mut visitor = Visitor::new(HOST, nth);
        let reply = visitor.get(&site, "/form").await;
        if is_from_memory(&reply) {
            let text = reply.text();
            let keys = shown.lock().expect("no panic");
            let is_own = !keys.iter().any(|key| text.contains(key));
            assert!(is_own, "{text}");
            from_memory += 1;
        }
        if from_memory == 20 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
}

/// The only cookie of a page is one that it removes, as Zenphoto's pages do.
#[tokio::test]
async fn a_page_that_removes_a_cookie_comes_from_memory() {
    let application = Application::start(move |request| {
        let fields = "Content-Type: text/html\r\nSet-Cookie: auth=deleted; \
             expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0; path=/\r\n";
        let body = format!("page={}", request.target);
        Script::new().raw(crate::visits::answer_text("200 OK", fields, &body))
    })
    .await;
    let site = Site::of_guests(&application, "1h").await;
    let reply = warm(&site, "/album").await;
    assert!(!reply.has("set-cookie"));
    assert_eq!(reply.text(), "page=/album");
}

/// Asks for a page as one visitor after the other, and returns how many were answered from memory.
async fn from_memory_of(site: &Site, path: &str) -> usize {
    let mut found = 0;
    for nth in 0..30 {
        let reply = Visitor::new(HOST, nth).get(site, path).await;
        found += usize::from(is_from_memory(&reply));
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    found
}

/// An application like those of Laravel. It sets a cookie with a token where there is none; its scripts read the token and
/// send it in a field.
/// It must be that of the session, and that of the cookie.
#[derive(Default)]
struct ScriptTokens {
    sessions: Mutex<HashMap<String, String>>,
    drawn: AtomicU64,
    /// The values of the cookie that it was sent.
    sent: Mutex<HashSet<String>>,
}

impl ScriptTokens {
    fn answer(&self, request: &Request) -> Script {
        let number = self.drawn.fetch_add(1, Relaxed);
        let cookies = cookies(request.field("cookie"));
        let in_cookie = cookies.get("XSRF-TOKEN").map(|it| it.replace("%3D", "="));
        self.sent
            .lock()
            .expect("no panic")
            .extend(in_cookie.clone());
        let mut sessions = self.sessions.lock().expect("no panic");
        let sid = cookies.get("sid").filter(|sid| sessions.contains_key(*sid));
        let is_new = sid.is_none();
        let sid = sid.cloned().unwrap_or_else(|| format!("5e{number:014x}"));
        let token = sessions
            .entry(sid.clone())
            .or_insert_with(|| format!("eyJ7a{number:030x}="));
        let mut fields = "Content-Type: text/html\r\n".to_owned();
        if is_new {
            fields += &format!("Set-Cookie: sid={sid}; path=/; HttpOnly\r\n");
        }
        if in_cookie.is_none() {
            let token = token.replace('=', "%3D");
            fields += &format!("Set-Cookie: XSRF-TOKEN={token}; path=/; samesite=lax\r\n");
        }
        if request.target == "/alone" {
            fields += "Cache-Control: private\r\n";
        }
        let body = "<script src=/app.js></script>";
        let (status, body) = match &request.method[..] {
            "POST" if request.field("x-xsrf-token") != token => ("419 Expired", body.to_owned()),
            "POST" if in_cookie.as_ref() != Some(token) => ("419 Expired", body.to_owned()),
            "POST" => ("200 OK", format!("written by {sid}")),
            _ => ("200 OK", body.to_owned()),
        };
        Script::new().raw(crate::visits::answer_text(status, &fields, &body))
    }
}

/// Sends a write as a script of the page does it.
async fn write_by_script(site: &Site, visitor: &mut Visitor, origin: Origin) -> u16 {
    let token = visitor.jar["XSRF-TOKEN"].replace("%3D", "=");
    let origin = origin.fields(&visitor.host, "/read");
    let fields = format!("{origin}X-XSRF-TOKEN: {token}\r\nContent-Length: 0\r\n\r\n");
    let text = visitor.head("POST /write", &fields);
    let reply = ask_port(site.port, visitor.from, &text).await;
    visitor.note("/write", &reply);
    reply.status
}

#[tokio::test]
async fn a_script_sends_the_token_of_a_cookie_that_came_with_a_page_from_memory() {
    let tokens = Arc::new(ScriptTokens::default());
    let answering = Arc::clone(&tokens);
    let application = Application::start(move |request| answering.answer(request)).await;
    let site = Site::of_guests(&application, "1h").await;
    warm(&site, "/read").await;
    let mut sids = HashSet::new();
    // Others than those who have come before the page was shared: these are compared first.
    for nth in 0..3 {
        let mut visitor = Visitor::new(HOST, 60 + nth);
        let reply = visitor.get(&site, "/read").await;
        assert!(is_from_memory(&reply) && !visitor.jar.contains_key("sid"));
        for forged in FORGED {
            let mut victim = visitor.clone();
            assert_eq!(
                write_by_script(&site, &mut victim, forged).await,
                419,
                "{forged:?}"
            );
        }
        // The cookie is no reason to ask PHP for the next page.
        assert!(is_from_memory(&visitor.get(&site, "/read").await));
        for _ in 0..2 {
            let own = Origin::Own(visitor.browser);
            assert_eq!(write_by_script(&site, &mut visitor, own).await, 200);
        }
        assert!(
            sids.insert(visitor.sid().to_owned()),
            "a session of its own"
        );
    }
    // A page for one visitor gives them a token of their own: the server's is known to all.
    let mut visitor = Visitor::new(HOST, 67);
    assert!(is_from_memory(&visitor.get(&site, "/read").await));
    let servers = visitor.jar["XSRF-TOKEN"].clone();
    let reply = visitor.get(&site, "/alone").await;
    assert!(!is_from_memory(&reply) && visitor.jar["XSRF-TOKEN"] != servers);
    let sent = tokens.sent.lock().expect("no panic");
    assert!(sent.iter().all(|it| it.starts_with("eyJ7a")), "{sent:?}");
}

#[tokio::test]
async fn a_page_without_a_session_whose_form_has_a_new_key_each_time_is_not_shared() {
    let drawn = AtomicU64::new(0);
    let application = Application::start(move |request| {
        let number = drawn.fetch_add(1, Relaxed);
        let key = u128::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let body = match &request.target[..] {
            "/form" => format!("<form><input type=hidden name=key value={key:032x}></form>"),
            _ => format!("<script nonce={key:032x}></script><input type=hidden value={number}>"),
        };
        let fields = "Content-Type: text/html\r\n";
        Script::new().raw(crate::visits::answer_text("200 OK", fields, &body))
    })
    .await;
    let site = Site::of_guests(&application, "1h").await;
    warm(&site, "/other").await;
    assert_eq!(from_memory_of(&site, "/form").await, 0);
}

/// A mark of a cart in a script is the session's, and so is a number that it has drawn.
#[tokio::test]
async fn what_a_session_has_drawn_is_shown_to_nobody_else() {
    let drawn = AtomicU64::new(0);
    let application = Application::start(move |request| {
        let number = drawn.fetch_add(1, Relaxed);
        let cookies = cookies(request.field("cookie"));
        let sid = match cookies.get("sid") {
            Some(sid) => sid.clone(),
            None => format!(
                "{:032x}",
                u128::from(number + 1) * 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced
            ),
        };
        let row = sid.bytes().map(u32::from).sum::<u32>();
        let body = match &request.target[..] {
            "/cart" => format!("<script>const cart=\"{sid}\"</script>"),
            "/picture" => format!("<img src=\"/captcha?h={sid}\"><input type=hidden value={sid}>"),
            "/seat" => format!("<p>Your seat: {row} B</p>"),
            "/wait" => format!("<p>You wait {row} sec</p>"),
            _ => format!("<input type=hidden name=key value={sid}>"),
        };
        let fields = format!("Content-Type: text/html\r\nSet-Cookie: sid={sid}\r\n");
        Script::new().raw(crate::visits::answer_text("200 OK", &fields, &body))
    })
    .await;
    let site = Site::of_guests(&application, "1h").await;
    warm(&site, "/form").await;
    for path in ["/cart", "/picture", "/seat", "/wait"] {
        assert_eq!(from_memory_of(&site, path).await, 0, "{path}");
    }
}

/// A field of the answer has the token of the page, as policies for scripts do. And a site whose first page is another one each
/// time: no page shows what an argument writes into the session.
#[tokio::test]
async fn a_token_in_a_field_and_an_argument_that_no_other_page_shows_are_not_shared() {
    let drawn = AtomicU64::new(0);
    let application = Application::start(move |request| {
        let number = drawn.fetch_add(1, Relaxed);
        let key = u128::from(number + 1) * 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced;
        let word = char::from(b'a' + u8::try_from(number % 26).expect("small"));
        let (path, arguments) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        let body = match path {
            "/field" | "/form" => {
                format!("<form><input type=hidden name=key value={key:032x}></form>")
            }
            "/colour" => format!("<p>{arguments}</p>"),
            _ => format!("<p>The letter of the day is {word}</p>"),
        };
        let field = match path {
            "/field" => format!("X-Key: {key:032x}\r\n"),
            _ => String::new(),
        };
        let fields =
            format!("Content-Type: text/html\r\nSet-Cookie: sid=5e{number:014x}\r\n{field}");
        Script::new().raw(crate::visits::answer_text("200 OK", &fields, &body))
    })
    .await;
    let site = Site::of_guests(&application, "1h").await;
    for path in ["/field", "/colour?is=red"] {
        assert_eq!(from_memory_of(&site, path).await, 0, "{path}");
    }
    // They are compared with it from now on.
    warm(&site, "/form").await;
    warm(&site, "/colour").await;
}

/// What all pages said alike turns out to be said of some. The next answer to the shared request is nobody's: its token is bound
/// to another browser.
#[tokio::test]
async fn a_guest_of_a_page_that_is_not_shared_any_more_gets_a_token_of_their_own() {
    let rules = Rules {
        limiter: Limiter::OwnDefault,
        binding: Binding::Agent,
        is_mixed: true,
        ..Rules::default()
    };
    let guests = GuestSite::start(rules).await;
    for path in ["/", "/page/1", "/page/3", "/page/4", "/page/5"] {
        Visitor::new(HOST, 1).get(&guests.site, path).await;
    }
    guests.warm("/page/1").await;
    guests.warm("/page/2").await;
    guests.site.purge().await;
    let mut visitor = Visitor::new(HOST, 3);
    let reply = visitor.get(&guests.site, "/page/1").await;
    let form = visitor.form.clone().expect("a form");
    let (sid, bound) = (visitor.sid(), visitor.bound());
    let is_own = guests.sessions.is_token_of(HOST, sid, &bound, &form.token);
    assert!(is_own, "{} {}", reply.x_cache(), reply.text());
    let reply = visitor.write(&guests.site, &rules, ("cart", "rose")).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
}

fn unix_seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a time after 1970").as_secs()
}

/// The application answers an address that has asked often with one word in the place of each page, as e107 does.
#[tokio::test]
async fn an_application_that_blocks_addresses_blocks_neither_guests_nor_trials() {
    const MAX_REQUESTS: u64 = 60;
    let asked: Mutex<HashMap<String, u64>> = Mutex::default();
    let drawn = AtomicU64::new(0);
    let application = Application::start(move |request| {
        let mut asked = asked.lock().expect("no panic");
        let count = asked
            .entry(request.field("x-real-ip").to_owned())
            .or_default();
        *count += 1;
        let (fields, body) = match *count > MAX_REQUESTS {
            true => (
                "Content-Type: text/html\r\n".to_owned(),
                "blocked".to_owned(),
            ),
            false => {
                let number = drawn.fetch_add(1, Relaxed);
                let cookie = format!("Set-Cookie: sid=5e{number:014x}\r\n");
                (
                    format!("Content-Type: text/html\r\n{cookie}"),
                    format!("page={}", request.target),
                )
            }
        };
        Script::new().raw(crate::visits::answer_text("200 OK", &fields, &body))
    })
    .await;
    let site = Site::of_guests(&application, "1h").await;
    let mut from_memory = 0;
    for nth in 0..12 {
        let mut visitor = Visitor::new(HOST, nth);
        for page in 0..25 {
            let path = format!("/page/{page}");
            let reply = visitor.get(&site, &path).await;
            assert_eq!(
                reply.text(),
                format!("page={path}"),
                "{nth}: {}",
                reply.x_cache()
            );
            from_memory += usize::from(is_from_memory(&reply));
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(from_memory > 25, "{from_memory}");
}
