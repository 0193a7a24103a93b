//! The directive table: every directive, where it may be written, and its effect.
//!
//! One entry for each directive is read by the check of a configuration, by `mayfly check
//! --explain` and by the reference page, so that behaviour and documentation agree. A new
//! directive is an entry in one of the files below, and code in `lower` that reads it. An entry
//! with a name is a constant (`declaration`): `lower` gets the typed value by it.
//!
//! A name that begins with `*` is a family: `*_cache_valid` is both `fastcgi_cache_valid` and
//! `proxy_cache_valid`. Directives that nginx has and Mayfly does not are listed in
//! `unsupported`.

mod access;
mod acme;
mod brotli;
mod cache;
mod codings;
pub(crate) mod constants;
mod core;
pub(crate) mod declaration;
mod esi;
mod fastcgi;
mod files;
mod fragments;
mod gzip;
mod headers;
mod health;
mod http;
mod http2;
mod limits;
mod logs;
mod memcached;
mod numbers;
mod otel;
mod php_pool;
mod proxy;
mod purging;
mod rewrite;
mod ssi;
mod tls;
mod unsupported;
mod upstream;
mod zstd;

pub use unsupported::{Origin, UnsupportedDirective, unsupported, unsupported_names};

/// The prefixes that `*` at the start of a name means: protocols towards upstreams.
pub const PREFIXES: &[&str] = &["fastcgi", "proxy"];

/// The kind of block in which a directive is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Context {
    Main,
    Events,
    Http,
    Server,
    Location,
    /// `if` in a location.
    LocationIf,
    /// `limit_except` in a location.
    LimitExcept,
    /// `if` in a server.
    ServerIf,
    Upstream,
    PhpPool,
    AcmeIssuer,
    OtelExporter,
}

impl Context {
    /// Returns its name in nginx's documentation.
    pub fn name(self) -> &'static str {
        match self {
            Context::Main => "main",
            Context::Events => "events",
            Context::Http => "http",
            Context::Server => "server",
            Context::Location => "location",
            Context::LocationIf => "if in location",
            Context::LimitExcept => "limit_except",
            Context::ServerIf => "if in server",
            Context::Upstream => "upstream",
            Context::PhpPool => "php_pool",
            Context::AcmeIssuer => "acme_issuer",
            Context::OtelExporter => "otel_exporter",
        }
    }
}

/// The end of a directive, after its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectiveEnding {
    /// `;`
    Semicolon,
    /// `{ directives }`
    Block,
    /// `{ entries }` that are not directives, as in `map` and `types`.
    Entries,
}

/// The lines that an inner block inherits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inheritance {
    /// Nothing: a line holds in its own block only.
    None,
    /// The value of the nearest level that has one.
    Value,
    /// All lines of the nearest level that has any.
    Whole,
    /// All lines of all levels, those of outer ones first.
    Joined,
}

