//! Certificates whose files are called after the name that a client asks for: `ssl_certificate
//! /etc/ssl/$ssl_server_name.pem`. Any client may send any name. A name is put into a path only if
//! it has no other characters than names of hosts, so that no file outside of the configured place
//! is reached.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::string::FromUtf8Error;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use site::NamedCertificateFiles;
use tls_server::{Identity, PemFile};

/// The longest name of a host (RFC 1035 §2.3.4).
const MAX_NAME_BYTES: usize = 253;
/// Bytes of a file that are read at most: a chain with its key has a few thousand.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// nginx's messages about files that cannot be read begin so.
pub const NO_CERTIFICATE: &str = "cannot load certificate";
pub const NO_KEY: &str = "cannot load certificate key";

/// The reason why certificates that are read during a handshake or a request cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NamedCertificateError {
    /// The beginning of nginx's message, and the file.
    #[error("{0} \"{1}\": {2}")]
    File(&'static str, String, io::Error),
    #[error(transparent)]
    NotUtf8(#[from] FromUtf8Error),
    #[error("unsafe name of a certificate file: {0:?}")]
    UnsafeName(String),
    #[error(transparent)]
    Server(#[from] tls_server::SettingsError),
    #[error(transparent)]
    Upstream(#[from] tls_client::SettingsError),
}

/// Whether this may be a part of a file's name. There is no slash in it, and it is neither `.` nor
/// `..`.
pub fn is_file_name(name: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(is_usual)
        && !name.starts_with('.')
        && !name.contains("..")
}

/// The certificates and keys for a name, as far as their files are there.
///
/// # Errors
/// nginx's message about the first file that is there and cannot be read.
pub fn read(
    files: &[NamedCertificateFiles],
    name: &str,
) -> Result<Vec<Identity>, NamedCertificateError> {
    let mut identities = Vec::new();
    for files in files {
        let chain = read_if_there(&files.chain.path(name), NO_CERTIFICATE)?;
        let key = read_if_there(&files.key.path(name), NO_KEY)?;
        if let (Some(chain), Some(key)) = (chain, key) {
            identities.push(Identity { chain, key });
        }
    }
    Ok(identities)
}

/// A file, which has to exist. `failure` begins the message if it cannot be read.
pub fn read_pem(path: &Path, failure: &'static str) -> Result<PemFile, NamedCertificateError> {
    read_if_there(path, failure)?.ok_or_else(|| {
        let error = io::Error::other("there is no such file");
        NamedCertificateError::File(failure, path.display().to_string(), error)
    })
}

/// A file; `None` if it does not exist.
fn read_if_there(
    path: &Path,
    failure: &'static str,
) -> Result<Option<PemFile>, NamedCertificateError> {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    let name = path.display().to_string();
    match read_file(path) {
        Ok(pem) => Ok(Some(PemFile { name, pem })),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | InvalidFilename) => {
            Ok(None)
        }
        Err(error) => Err(NamedCertificateError::File(failure, name, error)),
    }
}

/// The bytes of a regular file. A FIFO's writer is not waited for.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use site::NamedFile;

    use super::*;

    #[test]
    fn only_what_is_in_names_of_hosts_becomes_a_part_of_a_path() {
        for name in ["a", "a.test", "xn--a-b.test", "_a.test", "a."] {
            assert!(is_file_name(name), "{name}");
        }
        let long = "a".repeat(254);
        for name in [
            "",
            ".",
            "..",
            "../a",
            "a/b",
            "/a",
            "a/../b",
            "a..b",
            ".a",
            "a\0b",
            "a b",
            "a\\b",
            "\u{e4}.test",
            "%2e%2e",
            "$a",
            &long,
        ] {
            assert!(!is_file_name(name), "{name}");
        }
    }

    #[test]
    fn files_that_are_not_there_are_left_out_and_others_must_be_readable() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::create_dir_all(folder.join("folder.pem")).unwrap();
        std::fs::write(folder.join("a.pem"), "chain").unwrap();
        std::fs::write(folder.join("a.key"), "key").unwrap();
        std::fs::write(folder.join("half.pem"), "chain").unwrap();
        let file = |end: &str| {
            let path = format!("{}/$ssl_server_name.{end}", folder.display());
            NamedFile::new(&path).unwrap()
        };
        let files = [NamedCertificateFiles {
            chain: file("pem"),
            key: file("key"),
        }];
        let found = |name: &str| read(&files, name).map(|found| found.len());
        assert_eq!(found("a").unwrap(), 1);
        assert_eq!(found("b").unwrap(), 0);
        assert_eq!(found("half").unwrap(), 0);
        let error = found("folder").unwrap_err().to_string();
        assert!(error.ends_with("it is not a regular file"), "{error}");
    }
}
