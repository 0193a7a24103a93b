//! How this program was started, so that another one can be started in its place: from the same path, where a
//! newer file may lie by then, with the same arguments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli::{DETACHED, SUCCESSOR};

/// The file and the arguments that this program was started with.
#[derive(Clone, Debug)]
pub struct StartedProgram {
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
}

impl StartedProgram {
    /// To be called while the current folder is the one that it was started in.
    pub fn of_this_process() -> StartedProgram {
        let mut arguments = std::env::args_os();
        let typed = arguments.next().unwrap_or_default();
        let is_own = |argument: &OsString| argument == DETACHED || argument == SUCCESSOR;
        let arguments = arguments.skip_while(is_own).collect();
        StartedProgram {
            path: path(Path::new(&typed)),
            arguments,
        }
    }
}

/// The path that was typed, as nginx takes it. A link in it may lead to another version later, so that it is
/// not resolved. A program that the shell found by `PATH` is found so again.
fn path(typed: &Path) -> PathBuf {
    let is_path = typed.components().count() > 1 || typed.is_absolute();
    let found = match is_path {
        true => std::path::absolute(typed).ok(),
        false => std::env::var_os("PATH").and_then(|folders| {
            let mut files = std::env::split_paths(&folders).map(|folder| folder.join(typed));
            files.find(|file| !typed.as_os_str().is_empty() && file.is_file())
        }),
    };
    let is_this = |path: &PathBuf| path.is_file();
    found
        .filter(is_this)
        .or_else(|| std::env::current_exe().ok())
        .unwrap_or_else(|| typed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_path_stays_a_name_is_looked_up_and_nonsense_is_this_program() {
        assert_eq!(path(Path::new("/bin/sh")), Path::new("/bin/sh"));
        let found = path(Path::new("sh"));
        assert!(found.is_absolute() && found.ends_with("sh"), "{found:?}");
        let own = std::env::current_exe().unwrap();
        for nonsense in ["", "/nowhere/mayfly", "no-such-program-anywhere"] {
            assert_eq!(path(Path::new(nonsense)), own, "{nonsense}");
        }
    }
}
