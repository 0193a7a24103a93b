//! TLS towards clients: the files of `ssl_*` read and made ready for handshakes.
//!
//! The keys of tickets and the sessions of `ssl_session_cache` outlive a configuration, so that
//! a reload costs no client its session.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, UnixTime};
use site::{
    ClientVerification, ClientVerificationMode, NamedCertificateFiles, ServerTls, Site,
    TlsSessionCache,
};
use tls_server::{
    ClientMode, ClientVerdict, Clients, Identity, NamedCache, PemFile, Refusal, Resumption,
    SessionCache, Settings, SettingsError, TicketKeys, TlsServer,
};

use crate::build_error::BuildError;
use crate::handshake_certificates::OfHandshake;
use crate::named_files::{self, NamedCertificateError};
use crate::quic_keys::QuicKeys;
use crate::tls_files::TlsFiles;

/// The TLS of a server, ready for handshakes.
pub struct ServerTlsInForce {
    server: TlsServer,
    rejects_handshake: bool,
    /// Certificates whose files are called after the name that a client asks for.
    named: Vec<NamedCertificateFiles>,
    /// The certificates whose names have other variables.
    of_handshake: Option<OfHandshake>,
}

impl ServerTlsInForce {
    /// For a handshake in which a client may choose HTTP/2, or may not.
    pub fn config(&self, with_http2: bool) -> &Arc<ServerConfig> {
        self.server.config(with_http2)
    }

    /// For a handshake of QUIC.
    pub fn http3_config(&self) -> &Arc<ServerConfig> {
        self.server.http3_config()
    }

    /// Reads the certificates for the name that a client asks for, where their files are called
    /// after it and were not read lately. False: there is no certificate for this client.
    ///
    /// # Errors
    /// The reason why they cannot be used, for the log. Certificates that were read before are
    /// used further.
    pub fn read_named(&self, name: Option<&str>) -> Result<bool, NamedCertificateError> {
        if self.named.is_empty() {
            return Ok(true);
        }
        let has_others = self.server.has_unnamed_certificates();
        let name = name.map(str::to_ascii_lowercase);
        let Some(name) = name.filter(|name| named_files::is_file_name(name)) else {
            return Ok(has_others);
        };
        let now = Instant::now();
        if !self.server.lacks(&name, now) {
            return Ok(true);
        }
        let identities = named_files::read(&self.named, &name)?;
        if identities.is_empty() {
            self.server.forget(&name);
            return Ok(has_others);
        }
        self.server.put(&name, &identities, now)?;
        Ok(true)
    }

    /// The certificates whose names have variables that are known in a handshake.
    pub fn of_handshake(&self) -> Option<&OfHandshake> {
        self.of_handshake.as_ref()
    }

    /// `ssl_reject_handshake on`: the client gets the alert `unrecognized_name`.
    pub fn rejects_handshake(&self) -> bool {
        self.rejects_handshake
    }

    /// `ssl_verify_client` is on, in one of its forms.
    pub fn asks_clients(&self) -> bool {
        self.server.asks_clients()
    }

    /// Returns the verdict on the certificate that a client has shown: `$ssl_client_verify`. To
    /// be called once for each connection, after the handshake.
    pub fn verdict(&self, chain: Option<&[CertificateDer<'_>]>) -> ClientVerdict {
        self.server.verdict(chain, UnixTime::now())
    }

    /// Returns the reason why all requests of the connection are refused, if they are.
    pub fn refusal(&self, verdict: &ClientVerdict) -> Option<Refusal> {
        self.server.refusal(verdict)
    }
}

/// The TLS state that is kept over a reload.
#[derive(Default)]
pub struct TlsResumption {
    /// Random keys, by the lifetime of their tickets.
    ticket_keys: HashMap<Duration, Arc<TicketKeys>>,
    /// Caches that servers share, by name and size.
    shared: HashMap<(String, u64), Arc<SessionCache>>,
    /// Caches of one server each.
    own: Vec<(ServerTls, Arc<SessionCache>)>,
}

impl TlsResumption {
    /// Makes the state for the servers of `site`; parts that `previous` has already stay the
    /// same.
    pub fn renew(site: &Site, previous: Option<&TlsResumption>) -> TlsResumption {
        let none = TlsResumption::default();
        let previous = previous.unwrap_or(&none);
        let mut kept = TlsResumption::default();
        for tls in &site.http.server_tls {
            if tls.tickets && tls.ticket_key_files.is_empty() {
                let lifetime = tls.session_timeout;
                let known = previous.ticket_keys.get(&lifetime).cloned();
                let keys = kept.ticket_keys.entry(lifetime);
                keys.or_insert_with(|| {
                    known.unwrap_or_else(|| Arc::new(TicketKeys::random(lifetime)))
                });
            }
            match &tls.session_cache {
                TlsSessionCache::None => {}
                TlsSessionCache::Shared { name, bytes } => {
                    let spec = (name.clone(), *bytes);
                    let known = previous.shared.get(&spec).cloned();
                    let cache = kept.shared.entry(spec);
                    cache.or_insert_with(|| {
                        known.unwrap_or_else(|| Arc::new(SessionCache::of_bytes(*bytes)))
                    });
                }
                TlsSessionCache::Builtin { sessions } => {
                    let new = || Arc::new(SessionCache::of_sessions(*sessions));
                    let cache = previous.own_of(tls).unwrap_or_else(new);
                    kept.own.push((tls.clone(), cache));
                }
            }
        }
        kept
    }

