//! Handshakes in memory, with certificates made for each case.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, IsCa,
    KeyIdMethod, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256,
    RevokedCertParams, SerialNumber, SignatureAlgorithm, date_time_ymd,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, NamedGroup, ProtocolVersion, RootCertStore,
    ServerConnection, SupportedProtocolVersion, version,
};
use tls_server::{
    ClientMode, ClientVerdict, Clients, Identity, PemFile, Refusal, Resumption, SessionCache,
    Settings, SettingsError, TicketKeys, TlsServer, VerifyFault,
};

const NAME: &str = "example.com";
const ECDSA_SUITE: u16 = 0xc02b;
const RSA_SUITE: u16 = 0xc02f;
const TLS13_SUITE: u16 = 0x1301;
const X25519: u16 = 29;
const X25519_MLKEM768: u16 = 4588;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn file(name: &str, pem: impl Into<Vec<u8>>) -> PemFile {
    PemFile {
        name: name.to_owned(),
        pem: pem.into(),
    }
}

fn identity_with(
    by: &Issuer,
    algorithm: &'static SignatureAlgorithm,
    change: impl FnOnce(&mut CertificateParams),
) -> Identity {
    let mut params = CertificateParams::new([NAME.to_owned()]).unwrap();
    params.serial_number = Some(SerialNumber::from(7_u64));
    change(&mut params);
    let key = KeyPair::generate_for(algorithm).unwrap();
    let certificate = params.signed_by(&key, by).unwrap();
    Identity {
        chain: file("c.pem", certificate.pem()),
        key: file("c.key", key.serialize_pem()),
    }
}

fn identity(by: &Issuer) -> Identity {
    identity_with(by, &PKCS_ECDSA_P256_SHA256, |_| {})
}

fn settings(identities: Vec<Identity>) -> Settings {
    Settings {
        named_identities: None,
        named_cache: None,
        compresses_certificates: false,
        identities,
        passwords: Vec::new(),
        tls12: true,
        tls13: true,
        cipher_suites: vec![TLS13_SUITE, ECDSA_SUITE, RSA_SUITE],
        prefers_own_order: false,
        key_exchange_groups: vec![X25519_MLKEM768, X25519],
        clients: None,
        session_timeout: Duration::from_secs(300),
        record_bytes: 16 << 10,
        early_data: false,
    }
}

fn server(settings: &Settings) -> TlsServer {
    TlsServer::new(settings, Resumption::default()).unwrap()
}

fn error(settings: &Settings) -> SettingsError {
    TlsServer::new(settings, Resumption::default()).unwrap_err()
}

