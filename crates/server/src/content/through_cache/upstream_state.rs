//! The upstream of a request, as decisions about its page ask for it.

use cache_decision::UpstreamFacts;
use http_semantics::same_name;
use site::{Pass, PassTarget};
use upstream::Group;

use crate::content::pass::fetch_log::count_left_out;
use crate::content::pass::fetch_purpose::NOT_FOR_CACHE;
use crate::content::pass::turn;
use crate::exchange::request::{Method, Request};

/// The upstream of a request, as decisions ask for it.
pub struct Upstream<'a> {
    pub request: &'a Request,
    pub pass: &'a Pass,
}

impl Upstream<'_> {
    fn group(&self) -> Option<&Group> {
        match &self.pass.target {
            PassTarget::Group(id) => Some(&self.request.configuration.live.groups[id.0].group),
            PassTarget::Variable(_) => None,
        }
    }
}

impl UpstreamFacts for Upstream<'_> {
    fn queue_length(&self) -> usize {
        self.group().map_or(0, |group| group.queue_length())
    }

    fn is_crawler_in_the_way(&self) -> bool {
        self.queue_length() > 0 && turn::looks_like_crawler(self.request, self.pass)
    }

    fn leaves_out_refresh(&self) -> bool {
        self.group()
            .is_some_and(|group| group.leaves_out_refreshes())
    }
}

/// Counts a refresh that was left out. Nothing was put together for it.
pub fn count_left_out_refresh(request: &Request, pass: &Pass) {
    if let Some(group) = (Upstream { request, pass }).group() {
        count_left_out(&request.configuration, request.settings(), group);
    }
}

/// Has the upstream nothing to do that waits?
pub fn is_idle(request: &Request, pass: &Pass) -> bool {
    (Upstream { request, pass }).queue_length() == 0
}

/// Can the answer be compared with the shared one? A part of a page cannot, nor an answer that depends on the
/// client's copy.
pub fn is_comparable(request: &Request) -> bool {
    let head = request.received.head();
    request.route.method == Method::Get
        && !request.is_own_visit()
        && head.fields().all(|(name, _)| {
            !NOT_FOR_CACHE
                .iter()
                .any(|field| same_name(name, field.as_bytes()))
        })
}
