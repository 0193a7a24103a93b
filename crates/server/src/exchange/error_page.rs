//! How far a request has got with error pages (`error_page`).

/// What became of error pages so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorPage {
    /// None was tried.
    #[default]
    Untried,
    /// One was tried, and may not be tried again without `recursive_error_pages`.
    Tried {
        /// The status that it is a page for.
        error: u16,
        /// The status that the answer carries whatever the page says
        /// (`error_page ... =CODE`).
        forced: Option<u16>,
    },
}

impl ErrorPage {
    pub fn is_tried(self) -> bool {
        self != ErrorPage::Untried
    }

    /// The status that a page is being made for.
    pub fn error_status(self) -> Option<u16> {
        match self {
            ErrorPage::Untried => None,
            ErrorPage::Tried { error, .. } => Some(error),
        }
    }

    /// The status that the answer carries whatever its page says.
    pub fn forced_status(self) -> Option<u16> {
        match self {
            ErrorPage::Untried => None,
            ErrorPage::Tried { forced, .. } => forced,
        }
    }

    /// From here on the answer carries the status that it comes with.
    pub fn stop_forcing(&mut self) {
        if let ErrorPage::Tried { forced, .. } = self {
            *forced = None;
        }
    }
}
