//! Pages are shared on evidence: the page of a visitor's own run is compared with that of a
//! shared run.

use testkit::fake_http::Script;

use super::{Application, BROWSERS, Mark, Site, is_from_memory, settle};

const HTML: &str = "Content-Type: text/html\r\n";

fn chrome(mark: Mark) -> String {
    BROWSERS[0].fields(mark, "site.test")
}

#[tokio::test]
async fn first_visit_is_an_own_run_the_second_a_shared_one_and_the_third_a_hit() {
    let application = Application::start(|_| Script::page(HTML, "page")).await;
    let site = Site::before(&application, "1h").await;
    for (from, own, runs, cache) in [
        (1, 1, 1, "MISS"),
        (2, 0, 2, "MISS"),
        (3, 0, 2, "HIT"),
        (1, 0, 2, "HIT"),
    ] {
        let mark = Mark::next();
        let reply = site.get(from, "/page", &chrome(mark)).await;
        assert_eq!((&*reply.text(), reply.x_cache()), ("page", cache), "{from}");
        assert_eq!(application.own_runs(mark), own, "{from}");
        assert_eq!(application.runs(), runs, "{from}");
    }
}

#[tokio::test]
async fn a_request_that_leaves_nothing_out_is_the_shared_request() {
    let application = Application::start(|_| Script::page(HTML, "page")).await;
    let site = Site::before(&application, "1h").await;
    for cache in ["MISS", "HIT", "HIT"] {
        let reply = site.server.target().get("/page").await;
        assert_eq!(reply.x_cache(), cache);
    }
    assert_eq!(application.runs(), 1);
}

#[tokio::test]
async fn an_own_run_has_the_request_of_its_visitor_unchanged() {
    let application = Application::start(|_| Script::page(HTML, "page")).await;
    let site = Site::before(&application, "1h").await;
    for (nth, browser) in BROWSERS.iter().enumerate() {
        let mark = Mark::next();
        let fields = browser.fields(mark, "site.test");
        let claims = "X-Forwarded-For: 203.0.113.9\r\nForwarded: for=203.0.113.9\r\n";
        let path = format!("/page/{nth}?b=2&utm_source=x&a=1");
        site.get(1, &path, &format!("{fields}{claims}")).await;
        let head = application.last_head();
        assert!(
            head.starts_with(&format!("GET {path} HTTP/1.1\r\n")),
            "{head}"
        );
        let sent: Vec<String> = head.lines().map(str::to_ascii_lowercase).collect();
        for line in fields.lines() {
            let lower = line.to_ascii_lowercase();
            let name = browser.name;
            assert!(sent.contains(&lower), "{name}: no {line} in\n{head}");
        }
        assert!(!head.contains("203.0.113.9"), "{head}");
    }
}

#[tokio::test]
async fn a_shared_run_has_nothing_of_a_visitor() {
    let application = Application::start(|_| Script::page(HTML, "page")).await;
    let site = Site::before(&application, "1h").await;
    for from in [2, 3] {
        let fields = chrome(Mark::next());
        site.get(from, "/page", &format!("{fields}Cookie: _ga=1\r\n"))
            .await;
    }
    let head = application.last_head();
    assert_eq!(application.shared_runs("site.test"), 1, "{head}");
    let lower = head.to_ascii_lowercase();
    for name in [
        "referer:",
        "accept-language:",
        "cookie:",
        "sec-",
        "127.0.0.3",
    ] {
        assert!(!lower.contains(name), "{head}");
    }
}

/// The application answers each run differently: an advertisement, a form with a secret.
#[tokio::test]
async fn a_page_that_differs_between_two_runs_comes_from_each_visitors_own_run() {
    let application = Application::start(|request| {
        let text = format!("[{}] {}", request.number, request.head);
        Script::page(HTML, text)
    })
    .await;
    let site = Site::before(&application, "1h").await;
    let visits = 12;
    for nth in 0..visits {
        let mark = Mark::next();
        let reply = site.get(1 + nth % 3, "/page", &chrome(mark)).await;
        settle().await;
        assert_eq!(Mark::of(&reply.text()), Some(mark), "{nth}");
    }
    // Beside the visitors' own: one shared run, and one trial of at most thirty-two.
    let runs = application.runs() - usize::from(visits);
    assert!(runs <= 33, "{runs}");
}

