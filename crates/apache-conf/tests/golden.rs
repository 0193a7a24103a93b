//! What whole files become: `tests/sites/NAME.htaccess` and `NAME.apache`, with the result beside them in `NAME.conf`.
//! With `MAYFLY_BLESS=1`, the results are written.

use std::path::{Path, PathBuf};

use apache_conf::{Conversion, HtaccessFile, Kind, Options, convert_htaccess, convert_servers};

fn sites() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sites")
}

fn made(path: &Path, text: &str) -> Conversion {
    let name = path.file_name().and_then(|it| it.to_str()).expect("a name");
    match name.ends_with(".htaccess") {
        true => {
            let file = HtaccessFile {
                name: ".htaccess",
                text,
                folder: "/",
            };
            let php = Some("unix:/run/php/php-fpm.sock".to_owned());
            convert_htaccess(
                &[file],
                &Options {
                    php,
                    ..Options::default()
                },
            )
        }
        false => convert_servers(name, text, &|_| Ok(Vec::new()), &Options::default()),
    }
}

#[test]
fn whole_files_become_what_stands_beside_them() {
    let mut count = 0;
    for entry in std::fs::read_dir(sites()).expect("the folder of sites") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|it| it == "conf") {
            continue;
        }
        count += 1;
        let text = std::fs::read_to_string(&path).expect("a text");
        let made = made(&path, &text);
        assert_eq!(
            (made.mistakes.len(), made.count(Kind::Unsafe)),
            (0, 0),
            "{}\n{}",
            path.display(),
            made.text
        );
        testkit::golden::assert_file(&path.with_extension("conf"), &made.text);
    }
    assert_eq!(count, 9);
}
