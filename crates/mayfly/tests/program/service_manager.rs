//! The notices to a service manager such as systemd, and the sockets that it passes. The manager is the
//! test.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use testkit::http3::QuicClient;
use testkit::process::{Signal, children, is_alive, is_root, send_signal};
use testkit::started::StartedProcess;
use testkit::tls::Authority;
use testkit::wait::{TIMEOUT, until};

use crate::program;

/// Short, so that several signs of life come within a test.
const WATCHDOG: Duration = Duration::from_millis(300);

/// A program that a service manager has started.
struct Service {
    server: StartedProcess,
    notifications: UnixDatagram,
}

/// Sockets that are passed, in the order of their names.
#[derive(Default)]
struct PassedSockets {
    first: Option<OwnedFd>,
    second: Option<OwnedFd>,
    names: &'static str,
}

impl Service {
    /// Starts the program with this user and `http`, in which `%%` stands for its folder.
    fn start(user: &str, http: &str, passed: PassedSockets) -> Service {
        let folder = tempfile::tempdir().expect("a folder");
        write_configuration(&folder, http);
        let notifications = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        notifications
            .set_read_timeout(Some(TIMEOUT))
            .expect("a limit");
        let count = usize::from(passed.first.is_some()) + usize::from(passed.second.is_some());
        // Descriptors behind the standard streams, and the number of the process in systemd's variable.
        let script = "exec 3<&0 4<&1 </dev/null >/dev/null; LISTEN_PID=$$ exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", program(), "-p"]);
        command.arg(folder.path());
        if is_root() {
            command.args(["-g", user]);
        }
        let child = command
            .args(["-c", "test.conf", "-e", "error.log"])
            .env("NOTIFY_SOCKET", folder.path().join("notify"))
            .env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string())
            .env("LISTEN_FDS", count.to_string())
            .env("LISTEN_FDNAMES", passed.names)
            .stdin(passed.first.map_or_else(Stdio::null, Stdio::from))
            .stdout(passed.second.map_or_else(Stdio::null, Stdio::from))
            .stderr(std::fs::File::create(folder.path().join("stderr")).expect("a file"))
            .spawn()
            .expect("the program starts");
        Service {
            server: StartedProcess::new(child, folder, &["error.log", "stderr"]),
            notifications,
        }
    }

    /// The next message.
    fn next(&self) -> String {
        let mut bytes = [0; 4096];
        let received = self.notifications.recv(&mut bytes);
        let length = received.unwrap_or_else(|error| {
            panic!("no message ({error}): {}", self.server.error_log());
        });
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// Reads away all messages that have come.
    fn forget_what_came(&self) {
        let set_mode = |on| self.notifications.set_nonblocking(on).expect("a mode");
        set_mode(true);
        while self.notifications.recv(&mut [0; 4096]).is_ok() {}
        set_mode(false);
    }

    /// From now on, no message gets through until one is read.
    fn fill(&self) {
        let filler = UnixDatagram::unbound().expect("a socket");
        filler.set_nonblocking(true).expect("a mode");
        let path = self.server.path("notify");
        while filler.send_to(b"FULL=1", &path).is_ok() {}
    }

    /// The next message that is no sign of life.
    fn next_state(&self) -> String {
        loop {
            let message = self.next();
            if message != "WATCHDOG=1" {
                return message;
            }
        }
    }
}

fn write_configuration(folder: &TempDir, http: &str) {
    let shown = folder.path().to_str().expect("a plain path");
    let text = format!(
        "pid {shown}/pid;\nerror_log {shown}/error.log info;\nevents {{}}\n\
         http {{ access_log off; {http} }}\n"
    );
    std::fs::write(folder.path().join("test.conf"), text.replace("%%", shown)).expect("a file");
}

const ONE: &str = "server { listen unix:%%/http; return 200 one; }";

#[tokio::test]
async fn service_manager_hears_of_start_reload_and_end() {
    let mut service = Service::start("user root;", ONE, PassedSockets::default());
    assert_eq!(service.next_state(), "READY=1\nSTATUS=Serving");
    assert_eq!(service.server.target().get("/").await.text(), "one");

    service.server.signal(Signal::HUP);
    let reloading = service.next_state();
    assert!(
        reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
        "{reloading}"
    );
    assert_eq!(service.next_state(), "READY=1\nSTATUS=Serving");

    service.server.write("test.conf", "nonsense;\nevents {}");
    service.server.signal(Signal::HUP);
    assert!(service.next_state().starts_with("RELOADING=1"));
    let refused = service.next_state();
    assert!(
        refused.starts_with("READY=1\nSTATUS=") && refused.contains("nonsense"),
        "{refused}"
    );

    service.server.signal(Signal::QUIT);
    assert!(service.next_state().starts_with("STOPPING=1"));
    assert!(service.server.ended().await.success());
}

#[tokio::test]
async fn only_workers_that_answer_give_signs_of_life() {
    if !is_root() {
        eprintln!("skipped: only root has a worker process");
        return;
    }
    let service = Service::start("user nobody;", ONE, PassedSockets::default());
    assert_eq!(service.next_state(), "READY=1\nSTATUS=Serving");
    for _ in 0..3 {
        assert_eq!(service.next(), "WATCHDOG=1");
    }
    let worker = children(service.server.pid());
    let [worker] = worker[..] else {
        panic!("one worker process: {worker:?}")
    };
    send_signal(worker, Signal::STOP);
    // Signs that were on their way may come, and then none for as long as the manager would wait.
    let silence = service.notifications.set_read_timeout(Some(WATCHDOG * 2));
    silence.expect("a limit");
    let mut on_their_way = 0;
    while service.notifications.recv(&mut [0; 4096]).is_ok() {
        on_their_way += 1;
        assert!(
            on_their_way < 10,
            "signs of life of a worker that is stopped"
        );
    }
    send_signal(worker, Signal::CONT);
    let limit = service.notifications.set_read_timeout(Some(TIMEOUT));
    limit.expect("a limit");
    assert_eq!(service.next(), "WATCHDOG=1", "it goes on");
}

