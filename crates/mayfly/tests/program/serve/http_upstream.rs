//! `mayfly serve URL`: in front of an HTTP server, without a configuration.

use std::process::{Command, Stdio};

use testkit::process::{KilledOnDrop, free_port};

use crate::{program, start};

/// One GET over TCP: the whole response as a text.
fn get_tcp(port: u16, fields: &str) -> Option<String> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request =
        format!("GET /page HTTP/1.1\r\nHost: site.test:81\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[tokio::test]
async fn serve_stands_in_front_of_an_http_server_without_a_configuration() {
    let (origin_port, port) = (free_port(), free_port());
    let origin = start(&format!(
            "server {{ listen 127.0.0.1:{origin_port}; listen unix:%%/http; location /page {{\n\
             add_header X-Number $request_id; add_header X-Seen \"$http_host $http_x_forwarded_proto $http_x_real_ip\";\n\
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
    let first = get_tcp(port, "").expect("an answer");
    assert!(
        first.contains("X-Cache: MISS") && first.ends_with("page"),
        "{first}"
    );
    assert!(
        first.contains("X-Seen: site.test:81 http 127.0.0.1"),
        "{first}"
    );
    let number = |text: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix("X-Number: "))
            .map(str::to_owned)
    };
    let second = get_tcp(port, "").expect("an answer");
    assert!(second.contains("X-Cache: HIT"), "{second}");
    assert_eq!(number(&first), number(&second));
    let own = get_tcp(port, "Cookie: session=1\r\n").expect("an answer");
    assert!(own.contains("X-Cache: BYPASS"), "{own}");
    assert_ne!(number(&own), number(&first));
    // What is in memory outlives the upstream.
    drop(origin);
    let after = get_tcp(port, "").expect("an answer");
    assert!(
        after.contains("X-Cache: HIT") && after.ends_with("page"),
        "{after}"
    );
}
