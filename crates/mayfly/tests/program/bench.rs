//! `mayfly bench`: the program's part beside the crate that does the work.

use std::process::{Command, Output};

use testkit::process::{Signal, free_port, send_signal};

use crate::commands::{ended, output};
use crate::start;

async fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(crate::program_with_tools());
    command.args(arguments);
    output(command).await
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn only_this_machine_gets_load_unless_one_says_that_it_is_ones_own() {
    for url in ["http://192.0.2.1/", "http://[2001:db8::1]:8080/"] {
        let output = run(&["bench", url, "--duration", "1s"]).await;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("--yes-this-is-mine"), "{said}");
    }
    for (url, words) in [
        ("localhost", "expected http://"),
        ("http://a b/", "without blanks"),
    ] {
        let output = run(&["bench", url]).await;
        assert!(text(&output.stderr).contains(words));
    }
}

#[tokio::test]
async fn a_closed_port_is_said_at_once() {
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    // A day of load would end with the same words.
    let output = run(&["bench", &url, "--duration", "86400s"]).await;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&format!("nothing listens at 127.0.0.1:{port}")),
        "{said}"
    );
}

#[tokio::test]
async fn a_report_is_text_json_and_a_page_and_two_servers_are_compared() {
    let (port, other) = (free_port(), free_port());
    let server = start(&format!(
        "server {{ listen unix:%%/http; listen 127.0.0.1:{port}; return 200 hello; }}\n\
         server {{ listen 127.0.0.1:{other}; return 404; }}"
    ))
    .await;
    let (first, second) = (
        format!("http://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{other}/"),
    );
    let output = run(&[
        "bench",
        &first,
        "--rate",
        "100",
        "--duration",
        "500ms",
        "--json",
    ])
    .await;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&report["answers"], &report["statuses"]["200"]),
        (&50.into(), &50.into())
    );
    let page = server.path("report.html");
    let arguments = [
        "bench",
        &first,
        "--compare",
        &second,
        "--duration",
        "400ms",
        "--html",
    ];
    let output = run(&[&arguments[..], &[page.to_str().expect("a path")]].concat()).await;
    let said = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{said}{}",
        text(&output.stderr)
    );
    assert!(
        said.contains("second/first") && said.contains("404"),
        "{said}"
    );
    assert!(server.read("report.html").contains("<svg"));
}

#[tokio::test]
async fn an_interrupt_ends_the_run_and_what_was_measured_is_shown() {
    let port = free_port();
    let server = start(&format!(
        "server {{ listen unix:%%/http; listen 127.0.0.1:{port}; access_log %%/access.log; return 200 hello; }}"
    ))
    .await;
    let mut command = Command::new(crate::program_with_tools());
    command.args([
        "bench",
        &format!("http://127.0.0.1:{port}/"),
        "--rate",
        "50",
        "--duration",
        "1h",
    ]);
    command.stdout(std::process::Stdio::piped());
    let child = command.spawn().expect("the program");
    testkit::wait::until("requests", || !server.read("access.log").is_empty()).await;
    send_signal(child.id(), Signal::INT);
    let output = ended(child).await;
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("p99.9"));
}
