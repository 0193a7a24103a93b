//! Lowers `ssl_*`: TLS on connections of clients.

use std::path::{Path, PathBuf};

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::ciphers::{self, Selection};
use super::level::Level;
use super::template::has_variables;
use super::values::{place_in, to_usize};
use crate::check::Node;
use crate::directives::constants::*;
use crate::model::*;

/// The minimum of a session cache in nginx: eight pages.
const MIN_CACHE_BYTES: u64 = 8 * 4096;
/// `builtin` without a number, as OpenSSL has it.
const BUILTIN_SESSIONS: u64 = 20 * 1024;
/// How much plaintext a record carries at most (RFC 8446 §5.1).
const MAX_RECORD_BYTES: u64 = 16 << 10;

/// Commands of OpenSSL's configuration about choices that rustls makes by itself.
const COMMANDS_WITHOUT_EFFECT: &[&str] = &[
    "ClientSignatureAlgorithms",
    "DHParameters",
    "ECDHParameters",
    "NumTickets",
    "RecordPadding",
    "SignatureAlgorithms",
];

/// Options of `ssl_conf_command Options` that are always in force here, or that change speed
/// only.
const OPTIONS_WITHOUT_MEANING: &[&str] = &[
    "-Compression",
    "-UnsafeLegacyRenegotiation",
    "-UnsafeLegacyServerConnect",
    "AntiReplay",
    "EncryptThenMac",
    "ExtendedMasterSecret",
    "KTLS",
    "NoRenegotiation",
    "NoResumptionOnRenegotiation",
    "PrioritizeChaCha",
];

/// The permitted protocols, ciphers and groups.
struct Algorithms {
    tls12: bool,
    tls13: bool,
    tls12_suites: Vec<CipherSuite>,
    tls13_suites: Vec<CipherSuite>,
    prefers_own_order: bool,
    groups: Vec<KeyExchangeGroup>,
    /// `Options SessionTicket`
    tickets: Option<bool>,
    /// `Certificate` and `PrivateKey`
    certificate: Option<CertificateFiles>,
}

/// `ssl_certificate` and `ssl_certificate_key` of a server.
#[derive(Default)]
struct ServerCertificates {
    files: Vec<CertificateFiles>,
    named: Vec<NamedCertificateFiles>,
    of_handshake: Vec<HandshakeCertificate>,
}

