//! Browsers whose pages an application makes in their own way: a class in the `body` element, a style for one of them.
//! If that was seen, the key of a page has the browser, and the application is sent one User-Agent for all versions of
//! it. Whether that is the page of a visitor's own version is compared, as for all that the shared request leaves out.

use memchr::memmem;

/// The parts of a User-Agent (lower case) that name a browser, the first that fits: others name themselves after it.
const BROWSERS: [&str; 9] = [
    "samsungbrowser/",
    "edg/",
    "opr/",
    "fxios/",
    "firefox/",
    "crios/",
    "chrome/",
    "version/",
    "safari/",
];
const SYSTEMS: [&str; 7] = [
    "windows",
    "iphone",
    "ipad",
    "macintosh",
    "android",
    "cros ",
    "x11",
];

/// A kind of browser on a kind of system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Browser {
    browser: u8,
    system: u8,
    is_mobile: bool,
}

impl Browser {
    /// `None`: the program is no browser that is known.
    pub(crate) fn of(user_agent: &[u8]) -> Option<Browser> {
        /// More of a User-Agent is not looked at.
        const MAX_BYTES: usize = 512;
        let text = user_agent.get(..MAX_BYTES).unwrap_or(user_agent);
        let lower = text.to_ascii_lowercase();
        if !lower.starts_with(b"mozilla/5.0 (") || memmem::find(&lower, b"bot").is_some() {
            return None;
        }
        let find = |all: &[&str]| {
            let found = all
                .iter()
                .position(|it| memmem::find(&lower, it.as_bytes()).is_some());
            found.and_then(|at| u8::try_from(at).ok())
        };
        Some(Browser {
            browser: find(&BROWSERS)?,
            system: find(&SYSTEMS)?,
            is_mobile: memmem::find(&lower, b"mobile").is_some(),
        })
    }

    /// Stands for it in cache keys.
    pub(crate) fn code(self) -> [u8; 3] {
        let digit = |number: u8| b'a' + number;
        let mobile = if self.is_mobile { b'm' } else { b'd' };
        [digit(self.browser), digit(self.system), mobile]
    }

    /// The User-Agent that the application is sent for all versions.
    pub(crate) fn user_agent(self) -> String {
        let system = match SYSTEMS.get(usize::from(self.system)) {
            Some(&"windows") => "Windows NT 10.0; Win64; x64",
            Some(&"iphone") => "iPhone; CPU iPhone OS 18_0 like Mac OS X",
            Some(&"ipad") => "iPad; CPU OS 18_0 like Mac OS X",
            Some(&"macintosh") => "Macintosh; Intel Mac OS X 10_15_7",
            Some(&"android") => "Linux; Android 10; K",
            Some(&"cros ") => "X11; CrOS x86_64 14541.0.0",
            _ => "X11; Linux x86_64",
        };
        let mobile = if self.is_mobile { " Mobile" } else { "" };
        let blink = format!("Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko)");
        let webkit = format!("Mozilla/5.0 ({system}) AppleWebKit/605.1.15 (KHTML, like Gecko)");
        let text = match BROWSERS.get(usize::from(self.browser)) {
            Some(&"samsungbrowser/") => {
                format!("{blink} SamsungBrowser/28.0 Chrome/140.0.0.0{mobile} Safari/537.36")
            }
            Some(&"edg/") => {
                format!("{blink} Chrome/140.0.0.0{mobile} Safari/537.36 Edg/140.0.0.0")
            }
            Some(&"opr/") => {
                format!("{blink} Chrome/140.0.0.0{mobile} Safari/537.36 OPR/124.0.0.0")
            }
            Some(&"fxios/") => format!("{webkit} FxiOS/140.0{mobile}/15E148 Safari/605.1.15"),
            Some(&"firefox/") => {
                let mobile = if self.is_mobile { "; Mobile" } else { "" };
                format!("Mozilla/5.0 ({system}{mobile}; rv:140.0) Gecko/20100101 Firefox/140.0")
            }
            Some(&"crios/") => format!("{webkit} CriOS/140.0.0.0{mobile}/15E148 Safari/604.1"),
            Some(&"chrome/") => format!("{blink} Chrome/140.0.0.0{mobile} Safari/537.36"),
            _ => format!("{webkit} Version/18.0{mobile} Safari/605.1.15"),
        };
        text + " Mayfly"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_agent_that_is_sent_is_of_the_same_browser() {
        for text in [
            "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            "Mozilla/5.0 (Android 14; Mobile; rv:130.0) Gecko/130.0 Firefox/130.0",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36 Edg/139.0.0.0",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36 OPR/122.0.0.0",
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/27.0 Chrome/125.0.0.0 Mobile Safari/537.36",
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.6 Safari/605.1.15",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.6 Mobile/15E148 Safari/604.1",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/139.0.0.0 Mobile/15E148 Safari/604.1",
            "Mozilla/5.0 (iPad; CPU OS 17_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/130.0 Mobile/15E148 Safari/605.1.15",
            "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36",
        ] {
            let browser = Browser::of(text.as_bytes()).expect(text);
            let sent = browser.user_agent();
            assert_eq!(
                Browser::of(sent.as_bytes()),
                Some(browser),
                "{text}\n{sent}"
            );
        }
    }

    #[test]
    fn what_is_no_browser_has_no_name_in_keys() {
        for text in [
            "",
            "curl/8.5.0",
            "Mozilla/5.0",
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36 (compatible; Googlebot/2.1)",
        ] {
            assert_eq!(Browser::of(text.as_bytes()), None, "{text}");
        }
    }
}
