//! The requests of a trial of a page that begins a session. Those that will be needed are begun ahead, side by side as far
//! as PHP has time, since visitors may wait for the end of the trial.

use std::sync::Arc;

use guest_pages::session::without_links;
use live_state::evidence::{SharedAnswer, TrialAhead};
use shared_request::TraitSet;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::asking::{self, WholeAnswer};
use super::guests;
use super::tried::{BrokenOff, TrialSource, TriedAnswer, fetch};

/// A trial makes no more requests.
const MAX_REQUESTS: u32 = 96;

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
    /// The end of the first one of each.
    first: Vec<(TrialRequest, watch::Receiver<()>)>,
    tasks: JoinSet<()>,
    /// Those that were begun before the trial.
    tasks_ahead: JoinSet<()>,
}

impl TrialRequests<'_> {
    pub fn new<'t>(source: &'t mut TrialSource, count: &'t mut u32) -> TrialRequests<'t> {
        TrialRequests {
            source,
            count,
            begun: Vec::new(),
            first: Vec::new(),
            tasks: JoinSet::new(),
            tasks_ahead: JoinSet::new(),
        }
    }

    /// Begins a request, unless its answer is there or under way.
    pub fn begin_once(&mut self, wanted: TrialRequest) {
        if !self.begun.iter().any(|(it, _)| *it == wanted) {
            self.begin(wanted);
        }
    }

    /// Begins a request, once the one that it follows has ended ([`TrialRequest::follows`]).
    pub fn begin(&mut self, wanted: TrialRequest) {
        if !self.count_one() {
            return;
        }
        let mut source = self.source.duplicate();
        let made = wanted.clone();
        self.start(wanted, async move { made.make(&mut source).await });
    }

    /// Takes over what was begun before the trial: its first request, perhaps the same once more, and some for other pages.
    pub fn take_over(&mut self, ahead: TrialAhead) {
        let neutral = TrialRequest::Own(TraitSet::NONE, None);
        self.source.comes_from(ahead.address);
        self.tasks_ahead = ahead.begun.tasks;
        self.adopt(neutral.clone(), ahead.shared);
        if let Some(second) = ahead.begun.second
            && self.count_one()
        {
            self.adopt(neutral, second);
        }
        for (target, answer) in ahead.begun.others {
            if self.count_one() {
                self.adopt(TrialRequest::Other(target, None), answer);
            }
        }
    }

    /// Takes the answer of a request that was begun before; makes it if that has none.
    fn adopt(&mut self, wanted: TrialRequest, given: oneshot::Receiver<SharedAnswer>) {
        let mut source = self.source.duplicate();
        let made = wanted.clone();
        self.start(wanted, async move {
            match given.await {
                Ok(given) => Ok(Some(of_shared(given))),
                Err(_) => made.make(&mut source).await,
            }
        });
    }

    fn start(
        &mut self,
        wanted: TrialRequest,
        making: impl Future<Output = TrialResult> + Send + 'static,
    ) {
        let (answered, answer) = oneshot::channel();
        let (end, ended) = watch::channel(());
        let mut first = self.first.iter();
        let earlier = first.find(|(earlier, _)| wanted.follows(earlier));
        let earlier = earlier.map(|(_, ended)| ended.clone());
        if !self.first.iter().any(|(it, _)| *it == wanted) {
            self.first.push((wanted.clone(), ended));
        }
        self.begun.push((wanted, answer));
        self.tasks.spawn(async move {
            if let Some(mut earlier) = earlier {
                // An error says that it has ended.
                let _ = earlier.changed().await;
            }
            let _ = answered.send(making.await);
            drop(end);
        });
    }

    /// How many of a request are begun, and not taken yet.
    pub fn begun_of(&self, wanted: &TrialRequest) -> usize {
        self.begun.iter().filter(|(it, _)| it == wanted).count()
    }

    /// Leaves alone what was begun of a request and is not taken: the next answer is one of the present.
    pub fn forget(&mut self, wanted: &TrialRequest) {
        self.begun.retain(|(it, _)| it != wanted);
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
        let may = *self.count < MAX_REQUESTS;
        *self.count += u32::from(may);
        may
    }
}

impl TrialRequest {
    /// Does it begin once the other one has ended? Two answers to neutral guests are never of one moment, since what is
    /// counted may be the same then; further ones are made side by side. PHP locks the file of a session.
    fn follows(&self, earlier: &TrialRequest) -> bool {
        match (self, earlier) {
            (TrialRequest::Other(_, Some(session)), TrialRequest::Own(_, Some(earlier))) => {
                session == earlier
            }
            _ => self == earlier,
        }
    }

    pub async fn make(&self, source: &mut TrialSource) -> TrialResult {
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
        tried.remove_links();
        Ok(Some(tried))
    }
}

impl TriedAnswer {
    /// Removes the names of the sessions that it begins.
    fn remove_links(&mut self) {
        let answer = &mut self.answer;
        answer.body = without_links(&answer.fields, std::mem::take(&mut answer.body));
    }
}

/// An answer that was found to be storable but for its session.
fn of_shared(given: SharedAnswer) -> TriedAnswer {
    let mut tried = TriedAnswer {
        answer: WholeAnswer {
            status: given.status,
            fields: given.fields,
            body: given.body.into(),
        },
        is_storable: true,
    };
    tried.remove_links();
    tried
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
