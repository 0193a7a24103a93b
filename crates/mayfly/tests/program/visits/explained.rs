//! `mayfly explain` about a page that visitors may share, and about one that depends on their fields.

use control::explain::{Standing, TriedEffect};
use control::{ExplainRequest, Explanation};
use testkit::fake_http::Script;

use super::{Application, BROWSERS, Mark, Site, settle};

const HTML: &str = "Content-Type: text/html\r\n";

/// A page that is made in the wanted language, and has the time of each run.
async fn in_each_language() -> Application {
    Application::start(|request| {
        let text = match request.field("accept-language").starts_with("de") {
            true => "Hallo",
            false => "Hello",
        };
        let number = request.number;
        Script::page(HTML, format!("<h1>{text}</h1>\n<i>{number}</i>"))
    })
    .await
}

pub async fn explain(site: &Site, path: &str, fields: &str, tries: bool) -> Explanation {
    explain_at((site, "site.test"), path, fields, tries).await
}

pub async fn explain_at(
    (site, host): (&Site, &str),
    path: &str,
    fields: &str,
    tries: bool,
) -> Explanation {
    // The port chooses the listener, and Host is what visitors send.
    let fields = format!("Host: {host}\r\n{fields}");
    let lines = fields.lines().filter_map(|line| line.split_once(": "));
    let request = ExplainRequest {
        url: format!("http://{host}:{}{path}", site.port),
        fields: lines
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        from: Some("127.0.0.1".parse().expect("an address")),
        tries,
        ..ExplainRequest::default()
    };
    let told = control::client::explain(&site.server.control(), &request).await;
    told.unwrap_or_else(|error| panic!("{request:?}: {error}"))
}

#[tokio::test]
async fn explain_says_what_was_seen_of_a_page() {
    let application = Application::start(|_| Script::page(HTML, "page")).await;
    let site = Site::before(&application, "1h").await;
    let fields = BROWSERS[0].fields(Mark::next(), "site.test");
    let told = explain(&site, "/page", &fields, false)
        .await
        .evidence
        .expect("evidence");
    assert_eq!(
        (told.standing, told.known_for_milliseconds),
        (Standing::Unproven, None)
    );
    for left_out in ["language", "user-agent", "referer", "network"] {
        assert!(
            told.left_out.iter().any(|it| it == left_out),
            "{:?}",
            told.left_out
        );
    }
    for from in [1, 2] {
        let fields = BROWSERS[0].fields(Mark::next(), "site.test");
        site.get(from, "/page", &fields).await;
    }
    let runs = application.runs();
    let told = explain(&site, "/page", &fields, false)
        .await
        .evidence
        .expect("evidence");
    assert_eq!(told.standing, Standing::Shared);
    assert!(
        told.comparisons > 0 && told.immaterial > 3 && told.depends_on.is_empty(),
        "{told:?}"
    );
    assert_eq!(application.runs(), runs, "no run for an explanation");
}

#[tokio::test]
async fn explain_says_that_a_language_is_in_the_key() {
    let application = in_each_language().await;
    let site = Site::before(&application, "1h").await;
    let german = "Accept-Language: de\r\n";
    for from in [1, 2, 1, 2, 1] {
        site.get(from, "/page", german).await;
        settle().await;
    }
    let told = explain(&site, "/page", german, false)
        .await
        .evidence
        .expect("evidence");
    assert_eq!(told.in_key, ["language"], "{told:?}");
}

#[tokio::test]
async fn explain_try_names_what_a_page_depends_on() {
    let application = in_each_language().await;
    let site = Site::before(&application, "1h").await;
    let told = explain(&site, "/page", "", true).await;
    let differing = told
        .trial
        .iter()
        .filter(|row| row.effect == TriedEffect::Differs);
    let differing: Vec<&str> = differing.map(|row| row.altered.as_str()).collect();
    // The first row is the page once more, which has another number.
    assert_eq!(
        differing,
        [
            "nothing, once more",
            "Accept-Language: de-AT,de;q=0.9,en;q=0.5"
        ]
    );
    let german = &told.trial[1];
    assert_eq!((&*german.was, &*german.became), ("<h1>Hello", "<h1>Hallo"));
    assert!(told.trial.len() > 15, "{}", told.trial.len());
}

/// A page whose form has another key each time is compared once more, and then known not to be the same for all.
#[tokio::test]
async fn a_page_that_no_two_visitors_share_is_not_called_unproven() {
    let application = Application::start(|request| {
        let key = format!(
            "{:032x}",
            (request.number as u128 + 1) * 0x9e37_79b9_7f4a_7c15_f39c_0123_4567
        );
        let form = format!("<form method=post><input type=hidden name=key value={key}></form>");
        Script::page(HTML, form)
    })
    .await;
    let site = Site::before(&application, "1h").await;
    let mut reasons = Vec::new();
    for from in 1..60 {
        let fields = BROWSERS[0].fields(Mark::next(), "site.test");
        let reply = site.get(from, "/page", &fields).await;
        reasons.push(reply.field("cache-status").to_owned());
        let told = explain(&site, "/page", &fields, false).await;
        let evidence = told.evidence.expect("evidence");
        if evidence.standing != Standing::NotShareable {
            continue;
        }
        assert!(evidence.refusal.contains("key that is new"), "{evidence:?}");
        assert_eq!(told.reason.expect("a reason").word, "not-shareable");
        let reply = site.get(from + 1, "/page", &fields).await;
        let status = reply.field("cache-status");
        assert!(status.ends_with("detail=not-shareable"), "{status}");
        return;
    }
    panic!("{reasons:?}");
}
