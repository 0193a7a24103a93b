//! `mayfly bench` and `mayfly advise`: words of another program, `mayfly-tools`, which takes the place of this
//! process. It lies beside this program, or in a folder of PATH.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use command_line::{Exit, complain};
use inherited_files::InheritedFiles;
use rustix::fs::{Access, access};
use system_error::SystemError;

const PROGRAM: &str = "mayfly-tools";

/// Returns only where the tools do not start. They get the open files of the caller: a shell names some of them in
/// the arguments (`mayfly advise <(zcat LOG)`).
pub fn run(arguments: &[OsString], inherited: InheritedFiles) -> Exit {
    let own = env::current_exe().ok();
    let own = own.as_deref().and_then(Path::parent);
    let path = env::var_os("PATH").unwrap_or_default();
    let Some(program) = find(own, env::split_paths(&path)) else {
        let word = arguments
            .first()
            .map_or_else(String::new, |it| it.to_string_lossy().into_owned());
        return complain(
            Exit::Refused,
            &format!(
                "\"{word}\" needs the program {PROGRAM}, which is neither beside mayfly nor in PATH; Debian's and \
                 RPM's package {PROGRAM} and the archive of mayfly have it, and make build builds it"
            ),
        );
    };
    if rustix::process::geteuid().is_root() && !is_of_administrator(&program) {
        return complain(
            Exit::Refused,
            &format!(
                "{}: root does not start a program that another account may write; install the package, or start it as \
                 that account",
                program.display()
            ),
        );
    }
    inherited.pass_on();
    let error = Command::new(&program).args(arguments).exec();
    complain(
        Exit::Refused,
        &format!("{}: {}", program.display(), SystemError(&error)),
    )
}

/// Returns whether only root, and the account that owns the running program, may write this one or lay another at its
/// path.
fn is_of_administrator(program: &Path) -> bool {
    let owner = |path: &Path| fs::metadata(path).map(|it| it.uid());
    let own = env::current_exe().and_then(|own| owner(&own)).unwrap_or(0);
    let is_closed = |path: Option<&Path>, others: u32| {
        path.and_then(|path| fs::metadata(path).ok())
            .is_some_and(|it| (it.uid() == 0 || it.uid() == own) && it.mode() & others == 0)
    };
    is_closed(Some(program), 0o022) && is_closed(program.parent(), 0o002)
}

/// Relative folders of PATH are left out: what they name depends on the current folder.
fn find(own: Option<&Path>, path: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let folders = own.map(Path::to_owned).into_iter().chain(path);
    let files = folders
        .filter(|it| it.is_absolute())
        .map(|it| it.join(PROGRAM));
    let mut programs = files.filter(|it| it.is_file() && access(it, Access::EXEC_OK).is_ok());
    programs.next()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_tools_beside_the_program_come_before_those_in_path() {
        let folder = tempfile::tempdir().unwrap();
        let [own, other, closed] = ["own", "other", "closed"].map(|it| folder.path().join(it));
        for (folder, mode) in [(&own, 0o755), (&other, 0o755), (&closed, 0o644)] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(PROGRAM), "").unwrap();
            fs::set_permissions(folder.join(PROGRAM), Permissions::from_mode(mode)).unwrap();
        }
        let found =
            |own: Option<&Path>, path: &[&Path]| find(own, path.iter().map(|it| it.to_path_buf()));
        assert_eq!(found(Some(&own), &[&other]), Some(own.join(PROGRAM)));
        let path = [Path::new("."), folder.path(), &closed, &other];
        assert_eq!(found(Some(folder.path()), &path), Some(other.join(PROGRAM)));
        assert_eq!(found(None, &[&closed]), None);
    }

    #[test]
    fn root_starts_no_program_that_others_may_write() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(PROGRAM);
        fs::write(&program, "").unwrap();
        let is_trusted = |of_folder: u32, of_program: u32| {
            fs::set_permissions(folder.path(), Permissions::from_mode(of_folder)).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(of_program)).unwrap();
            is_of_administrator(&program)
        };
        assert!(is_trusted(0o755, 0o755));
        assert!(!is_trusted(0o755, 0o777));
        assert!(!is_trusted(0o755, 0o775));
        assert!(!is_trusted(0o1777, 0o755));
    }
}
