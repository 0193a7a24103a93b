//! Which request is served first, and that no class starves. One server with some slots; a request
//! takes a slot for a number of steps that the seed chooses.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::{group, in_flight};
use crate::balance::Random;
use crate::{AcquireError, Admission, Class, Group, Lease, PickKey, TriedSet};
use fair_queue::{MAX_PASSED_OVER, MAX_WAITING_IN_BACKGROUND};

type AcquireTask = JoinHandle<Result<Lease, AcquireError>>;

/// Starts an acquire in a task and lets it run until it waits.
async fn join(group: &Arc<Group>, class: Class) -> AcquireTask {
    let group = Arc::clone(group);
    let waiting = tokio::spawn(async move {
        let tried = TriedSet::new();
        group.acquire(PickKey::default(), &tried, class, 0).await
    });
    tokio::task::yield_now().await;
    waiting
}

async fn lease(waiting: AcquireTask) -> Lease {
    waiting.await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_visitor_finds_a_slot_free_beside_any_number_of_refreshes() {
    let group = group(&[4], 8);
    let mut refreshes = Vec::new();
    for _ in 0..100 {
        refreshes.push(join(&group, Class::Refresh).await);
    }
    assert_eq!(in_flight(&group), 3);
    let others = refreshes.split_off(3);
    let (waiting, left_out): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|refresh| !refresh.is_finished());
    assert_eq!(waiting.len(), MAX_WAITING_IN_BACKGROUND);
    assert!(group.leaves_out_refreshes());
    for refresh in left_out {
        assert_eq!(refresh.await.unwrap().unwrap_err(), AcquireError::LeftOut);
    }
    assert_eq!(group.queue_length(), 0, "refreshes are no visitors");
    let _visitor = lease(join(&group, Class::Visitor).await).await;
    assert_eq!(in_flight(&group), 4);
}

#[tokio::test(start_paused = true)]
async fn visitors_are_served_before_fragments_and_refreshes_that_came_earlier() {
    let group = group(&[1], 8);
    let holder = lease(join(&group, Class::Visitor).await).await;
    let mirror = join(&group, Class::Mirror).await;
    let refresh = join(&group, Class::Refresh).await;
    let fragment = join(&group, Class::Fragment).await;
    let stale = join(&group, Class::StaleVisitor).await;
    let visitor = join(&group, Class::Visitor).await;
    drop(holder);
    let held = lease(stale).await;
    assert!(!visitor.is_finished());
    drop(held);
    let held = lease(visitor).await;
    assert!(!fragment.is_finished());
    drop(held);
    let held = lease(fragment).await;
    assert!(!refresh.is_finished());
    drop(held);
    let held = lease(refresh).await;
    assert!(!mirror.is_finished());
    drop(held);
    drop(lease(mirror).await);
    assert_eq!(in_flight(&group), 0);
}

/// A page grows older than may be shown while its refresh waits in line: the visitor who
/// comes then waits for that fetch, which is a visitor's from there on.
#[tokio::test(start_paused = true)]
async fn a_refresh_that_a_visitor_waits_for_goes_to_the_line_of_visitors() {
    let group = group(&[1], 8);
    let holder = lease(join(&group, Class::Visitor).await).await;
    let refresh = join(&group, Class::Refresh).await;
    let enter = || group.enter(PickKey::default(), &TriedSet::new(), Class::Refresh, 0);
    let Ok(Admission::InLine(mut raised)) = enter() else {
        panic!("the server is full");
    };
    raised.raise(Class::StaleVisitor);
    let later = join(&group, Class::Visitor).await;
    assert_eq!(group.queue_length(), 2);
    drop(holder);
    let held = raised.wait().await.unwrap();
    assert!(!later.is_finished() && !refresh.is_finished());
    drop(held);
    let held = lease(later).await;
    assert!(!refresh.is_finished());
    drop(held);
    drop(lease(refresh).await);
}

/// Starts an acquire on behalf of a client, which has an answer at once or waits.
async fn join_for(group: &Arc<Group>, client: u8, class: Class) -> AcquireTask {
    let group = Arc::clone(group);
    let waiting = tokio::spawn(async move {
        let key = PickKey {
            client_addr: Some([10, 0, 0, client].into()),
            ..PickKey::default()
        };
        group.acquire(key, &TriedSet::new(), class, 0).await
    });
    tokio::task::yield_now().await;
    waiting
}

