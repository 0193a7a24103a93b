//! The messages between the supervisors of two programs, of which one takes the other's place. Descriptors
//! follow in the order in which a message names them.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use control::socket::ControlSocket;
use php_pool::PoolEstate;
use serde::{Deserialize, Serialize};
use server::worker::{Listening, Sockets};
use site::{ListenAddress, Site};

use crate::processes::activation;
use crate::processes::control_socket;
use crate::processes::messages;
use crate::processes::socket_name::{SocketName, listening};
use crate::processes::sockets::BoundSockets;

/// The form of these messages. Fields may be added to it; a program that does otherwise has another number.
pub const FORM: u32 = 1;

/// To the new program.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToSuccessor {
    Inherit(Inheritance),
    /// The inheritance is now its own. With a socket to the workers.
    TakeOver,
    /// Another process serves here; a socket to it.
    Sibling,
    /// This program has taken back the resources that the new one gave.
    TakenBack,
}

/// To the program that it replaces.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToPredecessor {
    Hello {
        form: u32,
        version: String,
    },
    /// It cannot serve; a line for each reason.
    Refused(Vec<String>),
    Prepared,
    /// It serves.
    Ready(TakenOver),
    /// The workers know of the process of the last `Sibling`.
    Linked,
    /// The other program must not answer any more.
    EndAtOnce,
    /// It is about to end.
    GivesBack,
}

/// The sockets and pools that the new program goes on with.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TakenOver {
    sockets: Vec<SocketName>,
    /// The names of PHP's pools.
    #[serde(default)]
    pub pools: Vec<String>,
}

impl TakenOver {
    pub fn new(sockets: &Sockets, pools: Vec<String>) -> TakenOver {
        TakenOver {
            sockets: sockets.keys().map(SocketName::of).collect(),
            pools,
        }
    }

    /// Returns the addresses on which it listens.
    pub fn addresses(self) -> HashSet<ListenAddress> {
        self.sockets.into_iter().map(SocketName::address).collect()
    }
}

/// The message with everything that the new program inherits.
#[derive(Debug, Serialize, Deserialize)]
pub struct Inheritance {
    pub form: u32,
    pub version: String,
    pub pid: u32,
    /// The number of the account that serves, where root started the program.
    #[serde(default)]
    account: Option<u32>,
    /// With the number of sockets that listen there; a descriptor for each.
    sockets: Vec<(SocketName, usize)>,
    /// The path of the control socket; its descriptor.
    #[serde(default)]
    control: Option<ControlPlace>,
    /// Five descriptors for each.
    #[serde(default)]
    pools: Vec<LentPool>,
}

/// [`PoolEstate`] without its descriptors.
#[derive(Debug, Serialize, Deserialize)]
struct LentPool {
    name: String,
    spec: String,
    #[serde(with = "messages::os_path")]
    folder: PathBuf,
    pid: u32,
    group: u32,
    generation: u64,
    workers: u32,
}

/// A control socket: its path, and which file it is.
#[derive(Debug, Serialize, Deserialize)]
struct ControlPlace {
    #[serde(with = "messages::os_path")]
    path: PathBuf,
    file: (u64, u64),
}

/// The things given to the new program; borrowed, since the old one keeps all of them until it ends.
pub struct Estate<'a> {
    pub account: Option<u32>,
    pub sockets: &'a Sockets,
    pub control: Option<&'a ControlSocket>,
    /// By their names.
    pub pools: &'a [(String, PoolEstate)],
    /// The stream for messages of the new program once it is known to be one.
    pub stderr: BorrowedFd<'a>,
}

impl Estate<'_> {
    /// The message, and the descriptors that go with it.
    pub fn message(&self) -> (ToSuccessor, Vec<BorrowedFd<'_>>) {
        let mut fds = vec![self.stderr];
        for group in self.sockets.values() {
            fds.extend(group.iter().map(|socket| match &**socket {
                Listening::Tcp(listener) => listener.as_fd(),
                Listening::Unix(listener) => listener.as_fd(),
                Listening::Udp(socket) => socket.as_fd(),
            }));
        }
        fds.extend(self.control.map(|control| control.listener().as_fd()));
        for (_, pool) in self.pools {
            fds.extend(pool.descriptors().map(AsFd::as_fd));
        }
        let lent = |(name, pool): &(String, PoolEstate)| LentPool {
            name: name.clone(),
            spec: pool.spec.clone(),
            folder: pool.folder.clone(),
            pid: pool.pid,
            group: pool.group,
            generation: pool.generation,
            workers: pool.workers,
        };
        let names = self.sockets.iter();
        let inheritance = Inheritance {
            form: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            account: self.account,
            sockets: names
                .map(|(address, group)| (SocketName::of(address), group.len()))
                .collect(),
            control: self.control.map(|control| ControlPlace {
                path: control.path().to_owned(),
                file: control.file(),
            }),
            pools: self.pools.iter().map(lent).collect(),
        };
        (ToSuccessor::Inherit(inheritance), fds)
    }
}

/// The inherited things, with their descriptors.
pub struct InheritedResources {
    pub version: String,
    pub pid: u32,
    pub account: Option<u32>,
    pub stderr: OwnedFd,
    pub sockets: Sockets,
    pub control: Option<ControlSocket>,
    pub pools: Vec<(String, PoolEstate)>,
}

impl Inheritance {
    /// Puts descriptors and names together; `None` if descriptors are missing.
    pub fn with(self, fds: Vec<OwnedFd>) -> Option<InheritedResources> {
        let mut fds = fds.into_iter();
        let stderr = fds.next()?;
        let mut sockets: Sockets = HashMap::new();
        for (name, count) in self.sockets {
            let address = name.address();
            let mut group = Vec::new();
            for _ in 0..count {
                group.push(Arc::new(listening(&address, fds.next()?)));
            }
            sockets.insert(address, group);
        }
        let control = match self.control {
            None => None,
            Some(place) => {
                let listener = UnixListener::from(fds.next()?);
                let socket = ControlSocket::inherited(place.path, listener, place.file);
                Some(socket)
            }
        };
        let mut pools = Vec::new();
        for pool in self.pools {
            let estate = PoolEstate {
                spec: pool.spec,
                folder: pool.folder,
                pid: pool.pid,
                group: pool.group,
                generation: pool.generation,
                workers: pool.workers,
                own: fds.next()?,
                socket: fds.next()?,
                process: fds.next()?,
                lifeline: fds.next()?,
                stderr: fds.next()?,
            };
            pools.push((pool.name, estate));
        }
        Some(InheritedResources {
            pools,
            version: self.version,
            pid: self.pid,
            account: self.account,
            stderr,
            sockets,
            control,
        })
    }
}

impl InheritedResources {
    /// Returns the addresses on which the other program listens.
    pub fn addresses(&self) -> HashSet<ListenAddress> {
        self.sockets.keys().cloned().collect()
    }

    /// Returns the inherited things that the configuration of this program goes on with. The rest is the
    /// other one's until it ends.
    pub fn wanted(
        self,
        site: &Site,
        workers: usize,
        unnamed_control: Option<&Path>,
    ) -> (
        BoundSockets,
        Option<ControlSocket>,
        Vec<(String, PoolEstate)>,
    ) {
        let mut sockets = BoundSockets::inherited(self.sockets);
        sockets.retain_wanted(&activation::wanted_sockets(site), workers);
        let path = control_socket::path(&site.process, unnamed_control);
        let is_wanted = |control: &ControlSocket| path.as_deref() == Some(control.path());
        let control = self.control.filter(is_wanted);
        (sockets, control, self.pools)
    }
}
