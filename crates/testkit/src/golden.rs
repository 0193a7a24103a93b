//! Golden files: the results of a function, kept in files that are compared with them.
//! `MAYFLY_BLESS=1` writes the results instead. Read the diff before you commit it.

use std::path::{Path, PathBuf};

/// The line between input and result, in a file that holds both.
const RULE: &str = "----------------------------------------\n";

/// Whether files are to be written, not compared.
pub fn is_blessing() -> bool {
    std::env::var_os("MAYFLY_BLESS").is_some_and(|value| value == "1")
}

/// Compares `text` with the file at `path`.
///
/// # Panics
/// When they differ; with the first line that does.
pub fn assert_file(path: &Path, text: &str) {
    if is_blessing() {
        std::fs::write(path, text).expect("a golden file");
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected == text {
        return;
    }
    let same = expected.lines().zip(text.lines());
    let same = same.take_while(|(expected, found)| expected == found);
    let number = same.count();
    panic!(
        "{}: line {} comes out as {:?}; MAYFLY_BLESS=1 writes the file",
        path.display(),
        number + 1,
        text.lines().nth(number)
    );
}

/// A file that contains an input, a rule, and the expected result.
#[derive(Debug)]
pub struct Case {
    pub path: PathBuf,
    pub input: String,
    pub expected: String,
}

/// The files of a folder, in the order of their names.
///
/// # Panics
/// When the folder has no files.
pub fn cases(folder: &Path) -> Vec<Case> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "the golden files are there");
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a golden file");
        let (input, expected) = text.split_once(RULE).unwrap_or((&text, ""));
        Case {
            input: input.to_owned(),
            expected: expected.to_owned(),
            path,
        }
    };
    paths.into_iter().map(read).collect()
}

/// Compares the result of `outcome` for each case's input.
///
/// # Panics
/// When some give something else; with that.
pub fn assert_cases(folder: &Path, outcome: impl Fn(&str) -> String) {
    let mut wrong = Vec::new();
    for case in cases(folder) {
        let outcome = outcome(&case.input);
        if outcome == case.expected {
            continue;
        }
        if is_blessing() {
            let text = format!("{}{RULE}{outcome}", case.input);
            std::fs::write(&case.path, text).expect("a golden file");
        } else {
            wrong.push(format!("{}:\n{outcome}", case.path.display()));
        }
    }
    assert!(wrong.is_empty(), "not as expected:\n{}", wrong.join("\n"));
}
