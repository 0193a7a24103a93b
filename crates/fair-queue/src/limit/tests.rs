//! The limit beside models of servers: time passes by numbers.

use super::*;
use crate::simulation::Random;

/// A machine on which scripts first wait and then compute; more at once than it has cores share them.
#[derive(Clone, Copy)]
struct Machine {
    cores: f64,
    /// The time of a script on a processor.
    computes: f64,
    /// Its time at a database, if that has room for it.
    waits: f64,
    /// Requests that the database serves at once.
    database: f64,
    /// The database runs on the same cores.
    is_database_here: bool,
    /// Other programs that always want a core.
    others: f64,
    /// Times vary by a factor of up to this.
    spread: f64,
}

/// A machine that always has more requests than the limit lets in.
struct Busy {
    limit: ConcurrencyLimit,
    is_measured: bool,
    now: f64,
    /// For each request under way: the waiting and work that remain, and the time it began.
    under_way: Vec<(f64, f64, f64)>,
    load: WorkerLoad,
    random: Random,
    answers: u64,
}

const WORKERS: usize = 16;

impl Busy {
    fn new(seed: u64) -> Self {
        Self {
            limit: ConcurrencyLimit::new(Concurrency::Auto { cores: 2 }, Some(WORKERS)),
            is_measured: true,
            now: 0.0,
            under_way: Vec::new(),
            load: WorkerLoad::default(),
            random: Random(seed),
            answers: 0,
        }
    }

    /// With workers that cannot be looked at.
    fn elsewhere(seed: u64) -> Self {
        Self {
            is_measured: false,
            ..Self::new(seed)
        }
    }

    fn all_workers(seed: u64) -> Self {
        Self {
            limit: ConcurrencyLimit::new(Concurrency::Fixed(WORKERS), Some(WORKERS)),
            ..Self::new(seed)
        }
    }

    fn run(&mut self, machine: Machine, seconds: u64) {
        let until = self.now + seconds as f64 * 1000.0;
        while self.now < until {
            self.step(machine);
            if (self.now as u64).is_multiple_of(1000) && self.is_measured {
                self.load.workers = WORKERS;
                self.limit.note_load(std::mem::take(&mut self.load));
            }
        }
    }

