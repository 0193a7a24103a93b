//! The stored form of a certificate: one PEM text with the key and the chain, so that the two
//! always belong together.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use instant_acme::CertificateIdentifier;
use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    PKCS_ECDSA_P521_SHA512, PKCS_RSA_SHA256, RsaKeySize,
};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use x509_cert::Certificate;
use x509_cert::der::{self, Decode, Encode};
use x509_cert::ext::pkix::AuthorityKeyIdentifier;

use crate::settings::{CertificateRequest, KeyType};

/// A name below a wildcard, to ask whether a certificate covers it.
const NAME_BELOW_WILDCARD: &str = "mayfly";

/// The reason why a certificate with its key is of no use, or cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("there is no certificate")]
    Missing,
    #[error("the certificate is not for {0}")]
    OtherName(String),
    #[error(transparent)]
    Pem(#[from] pem::Error),
    #[error(transparent)]
    Der(#[from] der::Error),
    #[error(transparent)]
    Invalid(#[from] webpki::Error),
    /// The key does not belong to it, among others.
    #[error(transparent)]
    Key(#[from] rustls::Error),
    #[error(transparent)]
    InvalidName(#[from] InvalidDnsNameError),
    #[error(transparent)]
    NotMade(#[from] rcgen::Error),
}

/// The facts of a certificate that may be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub not_before: SystemTime,
    pub not_after: SystemTime,
    /// The identifier by which renewal information is requested (RFC 9773 §4.1).
    pub identifier: Option<CertificateIdentifier<'static>>,
}

impl Facts {
    /// Reads the first certificate of a PEM text. With the key, it must do for `request`.
    ///
    /// # Errors
    /// The reason why it is of no use.
    pub fn of(pem: &[u8], request: &CertificateRequest) -> Result<Facts, CertificateError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let chain = chain?;
        let leaf = chain.first().ok_or(CertificateError::Missing)?.clone();
        let key = PrivateKeyDer::from_pem_slice(pem)?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        CertifiedKey::from_der(chain, key, &provider)?;
        covers(&leaf, &request.names)?;
        let parsed = Certificate::from_der(&leaf)?;
        let validity = parsed.tbs_certificate().validity();
        let moment = |time: Duration| SystemTime::UNIX_EPOCH + time;
        Ok(Facts {
            not_before: moment(validity.not_before.to_unix_duration()),
            not_after: moment(validity.not_after.to_unix_duration()),
            identifier: identifier(&parsed),
        })
    }
}

/// Whether a stored PEM text may be served for `request`, be it out of date or not.
pub fn usable(pem: &[u8], request: &CertificateRequest) -> bool {
    Facts::of(pem, request).is_ok()
}

fn covers(leaf: &CertificateDer<'_>, names: &[String]) -> Result<(), CertificateError> {
    let certificate = webpki::EndEntityCert::try_from(leaf)?;
    for name in names {
        let concrete = match name.strip_prefix("*.") {
            Some(parent) => format!("{NAME_BELOW_WILDCARD}.{parent}"),
            None => name.clone(),
        };
        let concrete = ServerName::try_from(concrete)?;
        let verified = certificate.verify_is_valid_for_subject_name(&concrete);
        verified.map_err(|_| CertificateError::OtherName(name.clone()))?;
    }
    Ok(())
}

fn identifier(certificate: &Certificate) -> Option<CertificateIdentifier<'static>> {
    let certificate = certificate.tbs_certificate();
    let (_, authority) = certificate
        .get_extension::<AuthorityKeyIdentifier>()
        .ok()??;
    // Its bytes, without DER's tag and length.
    let key = authority.key_identifier?;
    let serial = certificate.serial_number().to_der().ok()?;
    let serial = serial.get(2..)?;
    Some(CertificateIdentifier {
        authority_key_identifier: BASE64_URL_SAFE_NO_PAD.encode(key.as_bytes()).into(),
        serial: BASE64_URL_SAFE_NO_PAD.encode(serial).into(),
    })
}

/// A new key, as PEM.
///
/// # Errors
/// The error of the cryptographic library.
pub fn new_key(kind: KeyType) -> Result<String, CertificateError> {
    let key = match kind {
        KeyType::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        KeyType::EcdsaP384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        KeyType::EcdsaP521 => KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512),
        KeyType::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        KeyType::Rsa3072 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
        KeyType::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
    };
    Ok(key?.serialize_pem())
}

/// The request that goes to the issuer (a CSR, RFC 8555 §7.4), for a key as PEM.
///
/// # Errors
/// The error of the cryptographic library.
pub fn signing_request(names: &[String], key_pem: &str) -> Result<Vec<u8>, CertificateError> {
    let key = KeyPair::from_pem(key_pem)?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(&key)?.der().to_vec())
}

/// A self-signed certificate, served until the issuer's arrives. Clients do not trust it.
///
/// # Errors
/// The error of the cryptographic library.
pub fn self_signed(names: &[String]) -> Result<Vec<u8>, CertificateError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    let certificate = params.self_signed(&key)?;
    Ok(joined(&key.serialize_pem(), &certificate.pem()))
}

/// Key and chain as one text.
pub fn joined(key_pem: &str, chain_pem: &str) -> Vec<u8> {
    format!("{}\n{chain_pem}", key_pem.trim_end()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(names: &[&str]) -> CertificateRequest {
        CertificateRequest {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            key: KeyType::EcdsaP256,
            file_stem: "a".to_owned(),
        }
    }

    #[test]
    fn a_certificate_is_of_use_for_the_names_in_it_only() {
        let wanted = request(&["example.org", "*.example.org", "192.0.2.1"]);
        let pem = self_signed(&wanted.names).unwrap();
        assert!(usable(&pem, &wanted));
        assert!(usable(&pem, &request(&["a.example.org"])));
        assert!(!usable(&pem, &request(&["example.net"])));
        assert!(!usable(b"", &wanted));
        let other = new_key(KeyType::EcdsaP256).unwrap();
        let chain = String::from_utf8(pem).unwrap();
        let chain = chain.split_once("-----BEGIN CERTIFICATE").unwrap().1;
        let mixed = joined(&other, &format!("-----BEGIN CERTIFICATE{chain}"));
        assert!(!usable(&mixed, &wanted), "the key of another certificate");
    }

    #[test]
    fn keys_of_all_kinds_make_requests() {
        for kind in [
            KeyType::EcdsaP256,
            KeyType::EcdsaP384,
            KeyType::EcdsaP521,
            KeyType::Rsa2048,
        ] {
            let key = new_key(kind).unwrap();
            let names = ["example.org".to_owned()];
            assert!(signing_request(&names, &key).is_ok(), "{kind:?}");
        }
    }
}
