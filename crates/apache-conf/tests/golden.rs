//! The conversion of virtual hosts: `tests/sites/NAME.apache`, with the result beside them in
//! `NAME.conf`. With `MAYFLY_BLESS=1`, the results are written.

use std::path::{Path, PathBuf};

use apache_conf::{NoteKind, Options, convert_servers};

fn sites() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sites")
}

#[test]
fn whole_files_become_what_stands_beside_them() {
    let mut count = 0;
    for entry in std::fs::read_dir(sites()).expect("the folder of sites") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|it| it != "apache") {
            continue;
        }
        count += 1;
        let text = std::fs::read_to_string(&path).expect("a text");
        let name = path.file_name().and_then(|it| it.to_str()).expect("a name");
        let made = convert_servers(name, &text, &|_| Ok(Vec::new()), &Options::default());
        assert_eq!(
            (made.mistakes.len(), made.count(NoteKind::Unsafe)),
            (0, 0),
            "{}\n{}",
            path.display(),
            made.text
        );
        testkit::golden::assert_file(&path.with_extension("conf"), &made.text);
    }
    assert_eq!(count, 3);
}
