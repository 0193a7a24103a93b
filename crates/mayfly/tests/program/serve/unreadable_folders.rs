//! A folder that cannot be read is named, instead of a site being taken for another kind.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use testkit::process::as_nobody;
use testkit::serving::FolderServer;

use crate::program;

/// `serve --print-config FOLDER` as an account without rights.
fn look(folder: &Path) -> Option<Output> {
    let mut command = as_nobody(program().as_ref(), folder.parent().unwrap());
    command.args(["serve", "--print-config"]).arg(folder);
    command.output().ok()
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_that_may_not_be_read_is_no_site_of_static_files() {
    for (closed, mode) in [("", 0o000), ("", 0o711), ("", 0o744), ("public", 0o000)] {
        let around = FolderServer::folder();
        let site = around.path().join("site");
        let public = site.join("public");
        std::fs::create_dir_all(&public).unwrap();
        for folder in [&site, &public] {
            std::fs::write(folder.join("index.php"), "<?php echo 1;").unwrap();
            set_mode(folder, 0o755);
        }
        if !closed.is_empty() {
            std::fs::remove_file(site.join("index.php")).unwrap();
        }
        set_mode(&site.join(closed), mode);
        let Some(output) = look(&site) else { continue };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        set_mode(&site.join(closed), 0o755);
        assert!(!output.status.success(), "{closed:?} {mode:o}: {said}");
        assert!(
            said.contains("Permission denied"),
            "{closed:?} {mode:o}: {said}"
        );
    }
}
