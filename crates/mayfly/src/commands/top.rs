//! `mayfly top`: the numbers of a running server, in a terminal.
//!
//! The server is asked once a second over its control socket. One that does not answer is asked
//! again, and the last numbers stay on the screen.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use control::{ClientError, client};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::style::Stylize;
use ratatui::text::{Line as Styled, Text};
use ratatui::widgets::Paragraph;

use crate::cli::TopArgs;
use crate::commands::running_server::{explained, find};
use crate::commands::top_screen::{Choice, Order, PageList, SnapshotPair, lines};
use command_line::terminal;
use command_line::{Exit, complain, print};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// How long a look may take, so that keys are heard.
const LOOK_TIMEOUT: Duration = Duration::from_secs(3);
/// The width of the table that is printed once.
const ONCE_WIDTH: usize = 100;
const ONCE_HEIGHT: usize = 60;

pub fn run(args: &TopArgs) -> Exit {
    let event_loop = match crate::processes::event_loop::build() {
        Ok(event_loop) => event_loop,
        Err(error) => return complain(Exit::Refused, &format!("could not start: {error}")),
    };
    let path = match event_loop.block_on(find(&args.server, &[])) {
        Ok(path) => path,
        Err((exit, message)) => return complain(exit, &message),
    };
    let printed = match (args.json, args.once) {
        (true, _) => event_loop.block_on(json(&path)),
        (_, true) => event_loop.block_on(once(&path)),
        _ if !terminal::moves_cursor(&io::stdout()) => {
            let message = "standard output is no terminal that can show it: --once prints a table, --json all numbers";
            return complain(Exit::Refused, message);
        }
        _ => {
            let look = |looks: &mut SnapshotPair| event_loop.block_on(look(&path, looks));
            return match watch(look) {
                Ok(()) => Exit::Done,
                Err(error) => complain(Exit::Refused, &format!("the terminal: {error}")),
            };
        }
    };
    match printed {
        Ok(text) => print(&text),
        Err(error) => {
            let (exit, message) = explained(&path, &error);
            complain(exit, &message)
        }
    }
}

async fn json(path: &Path) -> Result<String, ClientError> {
    let snapshot = client::numbers(path).await?;
    // Numbers and texts are always JSON.
    Ok(serde_json::to_string(&snapshot).unwrap_or_default() + "\n")
}

async fn once(path: &Path) -> Result<String, ClientError> {
    let mut looks = SnapshotPair {
        now: client::numbers(path).await?,
        ..SnapshotPair::default()
    };
    tokio::time::sleep(EVERY).await;
    ask(path, &mut looks).await?;
    let lines = lines(&looks, Choice::default(), ONCE_WIDTH, ONCE_HEIGHT);
    Ok(lines
        .into_iter()
        .map(|line| line.text.trim_end().to_owned() + "\n")
        .collect())
}

/// Another look; the last becomes the one before.
async fn ask(path: &Path, looks: &mut SnapshotPair) -> Result<(), ClientError> {
    let now = client::numbers(path).await?;
    looks.pages = client::pages(path).await?;
    looks.before = std::mem::replace(&mut looks.now, now);
    Ok(())
}

/// Like [`ask`], with the message for the screen if there is no answer.
async fn look(path: &Path, looks: &mut SnapshotPair) -> Result<(), String> {
    match tokio::time::timeout(LOOK_TIMEOUT, ask(path, looks)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("no answer, trying again: {error}")),
        Err(_) => Err("no answer, trying again".to_owned()),
    }
}

/// Draws until q is typed.
fn watch(mut look: impl FnMut(&mut SnapshotPair) -> Result<(), String>) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let (mut looks, mut choice) = (SnapshotPair::default(), Choice::default());
    let mut state = look(&mut looks);
    let mut next = Instant::now() + EVERY;
    let ended = loop {
        let drawn = terminal.draw(|frame| {
            let area = frame.area();
            let (width, height) = (usize::from(area.width), usize::from(area.height));
            let room = height.saturating_sub(usize::from(state.is_err()));
            let mut text = Text::default();
            if let Err(message) = &state {
                text.push_line(Styled::from(message.clone()).reversed());
            }
            for line in lines(&looks, choice, width, room) {
                text.push_line(match line.is_heading {
                    true => Styled::from(line.text).bold(),
                    false => Styled::from(line.text),
                });
            }
            frame.render_widget(Paragraph::new(text), area);
        });
        if let Err(error) = drawn {
            break Err(error);
        }
        // A changed size draws anew, as any event does.
        match event::poll(next.saturating_duration_since(Instant::now())) {
            Ok(true) => match event::read() {
                Ok(event) if ends(&event) => break Ok(()),
                Ok(event) => choice = chosen(choice, &event),
                Err(error) => break Err(error),
            },
            Ok(false) => {
                state = look(&mut looks);
                next = Instant::now() + EVERY;
            }
            Err(error) => break Err(error),
        }
    };
    ratatui::try_restore()?;
    ended
}

fn ends(event: &Event) -> bool {
    let Event::Key(key) = event else {
        return false;
    };
    let is_interrupt =
        key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

fn chosen(choice: Choice, event: &Event) -> Choice {
    let Event::Key(key) = event else {
        return choice;
    };
    if key.kind != KeyEventKind::Press {
        return choice;
    }
    let pages = match key.code {
        KeyCode::Char('c') => PageList::Costly,
        KeyCode::Char('w') => PageList::Wanted,
        KeyCode::Char('n') => PageList::NotStored,
        KeyCode::Char('p') => PageList::Clients,
        KeyCode::Char('u') => PageList::Uses,
        _ => choice.pages,
    };
    let order = match (key.code, choice.order) {
        (KeyCode::Char('s'), Order::Use) => Order::Name,
        (KeyCode::Char('s'), Order::Name) => Order::Use,
        (_, order) => order,
    };
    Choice { pages, order }
}
