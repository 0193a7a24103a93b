//! `check --fix`: corrects the lines that have one right form.
//!
//! `FILE.fixed` beside the file; beside an included one, its name begins with a dot as well, so that no
//! `include sites-enabled/*;` reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nginx_conf::Origin;
use site::HazardEdit;

use super::report::CheckReport;

/// The files that were written.
///
/// # Errors
/// A file cannot be written, or has changed since it was read.
pub fn write(report: &CheckReport, in_place: bool) -> Result<Vec<PathBuf>, String> {
    let mut by_source: BTreeMap<_, Vec<&HazardEdit>> = BTreeMap::new();
    for edit in report.hazards.iter().flat_map(|it| &it.edits) {
        by_source.entry(edit.span.source).or_default().push(edit);
    }
    let mut written = Vec::new();
    for (source, edits) in by_source {
        let Some(text) = report.sources.source(source) else {
            continue;
        };
        let path = text.path();
        if text.origin() != Origin::File {
            continue;
        }
        let failed = |path: &Path, error| format!("{}: {error}", path.display());
        let bytes = std::fs::read(path).map_err(|error| failed(path, error))?;
        if bytes != text.text().as_bytes() {
            let path = path.display();
            return Err(format!(
                "{path} is not UTF-8, or has changed since it was read"
            ));
        }
        let mended = site::edited(text.text(), edits.into_iter());
        let target = match in_place {
            true => path.to_owned(),
            false => copy_of(path, source.index() == 0),
        };
        if !in_place {
            // With the permissions of the file.
            std::fs::copy(path, &target).map_err(|error| failed(&target, error))?;
        }
        std::fs::write(&target, mended).map_err(|error| failed(&target, error))?;
        written.push(target);
    }
    Ok(written)
}

fn copy_of(path: &Path, is_main: bool) -> PathBuf {
    let mut name = std::ffi::OsString::from(if is_main { "" } else { "." });
    name.push(path.file_name().unwrap_or_default());
    name.push(".fixed");
    path.with_file_name(name)
}
