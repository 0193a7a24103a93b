//! Reads a configuration from a text, with a resolver, a host name and directories that are
//! always the same.

use nginx_conf::MemoryLoader;
use site::{LowerOptions, ReadConfiguration, read_with};

/// A text may hold several files: a line `=== PATH` begins the next.
pub fn read(input: &str) -> ReadConfiguration {
    let mut files = vec![("/etc/mayfly/mayfly.conf".to_owned(), String::new())];
    for line in input.split_inclusive('\n') {
        match line.strip_prefix("=== ") {
            Some(path) => files.push((path.trim().to_owned(), String::new())),
            None => files.last_mut().unwrap().1.push_str(line),
        }
    }
    let loader: MemoryLoader = files.into_iter().collect();
    read_with(
        "/etc/mayfly/mayfly.conf".as_ref(),
        None,
        &loader,
        &options(),
    )
}

#[test]
fn files_that_the_server_writes_are_not_in_etc() {
    let text = "error_log own.log; events {} http { access_log $host.log; proxy_cache_path pages keys_zone=z:1m; \
                server { location / { proxy_pass http://127.0.0.1; } } }";
    let loader: MemoryLoader = [("/etc/mayfly/mayfly.conf", text)].into_iter().collect();
    let options = LowerOptions {
        prefix: "/etc/mayfly".into(),
        ..options()
    };
    let reading = read_with("/etc/mayfly/mayfly.conf".as_ref(), None, &loader, &options);
    let site = reading.site.expect("a site");
    let written = format!("{site:?}");
    for path in [
        "/run/mayfly/mayfly.pid",
        "/var/log/mayfly/own.log",
        "/var/cache/mayfly/pages",
        "/var/lib/mayfly/client_body_temp",
        "/var/lib/mayfly/proxy_temp",
    ] {
        assert!(
            written.contains(&format!("\"{path}\"")),
            "{path}: {written}"
        );
    }
}

fn options() -> LowerOptions {
    LowerOptions {
        prefix: "/srv/mayfly".into(),
        conf_folder: "/etc/mayfly".into(),
        error_log: None,
        text_name: None,
        privileged: true,
        hostname: "machine".to_owned(),
        resolve: |host, port| match host {
            "localhost" => Ok(vec![([127, 0, 0, 1], port).into()]),
            "php" => Ok(vec![([192, 0, 2, 9], port).into()]),
            "two.example" => Ok(vec![
                ([192, 0, 2, 1], port).into(),
                ([192, 0, 2, 2], port).into(),
            ]),
            _ => Err(std::io::Error::other("no such host")),
        },
    }
}
