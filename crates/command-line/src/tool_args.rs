//! Arguments of the words that `mayfly-tools` obeys, and of which server is meant.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::page_args::PageArgs;
use crate::values::{rate, time};

/// Which running server is meant.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct ServerArgs {
    /// The configuration of the running server [default: that of mayfly -c, or the server that
    /// mayfly serve runs]
    #[arg(short = 'c', value_name = "FILE", conflicts_with = "socket")]
    pub conf: Option<PathBuf>,
    /// Where relative paths of the configuration begin
    #[arg(short = 'p', value_name = "FOLDER", conflicts_with = "socket")]
    pub prefix_folder: Option<PathBuf>,
    /// The control socket of the running server, instead of its configuration
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// Simulates what each lifetime from 100 ms to a day would have made of the requests in these logs. Known
/// formats: combined, also with more behind it, and those of Mayfly and nginx with a cache status and times.
/// Nothing is sent anywhere.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct AdviseArgs {
    /// Access logs, also compressed with gzip, in any order; - for standard input
    #[arg(value_name = "LOG", required_unless_present = "learned")]
    pub logs: Vec<PathBuf>,
    /// Ask the running server instead: which statements of pages do writes concern most often, where pages are
    /// learned (cache_learn)?
    #[arg(long, conflicts_with_all = ["logs", "format", "plain_keys"])]
    pub learned: bool,
    #[command(flatten)]
    pub server: ServerArgs,
    /// The text of the log_format that they were written in, such as
    /// '$remote_addr [$time_local] "$request" $status $http_cookie'
    #[arg(long, value_name = "TEXT")]
    pub format: Option<String>,
    /// Find pages by host and target only, as without cache_shared: not by the class of visitors, and
    /// without longer lifetimes for crawlers
    #[arg(long)]
    pub plain_keys: bool,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// With --rate, requests are due at fixed times whether or not the server keeps up, and latency counts from
/// then: this is what visitors feel. Without --rate, each connection asks again when it has its answer: this is
/// what the server can do. With --page, a page is loaded with all that it needs, as a browser loads it.
// Large: each is an option of the command line.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct BenchArgs {
    /// URLs over HTTP/1.1; with several, 3@URL asks for it three times as often as for one without a weight
    #[arg(value_name = "URL", required_unless_present = "page")]
    pub urls: Vec<String>,
    /// Requests per second
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,
    /// Connections [default: 16; with --rate and --replay the most that may be open, 512]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub connections: Option<u32>,
    /// How long the load lasts
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub duration: Duration,
    /// How long the rate, or the number of connections, takes to grow from zero
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = time)]
    pub ramp: Duration,
    /// How long a request may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub timeout: Duration,
    /// A field of every request, such as \"Accept-Language: de\"; may be given more than once
    #[arg(short = 'H', long, value_name = "FIELD")]
    pub header: Vec<String>,
    /// Visitors send back the cookies that they are given; each connection is a visitor
    #[arg(long)]
    pub cookies: bool,
    /// Each visitor leaves after this number of requests, and another comes with a new connection
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_visitor: Option<u32>,
    /// Repeat the GET and HEAD requests of an access log, at their times; may be given more than once
    #[arg(long, value_name = "LOG", conflicts_with_all = ["rate", "ramp"])]
    pub replay: Vec<PathBuf>,
    /// The text of the log_format that the log was written in
    #[arg(long, value_name = "TEXT", requires = "replay")]
    pub format: Option<String>,
    /// How fast to repeat the log: 2 is twice as fast
    #[arg(long, value_name = "FACTOR", default_value = "1", requires = "replay", value_parser = rate)]
    pub speed: f64,
    /// Another URL to compare with, in turns: it gets the same load for --duration, or is loaded as often as the page
    #[arg(long, value_name = "URL", visible_alias = "beside")]
    pub compare: Option<String>,
    /// Write an HTML page with plots, or with drawings of when each resource arrived
    #[arg(long, value_name = "FILE", visible_alias = "report")]
    pub html: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Allow servers on other machines
    #[arg(long)]
    pub yes_this_is_mine: bool,
    // The last, since its heading is that of all that follow.
    #[command(flatten)]
    pub page: PageArgs,
}
