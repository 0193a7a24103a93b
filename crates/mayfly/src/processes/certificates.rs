//! Certificates that come by themselves, as the program has them: who asks for them, the
//! certificate that is served until they are there, and how they reach the workers. All of it is
//! done by the process that reads key files.
//!
//! ```text
//! acme::Renewal, one task each ──► Change ──► supervisor ──► Backend
//!       │                                     certificates as TLS files, with the configuration
//!       │                                     in force; answers to challenges at once
//!       └─► NodeCertificates ──► engine of cache_nodes      the same for other machines
//! ```

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use acme::{Authority, ChallengeAnswer, Host, Level, Machines, Renewal, Store, SystemClock};
use live_state::acme_answers::AcmeAnswerTexts;
use parking_lot::Mutex;
use site::{
    Acme, AcmeCertificate, AcmeChallenge, AcmeExternalKey, AcmeIssuer, AcmeKeyType, CacheNodes,
    LogLevel, Site,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::processes::journal::Journal;
use crate::processes::node_certificates::NodeCertificates;

/// Until an issuer whose folder or files cannot be used is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

/// The next change for the supervisor to make.
pub enum Change {
    /// A certificate is new: the configuration in force gets it.
    Certificates,
    /// Issuers look for something else. An issuer may wait for these answers.
    Answers(Option<oneshot::Sender<()>>),
}

/// All certificates of the configuration in force, and the tasks that keep them valid.
pub struct Certificates {
    shared: Arc<SharedCertificates>,
    changes: mpsc::UnboundedReceiver<Change>,
    issuers: Vec<(AcmeIssuer, Arc<IssuerState>)>,
    tasks: Vec<Task>,
    /// Other machines that have the same certificates.
    nodes: Option<CacheNodes>,
}

struct SharedCertificates {
    journal: Arc<Journal>,
    changes: mpsc::UnboundedSender<Change>,
    answers: Mutex<Vec<ChallengeAnswer>>,
    /// The certificates issued or made since the start, by the names that servers know them by.
    files: Mutex<HashMap<PathBuf, Vec<u8>>>,
}

/// The state that the certificates of an issuer share.
#[derive(Default)]
struct IssuerState(tokio::sync::Mutex<Option<Arc<Authority>>>);

/// A certificate that is being kept valid.
struct Task {
    issuer: AcmeIssuer,
    certificate: AcmeCertificate,
    running: AbortHandle,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Certificates {
    pub fn new(journal: Arc<Journal>) -> Certificates {
        let (sender, changes) = mpsc::unbounded_channel();
        Certificates {
            shared: Arc::new(SharedCertificates {
                journal,
                changes: sender,
                answers: Mutex::default(),
                files: Mutex::default(),
            }),
            changes,
            issuers: Vec::new(),
            tasks: Vec::new(),
            nodes: None,
        }
    }

    /// The certificates of `site`: those that are known, else those on the disk, else some that
    /// no client trusts.
    pub fn files(&self, site: &Site) -> Vec<(PathBuf, Vec<u8>)> {
        let mut known = self.shared.files.lock();
        let acme = &site.http.acme;
        let wanted = acme.certificates.iter();
        wanted
            .filter_map(|certificate| {
                let path = &certificate.file;
                if !known.contains_key(path) {
                    known.insert(path.clone(), first_file(acme, certificate)?);
                }
                Some((path.clone(), known.get(path)?.clone()))
            })
            .collect()
    }

    /// Keeps these valid from now on. Certificates that were wanted before go on as they are.
    pub fn keep(&mut self, wanted: &Acme, nodes: Option<&CacheNodes>) {
        let nodes = nodes.filter(|it| it.page_key.is_some());
        if self.nodes.as_ref() != nodes {
            self.tasks.clear();
            self.nodes = nodes.cloned();
        }
        let of = |issuer: usize| wanted.issuers.get(issuer);
        let is_wanted = |task: &Task| {
            let mut certificates = wanted.certificates.iter();
            certificates.any(|it| {
                let same = of(it.issuer).is_some_and(|issuer| *issuer == task.issuer);
                same && is_same(it, &task.certificate)
            })
        };
        self.tasks.retain(is_wanted);
        self.issuers
            .retain(|(issuer, _)| wanted.issuers.contains(issuer));
        let paths: Vec<&Path> = wanted.certificates.iter().map(|it| &*it.file).collect();
        let mut files = self.shared.files.lock();
        files.retain(|path, _| paths.contains(&&**path));
        drop(files);
        for certificate in &wanted.certificates {
            let Some(issuer) = of(certificate.issuer) else {
                continue;
            };
            let mut tasks = self.tasks.iter();
            if tasks.any(|it| it.issuer == *issuer && is_same(&it.certificate, certificate)) {
                continue;
            }
            let state = self.state_of(issuer);
            let keeping = keep(
                self.shared.clone(),
                state,
                issuer.clone(),
                certificate.clone(),
                self.nodes.clone(),
            );
            self.tasks.push(Task {
                issuer: issuer.clone(),
                certificate: certificate.clone(),
                running: tokio::spawn(keeping).abort_handle(),
            });
        }
    }

    /// Another process keeps them valid, until [`Certificates::keep`] is called again.
    pub fn pause(&mut self) {
        self.tasks.clear();
    }

    fn state_of(&mut self, issuer: &AcmeIssuer) -> Arc<IssuerState> {
        let known = self.issuers.iter().find(|(known, _)| known == issuer);
        if let Some((_, state)) = known {
            return state.clone();
        }
        let state = Arc::new(IssuerState::default());
        self.issuers.push((issuer.clone(), state.clone()));
        state
    }

    /// The next thing to do.
    pub async fn next_change(&mut self) -> Change {
        match self.changes.recv().await {
            Some(change) => change,
            // It has a sender itself.
            None => std::future::pending().await,
        }
    }

    /// The new certificates could not be put in force: they are tried again later.
    pub fn again(&self) {
        let changes = self.shared.changes.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LOOK_AGAIN).await;
            // The receiver is gone at the end.
            let _ = changes.send(Change::Certificates);
        });
    }

    /// Returns the present answers for issuers.
    pub fn answers(&self) -> AcmeAnswerTexts {
        answer_texts(self.shared.answers.lock().iter().cloned())
    }
}

