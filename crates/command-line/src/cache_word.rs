//! The cache result that the fields of a response contain.

/// The cache result in `Cache-Status` (RFC 9211), `X-Cache` or a field of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheWord {
    Hit,
    Stale,
    /// It waited for the fetch of another request.
    Collapsed,
    Miss,
    Bypass,
}

impl CacheWord {
    /// Did the application make nothing for this answer alone?
    #[must_use]
    pub fn is_spared(self) -> bool {
        matches!(
            self,
            CacheWord::Hit | CacheWord::Stale | CacheWord::Collapsed
        )
    }

    /// Returns the word that logs and reports write.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            CacheWord::Hit => "hit",
            CacheWord::Stale => "stale",
            CacheWord::Collapsed => "collapsed",
            CacheWord::Miss => "miss",
            CacheWord::Bypass => "bypass",
        }
    }

    /// Returns the cache result in the fields of an answer: `Cache-Status` before the others.
    #[must_use]
    pub fn of_fields<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Option<CacheWord> {
        let mut word = None;
        for (name, value) in fields {
            word = CacheWord::after_field(word, name, value);
        }
        word
    }

    /// Returns the cache result that is known after one more field.
    #[must_use]
    pub fn after_field(known: Option<CacheWord>, name: &str, value: &str) -> Option<CacheWord> {
        if name.eq_ignore_ascii_case("cache-status") {
            return CacheWord::of_cache_status(value).or(known);
        }
        let is_such = || CACHE_FIELDS.iter().any(|it| name.eq_ignore_ascii_case(it));
        known.or_else(|| is_such().then(|| CacheWord::of_word(value)).flatten())
    }

    /// The value of `Cache-Status`: a list, of which the last cache is the nearest one.
    fn of_cache_status(value: &str) -> Option<CacheWord> {
        let nearest = value.rsplit(',').next()?;
        let mut parameters = nearest.split(';').map(str::trim);
        if parameters
            .clone()
            .any(|it| matches!(it, "collapsed" | "collapsed=?1"))
        {
            return Some(CacheWord::Collapsed);
        }
        parameters.find_map(|parameter| match parameter {
            "hit" => Some(CacheWord::Hit),
            "fwd=bypass" => Some(CacheWord::Bypass),
            _ => parameter.starts_with("fwd=").then_some(CacheWord::Miss),
        })
    }

    /// The first word of `X-Cache` and its like: `HIT`, `Hit from cloudfront`.
    fn of_word(value: &str) -> Option<CacheWord> {
        let end = value.find(|it: char| !it.is_ascii_alphabetic());
        let word = value.get(..end.unwrap_or(value.len()))?;
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        match () {
            () if is("hit") || is("refreshhit") => Some(CacheWord::Hit),
            () if is("stale") || is("updating") => Some(CacheWord::Stale),
            () if is("miss") || is("expired") || is("revalidated") => Some(CacheWord::Miss),
            () if is("bypass") || is("dynamic") => Some(CacheWord::Bypass),
            () => None,
        }
    }
}

/// Fields that servers and networks have for the same.
const CACHE_FIELDS: [&str; 6] = [
    "x-cache",
    "x-cache-status",
    "x-fastcgi-cache",
    "x-proxy-cache",
    "x-nginx-cache",
    "cf-cache-status",
];