#[tokio::test]
async fn a_value_that_has_not_been_seen_gets_an_own_run_first() {
    let application = Application::start(|_| Script::page(HTML, "page")).await;
    let site = Site::before(&application, "1h").await;
    let ask = async |change: &dyn Fn(String) -> String| {
        let mark = Mark::next();
        let reply = site.get(1, "/page", &change(chrome(mark))).await;
        (application.own_runs(mark), reply.x_cache().to_owned())
    };
    for from in [1, 2, 3] {
        site.get(from, "/page", &chrome(Mark::next())).await;
    }
    assert_eq!(ask(&|fields| fields).await, (0, "HIT".to_owned()));
    let changes: [(&str, &dyn Fn(String) -> String); 5] = [
        ("language", &|fields| fields.replace("de-AT,de", "fr-FR,fr")),
        ("agent", &|fields| {
            fields.replace("Chrome/140.0.0.0 Safari/537.36", "Gecko/1 Firefox/128.0")
        }),
        ("referer", &|fields| {
            fields.replace("site.test/", "other.test/")
        }),
        ("hint", &|fields| {
            fields.replace("Site: same-origin", "Site: cross-site")
        }),
        ("cookie", &|fields| {
            format!("{fields}Cookie: cookie_consent=1\r\n")
        }),
    ];
    for (name, change) in changes {
        let first = ask(change).await;
        assert_eq!(first.0, 1, "{name}: {}", first.1);
        settle().await;
        // It has turned out not to matter.
        assert_eq!(ask(change).await, (0, "HIT".to_owned()), "{name}");
    }
}

#[tokio::test]
async fn a_field_that_is_not_known_not_to_matter_makes_a_request_personal() {
    let application = Application::start(|request| Script::page(HTML, &request.head)).await;
    let site = Site::before(&application, "1h").await;
    for name in super::seven_faults::PERSONAL_FIELDS {
        let path = format!("/page/{name}");
        for value in ["acme", "acme", "other", ""] {
            let fields = format!("{}{name}: {value}\r\n", chrome(Mark::next()));
            let reply = site.get(1, &path, &fields).await;
            assert_eq!(reply.x_cache(), "BYPASS", "{name}: {value}");
            let lower = reply.text().to_ascii_lowercase();
            let line = format!("{name}: {value}").to_ascii_lowercase();
            assert!(lower.contains(&line), "{name}: {value}");
        }
        for from in [1, 2, 3] {
            let reply = site.get(from, &path, &chrome(Mark::next())).await;
            let lower = reply.text().to_ascii_lowercase();
            let field = format!("\r\n{name}:").to_ascii_lowercase();
            assert!(!lower.contains(&field), "{name}");
        }
    }
}

/// The memory that a page may be shared outlives its copy.
#[tokio::test]
async fn a_shared_page_costs_one_run_after_a_purge() {
    let application = Application::start(|_| Script::page(HTML, "page")).await;
    let site = Site::before(&application, "1h").await;
    for from in [1, 2, 3] {
        site.get(from, "/page", &chrome(Mark::next())).await;
    }
    for _ in 0..3 {
        let runs = application.runs();
        site.purge().await;
        for cache in ["MISS", "HIT", "HIT"] {
            let mark = Mark::next();
            let reply = site.get(1, "/page", &chrome(mark)).await;
            assert_eq!((&*reply.text(), reply.x_cache()), ("page", cache));
            assert_eq!(application.own_runs(mark), 0);
        }
        assert_eq!(application.runs(), runs + 1);
    }
}

/// Visits until the server has found out the parts of a request that a page depends on.
const LEARNING_VISITS: usize = 40;
/// Visits after that.
const LATER_VISITS: usize = 20;

/// A page that depends on `name` is stored for each value of that field.
async fn is_stored_for_each_value(name: &'static str, values: [&str; 3]) {
    let application = Application::start(move |request| {
        Script::page(HTML, format!("page for {}.", request.field(name)))
    })
    .await;
    let site = Site::before(&application, "1h").await;
    let mut from_memory = 0;
    for nth in 0..LEARNING_VISITS + LATER_VISITS {
        let value = values[nth % values.len()];
        let from = 1 + u8::try_from(nth % 5).expect("small");
        let field = match value {
            "" => String::new(),
            value => format!("{name}: {value}\r\n"),
        };
        let agent = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n";
        let reply = site.get(from, "/page", &format!("{agent}{field}")).await;
        // Languages may be written in a normal form.
        let (text, wanted) = (reply.text(), format!("page for {value}."));
        assert!(text.eq_ignore_ascii_case(&wanted), "{text}, {wanted}");
        let is_counted = nth >= LEARNING_VISITS && is_from_memory(&reply);
        from_memory += usize::from(is_counted);
        settle().await;
    }
    assert_eq!(from_memory, LATER_VISITS, "{name}");
}

