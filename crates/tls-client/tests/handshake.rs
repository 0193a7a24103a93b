//! Handshakes over an in-memory stream with certificates made for each case.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, IsCa,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tls_client::{ConnectError, Connector, Identity, Protocols, Settings, TlsStream, Verify};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::TlsAcceptor;

const PIPE_BYTES: usize = 64 * 1024;
const NAME: &str = "example.com";

/// Who signs.
fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    params
}

fn root(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    CertifiedIssuer::self_signed(authority(name), KeyPair::generate().unwrap()).unwrap()
}

fn intermediate(
    name: &str,
    by: &CertifiedIssuer<'static, KeyPair>,
) -> CertifiedIssuer<'static, KeyPair> {
    CertifiedIssuer::signed_by(authority(name), KeyPair::generate().unwrap(), by).unwrap()
}

/// A certificate for [`NAME`] and below, with its key.
fn leaf_of(
    by: &CertifiedIssuer<'static, KeyPair>,
    change: impl FnOnce(&mut CertificateParams),
) -> Identity {
    let mut params = CertificateParams::new([NAME.to_owned(), format!("*.{NAME}")]).unwrap();
    params.serial_number = Some(SerialNumber::from(7_u64));
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap();
    Identity {
        chain_pem: certificate.pem().into_bytes(),
        key_pem: key.serialize_pem().into_bytes(),
        passwords: Vec::new(),
    }
}

fn leaf(by: &CertifiedIssuer<'static, KeyPair>) -> Identity {
    leaf_of(by, |_| {})
}

/// Creates a certificate like `openssl req -x509`.
fn self_signed(change: impl FnOnce(&mut CertificateParams)) -> Identity {
    let mut params = CertificateParams::new([NAME.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Identity {
        chain_pem: certificate.pem().into_bytes(),
        key_pem: key.serialize_pem().into_bytes(),
        passwords: Vec::new(),
    }
}

fn with_chain(mut identity: Identity, chain: &[&CertifiedIssuer<'static, KeyPair>]) -> Identity {
    for certificate in chain {
        identity.chain_pem.extend(certificate.pem().into_bytes());
    }
    identity
}

fn expired(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2001, 1, 1);
}

fn not_yet_valid(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2500, 1, 1);
    params.not_after = date_time_ymd(2501, 1, 1);
}

/// The upstream's side; `clients` are those whose certificate it demands.
fn upstream(identity: &Identity, clients: Option<&[u8]>) -> ServerConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                roots.add(certificate.unwrap()).unwrap();
            }
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let chain = CertificateDer::pem_slice_iter(&identity.chain_pem);
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(&identity.key_pem).unwrap();
    builder.with_single_cert(chain, key).unwrap()
}

/// The facts of the handshake that the upstream saw.
struct SeenHandshake {
    name: Option<String>,
    has_client_certificate: bool,
}

/// Shakes hands and sends a byte each way.
async fn talk(
    server: &Arc<ServerConfig>,
    connector: &Connector,
    name: &str,
) -> (
    Result<TlsStream<DuplexStream>, ConnectError>,
    Option<SeenHandshake>,
) {
    let (ours, theirs) = duplex(PIPE_BYTES);
    let acceptor = TlsAcceptor::from(server.clone());
    let upstream = async {
        let mut stream = acceptor.accept(theirs).await.ok()?;
        let mut byte = [0];
        stream.read_exact(&mut byte).await.ok()?;
        stream.write_all(&byte).await.ok()?;
        stream.flush().await.ok()?;
        let session = stream.get_ref().1;
        Some(SeenHandshake {
            name: session.server_name().map(str::to_owned),
            has_client_certificate: session.peer_certificates().is_some(),
        })
    };
    let client = async {
        let mut stream = connector.connect(ours, name).await?;
        let exchanged = async {
            stream.write_all(b"x").await?;
            stream.flush().await?;
            stream.read_u8().await
        };
        match exchanged.await {
            Ok(byte) => assert_eq!(byte, b'x'),
            // The upstream refused us after our part of the handshake.
            Err(error) => return Err(ConnectError::Io(error)),
        }
        Ok(stream)
    };
    tokio::join!(client, upstream)
}

fn verifying(trusted_pem: impl Into<Vec<u8>>) -> Settings {
    Settings {
        verify: Some(Verify {
            trusted_pem: trusted_pem.into(),
            depth: 1,
            crl_pem: None,
        }),
        ..Settings::default()
    }
}