/// Answers as those who serve read them.
pub fn answer_texts(answers: impl IntoIterator<Item = ChallengeAnswer>) -> AcmeAnswerTexts {
    let mut texts = AcmeAnswerTexts::default();
    for answer in answers {
        match answer {
            ChallengeAnswer::Http { token, content } => texts.files.push((token, content)),
            ChallengeAnswer::Tls { name, pem } => texts.certificates.push((name, pem)),
        }
    }
    texts
}

/// Whether two certificates are the same, whatever number their issuer has.
fn is_same(one: &AcmeCertificate, other: &AcmeCertificate) -> bool {
    (&one.names, one.key, &one.file) == (&other.names, other.key, &other.file)
}

/// The certificates of `site` for a look at the configuration that serves nothing.
pub fn files_for_test(site: &Site) -> Vec<(PathBuf, Vec<u8>)> {
    let acme = &site.http.acme;
    let wanted = acme.certificates.iter();
    wanted
        .filter_map(|it| Some((it.file.clone(), first_file(acme, it)?)))
        .collect()
}

/// Returns the certificate on the disk, or one that no client trusts.
fn first_file(acme: &Acme, certificate: &AcmeCertificate) -> Option<Vec<u8>> {
    let issuer = acme.issuers.get(certificate.issuer)?;
    let stored = issuer.state_path.as_ref().and_then(|folder| {
        let store = Store::open_existing(folder).ok()?;
        let pem = store.read(&format!("{}.pem", certificate.file_stem))?;
        acme::usable(&pem, &request_of(certificate)).then_some(pem)
    });
    // Without it, the reader of the file reports that it is missing.
    stored.or_else(|| acme::self_signed(&certificate.names).ok())
}

/// Keeps a certificate valid, for ever.
async fn keep(
    shared: Arc<SharedCertificates>,
    state: Arc<IssuerState>,
    issuer: AcmeIssuer,
    certificate: AcmeCertificate,
    nodes: Option<CacheNodes>,
) {
    let nodes = nodes.map(|nodes| Arc::new(NodeCertificates::new(nodes, &issuer.uri)));
    let authority = loop {
        let mut known = state.0.lock().await;
        let made = match &*known {
            Some(authority) => Ok(authority.clone()),
            None => authority_of(&issuer),
        };
        match made {
            Ok(authority) => {
                *known = Some(authority.clone());
                break authority;
            }
            Err(message) => {
                let names = certificate.names.join(" ");
                shared.journal.error(format_args!(
                    "no certificate can be issued for {names} by issuer \"{}\": {message}",
                    issuer.name
                ));
            }
        }
        drop(known);
        tokio::time::sleep(LOOK_AGAIN).await;
    };
    let renewal = Renewal {
        authority,
        request: request_of(&certificate),
        host: Arc::new(CertificateHost {
            shared,
            file: certificate.file,
            nodes: nodes.clone(),
        }),
        clock: Arc::new(SystemClock),
        machines: nodes.map(|nodes| nodes as Arc<dyn Machines>),
    };
    renewal.run().await;
}

