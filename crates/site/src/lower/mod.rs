//! Lowers an `Ast` to a [`Site`]: the meaning of the configuration.
//!
//! ```text
//! Ast --check--> Nodes --declare names--> tables --settings of each level--> Site
//! ```
//!
//! Inheritance is two questions to a [`level::Level`]: the nearest level that
//! has a directive, and the nearest that has any line of a list. Every file
//! below lowers one subject by asking them. All mistakes are collected;
//! a wrong value is replaced by its default so that the rest is read too.

mod access;
mod acme;
mod cache;
mod cache_bypass;
mod cache_purge;
mod cache_shared;
mod cache_tags;
mod ciphers;
mod compression;
mod exchange;
mod fastcgi;
mod field_edits;
mod file_copy;
mod files;
mod headers;
mod health;
mod http;
mod http2;
mod http3;
mod level;
mod limit_except;
mod limits;
mod listen;
mod location;
mod location_tree;
mod logs;
mod maps;
mod memcached;
mod nodes;
mod otel;
mod pattern;
mod php_pool;
mod process;
mod proxy;
mod resolver;
mod rewrite;
mod rule_lines;
mod server_names;
mod server_tls;
mod settings;
mod subrequests;
mod template;
mod tls;
mod upstream;
mod user_id;
mod values;
mod variables;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nginx_conf::{Ast, Diagnostic, Sources, Span};

use crate::check::{Node, check};
use crate::model::*;
use crate::own_files::OwnFiles;
use variables::Variables;

/// How many diagnostics are kept before those of one cause are merged. At most
/// [`nginx_conf::MAX_DIAGNOSTICS`] are shown.
const MAX_COMPLAINTS: usize = 1000;

/// Facts about the machine and the command line that the configuration does not contain.
#[derive(Debug, Clone)]
pub struct LowerOptions {
    /// The folder that relative paths start at (nginx's `-p`), absolute.
    pub prefix: PathBuf,
    /// The folder of the main file: where the paths of `auth_basic_user_file` start.
    pub conf_folder: PathBuf,
    /// Replaces the default error log (nginx's `-e`).
    pub error_log: Option<PathBuf>,
    /// Started by root: the default port is 80, else 8000.
    pub privileged: bool,
    /// The source of the configuration for messages, if it is no file.
    pub text_name: Option<&'static str>,
    /// The value of `$hostname` in `server_name`, in lower case.
    pub hostname: String,
    /// Looks a host name and port up.
    pub resolve: fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
}

impl LowerOptions {
    /// Creates options with this machine's user and system resolver.
    pub fn new(prefix: &Path, conf_folder: &Path) -> Self {
        let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            prefix: prefix.to_owned(),
            conf_folder: conf_folder.to_owned(),
            error_log: None,
            text_name: None,
            privileged: rustix::process::geteuid().is_root(),
            hostname: hostname.trim().to_ascii_lowercase(),
            resolve: |host, port| (host, port).to_socket_addrs().map(Iterator::collect),
        }
    }
}

/// Lowers a tree. The site is there when no diagnostic is an error; the
/// diagnostics come in the order of the text.
pub fn lower(
    ast: &Ast,
    sources: &Sources,
    options: &LowerOptions,
) -> (Option<Site>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let nodes = check(ast, &mut diagnostics);
    let mut lowering = Lowering::new(options, sources, diagnostics);
    let site = lowering.site(&nodes);
    let (is_refused, diagnostics) = lowering.finish();
    ((!is_refused).then_some(site), diagnostics)
}

