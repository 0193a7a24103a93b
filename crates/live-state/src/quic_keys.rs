//! The secrets of `quic_host_key`, read from their files.

use std::collections::HashMap;
use std::path::PathBuf;

use site::{ListenAddress, Site};
use transport::http3::HostKey;

use crate::build_error::BuildError;
use crate::tls_files::TlsFiles;

/// By the names of their files.
#[derive(Default)]
pub struct QuicKeys(HashMap<PathBuf, HostKey>);

impl QuicKeys {
    /// Reads all that `site` names.
    ///
    /// # Errors
    /// The message about the first file that cannot be used.
    pub fn read(site: &Site, files: &TlsFiles) -> Result<QuicKeys, BuildError> {
        let mut keys = HashMap::new();
        let servers = site.http.servers.iter();
        for path in servers.filter_map(|server| server.http3.host_key_file.as_ref()) {
            let failed = |reason: &dyn std::fmt::Display| {
                let path = path.display();
                BuildError::Tls(format!("cannot load QUIC host key \"{path}\": {reason}"))
            };
            let bytes = files.bytes(path).map_err(|error| failed(&error))?;
            if bytes.is_empty() {
                return Err(failed(&"it is empty"));
            }
            keys.insert(path.clone(), HostKey::of(&bytes));
        }
        Ok(QuicKeys(keys))
    }

    /// Returns the key of an address: the one that its default server names, or
    /// a random one.
    pub fn of(&self, site: &Site, address: &ListenAddress) -> HostKey {
        let mut listeners = site.http.listeners.iter();
        let listener = listeners.find(|listener| listener.address == *address);
        listener
            .and_then(|it| {
                site.http.servers[it.default_server.0]
                    .http3
                    .host_key_file
                    .as_ref()
            })
            .and_then(|path| self.0.get(path).cloned())
            .unwrap_or_else(HostKey::random)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_file_without_a_secret_is_named() {
        let text = "http { server { listen 80; quic_host_key none.key; } }";
        let loader: nginx_conf::MemoryLoader = [("/m.conf", text.as_bytes().to_vec())]
            .into_iter()
            .collect();
        let reading = site::read(Path::new("/m.conf"), Path::new("/"), None, None, &loader);
        let site = reading.site.expect("a configuration without mistakes");
        let message = |files: &TlsFiles| {
            let read = QuicKeys::read(&site, files);
            read.err().map(|error| error.to_string())
        };
        let missing = message(&TlsFiles::default()).expect("no file");
        assert!(missing.contains("\"/none.key\""), "{missing}");
        let file = |bytes: &[u8]| {
            let files = [(PathBuf::from("/none.key"), bytes.to_vec())];
            files.into_iter().collect::<TlsFiles>()
        };
        assert!(message(&file(b"")).expect("empty").contains("empty"));
        assert_eq!(message(&file(b"secret")), None);
    }
}
