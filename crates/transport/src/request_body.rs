//! A request's body as a value: not there, not read yet, in memory or in a file; and its
//! errors.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

/// The body of a request.
pub enum RequestBody {
    None,
    /// Not read yet: it is still on the connection.
    Unread,
    Memory(Bytes),
    Spooled(Arc<SpooledBody>),
    /// Handed on to the upstream while it arrives; with its length where that is known.
    Streamed(Option<u64>),
}

/// A body in a temporary file, which goes when the last user does: the system sees to that
/// where the file has no name, however this process ends.
pub struct SpooledBody {
    file: File,
    /// The file's name, if `client_body_in_file_only` gives it one.
    name: Option<FileName>,
    length: u64,
}

impl SpooledBody {
    /// An empty one in `file`, which no name leads to.
    pub fn unnamed(file: File) -> SpooledBody {
        SpooledBody {
            file,
            name: None,
            length: 0,
        }
    }

    /// An empty one in the file at `path`. `keep`: the file stays when the last user is gone.
    pub fn named(file: File, path: PathBuf, keep: bool) -> SpooledBody {
        SpooledBody {
            file,
            name: Some(FileName { path, keep }),
            length: 0,
        }
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends the next bytes.
    ///
    /// # Errors
    /// When the file takes no more.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Fills `piece` with the bytes from `offset` on.
    ///
    /// # Errors
    /// When the file cannot be read, or ends before that.
    pub fn read_exact_at(&self, piece: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(piece, offset)
    }
}

/// A file's name, removed with the last user of the file unless it is to stay.
struct FileName {
    path: PathBuf,
    keep: bool,
}

impl Drop for FileName {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl RequestBody {
    /// Returns the same body once more; nothing if it cannot be read twice.
    pub fn share(&self) -> RequestBody {
        match self {
            RequestBody::Memory(bytes) => RequestBody::Memory(bytes.clone()),
            RequestBody::Spooled(spooled) => RequestBody::Spooled(spooled.clone()),
            RequestBody::None | RequestBody::Unread | RequestBody::Streamed(_) => RequestBody::None,
        }
    }

    /// The bytes, where they are in memory: `$request_body`.
    pub fn in_memory(&self) -> Option<&[u8]> {
        match self {
            RequestBody::Memory(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// `$request_body_file`: only a file that the configuration asks for, or asks the name of, has one.
    pub fn file_name(&self) -> Option<&[u8]> {
        match self {
            RequestBody::Spooled(spooled) => {
                let path = &spooled.name.as_ref()?.path;
                Some(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()))
            }
            _ => None,
        }
    }

    /// Bytes in it, where that is known.
    pub fn length(&self) -> Option<u64> {
        match self {
            RequestBody::None => Some(0),
            RequestBody::Memory(bytes) => Some(bytes.len() as u64),
            RequestBody::Spooled(spooled) => Some(spooled.length),
            RequestBody::Streamed(length) => *length,
            RequestBody::Unread => None,
        }
    }
}

/// An error of a body, from which the response follows.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Longer than `client_max_body_size`.
    #[error("client intended to send too large chunked body")]
    TooLarge,
    /// The chunked coding is broken.
    #[error("client sent invalid chunked body")]
    Malformed,
    /// The client closed or the connection failed.
    #[error("client prematurely closed connection ({0})")]
    Gone(io::Error),
    /// Nothing came within `client_body_timeout`.
    #[error("client timed out")]
    TimedOut,
    /// The temporary file could not be written.
    #[error("request body could not be kept in {0}: {1}")]
    Spool(PathBuf, io::Error),
}

impl BodyError {
    pub fn status(&self) -> u16 {
        match self {
            BodyError::TooLarge => 413,
            BodyError::Malformed | BodyError::Gone(_) => 400,
            BodyError::TimedOut => 408,
            BodyError::Spool(..) => 500,
        }
    }
}

/// A client's fault that came up while its body was handed on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ClientFault(pub BodyError);
