//! Which target is asked next: always the same, numbered pages in order, or numbered pages
//! at random: as visitors ask for them (Zipf: page number n with a weight of 1/n), or each as
//! often as the others.
//!
//! The same arguments give the same sequence on every machine.

/// Page numbers in the order in which they are asked.
pub enum Keys {
    /// Page 0 for all.
    Same,
    /// Each page once, from this number on.
    Sequence(u64),
    /// By Zipf: the share of requests that goes to this page or a lower one, page by page.
    Zipf {
        /// Ascending, ends with 1.
        shares: Vec<f64>,
        random: Random,
    },
    /// Each of the first `pages` pages is as likely.
    Uniform { pages: u64, random: Random },
}

/// The state of xorshift64, which never is zero.
pub struct Random(u64);

impl Default for Random {
    fn default() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

impl Keys {
    /// Zipf with exponent 1 over `pages` pages (at least one).
    pub fn zipf(pages: usize) -> Keys {
        let mut sum = 0.0;
        let mut shares: Vec<f64> = (1..=pages.max(1))
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        for share in &mut shares {
            *share /= sum;
        }
        Keys::Zipf {
            shares,
            random: Random::default(),
        }
    }

    /// So many pages (at least one), each as likely.
    pub fn uniform(pages: u64) -> Keys {
        Keys::Uniform {
            pages: pages.max(1),
            random: Random::default(),
        }
    }

    /// The next page number.
    pub fn next_page(&mut self) -> u64 {
        match self {
            Keys::Same => 0,
            Keys::Sequence(next) => {
                *next += 1;
                *next - 1
            }
            Keys::Zipf { shares, random } => {
                let drawn = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
                let page = shares.partition_point(|share| *share <= drawn);
                page.min(shares.len() - 1) as u64
            }
            Keys::Uniform { pages, random } => random.next() % *pages,
        }
    }
}

/// The bytes of a request around its page number, made once.
pub struct Request {
    has_page: bool,
    before: Vec<u8>,
    after: Vec<u8>,
    after_and_close: Vec<u8>,
}

impl Request {
    /// `target` holds `{}` where the page number goes, if it has one; `fields` are whole lines.
    pub fn new(method: &str, target: &str, fields: &[String]) -> Request {
        let (left, right) = target.split_once("{}").unwrap_or((target, ""));
        let mut head = format!("{right} HTTP/1.1\r\nHost: bench.example\r\n");
        for field in fields {
            head += &format!("{field}\r\n");
        }
        Request {
            has_page: target.contains("{}"),
            before: format!("{method} {left}").into_bytes(),
            after: format!("{head}\r\n").into_bytes(),
            after_and_close: format!("{head}Connection: close\r\n\r\n").into_bytes(),
        }
    }

    /// Writes the request for a page into `out`, which is emptied first.
    pub fn write(&self, out: &mut Vec<u8>, page: u64, is_last: bool) {
        out.clear();
        out.extend_from_slice(&self.before);
        if self.has_page {
            out.extend_from_slice(page.to_string().as_bytes());
        }
        out.extend_from_slice(if is_last {
            &self.after_and_close
        } else {
            &self.after
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_asks_for_the_first_page_as_often_as_its_weight() {
        let mut keys = Keys::zipf(1000);
        let mut counts = vec![0_u32; 1000];
        for _ in 0..200_000 {
            counts[keys.next_page() as usize] += 1;
        }
        let harmonic: f64 = (1..=1000).map(|rank| 1.0 / f64::from(rank)).sum();
        for rank in [1_u32, 2, 10] {
            let expected = 200_000.0 / harmonic / f64::from(rank);
            let counted = f64::from(counts[rank as usize - 1]);
            assert!(
                (counted / expected - 1.0).abs() < 0.1,
                "rank {rank}: {counted} for {expected}"
            );
        }
        assert!(
            counts.iter().filter(|count| **count > 0).count() > 900,
            "the tail is asked for, too"
        );
    }

    #[test]
    fn uniform_asks_for_each_page_about_as_often() {
        let mut keys = Keys::uniform(10);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[keys.next_page() as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)));
    }

    #[test]
    fn zipf_over_no_page_is_one_page() {
        assert_eq!(Keys::zipf(0).next_page(), 0);
    }

    #[test]
    fn a_request_carries_its_page_and_says_when_it_is_the_last() {
        let request = Request::new("GET", "/p/{}?bytes=1", &["A: b".to_owned()]);
        let mut out = vec![1, 2, 3];
        request.write(&mut out, 42, false);
        let text = "GET /p/42?bytes=1 HTTP/1.1\r\nHost: bench.example\r\nA: b\r\n\r\n";
        assert_eq!(out, text.as_bytes());
        request.write(&mut out, 7, true);
        assert!(out.ends_with(b"A: b\r\nConnection: close\r\n\r\n"));
    }
}
