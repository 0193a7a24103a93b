//! The verifier, made of PEM texts.

use std::fmt;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, SignatureVerificationAlgorithm, TrustAnchor,
    UnixTime,
};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RevocationCheckDepth, RevocationOptionsBuilder, UnknownStatusPolicy, VerifiedPath,
};

use crate::authority::may_sign;
use crate::fault::VerifyFault;
use crate::validity::Validity;
use crate::version1::Version1;

/// The settings for verifying a certificate.
#[derive(Clone, Copy, Debug)]
pub struct Trust<'a> {
    /// PEM: authorities, or the other side's own self-signed certificate.
    pub trusted_pem: &'a [u8],
    /// PEM: a list for each authority of the chain.
    pub crl_pem: Option<&'a [u8]>,
    /// How many certificates may stand between the other side's and a trusted one.
    pub depth: usize,
    pub purpose: Purpose,
}

/// The owner of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Client,
    Server,
}

impl Purpose {
    fn key_usage(self) -> KeyUsage {
        match self {
            Purpose::Client => KeyUsage::client_auth(),
            Purpose::Server => KeyUsage::server_auth(),
        }
    }
}

/// PEM texts that cannot be used. The caller, which read the files, names the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// No trusted certificate, or a bad one.
    #[error("{0}")]
    Trusted(String),
    /// No revocation list, or a bad one.
    #[error("{0}")]
    Crl(String),
}

#[derive(Debug)]
pub struct ChainVerifier {
    algorithms: &'static [&'static dyn SignatureVerificationAlgorithm],
    /// Trusted certificates that may sign others.
    anchors: Vec<TrustAnchor<'static>>,
    /// Trusted certificates that stand for themselves alone.
    ends: Vec<TrustAnchor<'static>>,
    /// The trusted certificates as they stand.
    trusted: Vec<(CertificateDer<'static>, Validity)>,
    crls: Vec<CertRevocationList<'static>>,
    depth: usize,
    purpose: Purpose,
}

impl ChainVerifier {
    /// Reads the certificates and lists.
    ///
    /// # Errors
    ///
    /// [`TrustError`]: the settings that the operator should correct.
    pub fn new(trust: Trust<'_>) -> Result<ChainVerifier, TrustError> {
        let (mut anchors, mut ends) = (Vec::new(), Vec::new());
        let mut trusted = Vec::new();
        let bad = |error: &dyn fmt::Display| TrustError::Trusted(error.to_string());
        for certificate in CertificateDer::pem_slice_iter(trust.trusted_pem) {
            let certificate = certificate.map_err(|error| bad(&error))?;
            let anchor = webpki::anchor_from_trusted_cert(&certificate);
            let anchor = anchor.map_err(|error| bad(&error))?.to_owned();
            match may_sign(&certificate) {
                true => anchors.push(anchor),
                false => ends.push(anchor),
            }
            if let Some(validity) = Validity::of(&certificate) {
                trusted.push((certificate, validity));
            }
        }
        if anchors.is_empty() && ends.is_empty() {
            return Err(bad(&"no certificate found"));
        }
        let crls = match trust.crl_pem {
            Some(pem) => read_crls(pem)?,
            None => Vec::new(),
        };
        let provider = aws_lc_rs::default_provider();
        Ok(ChainVerifier {
            algorithms: provider.signature_verification_algorithms.all,
            anchors,
            ends,
            trusted,
            crls,
            depth: trust.depth,
            purpose: trust.purpose,
        })
    }

    /// The names of the authorities: each an X.501 name in DER, without the outermost tag.
    pub fn subjects(&self) -> impl Iterator<Item = &[u8]> {
        let trusted = self.anchors.iter().chain(&self.ends);
        trusted.map(|anchor| anchor.subject.as_ref())
    }

