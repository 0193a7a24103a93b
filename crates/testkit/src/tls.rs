//! Certificates made for one test, and the encrypting side of a fake server.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_RSA_SHA256,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// An authority that signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
pub struct Identity {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    /// # Panics
    /// When no key can be made.
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Its own certificate, to be trusted.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Returns its own certificate without the armour of PEM.
    pub fn der(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    /// Signs a certificate for `name`.
    ///
    /// # Panics
    /// When that is no name of a host.
    pub fn identity(&self, name: &str) -> Identity {
        self.identity_of(name, KeyPair::generate().expect("a key"))
    }

    /// Like [`Self::identity`], for an RSA key; others have keys of elliptic curves.
    ///
    /// # Panics
    /// When that is no name of a host.
    pub fn rsa_identity(&self, name: &str) -> Identity {
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256).expect("a key");
        self.identity_of(name, key)
    }

    fn identity_of(&self, name: &str, key: KeyPair) -> Identity {
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Identity { certificate, key }
    }
}

impl Identity {
    pub fn certificate_pem(&self) -> String {
        self.certificate.pem()
    }

    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    pub fn certificate_der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    pub fn key_der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }

    /// A server that shows this certificate, and serves only who has one of `clients`.
    ///
    /// # Panics
    /// When rustls takes none of it.
    pub fn server(&self, clients: Option<&Authority>) -> Arc<ServerConfig> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                let root = authority.0.der().clone();
                roots.add(root).expect("a certificate to trust");
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let chain = vec![self.certificate.der().clone()];
        let key = KeyPair::try_from(self.key.serialize_der()).expect("the same key");
        let config = builder.with_single_cert(chain, key.into());
        Arc::new(config.expect("a certificate and its key"))
    }
}
