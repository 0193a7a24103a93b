//! `listen`: sockets, who shares them, and the message about one that is taken.

use std::os::unix::fs::PermissionsExt;

use testkit::client::Target;
use testkit::process::free_port;

use crate::command_line::{SMALL, code, folder, run, stderr};
use crate::start;

#[tokio::test]
async fn every_socket_listens_when_the_pid_file_is_there() {
    let port = free_port();
    let http = format!(
        "server {{ listen unix:%%/http; listen unix:%%/other; listen 127.0.0.1:{port}; return 200 $server_port; }}"
    );
    let server = start(&http).await;
    // No second try: the first connection must do.
    assert_eq!(server.target().get("/").await.status, 200);
    assert_eq!(Target(server.path("other")).get("/").await.status, 200);
    std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let text = std::fs::read_to_string(server.path("pid")).expect("a pid file");
    assert_eq!(text, format!("{}\n", server.pid()));
    let mode = std::fs::metadata(server.path("http"))
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o666);
}

#[tokio::test]
async fn a_wildcard_and_an_address_of_its_port_share_a_socket_not_their_servers() {
    use std::io::{Read, Write};
    for (wildcard, address) in [("0.0.0.0", "127.0.0.1"), ("[::]", "[::1]")] {
        let port = free_port();
        let http = format!(
            "server {{ listen {address}:{port}; return 200 address; }}\n\
             server {{ listen {wildcard}:{port}; return 200 wildcard; }}"
        );
        let _server = start(&http).await;
        for (to, wanted) in [(address, "address"), ("127.0.0.2", "wildcard")] {
            if wanted == "wildcard" && wildcard == "[::]" {
                continue; // There is no second loopback address.
            }
            let mut stream =
                std::net::TcpStream::connect(format!("{to}:{port}")).expect("it listens");
            stream
                .write_all(b"GET / HTTP/1.0\r\n\r\n")
                .expect("it reads");
            let mut reply = String::new();
            stream.read_to_string(&mut reply).expect("it answers");
            assert!(reply.ends_with(wanted), "{to}: {reply}");
        }
    }
}

#[tokio::test]
async fn socket_in_use_is_refused_in_nginxs_words() {
    let server = start("server { listen unix:%%/http; return 200 one; }").await;
    let socket = server.path("http");
    let text = SMALL.replace("%%/http", socket.to_str().expect("a plain path"));
    let folder = folder(&[("test.conf", &text)]);
    let output = run(folder.path(), &["-c", "test.conf"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("[emerg] bind() to unix:"), "{said}");
    assert!(
        said.contains("failed (98: Address already in use)"),
        "{said}"
    );
    assert!(said.contains("still could not bind() to unix:"), "{said}");
    assert_eq!(said.matches("Address already in use").count(), 1, "{said}");
    assert!(!folder.path().join("pid").exists());
    assert_eq!(
        server.target().get("/").await.text(),
        "one",
        "the first is not disturbed"
    );
}