fn authority_of(issuer: &AcmeIssuer) -> Result<Arc<Authority>, String> {
    let store = match &issuer.state_path {
        None => Store::in_memory(),
        Some(path) => Store::open(path).map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let authority = Authority::new(issuer_of(issuer)?, Arc::new(store));
    authority.map(Arc::new).map_err(|error| error.to_string())
}

fn request_of(certificate: &AcmeCertificate) -> acme::CertificateRequest {
    acme::CertificateRequest {
        names: certificate.names.clone(),
        key: match certificate.key {
            AcmeKeyType::EcdsaP256 => acme::KeyType::EcdsaP256,
            AcmeKeyType::EcdsaP384 => acme::KeyType::EcdsaP384,
            AcmeKeyType::EcdsaP521 => acme::KeyType::EcdsaP521,
            AcmeKeyType::Rsa2048 => acme::KeyType::Rsa2048,
            AcmeKeyType::Rsa3072 => acme::KeyType::Rsa3072,
            AcmeKeyType::Rsa4096 => acme::KeyType::Rsa4096,
        },
        file_stem: certificate.file_stem.clone(),
    }
}

fn issuer_of(issuer: &AcmeIssuer) -> Result<acme::Issuer, String> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let external_account = match &issuer.external_account {
        None => None,
        Some(external) => Some(acme::ExternalAccount {
            key_id: external.key_id.clone(),
            key: match &external.key {
                AcmeExternalKey::Data(key) => key.clone(),
                AcmeExternalKey::File(path) => {
                    String::from_utf8_lossy(&read(path)?).trim().to_owned()
                }
            },
        }),
    };
    Ok(acme::Issuer {
        name: issuer.name.clone(),
        directory: issuer.uri.clone(),
        contacts: issuer.contacts.clone(),
        account_key: match &issuer.account_key {
            None => acme::AccountKey::Generated,
            Some(path) => acme::AccountKey::Given(read(path)?),
        },
        external_account,
        accepts_terms: issuer.accepts_terms,
        challenge: match &issuer.challenge {
            AcmeChallenge::Http01 => acme::Challenge::Http01,
            AcmeChallenge::TlsAlpn01 => acme::Challenge::TlsAlpn01,
            AcmeChallenge::Dns01 { command } => acme::Challenge::Dns01 {
                command: command.clone(),
            },
        },
        profile: issuer
            .profile
            .as_ref()
            .map(|(name, is_required)| acme::Profile {
                name: name.clone(),
                is_required: *is_required,
            }),
        trusted: issuer.trusted.as_ref().map(read).transpose()?,
    })
}

/// Through which a certificate comes to those who serve it.
struct CertificateHost {
    shared: Arc<SharedCertificates>,
    file: PathBuf,
    /// The issuer may come to another machine.
    nodes: Option<Arc<NodeCertificates>>,
}

impl Host for CertificateHost {
    fn present(&self, answer: ChallengeAnswer) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.shared.answers.lock().push(answer.clone());
        let (sender, served) = oneshot::channel();
        let _ = self.shared.changes.send(Change::Answers(Some(sender)));
        Box::pin(async move {
            // Without an answer the server ends.
            let _ = served.await;
            if let Some(nodes) = &self.nodes
                && let Err(message) = nodes.present(answer).await
            {
                self.log(Level::Warn, message);
            }
        })
    }

    fn withdraw(&self, answer: &ChallengeAnswer) {
        let mut answers = self.shared.answers.lock();
        if let Some(at) = answers.iter().position(|known| known == answer) {
            answers.remove(at);
        }
        drop(answers);
        let _ = self.shared.changes.send(Change::Answers(None));
    }

    fn install(&self, _: &str, pem: Vec<u8>) {
        self.shared.files.lock().insert(self.file.clone(), pem);
        let _ = self.shared.changes.send(Change::Certificates);
    }

    fn log(&self, level: Level, message: String) {
        let level = match level {
            Level::Notice => LogLevel::Notice,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        self.shared.journal.line(level, message);
    }
}
