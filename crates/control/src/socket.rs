//! The control socket's file: made so that at no time another account may connect, found by
//! commands, removed at the end.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use socket2::{Domain, SockAddr, Socket, Type};

/// Connections that wait until they are accepted.
const BACKLOG: i32 = 16;

/// The reason why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The call, the path and the error.
    #[error("{0} of the control socket \"{1}\" failed ({2})")]
    System(&'static str, String, io::Error),
    #[error("another server listens on the control socket \"{0}\"")]
    AnotherServer(String),
    #[error("the control socket \"{0}\" is in use, as far as can be seen ({1})")]
    InUse(String, io::Error),
    #[error("the control socket cannot be made: \"{0}\" is there and is no socket")]
    OtherFile(String),
    #[error("the abandoned control socket \"{0}\" cannot be removed ({1})")]
    NotRemoved(String, io::Error),
}

/// A control socket that this process has made. The file is removed when it is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    listener: UnixListener,
    /// The identity of our file: device and number.
    file: (u64, u64),
    /// Another process goes on with it.
    is_anothers: bool,
}

impl ControlSocket {
    /// Makes a socket with mode 0600 and listens. The socket file that a killed server has left
    /// there is replaced.
    ///
    /// # Errors
    /// Another server listens there, something else is in the way, or the system refuses.
    pub fn bind(path: &Path) -> Result<ControlSocket, SocketError> {
        let failed = |call: &'static str, error: io::Error| {
            SocketError::System(call, path.display().to_string(), error)
        };
        let address = SockAddr::unix(path).map_err(|error| failed("bind()", error))?;
        let socket =
            Socket::new(Domain::UNIX, Type::STREAM, None).map_err(|it| failed("socket()", it))?;
        // The file gets the mode that the socket has when it is bound, less the umask.
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::fchmod(&socket, mode).map_err(|it| failed("fchmod()", it.into()))?;
        let mut bound = socket.bind(&address);
        if bound
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
        {
            remove_abandoned(path)?;
            bound = socket.bind(&address);
        }
        bound.map_err(|error| failed("bind()", error))?;
        let made = fs::symlink_metadata(path).map_err(|error| failed("stat()", error));
        let listening = made.and_then(|made| {
            socket
                .listen(BACKLOG)
                .and_then(|()| socket.set_nonblocking(true))
                .map_err(|error| failed("listen()", error))?;
            Ok((made.dev(), made.ino()))
        });
        match listening {
            Ok(file) => Ok(ControlSocket {
                path: path.to_owned(),
                listener: socket.into(),
                file,
                is_anothers: false,
            }),
            Err(error) => {
                // The socket is bound, so that its file exists by now.
                let _ = trusted_path::remove(path);
                Err(error)
            }
        }
    }

    /// A socket that another process has made, and has still: `file` is the value of its
    /// [`ControlSocket::file`].
    #[must_use]
    pub fn inherited(path: PathBuf, listener: UnixListener, file: (u64, u64)) -> ControlSocket {
        ControlSocket {
            path,
            listener,
            file,
            is_anothers: true,
        }
    }

    /// Returns the identity of its file: device and number.
    #[must_use]
    pub fn file(&self) -> (u64, u64) {
        self.file
    }

    /// Sets whether another process goes on with it, and keeps the file.
    pub fn leave_to_another(&mut self, is_anothers: bool) {
        self.is_anothers = is_anothers;
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The listening socket, for [`crate::server::serve`].
    #[must_use]
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for ControlSocket {
    /// Removes the file, unless it is another process's.
    fn drop(&mut self) {
        let is_ours = !self.is_anothers
            && fs::symlink_metadata(&self.path)
                .is_ok_and(|found| (found.dev(), found.ino()) == self.file);
        if is_ours {
            // It may have been removed by hand.
            let _ = trusted_path::remove(&self.path);
        }
    }
}

/// Removes the socket of a server that has ended.
fn remove_abandoned(path: &Path) -> Result<(), SocketError> {
    let shown = path.display().to_string();
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => Err(SocketError::OtherFile(shown)),
        Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => Err(SocketError::AnotherServer(shown)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                trusted_path::remove(path).map_err(|error| SocketError::NotRemoved(shown, error))
            }
            // The backlog is full (`WouldBlock`) or this account has no permission: a server
            // listens.
            Err(error) => Err(SocketError::InUse(shown, error)),
        },
        // It was removed in between.
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_the_own_account_may_connect_and_the_file_goes_with_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let socket = ControlSocket::bind(&path).unwrap();
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_living_server_keeps_its_socket_and_a_dead_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let living = ControlSocket::bind(&path).unwrap();
        let refused = ControlSocket::bind(&path).unwrap_err();
        assert!(
            matches!(refused, SocketError::AnotherServer(_)),
            "{refused}"
        );
        assert!(UnixStream::connect(&path).is_ok());
        drop(living);

        // A process that was killed leaves its file.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let next = ControlSocket::bind(&path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        assert_eq!(next.path(), path);
    }

    #[test]
    fn a_file_that_is_no_socket_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        fs::write(&path, "data").unwrap();
        let refused = ControlSocket::bind(&path).unwrap_err();
        assert!(matches!(refused, SocketError::OtherFile(_)), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), b"data");
        let long = folder.path().join("x".repeat(200));
        assert!(ControlSocket::bind(&long).is_err());
    }

    #[test]
    fn the_socket_of_a_successor_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let first = ControlSocket::bind(&path).unwrap();
        fs::rename(&path, folder.path().join("old")).unwrap();
        let second = ControlSocket::bind(&path).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }
}