    fn step(&mut self, machine: Machine) {
        while self.under_way.len() < self.limit.limit() {
            let factor = machine.spread.powf(self.random.fraction() * 2.0 - 1.0);
            let (waits, work) = (machine.waits * factor, machine.computes * factor);
            self.under_way.push((waits, work, self.now));
        }
        let waiting = self.under_way.iter().filter(|it| it.0 > 0.0).count() as f64;
        let computing = self.under_way.len() as f64 - waiting;
        let here = match machine.is_database_here {
            true => waiting,
            false => 0.0,
        };
        let pace = (machine.cores / (computing + here + machine.others).max(1.0)).min(1.0);
        let at_database = (machine.database / waiting.max(1.0)).min(1.0);
        let at_database = match machine.is_database_here {
            true => at_database.min(pace),
            false => at_database,
        };
        self.now += 1.0;
        self.load.computing += computing * pace;
        self.load.ready += computing * (1.0 - pace);
        self.load.under_way += computing + waiting;
        let (now, limit, answers) = (self.now, &mut self.limit, &mut self.answers);
        self.under_way.retain_mut(|(waits, work, began)| {
            match *waits > 0.0 {
                true => *waits -= at_database,
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

    fn answers_in(&mut self, machine: Machine, seconds: u64) -> f64 {
        let before = self.answers;
        self.run(machine, seconds);
        (self.answers - before) as f64 / seconds as f64
    }
}

const COMPUTES: Machine = Machine {
    cores: 2.0,
    computes: 80.0,
    waits: 0.0,
    database: 100.0,
    is_database_here: false,
    others: 0.0,
    spread: 1.0,
};
const WAITS: Machine = Machine {
    computes: 2.0,
    waits: 80.0,
    spread: 1.2,
    ..COMPUTES
};

#[test]
fn where_scripts_compute_the_limit_is_the_number_of_cores() {
    let mut busy = Busy::new(1);
    busy.run(COMPUTES, 5);
    assert_eq!(busy.limit.limit(), 2, "{:?}", busy.limit);
    assert_eq!(busy.limit.reason(), LimitReason::Processors);
}

/// What a request costs beside its script looks like waiting, and more scripts at once would share the
/// processors with the page of a visitor.
#[test]
fn a_few_milliseconds_beside_a_script_make_no_place() {
    for waits in [2.0, 5.0, 8.0] {
        for spread in [1.0, 1.3, 10.0] {
            let machine = Machine {
                waits,
                spread,
                ..COMPUTES
            };
            let (mut found, mut all) = (Busy::new(1), Busy::all_workers(1));
            found.run(machine, 2);
            for second in 2..30 {
                found.run(machine, 1);
                assert_eq!(found.limit.limit(), 2, "{waits} ms, second {second}");
            }
            all.run(machine, 30);
            let (rate, most) = (found.answers_in(machine, 60), all.answers_in(machine, 60));
            assert!(rate >= 0.87 * most, "{waits} ms: {rate} of {most}");
        }
    }
}

#[test]
fn where_scripts_wait_the_limit_rises_to_the_workers() {
    for mut busy in [Busy::new(2), Busy::elsewhere(2)] {
        busy.run(WAITS, 10);
        assert_eq!(busy.limit.limit(), WORKERS, "{:?}", busy.limit);
    }
}

/// Scripts that compute and wait in any relation, with costs in a range of one to a hundred, beside other
/// programs or not.
#[test]
fn no_throughput_is_lost_whatever_scripts_do() {
    let pages = [
        (80.0, 0.0),
        (80.0, 8.0),
        (60.0, 20.0),
        (40.0, 40.0),
        (20.0, 60.0),
        (5.0, 75.0),
    ];
    for (computes, waits) in pages {
        // Beside other programs, more scripts get more of the processors.
        for (spread, others, least) in [(1.3, 0.0, 0.87), (10.0, 0.0, 0.87), (10.0, 2.0, 0.4)] {
            let machine = Machine {
                computes,
                waits,
                spread,
                others,
                ..COMPUTES
            };
            let (mut found, mut all) = (Busy::new(1), Busy::all_workers(1));
            found.run(machine, 20);
            let (rate, most) = (found.answers_in(machine, 60), all.answers_in(machine, 60));
            let limit = found.limit.limit();
            assert!(
                rate >= least * most,
                "{computes}+{waits} x{spread}, others {others}: {rate} of {most} with {limit}"
            );
        }
    }
}

#[test]
fn workers_that_run_elsewhere_lose_nothing_by_random_costs() {
    for seed in 0..20 {
        for machine in [COMPUTES, WAITS] {
            let machine = Machine {
                spread: 10.0,
                ..machine
            };
            let (mut found, mut all) = (Busy::elsewhere(seed), Busy::all_workers(seed));
            found.run(machine, 30);
            let (rate, most) = (found.answers_in(machine, 120), all.answers_in(machine, 120));
            assert!(
                rate >= 0.9 * most,
                "seed {seed}: {rate} of {most}, {:?}",
                found.limit
            );
        }
    }
}

/// A database on the same cores, which has more work than PHP.
#[test]
fn a_database_on_the_same_machine_does_not_drive_the_limit_up() {
    let machine = Machine {
        computes: 30.0,
        waits: 50.0,
        is_database_here: true,
        ..COMPUTES
    };
    let mut busy = Busy::new(4);
    busy.run(machine, 30);
    assert!((3..=8).contains(&busy.limit.limit()), "{:?}", busy.limit);
    let rate = busy.answers_in(machine, 30);
    assert!(rate >= 0.95 * 25.0, "{rate} of 25");
}

/// A database that has a tenth of its capacity for a minute.
#[test]
fn a_slow_database_lowers_the_limit_within_five_seconds_and_it_rises_within_ten() {
    let database = Machine {
        computes: 2.0,
        waits: 20.0,
        database: 12.0,
        spread: 1.2,
        ..COMPUTES
    };
    let slow = Machine {
        database: 1.2,
        ..database
    };
    for mut busy in [Busy::new(3), Busy::elsewhere(3)] {
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
}

/// Each query takes ten times as long, however many there are: fewer at once would be no faster.
#[test]
fn pages_that_become_slow_by_themselves_keep_their_places() {
    let mut busy = Busy::new(5);
    busy.run(WAITS, 20);
    let slow = Machine {
        waits: 800.0,
        ..WAITS
    };
    busy.run(slow, 20);
    assert_eq!(busy.limit.limit(), WORKERS, "{:?}", busy.limit);
}

/// Requests that wait in the accept queue of a small pool look like scripts that wait.
#[test]
fn a_pool_of_another_program_gets_two_more_than_it_has_workers() {
    let mut limit = ConcurrencyLimit::new(Concurrency::Auto { cores: 2 }, None);
    for _ in 0..10 {
        limit.note_load(WorkerLoad {
            computing: 100.0,
            ready: 0.0,
            under_way: 20_000.0,
            workers: 5,
        });
    }
    assert_eq!(limit.limit(), 7, "{limit:?}");
}

#[test]
fn a_limit_that_is_not_reached_stays() {
    let mut limit = ConcurrencyLimit::new(Concurrency::Auto { cores: 2 }, Some(16));
    for now in 0..1000 {
        limit.note(5000, false, now * 20);
    }
    assert_eq!((limit.limit(), limit.reason()), (4, LimitReason::Start));
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
