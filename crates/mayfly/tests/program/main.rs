//! The program under test, end to end: one test program, a module for each feature or directive.
//! `cargo test -p mayfly --test program slice::` runs those of one module.
//!
//! `MAYFLY_UNDER_TEST=PATH` runs another build of the program instead, to see how it behaves.

mod access_log;
mod acme;
mod add_header;
mod advise;
mod apache_rules;
mod attacks;
mod auth_basic;
mod auth_request;
mod bench;
mod bench_page;
mod cache;
mod cache_as_nginx;
mod cache_learn;
mod charset;
mod command_line;
mod commands;
mod compression;
mod conditional_requests;
mod counts;
mod daemon;
mod doctor;
mod error_page;
mod esi;
mod explain;
mod fair_turns;
mod geo;
mod guests;
mod http1;
mod http2;
mod http3;
mod huge_pages;
mod lent_library;
mod limit_except;
mod limit_rate;
mod listen;
mod litespeed;
mod map_and_set;
mod memcached;
mod mirror;
mod nodes;
mod numbers;
mod php_pool;
mod pipelining;
mod privileges;
mod process_names;
mod proxy;
mod proxy_protocol;
mod published;
mod purging;
mod reload;
mod rewrite;
mod secure_link;
mod sendfile;
mod serve;
mod service_manager;
mod signals;
mod slice;
mod ssi_gunzip;
mod store;
mod sub_filter;
mod temporary_files;
mod tls;
mod told;
mod traces;
mod upgrade;
mod upstream;
mod user_id;
mod variables;
mod visits;
mod wake_ups;
mod wall_clock;
mod warming;
mod worker_processes;

use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use testkit::running::RunningServer;

/// The program under test.
fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        let other = std::env::var("MAYFLY_UNDER_TEST");
        other.unwrap_or_else(|_| env!("CARGO_BIN_EXE_mayfly").to_owned())
    });
    &PROGRAM
}

/// The program under test, beside which there is `mayfly-tools`: a whole build (`cargo test --workspace`) has made it.
fn program_with_tools() -> &'static str {
    let tools = Path::new(program()).with_file_name("mayfly-tools");
    assert!(
        tools.exists(),
        "{} is missing: cargo build --package mayfly-tools",
        tools.display()
    );
    program()
}

/// A server with this in its http block; see [`RunningServer::start`].
async fn start(http: &str) -> RunningServer {
    RunningServer::start(program(), "", http).await
}

/// A server with one virtual server that has these directives.
async fn site(directives: &str) -> RunningServer {
    site_with("", directives).await
}

/// Like [`site`], with more in the http block.
async fn site_with(http: &str, directives: &str) -> RunningServer {
    start(&one_server(http, directives)).await
}

/// The http block of [`site_with`].
fn one_server(http: &str, directives: &str) -> String {
    format!("{http}\nserver {{ listen unix:%%/http; server_name site.test;\n{directives}\n}}")
}

/// Whether PHP-FPM is installed; prints a line if it is not.
fn has_php_fpm() -> bool {
    let found = ::php_pool::find_php_fpm(None).is_ok();
    if !found {
        eprintln!("skipped: no php-fpm");
    }
    found
}

/// Returns the names of a folder's files, sorted.
fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| {
            let name = entry.expect("an entry").file_name();
            name.to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}

fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_ref()).expect("memory");
    encoder.finish().expect("memory")
}
