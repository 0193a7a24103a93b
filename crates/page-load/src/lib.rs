//! A page with all that it needs, loaded as a browser would load it, and when each part was there.
//!
//! ```text
//! address ─► Load: what is asked for next? ─► network: connections as a browser makes them
//!              ▲                                   │ events: connected, head, data, end
//!              │ html, css, style: what it names   ▼
//!              └───────────────────────────── PageLoad ─► totals, waterfall, HAR, report
//! ```
//!
//! A resource is asked for when the bytes that name it are there, in the order of its priority, over at
//! most six connections to each host with HTTP/1.1 and over one with HTTP/2. A second, warm load has the
//! responses that the first one may have kept (RFC 9111). No script runs, so resources that scripts load
//! are not known.

mod browser_cache;
mod content;
mod css;
mod decode;
mod fetch;
mod har;
mod hosts;
mod html;
mod link;
mod load;
mod media;
mod network;
mod page;
mod reading;
mod report;
mod report_page;
mod request;
mod resource;
mod settings;
mod srcset;
mod style;
mod totals;
mod waterfall;

pub use load::Browser;
pub use media::Viewport;
pub use page::PageLoad;
pub use reading::named_addresses;
pub use report::{MeasuredPage, Report};
pub use settings::{LoadError, Settings, address, field};
