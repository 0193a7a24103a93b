//! How many requests may be under way at once, and which of the free places are for whom.

use crate::class::Class;

/// The bounds of the requests under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Requests that the servers take at once; `None`: not known.
    pub workers: Option<usize>,
    /// The limit in force; `None`: no limit, and all requests share one turn.
    pub limit: Option<usize>,
    /// The share of crawlers while visitors wait, of a hundred.
    pub crawler_share: usize,
}

/// One worker of this number is kept free for turns that have used little.
const RESERVED_SHARE: usize = 7;
/// By so much of the limit may such turns go beyond it.
const BEYOND_LIMIT: usize = 8;

impl Slots {
    /// Returns the number of workers if one has room. If none has, as while only backup servers are
    /// left, the choice of a server finds that out.
    fn known_workers(self) -> Option<usize> {
        self.workers.filter(|workers| *workers > 0)
    }

    /// Requests under way at most, for turns that have used much.
    #[must_use]
    pub fn for_all(self) -> usize {
        let limit = self.limit.unwrap_or(usize::MAX);
        let unreserved = self
            .known_workers()
            .map_or(usize::MAX, |workers| workers - workers / RESERVED_SHARE);
        limit.min(unreserved)
    }

    /// Requests of turns that have used much under way at most, beside `light` of others: they make room
    /// for these, and keep half of the places.
    #[must_use]
    pub fn for_heavy(self, light: usize) -> usize {
        let all = self.for_all();
        all.saturating_sub(light).max(all.div_ceil(2))
    }

    /// Requests under way at most, for turns that have used little: one of them at least begins beside
    /// any number of others, where there is a worker for it.
    #[must_use]
    pub fn for_light(self) -> usize {
        let limit = self.limit.unwrap_or(usize::MAX);
        let beyond = limit.saturating_add((limit / BEYOND_LIMIT).max(1));
        beyond.min(self.known_workers().unwrap_or(usize::MAX))
    }

    /// Requests of crawlers under way at most while visitors wait.
    #[must_use]
    pub fn for_crawlers(self) -> usize {
        let all = self
            .for_all()
            .min(self.known_workers().unwrap_or(usize::MAX));
        (all.saturating_mul(self.crawler_share) / 100).max(1)
    }

    /// Requests of the background under way at most.
    #[must_use]
    pub fn for_background(self, class: Class) -> Option<usize> {
        let workers = match (self.workers, self.limit) {
            (Some(workers), Some(limit)) => Some(workers.min(limit)),
            (workers, limit) => workers.or(limit),
        };
        class.share_of(workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_who_has_used_little_finds_a_place_and_bots_keep_six_of_seven() {
        for workers in 1..300 {
            for limit in 1..=workers {
                let slots = Slots {
                    workers: Some(workers),
                    limit: Some(limit),
                    crawler_share: 25,
                };
                let (all, light) = (slots.for_all(), slots.for_light());
                assert!(
                    all >= 1 && all * 100 >= limit.min(workers) * 85,
                    "{slots:?}"
                );
                assert!(light <= workers, "{slots:?}");
                assert!(workers < 7 && limit == workers || light > all, "{slots:?}");
                assert!((1..=all).contains(&slots.for_crawlers()));
            }
        }
    }

    #[test]
    fn turns_that_have_used_much_make_room_and_keep_half_of_the_places() {
        let slots = Slots {
            workers: Some(16),
            limit: Some(4),
            crawler_share: 25,
        };
        let places = [0, 1, 2, 3, 100].map(|light| slots.for_heavy(light));
        assert_eq!(places, [4, 3, 2, 2, 2]);
    }
}
