//! A visitor who is a guest: the application has given them a session, and they have written nothing since.

use guest_pages::cookies::CookieMark;
use page_evidence::PageName;

/// What is known of a guest who asks for a page.
#[derive(Clone, Debug)]
pub struct GuestVisit {
    /// Their cookies.
    pub marks: Vec<CookieMark>,
    /// The page that they ask for, once that is known.
    pub page: Option<PageName>,
}
