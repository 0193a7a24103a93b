//! The program by itself; its words are tested where `mayfly` starts it.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly-tools"));
    command.args(arguments).output().expect("the program")
}

#[test]
fn words_of_the_tools_are_explained_and_others_are_refused() {
    let output = run(&["--help"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("advise") && text.contains("bench"), "{text}");
    for (arguments, expected) in [
        (&["serve"][..], "unrecognized subcommand 'serve'"),
        (&["bench", "localhost"], "expected http://"),
        (&["advise"], "<LOG>"),
    ] {
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}
