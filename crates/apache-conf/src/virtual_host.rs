//! The directives of a virtual host, as far as they can be written in nginx's syntax.

use crate::rules::RulesText;

/// The parsed directives of a virtual host.
#[derive(Debug, Default)]
pub struct Server {
    pub address: ServerAddress,
    pub root: Option<String>,
    /// Logs, certificates and settings of TLS.
    pub lines: Vec<String>,
    pub log_level: Option<String>,
    /// Paths of addresses that another folder or another server answers for.
    pub places: Vec<ServerPlace>,
    /// The address of PHP.
    pub php: Option<String>,
    pub php_settings: PhpSettings,
    /// Fields of requests, with their values, for PHP and for servers behind this one.
    pub request_fields: Vec<(String, String)>,
    /// `None`: nothing is compressed.
    pub compressed_types: Option<Vec<String>>,
    pub body_bytes: Option<u64>,
    pub rules: RulesText,
    /// `.htaccess` files count somewhere.
    pub reads_htaccess: bool,
    /// Folders are listed somewhere.
    pub lists_folders: bool,
}

/// Names and addresses.
#[derive(Debug, Default)]
pub struct ServerAddress {
    pub names: Vec<String>,
    pub is_tls: bool,
    pub has_http2: bool,
    /// The `Host` of the request is passed on to other servers.
    pub passes_host: bool,
    /// The host that was asked for, with its port where that is not the usual one.
    pub asked_host: &'static str,
}

/// Settings of PHP, `name=value`.
#[derive(Debug, Default)]
pub struct PhpSettings {
    pub values: Vec<String>,
    /// The settings of PHP that scripts cannot change.
    pub admin_values: Vec<String>,
}

/// A path of addresses.
#[derive(Debug)]
pub struct ServerPlace {
    /// With a slash at the end, unless it is one file's.
    pub path: String,
    pub kind: PlaceKind,
    pub lines: Vec<String>,
}

/// The handler of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    File,
    /// A folder in which scripts run, or are refused.
    Folder {
        runs_scripts: bool,
    },
    /// Another server, for the path without its slash as well or not.
    OtherServer {
        is_exact: bool,
    },
}

impl Server {
    /// Puts a place in the place of an earlier one with its path.
    pub fn put(&mut self, place: ServerPlace) {
        self.places.retain(|it| it.path != place.path);
        self.places.push(place);
    }
}
