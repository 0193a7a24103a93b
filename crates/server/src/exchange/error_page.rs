//! How far a request has got with error pages (`error_page`).

/// The error pages that were tried so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorPage {
    /// None was tried.
    #[default]
    Untried,
    /// One was tried.
    Tried {
        /// The status that it is a page for.
        error: u16,
        /// The status of the answer, in place of the page's own (`error_page ... =CODE`).
        forced: Option<u16>,
        /// No other page is tried, whatever the location of this page sets: the location of the error
        /// has `recursive_error_pages off`.
        is_last: bool,
    },
}

impl ErrorPage {
    /// May a page be tried for an error that comes now?
    pub fn may_follow(self) -> bool {
        !matches!(self, ErrorPage::Tried { is_last: true, .. })
    }

    /// The status that a page is being made for.
    pub fn error_status(self) -> Option<u16> {
        match self {
            ErrorPage::Untried => None,
            ErrorPage::Tried { error, .. } => Some(error),
        }
    }

    /// The status of the answer, in place of the page's own.
    pub fn forced_status(self) -> Option<u16> {
        match self {
            ErrorPage::Untried => None,
            ErrorPage::Tried { forced, .. } => forced,
        }
    }

    /// Lets the answer carry its own status from here on.
    pub fn stop_forcing(&mut self) {
        if let ErrorPage::Tried { forced, .. } = self {
            *forced = None;
        }
    }
}
