//! Whether an upstream's certificate is to be trusted.
//!
//! [`Verifier`] builds the chain with webpki (time, signatures, purpose,
//! constraints, revocation), bounds its depth as OpenSSL counts it, and only
//! then looks at the name, so that the log can tell the two apart. A
//! certificate that is itself among the trusted ones needs no chain, just its
//! time and name. [`TrustAnyone`] is `proxy_ssl_verify off`.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, ServerName, TrustAnchor, UnixTime,
};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RevocationCheckDepth, RevocationOptionsBuilder, UnknownStatusPolicy, VerifiedPath,
};

use crate::error::{SettingsError, VerifyFault};
use crate::settings::Verify;
use crate::validity::Validity;

#[derive(Debug)]
pub(crate) struct Verifier {
    provider: Arc<CryptoProvider>,
    anchors: Vec<TrustAnchor<'static>>,
    /// The trusted certificates as they stand.
    trusted: Vec<(CertificateDer<'static>, Validity)>,
    crls: Vec<CertRevocationList<'static>>,
    depth: usize,
}

impl Verifier {
    pub(crate) fn new(
        settings: &Verify,
        provider: Arc<CryptoProvider>,
    ) -> Result<Verifier, SettingsError> {
        let mut anchors = Vec::new();
        let mut trusted = Vec::new();
        let bad = |error: &dyn std::fmt::Display| SettingsError::Trusted(error.to_string());
        for certificate in CertificateDer::pem_slice_iter(&settings.trusted_pem) {
            let certificate = certificate.map_err(|error| bad(&error))?;
            let anchor = webpki::anchor_from_trusted_cert(&certificate);
            anchors.push(anchor.map_err(|error| bad(&error))?.to_owned());
            if let Some(validity) = Validity::of(&certificate) {
                trusted.push((certificate, validity));
            }
        }
        if anchors.is_empty() {
            return Err(bad(&"no certificate found"));
        }
        let crls = match &settings.crl_pem {
            Some(pem) => read_crls(pem)?,
            None => Vec::new(),
        };
        Ok(Verifier {
            provider,
            anchors,
            trusted,
            crls,
            depth: settings.depth,
        })
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
                self.provider.signature_verification_algorithms.all,
                &self.anchors,
                intermediates,
                now,
                KeyUsage::server_auth(),
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

fn read_crls(pem: &[u8]) -> Result<Vec<CertRevocationList<'static>>, SettingsError> {
    let bad = |error: &dyn std::fmt::Display| SettingsError::Crl(error.to_string());
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

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let parsed = EndEntityCert::try_from(certificate).map_err(|error| refused(fault(error)))?;
        match self.own_validity(certificate) {
            Some(validity) if now.as_secs() < validity.not_before => {
                return Err(refused(VerifyFault::NotYetValid));
            }
            Some(validity) if now.as_secs() > validity.not_after => {
                return Err(refused(VerifyFault::Expired));
            }
            Some(_) => {}
            None => self
                .verify_chain(&parsed, intermediates, now)
                .map_err(refused)?,
        }
        parsed
            .verify_is_valid_for_subject_name(name)
            .map_err(|_| CertificateError::NotValidForName)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Takes any certificate. Signatures are not looked at either: whoever may show
/// any certificate has the key of one, and certificates too old for webpki
/// (version 1) are common where nobody verifies.
#[derive(Debug)]
pub(crate) struct TrustAnyone {
    pub(crate) provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn refused(fault: VerifyFault) -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(fault))).into()
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
