//! Commands of the program under test, and what they write.

use std::process::{Child, Command, Output};

/// Runs a command to its end, beside other tasks of the test.
pub async fn output(mut command: Command) -> Output {
    let output = tokio::task::spawn_blocking(move || command.output().expect("the program"));
    output.await.expect("a thread")
}

/// Waits for the end of a command, beside other tasks of the test.
pub async fn ended(child: Child) -> Output {
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output());
    ended.await.expect("a thread").expect("an end")
}

/// Returns what a command wrote to its standard output, and behind that to its standard error.
pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

pub fn code_and_text(output: &Output) -> (i32, String) {
    (output.status.code().expect("an exit code"), text(output))
}
