//! The order of requests by which one page is audited.
//!
//! ```text
//! clean requests, four cache busters ─► baseline; are addresses cold?
//! each variation, own cache buster   ─► altered requests, then clean ones ─► sign?
//!    sign ─► control requests, then the variation once or twice more ─► finding
//!    none ─► (cookies, arguments) clean requests, then the altered one ─► usual page?
//! ```

use super::baseline::Baseline;
use super::judge::{self, Sign};
use super::report::{Finding, PageReport};
use super::request::{AlteredRequest, AuditRequest, Page, Values, word};
use super::response::PageResponse;
use super::variations::{VARIATIONS, Variation};
use super::visitor::{AskError, Budget, Visitor};

/// Cache busters whose pages make the baseline.
const BASELINE_ADDRESSES: usize = 4;
/// Altered requests to one address: a server may store a page only once a second or third visitor asks for it.
const ALTERED_REQUESTS: usize = 3;
/// Altered requests to an address that cannot be made cold, with a pause between them in which the stored page may get
/// stale. Clean requests to one address, until a response comes from memory.
const CLEAN_REQUESTS: usize = 4;
/// Control series before a sign is believed. With them, a page that shows one of two texts by chance is taken
/// for a poisoned one about once in 1,000 audits.
const CONTROLS: usize = 5;
/// Requests without a response after which a page is given up.
const MAX_FAILURES: u32 = 5;

pub struct PageAudit<'a> {
    page: &'a Page,
    stranger: Visitor,
    clean: Visitor,
    budget: &'a mut Budget,
    baseline: Baseline,
    /// The address is made cold by an argument.
    has_buster: bool,
    /// Cookies are stored with the page, whatever is requested: no variation shows more.
    stores_cookies: bool,
    /// Clean requests without a response, one after the other.
    failures: u32,
}

/// The reason why an audit stops early.
enum EarlyEnd {
    Stopped,
    NotAudited(String),
}

/// The sign that a variation has left, and the requests that show it.
struct SeenSign {
    sign: Sign,
    altered: String,
    clean: String,
}

