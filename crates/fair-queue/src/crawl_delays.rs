//! The times between two requests that a site asks of crawlers: `Crawl-delay` in its robots.txt.
//!
//! RFC 9309 has the groups and how a crawler finds its own; `Crawl-delay` is an extension that many crawlers obey.
//! The text is bounded, as it may come from anyone who can write to a site.

use crate::Millis;

/// More of a robots.txt is not read.
pub const MAX_ROBOTS_BYTES: usize = 65_536;
/// Agents that are known of one site, and the length of a name.
const MAX_AGENTS: usize = 32;
const MAX_AGENT_BYTES: usize = 64;
/// A longer delay counts as this one.
const MAX_DELAY_SECONDS: f64 = 60.0;
const ALL_AGENTS: &str = "*";

/// The delays of one site, by the names of agents.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CrawlDelays(Vec<(Box<str>, Option<Millis>)>);

impl CrawlDelays {
    /// Reads a robots.txt. Lines that say nothing of this are passed over.
    #[must_use]
    pub fn read(robots: &[u8]) -> Self {
        let mut agents: Vec<(Box<str>, Option<Millis>)> = Vec::new();
        let robots = robots.get(..MAX_ROBOTS_BYTES).unwrap_or(robots);
        // The group that is read begins here, and has lines beside names.
        let (mut group, mut has_rules) = (0, false);
        for line in robots.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let line = line.split(|&byte| byte == b'#').next().unwrap_or(line);
            let Some(colon) = line.iter().position(|&byte| byte == b':') else {
                continue;
            };
            let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"user-agent") {
                if std::mem::take(&mut has_rules) {
                    group = agents.len();
                }
                match str::from_utf8(value) {
                    Ok(agent) if agent.len() <= MAX_AGENT_BYTES && agents.len() < MAX_AGENTS => {
                        agents.push((agent.to_ascii_lowercase().into(), None));
                    }
                    _ => {}
                }
                continue;
            }
            has_rules = true;
            if name.eq_ignore_ascii_case(b"crawl-delay")
                && let Some(delay) = delay_of(value)
            {
                for (_, of_agent) in agents.iter_mut().skip(group) {
                    *of_agent = Some(delay);
                }
            }
        }
        Self(agents)
    }

    /// The delay for a crawler of this name (lower case): that of its own groups, or else of the group for all.
    #[must_use]
    pub fn of(&self, crawler: &str) -> Option<Millis> {
        let of_name = |name: &str| {
            let mut own = self
                .0
                .iter()
                .filter(|(agent, _)| **agent == *name)
                .peekable();
            own.peek()?;
            Some(own.find_map(|(_, delay)| *delay))
        };
        of_name(crawler).or_else(|| of_name(ALL_AGENTS)).flatten()
    }

    /// Whether no group has a delay.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, delay)| delay.is_none())
    }
}

/// Seconds, with a fraction or not. None for zero and for all else.
fn delay_of(value: &[u8]) -> Option<Millis> {
    let seconds: f64 = str::from_utf8(value).ok()?.parse().ok()?;
    (seconds > 0.0).then(|| (seconds.min(MAX_DELAY_SECONDS) * 1000.0) as Millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawler_has_the_delay_of_its_own_group_or_else_of_all() {
        let delays = CrawlDelays::read(
            b"Crawl-delay: 99\n# for most\nUser-agent: *\nDisallow: /a # no\r\ncrawl-DELAY : 10\n\n\
              User-Agent: GPTBot\nuser-agent: CCBot\nCrawl-delay: 2.5\n\
              User-agent: Googlebot\nDisallow:\n",
        );
        for (crawler, wanted) in [
            ("gptbot", Some(2500)),
            ("ccbot", Some(2500)),
            ("googlebot", None),
            ("other crawler", Some(10_000)),
        ] {
            assert_eq!(delays.of(crawler), wanted, "{crawler}");
        }
        assert!(!delays.is_empty());
    }

    #[test]
    fn a_group_that_is_written_twice_counts_as_one() {
        let delays = CrawlDelays::read(
            b"User-agent: a\nDisallow: /\nUser-agent: b\nAllow: /\nUser-agent: a\nCrawl-delay: 3\n",
        );
        assert_eq!(delays.of("a"), Some(3000));
        assert_eq!(delays.of("b"), None);
    }

    #[test]
    fn what_is_no_delay_says_nothing() {
        for value in ["", "x", "-1", "0", "NaN", "1e", "ten", "\u{663}"] {
            let text = format!("User-agent: *\nCrawl-delay: {value}\n");
            let delays = CrawlDelays::read(text.as_bytes());
            assert!(delays.is_empty() && delays.of("a").is_none(), "{value}");
        }
        for value in ["1e9", "inf", "86400"] {
            let text = format!("User-agent: *\nCrawl-delay: {value}\n");
            assert_eq!(CrawlDelays::read(text.as_bytes()).of("a"), Some(60_000));
        }
    }

    #[test]
    fn names_and_bytes_are_bounded() {
        let mut text = String::new();
        for number in 0..10_000 {
            text.push_str(&format!("User-agent: bot{number}\n"));
        }
        let delays = CrawlDelays::read(format!("{text}Crawl-delay: 1\n").as_bytes());
        assert_eq!(delays.0.len(), MAX_AGENTS);
        assert!(delays.is_empty(), "beyond the bytes that are read");
        let long = format!("User-agent: {}\nCrawl-delay: 1\n", "a".repeat(65));
        assert!(CrawlDelays::read(long.as_bytes()).0.is_empty());
    }
}
