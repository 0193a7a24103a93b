//! The library that PHP is started with where pages are learned (`cache_learn`): written where PHP can load it
//! from, and only this account and root can change it.

use std::io;
use std::path::PathBuf;

use php_pool::LearningSpec;
use site::PhpPool;

use crate::paths;
use crate::processes::journal::Journal;

/// The folder of the library, below that for pages: where `/run` is, no program may be started from in many
/// systems.
const FOLDER: &str = "library";

/// Returns how PHP of a pool is started. If it cannot load the library, the log has the reason, and no page is
/// learned.
pub fn spec(pool: &PhpPool, journal: &Journal) -> LearningSpec {
    let library = installed(pool, journal).inspect_err(|why| {
        journal.warn(format_args!(
            "php_pool \"{}\": no page is learned (cache_learn): {why}",
            pool.name
        ));
    });
    LearningSpec {
        library: library.ok(),
    }
}

fn installed(pool: &PhpPool, journal: &Journal) -> Result<PathBuf, String> {
    let php = php_pool::find_php_fpm(pool.binary.as_deref()).map_err(|error| error.to_string())?;
    let library = preload::library_for(&php);
    let library = library.map_err(|error| format!("{}: {error}", php.display()))?;
    let folder = paths::cache().join(FOLDER);
    let cannot = |error: io::Error| {
        format!(
            "the library cannot be put into {}: {error}",
            folder.display()
        )
    };
    // If this folder cannot be made, the one below it cannot, which is then reported.
    let _ = trusted_path::make_open_folder(&paths::cache());
    trusted_path::make_open_folder(&folder).map_err(cannot)?;
    let installed = preload::install(library, &folder).map_err(cannot)?;
    if !installed.changers.is_empty() {
        let changers: Vec<_> = installed.changers.iter().map(ToString::to_string).collect();
        journal.notice(format_args!(
            "php_pool \"{}\": the library in {} could be changed by {}",
            pool.name,
            folder.display(),
            changers.join(", ")
        ));
    }
    Ok(installed.path)
}
