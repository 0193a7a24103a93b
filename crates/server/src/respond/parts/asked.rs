//! Parts of a page that are asked for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use transport::outbound::{ArrivingBody, SendError};
use upstream::Class;

use super::body_ahead::read_ahead;
use crate::exchange::fragment_facts::FragmentFacts;
use crate::exchange::page_budget::{Bound, PageBudget};
use crate::exchange::reply::{Body, Reply};
use crate::exchange::request::Request;
use crate::exchange::subrequest;
use crate::log::error_log;

/// The request of a part, and its reply; `None`: nothing is sent.
pub type PartReply = (Box<Request>, Option<Box<Reply>>);

/// A part that was asked for. It is let go when this is dropped.
pub enum RequestedPart {
    /// It was there at once, from memory.
    Answered(PartReply),
    /// It takes its time beside the page and the other parts.
    Pending(Task),
}

/// The page's state, which the outermost request makes. `includes`: the number of parts that the
/// page may include, and the directive that sets it.
pub fn page<'r>(request: &'r Request, includes: (u32, &'static str)) -> &'r FragmentFacts {
    let new = || PageBudget::new(request.settings().fragments, includes);
    let fragments = &request.fragments;
    fragments.get_or_init(|| FragmentFacts::new(Arc::new(new())))
}

impl RequestedPart {
    /// Asks for the part that `request` names, within the page's budget.
    ///
    /// # Errors
    /// The bound that the page has met.
    pub async fn ask(request: Box<Request>) -> Result<RequestedPart, Bound> {
        if let Some(budget) = request.page_budget().cloned() {
            budget.before_fragment().await;
            if let Err(bound) = budget.take_include() {
                error_log::beyond_budget(&request, bound);
                return Err(bound);
            }
        }
        Ok(RequestedPart::begin(request))
    }

    fn begin(mut request: Box<Request>) -> RequestedPart {
        if request.class == Class::Visitor {
            request.class = Class::Fragment;
        }
        let mut serving: Pin<Box<dyn Future<Output = PartReply> + Send>> = Box::pin(async move {
            let mut reply = subrequest::serve(&mut request).await;
            // A part that waited for the fetch of another has had no use for its own turn, and is
            // not to hold it while its parts wait for theirs.
            if let Some(part) = request.fragments.get() {
                *part.turn.lock() = None;
            }
            if let Some(reply) = &mut reply {
                let body = std::mem::replace(&mut reply.body, Body::Empty);
                reply.body = read_ahead(body, request.page_budget());
            }
            (request, reply)
        });
        // A part in memory needs no task. Any other goes on in a task, which asks to be woken
        // anew.
        match serving
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(answer) => RequestedPart::Answered(answer),
            Poll::Pending => RequestedPart::Pending(Task(tokio::spawn(serving))),
        }
    }

    /// Waits for the answer; `None` if the server itself has failed to make one.
    async fn answer(self) -> Option<PartReply> {
        match self {
            RequestedPart::Answered(answer) => Some(answer),
            RequestedPart::Pending(mut task) => (&mut task.0).await.ok(),
        }
    }
}

/// Counts `bytes` more bytes of the page that `request` is, or is a part of.
///
/// # Errors
/// The bound that they would pass.
pub fn take_bytes(request: &Request, bytes: u64) -> Result<(), Bound> {
    let Some(budget) = request.page_budget() else {
        return Ok(());
    };
    let taken = budget.take_bytes(bytes);
    if let Err(bound) = taken {
        error_log::beyond_budget(request, bound);
    }
    taken
}

/// The next bytes of a part's body, as long as the page may wait for its parts.
///
/// # Errors
/// It broke off, or the page has waited long enough.
pub async fn next_bytes(
    request: &Request,
    body: &mut Box<dyn ArrivingBody<Request>>,
) -> Result<Option<Bytes>, SendError> {
    let Some(budget) = request.page_budget() else {
        return body.next(request).await;
    };
    let next = timeout_at(budget.deadline(), body.next(request)).await;
    next.unwrap_or_else(|_| {
        error_log::beyond_budget(request, Bound::Time);
        Err(SendError::Truncated)
    })
}

/// The time limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// This part, beyond its own time.
    Part,
    /// All parts of the page together; that was logged.
    Page,
}

/// Waits for the answer of a part, for no longer than `limit` and the page's own time.
///
/// # Errors
/// It was not there in time.
pub async fn answer(
    page: &Request,
    asked: RequestedPart,
    limit: Option<Duration>,
) -> Result<Option<PartReply>, Late> {
    if let RequestedPart::Answered(answer) = asked {
        return Ok(Some(answer));
    }
    let budget = page.page_budget();
    let own = limit.map(|limit| Instant::now() + limit);
    let pages = budget.map(|budget| budget.deadline());
    let Some(deadline) = own.into_iter().chain(pages).min() else {
        return Ok(asked.answer().await);
    };
    match timeout_at(deadline, asked.answer()).await {
        Ok(answer) => Ok(answer),
        Err(_) if pages == Some(deadline) => {
            error_log::beyond_budget(page, Bound::Time);
            Err(Late::Page)
        }
        Err(_) => Err(Late::Part),
    }
}

/// Is a part's answer that of a page that may ask no upstream any more?
pub fn is_refused(page: &Request, status: u16) -> bool {
    let budget = page.page_budget();
    let met = match status {
        503 => Bound::Fetches,
        508 => Bound::Loop,
        _ => return false,
    };
    budget.is_some_and(|budget| budget.is_met(met))
}

/// The task that waits for a part. Dropping it ends the task.
pub struct Task(JoinHandle<PartReply>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
