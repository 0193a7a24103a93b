//! A sign of life of all workers, for a service manager's watchdog: each answers on its own event loop,
//! so that a worker that hangs, or whose thread has ended, is missed. They wake up for nothing else here.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::shared::WorkersState;

/// A channel that asks all workers for a sign of life; the message holds the sender for their answers.
pub(super) type LifeSigns = watch::Sender<Option<mpsc::Sender<()>>>;

impl WorkersState {
    /// Resolves when each of `count` workers has answered; never where one of them does not.
    pub async fn all_workers_answer(&self, count: usize) {
        all_answer(&self.life_signs, count).await;
    }
}

async fn all_answer(life_signs: &LifeSigns, count: usize) {
    let (answer, mut answers) = mpsc::channel(count.max(1));
    life_signs.send_replace(Some(answer));
    for _ in 0..count {
        if answers.recv().await.is_none() {
            return std::future::pending().await;
        }
    }
}

/// The worker's side.
pub(super) async fn answer(shared: Arc<WorkersState>) {
    answer_all(shared.life_signs.subscribe()).await;
}

async fn answer_all(mut questions: watch::Receiver<Option<mpsc::Sender<()>>>) {
    // The first question may have been asked before this worker came so far.
    questions.mark_changed();
    while questions.changed().await.is_ok() {
        let question = questions.borrow_and_update().clone();
        if let Some(question) = question {
            // Who asked may wait no more.
            let _ = question.try_send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_that_comes_after_the_question_answers_it() {
        let life_signs = LifeSigns::default();
        let answered = all_answer(&life_signs, 2);
        tokio::pin!(answered);
        let early = tokio::spawn(answer_all(life_signs.subscribe()));
        tokio::select! {
            biased;
            () = &mut answered => panic!("one of two has answered"),
            () = tokio::task::yield_now() => {}
        }
        let late = tokio::spawn(answer_all(life_signs.subscribe()));
        tokio::time::timeout(std::time::Duration::from_secs(30), answered)
            .await
            .expect("two answers");
        early.abort();
        late.abort();
    }
}