    /// Is `certificate`, of the other side, to be trusted?
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), VerifyFault> {
        match self.own_validity(certificate) {
            Some(validity) if now.as_secs() < validity.not_before => Err(VerifyFault::NotYetValid),
            Some(validity) if now.as_secs() > validity.not_after => Err(VerifyFault::Expired),
            Some(_) => Ok(()),
            None => {
                let is_old_allowed = self.purpose == Purpose::Client && self.crls.is_empty();
                match Version1::of(certificate).filter(|_| is_old_allowed) {
                    Some(old) => old.verify(certificate, &self.trusted, self.algorithms, now),
                    None => {
                        let parsed = EndEntityCert::try_from(certificate).map_err(fault)?;
                        self.verify_chain(&parsed, intermediates, now)
                    }
                }
            }
        }
    }

    fn verify_chain(
        &self,
        certificate: &EndEntityCert<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), VerifyFault> {
        let crls: Vec<_> = self.crls.iter().collect();
        let revocation = RevocationOptionsBuilder::new(&crls).ok().map(|options| {
            options
                .with_depth(RevocationCheckDepth::Chain)
                .with_status_policy(UnknownStatusPolicy::Deny)
                .with_expiration_policy(ExpirationPolicy::Enforce)
                .build()
        });
        let check_depth = |path: &VerifiedPath<'_>| match path.intermediate_certificates().count()
            <= self.depth
        {
            true => Ok(()),
            false => Err(webpki::Error::MaximumPathDepthExceeded),
        };
        certificate
            .verify_for_usage(
                self.algorithms,
                &self.anchors,
                intermediates,
                now,
                self.purpose.key_usage(),
                revocation,
                Some(&check_depth),
            )
            .map(|_| ())
            .map_err(|error| match error {
                webpki::Error::UnknownIssuer | webpki::Error::CaUsedAsEndEntity
                    if certificate.issuer() == certificate.subject() =>
                {
                    VerifyFault::SelfSigned
                }
                error => fault(error),
            })
    }

    /// The validity of `certificate` if it is trusted as it stands; where
    /// revocation counts, the chain has to say.
    fn own_validity(&self, certificate: &CertificateDer<'_>) -> Option<Validity> {
        self.trusted
            .iter()
            .find(|(trusted, _)| self.crls.is_empty() && trusted == certificate)
            .map(|&(_, validity)| validity)
    }
}

fn read_crls(pem: &[u8]) -> Result<Vec<CertRevocationList<'static>>, TrustError> {
    let bad = |error: &dyn fmt::Display| TrustError::Crl(error.to_string());
    let mut crls = Vec::new();
    for crl in CertificateRevocationListDer::pem_slice_iter(pem) {
        let crl = crl.map_err(|error| bad(&error))?;
        let crl = OwnedCertRevocationList::from_der(&crl).map_err(|error| bad(&error))?;
        crls.push(crl.into());
    }
    if crls.is_empty() {
        return Err(bad(&"no list found"));
    }
    Ok(crls)
}

fn fault(error: webpki::Error) -> VerifyFault {
    use webpki::Error;
    match error {
        Error::UnknownRevocationStatus => VerifyFault::NoCrl,
        Error::InvalidSignatureForPublicKey | Error::InvalidCrlSignatureForPublicKey => {
            VerifyFault::BadSignature
        }
        Error::CertNotValidYet { .. } => VerifyFault::NotYetValid,
        Error::CertExpired { .. } => VerifyFault::Expired,
        Error::CrlExpired { .. } => VerifyFault::CrlExpired,
        Error::UnknownIssuer => VerifyFault::UnknownIssuer,
        Error::MaximumPathDepthExceeded => VerifyFault::ChainTooLong,
        Error::CertRevoked => VerifyFault::Revoked,
        Error::EndEntityUsedAsCa | Error::PathLenConstraintViolated => VerifyFault::InvalidCa,
        Error::CaUsedAsEndEntity | Error::RequiredEkuNotFoundContext(_) => {
            VerifyFault::WrongPurpose
        }
        other => VerifyFault::Other(other.to_string()),
    }
}
