//! `mayfly explain --audit`: an application with planted faults behind a configuration that lets one visitor
//! shape the pages of others, and the same application behind one that does not.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use testkit::fake_http::{FakeHttp, Request, Script};
use testkit::running::RunningServer;

use crate::commands::{code_and_text, output};
use crate::start;

/// A path of the application at which one visitor's request shapes the page of others.
struct Plant {
    path: &'static str,
    /// Directives of the path's own location.
    directives: &'static str,
    page: fn(&Request) -> Script,
    /// Variations that find the fault, or one of them.
    found_by: &'static [&'static str],
    kind: &'static str,
}

const POISONING: &str = "poisoning";

const fn plant(
    path: &'static str,
    page: fn(&Request) -> Script,
    found_by: &'static [&'static str],
) -> Plant {
    Plant {
        path,
        directives: "",
        page,
        found_by,
        kind: POISONING,
    }
}

impl Plant {
    const fn with(self, directives: &'static str) -> Plant {
        Plant { directives, ..self }
    }

    const fn of_kind(self, kind: &'static str) -> Plant {
        Plant { kind, ..self }
    }
}

/// A key that leaves out all arguments but the audit's own one.
const KEY_WITHOUT_ARGUMENTS: &str = "proxy_cache_key $scheme$host$uri$arg_mayfly_audit;";

/// Another cache answers, which keeps everything under the target alone and sends no field about it.
const CARELESS: &str = "proxy_cache off;";

