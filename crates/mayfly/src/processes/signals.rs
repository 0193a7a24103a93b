//! Instructions to the program: by signals, with nginx's meanings, and by callers of the control socket. PIPE
//! is ignored by the standard library. WINCH (nginx's "let the workers go") only means something beside a
//! program that takes the place of this one, since a terminal sends it when its window changes.

use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::io;

use control::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::processes::orders::{Order, Outcome};

/// An instruction by a signal or a caller.
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
    /// WINCH
    Drain,
}

/// An instruction, and who gave it.
#[derive(Debug)]
pub struct ReceivedInstruction {
    pub instruction: Instruction,
    /// None: by a signal.
    order: Option<Order>,
}

impl ReceivedInstruction {
    /// Whether a caller waits for the outcome.
    pub fn is_order(&self) -> bool {
        self.order.is_some()
    }

    /// Sends the outcome to the caller that waits for it.
    pub fn tell(self, outcome: Outcome) {
        if let Some(order) = self.order {
            order.tell(outcome);
        }
    }
}

impl From<Instruction> for ReceivedInstruction {
    fn from(instruction: Instruction) -> ReceivedInstruction {
        ReceivedInstruction {
            instruction,
            order: None,
        }
    }
}

impl From<Order> for ReceivedInstruction {
    fn from(order: Order) -> ReceivedInstruction {
        ReceivedInstruction {
            instruction: match order.command {
                Command::Reload => Instruction::Reload,
                Command::Reopen => Instruction::Reopen,
                Command::Quit => Instruction::Quit,
                Command::Stop => Instruction::Stop,
                Command::Upgrade => Instruction::Upgrade,
            },
            order: Some(order),
        }
    }
}

/// Writes the text for the log: `signal HUP received`, or the caller of the control socket with its uid and
/// pid.
impl Display for ReceivedInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(order) = &self.order else {
            let name = match self.instruction {
                Instruction::Reload => "HUP",
                Instruction::Reopen => "USR1",
                Instruction::Quit => "QUIT",
                Instruction::Stop => "TERM or INT",
                Instruction::Upgrade => "USR2",
                Instruction::Drain => "WINCH",
            };
            return write!(f, "signal {name} received");
        };
        write!(f, "told by uid={}", order.caller.uid)?;
        if let Some(pid) = order.caller.pid {
            write!(f, " pid={pid}")?;
        }
        f.write_str(" over the control socket")
    }
}

/// The signals this program listens to, and the commands of the control socket's callers.
pub struct Signals {
    hup: Signal,
    usr1: Signal,
    usr2: Signal,
    quit: Signal,
    term: Signal,
    int: Signal,
    winch: Signal,
    orders: mpsc::Receiver<Order>,
    /// Orders that came while only an end was waited for.
    kept: VecDeque<Order>,
}

impl Signals {
    /// # Errors
    /// The error of the system.
    pub fn new(orders: mpsc::Receiver<Order>) -> io::Result<Signals> {
        Ok(Signals {
            hup: signal(SignalKind::hangup())?,
            usr1: signal(SignalKind::user_defined1())?,
            usr2: signal(SignalKind::user_defined2())?,
            quit: signal(SignalKind::quit())?,
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            winch: signal(SignalKind::window_change())?,
            orders,
            kept: VecDeque::new(),
        })
    }

    /// The next thing to do; the more urgent signals first.
    pub async fn next(&mut self) -> ReceivedInstruction {
        if let Some(order) = self.kept.pop_front() {
            return order.into();
        }
        let instruction = tokio::select! {
            biased;
            _ = self.term.recv() => Instruction::Stop,
            _ = self.int.recv() => Instruction::Stop,
            _ = self.quit.recv() => Instruction::Quit,
            _ = self.hup.recv() => Instruction::Reload,
            _ = self.usr1.recv() => Instruction::Reopen,
            _ = self.usr2.recv() => Instruction::Upgrade,
            _ = self.winch.recv() => Instruction::Drain,
            Some(order) = self.orders.recv() => return order.into(),
        };
        instruction.into()
    }

    /// Resolves when everything shall end at once, whatever is under way. Other signals and
    /// orders are kept.
    pub async fn asked_to_end(&mut self) -> ReceivedInstruction {
        loop {
            tokio::select! {
                _ = self.term.recv() => return Instruction::Stop.into(),
                _ = self.int.recv() => return Instruction::Stop.into(),
                Some(order) = self.orders.recv() => match order.command {
                    Command::Stop => return order.into(),
                    // No more than the queue of orders takes: each caller waits for one.
                    _ => self.kept.push_back(order),
                },
            }
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
