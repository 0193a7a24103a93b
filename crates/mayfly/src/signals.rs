//! Signals, as what they tell us to do. nginx's meanings; PIPE is ignored by
//! the standard library, and WINCH (nginx's "let the workers go") is caught
//! and means nothing, since a terminal sends it when its window changes.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal tells us to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// HUP
    Reload,
    /// USR1
    Reopen,
    /// QUIT
    Quit,
    /// TERM, INT
    Stop,
    /// USR2
    Upgrade,
}

/// The signals this program listens to.
pub struct Signals {
    hup: Signal,
    usr1: Signal,
    usr2: Signal,
    quit: Signal,
    term: Signal,
    int: Signal,
    winch: Signal,
}

impl Signals {
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<Signals> {
        Ok(Signals {
            hup: signal(SignalKind::hangup())?,
            usr1: signal(SignalKind::user_defined1())?,
            usr2: signal(SignalKind::user_defined2())?,
            quit: signal(SignalKind::quit())?,
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            winch: signal(SignalKind::window_change())?,
        })
    }

    /// The next thing to do; the more urgent first.
    pub async fn next(&mut self) -> Instruction {
        loop {
            return tokio::select! {
                biased;
                _ = self.term.recv() => Instruction::Stop,
                _ = self.int.recv() => Instruction::Stop,
                _ = self.quit.recv() => Instruction::Quit,
                _ = self.hup.recv() => Instruction::Reload,
                _ = self.usr1.recv() => Instruction::Reopen,
                _ = self.usr2.recv() => Instruction::Upgrade,
                _ = self.winch.recv() => continue,
            };
        }
    }

    /// Resolves when everything shall end at once, whatever is under way. Other signals
    /// are kept.
    pub async fn asked_to_end(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }

    /// Resolves when the start shall not go on. Other signals are kept: the configuration may
    /// have changed since the start has read it.
    pub async fn asked_to_stop(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}
