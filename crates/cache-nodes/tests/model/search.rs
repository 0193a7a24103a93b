//! Searching for a history that breaks the promise: at random, and through all histories of a small
//! world.

use crate::world::{Bounds, Event, OldAnswer, World};
use cache_nodes::Rule;
use foldhash::quality::FixedState;
use std::collections::HashSet;
use std::hash::BuildHasher;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// A history that breaks the promise.
#[derive(Debug)]
pub struct FoundHistory {
    pub seed: u64,
    pub steps: u64,
    #[expect(dead_code, reason = "shown by Debug")]
    pub events: Vec<Event>,
    #[expect(dead_code, reason = "shown by Debug")]
    pub answer: OldAnswer,
}

/// How likely each kind of event is, at each node: drawn anew now and then, so that in one history
/// nodes are cut off and others race, and in another nothing is lost and time stands still.
struct Weights([[u32; NODES]; KINDS]);

const NODES: usize = 4;
const KINDS: usize = 25;

impl Weights {
    fn draw(random: &mut Random) -> Weights {
        const WEIGHTS: [u32; 6] = [0, 1, 1, 4, 16, 64];
        let kinds: [usize; KINDS] = std::array::from_fn(|_| random.below(WEIGHTS.len()));
        let nodes: [usize; NODES] = std::array::from_fn(|_| random.below(4));
        Weights(kinds.map(|kind| nodes.map(|node| WEIGHTS[kind] * [0, 1, 2, 8][node])))
    }

    fn choose(&self, events: &[Event], random: &mut Random) -> Option<Event> {
        let weight = |event: &Event| {
            let (kind, node) = event.kind();
            self.0[kind][node.map_or(NODES - 1, |node| node)] as usize
        };
        let sum: usize = events.iter().map(weight).sum();
        if sum == 0 {
            return None;
        }
        let mut left = random.below(sum);
        events.iter().copied().find(|event| {
            let weight = weight(event);
            let is_here = left < weight;
            left = left.saturating_sub(weight);
            is_here
        })
    }
}

/// Runs the history of a seed to its end. `Err`: it breaks the promise.
pub fn run(bounds: Bounds, left_out: Option<Rule>, seed: u64) -> Result<u64, FoundHistory> {
    let mut random = Random(seed);
    let mut world = World::new(draw_bounds(bounds, &mut random), left_out);
    let mut weights = Weights::draw(&mut random);
    let mut history = Vec::new();
    let mut events = Vec::new();
    // Histories end by themselves: bounded events run out. Some events can repeat for ever.
    for steps in 0..STEPS {
        events.clear();
        world.events(&mut events);
        if events.is_empty() {
            return Ok(steps);
        }
        if random.below(12) == 0 {
            weights = Weights::draw(&mut random);
        }
        let Some(event) = weights.choose(&events, &mut random) else {
            weights = Weights::draw(&mut random);
            continue;
        };
        world.apply(event);
        history.push(event);
        if let Some(answer) = world.old_answer() {
            return Err(FoundHistory {
                seed,
                steps,
                events: history,
                answer,
            });
        }
    }
    Ok(STEPS)
}

const STEPS: u64 = 300;

/// In each history some kinds of faults cannot happen: the fewer there are, the further it gets.
fn draw_bounds(most: Bounds, random: &mut Random) -> Bounds {
    let mut draw = |most: u8| match random.below(3) {
        0 => 0,
        _ => most,
    };
    Bounds {
        crashes: draw(most.crashes),
        failovers: draw(most.failovers),
        trims: draw(most.trims),
        other_purges: draw(most.other_purges),
        flushes: draw(most.flushes),
        odd_ticks: draw(most.odd_ticks),
        losses: draw(most.losses),
        has_disk: draw(u8::from(most.has_disk)) == 1,
        ..most
    }
}

/// Runs seeds from `first` on, until `steps` are done. How many steps it took.
pub fn at_random(
    bounds: Bounds,
    left_out: Option<Rule>,
    first: u64,
    steps: u64,
) -> Result<u64, (u64, FoundHistory)> {
    let mut done = 0;
    let mut seed = first;
    while done < steps {
        match run(bounds, left_out, seed) {
            Ok(taken) => done += taken,
            Err(found) => return Err((done + found.steps, found)),
        }
        seed += 1;
    }
    Ok(done)
}

/// Makes a written history of a settled world happen. `Err`: the number of an event that cannot happen then.
pub fn play(
    bounds: Bounds,
    left_out: Option<Rule>,
    history: &[Event],
) -> Result<Option<OldAnswer>, usize> {
    let mut world = World::settled(bounds, left_out);
    let mut events = Vec::new();
    for (at, &event) in history.iter().enumerate() {
        events.clear();
        world.events(&mut events);
        if !events.contains(&event) {
            return Err(at);
        }
        world.apply(event);
        if let Some(answer) = world.old_answer() {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// The statistics of [`all_states`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ClosedSearch {
    pub states: usize,
    /// The states in which a purge has returned.
    pub with_returned_purge: usize,
    /// The states in which some node would answer from memory.
    pub with_answer: usize,
    /// Steps between states, to known ones too.
    pub steps: usize,
}

/// Goes through all states that can be reached from a settled world, depth first: the possible events are bounded, so
/// that each history ends. `Err`: an old answer, or `None` if there are more states than `limit`.
pub fn all_states(
    bounds: Bounds,
    left_out: Option<Rule>,
    limit: usize,
) -> Result<ClosedSearch, Option<OldAnswer>> {
    // Each state is known by 128 bits of two sums: that two states share both need not be feared.
    let sums = [FixedState::with_seed(1), FixedState::with_seed(2)];
    let sum = |world: &World| sums.each_ref().map(|state| state.hash_one(world));
    let start = World::settled(bounds, left_out);
    let mut known = HashSet::from([sum(&start)]);
    let mut open = vec![start];
    let mut events = Vec::new();
    let mut done = ClosedSearch::default();
    while let Some(world) = open.pop() {
        done.states += 1;
        done.with_returned_purge += usize::from(world.has_returned());
        done.with_answer += usize::from(world.has_answer());
        events.clear();
        world.events(&mut events);
        for &event in &events {
            let mut then = world.clone();
            then.apply(event);
            done.steps += 1;
            if !known.insert(sum(&then)) {
                continue;
            }
            if let Some(answer) = then.old_answer() {
                return Err(Some(answer));
            }
            open.push(then);
        }
        if known.len() > limit {
            return Err(None);
        }
    }
    Ok(done)
}