    fn own_of(&self, tls: &ServerTls) -> Option<Arc<SessionCache>> {
        let (_, cache) = self.own.iter().find(|(known, _)| known == tls)?;
        Some(cache.clone())
    }

    fn of(&self, tls: &ServerTls, from: &TlsFiles) -> Result<Resumption, BuildError> {
        let tickets = match (tls.tickets, tls.ticket_key_files.is_empty()) {
            (false, _) => None,
            (true, true) => self.ticket_keys.get(&tls.session_timeout).cloned(),
            (true, false) => Some(Arc::new(read_ticket_keys(tls, from)?)),
        };
        let cache = match &tls.session_cache {
            TlsSessionCache::None => None,
            TlsSessionCache::Shared { name, bytes } => {
                self.shared.get(&(name.clone(), *bytes)).cloned()
            }
            TlsSessionCache::Builtin { .. } => self.own_of(tls),
        };
        Ok(Resumption { tickets, cache })
    }
}

/// Reads the files of all servers, in the order of [`site::ServerTlsId`].
///
/// # Errors
///
/// nginx's message about the first file that cannot be used.
pub fn build(
    site: &Site,
    files: &TlsFiles,
    resumption: &TlsResumption,
) -> Result<Vec<ServerTlsInForce>, BuildError> {
    let servers = site.http.server_tls.iter();
    servers.map(|tls| server(tls, files, resumption)).collect()
}

/// Returns the mistakes in the files of `ssl_*`, for a test of a configuration that is not to
/// be served: one message for each cause. `files` has those that are not on the disk.
pub fn problems(site: &Site, files: &TlsFiles) -> Vec<String> {
    let resumption = TlsResumption::renew(site, None);
    let servers = site.http.server_tls.iter();
    let failed = servers.filter_map(|tls| server(tls, files, &resumption).err());
    let quic = QuicKeys::read(site, files).err();
    let failed = failed.chain(quic);
    let mut problems: Vec<String> = Vec::new();
    for problem in failed.map(|error| error.to_string()) {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    problems
}

fn server(
    tls: &ServerTls,
    files: &TlsFiles,
    resumption: &TlsResumption,
) -> Result<ServerTlsInForce, BuildError> {
    let settings = settings(tls, files)?;
    let resumption_of_server = resumption.of(tls, files)?;
    let server = TlsServer::new(&settings, resumption_of_server.clone())
        .map_err(|error: SettingsError| BuildError::Tls(error.to_string()))?;
    let of_handshake = (!tls.certificates_of_handshake.is_empty())
        .then(|| OfHandshake::new(tls, settings, resumption_of_server));
    Ok(ServerTlsInForce {
        server,
        of_handshake,
        rejects_handshake: tls.rejects_handshake,
        named: tls.named_certificates.clone(),
    })
}

fn settings(tls: &ServerTls, from: &TlsFiles) -> Result<Settings, BuildError> {
    let mut identities = Vec::with_capacity(tls.certificates.len());
    for files in &tls.certificates {
        identities.push(Identity {
            chain: read(from, &files.chain, "cannot load certificate")?,
            key: read(from, &files.key, "cannot load certificate key")?,
        });
    }
    let passwords = match &tls.password_file {
        Some(file) => read(from, file, "cannot open file")?.pem,
        None => Vec::new(),
    };
    let named = tls.named_certificates.iter();
    let named: Vec<String> = named
        .map(|files| format!("{} {}", files.chain, files.key))
        .collect();
    Ok(Settings {
        identities,
        named_identities: (!named.is_empty()).then(|| named.join("\n")),
        named_cache: tls.certificate_cache.map(|rules| NamedCache {
            names: rules.pairs(),
            valid: rules.valid,
            inactive: rules.inactive,
        }),
        compresses_certificates: tls.compresses_certificates,
        passwords,
        tls12: tls.tls12,
        tls13: tls.tls13,
        cipher_suites: tls
            .cipher_suites
            .iter()
            .map(|it| it.iana_number())
            .collect(),
        prefers_own_order: tls.prefers_own_order,
        key_exchange_groups: tls
            .key_exchange_groups
            .iter()
            .map(|group| group.iana_number())
            .collect(),
        clients: tls
            .clients
            .as_ref()
            .map(|it| clients(it, from))
            .transpose()?,
        session_timeout: tls.session_timeout,
        record_bytes: tls.record_bytes,
        early_data: tls.early_data,
    })
}

fn clients(clients: &ClientVerification, from: &TlsFiles) -> Result<Clients, BuildError> {
    let authorities = |file: &Option<std::path::PathBuf>| {
        let file = file.as_deref();
        file.map(|file| read(from, file, "cannot load trusted certificates"))
            .transpose()
    };
    Ok(Clients {
        mode: match clients.mode {
            ClientVerificationMode::Required => ClientMode::Required,
            ClientVerificationMode::Optional => ClientMode::Optional,
            ClientVerificationMode::OptionalWithoutAuthority => {
                ClientMode::OptionalWithoutAuthority
            }
        },
        named_authorities: authorities(&clients.named_authorities)?,
        other_authorities: authorities(&clients.other_authorities)?,
        depth: clients.depth,
        crl: match &clients.crl {
            Some(file) => Some(read(from, file, "cannot load certificate revocation list")?),
            None => None,
        },
    })
}

fn read_ticket_keys(tls: &ServerTls, from: &TlsFiles) -> Result<TicketKeys, BuildError> {
    let mut files = Vec::with_capacity(tls.ticket_key_files.len());
    for path in &tls.ticket_key_files {
        let file = read(from, path, "cannot open file")?;
        TicketKeys::of_files([file.pem.as_slice()])
            .map_err(|error| BuildError::Tls(format!("\"{}\" {error}", file.name)))?;
        files.push(file.pem);
    }
    TicketKeys::of_files(files.iter().map(Vec::as_slice))
        .map_err(|error| BuildError::Tls(error.to_string()))
}

/// The bytes of a file; `failure` begins the message if it cannot be read.
fn read(from: &TlsFiles, path: &Path, failure: &str) -> Result<PemFile, BuildError> {
    let name = path.display().to_string();
    match from.bytes(path) {
        Ok(pem) => Ok(PemFile { name, pem }),
        Err(error) => Err(BuildError::Tls(format!("{failure} \"{name}\": {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(servers: &str) -> Site {
        let text = format!("http {{ ssl_certificate c; ssl_certificate_key k; {servers} }}");
        let loader: nginx_conf::MemoryLoader =
            [("/m.conf", text.into_bytes())].into_iter().collect();
        let reading = site::read(Path::new("/m.conf"), Path::new("/"), None, None, &loader);
        reading.site.expect("a configuration without mistakes")
    }

    /// Whether a reload keeps the ticket keys and the sessions of the first server.
    fn kept(before: &str, after: &str) -> (bool, bool) {
        let (before, after) = (site(before), site(after));
        let of = |site: &Site, resumption: &TlsResumption| {
            let tls = &site.http.server_tls[0];
            resumption.of(tls, &TlsFiles::default()).unwrap()
        };
        let first = TlsResumption::renew(&before, None);
        let second = TlsResumption::renew(&after, Some(&first));
        let (first, second) = (of(&before, &first), of(&after, &second));
        (
            Arc::ptr_eq(&first.tickets.unwrap(), &second.tickets.unwrap()),
            Arc::ptr_eq(&first.cache.unwrap(), &second.cache.unwrap()),
        )
    }

    #[test]
    fn a_reload_keeps_ticket_keys_and_sessions_of_the_same_settings() {
        let shared = "ssl_session_cache shared:a:1m;";
        let builtin = "ssl_session_cache builtin;";
        for (before, after, expected) in [
            (shared.to_owned(), shared.to_owned(), (true, true)),
            (builtin.to_owned(), builtin.to_owned(), (true, true)),
            (
                shared.to_owned(),
                format!("{shared} ssl_prefer_server_ciphers on;"),
                (true, true),
            ),
            (
                shared.to_owned(),
                "ssl_session_cache shared:a:2m;".to_owned(),
                (true, false),
            ),
            (
                shared.to_owned(),
                format!("{shared} ssl_session_timeout 1h;"),
                (false, true),
            ),
        ] {
            let server = |lines: &str| format!("server {{ listen 443 ssl; {lines} }}");
            let found = kept(&server(&before), &server(&after));
            assert_eq!(found, expected, "{before} {after}");
        }
    }

    #[test]
    fn servers_that_name_a_cache_share_it() {
        let site = site(
            "ssl_session_cache shared:a:1m;\n\
             server { listen 443 ssl; }\n\
             server { listen 443 ssl; server_name b; ssl_protocols TLSv1.3; }\n\
             server { listen 443 ssl; server_name c; ssl_session_cache shared:b:1m; }",
        );
        let resumption = TlsResumption::renew(&site, None);
        let caches: Vec<_> = site
            .http
            .server_tls
            .iter()
            .map(|tls| {
                resumption
                    .of(tls, &TlsFiles::default())
                    .unwrap()
                    .cache
                    .unwrap()
            })
            .collect();
        assert!(Arc::ptr_eq(&caches[0], &caches[1]));
        assert!(!Arc::ptr_eq(&caches[0], &caches[2]));
    }
}