impl Lowering<'_> {
    /// The settings of a server, if it has a certificate or rejects handshakes.
    pub fn server_tls(&mut self, level: &Level<'_>) -> Option<ServerTlsId> {
        let is_used =
            !level.all("ssl_certificate").is_empty() || self.value(level, SSL_REJECT_HANDSHAKE);
        let settings = self.server_tls_settings(level, is_used);
        if !is_used {
            return None;
        }
        let all = &mut self.declared.server_tls;
        Some(ServerTlsId(place_in(all, settings)))
    }

    /// Reads all values of a level. Like in nginx, settings that contradict each other are
    /// reported only if the level `is_used`.
    pub fn server_tls_settings(&mut self, level: &Level<'_>, is_used: bool) -> ServerTls {
        let algorithms = self.algorithms(level);
        let mut cipher_suites = algorithms.tls13_suites;
        cipher_suites.extend(algorithms.tls12_suites);
        self.refuse_ocsp(level);
        let mut certificates = self.certificates(level, is_used);
        if let Some(pair) = algorithms.certificate {
            certificates.files = vec![pair];
        }
        ServerTls {
            certificates: certificates.files,
            named_certificates: certificates.named,
            certificates_of_handshake: certificates.of_handshake,
            certificate_folder: self.path_beside_main_file(""),
            certificate_cache: match level.find("ssl_certificate_cache") {
                None => Some(CertificateCache::DEFAULT),
                Some(_) => self.certificate_cache(level, "ssl_certificate_cache"),
            },
            compresses_certificates: self.value(level, SSL_CERTIFICATE_COMPRESSION),
            password_file: self.file_beside_main_file(level, "ssl_password_file"),
            tls12: algorithms.tls12,
            tls13: algorithms.tls13,
            cipher_suites,
            prefers_own_order: algorithms.prefers_own_order,
            key_exchange_groups: algorithms.groups,
            clients: self.client_verification(level, is_used),
            session_cache: self.session_cache(level),
            session_timeout: self.value(level, SSL_SESSION_TIMEOUT),
            tickets: algorithms
                .tickets
                .unwrap_or_else(|| self.value(level, SSL_SESSION_TICKETS)),
            ticket_key_files: level
                .all("ssl_session_ticket_key")
                .iter()
                .map(|node| self.path_beside_main_file(node.arg(0)))
                .collect(),
            record_bytes: to_usize(
                self.value(level, SSL_BUFFER_SIZE)
                    .clamp(1, MAX_RECORD_BYTES),
            ),
            early_data: self.value(level, SSL_EARLY_DATA),
            rejects_handshake: self.value(level, SSL_REJECT_HANDSHAKE),
        }
    }

    fn certificates(&mut self, level: &Level<'_>, is_used: bool) -> ServerCertificates {
        let chains = level.all("ssl_certificate").to_vec();
        let keys = level.all("ssl_certificate_key").to_vec();
        for node in chains.iter().chain(&keys) {
            let word = node.arg(0);
            if is_acme(node) {
                if is_used && self.acme_file.is_none() {
                    self.error(
                        word.span,
                        format!(
                            "\"{word}\" has no value without \"acme_certificate\" in the server"
                        ),
                    );
                }
            } else if let Some(kind) = ["engine:", "store:"]
                .iter()
                .find(|kind| word.starts_with(**kind))
            {
                let expected = format!("expected the name of a file; \"{kind}\" is not there yet");
                self.invalid(word, "file", expected);
            }
        }
        if let Some(last) = chains
            .last()
            .filter(|_| is_used && keys.len() < chains.len())
        {
            let certificate = last.arg(0);
            self.error(
                certificate.span,
                format!("no \"ssl_certificate_key\" is defined for certificate \"{certificate}\""),
            );
        }
        let mut found = ServerCertificates::default();
        let lines = chains.iter().chain(&keys);
        if lines.clone().any(|node| self.is_of_handshake(node)) {
            if let Some(node) = lines.clone().find(|node| is_acme(node)) {
                let expected = "beside certificates whose names have variables, it is not possible";
                self.invalid(node.arg(0), "file", expected);
            }
            let pairs = chains
                .iter()
                .zip(&keys)
                .map(|(chain, key)| HandshakeCertificate {
                    chain: self.template(chain.arg(0)),
                    key: self.template(key.arg(0)),
                });
            found.of_handshake = pairs.collect();
            return found;
        }
        for (chain, key) in chains.iter().zip(&keys) {
            let chain_file = self.certificate_file(chain);
            let key_file = self.certificate_file(key);
            let is_named = |node: &Node<'_>| !is_acme(node) && has_variables(node.arg(0));
            if !is_named(chain) && !is_named(key) {
                found.files.push(CertificateFiles {
                    chain: chain_file,
                    key: key_file,
                });
                continue;
            }
            if let (Some(chain), Some(key)) = (named_file(&chain_file), named_file(&key_file)) {
                found.named.push(NamedCertificateFiles { chain, key });
            }
        }
        found
    }

    /// Is its value known when a client comes, not by the name alone that the client asks for?
    fn is_of_handshake(&self, node: &Node<'_>) -> bool {
        let word = node.arg(0);
        let has_others = has_variables(word) && self.named_file(word).is_none();
        !is_acme(node) && (has_others || word.starts_with("data:"))
    }

    /// A file whose name has variables; `None` if they are not those that it may have.
    fn named_file(&self, word: &str) -> Option<NamedFile> {
        named_file(&self.path_beside_main_file(word))
    }

    /// The file of a certificate or key; that of an issued certificate has both.
    fn certificate_file(&self, node: &Node<'_>) -> PathBuf {
        match (&self.acme_file, is_acme(node)) {
            (Some(file), true) => file.clone(),
            _ => self.path_beside_main_file(node.arg(0)),
        }
    }

    fn client_verification(
        &mut self,
        level: &Level<'_>,
        is_used: bool,
    ) -> Option<ClientVerification> {
        let mode = self.value(level, SSL_VERIFY_CLIENT);
        let depth = to_usize(self.value(level, SSL_VERIFY_DEPTH));
        let file = |name| {
            let node: Option<&Node<'_>> = level.find(name);
            let word = node.map(|node| node.arg(0));
            word.filter(|word| !word.is_empty())
                .map(|word| self.path_beside_main_file(word))
        };
        let found = ClientVerification {
            mode: mode?,
            named_authorities: file("ssl_client_certificate"),
            other_authorities: file("ssl_trusted_certificate"),
            depth,
            crl: file("ssl_crl"),
        };
        if is_used
            && found.mode != ClientVerificationMode::OptionalWithoutAuthority
            && found.named_authorities.is_none()
            && found.other_authorities.is_none()
            && let Some(node) = level.find("ssl_verify_client")
        {
            self.refuse(
                node.span(),
                "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client",
                "without one no client can be trusted",
            );
        }
        Some(found)
    }

    fn session_cache(&mut self, level: &Level<'_>) -> TlsSessionCache {
        let mut cache = TlsSessionCache::None;
        let Some(node) = level.find("ssl_session_cache") else {
            return cache;
        };
        for word in node.args() {
            match word.split_once(':').unwrap_or((word, "")) {
                ("off" | "none", "") => {}
                // Beside a shared cache, nginx keeps a second one in each process.
                ("builtin", number) => {
                    let sessions = match number {
                        "" => Some(BUILTIN_SESSIONS),
                        number => self.number_in(word, number),
                    };
                    if let (TlsSessionCache::None, Some(sessions)) = (&cache, sessions) {
                        cache = TlsSessionCache::Builtin { sessions };
                    }
                }
                ("shared", zone) => cache = self.shared_sessions(word, zone).unwrap_or(cache),
                _ => self.invalid_session_cache(word),
            }
        }
        cache
    }

    /// `NAME:SIZE` of `shared:NAME:SIZE`.
    fn shared_sessions(&mut self, word: &Word, zone: &str) -> Option<TlsSessionCache> {
        let Some((name, size)) = zone.split_once(':').filter(|(name, _)| !name.is_empty()) else {
            self.invalid_session_cache(word);
            return None;
        };
        let bytes = self.size_in(word, size)?;
        if bytes < MIN_CACHE_BYTES {
            self.refuse(
                word.span,
                format!("session cache \"{word}\" is too small"),
                "expected at least 32k",
            );
            return None;
        }
        let known = *self
            .tls_session_caches
            .entry(name.to_owned())
            .or_insert(bytes);
        if known != bytes {
            self.error(
                word.span,
                format!(
                    "the size {bytes} of shared memory zone \"{name}\" conflicts with already declared size {known}"
                ),
            );
        }
        Some(TlsSessionCache::Shared {
            name: name.to_owned(),
            bytes,
        })
    }

    fn invalid_session_cache(&mut self, word: &Word) {
        self.invalid(
            word,
            "session cache",
            "expected off, none, builtin, builtin:NUMBER or shared:NAME:SIZE",
        );
    }

    /// Revoked certificates would be accepted if this were ignored.
    fn refuse_ocsp(&mut self, level: &Level<'_>) {
        let choices = [("off", false), ("on", true), ("leaf", true)];
        if level
            .word("ssl_ocsp")
            .and_then(|word| self.choice_of(word, &choices))
            == Some(true)
            && let Some(node) = level.find("ssl_ocsp")
        {
            self.report(
                Diagnostic::error(
                    node.span(),
                    "client certificates cannot be checked by OCSP yet",
                )
                .label("nginx has it, Mayfly does not yet")
                .hint("use `ssl_crl`, or leave it out"),
            );
        }
    }

    fn algorithms(&mut self, level: &Level<'_>) -> Algorithms {
        let (tls12, tls13) = self.server_protocols(level);
        let all = CipherSuite::ALL.into_iter();
        let (tls13_suites, tls12_suites) = all.partition(|suite| suite.is_tls13());
        let mut algorithms = Algorithms {
            tls12,
            tls13,
            tls12_suites,
            tls13_suites,
            prefers_own_order: self.value(level, SSL_PREFER_SERVER_CIPHERS),
            groups: KeyExchangeGroup::ALL.to_vec(),
            tickets: None,
            certificate: None,
        };
        if let Some(node) = level.find("ssl_ciphers") {
            let word = node.arg(0);
            let list = ciphers::tls12_suites(word);
            self.select(
                word,
                list,
                "SSL_CTX_set_cipher_list",
                &mut algorithms.tls12_suites,
            );
        }
        if let Some(node) = level.find("ssl_ecdh_curve") {
            let word = node.arg(0);
            let list = ciphers::groups(word);
            self.select(
                word,
                list,
                "SSL_CTX_set1_curves_list",
                &mut algorithms.groups,
            );
        }
        let commands = level.all("ssl_conf_command").to_vec();
        algorithms.certificate = self.certificate_of_commands(&commands);
        for node in commands {
            self.conf_command(node, &mut algorithms);
        }
        if !algorithms.tls12 && !algorithms.tls13 {
            let lines = ["ssl_protocols", "ssl_conf_command"];
            if let Some(node) = level.list(&lines).first() {
                self.report(
                    Diagnostic::error(node.span(), "neither TLSv1.2 nor TLSv1.3 is enabled")
                        .label("no protocol below TLSv1.2 is spoken")
                        .hint("write ssl_protocols TLSv1.2 TLSv1.3;"),
                );
            }
        }
        algorithms
    }

    /// Puts the members of a list into `chosen`. `function` is OpenSSL's function that fails in
    /// nginx.
    fn select<T>(&mut self, word: &Word, list: Selection<T>, function: &str, chosen: &mut Vec<T>) {
        match list {
            Selection::Some(list) => *chosen = list,
            Selection::Nothing => {
                let why = "rustls has none of them, and uses its own";
                self.report(
                    Diagnostic::warning(word.span, format!("\"{word}\" has no effect"))
                        .label(why)
                        .cause(format!("{function}: {why}")),
                );
            }
            Selection::Unknown => {
                let message = format!("{function}(\"{word}\") failed");
                self.refuse(word.span, message, "nothing here is known");
            }
        }
    }

    /// Returns whether TLS 1.2 and TLS 1.3 are used.
    fn server_protocols(&mut self, level: &Level<'_>) -> (bool, bool) {
        let nodes = level.all("ssl_protocols").to_vec();
        if nodes.is_empty() {
            return (true, true);
        }
        let (mut tls12, mut tls13) = (false, false);
        let mut older = None;
        for word in nodes.iter().flat_map(|node| node.args()) {
            match self.choice_of(word, &PROTOCOLS) {
                Some(2) => tls12 = true,
                Some(3) => tls13 = true,
                Some(_) => older = older.or(Some(word)),
                // It has been reported.
                None => (tls12, tls13) = (true, true),
            }
        }
        match older {
            Some(word) if tls12 || tls13 => self.report(
                Diagnostic::warning(word.span, format!("\"{word}\" has no effect"))
                    .label("no protocol below TLSv1.2 is spoken")
                    .cause("protocols below TLSv1.2"),
            ),
            _ => {}
        }
        (tls12, tls13)
    }

    /// `ssl_conf_command NAME VALUE`
    fn conf_command(&mut self, node: &Node<'_>, algorithms: &mut Algorithms) {
        let (name, value) = (node.arg(0), node.arg(1));
        let failed = format!("SSL_CONF_cmd(\"{name}\", \"{value}\") failed");
        match name.to_ascii_lowercase().as_str() {
            "ciphersuites" => {
                let list = ciphers::tls13_suites(value);
                self.select(value, list, "Ciphersuites", &mut algorithms.tls13_suites);
            }
            "cipherstring" => {
                let list = ciphers::tls12_suites(value);
                self.select(value, list, "CipherString", &mut algorithms.tls12_suites);
            }
            "curves" | "groups" => {
                let list = ciphers::groups(value);
                self.select(value, list, "Groups", &mut algorithms.groups);
            }
            "minprotocol" => {
                let bound = self.choice_of(value, &PROTOCOL_BOUNDS).unwrap_or(0);
                algorithms.tls12 &= bound <= 2;
            }
            "maxprotocol" => {
                let bound = self.choice_of(value, &PROTOCOL_BOUNDS).unwrap_or(0);
                algorithms.tls12 &= bound != 1;
                algorithms.tls13 &= bound == 0 || bound == 3;
            }
            "options" => self.conf_options(value, algorithms),
            // See `certificate_of_commands`.
            "certificate" | "privatekey" => {}
            other => {
                let mut known = COMMANDS_WITHOUT_EFFECT.iter();
                if known.any(|known| known.eq_ignore_ascii_case(other)) {
                    self.conf_command_without_effect(name);
                } else {
                    self.refuse(node.span(), failed, "no such command, or not there yet");
                }
            }
        }
    }

    /// `ssl_conf_command Certificate FILE` and `PrivateKey FILE`, which belong together here.
    fn certificate_of_commands(&mut self, commands: &[&Node<'_>]) -> Option<CertificateFiles> {
        let file = |name: &str| {
            let named = |node: &&&Node<'_>| node.arg(0).eq_ignore_ascii_case(name);
            commands.iter().rfind(named).map(|node| node.arg(1))
        };
        match (file("Certificate"), file("PrivateKey")) {
            (None, None) => None,
            (Some(chain), Some(key)) => Some(CertificateFiles {
                chain: self.path_beside_main_file(chain),
                key: self.path_beside_main_file(key),
            }),
            (Some(word), None) | (None, Some(word)) => {
                self.invalid(word, "command", "expected both Certificate and PrivateKey");
                None
            }
        }
    }

    fn conf_options(&mut self, value: &Word, algorithms: &mut Algorithms) {
        for option in value.split(',').map(str::trim) {
            match option.strip_prefix('+').unwrap_or(option) {
                "ServerPreference" => algorithms.prefers_own_order = true,
                "-ServerPreference" => algorithms.prefers_own_order = false,
                "SessionTicket" => algorithms.tickets = Some(true),
                "-SessionTicket" => algorithms.tickets = Some(false),
                option if OPTIONS_WITHOUT_MEANING.contains(&option) => {}
                _ => self.conf_command_without_effect(value),
            }
        }
    }

    fn conf_command_without_effect(&mut self, word: &Word) {
        let why = "rustls decides this by itself";
        self.report(
            Diagnostic::warning(word.span, format!("\"{word}\" has no effect"))
                .label(why)
                .cause(why),
        );
    }
}

fn named_file(path: &Path) -> Option<NamedFile> {
    NamedFile::new(path.to_str()?)
}

/// `ssl_certificate $acme_certificate`, or the same of the key.
fn is_acme(node: &Node<'_>) -> bool {
    let wanted = match node.name() {
        "ssl_certificate" => "$acme_certificate",
        _ => "$acme_certificate_key",
    };
    let text = node.arg(0).text.replace(['{', '}'], "");
    text == wanted
}

/// Names of protocols; 0 and 1 for those that are not spoken.
const PROTOCOLS: [(&str, u8); 6] = [
    ("SSLv2", 0),
    ("SSLv3", 0),
    ("TLSv1", 1),
    ("TLSv1.1", 1),
    ("TLSv1.2", 2),
    ("TLSv1.3", 3),
];

/// Names of protocols for `MinProtocol` and `MaxProtocol`; 0 for no bound, 1 for those that are
/// not spoken.
const PROTOCOL_BOUNDS: [(&str, u8); 6] = [
    ("None", 0),
    ("SSLv3", 1),
    ("TLSv1", 1),
    ("TLSv1.1", 1),
    ("TLSv1.2", 2),
    ("TLSv1.3", 3),
];
