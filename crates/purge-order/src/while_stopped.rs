//! Purges that are requested while no server runs. They are written to the journals of the folders in which pages
//! are kept, under their locks, and hold from the next start on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cache_decision::address::AddressRules;
use control::{PurgeRequest, Refusal};
use disk_tier::{StoppedPurge, Storage, SystemStorage, TierError};
use shared_request::NameSet;
use site::Site;

use crate::order::Order;

/// Servers of `mayfly serve` whose pages are looked for.
const MAX_SERVED: usize = 1024;
/// How the name of a folder begins in which a zone keeps pages (`site`).
const OF_ZONE: &str = "mayfly-";

/// The folders in which zones keep pages, and the form of the pages' addresses.
pub struct KeptFolders {
    folders: Vec<PathBuf>,
    rules: AddressRules,
}

impl KeptFolders {
    /// The folders of a configuration.
    pub fn of_site(site: &Site) -> KeptFolders {
        let zones = site.http.cache_zones.iter();
        let disks = zones.filter_map(|zone| zone.disk.as_ref());
        KeptFolders {
            folders: disks.map(|disk| disk.folder.clone()).collect(),
            rules: AddressRules::of_site(site),
        }
    }

    /// The folders of all sites that `mayfly serve` has served: each has a folder of its own below `path`. Their
    /// addresses are without these arguments.
    pub fn of_served(path: &Path, without: NameSet) -> KeptFolders {
        let below = |path: &Path| {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            let paths = entries.map(|entry| entry.path());
            paths.filter(|path| path.is_dir()).take(MAX_SERVED)
        };
        let is_of_zone = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(OF_ZONE))
        };
        let mut folders: Vec<PathBuf> = below(path)
            .flat_map(|site| below(&site).filter(is_of_zone))
            .collect();
        folders.sort();
        KeptFolders {
            folders,
            rules: AddressRules::without(without),
        }
    }
}

/// The result of a purge while no server runs.
#[derive(Debug, Default)]
pub struct WrittenPurges {
    /// Folders whose journals have it.
    pub folders: Vec<PathBuf>,
    /// Folders that another process has, and why others could not be written to.
    pub failures: Vec<String>,
}

/// Writes a purge down where pages are kept.
///
/// # Errors
/// The purge is refused, for this reason.
pub fn write_down(kept: &[KeptFolders], request: &PurgeRequest) -> Result<WrittenPurges, Refusal> {
    let mut done = WrittenPurges::default();
    let storage: Arc<dyn Storage> = SystemStorage::new();
    for KeptFolders { folders, rules } in kept {
        let purges = stopped_purges(&Order::of_request(request, rules)?);
        for folder in folders {
            match disk_tier::append_while_stopped(folder, &storage, &purges) {
                Ok(true) => done.folders.push(folder.clone()),
                // The folder has no pages.
                Ok(false) => {}
                Err(error @ (TierError::Locked(_) | TierError::NotOurs(_))) => {
                    done.failures.push(error.to_string());
                }
                Err(error) => done
                    .failures
                    .push(format!("the purge is not written: {error}")),
            }
        }
    }
    Ok(done)
}

fn stopped_purges(order: &Order) -> Vec<StoppedPurge> {
    let mode = match order.soft {
        true => disk_tier::PurgeMode::Soft,
        false => disk_tier::PurgeMode::Hard,
    };
    let names = order.targets.iter().flat_map(|target| &target.names);
    let written = names.filter_map(|name| name.as_target().written());
    let purges = written.map(|target| StoppedPurge {
        mode,
        target: target.into(),
    });
    purges.collect()
}