const PLANTS: &[Plant] = &[
    plant(
        "/link",
        |it| {
            html(format!(
                "<link rel=canonical href=http://{}/>",
                own(it, "X-Forwarded-Host", "site.test")
            ))
        },
        &["X-Forwarded-Host"],
    ),
    plant(
        "/redirect",
        |it| {
            redirect(
                301,
                &format!("http://{}/there", own(it, "X-Host", "site.test")),
            )
        },
        &["X-Host"],
    ),
    plant(
        "/meta",
        |it| {
            html(format!(
                "<meta property=og:url content=//{}/>",
                own(it, "X-Forwarded-Server", "site.test")
            ))
        },
        &["X-Forwarded-Server"],
    ),
    plant(
        "/script",
        |it| {
            html(format!(
                "<script src={}/app.js></script>",
                own(it, "X-Forwarded-Prefix", "")
            ))
        },
        &["X-Forwarded-Prefix"],
    ),
    plant(
        "/port",
        |it| {
            html(format!(
                "<form action=http://site.test:{}/>",
                own(it, "X-Forwarded-Port", "80")
            ))
        },
        &["X-Forwarded-Port"],
    ),
    plant(
        "/forwarded",
        |it| html(format!("<!-- {} -->", own(it, "Forwarded", "nothing"))),
        &["Forwarded"],
    ),
    plant(
        "/loop",
        |it| match it.field("X-Forwarded-Proto") {
            "https" => redirect(301, "/loop"),
            _ => html("<p>page".to_owned()),
        },
        &["X-Forwarded-Proto"],
    ),
    plant(
        "/scheme",
        |it| {
            html(format!(
                "<a href={}://site.test/>",
                own(it, "X-Forwarded-Scheme", "http")
            ))
        },
        &["X-Forwarded-Scheme"],
    ),
    plant(
        "/other-page",
        |it| match it.field("X-Original-URL") {
            "" => html("<h1>Page".to_owned()),
            _ => not_found(),
        },
        &["X-Original-URL"],
    ),
    plant(
        "/rewritten",
        |it| match it.field("X-Rewrite-URL") {
            "" => html("<h1>Page".to_owned()),
            _ => html("<h1>Start".to_owned()),
        },
        &["X-Rewrite-URL"],
    ),
    plant(
        "/odd",
        |it| match it.field("X-Odd-Field").contains('\\') {
            true => status(400, "Bad Request"),
            false => html("<p>page".to_owned()),
        },
        &["odd field"],
    ),
    plant(
        "/long",
        |it| match it.head.len() > 4096 {
            true => status(413, "Content Too Large"),
            false => html("<p>page".to_owned()),
        },
        &["long field"],
    ),
    plant(
        "/override",
        |it| match it.field("X-HTTP-Method-Override") {
            "" => html("<p>page".to_owned()),
            _ => status(405, "Method Not Allowed"),
        },
        &["X-HTTP-Method-Override"],
    ),
    plant(
        "/language",
        |it| match it.field("Accept-Language").starts_with("de") {
            true => html("<h1>Willkommen".to_owned()),
            false => html("<h1>Welcome".to_owned()),
        },
        &["Accept-Language"],
    ),
    plant(
        "/phone",
        |it| match it.field("User-Agent").contains("iPhone") {
            true => html("<body class=phone>".to_owned()),
            false => html("<body class=desktop>".to_owned()),
        },
        &["User-Agent of a phone"],
    ),
    plant(
        "/data",
        |it| match it.field("Accept").contains("json") {
            true => Script::page("Content-Type: application/json\r\n", "{\"page\": 1}"),
            false => html("<p>page".to_owned()),
        },
        &["Accept of data"],
    ),
    plant(
        "/hints",
        |it| {
            html(format!(
                "<body data-platform={}>",
                own(it, "Sec-CH-UA-Platform", "none")
            ))
        },
        &["client hints"],
    ),
    plant(
        "/light",
        |it| match it.field("Save-Data") {
            "on" => html("<body class=light>".to_owned()),
            _ => html("<body>".to_owned()),
        },
        &["Save-Data"],
    ),
    plant(
        "/country",
        |it| match it.field("CF-IPCountry") {
            "DE" => html("<p>10 EUR".to_owned()),
            _ => html("<p>10 USD".to_owned()),
        },
        &["CF-IPCountry"],
    ),
    plant(
        "/address",
        |it| {
            html(format!(
                "<p>You are {}",
                own(it, "True-Client-IP", "unknown")
            ))
        },
        &["True-Client-IP"],
    ),
    plant(
        "/referer",
        |it| html(format!("<a href={}>back</a>", own(it, "Referer", "/"))),
        &["Referer"],
    ),
    plant(
        "/origin",
        |it| {
            let field = format!(
                "Access-Control-Allow-Origin: {}\r\n",
                own(it, "Origin", "*")
            );
            Script::page(&field, "<p>page")
        },
        &["Origin"],
    ),
    plant(
        "/script-part",
        |it| match it.field("X-Requested-With") {
            "" => html("<html><p>page".to_owned()),
            _ => html("<p>page".to_owned()),
        },
        &["X-Requested-With"],
    ),
    plant(
        "/cookie",
        |it| html(format!("<body class=theme-{}>", cookie(it, "theme"))),
        &["cookie of a theme", "cookie of a theme, invented"],
    ),
    plant(
        "/dark",
        |it| match cookie(it, "theme").as_str() {
            "dark" => html("<body class=night>".to_owned()),
            _ => html("<body class=day>".to_owned()),
        },
        &["cookie of a theme"],
    ),
    plant(
        "/own-language",
        |it| match cookie(it, "lang").as_str() {
            "de" => Script::page("Cache-Control: private\r\n", "<h1>Willkommen"),
            _ => html("<h1>Welcome".to_owned()),
        },
        &["cookie of a language"],
    )
    .of_kind("wrong-page"),
    plant(
        "/campaign",
        |it| html(format!("<p>{}", argument(it, "utm_content"))),
        &["utm_content"],
    )
    .with(KEY_WITHOUT_ARGUMENTS),
    plant(
        "/method",
        |it| match argument(it, "_method").as_str() {
            "" => html("<p>page".to_owned()),
            _ => status(405, "Method Not Allowed"),
        },
        &["_method"],
    )
    .with(KEY_WITHOUT_ARGUMENTS),
    plant(
        "/repeated?id=1",
        |it| html(format!("<h1>{}", argument(it, "id"))),
        &["repeated own argument"],
    )
    .with("proxy_cache_key $scheme$host$uri$arg_id$arg_mayfly_audit;"),
    plant(
        "/no-arguments",
        |it| html(format!("<link rel=canonical href={}>", it.target)),
        &["argument that is not in the key"],
    )
    .with("proxy_cache_key $scheme$host$uri;"),
    plant(
        "/body",
        |it| html(format!("<p>{}", String::from_utf8_lossy(&it.body))),
        &["body of a GET request"],
    )
    .with(CARELESS),
    plant(
        "/head",
        |it| match &*it.method {
            "HEAD" => html(String::new()),
            _ => html("<p>page".to_owned()),
        },
        &["HEAD"],
    )
    .with(CARELESS),
    plant(
        "/part",
        |it| match it.field("Range") {
            "bytes=0-0" => {
                let head = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/7\r\n";
                Script::new().raw(format!("{head}Content-Length: 1\r\n\r\n<"))
            }
            _ => html("<p>page".to_owned()),
        },
        &["Range"],
    )
    .with(CARELESS),
    plant(
        "/not-modified",
        |it| match it.field("If-None-Match") {
            "" => html("<p>page".to_owned()),
            _ => Script::new().raw("HTTP/1.1 304 Not Modified\r\n\r\n"),
        },
        &["If-None-Match"],
    )
    .with(CARELESS),
    plant(
        "/session",
        |_| Script::page(&format!("Set-Cookie: id={}\r\n", random()), "<p>page"),
        &["no variation"],
    )
    .with(CARELESS)
    .of_kind("leak"),
    plant(
        "/login",
        |it| match it.field("Authorization") {
            "" => html("<p>page".to_owned()),
            _ => Script::page(&format!("Set-Cookie: id={}\r\n", random()), "<p>page"),
        },
        &["Authorization"],
    )
    .with(CARELESS)
    .of_kind("leak"),
    plant(
        "/range",
        |it| match it.field("Range") {
            "" => html("<p>page".to_owned()),
            _ => status(416, "Range Not Satisfiable"),
        },
        &["Range", "Range beyond the end"],
    )
    .with("proxy_set_header Range $http_range; proxy_set_header Host $http_host;"),
    plant(
        "/host",
        |it| html(format!("<base href=http://{}/>", it.field("Host"))),
        &[
            "Host with another port",
            "Host with a trailing dot",
            "Host in upper case",
        ],
    ),
    plant(
        "/dot",
        |it| match it.field("Host").ends_with('.') {
            true => status(421, "Misdirected Request"),
            false => html("<p>page".to_owned()),
        },
        &["Host with a trailing dot"],
    ),
    plant(
        "/case",
        |it| match it.field("Host").contains("SITE") {
            true => redirect(301, "http://site.test/case"),
            false => html("<p>page".to_owned()),
        },
        &["Host in upper case"],
    ),
    plant(
        "/path-parameter",
        |it| html(format!("<a href={}>", it.target)),
        &[
            "path parameter",
            "dot segments",
            "doubled slash",
            "encoded path",
        ],
    ),
    plant(
        "/segments",
        |it| html(format!("<a href={}>", it.target)),
        &["dot segments"],
    )
    .with("proxy_cache_key $scheme$host$uri$is_args$args;"),
    plant(
        "/letters",
        |it| match it.target.contains('%') {
            true => not_found(),
            false => html("<p>page".to_owned()),
        },
        &["encoded path"],
    )
    .with("proxy_cache_key $scheme$host$uri$is_args$args;"),
];

