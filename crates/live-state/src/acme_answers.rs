//! Answers for issuers of certificates that check whether a name is served here: files of HTTP-01 (RFC 8555
//! §8.3), certificates of TLS-ALPN-01 (RFC 8737). They come from the process that asks for certificates, and go
//! again after a moment. Answers of other nodes come with their log of purges.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http_cache::Millis;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use transport::handshake::VALIDATION_PROTOCOL;

/// The folder in the URLs of the files.
const FOLDER: &[u8] = b"/.well-known/acme-challenge/";

/// The least time for which the answers of other nodes are given: an attempt to get a certificate takes no
/// longer.
const OTHERS_KEPT: Duration = Duration::from_secs(20 * 60);
/// The number of them that are kept, the newest.
const MAX_OTHERS: usize = 256;

/// All answers, as they come from the other process.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AcmeAnswerTexts {
    /// The content of files by their names, the tokens.
    pub files: Vec<(String, String)>,
    /// Chain and key as PEM, by host name.
    pub certificates: Vec<(String, String)>,
}

/// The answers in force. They outlive a configuration.
#[derive(Default)]
pub struct AcmeAnswers {
    own: ArcSwap<ChallengeAnswers>,
    others: ArcSwap<ChallengeAnswers>,
    /// Answers from other nodes, and the times until which they count.
    of_others: Mutex<VecDeque<(Millis, AcmeAnswerTexts)>>,
}

#[derive(Default)]
struct ChallengeAnswers {
    files: HashMap<Vec<u8>, Vec<u8>>,
    certificates: HashMap<String, Arc<ServerConfig>>,
}

impl AcmeAnswers {
    /// Puts others in force. A certificate that cannot be used is left out.
    pub fn replace(&self, texts: AcmeAnswerTexts) {
        self.own.store(Arc::new(ChallengeAnswers::of([&texts])));
    }

    /// Another node looks for a certificate: its answers are given as well, for a while.
    pub fn add_of_other(&self, texts: AcmeAnswerTexts, now: Millis) {
        let mut of_others = self.of_others.lock();
        of_others.retain(|(until, _)| *until > now);
        if of_others.len() >= MAX_OTHERS {
            of_others.pop_front();
        }
        of_others.push_back((now.plus(OTHERS_KEPT), texts));
        let in_force = ChallengeAnswers::of(of_others.iter().map(|(_, texts)| texts));
        self.others.store(Arc::new(in_force));
    }

    /// The content of a file, if the path is that of one.
    pub fn file(&self, path: &[u8]) -> Option<Vec<u8>> {
        let token = path.strip_prefix(FOLDER)?;
        let of = |answers: &ChallengeAnswers| answers.files.get(token).cloned();
        of(&self.own.load()).or_else(|| of(&self.others.load()))
    }

    /// The rules for a handshake in which an issuer asks for this name.
    pub fn tls(&self, name: &str) -> Option<Arc<ServerConfig>> {
        let name = name.to_ascii_lowercase();
        let of = |answers: &ChallengeAnswers| answers.certificates.get(&name).cloned();
        of(&self.own.load()).or_else(|| of(&self.others.load()))
    }
}

impl ChallengeAnswers {
    /// Later texts win.
    fn of<'a>(texts: impl IntoIterator<Item = &'a AcmeAnswerTexts>) -> ChallengeAnswers {
        let mut answers = ChallengeAnswers::default();
        for texts in texts {
            for (token, content) in &texts.files {
                let (token, content) = (token.as_bytes(), content.as_bytes());
                answers.files.insert(token.to_vec(), content.to_vec());
            }
            for (name, pem) in &texts.certificates {
                if let Some(config) = config(pem.as_bytes()) {
                    answers.certificates.insert(name.clone(), Arc::new(config));
                }
            }
        }
        answers
    }
}

fn config(pem: &[u8]) -> Option<ServerConfig> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let key = PrivateKeyDer::from_pem_slice(pem).ok()?;
    let provider = Arc::new(default_provider());
    let key = provider.key_provider.load_private_key(key).ok()?;
    // Not compared with the certificate: that has a critical extension which only issuers know.
    let identity = CertifiedKey::new(chain.ok()?, key);
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().ok()?;
    let builder = builder.with_no_client_auth();
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
    config.alpn_protocols = vec![VALIDATION_PROTOCOL.to_vec()];
    Some(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_for_its_path_only() {
        let answers = AcmeAnswers::default();
        let path = b"/.well-known/acme-challenge/token";
        assert_eq!(answers.file(path), None);
        answers.replace(AcmeAnswerTexts {
            files: vec![("token".to_owned(), "content".to_owned())],
            certificates: vec![("a.example".to_owned(), "none".to_owned())],
        });
        assert_eq!(answers.file(path).as_deref(), Some(&b"content"[..]));
        for other in [
            &b"/token"[..],
            b"/.well-known/acme-challenge/",
            b"/.well-known/acme-challenge/t",
        ] {
            assert_eq!(answers.file(other), None);
        }
        assert!(answers.tls("a.example").is_none(), "no certificate");
        answers.replace(AcmeAnswerTexts::default());
        assert_eq!(answers.file(path), None);
    }

    #[test]
    fn answers_of_other_nodes_are_given_for_a_while_beside_the_own() {
        let answers = AcmeAnswers::default();
        let text = |token: &str| AcmeAnswerTexts {
            files: vec![(token.to_owned(), token.to_owned())],
            ..AcmeAnswerTexts::default()
        };
        let has = |token: &str| {
            let path = [FOLDER, token.as_bytes()].concat();
            answers.file(&path).as_deref() == Some(token.as_bytes())
        };
        let begin = Millis(1000);
        answers.add_of_other(text("one"), begin);
        answers.replace(text("own"));
        answers.add_of_other(text("two"), begin.plus(OTHERS_KEPT / 2));
        assert!(has("one") && has("two") && has("own"));
        answers.add_of_other(text("three"), begin.plus(OTHERS_KEPT));
        assert!(!has("one") && has("two") && has("three") && has("own"));
        for number in 0..MAX_OTHERS {
            answers.add_of_other(text(&number.to_string()), begin.plus(OTHERS_KEPT));
        }
        assert!(!has("three") && has("0") && has("own"));
    }
}
