//! Certificates of X.509 version 1, which webpki does not read: OpenSSL makes them with the shortest of
//! configurations. They have no field for their permitted use. So they are accepted of clients alone, and only
//! where a trusted certificate has signed them itself.

use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::{DigitallySignedStruct, Error as TlsError, PeerMisbehaved};
use webpki::RawPublicKeyEntity;
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::{Decode, Encode};

use crate::authority::may_sign;
use crate::fault::VerifyFault;
use crate::validity::Validity;

/// A certificate of version 1.
pub struct Version1(Certificate);

impl Version1 {
    /// `None` for other versions.
    pub fn of(certificate: &[u8]) -> Option<Version1> {
        let certificate = Certificate::from_der(certificate).ok()?;
        let is_old = certificate.tbs_certificate().version() == Version::V1;
        is_old.then_some(Version1(certificate))
    }

    /// Does the other side of a handshake have the key?
    ///
    /// # Errors
    /// Its signature is not the key's.
    pub fn verify_handshake(
        &self,
        message: &[u8],
        signed: &DigitallySignedStruct,
        algorithms: &WebPkiSupportedAlgorithms,
        is_tls13: bool,
    ) -> Result<(), TlsError> {
        let wrong =
            || TlsError::PeerMisbehaved(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme);
        let key = key_of(&self.0).ok_or_else(wrong)?;
        if is_tls13 {
            return verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
                .map(|_| ());
        }
        let known = algorithms.mapping.iter();
        let fitting = known.filter(|(scheme, _)| *scheme == signed.scheme);
        let is_good = fitting
            .flat_map(|(_, algorithms)| algorithms.iter())
            .any(|algorithm| verifies(&key, *algorithm, message, signed.signature()));
        match is_good {
            true => Ok(()),
            false => Err(TlsError::InvalidCertificate(
                rustls::CertificateError::BadSignature,
            )),
        }
    }

    /// Has one of the `trusted` certificates signed it?
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn verify(
        &self,
        der: &CertificateDer<'_>,
        trusted: &[(CertificateDer<'static>, Validity)],
        algorithms: &[&'static dyn SignatureVerificationAlgorithm],
        now: UnixTime,
    ) -> Result<(), VerifyFault> {
        let own = self.0.tbs_certificate();
        let authorities = trusted.iter().filter(|(it, _)| may_sign(it));
        let issuers = authorities.filter_map(|(certificate, _)| {
            let issuer = Certificate::from_der(certificate).ok()?;
            (issuer.tbs_certificate().subject() == own.issuer()).then_some(issuer)
        });
        let issuers: Vec<Certificate> = issuers.collect();
        if issuers.is_empty() {
            return Err(match own.issuer() == own.subject() {
                true => VerifyFault::SelfSigned,
                false => VerifyFault::UnknownIssuer,
            });
        }
        if !issuers
            .iter()
            .any(|issuer| self.is_signed_by(issuer, algorithms))
        {
            return Err(VerifyFault::BadSignature);
        }
        match Validity::of(der) {
            Some(validity) if now.as_secs() < validity.not_before => Err(VerifyFault::NotYetValid),
            Some(validity) if now.as_secs() <= validity.not_after => Ok(()),
            _ => Err(VerifyFault::Expired),
        }
    }

    fn is_signed_by(
        &self,
        issuer: &Certificate,
        algorithms: &[&'static dyn SignatureVerificationAlgorithm],
    ) -> bool {
        // Written anew: a certificate that is not in DER has another signature then.
        let Ok(message) = self.0.tbs_certificate().to_der() else {
            return false;
        };
        let identifier = self.0.signature_algorithm();
        let (Some(key), Some(signature), Ok(identifier)) = (
            key_of(issuer),
            self.0.signature().as_bytes(),
            identifier.to_der(),
        ) else {
            return false;
        };
        algorithms.iter().any(|algorithm| {
            let own = algorithm.signature_alg_id();
            // Behind the tag and a length of one byte.
            identifier.get(2..) == Some(own.as_ref())
                && verifies(&key, *algorithm, &message, signature)
        })
    }
}

fn key_of(certificate: &Certificate) -> Option<SubjectPublicKeyInfoDer<'static>> {
    let key = certificate.tbs_certificate().subject_public_key_info();
    Some(SubjectPublicKeyInfoDer::from(key.to_der().ok()?))
}

fn verifies(
    key: &SubjectPublicKeyInfoDer<'_>,
    algorithm: &dyn SignatureVerificationAlgorithm,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let key = RawPublicKeyEntity::try_from(key);
    key.is_ok_and(|key| key.verify_signature(algorithm, message, signature).is_ok())
}
