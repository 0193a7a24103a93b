//! The files that `ssl_*`, `proxy_ssl_*`, `otel_exporter` and `cache_nodes` name. Keys are often root's alone: the process that
//! reads the configuration reads them as well, and hands them to the one that serves.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use site::{Site, TlsIdentity};

/// The bytes of files, by the names that the configuration gives them.
#[derive(Clone, Default)]
pub struct TlsFiles(Arc<HashMap<PathBuf, Vec<u8>>>);

impl TlsFiles {
    /// Reads all that `site` names. A file that cannot be read is left out: the code that needs it
    /// reports the error.
    pub fn read(site: &Site) -> TlsFiles {
        let mut paths = Vec::new();
        for tls in &site.http.server_tls {
            for certificate in &tls.certificates {
                paths.extend([&certificate.chain, &certificate.key]);
            }
            paths.extend(&tls.password_file);
            paths.extend(&tls.ticket_key_files);
            if let Some(clients) = &tls.clients {
                paths.extend(&clients.named_authorities);
                paths.extend(&clients.other_authorities);
                paths.extend(&clients.crl);
            }
        }
        let servers = site.http.servers.iter();
        paths.extend(servers.filter_map(|server| server.http3.host_key_file.as_ref()));
        for tls in &site.http.tls {
            if let Some(verify) = &tls.verify {
                paths.push(&verify.trusted);
                paths.extend(&verify.crl);
            }
            paths.extend(&tls.password_file);
            if let Some(TlsIdentity::Files { chain, key }) = &tls.identity {
                paths.extend([chain, key]);
            }
        }
        let exporter = site.http.otel_exporter.as_ref();
        paths.extend(exporter.and_then(|exporter| exporter.trusted.as_ref()));
        let nodes = site.http.cache_nodes.as_ref();
        paths.extend(nodes.and_then(|nodes| nodes.trusted.as_ref()));
        paths.extend(nodes.and_then(|nodes| nodes.page_key.as_ref()));
        let read = |path: &PathBuf| Some((path.clone(), std::fs::read(path).ok()?));
        paths.into_iter().filter_map(read).collect()
    }

    /// With others, which go before those of the same name.
    #[must_use]
    pub fn with(self, others: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> TlsFiles {
        let mut files = Arc::unwrap_or_clone(self.0);
        files.extend(others);
        TlsFiles(Arc::new(files))
    }

    /// The bytes of a file: as they were handed over, or from the disk.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.0.get(path) {
            Some(bytes) => Ok(bytes.clone()),
            None => std::fs::read(path),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Path, &[u8])> {
        self.0.iter().map(|(path, bytes)| (&**path, &**bytes))
    }
}

impl FromIterator<(PathBuf, Vec<u8>)> for TlsFiles {
    fn from_iter<I: IntoIterator<Item = (PathBuf, Vec<u8>)>>(files: I) -> TlsFiles {
        TlsFiles(Arc::new(files.into_iter().collect()))
    }
}

impl std::fmt::Debug for TlsFiles {
    /// Their names: keys are among them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