impl<'a> PageAudit<'a> {
    pub fn new(
        page: &'a Page,
        (stranger, clean): (Visitor, Visitor),
        budget: &'a mut Budget,
    ) -> PageAudit<'a> {
        PageAudit {
            page,
            stranger,
            clean,
            budget,
            baseline: Baseline::default(),
            has_buster: true,
            stores_cookies: false,
            failures: 0,
        }
    }

    /// Audits the page. With `tries_plain`, also at its own address if that cannot be made cold.
    pub async fn run(mut self, tries_plain: bool) -> PageReport {
        let requests = self.budget.requests_left;
        let mut report = PageReport::new(self.page.target.url());
        report.incomplete = match self.fill(&mut report, tries_plain).await {
            Ok(()) => None,
            Err(EarlyEnd::Stopped) => {
                Some("the requests or the time of the audit are used up".to_owned())
            }
            Err(EarlyEnd::NotAudited(reason)) => Some(reason),
        };
        report.requests = requests - self.budget.requests_left;
        report
    }

    async fn fill(&mut self, report: &mut PageReport, tries_plain: bool) -> Result<(), EarlyEnd> {
        self.learn(report).await?;
        if !self.has_buster {
            if !tries_plain {
                return Err(EarlyEnd::NotAudited(
                    "an invented argument is not in its key, so that its address cannot be made cold; \
                     --plain-address tries it all the same"
                        .to_owned(),
                ));
            }
            self.baseline = Baseline::default();
            let page = self.page.clean(None);
            let responses = self.clean_responses(&page).await?;
            responses.iter().for_each(|it| self.baseline.add(it, None));
        }
        if let Some(status) = self.baseline.status()
            && (status == 429 || status >= 500)
        {
            return Err(EarlyEnd::NotAudited(format!(
                "it is answered with status {status}"
            )));
        }
        for variation in VARIATIONS {
            report.variations += 1;
            if let Some(finding) = self.finding(variation, report.is_stored).await? {
                report.findings.push(finding);
            }
        }
        Ok(())
    }

    /// Requests the page as usual visitors do.
    async fn learn(&mut self, report: &mut PageReport) -> Result<(), EarlyEnd> {
        let mut addresses: Vec<(String, Vec<PageResponse>)> = Vec::new();
        for _ in 0..BASELINE_ADDRESSES {
            let buster = random_word("mfb")?;
            let request = self.page.clean(Some(&buster));
            let responses = self.clean_responses(&request).await?;
            for response in &responses {
                self.baseline.add(response, Some(&buster));
                report.is_stored |= response.is_from_memory();
            }
            addresses.push((buster, responses));
        }
        if let Some(cookie) = judge::stored_cookie(&addresses) {
            self.stores_cookies = true;
            let (buster, _) = &addresses[0];
            let request = self.page.clean(Some(buster)).bytes;
            let sign = Sign::SharedCookie(cookie);
            report
                .findings
                .push(Finding::new("no variation", &sign, &request, &request));
        }
        // A random address is not in memory, unless the key leaves the argument out.
        let first = |(buster, responses): &(String, Vec<PageResponse>)| {
            let first = responses.first().filter(|it| it.is_from_memory())?;
            Some((buster.clone(), first.lower_text()))
        };
        for (index, address) in addresses.iter().enumerate() {
            let Some((buster, text)) = first(address) else {
                continue;
            };
            self.has_buster = false;
            report.is_cold = false;
            let mut earlier = addresses.iter().take(index);
            if report.findings.iter().all(|it| it.variation != UNKEYED)
                && let Some((other, _)) = earlier.find(|(other, _)| text.contains(other))
            {
                let sign = Sign::Evidence {
                    value: other.clone(),
                    shown: judge::around_value(&text, other),
                };
                let request = |buster| self.page.clean(Some(buster)).bytes;
                let (altered, clean) = (request(other), request(&buster));
                report
                    .findings
                    .push(Finding::new(UNKEYED, &sign, &altered, &clean));
            }
        }
        Ok(())
    }

    /// Tries a variation, and repeats it to be sure of its sign.
    async fn finding(
        &mut self,
        variation: &Variation,
        is_stored: bool,
    ) -> Result<Option<Finding>, EarlyEnd> {
        let Some(first) = self.sign(variation, is_stored).await? else {
            return Ok(None);
        };
        match (self.has_buster, &first.sign) {
            (true, sign) if !self.controls_are_usual(sign).await? => return Ok(None),
            (true, _) | (false, Sign::Evidence { .. }) => {}
            // At the plain address, it may be left from an earlier variation.
            (false, _) => return Ok(None),
        }
        let again = match first.sign {
            Sign::Evidence { .. } | Sign::SharedCookie(_) => 1,
            Sign::Difference(_) | Sign::UsualPage(_) => 2,
        };
        let mut last = first;
        for _ in 0..again {
            match self.sign(variation, is_stored).await? {
                Some(seen) if seen.sign.is_like(&last.sign) => last = seen,
                _ => return Ok(None),
            }
        }
        let SeenSign {
            sign,
            altered,
            clean,
        } = last;
        Ok(Some(Finding::new(variation.name, &sign, &altered, &clean)))
    }

    /// Runs a variation once.
    async fn sign(
        &mut self,
        variation: &Variation,
        is_stored: bool,
    ) -> Result<Option<SeenSign>, EarlyEnd> {
        let values = Values::from_random(random()?);
        let buster = self.buster()?;
        let Some(altered) = self.page.altered(variation, &values, buster.as_deref()) else {
            return Ok(None);
        };
        let own = self.altered_responses(&altered).await?;
        let cookies = own.iter().flat_map(|it| it.values("set-cookie"));
        let cookies: Vec<String> = match self.stores_cookies {
            true => Vec::new(),
            false => cookies.map(str::to_owned).collect(),
        };
        let clean = self.page.clean(buster.as_deref());
        for response in self.clean_responses(&clean).await? {
            let left = (&altered.evidence[..], &cookies[..]);
            if let Some(sign) = judge::sign(&self.baseline, left, &response, buster.as_deref()) {
                return Ok(Some(SeenSign {
                    sign,
                    altered: altered.request.bytes,
                    clean: clean.bytes,
                }));
            }
        }
        match own.first() {
            Some(own) if is_stored && variation.change.is_personal() && !own.is_from_memory() => {
                self.usual_page(variation, &values, (own, buster.as_deref()))
                    .await
            }
            _ => Ok(None),
        }
    }

    /// Whether the visitor of a variation is given the usual page from memory, in place of `own`.
    async fn usual_page(
        &mut self,
        variation: &Variation,
        values: &Values,
        (own, own_buster): (&PageResponse, Option<&str>),
    ) -> Result<Option<SeenSign>, EarlyEnd> {
        let Some(difference) = self.baseline.visible_difference(own, own_buster) else {
            return Ok(None);
        };
        let buster = self.buster()?;
        let clean = self.page.clean(buster.as_deref());
        let stored = self.clean_responses(&clean).await?;
        if !stored.iter().any(PageResponse::is_from_memory) {
            return Ok(None);
        }
        let altered = self.page.altered(variation, values, buster.as_deref());
        let Some(AlteredRequest { request, .. }) = altered else {
            return Ok(None);
        };
        let response = match self.stranger.ask(&request, self.budget).await {
            Ok(response) => response,
            Err(error) => return self.without_response(error).map(|()| None),
        };
        let is_usual = self
            .baseline
            .visible_difference(&response, buster.as_deref())
            .is_none();
        let seen = SeenSign {
            sign: Sign::UsualPage(difference),
            altered: request.bytes,
            clean: clean.bytes,
        };
        Ok((response.is_from_memory() && is_usual).then_some(seen))
    }

    /// Whether requests without a variation do not show the sign. Their responses join the baseline, so that
    /// differences between them do not count any more.
    async fn controls_are_usual(&mut self, sign: &Sign) -> Result<bool, EarlyEnd> {
        for _ in 0..CONTROLS {
            let buster = self.buster()?;
            let request = self.page.clean(buster.as_deref());
            for response in self.clean_responses(&request).await? {
                if let Sign::Evidence { value, .. } = sign
                    && response.lower_text().contains(value.as_str())
                {
                    // The application itself shows it to all, as a list of last searches.
                    return Ok(false);
                }
                self.baseline.add(&response, buster.as_deref());
            }
        }
        Ok(true)
    }

    /// Altered requests, until the application has answered one and the cache another one.
    async fn altered_responses(
        &mut self,
        altered: &AlteredRequest,
    ) -> Result<Vec<PageResponse>, EarlyEnd> {
        let mut responses: Vec<PageResponse> = Vec::new();
        for _ in 0..ALTERED_REQUESTS {
            match self.stranger.ask(&altered.request, self.budget).await {
                Ok(response) => responses.push(response),
                // Many servers refuse odd requests by closing the connection.
                Err(error) => {
                    self.without_response(error)?;
                    break;
                }
            }
            let from_memory = responses.iter().filter(|it| it.is_from_memory()).count();
            if from_memory > 0 && from_memory < responses.len() {
                break;
            }
        }
        Ok(responses)
    }

    /// Clean requests, until one is answered from memory.
    async fn clean_responses(
        &mut self,
        request: &AuditRequest,
    ) -> Result<Vec<PageResponse>, EarlyEnd> {
        let mut responses = Vec::new();
        for _ in 0..CLEAN_REQUESTS {
            match self.clean.ask(request, self.budget).await {
                Ok(response) => {
                    self.failures = 0;
                    let is_from_memory = response.is_from_memory();
                    responses.push(response);
                    // A stored cookie shows by coming twice.
                    if is_from_memory && responses.len() > 1 {
                        break;
                    }
                }
                Err(error) => {
                    self.failures += 1;
                    if self.failures >= MAX_FAILURES
                        && let AskError::Failed(reason) = error
                    {
                        return Err(EarlyEnd::NotAudited(reason));
                    }
                    self.without_response(error)?;
                }
            }
        }
        Ok(responses)
    }

    fn without_response(&self, error: AskError) -> Result<(), EarlyEnd> {
        match error {
            AskError::Stopped => Err(EarlyEnd::Stopped),
            AskError::Failed(_) => Ok(()),
        }
    }

    fn buster(&self) -> Result<Option<String>, EarlyEnd> {
        self.has_buster.then(|| random_word("mfb")).transpose()
    }
}

/// The name of the finding that the control pair itself is.
const UNKEYED: &str = "argument that is not in the key";

fn random_word(begin: &str) -> Result<String, EarlyEnd> {
    let bytes: [u8; 12] = random()?;
    Ok(word(begin, &bytes))
}

fn random<const N: usize>() -> Result<[u8; N], EarlyEnd> {
    let mut bytes = [0; N];
    match rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()) {
        Ok(count) if count == N => Ok(bytes),
        _ => Err(EarlyEnd::NotAudited(
            "there are no random numbers".to_owned(),
        )),
    }
}
