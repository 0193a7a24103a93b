//! A sign of life of all workers, for a service manager's watchdog: each answers on its own event loop,
//! so that a worker that hangs, or whose thread has ended, is missed. They wake up for nothing else here.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::shared::WorkersState;

/// Asks workers; the question says where to answer.
pub(super) type LifeSigns = watch::Sender<Option<mpsc::Sender<()>>>;

impl WorkersState {
    /// Resolves when each of `count` workers has answered; never where one of them does not.
    pub async fn all_workers_answer(&self, count: usize) {
        let (answer, mut answers) = mpsc::channel(count.max(1));
        self.life_signs.send_replace(Some(answer));
        for _ in 0..count {
            if answers.recv().await.is_none() {
                return std::future::pending().await;
            }
        }
    }
}

/// The worker's side.
pub(super) async fn answer(shared: Arc<WorkersState>) {
    let mut questions = shared.life_signs.subscribe();
    while questions.changed().await.is_ok() {
        let question = questions.borrow_and_update().clone();
        if let Some(question) = question {
            // Who asked may wait no more.
            let _ = question.try_send(());
        }
    }
}
