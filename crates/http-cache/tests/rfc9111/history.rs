//! Random histories. Answers are kept as what they mean; the cache gets them as fields, in one of the ways in which
//! the same may be written.

use std::time::Duration;

use bytes::Bytes;
use http_cache::Field;
use http_semantics::date;

/// When histories begin, in seconds of the wall clock.
const BEGIN: i64 = 1_700_000_000;

/// The seconds of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seconds {
    Number(i64),
    /// A value that is no number.
    Garbage,
}

/// A directive of `Cache-Control` (RFC 9111 §5.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    MaxAge(Seconds),
    SMaxage(Seconds),
    Public,
    /// `true`: with the name of a field.
    Private(bool),
    NoStore,
    NoCache(bool),
    MustRevalidate,
    ProxyRevalidate,
    MustUnderstand,
    Unknown,
}

/// The answer of the origin.
#[derive(Clone, Debug)]
pub struct OriginAnswer {
    /// Tells answers apart.
    pub body: u32,
    pub status: u16,
    /// A request with validators gets a 304 with these fields.
    pub is_not_modified: bool,
    pub control: Vec<Directive>,
    /// `None`: no field. A date that cannot be read stands for the past.
    pub expires: Option<Seconds>,
    pub date: Option<i64>,
    pub age: Option<i64>,
    pub last_modified: Option<i64>,
    pub has_etag: bool,
    /// Names of request fields; `*`.
    pub vary: Vec<&'static str>,
    /// How the same is written.
    style: u64,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub url: u32,
    pub fields: Vec<(&'static str, &'static str)>,
}

#[derive(Clone, Debug)]
pub enum Step {
    Get {
        request: Request,
        answer: OriginAnswer,
        now: i64,
    },
    Unsafe {
        url: u32,
        method: &'static str,
        succeeds: bool,
        now: i64,
    },
}

/// Requests for a few addresses, in the order of time.
#[derive(Clone, Debug)]
pub struct History {
    pub steps: Vec<Step>,
    /// All answers for an address vary on the same. RFC 9111 §4.1 does not say what becomes of those that vary on
    /// something else.
    pub vary_is_steady: bool,
}

/// The share of the time since `Last-Modified`, in percent, and its bound.
pub fn heuristic(percent: u32) -> Option<(u32, Duration)> {
    Some((percent, Duration::from_secs(HEURISTIC_MOST)))
}

/// The bound of heuristic lifetimes, in seconds.
pub const HEURISTIC_MOST: u64 = 60;
/// The share that both sides take, in percent.
pub const HEURISTIC_PERCENT: u32 = 10;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let at = self.below(from.len() as u64);
        from[usize::try_from(at).unwrap_or(0)]
    }
}

const VARY: &[&[&str]] = &[
    &[],
    &[],
    &[],
    &["accept-language"],
    &["x-kind"],
    &["x-kind", "accept-language"],
    &["*"],
];

impl History {
    pub fn random(seed: u64) -> History {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let vary_is_steady = !random.one_in(5);
        let steady: Vec<_> = (0..2).map(|_| random.pick(VARY)).collect();
        let mut now = BEGIN;
        let mut steps = Vec::new();
        for body in 0..12 {
            now += random.pick(&[0, 1, 1, 2, 3, 5, 9, 20]);
            let url = u32::from(random.one_in(3));
            if random.one_in(12) {
                let method = random.pick(&["POST", "PUT", "DELETE", "PATCH", "UNHEARD", "OPTIONS"]);
                let succeeds = !random.one_in(3);
                steps.push(Step::Unsafe {
                    url,
                    method,
                    succeeds,
                    now,
                });
                continue;
            }
            let vary = match vary_is_steady {
                true => steady[url as usize],
                false => random.pick(VARY),
            };
            steps.push(Step::Get {
                request: Request::random(&mut random, url),
                answer: OriginAnswer::random(&mut random, body, vary, now),
                now,
            });
        }
        History {
            steps,
            vary_is_steady,
        }
    }
}

impl Request {
    fn random(random: &mut Random, url: u32) -> Request {
        let mut fields = Vec::new();
        if !random.one_in(3) {
            fields.push(("accept-language", random.pick(&["de", "en"])));
        }
        if random.one_in(2) {
            fields.push(("x-kind", random.pick(&["a", "b"])));
        }
        if random.one_in(8) {
            fields.push(("authorization", "Basic YTpi"));
        }
        Request { url, fields }
    }
}