/// A client that trusts `authority`, and perhaps shows a certificate.
fn client(
    authority: &Issuer,
    own: Option<&Identity>,
    versions: &[&'static SupportedProtocolVersion],
    provider: CryptoProvider,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        Some(own) => {
            let chain = CertificateDer::pem_slice_iter(&own.chain.pem);
            let key = PrivateKeyDer::from_pem_slice(&own.key.pem).unwrap();
            let chain = chain.collect::<Result<_, _>>().unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

fn plain_client(authority: &Issuer) -> Arc<ClientConfig> {
    let both = [&version::TLS13, &version::TLS12];
    client(authority, None, &both, aws_lc_rs::default_provider())
}

/// Both sides after a handshake and a byte in each direction.
fn shake(
    server: &TlsServer,
    with_http2: bool,
    client: &Arc<ClientConfig>,
) -> Result<(ServerConnection, ClientConnection), rustls::Error> {
    let mut ours = ServerConnection::new(server.config(with_http2).clone())?;
    let name = ServerName::try_from(NAME).unwrap();
    let mut theirs = ClientConnection::new(client.clone(), name)?;
    ours.writer().write_all(b"a").unwrap();
    theirs.writer().write_all(b"b").unwrap();
    while theirs.wants_write() || ours.wants_write() {
        let mut bytes = Vec::new();
        while theirs.wants_write() {
            theirs.write_tls(&mut bytes).unwrap();
        }
        ours.read_tls(&mut bytes.as_slice()).unwrap();
        ours.process_new_packets()?;
        bytes.clear();
        while ours.wants_write() {
            ours.write_tls(&mut bytes).unwrap();
        }
        theirs.read_tls(&mut bytes.as_slice()).unwrap();
        theirs.process_new_packets()?;
    }
    assert!(!ours.is_handshaking() && !theirs.is_handshaking());
    theirs.reader().read_exact(&mut [0]).unwrap();
    Ok((ours, theirs))
}

#[test]
fn a_client_speaks_http2_where_it_may() {
    let ca = authority("ca");
    let server = server(&settings(vec![identity(&ca)]));
    for (with_http2, expected) in [(true, &b"h2"[..]), (false, b"http/1.1")] {
        let (ours, _) = shake(&server, with_http2, &plain_client(&ca)).unwrap();
        assert_eq!(ours.alpn_protocol(), Some(expected));
        assert_eq!(ours.protocol_version(), Some(ProtocolVersion::TLSv1_3));
        let group = ours.negotiated_key_exchange_group().unwrap().name();
        assert_eq!(group, NamedGroup::X25519MLKEM768);
    }
}

#[test]
fn only_protocols_ciphers_and_groups_that_are_on_are_used() {
    let ca = authority("ca");
    let only = |version: &'static SupportedProtocolVersion| {
        client(&ca, None, &[version], aws_lc_rs::default_provider())
    };
    let mut settings = settings(vec![identity(&ca)]);
    settings.tls13 = false;
    settings.key_exchange_groups = vec![X25519];
    let tls12 = server(&settings);
    assert!(shake(&tls12, true, &only(&version::TLS13)).is_err());
    let (ours, _) = shake(&tls12, true, &only(&version::TLS12)).unwrap();
    let suite = ours.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(u16::from(suite), ECDSA_SUITE);
    let group = ours.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(u16::from(group), X25519);
    settings.tls13 = true;
    settings.tls12 = false;
    assert!(shake(&server(&settings), true, &only(&version::TLS12)).is_err());
    settings.cipher_suites = vec![0x1303];
    let (ours, _) = shake(&server(&settings), true, &only(&version::TLS13)).unwrap();
    let suite = ours.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(u16::from(suite), 0x1303);
    settings.cipher_suites = vec![0x1301];
    settings.tls13 = false;
    settings.tls12 = true;
    assert!(matches!(error(&settings), SettingsError::NothingLeft(_)));
}

#[test]
fn each_client_gets_a_certificate_that_it_can_verify() {
    let ca = authority("ca");
    let rsa = identity_with(&ca, &PKCS_RSA_SHA256, |_| {});
    let server = server(&settings(vec![rsa, identity(&ca)]));
    for (suites, expected) in [
        (&[0xc02b, 0xc02f][..], ECDSA_SUITE),
        (&[0xc02f], RSA_SUITE),
        (&[0xc02b], ECDSA_SUITE),
    ] {
        let mut provider = aws_lc_rs::default_provider();
        let has = |suite: u16| suites.contains(&suite);
        provider
            .cipher_suites
            .retain(|suite| has(u16::from(suite.suite())));
        let client = client(&ca, None, &[&version::TLS12], provider);
        let (ours, _) = shake(&server, false, &client).unwrap();
        let suite = ours.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(u16::from(suite), expected, "{suites:?}");
    }
}

#[test]
fn sessions_are_resumed_by_tickets_and_from_the_cache() {
    let ca = authority("ca");
    let settings = settings(vec![identity(&ca)]);
    let tickets = || Some(Arc::new(TicketKeys::random(Duration::from_secs(300))));
    let cache = || Some(Arc::new(SessionCache::of_bytes(1 << 20)));
    for version in [&version::TLS13, &version::TLS12] {
        for (tickets, cache, expected) in [
            (tickets(), None, HandshakeKind::Resumed),
            (None, cache(), HandshakeKind::Resumed),
            (tickets(), cache(), HandshakeKind::Resumed),
            (None, None, HandshakeKind::Full),
        ] {
            let resumption = Resumption { tickets, cache };
            let client = client(&ca, None, &[version], aws_lc_rs::default_provider());
            let before = TlsServer::new(&settings, resumption.clone()).unwrap();
            let (ours, _) = shake(&before, true, &client).unwrap();
            assert_eq!(ours.handshake_kind(), Some(HandshakeKind::Full));
            // After a reload.
            let after = TlsServer::new(&settings, resumption.clone()).unwrap();
            let (ours, _) = shake(&after, true, &client).unwrap();
            assert_eq!(ours.handshake_kind(), Some(expected), "{version:?}");
        }
    }
}

/// A client that one server has not asked for a certificate must not come to another, which
/// asks, with that session.
#[test]
fn a_session_is_not_resumed_by_a_server_that_demands_more() {
    let ca = authority("ca");
    let open = settings(vec![identity(&ca)]);
    let mut guarded = open.clone();
    guarded.clients = Some(clients(ClientMode::Required, Some(&ca)));
    let resumption = Resumption {
        tickets: Some(Arc::new(TicketKeys::random(Duration::from_secs(300)))),
        cache: Some(Arc::new(SessionCache::of_bytes(1 << 20))),
    };
    for version in [&version::TLS13, &version::TLS12] {
        let client = client(&ca, None, &[version], aws_lc_rs::default_provider());
        let first = TlsServer::new(&open, resumption.clone()).unwrap();
        shake(&first, true, &client).unwrap();
        let second = TlsServer::new(&guarded, resumption.clone()).unwrap();
        let (ours, _) = shake(&second, true, &client).unwrap();
        assert_eq!(ours.handshake_kind(), Some(HandshakeKind::Full));
    }
}

fn clients(mode: ClientMode, ca: Option<&Issuer>) -> Clients {
    Clients {
        mode,
        named_authorities: ca.map(|ca| file("ca.pem", ca.pem())),
        other_authorities: None,
        depth: 1,
        crl: None,
    }
}

/// Returns the server's verdict on a client that shows `own`.
fn judged(
    ca: &Issuer,
    asked: &Clients,
    own: Option<&Identity>,
) -> (ClientVerdict, Option<Refusal>) {
    let mut settings = settings(vec![identity(ca)]);
    settings.clients = Some(asked.clone());
    let server = server(&settings);
    let both = [&version::TLS13, &version::TLS12];
    let client = client(ca, own, &both, aws_lc_rs::default_provider());
    let (ours, _) = shake(&server, true, &client).unwrap();
    let verdict = server.verdict(ours.peer_certificates(), UnixTime::now());
    let refusal = server.refusal(&verdict);
    (verdict, refusal)
}

#[test]
fn certificates_of_clients_are_judged_after_the_handshake() {
    use ClientMode::{Optional, OptionalWithoutAuthority, Required};
    use ClientVerdict::{Failed, NoCertificate, Verified};
    let (ca, other) = (authority("ca"), authority("other"));
    let good = identity(&ca);
    let stranger = identity(&other);
    let expired = identity_with(&ca, &PKCS_ECDSA_P256_SHA256, |params| {
        params.not_after = date_time_ymd(2001, 1, 1);
    });
    let unknown = || Failed(VerifyFault::UnknownIssuer);
    let old = || Failed(VerifyFault::Expired);
    let bad = Some(Refusal::BadCertificate);
    for (mode, own, verdict, refusal) in [
        (Required, Some(&good), Verified, None),
        (Required, None, NoCertificate, Some(Refusal::NoCertificate)),
        (Required, Some(&expired), old(), bad),
        (Optional, None, NoCertificate, None),
        (Optional, Some(&stranger), unknown(), bad),
        (OptionalWithoutAuthority, Some(&stranger), unknown(), None),
        (OptionalWithoutAuthority, Some(&expired), old(), bad),
    ] {
        let asked = clients(mode, Some(&ca));
        // A client shows only what one of the named authorities has signed, so none is named.
        let asked = Clients {
            other_authorities: asked.named_authorities,
            named_authorities: None,
            ..asked
        };
        assert_eq!(judged(&ca, &asked, own), (verdict, refusal), "{mode:?}");
    }
    let asked = clients(OptionalWithoutAuthority, None);
    assert_eq!(judged(&ca, &asked, Some(&good)), (unknown(), None));
    assert_eq!(old().to_string(), "FAILED:certificate has expired");
    let mut asked = clients(Required, Some(&ca));
    let crl = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(2100, 1, 1),
        crl_number: SerialNumber::from(1_u64),
        issuing_distribution_point: None,
        revoked_certs: vec![RevokedCertParams {
            serial_number: SerialNumber::from(7_u64),
            revocation_time: date_time_ymd(2021, 1, 1),
            reason_code: None,
            invalidity_date: None,
        }],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let crl = crl.signed_by(&ca).unwrap().pem().unwrap();
    asked.crl = Some(file("crl.pem", crl));
    let revoked = Failed(VerifyFault::Revoked);
    assert_eq!(judged(&ca, &asked, Some(&good)), (revoked, bad));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let ca = authority("ca");
    let good = settings(vec![identity(&ca)]);
    let message = |change: &dyn Fn(&mut Settings)| {
        let mut settings = good.clone();
        change(&mut settings);
        error(&settings).to_string()
    };
    let found = message(&|it| it.identities[0].chain.pem.clear());
    assert_eq!(
        found,
        "cannot load certificate \"c.pem\": no certificate found"
    );
    let found = message(&|it| it.identities[0].key.pem.clear());
    assert_eq!(found, "cannot load certificate key \"c.key\": no key found");
    let other = identity(&ca);
    let found = message(&|it| it.identities[0].key.pem.clone_from(&other.key.pem));
    let expected = "SSL_CTX_use_PrivateKey(\"c.key\") failed (key values mismatch)";
    assert_eq!(found, expected);
    let found = message(&|it| {
        let mut clients = clients(ClientMode::Required, Some(&ca));
        clients.named_authorities = Some(file("ca.pem", "nothing"));
        it.clients = Some(clients);
    });
    let expected = "SSL_CTX_load_verify_locations(\"ca.pem\") failed (no certificate found)";
    assert_eq!(found, expected);
    let found = message(&|it| {
        let mut clients = clients(ClientMode::Required, Some(&ca));
        clients.crl = Some(file("crl.pem", "nothing"));
        it.clients = Some(clients);
    });
    assert_eq!(
        found,
        "X509_load_crl_file(\"crl.pem\") failed (no list found)"
    );
}

/// Made by `openssl req -x509` and `openssl pkcs8 -topk8` with the password `rightword`.
#[test]
fn an_encrypted_key_is_read_with_the_password_that_fits() {
    let mut settings = settings(vec![Identity {
        chain: file("e.pem", include_bytes!("data/encrypted.pem")),
        key: file("e.key", include_bytes!("data/encrypted.key")),
    }]);
    let none = "cannot load certificate key \"e.key\": it is encrypted, and there is no password in \"ssl_password_file\"";
    assert_eq!(error(&settings).to_string(), none);
    settings.passwords = b"wrong\n".to_vec();
    let wrong = "cannot load certificate key \"e.key\": no password of \"ssl_password_file\" fits";
    assert_eq!(error(&settings).to_string(), wrong);
    settings.passwords = b"wrong\r\n\nrightword\r\n".to_vec();
    server(&settings);
    settings.identities[0].key.pem = include_bytes!("data/encrypted_3des.key").to_vec();
    server(&settings);
    settings.identities[0].key.pem = include_bytes!("data/encrypted_old.key").to_vec();
    assert!(
        error(&settings)
            .to_string()
            .contains("openssl pkcs8 -topk8")
    );
}

#[test]
fn a_certificate_of_version_1_is_served_with_its_own_key_alone() {
    let own = Identity {
        chain: file("c.pem", include_bytes!("data/version_1.pem")),
        key: file("c.key", include_bytes!("data/version_1.key")),
    };
    server(&settings(vec![own.clone()]));
    let other = Identity {
        key: identity(&authority("a")).key,
        ..own
    };
    let expected = SettingsError::KeyMismatch {
        file: "c.key".to_owned(),
    };
    assert_eq!(error(&settings(vec![other])), expected);
}
