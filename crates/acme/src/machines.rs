//! Other machines that serve the same names: one of them asks the issuer, and all get the certificate.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use crate::settings::CertificateRequest;

/// The answer of the other machines, or why they cannot be asked.
pub type MachinesAnswer<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, Box<dyn Error + Send + Sync>>> + Send + 'a>>;

/// The machines that share certificates.
pub trait Machines: Send + Sync + 'static {
    /// The certificate that one of them was given: chain and key as PEM.
    fn certificate<'a>(
        &'a self,
        request: &'a CertificateRequest,
    ) -> MachinesAnswer<'a, Option<Vec<u8>>>;

    /// Whether this machine may ask the issuer, as the only one for this time.
    fn turn<'a>(
        &'a self,
        request: &'a CertificateRequest,
        lasts: Duration,
    ) -> MachinesAnswer<'a, bool>;

    /// Gives them a certificate, which is valid until then.
    fn give<'a>(
        &'a self,
        request: &'a CertificateRequest,
        pem: &'a [u8],
        not_after: SystemTime,
    ) -> MachinesAnswer<'a, ()>;
}