fn html(body: String) -> Script {
    Script::page("Content-Type: text/html\r\n", body)
}

fn redirect(status: u16, to: &str) -> Script {
    let head = format!("HTTP/1.1 {status} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    Script::new().raw(head)
}

fn status(status: u16, reason: &str) -> Script {
    let length = reason.len();
    let head = format!("HTTP/1.1 {status} {reason}\r\nContent-Length: {length}\r\n\r\n{reason}");
    Script::new().raw(head)
}

fn not_found() -> Script {
    status(404, "Not Found")
}

fn own<'a>(request: &'a Request, field: &str, otherwise: &'a str) -> &'a str {
    match request.field(field) {
        "" => otherwise,
        value => value,
    }
}

fn cookie(request: &Request, name: &str) -> String {
    let cookies = request.field("Cookie").split(';');
    let mut pairs = cookies.filter_map(|it| it.trim().split_once('='));
    let found = pairs.find(|(it, _)| *it == name);
    found.map_or_else(String::new, |(_, value)| value.to_owned())
}

/// The last argument of this name, as PHP has it.
fn argument(request: &Request, name: &str) -> String {
    let arguments = request.target.split_once('?').map_or("", |(_, it)| it);
    let mut pairs = arguments.split('&').filter_map(|it| it.split_once('='));
    let found = pairs.rfind(|(it, _)| *it == name);
    found.map_or_else(String::new, |(_, value)| value.to_owned())
}

/// A text that differs each time.
fn random() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let letters = (0..8)
        .map(|at| char::from(b'a' + (count.wrapping_mul(2_654_435_761) >> (at * 4)) as u8 % 16));
    letters.collect()
}

