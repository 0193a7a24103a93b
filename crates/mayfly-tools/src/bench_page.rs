//! `mayfly bench --page`: a page with all that it needs, loaded as a browser loads it.

use std::io::{self, IsTerminal};
use std::path::Path;

use command_line::{BenchArgs, Exit, complain, print, terminal};
use indicatif::{ProgressBar, ProgressDrawTarget};
use page_load::{Browser, LoadError, MeasuredPage, Report, Settings, Viewport, address, field};
use system_error::SystemError;

/// The width of the text where it goes to no terminal.
const WIDTH: usize = 100;

/// Loads `page` and the page beside it, if there is one, and prints the report.
pub fn run(args: &BenchArgs, page: &str) -> Exit {
    let event_loop = match crate::event_loop() {
        Ok(event_loop) => event_loop,
        Err(error) => return complain(Exit::Refused, &format!("could not start: {error}")),
    };
    let measured = event_loop.block_on(measured(args, page));
    event_loop.shutdown_background();
    let report = match measured {
        Ok(report) => report,
        Err(error) => return complain(Exit::Refused, &error.to_string()),
    };
    let written = args.html.as_deref().map(|file| (file, report.to_html()));
    let archive = args.page.har.as_deref();
    let archive = archive.map(|file| (file, report.to_har(env!("CARGO_PKG_VERSION")).to_string()));
    for (file, text) in written.into_iter().chain(archive) {
        if let Err(message) = write(file, &text) {
            return complain(Exit::Refused, &message);
        }
    }
    let text = match args.json {
        true => format!("{:#}\n", report.to_json()),
        false => report.to_text(width()),
    };
    print(&text)
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text)
        .map_err(|error| format!("{}: {}", file.display(), SystemError(&error)))
}

/// Each run loads each address cold and then warm: what disturbs one of them disturbs the other as well.
async fn measured(args: &BenchArgs, page: &str) -> Result<Report, LoadError> {
    let addresses = [Some(page), args.compare.as_deref()];
    let addresses = addresses.into_iter().flatten().map(address);
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    let settings = Settings {
        named: addresses.clone(),
        viewport: Viewport {
            width: args.page.viewport.width,
            height: args.page.viewport.height,
        },
        third_party: args.page.third_party,
        timeout: args.timeout,
        fields: args
            .header
            .iter()
            .map(|it| field(it))
            .collect::<Result<_, _>>()?,
        user_agent: concat!(
            "Mozilla/5.0 (X11; Linux) mayfly-bench/",
            env!("CARGO_PKG_VERSION")
        )
        .to_owned(),
    };
    let mut pages: Vec<MeasuredPage> = addresses.iter().map(MeasuredPage::of).collect();
    let loads = u64::from(args.page.runs) * 2 * addresses.len() as u64;
    let bar = match terminal::moves_cursor(&io::stderr()) {
        true => ProgressBar::with_draw_target(Some(loads), ProgressDrawTarget::stderr()),
        false => ProgressBar::hidden(),
    };
    for _ in 0..args.page.runs {
        for (url, page) in addresses.iter().zip(&mut pages) {
            let mut browser = Browser::new(&settings)?;
            for loads in [&mut page.cold, &mut page.warm] {
                loads.push(browser.load(url).await?);
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    Ok(Report {
        viewport: settings.viewport,
        pages,
    })
}

fn width() -> usize {
    if !io::stdout().is_terminal() {
        return WIDTH;
    }
    rustix::termios::tcgetwinsize(io::stdout()).map_or(WIDTH, |it| usize::from(it.ws_col))
}
