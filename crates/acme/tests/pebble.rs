//! Issuance and renewal with Pebble as the issuer.

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use acme::{
    AccountKey, Authority, CertificateRequest, Challenge, ChallengeAnswer, Clock, ExternalAccount,
    Host, Issuer, KeyType, Level, Machines, MachinesAnswer, Profile, Renewal, Store,
};
use parking_lot::Mutex;
use testkit::pebble::{Pebble, PebbleOptions};
use testkit::wait::until_or;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A server of certificates: gives the challenge answers on a port of its own.
#[derive(Default)]
struct Site {
    tokens: Mutex<HashMap<String, String>>,
    installed: Mutex<Vec<Vec<u8>>>,
    log: Mutex<Vec<(Level, String)>>,
}

impl Host for Site {
    fn present(&self, answer: ChallengeAnswer) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        if let ChallengeAnswer::Http { token, content } = answer {
            self.tokens.lock().insert(token, content);
        }
        Box::pin(std::future::ready(()))
    }

    fn withdraw(&self, answer: &ChallengeAnswer) {
        if let ChallengeAnswer::Http { token, .. } = answer {
            self.tokens.lock().remove(token);
        }
    }

    fn install(&self, _: &str, pem: Vec<u8>) {
        self.installed.lock().push(pem);
    }

    fn log(&self, level: Level, message: String) {
        self.log.lock().push((level, message));
    }
}

impl Site {
    /// Answers on a port.
    async fn start() -> (Arc<Site>, u16) {
        let site = Arc::new(Site::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answering = site.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = answering.answer(stream).await;
            }
        });
        (site, port)
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let head = read_head(&mut stream).await?;
        let head = String::from_utf8_lossy(&head).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default();
        let token = path.rsplit('/').next().unwrap_or_default();
        let content = self.tokens.lock().get(token).cloned().unwrap_or_default();
        let length = content.len();
        let response = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{content}"
        );
        stream.write_all(response.as_bytes()).await
    }

    fn said(&self) -> String {
        let log = self.log.lock();
        let lines = log
            .iter()
            .map(|(level, line)| format!("{level:?} {line}\n"));
        lines.collect()
    }

    /// Waits until `count` certificates are installed.
    async fn installed(&self, count: usize) {
        let is_so = || self.installed.lock().len() >= count;
        until_or(is_so, || format!("no certificate: {}", self.said())).await;
    }
}

async fn read_head(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(head)
}

/// A clock that stands still until it is set.
struct TestClock {
    now: Mutex<SystemTime>,
    set: Notify,
}

impl TestClock {
    fn new() -> Arc<TestClock> {
        Arc::new(TestClock {
            now: Mutex::new(SystemTime::now()),
            set: Notify::new(),
        })
    }

    fn advance(&self, time: Duration) {
        *self.now.lock() += time;
        self.set.notify_waiters();
    }
}

impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        *self.now.lock()
    }

    fn sleep_until(&self, moment: SystemTime) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                let mut set = std::pin::pin!(self.set.notified());
                set.as_mut().enable();
                if self.now() >= moment {
                    return;
                }
                set.await;
            }
        })
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// Everything that takes part.
struct Scene {
    pebble: Pebble,
    site: Arc<Site>,
    clock: Arc<TestClock>,
    folder: tempfile::TempDir,
}

