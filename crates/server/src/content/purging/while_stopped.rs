//! Purges that are said while no server runs. They are written to the journals of the folders in which pages are
//! kept, under their locks, and hold from the next start on.

use std::path::PathBuf;
use std::sync::Arc;

use cache_decision::address::AddressRules;
use control::{PurgeRequest, Refusal};
use disk_tier::{StoppedPurge, Storage, SystemStorage, TierError};
use http_cache::PurgeTarget;
use site::Site;

use super::order::Order;

/// What became of a purge while no server runs.
#[derive(Debug, Default)]
pub struct WrittenPurges {
    /// Folders whose journals have it.
    pub folders: Vec<PathBuf>,
    /// Folders that another process has, and why others could not be written to.
    pub failures: Vec<String>,
}

/// Writes a purge down in the folders of a site.
///
/// # Errors
/// What is wrong with the purge.
pub fn write_down(site: &Site, request: &PurgeRequest) -> Result<WrittenPurges, Refusal> {
    let order = Order::of_request(request, &AddressRules::of_site(site))?;
    let mode = match order.soft {
        true => disk_tier::PurgeMode::Soft,
        false => disk_tier::PurgeMode::Hard,
    };
    let mut purges = Vec::new();
    let mut add = |target: PurgeTarget<'_>| {
        let written = target.written();
        purges.extend(written.map(|target| StoppedPurge {
            mode,
            target: target.into(),
        }));
        0
    };
    for target in &order.targets {
        target.named.sum(&mut add);
    }
    let mut done = WrittenPurges::default();
    let storage: Arc<dyn Storage> = SystemStorage::new();
    let disks = site.http.cache_zones.iter();
    for disk in disks.filter_map(|zone| zone.disk.as_ref()) {
        match disk_tier::append_while_stopped(&disk.folder, &storage, &purges) {
            Ok(true) => done.folders.push(disk.folder.clone()),
            // Nothing is kept there.
            Ok(false) => {}
            Err(error @ (TierError::Locked(_) | TierError::NotOurs(_))) => {
                done.failures.push(error.to_string());
            }
            Err(error) => done
                .failures
                .push(format!("the purge is not written: {error}")),
        }
    }
    Ok(done)
}
