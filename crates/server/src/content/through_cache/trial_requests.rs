//! The requests of a trial of a page that begins a session. Those that will be needed are begun ahead, side by side as far
//! as PHP has time, since visitors may wait for the end of the trial.

use std::sync::Arc;

use guest_pages::session::without_links;
use shared_request::TraitSet;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::asking::{self, WholeAnswer};
use super::guests;
use super::tried::{BrokenOff, TrialSource, TriedAnswer, fetch};

/// A trial makes no more requests.
const MOST_REQUESTS: u32 = 96;

/// A request of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialRequest {
    /// For the page of the trial, with some traits of the visitor, and perhaps with a session.
    Own(TraitSet, Option<Arc<[u8]>>),
    /// For another page of the site.
    Other(Vec<u8>, Option<Arc<[u8]>>),
}

/// `None`: the answer is too long.
pub type TrialResult = Result<Option<TriedAnswer>, BrokenOff>;

/// The requests of one trial. Those under way end with it.
pub struct TrialRequests<'t> {
    pub source: &'t mut TrialSource,
    /// How many were begun.
    count: &'t mut u32,
    /// Begun, and not taken yet.
    begun: Vec<(TrialRequest, oneshot::Receiver<TrialResult>)>,
    /// The end of the latest one of each.
    latest: Vec<(TrialRequest, oneshot::Receiver<()>)>,
    tasks: JoinSet<()>,
}

impl TrialRequests<'_> {
    pub fn new<'t>(source: &'t mut TrialSource, count: &'t mut u32) -> TrialRequests<'t> {
        TrialRequests {
            source,
            count,
            begun: Vec::new(),
            latest: Vec::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Begins a request, unless its answer is there or under way.
    pub fn begin_once(&mut self, wanted: TrialRequest) {
        if !self.begun.iter().any(|(it, _)| *it == wanted) {
            self.begin(wanted);
        }
    }

    /// Begins a request, once those like it have ended: numbers that rise are known by the order of their answers.
    pub fn begin(&mut self, wanted: TrialRequest) {
        if !self.count_one() {
            return;
        }
        let (answered, answer) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let earlier = self.latest.iter().position(|(it, _)| *it == wanted);
        let earlier = earlier.map(|at| self.latest.swap_remove(at).1);
        self.latest.push((wanted.clone(), ended));
        self.begun.push((wanted.clone(), answer));
        let mut source = self.source.duplicate();
        self.tasks.spawn(async move {
            if let Some(earlier) = earlier {
                // An error says that it has ended.
                let _ = earlier.await;
            }
            let _ = answered.send(wanted.make(&mut source).await);
            drop(end);
        });
    }

    /// The answer to a request, which may have been begun already.
    pub async fn take(&mut self, wanted: TrialRequest) -> TrialResult {
        if let Some(at) = self.begun.iter().position(|(it, _)| *it == wanted) {
            let (_, answer) = self.begun.remove(at);
            return answer.await.unwrap_or(Err(BrokenOff::NoAnswer));
        }
        match self.count_one() {
            true => wanted.make(self.source).await,
            false => Err(BrokenOff::NoAnswer),
        }
    }

    /// Counts one more request; false if there were enough.
    fn count_one(&mut self) -> bool {
        let may = *self.count < MOST_REQUESTS;
        *self.count += u32::from(may);
        may
    }
}

impl TrialRequest {
    async fn make(&self, source: &mut TrialSource) -> TrialResult {
        let mut tried = match self {
            TrialRequest::Own(with, session) => match fetch(source, *with, session.clone()).await {
                Err(BrokenOff::TooLong) => return Ok(None),
                tried => tried?,
            },
            TrialRequest::Other(target, session) => TriedAnswer {
                answer: ask_for(source, target, session.as_deref()).await?,
                is_storable: true,
            },
        };
        let answer = &mut tried.answer;
        answer.body = without_links(&answer.fields, std::mem::take(&mut answer.body));
        Ok(Some(tried))
    }
}

async fn ask_for(
    source: &TrialSource,
    target: &[u8],
    session: Option<&[u8]>,
) -> Result<WholeAnswer, BrokenOff> {
    let mut head = [b"GET ", target, b" HTTP/1.1\r\nHost: "].concat();
    head.extend_from_slice(&guests::named_host(source.request()));
    head.extend_from_slice(b"\r\nUser-Agent: Mozilla/5.0\r\nAccept: text/html,*/*;q=0.8\r\n");
    if let Some(session) = session {
        head.extend_from_slice(b"Cookie: ");
        head.extend_from_slice(session);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    let by = (source.connection(), source.class());
    let answer = asking::ask_by(source.request(), by, head).await;
    answer.ok_or(BrokenOff::NoAnswer)
}
