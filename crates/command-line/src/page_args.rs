//! The arguments of `mayfly bench --page`, beside those that all of `bench` knows.

use clap::Args;

use crate::window_size::WindowSize;

// Arguments of `--page` are refused beside other URLs. `requires` would have no effect there, since the argument
// that it asks for conflicts with them.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Loading a page")]
pub struct PageArgs {
    /// Load this page as a browser does: with its style sheets, scripts, images and fonts
    ///
    /// Each run is a cold load, with an empty browser cache, and a warm one, with what the cold load may
    /// keep. The loads use HTTP/2 if the server offers it, otherwise HTTP/1.1 over six connections. Scripts
    /// do not run, so what they would load is missing. Any server may be asked, as by a visitor. -H,
    /// --timeout, --compare, --html and --json can be given as well.
    #[arg(long, value_name = "URL", conflicts_with_all = [
        "urls", "rate", "connections", "duration", "ramp", "cookies", "requests_per_visitor", "replay",
        "yes_this_is_mine",
    ])]
    pub page: Option<String>,
    /// How many cold and how many warm loads
    #[arg(long, value_name = "N", default_value = "5", conflicts_with = "urls", value_parser = clap::value_parser!(u32).range(1..=50))]
    pub runs: u32,
    /// The size of the window in pixels, for media queries and the choice of images
    #[arg(
        long,
        value_name = "WIDTHxHEIGHT",
        default_value = "1366x768",
        conflicts_with = "urls"
    )]
    pub viewport: WindowSize,
    /// Load from other hosts and ports than the page's as well; otherwise these requests are counted as
    /// left out
    #[arg(long, conflicts_with = "urls")]
    pub third_party: bool,
    /// Write an HTTP archive (HAR 1.2) of all loads; cookies and passwords are left out
    #[arg(long, value_name = "FILE", conflicts_with = "urls")]
    pub har: Option<std::path::PathBuf>,
}
