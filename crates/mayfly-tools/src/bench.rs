//! `mayfly bench`: load on a server of this machine, measured as visitors feel it.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::rc::Rc;
use std::time::Duration;

use command_line::{BenchArgs, Exit, Target, complain, print, terminal};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use load_test::{
    Comparison, Live, Load, Plan, Recorder, Replay, ReplayError, Report, Settings, Stop,
};
use log_advice::Format;
use tokio::signal::unix::{SignalKind, signal};

use crate::bench_page;
use system_error::SystemError;

/// How long a look at a port may take.
const CONNECTS_WITHIN: Duration = Duration::from_secs(2);
const CLOSED_CONNECTIONS: u32 = 16;
const OPEN_CONNECTIONS: u32 = 512;
/// Turns of each server with `--compare`: what disturbs one of them disturbs the other as well.
const TURNS: u32 = 4;

/// Does what was typed.
pub fn run(args: &BenchArgs) -> Exit {
    if let Some(page) = &args.page.page {
        return bench_page::run(args, page);
    }
    let plans = plan(args, &args.urls).and_then(|first| {
        let second = args
            .compare
            .as_ref()
            .map(|url| plan(args, std::slice::from_ref(url)));
        Ok((Rc::new(first), second.transpose()?.map(Rc::new)))
    });
    let (first, second) = match plans {
        Ok(plans) => plans,
        Err(message) => return complain(Exit::Refused, &message),
    };
    let event_loop = match crate::event_loop() {
        Ok(event_loop) => event_loop,
        Err(error) => return complain(Exit::Refused, &format!("could not start: {error}")),
    };
    let shown = event_loop.block_on(until_signal(args, first, second));
    event_loop.shutdown_background();
    let BenchReport {
        text,
        html,
        answers,
    } = match shown {
        Ok(shown) => shown,
        Err(message) => return complain(Exit::Refused, &message),
    };
    if let Some(file) = &args.html
        && let Err(error) = std::fs::write(file, html)
    {
        let message = format!("{}: {}", file.display(), SystemError(&error));
        return complain(Exit::Refused, &message);
    }
    print(&text);
    match answers {
        0 => complain(Exit::Refused, "no request was answered"),
        _ => Exit::Done,
    }
}

/// The report that is shown at the end.
struct BenchReport {
    text: String,
    html: String,
    answers: u64,
}

fn plan(args: &BenchArgs, urls: &[String]) -> Result<Plan, String> {
    let targets: Result<Vec<Target>, _> = urls.iter().map(|url| Target::parse(url)).collect();
    let targets = targets.map_err(|error| error.to_string())?;
    let load = match args.rate {
        _ if !args.replay.is_empty() => Load::Replay(replay(args)?),
        Some(rate) => Load::Open { rate },
        None => Load::Closed,
    };
    let usual = match load {
        Load::Closed => CLOSED_CONNECTIONS,
        Load::Open { .. } | Load::Replay(_) => OPEN_CONNECTIONS,
    };
    let connections = args.connections.unwrap_or(usual);
    let settings = Settings {
        load,
        duration: args.duration,
        ramp: args.ramp,
        timeout: args.timeout,
        connections: usize::try_from(connections).unwrap_or(usize::MAX),
        fields: args.header.clone(),
        cookies: args.cookies,
        requests_per_visitor: args.requests_per_visitor,
        anywhere: args.yes_this_is_mine,
    };
    let plan = Plan::new(&targets, settings).map_err(|error| error.to_string())?;
    targets.iter().try_for_each(expect_listener)?;
    Ok(plan)
}

/// Is there somebody to ask? A closed port would be counted as errors for as long as the load lasts.
fn expect_listener(target: &Target) -> Result<(), String> {
    let addresses = (&*target.host, target.port).to_socket_addrs();
    let mut refused = None;
    for address in addresses.into_iter().flatten() {
        match TcpStream::connect_timeout(&address, CONNECTS_WITHIN) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => refused = Some(error),
            _ => return Ok(()),
        }
    }
    refused.map_or(Ok(()), |error| {
        let (host, port) = (&target.host, target.port);
        Err(format!(
            "nothing listens at {host}:{port} ({})",
            SystemError(&error)
        ))
    })
}

