//! Verifies the certificates of upstreams.
//!
//! [`Verifier`] verifies the chain and only then looks at the name, so that the log can tell the
//! two apart. [`TrustAnyone`] is `proxy_ssl_verify off`.

use std::sync::Arc;

use certificate_chain::{ChainVerifier, Purpose, Trust, TrustError, VerifyFault};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use webpki::EndEntityCert;

use crate::error::SettingsError;
use crate::settings::Verify;

#[derive(Debug)]
pub(crate) struct Verifier {
    provider: Arc<CryptoProvider>,
    chain: ChainVerifier,
}

impl Verifier {
    pub(crate) fn new(
        settings: &Verify,
        provider: Arc<CryptoProvider>,
    ) -> Result<Verifier, SettingsError> {
        let trust = Trust {
            trusted_pem: &settings.trusted_pem,
            crl_pem: settings.crl_pem.as_deref(),
            depth: settings.depth,
            purpose: Purpose::Server,
        };
        let chain = ChainVerifier::new(trust).map_err(|error| match error {
            TrustError::Trusted(why) => SettingsError::Trusted(why),
            TrustError::Crl(why) => SettingsError::Crl(why),
        })?;
        Ok(Verifier { provider, chain })
    }
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
        self.chain
            .verify(certificate, intermediates, now)
            .map_err(refused)?;
        EndEntityCert::try_from(certificate)
            .and_then(|parsed| parsed.verify_is_valid_for_subject_name(name))
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

/// Takes any certificate. Its signatures are not verified either: a server that may show any
/// certificate has the key of one, and certificates too old for webpki (version 1) are common where
/// verification is off.
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