/// The state of a lowering: names known so far, values that levels share, diagnostics.
// Large: a table for each kind of name that directives enter, from any level.
pub(crate) struct Lowering<'a> {
    options: &'a LowerOptions,
    own_files: OwnFiles,
    sources: &'a Sources,
    diagnostics: Vec<Diagnostic>,
    /// Some diagnostic was an error, kept or not.
    is_refused: bool,
    variables: Variables,
    /// What the `http` block has declared so far.
    declared: Http,
    /// `php_concurrency` and `crawler_share` of `http`.
    turns: Turns,
    group_names: HashMap<String, GroupId>,
    /// Groups made for addresses that a `*_pass` names literally.
    implicit_groups: HashMap<String, GroupId>,
    has_otel_exporter: bool,
    /// The file of `acme_certificate` of the server that is being lowered.
    acme_file: Option<PathBuf>,
    /// Sizes of `ssl_session_cache shared:NAME:SIZE` by name.
    tls_session_caches: HashMap<String, u64>,
    /// Resolvers by the span of their line.
    resolver_lines: HashMap<Span, Option<ResolverId>>,
    /// Spans with a warning, which is given once although many levels inherit the line.
    warned: HashSet<Span>,
    pools: Vec<PhpPool>,
    patterns: HashMap<(String, bool), Option<Arc<Pattern>>>,
    /// `types` blocks by their span.
    types: HashMap<Span, Arc<TypeTable>>,
    media_types: HashMap<Span, Arc<MediaTypes>>,
    /// Conditions made for `*_cache_purge METHOD`, by the span of the method.
    purges: HashMap<Span, Template>,
    /// Names of the server whose locations are being lowered.
    server_names: Vec<String>,
}

impl<'a> Lowering<'a> {
    fn new(options: &'a LowerOptions, sources: &'a Sources, diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            options,
            own_files: OwnFiles::of(&options.prefix),
            sources,
            is_refused: diagnostics.iter().any(Diagnostic::is_error),
            diagnostics,
            variables: Variables::default(),
            declared: Http::default(),
            turns: Turns::default(),
            group_names: HashMap::new(),
            implicit_groups: HashMap::new(),
            has_otel_exporter: false,
            acme_file: None,
            tls_session_caches: HashMap::new(),
            resolver_lines: HashMap::new(),
            warned: HashSet::new(),
            pools: Vec::new(),
            patterns: HashMap::new(),
            types: HashMap::new(),
            media_types: HashMap::new(),
            purges: HashMap::new(),
            server_names: Vec::new(),
        }
    }

    fn site(&mut self, nodes: &[Node<'_>]) -> Site {
        let main = level::Level::new(nodes, None);
        self.php_pools(&main);
        let block = main.own("http").first();
        let level = block.map(|node| level::Level::new(&node.children, Some(&main)));
        let http = match &level {
            Some(level) => {
                self.php_pools(level);
                self.http(level)
            }
            None => Http::default(),
        };
        Site {
            process: self.process(&main, level.as_ref()),
            http,
        }
    }

    fn finish(mut self) -> (bool, Vec<Diagnostic>) {
        for undefined in self.variables.undefined() {
            self.report(undefined);
        }
        let order = |it: &Diagnostic| it.span.map(|span| (span.source, span.start));
        self.diagnostics.sort_by_key(order);
        // Levels that inherit a value report the same mistake again.
        self.diagnostics.dedup();
        (self.is_refused, self.diagnostics)
    }

    /// Adds a diagnostic once, up to [`MAX_COMPLAINTS`].
    fn report(&mut self, diagnostic: Diagnostic) {
        self.is_refused |= diagnostic.is_error();
        if self.diagnostics.len() < MAX_COMPLAINTS && !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// An absolute path: relative ones start at the folder of the main file.
    fn path_beside_main_file(&self, text: &str) -> PathBuf {
        self.options.conf_folder.join(text)
    }

    /// The file that a directive names; a relative path starts at the folder of the main file.
    fn file_beside_main_file(&self, level: &level::Level<'_>, name: &str) -> Option<PathBuf> {
        Some(self.path_beside_main_file(level.word(name)?))
    }

    /// An absolute path: relative ones start at the prefix.
    fn path(&self, text: &str) -> PathBuf {
        self.options.prefix.join(text)
    }
}