/// Whether a directive has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Works,
    /// Accepted without effect, and why. Nothing is lost by it.
    Ignored(&'static str),
    /// Accepted without effect. The check warns with this reason, since the operator may rely on
    /// the effect.
    Missing(&'static str),
}

/// One entry of the table.
#[derive(Debug, Clone, Copy)]
pub struct Directive {
    /// The name in the configuration; `*_...` for a family (see [`PREFIXES`]).
    pub name: &'static str,
    pub contexts: &'static [Context],
    /// Fewest and most arguments.
    pub arguments: (usize, usize),
    /// The arguments as the reference shows them.
    pub syntax: &'static str,
    pub ending: DirectiveEnding,
    pub inheritance: Inheritance,
    /// May be written more than once at one level.
    pub repeats: bool,
    /// Its presence alone decides who makes the response of a location, as with `empty_gif`.
    pub handles_content: bool,
    /// The default in the reference; `None`: no default.
    pub default: Option<&'static str>,
    /// The version of Mayfly that brought it.
    pub since: &'static str,
    pub effect: Effect,
    /// The purpose, in half a line that begins with a verb.
    pub short: &'static str,
    /// The effect and when to use it, in short sentences; Markdown.
    pub long: &'static str,
    /// A line or block that is accepted in the first of its contexts.
    pub example: &'static str,
}

impl Directive {
    /// Every name it may be written with.
    pub fn names(&self) -> Vec<String> {
        match self.name.strip_prefix('*') {
            Some(rest) => PREFIXES
                .iter()
                .map(|prefix| format!("{prefix}{rest}"))
                .collect(),
            None => vec![self.name.to_owned()],
        }
    }

    /// Is `name` one of its names?
    pub fn is_named(&self, name: &str) -> bool {
        match self.name.strip_prefix('*') {
            Some(rest) => name
                .strip_suffix(rest)
                .is_some_and(|it| PREFIXES.contains(&it)),
            None => self.name == name,
        }
    }
}

/// The sections of the table, with the titles of the reference.
pub const SECTIONS: &[(&str, &[Directive])] = &[
    ("The process", core::TABLE),
    ("PHP pools", php_pool::TABLE),
    ("Servers and locations", http::TABLE),
    ("TLS for clients", tls::TABLE),
    ("Certificates that come by themselves", acme::TABLE),
    ("HTTP/2 and HTTP/3", http2::TABLE),
    ("Rewriting and variables", rewrite::TABLE),
    ("FastCGI and what all upstreams share", fastcgi::TABLE),
    ("HTTP upstreams", proxy::TABLE),
    ("memcached", memcached::TABLE),
    ("The cache", cache::TABLE),
    ("Purging", purging::TABLE),
    ("Upstream groups", upstream::TABLE),
    ("Health checks", health::TABLE),
    ("Access logs", logs::TABLE),
    ("Numbers about the server", numbers::TABLE),
    ("Traces", otel::TABLE),
    ("Limits", limits::TABLE),
    ("Access and client addresses", access::TABLE),
    ("Response fields", headers::TABLE),
    ("Files and listings", files::TABLE),
    ("Compression", gzip::TABLE),
    ("Compression with brotli", brotli::TABLE),
    ("Compression with zstd", zstd::TABLE),
    ("Edge Side Includes", esi::TABLE),
    ("Server Side Includes", ssi::TABLE),
    ("Fragments of pages", fragments::TABLE),
];

/// The whole table.
pub fn all() -> impl Iterator<Item = &'static Directive> {
    SECTIONS.iter().flat_map(|(_, table)| table.iter())
}

/// The names of the directives whose presence alone decides who makes the response of a
/// location. The server has a function for each.
pub fn content_handlers() -> impl Iterator<Item = &'static str> {
    all()
        .filter(|directive| directive.handles_content)
        .map(|directive| directive.name)
}

/// The result of looking for a name in a context.
#[derive(Debug, Clone, Copy)]
pub enum DirectiveLookup {
    Directive(&'static Directive),
    /// It exists in other contexts only.
    Elsewhere(&'static Directive),
    Unknown,
}

/// Looks for the directive `name` in `context`.
pub fn find(name: &str, context: Context) -> DirectiveLookup {
    let mut found = DirectiveLookup::Unknown;
    for directive in by_name(name) {
        if directive.contexts.contains(&context) {
            return DirectiveLookup::Directive(directive);
        }
        found = DirectiveLookup::Elsewhere(directive);
    }
    found
}

/// The entries written with `name`: `server` has two.
pub fn by_name(name: &str) -> &'static [&'static Directive] {
    use std::collections::HashMap;
    use std::sync::OnceLock;
    static INDEX: OnceLock<HashMap<String, Vec<&'static Directive>>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index: HashMap<String, Vec<_>> = HashMap::new();
        for directive in all() {
            for name in directive.names() {
                index.entry(name).or_default().push(directive);
            }
        }
        index
    });
    index.get(name).map_or(&[], Vec::as_slice)
}
