//! Obstacles that an account with write access to a folder can put in root's way, and files that
//! root put there itself. Only root can act as two accounts, so only root runs these.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::PathBuf;

use super::*;

/// An account with fewer rights.
const NOBODY: u32 = 65534;

/// Root's folder with a folder of an ordinary account in it, and a file that this account must not
/// touch.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Option<Scene> {
        if !is_root() {
            eprintln!("skipped: only root has accounts below it");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let theirs = folder.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(NOBODY), None).unwrap();
        std::fs::write(folder.path().join("secret"), "kept").unwrap();
        Some(Scene { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn secret(&self) -> String {
        std::fs::read_to_string(self.path("secret")).unwrap()
    }

    /// A link as the ordinary account would make it.
    fn their_link(&self, target: &str, name: &str) {
        let name = self.path(name);
        symlink(self.path(target), &name).unwrap();
        std::os::unix::fs::lchown(&name, Some(NOBODY), None).unwrap();
    }

    fn fifo(&self, name: &str, owner: u32) {
        let name = self.path(name);
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &name, FileType::Fifo, mode, 0).unwrap();
        chown(&name, Some(owner), None).unwrap();
    }
}

#[test]
fn links_and_fifos_of_another_account_are_refused_without_waiting() {
    let Some(scene) = Scene::new() else { return };
    scene.their_link("secret", "theirs/link");
    scene.their_link("", "theirs/up");
    std::fs::hard_link(scene.path("secret"), scene.path("theirs/second")).unwrap();
    scene.fifo("theirs/fifo", NOBODY);
    for name in [
        "theirs/link",
        "theirs/up/secret",
        "theirs/second",
        "theirs/fifo",
    ] {
        let path = scene.path(name);
        assert!(append(&path, 0o644).is_err(), "append {name}");
        assert!(write(&path, b"gone", 0o644).is_err(), "write {name}");
    }
    assert_eq!(scene.secret(), "kept");
    assert_eq!(std::fs::metadata(scene.path("secret")).unwrap().uid(), 0);
}

#[test]
fn a_regular_file_in_a_folder_of_another_account_is_written() {
    let Some(scene) = Scene::new() else { return };
    let path = scene.path("theirs/logs/error.log");
    for _ in 0..2 {
        append(&path, 0o644).unwrap().write_all(b"line\n").unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "line\nline\n");
    write(&path, b"7", 0o644).unwrap();
    assert_eq!(read_small(&path).unwrap(), ("7".to_owned(), 0));
    remove(&path).unwrap();
    assert!(!path.exists());
}

#[test]
fn what_root_put_there_itself_is_used() {
    let Some(scene) = Scene::new() else { return };
    symlink(scene.path("theirs"), scene.path("logs")).unwrap();
    symlink("secret", scene.path("link")).unwrap();
    append(&scene.path("logs/x"), 0o644).unwrap();
    assert!(scene.path("theirs/x").exists());
    append(&scene.path("link"), 0o644)
        .unwrap()
        .write_all(b"!")
        .unwrap();
    assert_eq!(scene.secret(), "kept!");
    scene.fifo("fifo", 0);
    let error = append(&scene.path("fifo"), 0o644).unwrap_err();
    assert!(error.to_string().contains("no process reads"), "{error}");
    let reader = rustix::fs::open(
        scene.path("fifo"),
        OFlags::RDONLY | OFlags::NONBLOCK,
        Mode::empty(),
    )
    .unwrap();
    append(&scene.path("fifo"), 0o644)
        .unwrap()
        .write_all(b"line")
        .unwrap();
    let mut bytes = String::new();
    File::from(reader).read_to_string(&mut bytes).unwrap();
    assert_eq!(bytes, "line");
    append(Path::new("/dev/null"), 0o644).unwrap();
    append(Path::new("/dev/stderr"), 0o644).unwrap();
}

#[test]
fn a_link_is_removed_itself() {
    let Some(scene) = Scene::new() else { return };
    scene.their_link("secret", "theirs/pid");
    scene.their_link("", "theirs/up");
    assert!(remove(&scene.path("theirs/up/secret")).is_err());
    remove(&scene.path("theirs/pid")).unwrap();
    assert_eq!(scene.secret(), "kept");
}

#[test]
fn a_folder_is_given_away_only_where_root_alone_could_put_it() {
    let Some(scene) = Scene::new() else { return };
    let owner = |name: &str| std::fs::metadata(scene.path(name)).unwrap().uid();
    std::fs::create_dir(scene.path("mine")).unwrap();
    std::fs::create_dir(scene.path("mine/full")).unwrap();
    scene.their_link("mine", "theirs/temp");
    assert!(make_folder(&scene.path("theirs/temp"), NOBODY).is_err());
    assert_eq!(owner("mine"), 0);
    // Folders that the account made itself, and one that root had made.
    make_folder(&scene.path("theirs/new"), NOBODY).unwrap();
    make_folder(&scene.path("mine"), NOBODY).unwrap();
    assert_eq!((owner("theirs/new"), owner("mine")), (NOBODY, NOBODY));
    // Root's folder, moved there by the account that may write the one above.
    std::fs::create_dir(scene.path("theirs/roots")).unwrap();
    std::fs::write(scene.path("theirs/roots/file"), "").unwrap();
    assert!(make_folder(&scene.path("theirs/roots"), NOBODY).is_err());
    assert_eq!(owner("theirs/roots"), 0);
}

