//! The rank of a request: which of several waiting requests is served next, and how many servers'
//! slots a kind of request may take.
//!
//! ```text
//! line        served                                         slots            waits
//! writers     first                                          all              the group's `queue`
//! visitors    when none of these waits, else every 9th slot  all              as many
//! fragments   when none of these waits, else every 9th       all              as many; a quarter for one client
//! refreshes   when none of these waits, else every 9th       three of four    16 at most
//! crawlers    when none of these waits, else every 9th       `crawler_share`  256 at most
//! mirrors     when none of these waits, else every 9th       three of four    16 at most
//! ```
//!
//! Health checks do not come here: a check that waited in line would measure the line and not its server. Their
//! number is bounded by their interval.

/// On whose behalf a server is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Class {
    /// A visitor with a session that the site has given, who changes something.
    Writer,
    /// A visitor whose page is not stored, or whose request changes something.
    #[default]
    Visitor,
    /// A visitor whose page is stored, but older than may be shown. Waits in one line with
    /// [`Class::Visitor`]: both see nothing before their turn.
    StaleVisitor,
    /// A part of a visitor's page. One page has many: they do not keep other visitors from their pages.
    Fragment,
    /// A stored page is made anew, and visitors see the stored one meanwhile. Requests that fetch pages ahead of
    /// visitors (warming) belong here too.
    Refresh,
    /// A program that reads the site, by its name or by its behaviour.
    Crawler,
    /// A copy of a request (`mirror`): its answer is discarded.
    Mirror,
}

/// The number of lines that requests wait in.
pub const LINES: usize = 6;

/// The names of the lines, in their order.
pub const LINE_NAMES: [&str; LINES] = [
    "writer", "visitor", "fragment", "refresh", "crawler", "mirror",
];

/// Requests of one background class that wait in line at most. More are left out: a short line
/// keeps the servers busy, and those in a long one would be too late.
pub const MAX_WAITING_IN_BACKGROUND: usize = 16;

/// Requests of crawlers that wait in line at most. Others get an answer with the time to come again.
pub const MAX_WAITING_CRAWLERS: usize = 256;

/// Of these places, those that only search engines get.
pub const PLACES_OF_SEARCH_ENGINES: usize = 64;

/// The fragments of one client fill this share of their line at most, so that others have room.
const CLIENTS_SHARE_OF_FRAGMENTS: usize = 4;
/// Fragments of one client that may wait in any line: as many as one page asks for at once.
const MIN_FRAGMENTS_OF_CLIENT: usize = 16;

/// How many fragments of one client may wait in a line of this length.
#[must_use]
pub fn fragments_of_client(length: usize) -> usize {
    (length / CLIENTS_SHARE_OF_FRAGMENTS).max(MIN_FRAGMENTS_OF_CLIENT)
}

/// Refreshes in flight at most where it is not known how many requests the servers take at once.
/// Far more than PHP works on at a time, and few enough that a visitor does not wait for long
/// in a line that we do not see.
const MAX_REFRESHES_WITHOUT_LIMIT: usize = 32;

/// The number of times after which a line that is passed over gets the next slot: also while visitors keep
/// coming, refreshes go on.
pub const MAX_PASSED_OVER: usize = 8;

impl Class {
    /// The line it waits in; lower ones are served first.
    #[must_use]
    pub fn line(self) -> usize {
        match self {
            Self::Writer => 0,
            Self::Visitor | Self::StaleVisitor => 1,
            Self::Fragment => 2,
            Self::Refresh => 3,
            Self::Crawler => 4,
            Self::Mirror => 5,
        }
    }

    /// The name of its line.
    #[must_use]
    pub fn name(self) -> &'static str {
        LINE_NAMES[self.line()]
    }

    /// This one, or `other` if its line is served earlier.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        match other.line() < self.line() {
            true => other,
            false => self,
        }
    }

    /// Whether the request is made without a client who waits for the answer.
    #[must_use]
    pub fn is_background(self) -> bool {
        matches!(self, Self::Refresh | Self::Mirror)
    }

    /// Whether a visitor waits for the answer.
    #[must_use]
    pub fn is_visitors(self) -> bool {
        self.line() <= Self::Fragment.line()
    }

    /// How many requests of the background may be in flight, this one included, at servers that
    /// take `workers` requests at once (`None`: not known). `None`: any number.
    ///
    /// Three of four, since a machine whose pages wait for a database needs more workers than
    /// it has cores. One is left for visitors wherever there are two.
    #[must_use]
    pub fn share_of(self, workers: Option<usize>) -> Option<usize> {
        match (self, workers) {
            (Self::Refresh, None) => Some(MAX_REFRESHES_WITHOUT_LIMIT),
            (Self::Refresh | Self::Mirror, Some(workers)) => Some((workers * 3 / 4).max(1)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_leaves_one_worker_wherever_there_are_two() {
        for workers in 0..100 {
            let share = Class::Refresh.share_of(Some(workers)).unwrap();
            assert!(share >= 1, "{workers} workers");
            assert!(workers < 2 || share < workers, "{workers} workers");
            assert_eq!(Class::Visitor.share_of(Some(workers)), None);
            assert_eq!(Class::Fragment.share_of(Some(workers)), None);
        }
        assert_eq!(Class::Refresh.share_of(Some(4)), Some(3));
        assert_eq!(Class::Refresh.share_of(Some(2)), Some(1));
    }
}
