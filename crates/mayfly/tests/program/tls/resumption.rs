//! Sessions that begin where an earlier one ended, and the versions of TLS.

use std::process::{Command, Stdio};

use rustls::{ProtocolVersion, SupportedProtocolVersion, version};
use testkit::process::Signal;
use testkit::running::RunningServer;
use testkit::tls_client::{Offer, TlsClient};
use testkit::wait::until;

use super::{Certificates, ask, connect, site};

const VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

/// Makes a connection and a request on it, and returns whether the session was resumed, and
/// the server's answer about that.
async fn is_resumed(client: &TlsClient, server: &RunningServer) -> (bool, String) {
    let mut connection = connect(client, server, "a.test").await;
    let page = ask(&mut connection.client, "a.test", "/").await.text();
    (connection.is_resumed, page)
}

#[tokio::test]
async fn sessions_are_resumed_by_ticket_or_cache_across_workers_and_a_reload() {
    let certificates = Certificates::new();
    let page = "return 200 $ssl_session_reused;";
    for (directives, resumes) in [
        ("", true),
        (
            "ssl_session_tickets off; ssl_session_cache shared:a:1m;",
            true,
        ),
        (
            "ssl_session_tickets on; ssl_session_cache shared:a:1m;",
            true,
        ),
        ("ssl_session_tickets off;", false),
        ("ssl_session_tickets off; ssl_session_cache none;", false),
    ] {
        let http = site(&format!("{directives} {page}"));
        let server = certificates.start_with("worker_processes 2;", &http).await;
        for version in VERSIONS {
            let client = certificates.client_of(&Offer {
                versions: &[version],
                ..Offer::default()
            });
            let expected = match resumes {
                true => (true, "r".to_owned()),
                false => (false, ".".to_owned()),
            };
            let case = format!("{directives} {version:?}");
            assert_eq!(is_resumed(&client, &server).await, (false, ".".to_owned()));
            // Two workers: one of the next is another's.
            for _ in 0..4 {
                assert_eq!(is_resumed(&client, &server).await, expected, "{case}");
            }
        }
        // Sessions begun ahead of the reload.
        let clients = VERSIONS.map(|version| {
            certificates.client_of(&Offer {
                versions: &[version],
                ..Offer::default()
            })
        });
        for client in &clients {
            is_resumed(client, &server).await;
        }
        server.signal(Signal::HUP);
        until("the reload", || server.error_log().contains("reloaded")).await;
        for client in &clients {
            let (found, _) = is_resumed(client, &server).await;
            assert_eq!(found, resumes, "{directives} after a reload");
        }
    }
}

#[tokio::test]
async fn ssl_protocols_decides_the_version() {
    let certificates = Certificates::new();
    let both = Some(ProtocolVersion::TLSv1_3);
    let (two, three) = (Some(ProtocolVersion::TLSv1_2), both);
    for (protocols, only_two, only_three, any) in [
        ("TLSv1.2 TLSv1.3", two, three, three),
        ("TLSv1.2", two, None, two),
        ("TLSv1.3", None, three, three),
        ("TLSv1 TLSv1.1 TLSv1.2", two, None, two),
    ] {
        let server = certificates
            .site(&format!("ssl_protocols {protocols}; return 200 page;"))
            .await;
        for (versions, expected) in [
            (&[&version::TLS12][..], only_two),
            (&[&version::TLS13], only_three),
            (&VERSIONS, any),
        ] {
            let client = certificates.client_of(&Offer {
                versions,
                ..Offer::default()
            });
            let connected = client.connect(&server.path("http"), "a.test").await;
            let found = connected.ok().map(|connection| connection.version);
            assert_eq!(found, expected, "{protocols} {versions:?}");
        }
    }
}

/// Returns the output of `openssl s_client` with these arguments.
fn openssl(server: &RunningServer, arguments: &[&str]) -> Option<String> {
    let output = Command::new("openssl")
        .args(["s_client", "-unix"])
        .arg(server.path("http"))
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: no openssl");
        return None;
    };
    let said = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&said).into_owned())
}

#[tokio::test]
async fn nothing_below_tls_1_2_is_spoken_and_no_weak_cipher() {
    let certificates = Certificates::new();
    let server = certificates
        .site("ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3; return 200 page;")
        .await;
    let all = "ALL:@SECLEVEL=0";
    for (version, cipher, works) in [
        ("-tls1", all, false),
        ("-tls1_1", all, false),
        ("-tls1_2", all, true),
        ("-tls1_2", "AES128-SHA:@SECLEVEL=0", false),
        ("-tls1_2", "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0", false),
        ("-tls1_3", all, true),
    ] {
        let Some(said) = openssl(&server, &[version, "-cipher", cipher]) else {
            return;
        };
        let has_session = !said.contains("Cipher is (NONE)") && said.contains("Cipher is ");
        assert_eq!(has_session, works, "{version} {cipher}: {said}");
    }
}