#[test]
fn what_a_former_account_has_left_in_a_folder_goes_along_with_it() {
    use std::os::unix::fs::chown;

    const FORMER: u32 = 61200;
    const ANOTHER: u32 = 61201;
    let Some(scene) = Scene::new() else { return };
    std::fs::create_dir(scene.path("pages")).unwrap();
    std::fs::create_dir(scene.path("pages/folder")).unwrap();
    let owners = [
        ("segment", FORMER),
        ("linked", FORMER),
        ("theirs", ANOTHER),
        ("roots", 0),
    ];
    for (name, owner) in owners {
        let path = scene.path(&format!("pages/{name}"));
        std::fs::write(&path, name).unwrap();
        chown(&path, Some(owner), Some(owner)).unwrap();
    }
    std::fs::hard_link(scene.path("pages/linked"), scene.path("second")).unwrap();
    std::os::unix::fs::symlink(scene.path("secret"), scene.path("pages/link")).unwrap();
    chown(scene.path("pages"), Some(FORMER), Some(FORMER)).unwrap();

    make_folder_with_files(&scene.path("pages"), NOBODY, |uid| uid == FORMER).unwrap();

    let owner = |name: &str| std::fs::metadata(scene.path(name)).unwrap().uid();
    assert_eq!((owner("pages"), owner("pages/segment")), (NOBODY, NOBODY));
    assert_eq!(
        (owner("pages/linked"), owner("pages/theirs")),
        (FORMER, ANOTHER)
    );
    let roots = ["pages/roots", "pages/folder", "pages/link"].map(owner);
    assert_eq!(roots, [0; 3]);
}

#[test]
fn a_file_is_made_for_an_account_in_roots_folders_alone() {
    let Some(scene) = Scene::new() else { return };
    make_for(&scene.path("slow.log"), NOBODY, NOBODY).unwrap();
    assert_eq!(
        std::fs::metadata(scene.path("slow.log")).unwrap().uid(),
        NOBODY
    );
    make_for(&scene.path("secret"), NOBODY, NOBODY).unwrap();
    assert_eq!(std::fs::metadata(scene.path("secret")).unwrap().uid(), 0);
    make_for(&scene.path("theirs/slow.log"), NOBODY, NOBODY).unwrap();
    assert!(!scene.path("theirs/slow.log").exists());
    assert!(keeps_roots_files(scene.folder.path()));
    assert!(!keeps_roots_files(&scene.path("theirs")));
    let everybodys = |mode| {
        std::fs::create_dir_all(scene.path("everybodys")).unwrap();
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(scene.path("everybodys"), mode).unwrap();
        keeps_roots_files(&scene.path("everybodys"))
    };
    assert!(everybodys(0o1777));
    assert!(!everybodys(0o777));
}

#[test]
fn the_mode_of_a_socket_is_not_set_through_a_link() {
    let Some(scene) = Scene::new() else { return };
    let path = scene.path("theirs/http");
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    set_socket_mode(&path, 0o666).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o666);
    std::fs::remove_file(&path).unwrap();
    scene.their_link("secret", "theirs/http");
    assert!(set_socket_mode(&path, 0o666).is_err());
    assert_ne!(mode(&scene.path("secret")), 0o666);
}

#[test]
fn a_file_in_ones_own_folder_is_always_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let own = OwnFolder::make(&path, 0o711).unwrap();
    assert!(OwnFolder::make(&path, 0o711).is_err(), "the name is taken");
    let other = folder.path().join("other");
    std::fs::write(&other, "kept").unwrap();
    symlink(&other, path.join("conf")).unwrap();
    own.write("conf", b"one", None).unwrap();
    own.write("conf", b"two", None).unwrap();
    assert_eq!(std::fs::read_to_string(path.join("conf")).unwrap(), "two");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o711);
}

#[test]
fn a_file_is_replaced_whole_and_a_link_in_its_place_is_not_followed() {
    let Some(scene) = Scene::new() else { return };
    let path = scene.path("theirs/page");
    for text in ["first", "second"] {
        replace(&path, text.as_bytes(), 0o644).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    let file = std::fs::metadata(&path).unwrap();
    assert_eq!((file.uid(), file.permissions().mode() & 0o777), (0, 0o644));
    std::fs::remove_file(&path).unwrap();
    scene.their_link("secret", "theirs/page");
    replace(&path, b"third", 0o644).unwrap();
    assert_eq!(scene.secret(), "kept");
    assert!(path.symlink_metadata().unwrap().is_file());
    // Nor is one on the way.
    scene.their_link("", "theirs/up");
    assert!(replace(&scene.path("theirs/up/secret"), b"lost", 0o644).is_err());
    assert_eq!(scene.secret(), "kept");
    // A name that cannot be replaced leaves nothing behind.
    std::fs::create_dir(scene.path("theirs/folder")).unwrap();
    assert!(replace(&scene.path("theirs/folder"), b"", 0o644).is_err());
    let mut names = std::fs::read_dir(scene.path("theirs")).unwrap();
    assert!(!names.any(|name| name.unwrap().file_name().to_string_lossy().starts_with('.')));
}

#[test]
fn a_folder_for_all_is_made_once_and_only_its_own_mode_is_changed() {
    let Some(scene) = Scene::new() else { return };
    let mode = |path: &PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = scene.path("theirs/folder");
    make_open_folder(&path).unwrap();
    assert_eq!(mode(&path), 0o755);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    make_open_folder(&path).unwrap();
    assert_eq!(mode(&path), 0o700, "one that is there stays as it is");
    std::fs::write(scene.path("theirs/file"), "").unwrap();
    assert!(make_open_folder(&scene.path("theirs/file")).is_err());
}