/// Pages with nothing to find, though they differ each time, or between visitors.
fn clean_page(request: &Request) -> Option<Script> {
    static LAST: Mutex<String> = Mutex::new(String::new());
    let path = request.target.split('?').next().unwrap_or_default();
    Some(match path {
        "/nonce" => html(format!(
            "<h1>Page</h1>\n<script nonce={}>run()</script>\n<p>text\n<!-- made in {} ms -->",
            random(),
            random().len() + request.number % 90,
        )),
        "/one-of-two" => match request.number % 2 {
            0 => html("<h1>Page</h1><p>first".to_owned()),
            _ => html("<h1>Page</h1><p>second".to_owned()),
        },
        "/sets-cookie" => Script::page(&format!("Set-Cookie: id={}\r\n", random()), "<p>page"),
        "/private" => {
            let body = format!("<p>{} {}", request.field("Cookie"), request.target);
            Script::page("Cache-Control: private\r\n", body)
        }
        "/moved" => redirect(302, &format!("/there{}", request.target)),
        // The application itself shows it to all visitors.
        "/searches" => {
            let searched = argument(request, "utm_source");
            let mut last = LAST.lock().expect("no panic");
            if !searched.is_empty() {
                *last = searched;
            }
            html(format!("<p>last: {last}"))
        }
        _ => return None,
    })
}

const CLEAN_PATHS: [&str; 6] = [
    "/nonce",
    "/one-of-two",
    "/sets-cookie",
    "/private",
    "/moved",
    "/searches",
];

fn answer(request: &Request) -> Script {
    if let Some(page) = clean_page(request) {
        return page;
    }
    let is_of = |plant: &&Plant| request.target.contains(path_of(plant));
    let plants = PLANTS.iter().filter(is_of);
    match plants.max_by_key(|plant| plant.path.len()) {
        Some(plant) if plant.directives == CARELESS => {
            static STORED: Mutex<BTreeMap<String, Script>> = Mutex::new(BTreeMap::new());
            let mut stored = STORED.lock().expect("no panic");
            let key = request.target.clone();
            stored
                .entry(key)
                .or_insert_with(|| (plant.page)(request))
                .clone()
        }
        Some(plant) => (plant.page)(request),
        None => not_found(),
    }
}

fn path_of(plant: &Plant) -> &str {
    plant.path.split('?').next().unwrap_or_default()
}

/// A server before the application. Visitors' fields reach the application, and the key knows nothing of them.
async fn unsafe_server(upstream: &FakeHttp) -> RunningServer {
    let mut locations = String::new();
    for plant in PLANTS {
        let path = path_of(plant);
        let key = match plant.directives.contains("proxy_cache_key") {
            true => "",
            false => "proxy_cache_key $scheme$host$request_uri;",
        };
        let key = match path {
            "/path-parameter" => "proxy_cache_key $scheme$host$1$is_args$args;",
            _ => key,
        };
        let location = match path {
            "/path-parameter" => "~ \"^(/path-parameter)(;.*)?$\"".to_owned(),
            path => format!("= {path}"),
        };
        let directives = plant.directives;
        locations.push_str(&format!(
            "location {location} {{ proxy_pass http://{}; {key} {directives} }}\n",
            upstream.address()
        ));
    }
    server(&format!(
        "proxy_cache zone; proxy_cache_valid any 1h; proxy_set_header Host $http_host;\n{locations}\
         location / {{ proxy_pass http://{}; }}",
        upstream.address()
    ))
    .await
}

async fn server(directives: &str) -> RunningServer {
    start(&format!(
        "proxy_cache_path %%/cache keys_zone=zone:1m memory=64m;\n\
         server {{ listen unix:%%/http; server_name site.test; large_client_header_buffers 4 32k;\n\
         add_header X-Cache $upstream_cache_status always;\n{directives}\n}}"
    ))
    .await
}

