//! `mayfly serve URL`: in front of an HTTP server, without a configuration.

use std::process::{Command, Stdio};

use testkit::fake_http::{FakeHttp, Script};
use testkit::process::{KilledOnDrop, free_port};
use testkit::serving::FolderServer;

use crate::command_line::words;
use crate::{program, start};

/// One GET over TCP, for a host: the whole response as a text.
pub fn get_tcp(port: u16, host: &str, fields: &str) -> Option<String> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request =
        format!("GET /page HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[tokio::test]
async fn serve_stands_in_front_of_an_http_server_without_a_configuration() {
    let (origin_port, port) = (free_port(), free_port());
    let origin = start(&format!(
            "map $http_cookie $seen {{ default \"$http_host $http_x_forwarded_proto $http_x_real_ip\"; '' ''; }}\n\
             server {{ listen 127.0.0.1:{origin_port}; listen unix:%%/http; location /page {{\n\
             add_header X-Number $request_id; add_header X-Seen $seen;\n\
             return 200 page; }} }}"
        ),
    )
    .await;
    let child = Command::new(program())
        .args([
            "serve",
            &format!("http://127.0.0.1:{origin_port}/"),
            "--ttl",
            "1h",
        ])
        .args(["--listen", &format!("127.0.0.1:{port}")])
        // In memory alone.
        .env("CACHE_DIRECTORY", "/dev/shm")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut served = KilledOnDrop(child);
    let said = {
        use std::io::BufRead;
        let stdout = served.0.stdout.take().expect("its words");
        let lines = std::io::BufReader::new(stdout).lines();
        let lines = lines.map_while(Result::ok);
        let mut said = Vec::new();
        for line in lines {
            said.push(line);
            if said.last().is_some_and(|line| line.contains("Ctrl-C")) {
                break;
            }
        }
        said.join("\n")
    };
    assert!(
        said.contains(&format!("Serving what http://127.0.0.1:{origin_port} says")),
        "{said}"
    );
    assert!(
        said.contains(&format!("http://127.0.0.1:{port}/")),
        "{said}"
    );
    let get = |fields: &str| get_tcp(port, "site.test:81", fields).expect("an answer");
    let number = |text: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix("X-Number: "))
            .map(str::to_owned)
    };
    // The first visit is the visitor's own, and the second makes the page for all.
    let made = ["MISS", "MISS"].map(|cache| {
        let text = get("");
        let is_made = text.contains(&format!("X-Cache: {cache}")) && text.ends_with("page");
        assert!(is_made, "{text}");
        number(&text)
    });
    assert_ne!(made[0], made[1]);
    let third = get("");
    assert!(third.contains("X-Cache: HIT"), "{third}");
    assert_eq!(number(&third), made[1]);
    let own = get("Cookie: session=1\r\n");
    assert!(own.contains("X-Cache: BYPASS"), "{own}");
    assert!(own.contains("X-Seen: site.test:81 http 127.0.0.1"), "{own}");
    assert!(!made.contains(&number(&own)), "{own}");
    // A page in memory outlives the upstream.
    drop(origin);
    let after = get_tcp(port, "site.test:81", "").expect("an answer");
    assert!(
        after.contains("X-Cache: HIT") && after.ends_with("page"),
        "{after}"
    );
}

/// The configuration of `serve` is no file: an explanation names the command that
/// prints it.
#[tokio::test]
async fn an_explanation_points_to_a_line_that_can_be_printed() {
    let http = FakeHttp::start(|_| Script::page("Cache-Control: max-age=3600\r\n", "page")).await;
    let server = FolderServer::start(program(), &http.url(), &["--ttl", "7s"]).await;
    server.target().get("/").await;
    let control = server.control();
    let control = control.to_str().expect("a plain path");
    let output = words(&["explain", "http://site.test/", "--socket", control]);
    let text = String::from_utf8_lossy(&output.stdout);
    let told = text.lines().find(|line| line.contains("cache_max_valid"));
    let told = told.unwrap_or_else(|| panic!("{text}"));
    let place = told.split_once("line ").map_or("", |(_, rest)| rest);
    let (number, rest) = place.split_once(' ').expect("a number");
    let line = rest.strip_prefix("of mayfly serve --print-config: ");
    let line = line.unwrap_or_else(|| panic!("{told}"));
    let printed = words(&["serve", &http.url(), "--ttl", "7s", "--print-config"]);
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let number: usize = number.parse().expect("a number");
    let there = printed.lines().nth(number - 1).expect("such a line");
    assert_eq!(there.trim(), format!("{line};"), "{text}");
}
