//! A visitor who is a guest: the application has given them a session, and they have written nothing since.

use guest_pages::cookies::CookieMark;
use page_evidence::PageName;

/// The server's knowledge of a guest who asks for a page.
#[derive(Clone, Debug)]
pub struct GuestVisit {
    /// Their cookies.
    pub marks: Vec<CookieMark>,
    /// The page that they ask for, once that is known.
    pub page: Option<PageName>,
    /// Target and arguments without the session's name, where they have it beside the cookie.
    pub clean: Option<CleanTarget>,
}

/// The target of a request, less the name of its session.
#[derive(Clone, Debug)]
pub struct CleanTarget {
    pub target: Vec<u8>,
    pub args: Vec<u8>,
}
