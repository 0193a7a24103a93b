//! Huge pages for a large store (crate `huge-pages`): looks at how much the zones hold, once a
//! second while there are requests.

use std::sync::Weak;

use server::exchange::active_configuration::ActiveConfiguration;
use server::worker::{IdlePause, WorkersState};

/// A store is large from here on. Regions of which it uses a part cost some megabytes then, where
/// they would double the memory of a server at rest.
const LARGE_BYTES: u64 = 32 << 20;
/// And small again below this.
const SMALL_BYTES: u64 = LARGE_BYTES / 2;

/// Permits and forbids huge pages for as long as something is served.
pub async fn watch(shared: Weak<WorkersState>) {
    let mut idle = IdlePause::default();
    let mut was_large = false;
    while let Some(shared) = shared.upgrade() {
        shared.pause(&mut idle, was_large).await;
        let large = is_large(was_large, stored_bytes(&shared.configuration()));
        if large != was_large {
            huge_pages::permit(large);
            was_large = large;
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
}
