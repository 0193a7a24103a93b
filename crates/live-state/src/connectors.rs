//! `https://` upstreams: the files of `proxy_ssl_*` made ready, and which groups
//! may keep their connections: one that was made for another name, or under
//! other rules, must not serve a request that asks for more.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use site::{Content, GroupId, PassTarget, Site, Template, TlsId, TlsIdentity, TlsSettings};
use tls_client::{Connector, Identity, Protocols, Settings, Verify};

use crate::build_error::BuildError;
use crate::kept_certificates::KeptCertificates;
use crate::named_files::{self, NO_CERTIFICATE, NO_KEY};
use crate::tls_files::TlsFiles;

pub use crate::named_files::NamedCertificateError;

/// How one set of `proxy_ssl_*` encrypts connections.
pub struct UpstreamTls {
    /// With the certificate of all requests, or with none.
    connector: Connector,
    /// The connectors for certificates that depend on the request.
    of_request: Option<OfRequest>,
}

struct OfRequest {
    settings: Settings,
    passwords: Vec<u8>,
    folder: PathBuf,
    kept: KeptCertificates<(PathBuf, PathBuf), Connector>,
}

impl UpstreamTls {
    /// Reads the files and makes the settings ready.
    ///
    /// # Errors
    /// nginx's message about the first file that cannot be used.
    pub fn new(settings: &TlsSettings, files: &TlsFiles) -> Result<UpstreamTls, BuildError> {
        let read = |path: &Path| read(files, path);
        let passwords = settings.password_file.as_deref().map(read).transpose()?;
        let passwords = passwords.unwrap_or_default();
        let verify = match &settings.verify {
            Some(verify) => Some(Verify {
                trusted_pem: read(&verify.trusted)?,
                depth: verify.depth,
                crl_pem: verify.crl.as_deref().map(read).transpose()?,
            }),
            None => None,
        };
        let identity = match &settings.identity {
            Some(TlsIdentity::Files { chain, key }) => Some(Identity {
                chain_pem: read(chain)?,
                key_pem: read(key)?,
                passwords: passwords.clone(),
            }),
            Some(TlsIdentity::OfRequest { .. }) | None => None,
        };
        let client_settings = Settings {
            verify,
            identity,
            protocols: Protocols {
                tls12: settings.tls12,
                tls13: settings.tls13,
            },
            send_name: settings.send_name,
            reuse_sessions: settings.reuse_sessions,
            alpn: Vec::new(),
        };
        let connector =
            Connector::new(&client_settings).map_err(|error| BuildError::Tls(error.to_string()))?;
        let of_request = match &settings.identity {
            Some(TlsIdentity::OfRequest { folder, cache, .. }) => Some(OfRequest {
                settings: client_settings,
                passwords,
                folder: folder.clone(),
                kept: KeptCertificates::new(*cache),
            }),
            _ => None,
        };
        Ok(UpstreamTls {
            connector,
            of_request,
        })
    }

    /// With the certificate of all requests, or with none.
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// With the certificate and the key of a request, whose names are given.
    ///
    /// # Errors
    /// The reason why they cannot be used, for the log.
    pub fn connector_of(&self, chain: &str, key: &str) -> Result<Connector, NamedCertificateError> {
        match &self.of_request {
            Some(of_request) if !chain.is_empty() => of_request.connector(chain, key),
            _ => Ok(self.connector.clone()),
        }
    }
}

impl OfRequest {
    fn connector(&self, chain: &str, key: &str) -> Result<Connector, NamedCertificateError> {
        let names = (self.folder.join(chain), self.folder.join(key));
        let now = Instant::now();
        if let Some(connector) = self.kept.find(&names, now) {
            return Ok(connector);
        }
        let identity = Identity {
            chain_pem: named_files::read_pem(&names.0, NO_CERTIFICATE)?.pem,
            key_pem: named_files::read_pem(&names.1, NO_KEY)?.pem,
            passwords: self.passwords.clone(),
        };
        let is_kept = !certificate_chain::is_encrypted_key(&identity.key_pem);
        let settings = Settings {
            identity: Some(identity),
            ..self.settings.clone()
        };
        let connector = Connector::new(&settings)?;
        if is_kept {
            self.kept.keep(names, &connector, now);
        }
        Ok(connector)
    }
}

fn read(files: &TlsFiles, path: &Path) -> Result<Vec<u8>, BuildError> {
    files.bytes(path).map_err(|error| {
        BuildError::Tls(format!(
            "cannot load certificate \"{}\": {error}",
            path.display()
        ))
    })
}

/// Groups that are spoken to in more than one way, or under names or with certificates that are
/// known only at run time.
pub fn mixed_groups(site: &Site) -> HashSet<GroupId> {
    let mut ways: HashMap<GroupId, (Option<TlsId>, &Template)> = HashMap::new();
    let mut mixed = HashSet::new();
    let locations = site.http.servers.iter().flat_map(|it| &it.locations);
    for location in locations {
        let Content::Pass(pass) = &location.settings.content else {
            continue;
        };
        let (PassTarget::Group(group), Some(proxy)) = (&pass.target, pass.proxy()) else {
            continue;
        };
        let way = (proxy.tls, &proxy.tls_name);
        let known = ways.entry(*group).or_insert(way);
        let is_alike = known.0.is_none() && way.0.is_none() || *known == way;
        let varies = proxy
            .tls
            .is_some_and(|id| has_certificate_of_request(site, id));
        if !is_alike || varies || (way.0.is_some() && !names_upstream(way.1)) {
            mixed.insert(*group);
        }
    }
    mixed
}

fn has_certificate_of_request(site: &Site, id: TlsId) -> bool {
    let identity = site
        .http
        .tls
        .get(id.0)
        .and_then(|tls| tls.identity.as_ref());
    matches!(identity, Some(TlsIdentity::OfRequest { .. }))
}

/// A constant, or `$proxy_host`, which is one for each group.
fn names_upstream(name: &Template) -> bool {
    use site::{Builtin, Part, Variable};
    name.as_constant().is_some()
        || matches!(
            name.parts.as_slice(),
            [Part::Variable(Variable::Builtin(Builtin::ProxyHost))]
        )
}
