//! The limit beside models of servers: time passes by numbers.

use super::*;
use crate::simulation::Random;

/// Servers that have `capacity` requests at work, each for `time` milliseconds; more at once take longer
/// each, as on a processor that they share. `waits`: further time of each, in which nothing is used.
#[derive(Clone, Copy)]
struct Machine {
    capacity: f64,
    time: f64,
    waits: f64,
    /// Times vary by a factor of up to this.
    spread: f64,
}

/// A machine that always has more requests than the limit lets in.
struct Busy {
    limit: ConcurrencyLimit,
    now: f64,
    /// For each request under way: the waiting and work that remain, and the time it began.
    under_way: Vec<(f64, f64, f64)>,
    random: Random,
    answers: u64,
}

impl Busy {
    fn new(workers: usize, seed: u64) -> Self {
        Self {
            limit: ConcurrencyLimit::new(Concurrency::Auto { cores: 2 }, Some(workers)),
            now: 0.0,
            under_way: Vec::new(),
            random: Random(seed),
            answers: 0,
        }
    }

    fn run(&mut self, machine: Machine, seconds: u64) {
        let until = self.now + seconds as f64 * 1000.0;
        while self.now < until {
            while self.under_way.len() < self.limit.limit() {
                let factor = machine.spread.powf(self.random.fraction() * 2.0 - 1.0);
                let (waits, work) = (machine.waits * factor, machine.time * factor);
                self.under_way.push((waits, work, self.now));
            }
            let at_work = self.under_way.iter().filter(|it| it.0 <= 0.0).count();
            let pace = (machine.capacity / at_work.max(1) as f64).min(1.0);
            self.now += 1.0;
            let (now, limit, answers) = (self.now, &mut self.limit, &mut self.answers);
            self.under_way.retain_mut(|(waits, work, began)| {
                match *waits > 0.0 {
                    true => *waits -= 1.0,
                    false => *work -= pace,
                }
                let is_over = *waits <= 0.0 && *work <= 0.0;
                if is_over {
                    *answers += 1;
                    limit.note((now - *began) as Millis, true, now as Millis);
                }
                !is_over
            });
        }
    }

    fn answers_in(&mut self, machine: Machine, seconds: u64) -> f64 {
        let before = self.answers;
        self.run(machine, seconds);
        (self.answers - before) as f64 / seconds as f64
    }
}

const COMPUTES: Machine = Machine {
    capacity: 2.0,
    time: 80.0,
    waits: 0.0,
    spread: 1.0,
};
const WAITS: Machine = Machine {
    capacity: 2.0,
    time: 2.0,
    waits: 80.0,
    spread: 1.0,
};

#[test]
fn where_scripts_compute_the_limit_stays_near_the_cores_and_nothing_is_lost() {
    let mut busy = Busy::new(16, 1);
    busy.run(COMPUTES, 20);
    assert!((2..=4).contains(&busy.limit.limit()), "{:?}", busy.limit);
    let rate = busy.answers_in(COMPUTES, 60);
    assert!(rate >= 0.97 * 25.0, "{rate} of 25 answers per second");
}

#[test]
fn where_scripts_wait_the_limit_rises_to_the_workers() {
    let mut busy = Busy::new(16, 2);
    busy.run(WAITS, 10);
    let rate = busy.answers_in(WAITS, 60);
    assert!(rate >= 0.85 * 16_000.0 / 82.0, "{rate}, {:?}", busy.limit);
}

/// Pages of 8 to 800 ms in any order are not taken for a busy machine.
#[test]
fn pages_of_very_different_times_cost_little() {
    for seed in 0..20 {
        let machine = Machine {
            spread: 10.0,
            ..WAITS
        };
        let mut busy = Busy::new(16, seed);
        busy.run(machine, 30);
        let found = busy.answers_in(machine, 120);
        let mut fixed = Busy::new(16, seed);
        fixed.limit = ConcurrencyLimit::new(Concurrency::Fixed(16), Some(16));
        let most = fixed.answers_in(machine, 120);
        assert!(found >= 0.6 * most, "seed {seed}: {found} of {most}");
    }
}

/// A database that has a tenth of its capacity for a minute.
#[test]
fn a_slow_database_lowers_the_limit_within_five_seconds_and_it_rises_within_ten() {
    let database = Machine {
        capacity: 12.0,
        time: 20.0,
        waits: 20.0,
        spread: 1.2,
    };
    let slow = Machine {
        capacity: 1.2,
        ..database
    };
    let mut busy = Busy::new(16, 3);
    busy.run(database, 30);
    let usual = busy.limit.limit();
    assert!(usual >= 12, "{:?}", busy.limit);
    busy.run(slow, 5);
    assert!(busy.limit.limit() <= usual / 2, "{:?}", busy.limit);
    busy.run(slow, 55);
    assert!(busy.limit.limit() <= usual / 2, "{:?}", busy.limit);
    let while_slow = busy.limit.limit();
    busy.run(database, 10);
    let risen = busy.limit.limit();
    assert!(
        risen > while_slow && risen * 4 >= usual * 3,
        "{:?}",
        busy.limit
    );
}

#[test]
fn a_limit_that_is_not_reached_stays() {
    let mut limit = ConcurrencyLimit::new(Concurrency::Auto { cores: 2 }, Some(16));
    for now in 0..1000 {
        limit.note(5000, false, now * 20);
    }
    assert_eq!((limit.limit(), limit.reason()), (4, LimitReason::Enough));
}

/// Scripts that ask their own site and wait for the answer hold all places.
#[test]
fn scripts_that_wait_for_others_in_line_do_not_stop_the_site() {
    let mut limit = ConcurrencyLimit::new(Concurrency::Auto { cores: 2 }, Some(6));
    limit.note(80, true, 1000);
    for second in 2..4 {
        limit.note_waiting(4, second * 1000);
        assert_eq!(limit.limit(), 4);
    }
    for second in 4..20 {
        limit.note_waiting(limit.limit(), second * 1000);
    }
    assert_eq!(limit.limit(), 6);
}

#[test]
fn a_number_stays_and_no_limit_is_above_the_workers() {
    let mut limit = ConcurrencyLimit::new(Concurrency::Fixed(3), Some(16));
    for now in 0..1000 {
        limit.note(now, true, now * 20);
    }
    assert_eq!(
        (limit.limit(), limit.reason()),
        (3, LimitReason::Configured)
    );
    let mut auto = ConcurrencyLimit::new(Concurrency::Auto { cores: 8 }, Some(4));
    assert_eq!(auto.limit(), 4);
    auto.set_workers(Some(1));
    assert_eq!(auto.limit(), 1);
}