#[tokio::test]
async fn service_manager_that_does_not_read_holds_nothing_up() {
    let mut service = Service::start("user root;", ONE, PassedSockets::default());
    assert_eq!(service.next_state(), "READY=1\nSTATUS=Serving");
    service.fill();
    assert!(service.server.end().await.success());
}

#[tokio::test]
async fn sockets_of_the_service_manager_are_listened_on() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (tcp_address, udp_address) = (
        tcp.local_addr().expect("an address"),
        udp.local_addr().expect("an address"),
    );
    // The test keeps them as a service manager does: the program could not bind them itself.
    let passed = PassedSockets {
        first: Some(tcp.try_clone().expect("a copy").into()),
        second: Some(udp.try_clone().expect("a copy").into()),
        names: "web:other",
    };
    let http =
        format!("server {{ listen {tcp_address}; listen unix:%%/http; return 200 passed; }}");
    let service = Service::start("user root;", &http, passed);
    assert_eq!(service.next_state(), "READY=1\nSTATUS=Serving");
    let mut stream = std::net::TcpStream::connect(tcp_address).expect("a connection");
    std::io::Write::write_all(&mut stream, b"GET / HTTP/1.0\r\n\r\n").expect("sent");
    let mut response = String::new();
    std::io::Read::read_to_string(&mut stream, &mut response).expect("a response");
    assert!(response.ends_with("passed"), "{response}");
    let line = format!("passed \"other\" on {udp_address}, where no \"listen\" is");
    until("a warning of the other", || {
        service.server.error_log().contains(&line)
    })
    .await;
}

#[tokio::test]
async fn quic_comes_on_a_socket_of_the_service_manager() {
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = udp.local_addr().expect("an address");
    let passed = PassedSockets {
        first: Some(udp.try_clone().expect("a copy").into()),
        second: None,
        names: "quic",
    };
    let authority = Authority::new("test authority");
    let identity = authority.identity("a.test");
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    write("a.pem", identity.certificate_pem());
    write("a.key", identity.key_pem());
    let shown = folder.path().display();
    let http = format!(
        "server {{ listen {address} quic; server_name a.test; ssl_certificate {shown}/a.pem; \
         ssl_certificate_key {shown}/a.key; return 200 quic; }}"
    );
    let service = Service::start("user root;", &http, passed);
    assert_eq!(service.next_state(), "READY=1\nSTATUS=Serving");
    let quic = QuicClient::new(&authority, &["h3"], None);
    let client = quic.http3(address, "a.test").await;
    assert_eq!(client.get("/").await.body, b"quic");
}

#[tokio::test]
async fn file_of_a_passed_unix_socket_stays_the_managers() {
    let own = tempfile::tempdir().expect("a folder");
    let path = own.path().join("web.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let passed = PassedSockets {
        first: Some(listener.try_clone().expect("a copy").into()),
        second: None,
        names: "web",
    };
    let http = format!(
        "server {{ listen unix:{}; return 200 passed; }}",
        path.display()
    );
    let mut service = Service::start("user root;", &http, passed);
    assert_eq!(service.next_state(), "READY=1\nSTATUS=Serving");
    assert_eq!(get(&path).await, "passed");
    assert!(service.server.end().await.success());
    assert!(path.exists());
}

async fn get(socket: &Path) -> String {
    testkit::client::Target(socket.to_owned())
        .get("/")
        .await
        .text()
}

#[tokio::test]
async fn service_manager_hears_which_process_goes_on_after_an_upgrade() {
    let mut service = Service::start("user root;", ONE, PassedSockets::default());
    assert_eq!(service.next_state(), "READY=1\nSTATUS=Serving");
    let mut upgrade = Command::new(program());
    upgrade.arg("upgrade").arg("--socket");
    let upgrade = upgrade.arg(service.server.path("pid.control")).spawn();
    // The new program reports that it is ready, which a manager does not hear from it yet.
    let main = loop {
        let message = service.next_state();
        assert!(!message.contains("STOPPING=1"), "the service goes on");
        if let Some(rest) = message.strip_prefix("MAINPID=") {
            break rest.lines().next().and_then(|pid| pid.parse().ok());
        }
    };
    let upgraded = upgrade.and_then(|mut command| command.wait());
    assert!(upgraded.expect("the command").success());
    let main: u32 = main.expect("a number");
    assert_ne!(main, service.server.pid());
    assert!(service.server.ended().await.success());
    assert_eq!(service.server.target().get("/").await.text(), "one");
    service.forget_what_came();
    // The new one reports that it is ready only now if it is slower than the end of the old one.
    let ready = "READY=1\nSTATUS=Serving";
    let sign = std::iter::repeat_with(|| service.next()).find(|message| message != ready);
    assert_eq!(
        sign.as_deref(),
        Some("WATCHDOG=1"),
        "the new one gives signs of life"
    );
    send_signal(main, Signal::TERM);
    until("the new one ends", || !is_alive(main)).await;
}
