//! Manual pages and completions of shells, from the definitions that the help is made from. A package has
//! them; `mayfly --as=manual FOLDER` writes them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::cli::{flags, words};
use crate::paths;

/// Shells of Debian's packages.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes `mayfly.1`, a page for each word such as `mayfly-serve.1`, and a file for each shell.
///
/// # Errors
/// The error of the system.
pub fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut program = words::definition().version(env!("CARGO_PKG_VERSION"));
    for shell in SHELLS {
        let mut file = File::create(folder.join(format!("mayfly.{shell}")))?;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut program, "mayfly", &mut text);
        file.write_all(&text)?;
    }
    // With the names of the pages of words, which `build` makes of theirs.
    program.build();
    let words = program.get_subcommands().filter(|word| !word.is_hide_set());
    for word in words.filter(|word| word.get_name() != "help") {
        let name = format!("mayfly-{}", word.get_name());
        let mut text = Vec::new();
        page(word.clone().display_name(&*name), &name).render(&mut text)?;
        fs::write(folder.join(format!("{name}.1")), text)?;
    }
    let mut text = Vec::new();
    page(tools(), "mayfly-tools").render(&mut text)?;
    fs::write(folder.join("mayfly-tools.1"), text)?;
    fs::write(folder.join("mayfly.1"), main_page(program)?)
}

/// The page of a command. No date: two builds of the same sources are the same.
fn page(command: clap::Command, name: &str) -> Man {
    Man::new(command.version(env!("CARGO_PKG_VERSION")))
        .title(name.to_uppercase())
        .section("1")
        .source(format!("Mayfly {}", env!("CARGO_PKG_VERSION")))
        .manual("Mayfly")
}

/// The program that `mayfly` starts for some of its words.
fn tools() -> clap::Command {
    clap::Command::new("mayfly-tools")
        .about("The tools of Mayfly, which mayfly bench and mayfly advise start")
        .after_help("Its words have pages of their own: mayfly-advise(1), mayfly-bench(1).")
}

/// The page of the program: also nginx's flags, the files and the signals.
fn main_page(program: clap::Command) -> io::Result<Vec<u8>> {
    let manual = page(program, "mayfly");
    let mut text = Vec::new();
    manual.render_title(&mut text)?;
    manual.render_name_section(&mut text)?;
    manual.render_synopsis_section(&mut text)?;
    manual.render_description_section(&mut text)?;
    manual.render_subcommands_section(&mut text)?;
    let mut roff = Roff::new();
    roff.control("SH", ["FLAGS"]);
    as_it_is(&mut roff, &flags::help());
    roff.control("SH", ["FILES"]);
    let files = [
        (paths::CONF, "the configuration"),
        ("/var/log/mayfly", "logs"),
        ("/var/lib/mayfly", "certificates and temporary files"),
        ("/var/cache/mayfly", "stored responses"),
        (
            "/run/mayfly",
            "the pid file, the control socket, and the sockets of PHP",
        ),
    ];
    let signals = [
        ("TERM, INT", "stop at once"),
        ("QUIT", "stop when the requests under way are finished"),
        ("HUP", "read the configuration again"),
        ("USR1", "open the logs again"),
        ("USR2", "have the program at the same path take its place"),
    ];
    entries(&mut roff, &files);
    roff.control("SH", ["SIGNALS"]);
    entries(&mut roff, &signals);
    roff.to_writer(&mut text)?;
    Ok(text)
}

fn entries(roff: &mut Roff, entries: &[(&str, &str)]) {
    for (name, meaning) in entries {
        roff.control("TP", []);
        roff.text([roman(*name)]);
        roff.text([roman(*meaning)]);
    }
}

/// Lines that are not filled.
fn as_it_is(roff: &mut Roff, text: &str) {
    roff.control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_page_and_every_shell_its_completions() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        for word in words::definition().get_subcommands() {
            let page = read(&format!("mayfly-{}.1", word.get_name()));
            assert!(page.contains(".SH SYNOPSIS"), "{page}");
        }
        assert!(read("mayfly-serve.1").contains(r"\-\-wordpress\-plugin"));
        assert!(read("mayfly-tools.1").contains("mayfly\\-bench(1)"));
        let program = read("mayfly.1");
        for part in [
            "\\-s signal",
            "/var/log/mayfly",
            "mayfly\\-serve(1)",
            "USR1",
        ] {
            assert!(program.contains(part), "{part}: {program}");
        }
        for shell in SHELLS {
            assert!(read(&format!("mayfly.{shell}")).contains("wordpress-plugin"));
        }
    }
}