#[tokio::test]
async fn a_page_that_depends_on_the_language_is_stored_for_each_language() {
    is_stored_for_each_value("accept-language", ["de", "fr", ""]).await;
}

#[tokio::test]
async fn a_page_that_depends_on_a_cookie_is_stored_for_each_value() {
    is_stored_for_each_value("cookie", ["mp_theme=dark", "mp_theme=light", ""]).await;
}

/// A proxy that nobody has named as one says where each visitor is, and the page depends on it. All of them come from
/// the proxy's address.
#[tokio::test]
async fn a_page_by_the_address_that_a_proxy_names_is_each_visitors_own() {
    let application = Application::start(|request| {
        let price = match request.field("cf-connecting-ip") {
            address if address.starts_with("81.") => "EUR 119",
            address if address.starts_with("73.") => "USD 100",
            _ => "not for sale",
        };
        Script::page(HTML, price)
    })
    .await;
    let site = Site::before(&application, "1h").await;
    for nth in 0..16 {
        let (address, price) = [("81.1", "EUR 119"), ("73.9", "USD 100")][nth % 2];
        let fields = format!("CF-Connecting-IP: {address}.{nth}.7\r\nCF-Ray: {nth}-FRA\r\n");
        let reply = site
            .get(1, "/page", &(chrome(Mark::next()) + &fields))
            .await;
        assert_eq!(reply.text(), price, "{nth}: {}", reply.x_cache());
        settle().await;
    }
}

/// The application reads a field that is not compared. Nothing that is explains the answers that its visitors get.
#[tokio::test]
async fn a_page_that_depends_on_what_is_not_compared_is_not_shared() {
    let application = Application::start(|request| {
        let text = format!("by way of {}.", request.field("via"));
        Script::page(HTML, text)
    })
    .await;
    let site = Site::before(&application, "1h").await;
    for nth in 0..12 {
        let via = format!("1.1 proxy-{}", nth % 3);
        let fields = format!("{}Via: {via}\r\n", chrome(Mark::next()));
        let reply = site.get(1 + nth % 5, "/page", &fields).await;
        assert_eq!(reply.text(), format!("by way of {via}."), "{nth}");
    }
    // Who comes directly has a run of their own by now, too.
    let mark = Mark::next();
    let reply = site.get(7, "/page", &chrome(mark)).await;
    assert_eq!(
        (&*reply.text(), application.own_runs(mark)),
        ("by way of .", 1)
    );
}

/// PHP is sent both languages, and takes the first. That says nothing of visitors who speak the second.
#[tokio::test]
async fn a_request_with_two_languages_stands_for_no_visitor() {
    let application = Application::start(|request| {
        let lines = request.head.lines();
        let mut languages = lines.filter_map(|line| line.strip_prefix("Accept-Language: "));
        let is_german = languages.next().is_some_and(|it| it.starts_with("de"));
        Script::page(HTML, if is_german { "Hallo" } else { "Hello" })
    })
    .await;
    let site = Site::before(&application, "1h").await;
    for (from, languages) in [
        (1, &["en"][..]),
        (2, &["en"]),
        (3, &["en"]),
        (4, &["en", "de-DE,de;q=0.9"]),
        (5, &["en", "de-DE,de;q=0.9"]),
        (6, &["de-DE,de;q=0.9"]),
    ] {
        let fields = languages.iter();
        let fields: String = fields
            .map(|it| format!("Accept-Language: {it}\r\n"))
            .collect();
        let reply = site.get(from, "/page", &fields).await;
        let expected = if languages[0] == "en" {
            "Hello"
        } else {
            "Hallo"
        };
        assert_eq!(reply.text(), expected, "{from}: {}", reply.x_cache());
        settle().await;
    }
}

/// A page that prints its host shows each visitor the spelling of their own request. No trait explains the difference.
#[tokio::test]
async fn a_host_in_another_spelling_keeps_nobody_from_sharing_a_page() {
    let page = "<?php header('Content-Type: text/html'); echo $_SERVER['HTTP_HOST'];";
    let site = Site::with_php(&[("index.php", page)], "1h").await;
    let get = async |from, host: &str| {
        let reply = site.ask(from, "GET /", host, &chrome(Mark::next())).await;
        settle().await;
        (reply.text(), is_from_memory(&reply))
    };
    for from in 1..4 {
        assert_eq!(get(from, "site.test").await.0, "site.test");
    }
    for (from, host) in [(4, "SITE.test"), (5, "site.test."), (6, "Site.Test")] {
        assert_eq!(get(from, host).await, (host.to_owned(), false));
    }
    assert_eq!(get(7, "site.test").await, ("site.test".to_owned(), true));
}
