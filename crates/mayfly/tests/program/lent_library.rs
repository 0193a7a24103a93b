//! The program with a library of `scripts/faults/` between it and the system: a file with a number, which the test
//! sets, selects the library's behaviour.

use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::program;

/// A library that the program is lent.
pub struct LentLibrary {
    folder: TempDir,
}

impl LentLibrary {
    /// Makes the library from a file of `scripts/faults/`, which finds its number by a variable. `None` if there
    /// is no C compiler.
    pub fn make(source: &str, variable: &str) -> Option<LentLibrary> {
        let folder = tempfile::tempdir().unwrap();
        let faults = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/faults");
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(folder.path().join("lent.so"))
            .arg(faults.join(source))
            .status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no C compiler");
            return None;
        }
        let lent = LentLibrary { folder };
        lent.set(0);
        let script = format!(
            "#!/bin/sh\nexport LD_PRELOAD={0}/lent.so {variable}={0}/number\nexec {1} \"$@\"\n",
            lent.folder.path().display(),
            program()
        );
        let path = lent.program();
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        // The account that serves reads it as well.
        std::fs::set_permissions(lent.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Some(lent)
    }

    /// The program, as it sees the library.
    pub fn program(&self) -> String {
        self.folder.path().join("mayfly").display().to_string()
    }

    pub fn set(&self, number: i64) {
        // In its place: a program that has mapped the file must not find it empty meanwhile.
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.folder.path().join("number"));
        file.unwrap()
            .write_all_at(&number.to_ne_bytes(), 0)
            .unwrap();
    }
}
