//! One run: requests become due, and visitors ask for them.
//!
//! ```text
//! clock (a thread) ──due──► queue ──► visitor: idle, or one more as long as there may be one
//! ```
//!
//! The clock is a thread of its own, since its sleep is exact to a twentieth of a millisecond, and the
//! event loop's to one millisecond. The lateness with which requests are taken up is counted: the
//! report shows a client that is late itself.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinSet, LocalSet};

use crate::plan::{Load, Plan};
use crate::record::{Failure, Live, Outcome, Recorder};
use crate::schedule;
use crate::visitor::{Job, Visitor};

/// Requests that are due and not yet asked; further ones count as never asked.
const MAX_WAITING: usize = 1 << 20;
/// The pause between two reports of progress.
const SHOWN_EVERY: Duration = Duration::from_millis(250);
/// The pause of a visitor in the closed model whose request failed.
const AFTER_FAILURE: Duration = Duration::from_millis(1);
/// How long the clock sleeps at most, to see that it shall end.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// Ends a run early.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    is_over: Arc<AtomicBool>,
    ended: Arc<Notify>,
}

impl Stop {
    /// No more requests are made, and those under way are given up.
    pub fn now(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.ended.notify_waiters();
    }

    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Runs the plan for `duration` of it, which may be a turn of several, and adds the results. Needs a
/// tokio runtime of one thread, with timers.
pub async fn run(
    plan: Rc<Plan>,
    duration: Duration,
    recorder: Recorder,
    stop: &Stop,
    shown: impl Fn(Live),
) -> Recorder {
    let local = LocalSet::new();
    local
        .run_until(turn(plan, duration, recorder, stop, shown))
        .await
}

struct Turn {
    plan: Rc<Plan>,
    recorder: RefCell<Recorder>,
    began: Instant,
    /// The end, behind which no request becomes due.
    ends: Instant,
    /// Requests without an answer by then are given up.
    deadline: Instant,
    waiting: RefCell<VecDeque<Job>>,
    idle: RefCell<Vec<Rc<Notify>>>,
    /// All that will become due is in the queue.
    is_all_due: Cell<bool>,
    /// Jobs of visitors, so that none is lost when they are given up.
    under_way: RefCell<Vec<Option<Job>>>,
    random: Cell<u64>,
}

async fn turn(
    plan: Rc<Plan>,
    duration: Duration,
    mut recorder: Recorder,
    stop: &Stop,
    shown: impl Fn(Live),
) -> Recorder {
    recorder.begin_turn();
    let began = Instant::now();
    let ends = began + duration;
    let shared = Rc::new(Turn {
        recorder: RefCell::new(recorder),
        began,
        ends,
        deadline: ends + plan.settings.timeout,
        waiting: RefCell::default(),
        idle: RefCell::default(),
        is_all_due: Cell::new(false),
        under_way: RefCell::default(),
        random: Cell::new(0x2545_f491_4f6c_dd1d),
        plan,
    });
    let work = async {
        let mut visitors = JoinSet::new();
        match &shared.plan.settings.load {
            Load::Closed => closed(&shared, &mut visitors),
            Load::Open { .. } | Load::Replay(_) => open(&shared, stop, &mut visitors).await,
        }
        while visitors.join_next().await.is_some() {}
    };
    tokio::pin!(work);
    let mut show = tokio::time::interval(SHOWN_EVERY);
    while !stop.is_over() {
        tokio::select! {
            () = &mut work => break,
            () = stop.ended.notified() => break,
            _ = show.tick() => shown(shared.recorder.borrow().live(began.elapsed())),
        }
    }
    if !stop.is_over() {
        shared.give_up();
    }
    let lasted = began.elapsed().max(if stop.is_over() {
        Duration::ZERO
    } else {
        duration
    });
    let mut recorder = shared.recorder.borrow_mut();
    recorder.end_turn(lasted);
    recorder.clone()
}

/// Visitors who ask as long as the run lasts, the first at once and the others during the ramp.
fn closed(shared: &Rc<Turn>, visitors: &mut JoinSet<()>) {
    let settings = &shared.plan.settings;
    let count = u32::try_from(settings.connections)
        .unwrap_or(u32::MAX)
        .max(1);
    for number in 0..count {
        let own = shared.clone();
        let begins = shared.began + settings.ramp * number / count;
        visitors.spawn_local(async move {
            tokio::time::sleep_until(begins.into()).await;
            let mut visitor = Visitor::new(&own.plan);
            let slot = own.slot();
            while Instant::now() < own.ends {
                let job = Job {
                    request: own.plan.draw(own.random()),
                    due: Instant::now(),
                };
                // A visitor that is refused at once does not ask a million times.
                if !own.ask(&mut visitor, slot, job).await {
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
            }
        });
    }
}

/// Requests that are due whether or not anybody has an answer.
async fn open(shared: &Rc<Turn>, stop: &Stop, visitors: &mut JoinSet<()>) {
    let mut due = clock(shared, stop);
    let mut jobs = Vec::new();
    while due.recv_many(&mut jobs, 1024).await > 0 {
        let now = Instant::now();
        for job in jobs.drain(..) {
            shared
                .recorder
                .borrow_mut()
                .add_lateness(now.saturating_duration_since(job.due));
            if shared.waiting.borrow().len() >= MAX_WAITING {
                shared.never_asked(job, now);
                continue;
            }
            shared.waiting.borrow_mut().push_back(job);
            if let Some(idle) = shared.idle.borrow_mut().pop() {
                idle.notify_one();
            } else if visitors.len() < shared.plan.settings.connections.max(1) {
                visitors.spawn_local(serve_queue(shared.clone()));
            }
        }
    }
    shared.is_all_due.set(true);
    shared
        .idle
        .borrow_mut()
        .drain(..)
        .for_each(|idle| idle.notify_one());
}

/// A visitor who takes due requests, until no more will come.
async fn serve_queue(shared: Rc<Turn>) {
    let mut visitor = Visitor::new(&shared.plan);
    let slot = shared.slot();
    let wake = Rc::new(Notify::new());
    loop {
        let job = shared.waiting.borrow_mut().pop_front();
        match job {
            Some(_) if Instant::now() >= shared.deadline => {
                // Too late: counted with the requests that were never sent.
                if let Some(job) = job {
                    shared.waiting.borrow_mut().push_front(job);
                }
                break;
            }
            Some(job) => {
                shared.ask(&mut visitor, slot, job).await;
            }
            None if shared.is_all_due.get() => break,
            None => {
                shared.idle.borrow_mut().push(wake.clone());
                wake.notified().await;
            }
        }
    }
}

/// Sends each request when it is due. The thread ends with the run, or soon after a stop.
fn clock(shared: &Rc<Turn>, stop: &Stop) -> UnboundedReceiver<Job> {
    let (sender, receiver) = unbounded_channel();
    let (began, lasts) = (shared.began, shared.ends - shared.began);
    let plan = &shared.plan;
    let mut times: Box<dyn Iterator<Item = (Duration, usize)> + Send> = match &plan.settings.load {
        Load::Closed => Box::new(std::iter::empty()),
        Load::Open { rate } => {
            let (rate, ramp) = (*rate, plan.settings.ramp);
            let drawn: Vec<usize> = (0..1024).map(|_| plan.draw(shared.random())).collect();
            let drawn = drawn.into_iter().cycle();
            Box::new(
                (0..)
                    .map(move |number| schedule::due(number, rate, ramp))
                    .zip(drawn),
            )
        }
        Load::Replay(replay) => {
            let dues: Vec<Duration> = replay.requests.iter().map(|it| it.due).collect();
            Box::new(
                dues.into_iter()
                    .enumerate()
                    .map(|(number, due)| (due, number)),
            )
        }
    };
    let stop = stop.clone();
    let ticking = move || {
        while let Some((after, request)) = times.next().filter(|(after, _)| *after < lasts) {
            let due = began + after;
            loop {
                let left = due.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                if stop.is_over() {
                    return;
                }
                thread::sleep(left.min(LONGEST_SLEEP));
            }
            if sender.send(Job { request, due }).is_err() {
                return;
            }
        }
    };
    // Without the thread nothing is ever due, and the run ends at once with no answer.
    let _ = thread::Builder::new()
        .name("clock".to_owned())
        .spawn(ticking);
    receiver
}

impl Turn {
    fn random(&self) -> u64 {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        random >> 11
    }

    fn slot(&self) -> usize {
        let mut under_way = self.under_way.borrow_mut();
        under_way.push(None);
        under_way.len() - 1
    }

    /// Sends a request, and returns whether it was answered.
    async fn ask(&self, visitor: &mut Visitor, slot: usize, job: Job) -> bool {
        self.mark(slot, Some(job));
        let outcome = visitor
            .ask(&self.plan, job, self.began, self.deadline)
            .await;
        self.mark(slot, None);
        self.recorder.borrow_mut().add(&outcome);
        outcome.result.is_ok()
    }

    fn mark(&self, slot: usize, job: Option<Job>) {
        if let Some(under_way) = self.under_way.borrow_mut().get_mut(slot) {
            *under_way = job;
        }
    }

    /// Counts due requests that are waited for no longer.
    fn give_up(&self) {
        let now = Instant::now();
        let waiting: Vec<Job> = self.waiting.borrow_mut().drain(..).collect();
        waiting
            .into_iter()
            .for_each(|job| self.never_asked(job, now));
        let under_way: Vec<Job> = self.under_way.borrow_mut().drain(..).flatten().collect();
        under_way
            .into_iter()
            .for_each(|job| self.lose(job, now, Failure::Timeout));
    }

    fn never_asked(&self, job: Job, now: Instant) {
        self.lose(job, now, Failure::NotAsked);
    }

    fn lose(&self, job: Job, now: Instant, failure: Failure) {
        let waited = now.saturating_duration_since(job.due);
        self.recorder.borrow_mut().add(&Outcome {
            url: self.plan.requests.get(job.request).map_or(0, |it| it.url),
            due: job.due.saturating_duration_since(self.began),
            latency: waited,
            service: waited,
            result: Err(failure),
        });
    }
}
