//! What issuers of certificates look for while they check that a name is served here: files of
//! HTTP-01 (RFC 8555 §8.3), certificates of TLS-ALPN-01 (RFC 8737). They come from the process
//! that asks for certificates, and go again after a moment.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use transport::handshake::VALIDATION_PROTOCOL;

/// Where the files are looked for.
const FOLDER: &[u8] = b"/.well-known/acme-challenge/";

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
pub struct AcmeAnswers(ArcSwap<ChallengeAnswers>);

#[derive(Default)]
struct ChallengeAnswers {
    files: HashMap<Vec<u8>, Vec<u8>>,
    certificates: HashMap<String, Arc<ServerConfig>>,
}

impl AcmeAnswers {
    /// Puts others in force. A certificate that cannot be used is left out.
    pub fn replace(&self, texts: AcmeAnswerTexts) {
        let files = texts.files.into_iter();
        let certificates = texts.certificates.into_iter();
        self.0.store(Arc::new(ChallengeAnswers {
            files: files
                .map(|(token, content)| (token.into_bytes(), content.into_bytes()))
                .collect(),
            certificates: certificates
                .filter_map(|(name, pem)| Some((name, Arc::new(config(pem.as_bytes())?))))
                .collect(),
        }));
    }

    /// The content of a file, if the path is that of one.
    pub fn file(&self, path: &[u8]) -> Option<Vec<u8>> {
        let token = path.strip_prefix(FOLDER)?;
        self.0.load().files.get(token).cloned()
    }

    /// The rules for a handshake in which an issuer asks for this name.
    pub fn tls(&self, name: &str) -> Option<Arc<ServerConfig>> {
        let name = name.to_ascii_lowercase();
        self.0.load().certificates.get(&name).cloned()
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
}