impl OriginAnswer {
    fn random(random: &mut Random, body: u32, vary: &[&'static str], now: i64) -> OriginAnswer {
        let date = (!random.one_in(10)).then(|| now - random.pick(&[0, 0, 0, 0, 3, 6, -5]));
        let mut answer = OriginAnswer {
            body,
            status: random.pick(&[200, 200, 200, 200, 203, 301, 302, 404, 410, 500, 299]),
            is_not_modified: random.one_in(2),
            control: Vec::new(),
            expires: random.one_in(5).then(|| {
                let at = date.unwrap_or(now) + random.pick(&[-3, 0, 2, 8, 30]);
                random.pick(&[Seconds::Number(at), Seconds::Number(at), Seconds::Garbage])
            }),
            date,
            age: random.one_in(5).then(|| random.pick(&[0, 1, 4, 12])),
            last_modified: random
                .one_in(3)
                .then(|| now - random.pick(&[10, 50, 200, 5000])),
            has_etag: random.one_in(2),
            vary: vary.to_vec(),
            style: random.next(),
        };
        for _ in 0..random.below(4) {
            let directive = Directive::random(random);
            answer.control.push(directive);
        }
        answer
    }

    /// The fields as the origin sends them.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = Vec::new();
        let mut put = |name: &str, value: String| {
            fields.push((Bytes::from(name.to_owned()), Bytes::from(value)))
        };
        let when = |seconds| String::from_utf8_lossy(&date::format(seconds)).into_owned();
        if let Some(date) = self.date {
            put("Date", when(date));
        }
        let texts: Vec<_> = (0..)
            .zip(&self.control)
            .map(|(at, it)| it.text(self.style >> (4 * at)))
            .collect();
        // In one field, or each in its own.
        match self.style & 1 {
            _ if texts.is_empty() => {}
            0 => put("Cache-Control", texts.join(", ")),
            _ => texts
                .into_iter()
                .for_each(|text| put("cache-control", text)),
        }
        match self.expires {
            Some(Seconds::Number(at)) => put("Expires", when(at)),
            Some(Seconds::Garbage) => put(
                "Expires",
                ["0", "-1", "soon"][(self.style % 3) as usize].to_owned(),
            ),
            None => {}
        }
        if let Some(age) = self.age {
            put("Age", age.to_string());
        }
        if let Some(modified) = self.last_modified {
            put("Last-Modified", when(modified));
        }
        if self.has_etag {
            put("ETag", format!("\"{}\"", self.body));
        }
        if !self.vary.is_empty() {
            put("Vary", self.vary.join(", "));
        }
        fields
    }
}

impl Directive {
    fn random(random: &mut Random) -> Directive {
        let seconds = match random.one_in(12) {
            true => Seconds::Garbage,
            false => Seconds::Number(random.pick(&[0, 1, 2, 5, 10, 30])),
        };
        match random.below(24) {
            0..11 => Directive::MaxAge(seconds),
            11..14 => Directive::SMaxage(seconds),
            14 | 15 => Directive::Public,
            16 => Directive::Private(random.one_in(2)),
            17 => Directive::NoStore,
            18 | 19 => Directive::NoCache(random.one_in(2)),
            20 => Directive::MustRevalidate,
            21 => Directive::ProxyRevalidate,
            22 => Directive::MustUnderstand,
            _ => Directive::Unknown,
        }
    }

    fn text(self, style: u64) -> String {
        let seconds = |seconds| match seconds {
            Seconds::Number(number) if style & 2 == 0 => number.to_string(),
            Seconds::Number(number) => format!("\"{number}\""),
            Seconds::Garbage => ["a", "1.5", "-1", ""][(style & 3) as usize].to_owned(),
        };
        let text = match self {
            Directive::MaxAge(age) => format!("max-age={}", seconds(age)),
            Directive::SMaxage(age) => format!("s-maxage={}", seconds(age)),
            Directive::Public => "public".to_owned(),
            Directive::Private(false) => "private".to_owned(),
            Directive::Private(true) => "private=\"x-kind, etag\"".to_owned(),
            Directive::NoStore => "no-store".to_owned(),
            Directive::NoCache(false) => "no-cache".to_owned(),
            Directive::NoCache(true) => "no-cache=\"x-kind, etag\"".to_owned(),
            Directive::MustRevalidate => "must-revalidate".to_owned(),
            Directive::ProxyRevalidate => "proxy-revalidate".to_owned(),
            Directive::MustUnderstand => "must-understand".to_owned(),
            Directive::Unknown => "x-unheard=\"a, max-age=30\"".to_owned(),
        };
        match style & 4 {
            0 => text,
            _ => text.to_ascii_uppercase(),
        }
    }
}
