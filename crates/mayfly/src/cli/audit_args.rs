//! Arguments of `mayfly explain --audit`.

use std::time::Duration;

use clap::Args;

use command_line::values::time;

#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Auditing pages")]
pub struct AuditArgs {
    /// Find out whether one visitor's request can change the pages of other visitors
    ///
    /// Each page is requested over HTTP with a hundred variations: fields, cookies, arguments, hosts and paths
    /// that a cache key may leave out. Then it is requested as by another visitor. A random argument keeps this
    /// away from the visitors of the site. Any server may be audited. -H fields are in each request.
    #[arg(long, conflicts_with_all = [
        "search", "tag", "entry", "limit", "after", "ask", "method", "from", "conf", "prefix_folder", "socket",
    ])]
    pub audit: bool,
    /// Audit the pages of a sitemap; may be given more than once
    #[arg(long, value_name = "URL", group = "what", requires = "audit")]
    pub sitemap: Vec<String>,
    /// Address of the server, HOST:PORT or unix:PATH [default: the host and port of the URL]
    #[arg(long, value_name = "ADDRESS", requires = "audit")]
    pub connect: Option<String>,
    /// Audit at most this number of pages
    #[arg(long, value_name = "N", default_value_t = 20, requires = "audit", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub pages: u8,
    /// How long a request may take
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "audit", value_parser = time)]
    pub timeout: Duration,
    /// How long the audit may take
    #[arg(long, value_name = "TIME", default_value = "10m", requires = "audit", value_parser = time)]
    pub duration: Duration,
    /// Also audit pages whose key leaves out arguments, at their own addresses: visitors may be shown what the
    /// audit provokes, until the stored page is stale
    #[arg(long, requires = "audit")]
    pub plain_address: bool,
    /// Allow servers on other machines
    #[arg(long, requires = "audit")]
    pub yes_this_is_mine: bool,
}
