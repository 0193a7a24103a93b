//! What a configuration comes with on its way to the process that serves it.

use std::os::unix::net::UnixListener;

use live_state::tls_files::TlsFiles;
use nginx_conf::Sources;
use server::worker::Sockets;
use site::Site;

use crate::config::Invocation;
use crate::processes::logs::LogFiles;
use crate::processes::pools::{LearningSockets, PoolStatus};
use crate::processes::sibling_socket::SiblingSocket;

/// A configuration with everything that belongs to it. The site is for threads
/// of this process, the texts for another one.
pub struct Handover<'a> {
    pub site: Site,
    pub invocation: &'a Invocation,
    pub sources: &'a Sources,
    pub sockets: Sockets,
    pub control: Option<&'a UnixListener>,
    pub logs: LogFiles,
    pub pools: Vec<PoolStatus>,
    pub learning: LearningSockets,
    pub tls_files: TlsFiles,
    /// To the process that serves beside this one from now on.
    pub sibling: Option<&'a SiblingSocket>,
}

/// The open files and sockets of a site, and what is known of its pools.
#[derive(Debug)]
pub struct SiteResources {
    pub sockets: Sockets,
    /// Commands come here.
    pub control: Option<UnixListener>,
    pub logs: LogFiles,
    pub pools: Vec<PoolStatus>,
    pub learning: LearningSockets,
    pub tls_files: TlsFiles,
    /// To the process that serves beside this one from now on.
    pub sibling: Option<SiblingSocket>,
}
