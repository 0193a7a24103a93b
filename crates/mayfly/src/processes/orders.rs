//! Commands for the server itself (`-s`) from callers of the control socket, on their way to the
//! supervisor. The process that answers on the socket may be the worker, which passes them on:
//!
//! ```text
//! control socket ─► Order ────────────────────────────────────────► supervisor
//!              └──► Order ─► Waiting ── channel ──► Order (its number) ──┘
//! ```
//!
//! The caller gets an answer when the command is carried out, or the reason why it was not.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use control::{Caller, Command, Refusal};
use tokio::sync::{mpsc, oneshot};

use crate::processes::messages::{self, FromWorker, ParentMessage};

/// Orders that wait for the supervisor; more than callers that are answered at a time.
const WAITING_ORDERS: usize = 64;

/// The outcome of an order; if it failed, the reasons, a line for each.
pub type Outcome = Result<(), String>;

/// A command for the server, with its caller.
#[derive(Debug)]
pub struct Order {
    pub command: Command,
    pub caller: Caller,
    asker: Asker,
}

/// The receiver of the outcome.
#[derive(Debug)]
enum Asker {
    /// A caller of this process.
    Here(oneshot::Sender<Outcome>),
    /// A caller of the worker, by the number that it has there.
    Worker { channel: Arc<OwnedFd>, number: u64 },
}

/// A way for orders, and its end at the supervisor or in the worker.
pub fn way() -> (Orders, mpsc::Receiver<Order>) {
    let (sender, receiver) = mpsc::channel(WAITING_ORDERS);
    (Orders(sender), receiver)
}

/// The channel of orders to the supervisor.
#[derive(Debug, Clone)]
pub struct Orders(mpsc::Sender<Order>);

impl Orders {
    /// Gives an order of a caller of this process; over when it is carried out.
    ///
    /// # Errors
    /// The reason why it is not.
    pub async fn give(&self, command: Command, caller: Caller) -> Result<(), Refusal> {
        let (sender, outcome) = oneshot::channel();
        let order = Order {
            command,
            caller,
            asker: Asker::Here(sender),
        };
        self.0.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Refusal::new(503, "too many wait already"),
            mpsc::error::TrySendError::Closed(_) => ends(),
        })?;
        let outcome = outcome.await.map_err(|_| ends())?;
        outcome.map_err(|reasons| Refusal::new(control::command::FAILED, reasons))
    }

    /// Takes an order from the worker's channel. If a worker asks for more than callers can, the
    /// rest is dropped.
    pub fn pass(&self, command: Command, caller: Caller, number: u64, channel: &Arc<OwnedFd>) {
        let channel = channel.clone();
        let _ = self.0.try_send(Order {
            command,
            caller,
            asker: Asker::Worker { channel, number },
        });
    }
}

fn ends() -> Refusal {
    Refusal::new(503, "the server is about to end")
}

impl Order {
    /// Sends the outcome to the caller.
    pub fn tell(self, outcome: Outcome) {
        // The caller may have gone away.
        match self.asker {
            Asker::Here(asker) => drop(asker.send(outcome)),
            Asker::Worker { channel, number } => {
                let _ = messages::tell(channel.as_fd(), &ParentMessage::Outcome(number, outcome));
            }
        }
    }
}

/// Callers of the worker, which wait for the outcome at its parent.
#[derive(Default)]
pub struct WaitingOrders {
    by_number: HashMap<u64, Order>,
    last: u64,
}

impl WaitingOrders {
    /// Passes an order on to the parent.
    pub fn pass_on(&mut self, order: Order, channel: &OwnedFd) {
        self.by_number.retain(|_, waiting| !waiting.is_forgotten());
        self.last += 1;
        let passed = FromWorker::Order {
            number: self.last,
            command: order.command,
            caller: order.caller,
        };
        match messages::tell(channel.as_fd(), &passed) {
            Ok(()) => drop(self.by_number.insert(self.last, order)),
            Err(error) => order.tell(Err(format!("the parent process does not listen: {error}"))),
        }
    }

    /// Takes the parent's outcome of the order of this number.
    pub fn end(&mut self, number: u64, outcome: Outcome) {
        if let Some(order) = self.by_number.remove(&number) {
            order.tell(outcome);
        }
    }
}

impl Order {
    /// Whether the caller went away.
    fn is_forgotten(&self) -> bool {
        matches!(&self.asker, Asker::Here(asker) if asker.is_closed())
    }
}
