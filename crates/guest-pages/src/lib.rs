//! Guests: visitors to whom an application gives a session although it knows nothing of them. Their pages may be
//! shared all the same, where it has been seen that a page does not depend on its session.
//!
//! ```text
//! answers without a session ── compare ──► PageForm: where they differ
//!                                             ├ numbers (times, counts): one answer's are shown to all
//!                                             └ tokens: the server's own are shown in their place
//! a guest's write ── ServerTokens::find ──► the page that it came from: asked for once more, for this visitor;
//!                    exchange               its session and its tokens go into the write
//! ```
//!
//! ```text
//! session    the marks of a session in a response: PHP's fields, and the cookies that it sets
//! policies   fields on caching that a site sends with every page alike
//! outline    what an answer shows of itself that is for one visitor
//! target     addresses that look as if they did something for one visitor
//! text       where two answers to the same request differ
//! markup     where in a page such a place is
//! place      what stands at such a place: a number, or a token
//! moment     texts that name the present time
//! form       the form of a page: literal text, and places
//! tokens     the server's own tokens, and which page each is of
//! sending    where a page sends its tokens
//! exchange   a token of the application for one of the server's, in what a visitor sends
//! pages      the pages that guests share, and all tables
//! cookies    the cookies that guests were given, until they write something
//! ```
//!
//! The tokens of answers to the shared request belong to a session that nobody has. Nothing of a visitor's own answer is
//! ever kept. Bounded in pages, places, tokens and cookies; what is forgotten makes a page or a visitor personal.
//!
//! No I/O and no clock.

pub mod cookies;
pub mod exchange;
mod form;
mod markup;
mod moment;
pub mod outline;
mod pages;
mod place;
pub mod policies;
pub mod sending;
pub mod session;
pub mod target;
mod text;
pub mod tokens;

/// More of a page is not compared.
pub const MAX_BODY_BYTES: usize = 2 << 20;

pub use cookies::GuestCookies;
pub use form::{
    AskedSite, Comparison, PageForm, SessionNumbers, Unlike, compare, has_key, has_new_key,
};
pub use pages::{GuestPage, GuestPages, LearnedForm, MAX_WITNESSES, SessionTraces};
pub use place::{Guests, PlaceKind};
pub use tokens::{ServerTokens, TokenPage, is_own_cookie};
