//! Whether the glibc of a program has all functions that the library needs.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The newest version of glibc that the library needs a function of. With an older glibc the program would not start.
/// Before 2.33 programs also ask for facts of files by `__xstat`, which the library does not note.
pub(crate) const LEAST: &str = "2.34";

/// Larger than any glibc.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// `loader` is the program loader that the program names; glibc puts its C library beside the file that this leads to.
/// Without a file there, nothing speaks against it.
pub(crate) fn is_older(loader: &Path) -> bool {
    let library = loader
        .canonicalize()
        .map(|it| it.with_file_name("libc.so.6"));
    let mut bytes = Vec::new();
    let read = library
        .and_then(File::open)
        .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    read.is_ok() && !names(&bytes, LEAST)
}

/// Whether the table of names of an ELF file has this version of glibc.
fn names(file: &[u8], version: &str) -> bool {
    let name = format!("GLIBC_{version}\0");
    file.windows(name.len()).any(|it| it == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn library_needs_the_least_version_and_no_newer_one() {
        let library = crate::LIBRARY;
        let newer = (35..100).find(|minor| names(library, &format!("2.{minor}")));
        assert_eq!((names(library, LEAST), newer), (true, None));
    }

    #[test]
    fn older_glibc_is_recognised_beside_the_loader_that_a_link_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let loader = folder.path().join("ld-linux-x86-64.so.2");
        fs::create_dir(folder.path().join("real")).unwrap();
        fs::write(folder.path().join("real/ld-2.31.so"), b"").unwrap();
        std::os::unix::fs::symlink("real/ld-2.31.so", &loader).unwrap();
        assert!(!is_older(&loader), "no C library beside it");
        let library = folder.path().join("real/libc.so.6");
        for (names, older) in [
            (&b"\0GLIBC_2.2.5\0GLIBC_2.31\0"[..], true),
            (b"\0GLIBC_2.31\0GLIBC_2.34\0GLIBC_2.36\0", false),
            (b"\0GLIBC_2.341\0", true),
            (b"", true),
        ] {
            fs::write(&library, names).unwrap();
            assert_eq!(is_older(&loader), older, "{names:?}");
        }
    }
}