/// Runs the audit: the exit code, and the lines of JSON.
async fn audit(server: &RunningServer, arguments: &[String]) -> (i32, Vec<serde_json::Value>) {
    let mut command = Command::new(crate::program());
    let connect = format!("unix:{}", server.path("http").display());
    command.args([
        "explain",
        "--audit",
        "--json",
        "--pages",
        "100",
        "--connect",
        &connect,
    ]);
    command.args(["--duration", "1h", "--timeout", "5m"]);
    command.args(arguments);
    let output = output(command).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect(line));
    let lines: Vec<serde_json::Value> = lines.collect();
    assert!(!lines.is_empty(), "{said}");
    (output.status.code().unwrap_or(-1), lines)
}

fn urls<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let paths = paths.into_iter();
    paths
        .map(|path| format!("http://site.test{path}"))
        .collect()
}

fn findings(page: &serde_json::Value) -> Vec<(String, String)> {
    let all = page["findings"].as_array().expect("findings").iter();
    let text = |finding: &serde_json::Value, name: &str| {
        finding[name].as_str().unwrap_or_default().to_owned()
    };
    all.map(|it| (text(it, "kind"), text(it, "variation")))
        .collect()
}

/// The audit of some of the plants. Each is found, and each finding has the request that shows it.
async fn plants_are_found(plants: &[Plant]) {
    let upstream = FakeHttp::start(answer).await;
    let server = unsafe_server(&upstream).await;
    let (exit, lines) = audit(&server, &urls(plants.iter().map(|it| it.path))).await;
    assert_eq!(exit, 1, "{lines:?}");
    let mut missed = Vec::new();
    for (plant, page) in plants.iter().zip(&lines) {
        let found = findings(page);
        let is_it = |(kind, variation): &(String, String)| {
            kind == plant.kind && plant.found_by.contains(&&**variation)
        };
        if !found.iter().any(is_it) {
            missed.push(format!("{}: {found:?} {}", plant.path, page["incomplete"]));
        }
        let is_expected =
            |(_, variation): &(String, String)| plant.found_by.contains(&&**variation);
        if plant.directives.is_empty() {
            assert!(found.iter().all(is_expected), "{}: {found:?}", plant.path);
        }
        for finding in page["findings"].as_array().into_iter().flatten() {
            let request = finding["request"].as_str().unwrap_or_default();
            assert!(request.contains(" HTTP/1.1\r\n"), "{finding}");
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[tokio::test]
async fn audit_finds_fields_that_shape_pages() {
    plants_are_found(&PLANTS[..13]).await;
}

#[tokio::test]
async fn audit_finds_wishes_of_browsers_that_shape_pages() {
    plants_are_found(&PLANTS[13..26]).await;
}

#[tokio::test]
async fn audit_finds_arguments_hosts_and_paths_that_shape_pages() {
    plants_are_found(&PLANTS[26..]).await;
}

#[tokio::test]
async fn audit_finds_nothing_at_pages_that_differ_by_themselves() {
    let upstream = FakeHttp::start(answer).await;
    let server = unsafe_server(&upstream).await;
    let (exit, lines) = audit(&server, &urls(CLEAN_PATHS)).await;
    for page in &lines[..CLEAN_PATHS.len()] {
        assert_eq!(findings(page), [], "{page}");
        assert!(page["incomplete"].is_null(), "{page}");
    }
    assert_eq!(exit, 0, "{lines:?}");
}

#[tokio::test]
async fn audit_finds_nothing_behind_cache_shared() {
    let upstream = FakeHttp::start(answer).await;
    let server = server(&format!(
        "location / {{ proxy_pass http://{}; proxy_cache zone; proxy_cache_valid 1h; cache_shared on; }}",
        upstream.address()
    ))
    .await;
    // The faults of another cache are found, since that one stands behind.
    let plants = PLANTS.iter().filter(|it| it.directives != CARELESS);
    let mut paths: Vec<&str> = plants.map(|it| it.path).collect();
    paths.extend(CLEAN_PATHS);
    let (exit, lines) = audit(&server, &urls(paths.iter().copied())).await;
    for page in &lines[..paths.len()] {
        assert_eq!(findings(page), [], "{page}");
        assert!(page["incomplete"].is_null(), "{page}");
    }
    assert_eq!(exit, 0, "{lines:?}");
}

/// A key without arguments: strangers would be shown pages that the audit provokes.
const UNKEYED: &str = "location / { proxy_pass http://UP; proxy_cache zone; proxy_cache_valid 1h;\n\
    proxy_cache_key $scheme$host$uri; proxy_cache_bypass $http_x_forwarded_host; }";

#[tokio::test]
async fn audit_tries_a_page_at_its_plain_address_only_if_it_may() {
    let upstream = FakeHttp::start(answer).await;
    let server = server(&UNKEYED.replace("UP", &upstream.address())).await;
    let (exit, lines) = audit(&server, &urls(["/link"])).await;
    assert_eq!(exit, 2, "{lines:?}");
    let page = &lines[0];
    assert_eq!(page["is_cold"], false);
    let reason = page["incomplete"].as_str().unwrap_or_default();
    assert!(reason.contains("--plain-address"), "{reason}");
    assert_eq!(upstream.requests(), 1);
    let mut arguments = urls(["/link"]);
    arguments.push("--plain-address".to_owned());
    let (exit, lines) = audit(&server, &arguments).await;
    assert_eq!(exit, 1, "{lines:?}");
    let expected = ("poisoning".to_owned(), "X-Forwarded-Host".to_owned());
    assert_eq!(findings(&lines[0]), [expected]);
}

#[tokio::test]
async fn audit_reads_sitemaps_and_says_what_it_leaves_out() {
    let upstream = FakeHttp::start(|request| match request.target.as_str() {
        "/sitemap.xml" => html(
            "<urlset><url><loc>http://site.test/link</loc></url>\
             <url><loc>http://site.test/nonce</loc></url></urlset>"
                .to_owned(),
        ),
        _ => answer(request),
    })
    .await;
    let server = unsafe_server(&upstream).await;
    let arguments = ["--sitemap", "http://site.test/sitemap.xml"].map(str::to_owned);
    let (exit, lines) = audit(&server, &arguments).await;
    assert_eq!(exit, 1, "{lines:?}");
    let (pages, sum) = (&lines[..2], &lines[2]);
    let urls: Vec<&str> = pages
        .iter()
        .filter_map(|page| page["url"].as_str())
        .collect();
    assert_eq!(urls, ["http://site.test/link", "http://site.test/nonce"]);
    assert_eq!((&sum["pages"], &sum["findings"]), (&2.into(), &1.into()));
}

#[tokio::test]
async fn audit_shows_the_request_and_tells_wrong_use_from_no_server() {
    let upstream = FakeHttp::start(answer).await;
    let server = unsafe_server(&upstream).await;
    let there = format!("unix:{}", server.path("http").display());
    let gone = format!("unix:{}", server.path("gone").display());
    let link = "http://site.test/link";
    #[rustfmt::skip]
    let cases = [
        (
            &["--audit", link, "--connect", &there, "--timeout", "5m", "--duration", "1h"][..], 1,
            &[
                "http://site.test/link: 1 finding (", "  poisoning   X-Forwarded-Host\n",
                "                GET /link?mayfly_audit=", "                X-Forwarded-Host: mfw",
                "then, from another visitor: GET /link?mayfly_audit=", "1 page, 1 finding, ",
            ][..],
        ),
        (&["--audit", link, "--connect", &gone], 2, &["no connection to"]),
        (&["--audit", "/link"], 2, &["expected http://"]),
        (&["--audit", link, "-H", "Host: a"], 2, &["--connect ADDRESS"]),
        (&["--audit", "http://192.0.2.1/"], 2, &["another machine: --yes-this-is-mine"]),
        (&[link, link], 2, &["expected one URL"]),
    ];
    for (arguments, exit, parts) in cases {
        let mut command = Command::new(crate::program());
        command.arg("explain").args(arguments);
        let (code, text) = code_and_text(&output(command).await);
        assert_eq!(code, exit, "{arguments:?}: {text}");
        for part in parts {
            assert!(text.contains(part), "{arguments:?}: {part}: {text}");
        }
    }
}
