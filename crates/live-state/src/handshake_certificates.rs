//! Certificates whose names have variables that are known in a handshake: `ssl_certificate $one.crt`,
//! `ssl_certificate data:$text`. Each combination of values has a TLS of its own, so that a session of
//! one certificate is worth nothing to another.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use site::ServerTls;
use tls_server::{Identity, PemFile, Resumption, Settings, TlsServer};

use crate::kept_certificates::KeptCertificates;
use crate::named_files::{self, NO_CERTIFICATE, NO_KEY, NamedCertificateError};

/// The values of a certificate's name and of its key's.
pub type Values = (String, String);

/// The TLS of a server whose certificates depend on the handshake.
pub struct OfHandshake {
    /// Without certificates.
    settings: Settings,
    resumption: Resumption,
    folder: PathBuf,
    kept: KeptCertificates<Vec<Values>, Arc<TlsServer>>,
}

impl OfHandshake {
    pub fn new(tls: &ServerTls, settings: Settings, resumption: Resumption) -> OfHandshake {
        OfHandshake {
            settings,
            resumption,
            folder: tls.certificate_folder.clone(),
            kept: KeptCertificates::new(tls.certificate_cache),
        }
    }

    /// The TLS with the certificates of these values; `None` if there is none.
    ///
    /// # Errors
    /// The reason why they cannot be used, for the log.
    pub fn server(
        &self,
        values: Vec<Values>,
    ) -> Result<Option<Arc<TlsServer>>, NamedCertificateError> {
        let values: Vec<Values> = values
            .into_iter()
            .filter(|(chain, key)| !chain.is_empty() && !key.is_empty())
            .collect();
        if values.is_empty() {
            return Ok(None);
        }
        let now = Instant::now();
        if let Some(server) = self.kept.find(&values, now) {
            return Ok(Some(server));
        }
        let mut identities = Vec::with_capacity(values.len());
        for (chain, key) in &values {
            identities.push(Identity {
                chain: self.read(chain, NO_CERTIFICATE)?,
                key: self.read(key, NO_KEY)?,
            });
        }
        let settings = Settings {
            identities,
            ..self.settings.clone()
        };
        let server = Arc::new(TlsServer::new(&settings, self.resumption.clone())?);
        self.kept.keep(values, &server, now);
        Ok(Some(server))
    }

    /// Reads a file, or the text behind `data:`. `failure` begins the message if there is none.
    fn read(&self, value: &str, failure: &'static str) -> Result<PemFile, NamedCertificateError> {
        if let Some(pem) = value.strip_prefix("data:") {
            return Ok(PemFile {
                name: "data:".to_owned(),
                pem: pem.as_bytes().to_vec(),
            });
        }
        named_files::read_pem(&self.folder.join(value), failure)
    }
}

/// Whether a client's name may be a part of a file's name.
pub fn is_file_name(name: &str) -> bool {
    named_files::is_file_name(name)
}