fn replay(args: &BenchArgs) -> Result<Replay, String> {
    let format = args.format.as_deref().map(Format::parse).transpose();
    let format = format.map_err(|error| format!("--format: {error}"))?;
    let logs = args.replay.iter().cloned();
    Replay::read(logs, format, args.speed, args.duration).map_err(|error| match error {
        ReplayError::Input(error) => {
            format!("{}: {}", error.path.display(), SystemError(&error.error))
        }
        ReplayError::Empty => "the log has no request that can be repeated".to_owned(),
    })
}

/// Runs the plans; a signal ends them, and what was measured until then is shown.
async fn until_signal(
    args: &BenchArgs,
    first: Rc<Plan>,
    second: Option<Rc<Plan>>,
) -> Result<BenchReport, String> {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return Err("cannot wait for signals".to_owned());
    };
    let stop = Stop::default();
    let measured = measured(args, first, second, &stop);
    tokio::pin!(measured);
    loop {
        tokio::select! {
            shown = &mut measured => return Ok(shown),
            _ = interrupt.recv() => stop.now(),
            _ = terminate.recv() => stop.now(),
        }
    }
}

async fn measured(
    args: &BenchArgs,
    first: Rc<Plan>,
    second: Option<Rc<Plan>>,
    stop: &Stop,
) -> BenchReport {
    let bar = bar(args);
    let recorder = |plan: &Plan| Recorder::new(plan.urls.len(), args.duration);
    let Some(second) = second else {
        let recorder = recorder(&first);
        let show = |live: Live| show(&bar, live, Duration::ZERO);
        let recorder = load_test::run(first.clone(), args.duration, recorder, stop, show).await;
        bar.finish_and_clear();
        let report = Report::new(&first, &recorder);
        return BenchReport {
            text: text(args, &report, Report::to_text),
            html: report.to_html(),
            answers: report.answers,
        };
    };
    let mut recorders = (recorder(&first), recorder(&second));
    for _ in 0..TURNS {
        let turn = args.duration / TURNS;
        let show = |before: Duration| {
            let bar = &bar;
            move |live: Live| show(bar, live, before)
        };
        let before = recorders.1.elapsed;
        let asked = load_test::run(first.clone(), turn, recorders.0, stop, show(before));
        recorders.0 = asked.await;
        let before = recorders.0.elapsed;
        let asked = load_test::run(second.clone(), turn, recorders.1, stop, show(before));
        recorders.1 = asked.await;
    }
    bar.finish_and_clear();
    let comparison = Comparison {
        first: Report::new(&first, &recorders.0),
        second: Report::new(&second, &recorders.1),
        turns: TURNS,
    };
    BenchReport {
        text: text(args, &comparison, Comparison::to_text),
        html: comparison.to_html(),
        answers: comparison.first.answers.min(comparison.second.answers),
    }
}

fn text<T: serde::Serialize>(args: &BenchArgs, report: &T, to_text: fn(&T) -> String) -> String {
    match args.json {
        // Texts, and numbers of which none is infinite, are always JSON.
        true => serde_json::to_string_pretty(report).unwrap_or_default() + "\n",
        false => to_text(report),
    }
}

/// How far it is, for a terminal.
fn bar(args: &BenchArgs) -> ProgressBar {
    if !terminal::moves_cursor(&io::stderr()) {
        return ProgressBar::hidden();
    }
    let lasts = args.duration * if args.compare.is_some() { 2 } else { 1 };
    let milliseconds = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
    let bar = ProgressBar::with_draw_target(Some(milliseconds), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{wide_bar} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn show(bar: &ProgressBar, live: Live, before: Duration) {
    let elapsed = live.elapsed + before;
    bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    let rate = live.answers as f64 / live.elapsed.as_secs_f64().max(0.001);
    let hits = live.hit_ratio.map_or(String::new(), |ratio| {
        format!(", {:.0} % hits", ratio * 100.0)
    });
    bar.set_message(format!(
        "{:.0} s  {rate:.0}/s, p99 {:.1} ms{hits}, {} errors",
        elapsed.as_secs_f64(),
        live.p99.as_secs_f64() * 1000.0,
        live.failures
    ));
}
