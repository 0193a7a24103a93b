//! The certificate of `serve --tls`: for names of this machine alone, by an authority of the user's
//! own.
//!
//! The authority is made once and kept with its key, so that browsers in which the user has trusted
//! it go on doing so. It can only sign for `localhost`, for `.test` (RFC 6761) and for loopback
//! addresses (RFC 5280 §4.2.1.10): a thief of its key can stand in for no name of the internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use acme::Store;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints, SanType, date_time_ymd,
};

const DAY: Duration = Duration::from_secs(86_400);
const AUTHORITY_DAYS: u32 = 3650;
/// Browsers refuse certificates that are valid for much longer than a year.
const CERTIFICATE_DAYS: u32 = 397;
/// The file of the authority's key, in the folder.
const KEY: &str = "authority.key";
const AUTHORITY: &str = "authority.pem";
/// The certificate with its key.
const CERTIFICATE: &str = "localhost.pem";

/// The paths of the files.
#[derive(Debug)]
pub struct LocalCertificate {
    /// The certificate that is served, with its key.
    pub certificate: PathBuf,
    /// The certificate that browsers should trust.
    pub authority: PathBuf,
}

/// Makes the certificate anew, and before the first time its authority.
///
/// # Errors
/// The error of the system for the folder.
pub fn make(folder: &Path) -> Result<LocalCertificate, String> {
    let shown = folder.display();
    let store = Store::open(folder).map_err(|error| format!("{shown}: {error}"))?;
    let failed = |error: rcgen::Error| format!("no certificate can be made in {shown}: {error}");
    let write = |name: &str, bytes: &[u8]| store.write(name, bytes).map_err(|it| it.to_string());
    let kept = store.read(KEY).zip(store.read(AUTHORITY));
    let key = match kept {
        Some((key, _)) => KeyPair::from_pem(&String::from_utf8_lossy(&key)).map_err(failed)?,
        None => {
            let key = KeyPair::generate().map_err(failed)?;
            let authority = authority().self_signed(&key).map_err(failed)?;
            write(AUTHORITY, authority.pem().as_bytes())?;
            write(KEY, key.serialize_pem().as_bytes())?;
            key
        }
    };
    let issuer = Issuer::new(authority(), key);
    let own = KeyPair::generate().map_err(failed)?;
    let certificate = certificate()
        .and_then(|params| params.signed_by(&own, &issuer))
        .map_err(failed)?;
    let pem = format!("{}{}", own.serialize_pem(), certificate.pem());
    write(CERTIFICATE, pem.as_bytes())?;
    Ok(LocalCertificate {
        certificate: folder.join(CERTIFICATE),
        authority: folder.join(AUTHORITY),
    })
}

fn authority() -> CertificateParams {
    let mut params = valid_for(AUTHORITY_DAYS);
    params.distinguished_name = named("Mayfly on this machine");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let loopback = [
        CidrSubnet::from_addr_prefix(IpAddr::V4(Ipv4Addr::LOCALHOST), 8),
        CidrSubnet::from_addr_prefix(IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    ];
    let names = ["localhost", "test"].map(|name| GeneralSubtree::DnsName(name.to_owned()));
    let addresses = loopback.map(GeneralSubtree::IpAddress);
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: names.into_iter().chain(addresses).collect(),
        excluded_subtrees: Vec::new(),
    });
    params
}

fn certificate() -> Result<CertificateParams, rcgen::Error> {
    let mut params = valid_for(CERTIFICATE_DAYS);
    params.distinguished_name = named("localhost");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.subject_alt_names = vec![
        SanType::DnsName("localhost".try_into()?),
        SanType::DnsName("*.localhost".try_into()?),
        SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        SanType::IpAddress(IpAddr::V6(Ipv6Addr::LOCALHOST)),
    ];
    Ok(params)
}

/// From yesterday on: clocks differ.
fn valid_for(days: u32) -> CertificateParams {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let yesterday = now.unwrap_or_default().saturating_sub(DAY);
    let mut params = CertificateParams::default();
    params.not_before = date_time_ymd(1970, 1, 1) + yesterday;
    params.not_after = params.not_before + DAY * days;
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_stays_and_the_certificate_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("local");
        let read = |path: &Path| std::fs::read(path).unwrap();
        let first = make(&folder).unwrap();
        let (authority, certificate) = (read(&first.authority), read(&first.certificate));
        let second = make(&folder).unwrap();
        assert_eq!(read(&second.authority), authority);
        assert_ne!(read(&second.certificate), certificate);
    }

    #[test]
    fn a_folder_that_others_may_read_keeps_no_key() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let error = make(folder.path()).unwrap_err();
        assert!(error.contains("others may read"), "{error}");
    }
}
