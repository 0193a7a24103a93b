//! Responses whose bodies are put together from parts, in either language: a page of the client's
//! or a part of one, which may be put together itself.

use std::sync::Arc;

use transport::outbound::{ArrivingBody, Flow, MaybeApart, NextBytes};

use crate::exchange::page_budget::{Bound, PageBudget};
use crate::exchange::reply::{Body, Reply};
use crate::exchange::request::Request;
use crate::respond::{esi, parts, recode, ssi, sub_filter};

/// The language of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Composition {
    Esi,
    Ssi,
}

impl Composition {
    /// `body` with its commands run as it is pulled, in the name of `request`.
    pub fn around(self, request: &Request, body: Body) -> Box<dyn ArrivingBody<Request>> {
        if request.fragments.get().is_some() {
            return self.within(request, body);
        }
        let settings = request.settings();
        let includes = match self {
            Composition::Esi => (settings.esi.max_includes, "esi_max_includes"),
            Composition::Ssi => (settings.ssi.max_includes, "ssi_max_includes"),
        };
        let budget = parts::page(request, includes).budget.clone();
        let body = parts::read_ahead(body, None);
        Box::new(WholePage {
            page: self.within(request, body),
            budget,
        })
    }

    fn within(self, request: &Request, body: Body) -> Box<dyn ArrivingBody<Request>> {
        match self {
            Composition::Esi => Box::new(esi::Page::new(request, body)),
            Composition::Ssi => Box::new(ssi::Page::new(request, body)),
        }
    }
}

/// The outermost page: the time that it waits is counted, and it is for this client alone. When the
/// client goes, no fragment begins any more, and fetches for it alone are cut.
struct WholePage {
    page: Box<dyn ArrivingBody<Request>>,
    budget: Arc<PageBudget>,
}

impl ArrivingBody<Request> for WholePage {
    fn next<'a>(&'a mut self, request: &'a Request) -> NextBytes<'a> {
        Box::pin(async move {
            self.budget.begin_wait();
            let next = self.page.next(request).await;
            self.budget.end_wait();
            next
        })
    }

    fn flow(&self) -> Flow {
        Flow {
            ends_with_client: true,
            ..Flow::default()
        }
    }

    fn apart(self: Box<Self>) -> MaybeApart<Request> {
        Err(self)
    }
}

/// The body of a part as it goes into a page. `request` is the part's own.
///
/// # Errors
/// The page may not have this number of bytes more.
pub fn part(
    request: &Request,
    mut reply: Box<Reply>,
) -> Result<Box<dyn ArrivingBody<Request>>, Bound> {
    // Bytes that are not at hand are counted as they are read.
    parts::take_bytes(request, reply.body.length_at_hand().unwrap_or(0))?;
    let expander = recode::expand_part(request, &mut reply);
    let composition = match esi::choose(request, &mut reply) {
        true => Some(Composition::Esi),
        false => ssi::choose(request, &mut reply).then_some(Composition::Ssi),
    };
    if let Some(expander) = expander {
        let body = std::mem::replace(&mut reply.body, Body::Empty);
        let body = recode::around(body, Some(expander));
        // Expanded bytes count as well.
        reply.body = parts::counted(body.into_arriving());
    }
    let body = match sub_filter::apply(request, &mut reply) {
        // Replaced bytes count as well.
        true => parts::counted(reply.body.into_arriving()),
        false => reply.body,
    };
    Ok(match composition {
        Some(composition) => composition.around(request, body),
        None => body.into_arriving(),
    })
}
