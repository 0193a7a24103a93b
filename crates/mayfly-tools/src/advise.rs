//! `mayfly advise`: reads access logs, and reports how much each lifetime spares.

use std::io::{self, IsTerminal};

use command_line::{AdviseArgs, Exit, complain, print};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use log_advice::{Format, Input, InputError, Keys, Rules, Study};
use shared_request::NameSet;
use system_error::SystemError;

/// Does what was typed.
pub fn run(args: &AdviseArgs) -> Exit {
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
    print(&text);
    match advice.lines {
        0 => complain(Exit::Refused, "no line of these logs could be read"),
        _ => Exit::Done,
    }
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
