//! Messages about a mistyped word, another folder, or a port that is taken.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::commands::code_and_text;
use crate::program;

/// The program run to its end in `folder`.
fn run_in(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(program())
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    code_and_text(&output.expect("the program starts"))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

const GOOD: &str = "pid m.pid; error_log stderr; events {} http { access_log off; server { listen unix:m.sock; } }";

#[test]
fn a_mistyped_word_gets_the_list_and_what_was_meant() {
    let folder = folder();
    for (word, tip) in [
        ("sevre", "did you mean \"serve\"?"),
        ("server", "did you mean \"serve\"?"),
        ("start", "mayfly serve DIR"),
        ("stop", "mayfly -s stop"),
    ] {
        let (code, text) = run_in(folder.path(), &[word]);
        assert_eq!(code, 2, "{word}: {text}");
        let words = "serve, check, convert, explain, purge, warm, top, advise, bench, doctor, upgrade, nodes, run, cache, help, version";
        for part in [tip, words] {
            assert!(text.contains(part), "{word}: {text}");
        }
    }
}

#[test]
fn another_programs_option_for_a_port_hints_at_listen() {
    let folder = folder();
    for option in ["--port", "--port=80", "-p"] {
        let (code, text) = run_in(folder.path(), &["serve", ".", option, "80"]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("--listen ADDR:PORT"), "{text}");
        assert!(!text.contains("as a value, use"), "{text}");
    }
}

#[test]
fn a_configuration_is_read_from_where_one_stands_by_check_and_by_c() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("conf")).expect("a folder");
    std::fs::write(folder.path().join("conf/m.conf"), GOOD).expect("a file");
    for arguments in [&["check", "conf/m.conf"][..], &["-t", "-c", "conf/m.conf"]] {
        let (code, text) = run_in(folder.path(), arguments);
        assert!(
            code == 0 || !text.contains("failed (2:"),
            "{arguments:?}: {text}"
        );
        assert!(!text.contains("/etc/mayfly/conf"), "{arguments:?}: {text}");
    }
    // With -p it begins there, as in nginx.
    let prefix = folder.path().to_str().expect("a plain path");
    let (code, text) = run_in(Path::new("/"), &["-p", prefix, "-t", "-c", "conf/m.conf"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_file_that_is_not_there_is_called_so_and_nothing_else() {
    let folder = folder();
    let place = folder.path().canonicalize().expect("a folder");
    let looked_at = format!("\"{}/conf/m.conf\"", place.display());
    for arguments in [
        &["check", "conf/m.conf"][..],
        &["-t", "-c", "conf/m.conf"],
        &["-c", "conf/m.conf"],
        &["-s", "stop", "-c", "conf/m.conf"],
    ] {
        let (code, text) = run_in(&place, arguments);
        assert_eq!(code, 1, "{arguments:?}: {text}");
        assert!(text.contains(&looked_at), "{arguments:?}: {text}");
        assert!(text.contains("mayfly serve DIR"), "{arguments:?}: {text}");
        assert!(!text.contains("\"http\""), "{arguments:?}: {text}");
    }
}

#[test]
fn a_file_of_purge_tokens_that_lets_nobody_in_is_named_once() {
    let folder = folder();
    let tokens = folder.path().join("tokens");
    let directives = format!("cache_purge_api; cache_purge_token {};", tokens.display());
    let locations = format!("location = /a {{ {directives} }} location = /b {{ {directives} }}");
    let conf = GOOD.replace(
        "listen unix:m.sock;",
        &format!("listen unix:m.sock; {locations}"),
    );
    std::fs::write(folder.path().join("m.conf"), conf).expect("a file");
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    for (lines, code, words) in [
        (None, 1, "cannot be read (No such file"),
        (Some("deploy:9f86d0".to_owned()), 1, "in line 1"),
        (Some(format!("deploy:{hash}\n")), 0, "no mistakes found"),
    ] {
        if let Some(lines) = lines {
            std::fs::write(&tokens, lines).expect("a file");
        }
        let (exit, text) = run_in(folder.path(), &["check", "m.conf"]);
        assert_eq!(exit, code, "{text}");
        assert_eq!(text.matches(words).count(), 1, "{text}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_named_once() {
    let folder = folder();
    let server = |name| {
        let files = "ssl_certificate c.pem; ssl_certificate_key c.key;";
        format!("server {{ listen 127.0.0.1:8443 ssl; server_name {name}; {files} }}")
    };
    let servers = [server("a"), server("b ssl_protocols TLSv1.3")].concat();
    let servers = servers.replace("b ssl_protocols", "b; ssl_protocols");
    let conf =
        format!("pid m.pid; error_log stderr; events {{}} http {{ access_log off; {servers} }}");
    std::fs::write(folder.path().join("m.conf"), conf).expect("a file");
    for arguments in [
        &["check", "m.conf"][..],
        &["-t", "-c", "m.conf"],
        &["-c", "m.conf"],
    ] {
        let (code, text) = run_in(folder.path(), arguments);
        assert_eq!(code, 1, "{arguments:?}: {text}");
        assert_eq!(text.matches("cannot load certificate").count(), 1, "{text}");
        assert!(text.contains("c.pem\": No such file"), "{text}");
    }
}

#[test]
fn no_error_of_serve_points_into_a_file_that_is_not_there() {
    let folder = testkit::serving::FolderServer::folder();
    for (arguments, line) in [
        (["--listen", "127.0.0.1:99999"], "listen 127.0.0.1:99999"),
        (["--behind", "nobody"], "trusted_proxy nobody"),
    ] {
        let arguments = [&["serve", "."][..], &arguments].concat();
        let (code, text) = run_in(folder.path(), &arguments);
        assert_eq!(code, 1, "{text}");
        assert!(!text.contains("mayfly-serve.conf"), "{text}");
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_port_in_use_is_told_with_the_process_that_holds_it() {
    let folder = folder();
    let held = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = held.local_addr().expect("an address");
    let text = GOOD.replace("unix:m.sock", &at.to_string());
    std::fs::write(folder.path().join("m.conf"), format!("daemon off; {text}")).expect("a file");
    let prefix = folder.path().to_str().expect("a plain path");
    let (code, text) = run_in(folder.path(), &["-p", prefix, "-c", "m.conf"]);
    let holder = format!("(process {}) listens there", std::process::id());
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains(&format!(
            "bind() to {at} failed (98: Address already in use); "
        )),
        "{text}"
    );
    assert!(text.contains(&holder), "{text}");
}

#[test]
fn a_port_that_is_for_root_is_told_with_the_ways_to_it() {
    let free = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if !rustix::process::geteuid().is_root() || free.is_ok_and(|port| port.trim() == "0") {
        eprintln!("skipped: needs root, who becomes somebody without rights, and ports for root");
        return;
    }
    let folder = testkit::serving::FolderServer::folder();
    let text = GOOD.replace("unix:m.sock", "127.0.0.1:81");
    std::fs::write(folder.path().join("m.conf"), format!("daemon off; {text}")).expect("a file");
    // A place that everybody can reach.
    let copy = folder.path().join("mayfly");
    testkit::process::copy_program(program().as_ref(), &copy);
    std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).expect("root may");
    let output = Command::new(&copy)
        .args(["-p", ".", "-c", "m.conf"])
        .current_dir(folder.path())
        .uid(65534)
        .gid(65534)
        .output()
        .expect("the program starts");
    let (code, text) = code_and_text(&output);
    assert_eq!(code, 1, "{text}");
    for part in [
        "port 81 is for root",
        "setcap cap_net_bind_service=+ep",
        "AmbientCapabilities",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