async fn outcome(identity: &Identity, settings: &Settings, name: &str) -> String {
    let connector = Connector::new(settings).expect("good settings");
    let server = Arc::new(upstream(identity, None));
    match talk(&server, &connector, name).await.0 {
        Ok(_) => "connected".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn certificates_are_verified_as_far_as_asked_for() {
    let (ours, other) = (root("ours"), root("other"));
    let middle = intermediate("middle", &ours);
    let deep = intermediate("deep", &middle);
    let trusting_ours = verifying(ours.pem());
    let mut three = trusting_ours.clone();
    three.verify.as_mut().unwrap().depth = 2;
    let mut none_between = trusting_ours.clone();
    none_between.verify.as_mut().unwrap().depth = 0;
    let lone = self_signed(|_| {});
    let lone_expired = self_signed(expired);
    let lone_early = self_signed(not_yet_valid);
    let below_middle = with_chain(leaf(&middle), &[&middle]);
    let below_deep = with_chain(leaf(&deep), &[&deep, &middle]);
    let fault = |text: &str| format!("upstream SSL certificate verify error: ({text})");
    let mismatch = |name: &str| format!("upstream SSL certificate does not match \"{name}\"");
    let good = || "connected".to_owned();
    let off = Settings::default();
    #[rustfmt::skip]
    let cases = [
        ("good", &leaf(&ours), &trusting_ours, NAME, good()),
        ("with a port", &leaf(&ours), &trusting_ours, "example.com:443", good()),
        ("wildcard", &leaf(&ours), &trusting_ours, "a.example.com", good()),
        ("wrong name", &leaf(&ours), &trusting_ours, "example.org", mismatch("example.org")),
        ("an address", &leaf(&ours), &trusting_ours, "127.0.0.1:8443", mismatch("127.0.0.1")),
        ("no name", &leaf(&ours), &trusting_ours, "", mismatch("")),
        ("expired", &leaf_of(&ours, expired), &trusting_ours, NAME, fault("10:certificate has expired")),
        (
            "too early", &leaf_of(&ours, not_yet_valid), &trusting_ours, NAME,
            fault("9:certificate is not yet valid"),
        ),
        (
            "of somebody else", &leaf(&other), &trusting_ours, NAME,
            fault("20:unable to get local issuer certificate"),
        ),
        ("of nobody", &lone, &trusting_ours, NAME, fault("18:self-signed certificate")),
        ("one between", &below_middle, &trusting_ours, NAME, good()),
        ("one between, none allowed", &below_middle, &none_between, NAME, fault("22:certificate chain too long")),
        ("none between, none allowed", &leaf(&ours), &none_between, NAME, good()),
        ("two between", &below_deep, &trusting_ours, NAME, fault("22:certificate chain too long")),
        ("two between, two allowed", &below_deep, &three, NAME, good()),
        (
            "the one between is missing", &leaf(&middle), &trusting_ours, NAME,
            fault("20:unable to get local issuer certificate"),
        ),
        ("itself trusted", &lone, &verifying(lone.chain_pem.clone()), NAME, good()),
        (
            "itself trusted, wrong name", &lone, &verifying(lone.chain_pem.clone()), "example.org",
            mismatch("example.org"),
        ),
        (
            "itself trusted, expired", &lone_expired, &verifying(lone_expired.chain_pem.clone()), NAME,
            fault("10:certificate has expired"),
        ),
        (
            "itself trusted, too early", &lone_early, &verifying(lone_early.chain_pem.clone()), NAME,
            fault("9:certificate is not yet valid"),
        ),
        ("off", &lone, &off, NAME, good()),
        ("off, wrong name", &lone, &off, "example.org", good()),
        ("off, expired", &lone_expired, &off, NAME, good()),
        ("off, a name that is none", &lone, &off, "no name at all", good()),
    ];
    for (case, identity, settings, name, expected) in cases {
        assert_eq!(outcome(identity, settings, name).await, expected, "{case}");
    }
}

#[tokio::test]
async fn revoked_certificates_are_refused() {
    let ours = root("ours");
    let list = |revoked: &[u64], until| {
        let revoked = revoked.iter().map(|&serial| RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&ours).unwrap().pem().unwrap()
    };
    for (case, crl, expected) in [
        ("another one", list(&[8], 2500), "connected"),
        (
            "this one",
            list(&[7], 2500),
            "upstream SSL certificate verify error: (23:certificate revoked)",
        ),
        (
            "too old a list",
            list(&[8], 2021),
            "upstream SSL certificate verify error: (12:CRL has expired)",
        ),
    ] {
        let mut settings = verifying(ours.pem());
        settings.verify.as_mut().unwrap().crl_pem = Some(crl.into_bytes());
        assert_eq!(
            outcome(&leaf(&ours), &settings, NAME).await,
            expected,
            "{case}"
        );
    }
}

#[tokio::test]
async fn the_name_is_sent_only_if_asked_for() {
    let ours = root("ours");
    let server = Arc::new(upstream(&leaf(&ours), None));
    for (send_name, name, sent) in [
        (false, NAME, None),
        (true, NAME, Some(NAME)),
        (true, "example.com:443", Some(NAME)),
        (true, "127.0.0.1:443", None),
    ] {
        let settings = Settings {
            send_name,
            ..Settings::default()
        };
        let connector = Connector::new(&settings).unwrap();
        let (_, seen) = talk(&server, &connector, name).await;
        assert_eq!(seen.expect("a handshake").name.as_deref(), sent, "{name}");
    }
}

#[tokio::test]
async fn our_certificate_is_shown_to_those_who_ask() {
    let ours = root("ours");
    let server = Arc::new(upstream(&leaf(&ours), Some(ours.pem().as_bytes())));
    let mut settings = Settings::default();
    let (refused, seen) = talk(&server, &Connector::new(&settings).unwrap(), NAME).await;
    assert!(refused.is_err() && seen.is_none(), "let in without one");

    settings.identity = Some(leaf(&ours));
    let (connected, seen) = talk(&server, &Connector::new(&settings).unwrap(), NAME).await;
    connected.expect("let in with one");
    assert!(seen.expect("a handshake").has_client_certificate);
}

#[tokio::test]
async fn only_protocols_that_are_on_are_spoken() {
    let server = Arc::new(upstream(&self_signed(|_| {}), None));
    for (tls12, tls13, spoken) in [
        (true, false, "TLSv1.2"),
        (false, true, "TLSv1.3"),
        (true, true, "TLSv1.3"),
    ] {
        let settings = Settings {
            protocols: Protocols { tls12, tls13 },
            ..Settings::default()
        };
        let connector = Connector::new(&settings).unwrap();
        let stream = talk(&server, &connector, NAME).await.0.expect("a stream");
        assert_eq!(stream.protocol(), spoken);
    }
}

#[tokio::test]
async fn sessions_are_resumed_unless_that_is_off() {
    let server = Arc::new(upstream(&self_signed(|_| {}), None));
    for reuse_sessions in [true, false] {
        let settings = Settings {
            reuse_sessions,
            ..Settings::default()
        };
        let connector = Connector::new(&settings).unwrap();
        let first = talk(&server, &connector, NAME).await.0.expect("a stream");
        assert!(!first.is_resumed());
        let second = talk(&server, &connector, NAME).await.0.expect("a stream");
        assert_eq!(second.is_resumed(), reuse_sessions);
    }
}

#[tokio::test]
async fn what_is_no_handshake_is_told_apart() {
    let connector = Connector::new(&Settings::default()).unwrap();
    for (case, answer, expected) in [
        ("gone", &b""[..], "peer closed connection in SSL handshake"),
        (
            "plain HTTP",
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "SSL_do_handshake() failed (received corrupt message of type InvalidContentType)",
        ),
        (
            "an alert",
            b"\x15\x03\x03\x00\x02\x02\x28",
            "SSL_do_handshake() failed (received fatal alert: HandshakeFailure)",
        ),
    ] {
        let (ours, mut theirs) = duplex(PIPE_BYTES);
        let upstream = async {
            let mut hello = [0; 5];
            theirs.read_exact(&mut hello).await.expect("a hello");
            theirs.write_all(answer).await.expect("room");
            theirs.shutdown().await.expect("open");
        };
        let (_, connected) = tokio::join!(upstream, connector.connect(ours, NAME));
        let error = connected.expect_err("no handshake");
        assert!(error.to_string().starts_with(expected), "{case}: {error}");
    }
}

#[test]
fn settings_that_cannot_be_used_say_what_is_wrong() {
    let good = self_signed(|_| {});
    let other = self_signed(|_| {});
    let identity = |chain_pem: &[u8], key_pem: &[u8]| Settings {
        identity: Some(Identity {
            chain_pem: chain_pem.to_vec(),
            key_pem: key_pem.to_vec(),
            passwords: Vec::new(),
        }),
        ..Settings::default()
    };
    let mut bad_crl = verifying(good.chain_pem.clone());
    bad_crl.verify.as_mut().unwrap().crl_pem = Some(good.chain_pem.clone());
    let encrypted =
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    #[rustfmt::skip]
    let cases = [
        ("nothing trusted", verifying(""), "cannot load trusted certificates: no certificate found"),
        (
            "a broken one trusted", verifying("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "cannot load trusted certificates: ",
        ),
        ("no list", bad_crl, "cannot load certificate revocation list: no list found"),
        ("no certificate", identity(b"", &good.key_pem), "cannot load certificate: no certificate found"),
        ("no key", identity(&good.chain_pem, b""), "cannot load certificate key: "),
        ("an encrypted key", identity(&good.chain_pem, encrypted), "cannot load certificate key: "),
        ("another's key", identity(&good.chain_pem, &other.key_pem), "cannot load certificate key: "),
        (
            "no protocol", Settings { protocols: Protocols { tls12: false, tls13: false }, ..Settings::default() },
            "no protocol of TLSv1.2 and TLSv1.3 is left",
        ),
    ];
    for (case, settings, expected) in cases {
        let error = Connector::new(&settings).err().expect(case).to_string();
        assert!(error.starts_with(expected), "{case}: {error}");
    }
}

#[test]
fn a_certificate_of_version_1_is_shown_with_its_own_key_alone() {
    let identity = |key_pem: Vec<u8>| Settings {
        identity: Some(Identity {
            chain_pem: include_bytes!("../../tls-server/tests/data/version_1.pem").to_vec(),
            key_pem,
            passwords: Vec::new(),
        }),
        ..Settings::default()
    };
    let own = include_bytes!("../../tls-server/tests/data/version_1.key");
    assert!(Connector::new(&identity(own.to_vec())).is_ok());
    let other = self_signed(|_| {}).key_pem;
    let error = Connector::new(&identity(other)).err();
    assert!(
        matches!(error, Some(tls_client::SettingsError::Key(_))),
        "{error:?}"
    );
}
