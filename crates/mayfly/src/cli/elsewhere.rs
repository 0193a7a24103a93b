//! Answers to words and options of other programs: they name Mayfly's equivalents.

use std::ffi::OsString;

/// The words, for the message about a mistyped one.
pub const WORDS: [&str; 16] = [
    "serve", "check", "convert", "explain", "purge", "warm", "top", "advise", "bench", "doctor",
    "upgrade", "nodes", "run", "cache", "help", "version",
];

/// Words of other programs, and their equivalents here.
const ELSEWHERE: [(&[&str], &str); 6] = [
    (
        &["start", "up"],
        "mayfly serve DIR for a folder, mayfly -c FILE for a configuration",
    ),
    (&["stop", "shutdown", "down"], "mayfly -s stop"),
    (&["quit"], "mayfly -s quit"),
    (&["reload", "restart"], "mayfly -s reload"),
    (&["reopen"], "mayfly -s reopen"),
    (&["test", "validate", "lint"], "mayfly check FILE"),
];

/// Returns the message for a first word that is no command.
pub fn unknown(word: &str) -> String {
    let elsewhere = ELSEWHERE.iter().find(|(words, _)| words.contains(&word));
    let tip = if let Some((_, instead)) = elsewhere {
        format!("\n  tip: {instead}\n")
    } else if let Some(meant) = nginx_conf::did_you_mean(word, WORDS) {
        format!("\n  tip: did you mean \"{meant}\"?\n")
    } else if word.ends_with(".conf") {
        format!("\n  tip: mayfly -c {word}\n")
    } else if word.contains('/') || word == "." {
        format!("\n  tip: mayfly serve {word}\n")
    } else {
        String::new()
    };
    format!(
        "mayfly: there is no command \"{word}\"\n{tip}\n\
         Commands: {}. Flags are nginx's: mayfly -h shows them.\n",
        WORDS.join(", ")
    )
}

/// Options that other programs have for where to listen.
const LISTEN_ELSEWHERE: [&str; 9] = [
    "--port",
    "-p",
    "--host",
    "-H",
    "--bind",
    "-b",
    "--address",
    "--addr",
    "-l",
];

/// The complaint, with the equivalent if another program's option was typed.
pub fn with_tip(message: String, arguments: &[OsString]) -> String {
    let typed = |option: &str| {
        arguments.iter().any(|argument| {
            let argument = argument.to_string_lossy();
            argument
                .split_once('=')
                .map_or(&*argument, |(name, _)| name)
                == option
        })
    };
    match LISTEN_ELSEWHERE.iter().find(|option| typed(option)) {
        Some(option) => {
            // clap proposes to pass it on as a value, which is never meant.
            let kept: Vec<&str> = message
                .lines()
                .filter(|line| !line.contains("as a value, use"))
                .collect();
            format!(
                "{}\n  tip: instead of {option} use --listen ADDR:PORT, as in --listen 127.0.0.1:8080\n",
                kept.join("\n").replace("\n\n\n", "\n\n")
            )
        }
        None => message,
    }
}
