//! Huge pages for a large store (crate `huge-pages`): looks at how much the zones hold, once a second while there
//! are requests. A server at rest also gives back the memory that its first thread keeps at hand.

use std::sync::Weak;

use server::exchange::active_configuration::ActiveConfiguration;
use server::worker::{IdlePause, WorkersState, spare_objects};

/// A store is large from here on. Regions of which it uses a part cost some megabytes then, where
/// they would double the memory of a server at rest.
const LARGE_BYTES: u64 = 32 << 20;
/// And small again below this.
const SMALL_BYTES: u64 = LARGE_BYTES / 2;

/// Permits and forbids huge pages for as long as something is served.
pub async fn watch(shared: Weak<WorkersState>) {
    let mut idle = IdlePause::default();
    let mut was_large = false;
    // The most that was stored since the store became large.
    let mut most_bytes = 0;
    while let Some(shared) = shared.upgrade() {
        shared.pause(&mut idle, most_bytes > 0).await;
        let bytes = stored_bytes(&shared.configuration());
        let large = is_large(was_large, bytes);
        if large != was_large {
            huge_pages::permit(large);
            was_large = large;
        }
        if large {
            most_bytes = bytes.max(most_bytes);
        }
        if idle.is_long() {
            spare_objects::give_back();
            if !large && most_bytes > 0 {
                shared.rest(std::mem::take(&mut most_bytes));
            }
        }
    }
}

fn stored_bytes(configuration: &ActiveConfiguration) -> u64 {
    configuration
        .live
        .zones
        .iter()
        .map(|zone| zone.used_bytes())
        .sum()
}

fn is_large(was_large: bool, bytes: u64) -> bool {
    match was_large {
        true => bytes >= SMALL_BYTES,
        false => bytes > LARGE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn a_store_that_shrinks_a_little_stays_large() {
        for (was_large, bytes, expected) in [
            (false, 0, false),
            (false, LARGE_BYTES, false),
            (false, LARGE_BYTES + 1, true),
            (true, LARGE_BYTES, true),
            (true, SMALL_BYTES, true),
            (true, SMALL_BYTES - 1, false),
        ] {
            assert_eq!(is_large(was_large, bytes), expected, "{was_large} {bytes}");
        }
    }
    type Object = [u8; 3584];

    fn address(object: &Object) -> usize {
        std::ptr::from_ref(object).addr()
    }

    /// Frees objects, the one with the highest address last; whether the next one has that address, as the last that
    /// a thread keeps. An arena gives the lowest.
    fn has_the_last(before_the_next: impl FnOnce()) -> bool {
        let mut objects: Vec<_> = (0..100).map(|_| black_box(Box::new([0; 3584]))).collect();
        objects.sort_by_key(|object| address(object));
        let highest = objects.last().map(|object| address(object));
        objects.into_iter().for_each(drop);
        before_the_next();
        let next: Box<Object> = black_box(Box::new([0; 3584]));
        Some(address(&next)) == highest
    }

    fn anonymous_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("readable");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .expect("Linux 4.5");
        line.trim()
            .trim_end_matches(" kB")
            .parse::<u64>()
            .expect("a number")
            << 10
    }

    #[test]
    fn regions_are_given_back_without_being_written_to() {
        const BYTES: u64 = 1 << 30;
        let before = anonymous_bytes();
        spare_objects::give_back_regions(BYTES);
        // Other tests allocate meanwhile.
        assert!(anonymous_bytes() < before + BYTES / 4);
    }

    #[test]
    fn spare_objects_of_a_thread_are_given_back_and_it_keeps_more_afterwards() {
        let apart = std::thread::spawn(|| {
            assert!(has_the_last(|| {}));
            assert!(!has_the_last(spare_objects::give_back));
            assert!(has_the_last(|| {}));
        });
        apart.join().expect("no panic");
    }
}