impl Scene {
    async fn new(options: PebbleOptions) -> Scene {
        let (site, http_port) = Site::start().await;
        let options = PebbleOptions {
            http_port,
            ..options
        };
        Scene {
            pebble: Pebble::start(options).await,
            site,
            clock: TestClock::new(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    fn issuer(&self) -> Issuer {
        Issuer {
            name: "pebble".to_owned(),
            directory: self.pebble.directory(),
            contacts: vec!["mailto:admin@example.org".to_owned()],
            account_key: AccountKey::Generated,
            external_account: None,
            accepts_terms: true,
            challenge: Challenge::Http01,
            profile: None,
            trusted: Some(std::fs::read(self.pebble.authority_file()).unwrap()),
        }
    }

    fn renewal(&self, issuer: Issuer, names: &[&str]) -> Renewal {
        let store = Arc::new(Store::open(&self.state()).unwrap());
        Renewal {
            authority: Arc::new(Authority::new(issuer, store).unwrap()),
            request: CertificateRequest {
                names: names.iter().map(|&name| name.to_owned()).collect(),
                key: KeyType::EcdsaP256,
                file_stem: "certificate".to_owned(),
            },
            host: self.site.clone(),
            clock: self.clock.clone(),
            machines: None,
        }
    }

    /// Returns the renewal on another machine, with a folder of its own.
    fn on(&self, machine: usize, engine: &Arc<TestEngine>) -> Renewal {
        let folder = self.folder.path().join(format!("machine{machine}"));
        let store = Arc::new(Store::open(&folder).unwrap());
        Renewal {
            authority: Arc::new(Authority::new(self.issuer(), store).unwrap()),
            machines: Some(Arc::new(TestMachine(machine, engine.clone()))),
            ..self.renewal(self.issuer(), &["example.org"])
        }
    }

    /// Runs the renewal until `count` certificates are installed, then stops it.
    async fn until_installed(&self, issuer: Issuer, names: &[&str], count: usize) {
        let task = tokio::spawn(self.renewal(issuer, names).run());
        self.site.installed(count).await;
        task.abort();
        let _ = task.await;
    }

    async fn until_said(&self, what: &str) {
        let is_so = || self.site.said().contains(what);
        until_or(is_so, || format!("not said: {what}: {}", self.site.said())).await;
    }
}

/// The engine that the machines of a test share.
#[derive(Default)]
struct TestEngine {
    certificate: Mutex<Option<Vec<u8>>>,
    /// The machine whose turn it is.
    turn: Mutex<Option<usize>>,
    is_away: Mutex<bool>,
}

struct TestMachine(usize, Arc<TestEngine>);

impl TestMachine {
    fn answer<T: Send + 'static>(&self, answer: T) -> MachinesAnswer<'static, T> {
        let answer = match *self.1.is_away.lock() {
            true => Err("the engine is away".into()),
            false => Ok(answer),
        };
        Box::pin(std::future::ready(answer))
    }
}

impl Machines for TestMachine {
    fn certificate<'a>(&'a self, _: &'a CertificateRequest) -> MachinesAnswer<'a, Option<Vec<u8>>> {
        self.answer(self.1.certificate.lock().clone())
    }

    fn turn<'a>(&'a self, _: &'a CertificateRequest, _: Duration) -> MachinesAnswer<'a, bool> {
        let of = *self.1.turn.lock().get_or_insert(self.0);
        self.answer(of == self.0)
    }

    fn give<'a>(
        &'a self,
        _: &'a CertificateRequest,
        pem: &'a [u8],
        _: SystemTime,
    ) -> MachinesAnswer<'a, ()> {
        *self.1.certificate.lock() = Some(pem.to_vec());
        self.answer(())
    }
}

#[tokio::test]
async fn one_machine_asks_the_issuer_and_the_others_get_the_certificate() {
    let scene = Scene::new(PebbleOptions::default()).await;
    let engine = Arc::new(TestEngine::default());
    // It is another one's turn, which has not come back with a certificate.
    *engine.turn.lock() = Some(7);
    let tasks: Vec<_> = (0..3)
        .map(|machine| tokio::spawn(scene.on(machine, &engine).run()))
        .collect();
    scene.until_said("is waited for").await;
    assert_eq!(scene.pebble.issued(), 0);
    // Its turn is over.
    *engine.turn.lock() = None;
    let all_have_it = || {
        scene.clock.advance(Duration::from_secs(10));
        scene.site.installed.lock().len() >= 3
    };
    until_or(all_have_it, || scene.site.said()).await;
    assert_eq!(scene.pebble.issued(), 1);
    let installed = scene.site.installed.lock().clone();
    assert!(installed.iter().all(|pem| *pem == installed[0]));
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    // A machine that comes later with a certificate of its own, or to an engine that has lost it.
    *engine.certificate.lock() = None;
    let task = tokio::spawn(scene.on(1, &engine).run());
    until_or(|| engine.certificate.lock().is_some(), || scene.site.said()).await;
    assert_eq!(*engine.certificate.lock(), Some(installed[0].clone()));
    task.abort();
}

#[tokio::test]
async fn a_machine_that_cannot_ask_the_others_asks_the_issuer() {
    let scene = Scene::new(PebbleOptions::default()).await;
    let engine = Arc::new(TestEngine::default());
    *engine.is_away.lock() = true;
    *engine.turn.lock() = Some(7);
    let task = tokio::spawn(scene.on(1, &engine).run());
    scene.site.installed(1).await;
    let said = scene.site.said();
    assert!(
        said.contains("by this machine alone: the engine is away"),
        "{said}"
    );
    assert!(said.contains("not given to other machines"), "{said}");
    task.abort();
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_certificate_is_issued_by_http_01_and_found_again() {
    let scene = Scene::new(PebbleOptions::default()).await;
    let names = ["example.org", "www.example.org"];
    scene.until_installed(scene.issuer(), &names, 1).await;
    for file in ["account.key", "account.url", "certificate.pem"] {
        assert_eq!(mode(&scene.state().join(file)), 0o600, "{file}");
    }
    assert!(!scene.state().join("certificate.order").exists());
    assert!(scene.site.tokens.lock().is_empty(), "tokens are withdrawn");
    // Started again, nothing is due.
    let task = tokio::spawn(scene.renewal(scene.issuer(), &names).run());
    scene.clock.advance(DAY);
    tokio::task::yield_now().await;
    assert_eq!(scene.pebble.issued(), 1);
    task.abort();
}

#[tokio::test]
async fn a_wildcard_is_issued_by_a_command_that_sets_records() {
    let scene = Scene::new(PebbleOptions::default()).await;
    let issuer = Issuer {
        challenge: Challenge::Dns01 {
            command: scene.pebble.record_command(),
        },
        ..scene.issuer()
    };
    let names = ["example.org", "*.example.org"];
    scene.until_installed(issuer, &names, 1).await;
    let is_over = || scene.pebble.records().matches("remove").count() == 2;
    until_or(is_over, || scene.pebble.records()).await;
    let records = scene.pebble.records();
    assert_eq!(
        records.matches("add _acme-challenge.example.org ").count(),
        2,
        "{records}"
    );
}

#[tokio::test]
async fn refused_nonces_are_asked_for_again() {
    let scene = Scene::new(PebbleOptions {
        refused_nonces: 20,
        ..PebbleOptions::default()
    });
    let scene = scene.await;
    let task = tokio::spawn(scene.renewal(scene.issuer(), &["example.org"]).run());
    // Three in a row end an attempt; the next one goes on with the same account.
    let is_so = || {
        scene.clock.advance(DAY / 24);
        !scene.site.installed.lock().is_empty()
    };
    until_or(is_so, || scene.site.said()).await;
    task.abort();
}

#[tokio::test]
async fn an_account_is_bound_to_one_that_the_operator_has() {
    let key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let scene = Scene::new(PebbleOptions {
        external_account: Some(("kid-1", key)),
        ..PebbleOptions::default()
    });
    let scene = scene.await;
    let bound = |key: &str| Issuer {
        external_account: Some(ExternalAccount {
            key_id: "kid-1".to_owned(),
            key: key.to_owned(),
        }),
        ..scene.issuer()
    };
    scene.until_installed(bound(key), &["example.org"], 1).await;
    // With the stored certificate, the key is not needed again.
    std::fs::remove_file(scene.state().join("certificate.pem")).unwrap();
    scene
        .until_installed(bound("AAAA"), &["example.org"], 2)
        .await;
}

#[tokio::test]
async fn a_profile_is_asked_for_where_the_issuer_has_it() {
    let scene = Scene::new(PebbleOptions::default()).await;
    let with = |name: &str, is_required| Issuer {
        profile: Some(Profile {
            name: name.to_owned(),
            is_required,
        }),
        ..scene.issuer()
    };
    scene
        .until_installed(with("short", true), &["example.org"], 1)
        .await;
    scene.until_said("valid for 5 days").await;
    std::fs::remove_file(scene.state().join("certificate.pem")).unwrap();
    scene
        .until_installed(with("none", false), &["example.org"], 2)
        .await;
    std::fs::remove_file(scene.state().join("certificate.pem")).unwrap();
    let task = tokio::spawn(scene.renewal(with("none", true), &["example.org"]).run());
    scene.until_said("the issuer has no profile \"none\"").await;
    task.abort();
}

#[tokio::test]
async fn a_certificate_is_renewed_when_it_is_due_and_not_before() {
    let scene = Scene::new(PebbleOptions::default()).await;
    let task = tokio::spawn(scene.renewal(scene.issuer(), &["example.org"]).run());
    scene.site.installed(1).await;
    // Pebble suggests the last third of the lifetime.
    for _ in 0..29 {
        scene.clock.advance(DAY);
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.site.installed.lock().len(), 1);
    let is_so = || {
        scene.clock.advance(DAY / 4);
        scene.site.installed.lock().len() == 2
    };
    until_or(is_so, || scene.site.said()).await;
    let installed = scene.site.installed.lock();
    assert_ne!(installed[0], installed[1]);
    task.abort();
}

#[tokio::test]
async fn an_issuer_that_is_down_for_a_day_is_asked_less_and_less_often() {
    let scene = Scene::new(PebbleOptions::default()).await;
    let down = Issuer {
        directory: format!("https://127.0.0.1:{}/dir", testkit::process::free_port()),
        ..scene.issuer()
    };
    let task = tokio::spawn(scene.renewal(down, &["example.org"]).run());
    let failures = || scene.site.log.lock().len();
    until_or(|| failures() == 1, || scene.site.said()).await;
    for count in 2..=20 {
        // No pause without a certificate is longer.
        scene.clock.advance(DAY / 19);
        until_or(|| failures() == count, || scene.site.said()).await;
    }
    task.abort();
    let _ = task.await;
    let said = scene.site.said();
    assert!(said.lines().all(|line| line.starts_with("Error")), "{said}");
    assert!(
        said.contains("there is none yet; next attempt in"),
        "{said}"
    );
    // When it is back, all is well.
    scene
        .until_installed(scene.issuer(), &["example.org"], 1)
        .await;
}

#[tokio::test]
async fn names_that_are_refused_are_said_with_the_issuers_reason() {
    let scene = Scene::new(PebbleOptions::default()).await;
    let task = tokio::spawn(scene.renewal(scene.issuer(), &["blocked.example"]).run());
    scene.until_said("rejectedIdentifier").await;
    task.abort();
}

#[tokio::test]
async fn an_account_that_is_gone_is_made_anew() {
    let scene = Scene::new(PebbleOptions::default()).await;
    scene
        .until_installed(scene.issuer(), &["example.org"], 1)
        .await;
    // Another issuer does not know the account of the first.
    let other = Pebble::start(PebbleOptions {
        http_port: 1,
        ..PebbleOptions::default()
    })
    .await;
    let url = scene.state().join("account.url");
    let stored = std::fs::read_to_string(&url).unwrap();
    let moved = stored.replace(&scene.pebble.directory(), &other.directory());
    let account = stored.lines().next().unwrap();
    let id = account.rsplit('/').next().unwrap();
    let moved = moved.replace(
        account,
        &format!("{}/my-account/{id}", origin(&other.directory())),
    );
    std::fs::write(&url, moved).unwrap();
    std::fs::remove_file(scene.state().join("certificate.pem")).unwrap();
    let issuer = Issuer {
        directory: other.directory(),
        trusted: Some(std::fs::read(other.authority_file()).unwrap()),
        ..scene.issuer()
    };
    let task = tokio::spawn(scene.renewal(issuer, &["example.org"]).run());
    scene.until_said("could not be issued").await;
    scene.clock.advance(DAY);
    let is_so =
        || std::fs::read_to_string(&url).is_ok_and(|text| text.contains(&other.directory()));
    until_or(is_so, || scene.site.said()).await;
    task.abort();
}

fn origin(directory: &str) -> &str {
    directory.strip_suffix("/dir").unwrap()
}

#[tokio::test]
async fn a_server_that_ends_at_any_step_goes_on_where_it_was() {
    let scene = Scene::new(PebbleOptions::default()).await;
    let names = ["example.org"];
    for file in [
        "account.key",
        "account.url",
        "certificate.order",
        "certificate.pem",
    ] {
        let path = scene.state().join(file);
        let (installed, issued) = (scene.site.installed.lock().len(), scene.pebble.issued());
        // It ends as soon as the file is there.
        let task = tokio::spawn(scene.renewal(scene.issuer(), &names).run());
        until_or(|| path.exists(), || scene.site.said()).await;
        task.abort();
        let _ = task.await;
        let key = std::fs::read(scene.state().join("account.key")).unwrap();
        let stored = scene.state().join("certificate.pem");
        if stored.exists() {
            // The stored certificate is found, so that a second one is not ordered.
            let task = tokio::spawn(scene.renewal(scene.issuer(), &names).run());
            scene.clock.advance(Duration::from_secs(1));
            task.abort();
        } else {
            scene
                .until_installed(scene.issuer(), &names, installed + 1)
                .await;
        }
        let kept = std::fs::read(scene.state().join("account.key")).unwrap();
        assert!(key == kept, "{file}: the account stays the same");
        assert!(!scene.state().join("certificate.order").exists(), "{file}");
        assert_eq!(scene.pebble.issued(), issued + 1, "{file}: one certificate");
        std::fs::remove_dir_all(scene.state()).unwrap();
    }
}

#[tokio::test]
async fn an_issuer_that_wants_to_be_left_alone_is() {
    let scene = Scene::new(PebbleOptions::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // A directory, and a refusal of whatever else is asked for.
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = read_head(&mut stream).await.unwrap_or_default();
            let url = |name: &str| format!("\"{name}\": \"http://{address}/{name}\"");
            let urls = ["newNonce", "newAccount", "newOrder"].map(url).join(", ");
            let (status, fields, body) = match head.starts_with(b"GET /dir") {
                true => ("200 OK", "", format!("{{ {urls} }}")),
                false if head.starts_with(b"HEAD") => {
                    ("200 OK", "Replay-Nonce: abc\r\n", String::new())
                }
                false => (
                    "429 Too Many Requests",
                    "Replay-Nonce: abc\r\nRetry-After: 36000\r\n",
                    "{ \"type\": \"urn:ietf:params:acme:error:rateLimited\", \
                       \"detail\": \"too many\\naccounts\" }"
                        .to_owned(),
                ),
            };
            let length = body.len();
            let response = format!(
                "HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(response.as_bytes()).await;
            // The rest of the request is read, so that the response is not lost with it.
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let limited = Issuer {
        directory: format!("http://{address}/dir"),
        ..scene.issuer()
    };
    let task = tokio::spawn(scene.renewal(limited, &["example.org"]).run());
    scene
        .until_said("rateLimited: too many accounts; there is none yet; next attempt in 10 hours")
        .await;
    task.abort();
}
