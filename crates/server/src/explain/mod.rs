//! Explanations for people: what the server would do with a request, and which responses are stored.
//! They answer `mayfly explain` over the control socket.
//!
//! ```text
//! explanation   from a request to what would become of it
//!   way         the request through all stages but the content: no upstream is asked
//!   parts       what each part of it does to the way, the key and the variant, by trying
//!   seen        what was seen of a page that visitors share (`cache_shared`)
//!   trying      the page made again with one thing altered at a time
//!   learned     what a page was made of, and why that is not known
//!   lifetime    what gave a stored response its lifetime
//!   turn        whose turn it would be at the upstream
//!   asking      the request, really made
//! reference     the page that lists the reasons
//! looking       searches, and single stored responses
//!   shown       a stored response as it is shown: no cookies, values of arguments masked
//! ```
//!
//! The decisions are those of the stages (`pipeline::serve_dry`, `content/through_cache/outlook.rs`):
//! nothing here decides anything.

mod asking;
mod explanation;
mod learned;
mod lifetime;
mod looking;
mod parts;
mod reference;
mod seen;
mod shown;
mod trying;
mod turn;
mod way;

pub use explanation::explain;
pub use looking::{entry, search, stored};
pub use reference::reference;
