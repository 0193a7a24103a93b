//! `mayfly advise`: reads access logs, and says which lifetime spares how much.

use std::io::{self, IsTerminal, Write};

use ::numbers::TopEntry;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use log_advice::{Format, Input, InputError, Keys, Rules, Study};
use shared_request::NameSet;

use crate::cli::AdviseArgs;
use crate::commands::running_server::{complain, explained, find, printable};
use crate::exit::Exit;
use system_error::SystemError;

/// Does what was typed.
pub fn run(args: &AdviseArgs) -> Exit {
    if args.learned {
        return learned(args);
    }
    let format = match args.format.as_deref().map(Format::parse).transpose() {
        Ok(format) => format,
        Err(error) => return complain(Exit::Refused, &format!("--format: {error}")),
    };
    let keys = if args.plain_keys {
        Keys::Plain
    } else {
        Keys::Shared
    };
    let advice = Input::open(args.logs.iter().cloned(), format).and_then(|input| {
        let mut study = Study::new(rules(keys));
        let bar = bar(input.bytes());
        let bad_lines = input.read(&mut study, |bytes| bar.set_position(bytes))?;
        bar.finish_and_clear();
        let mut advice = study.advice();
        advice.bad_lines = bad_lines;
        Ok(advice)
    });
    let advice = match advice {
        Ok(advice) => advice,
        Err(InputError { path, error }) => {
            let message = format!("{}: {}", path.display(), SystemError(&error));
            return complain(Exit::Refused, &message);
        }
    };
    let text = match args.json {
        // Texts, and numbers of which none is infinite, are always JSON.
        true => serde_json::to_string_pretty(&advice).unwrap_or_default() + "\n",
        false => advice.to_text(),
    };
    // A pipe that was closed wants no more.
    let _ = io::stdout().write_all(text.as_bytes());
    match advice.lines {
        0 => complain(Exit::Refused, "no line of these logs could be read"),
        _ => Exit::Done,
    }
}

/// What makes learned pages suspect most often, by the running server.
fn learned(args: &AdviseArgs) -> Exit {
    let event_loop = match crate::processes::event_loop::build() {
        Ok(event_loop) => event_loop,
        Err(error) => return complain(Exit::Refused, &format!("could not start: {error}")),
    };
    let asked = event_loop.block_on(async {
        let path = find(&args.server, &[]).await?;
        let pages = control::client::pages(&path).await;
        pages.map_err(|error| explained(&path, &error))
    });
    match asked {
        Ok(pages) => {
            let text = match args.json {
                true => serde_json::to_string_pretty(&pages.noisy).unwrap_or_default() + "\n",
                false => noisy(&pages.noisy),
            };
            // A pipe that was closed wants no more.
            let _ = io::stdout().write_all(text.as_bytes());
            Exit::Done
        }
        Err((exit, message)) => complain(exit, &message),
    }
}

/// The statements for people. Those of all pages that are written every minute keep no page for long.
fn noisy(entries: &[TopEntry]) -> String {
    if entries.is_empty() {
        return "no write has concerned a learned page yet\n".to_owned();
    }
    let mut text = format!("{:>8} {:>10}  STATEMENT OF PAGES\n", "WRITES", "SUSPECT");
    for entry in entries {
        let name: String = entry.name.chars().map(printable).collect();
        text.push_str(&format!(
            "{:>8} {:>10}  {name}\n",
            entry.count, entry.weight
        ));
    }
    text
}

fn rules(keys: Keys) -> Rules {
    let known = serve_folder::known_names();
    let set = |names: &[&'static str]| NameSet::new(names.iter().map(|name| name.as_bytes()));
    Rules {
        keys,
        ignored_arguments: set(known.ignored_arguments),
        ignored_cookies: set(known.ignored_cookies),
        personal_cookies: set(&known.personal_cookies),
        personal_parts: known.personal_parts,
    }
}

/// How far it is, for a terminal.
fn bar(bytes: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes}  {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noisiest_statements_are_a_table() {
        let entry = TopEntry {
            name: "SELECT option_value FROM wp_options\u{7}".to_owned(),
            count: 60,
            weight: 4740,
        };
        let text = noisy(&[entry]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(
            lines[1].contains("60       4740  SELECT option_value"),
            "{text}"
        );
        assert!(!text.contains('\u{7}'));
        assert!(noisy(&[]).starts_with("no write"));
    }
}