#[tokio::test(start_paused = true)]
async fn fragments_refuse_no_visitor_and_those_of_one_client_no_fragments_of_others() {
    let group = group(&[1], 100);
    let holder = lease(join(&group, Class::Visitor).await).await;
    let mut waiting = Vec::new();
    for (client, fragments, accepted) in [(1, 200, 25), (2, 200, 25), (3, 10, 10), (4, 200, 25)] {
        let before = group.queue_length();
        for _ in 0..fragments {
            waiting.push(join_for(&group, client, Class::Fragment).await);
        }
        assert_eq!(group.queue_length() - before, accepted, "client {client}");
    }
    for _ in 0..200 {
        waiting.push(join_for(&group, 5, Class::Fragment).await);
    }
    assert_eq!(group.queue_length(), 100, "the line of fragments is full");
    let visitor = join_for(&group, 1, Class::Visitor).await;
    assert_eq!(group.queue_length(), 101);
    drop(holder);
    drop(lease(visitor).await);
    let mut refused = 0;
    for task in waiting {
        match task.await.unwrap() {
            Ok(lease) => drop(lease),
            Err(error) => {
                assert_eq!(error, AcquireError::QueueFull);
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 3 * 175 + 185);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_waits_for_its_share_is_let_in_at_once_when_raised() {
    let group = group(&[2], 8);
    let _first = lease(join(&group, Class::Refresh).await).await;
    let enter = || group.enter(PickKey::default(), &TriedSet::new(), Class::Refresh, 0);
    let Ok(Admission::InLine(mut waiting)) = enter() else {
        panic!("the share of refreshes is taken");
    };
    waiting.raise(Class::StaleVisitor);
    let lease = tokio::time::timeout(Duration::from_millis(1), waiting.wait()).await;
    drop(lease.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn where_the_servers_have_no_limit_refreshes_have_one() {
    let group = group(&[0], 8);
    let mut held = Vec::new();
    for _ in 0..40 {
        held.push(join(&group, Class::Refresh).await);
        held.push(join(&group, Class::Visitor).await);
        held.push(join(&group, Class::Mirror).await);
    }
    assert_eq!(in_flight(&group), 32 + 40 + 40);
}

/// Requests of every class that come faster than one server with `slots` can work.
struct Overload {
    seed: u64,
    slots: usize,
    group: Arc<Group>,
    random: Random,
    /// Each with how many had been served when it came.
    waiting: Vec<(Class, usize, AcquireTask)>,
    held: Vec<(Class, Lease)>,
    /// The classes served, in the order of time.
    served: Vec<Class>,
}

impl Overload {
    fn seeded(seed: u64) -> Self {
        let mut random = Random::seeded(seed + 1);
        let slots = 1 + (random.draw() % 6) as usize;
        Self {
            seed,
            slots,
            group: group(&[slots], 1000),
            random,
            waiting: Vec::new(),
            held: Vec::new(),
            served: Vec::new(),
        }
    }

    /// Ten of each class wait, and one of the requests under way ends.
    async fn step(&mut self) {
        for class in [
            Class::Visitor,
            Class::Fragment,
            Class::Refresh,
            Class::Mirror,
        ] {
            let in_line = self.waiting.iter().filter(|(of, ..)| *of == class).count();
            if in_line < 10 {
                let task = join(&self.group, class).await;
                self.waiting.push((class, self.served.len(), task));
            }
        }
        if !self.held.is_empty() {
            let index = self.random.draw() % self.held.len() as u64;
            drop(self.held.swap_remove(index as usize));
        }
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        self.take_leases().await;
    }

    /// Takes the leases that have been given.
    async fn take_leases(&mut self) {
        for (class, joined, task) in std::mem::take(&mut self.waiting) {
            if !task.is_finished() {
                self.waiting.push((class, joined, task));
                continue;
            }
            self.held.push((class, lease(task).await));
            self.served.push(class);
            if class == Class::Visitor {
                self.assert_few_before_a_visitor(joined);
            }
        }
    }

    /// Ten visitors before it at most: one turn of the background's, or two at the edges, and
    /// what fills free slots at the beginning.
    fn assert_few_before_a_visitor(&self, joined: usize) {
        let between = self.served[joined..].iter();
        let background = between.filter(|of| of.is_background()).count();
        assert!(
            background <= 3 + self.slots,
            "seed {}: {background} of the background before a visitor",
            self.seed
        );
    }

    fn served_of(&self, class: Class) -> usize {
        self.served.iter().filter(|of| **of == class).count()
    }
}

/// Visitors and refreshes come faster than the servers can work, from seeds. What must hold:
/// a visitor waits for those before it and one refresh in nine slots, and however many visitors
/// come, one slot in nine (of those that are freed) goes to a refresh, and some to mirrors.
#[tokio::test(start_paused = true)]
async fn no_class_starves() {
    for seed in 0..40 {
        let mut overload = Overload::seeded(seed);
        for _ in 0..600 {
            overload.step().await;
            let held = overload.held.iter();
            let in_background = held.filter(|(class, _)| class.is_background());
            assert!(
                in_background.count() <= (overload.slots * 3 / 4).max(1),
                "seed {seed}"
            );
        }
        let served = overload.served.len();
        let turns = served / (MAX_PASSED_OVER + 1);
        let refreshes = overload.served_of(Class::Refresh);
        let mirrors = overload.served_of(Class::Mirror);
        assert!(
            refreshes * 4 >= turns * 3,
            "seed {seed}: {refreshes} of {turns}"
        );
        assert!(
            mirrors >= turns / (MAX_PASSED_OVER + 2),
            "seed {seed}: {mirrors}"
        );
        let visitors = overload.served_of(Class::Visitor);
        let fragments = overload.served_of(Class::Fragment);
        assert!(visitors * 3 >= served * 2, "seed {seed}");
        assert!(fragments * 4 >= turns * 3, "seed {seed}: {fragments}");
        for (_, _, task) in overload.waiting {
            task.abort();
        }
    }
}
