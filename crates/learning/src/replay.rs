//! Statements of suspect pages are run again, by a task on the thread of the pool.
//!
//! The account is that of `cache_learn_database`. Each session is a connection of its own that may only read, and each
//! statement is a transaction of its own: an open one would show what was there when it began. A server that
//! does not answer in time costs the pages in question, and holds nothing up.

pub mod connection;
mod session;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::LearnedPool;
use crate::book::ReplayRound;
use crate::client::DatabaseAccount;
use crate::replay_time::pause_after;

use connection::Connection;
pub use session::ReplaySession;

/// After so long without a round the connection is closed.
const IDLE: Duration = Duration::from_secs(20);

/// No look at all pages is begun for this many times as long as one takes.
const PAUSES: u32 = 9;

/// Runs what the book has, for as long as there is the pool.
pub async fn run(pool: Weak<LearnedPool>, wanted: Arc<Notify>, awaited: Arc<Notify>) {
    let mut connection = Connection::default();
    loop {
        // Without a connection it sleeps.
        let rests = !connection.is_open() || timeout(IDLE, wanted.notified()).await.is_err();
        if rests {
            connection.close().await;
            wanted.notified().await;
        }
        loop {
            let Some(alive) = pool.upgrade() else {
                return connection.close().await;
            };
            let began = Instant::now();
            let round = alive.change(|book| book.next_replays(began));
            let looked = began.elapsed();
            let Some(round) = round else {
                // All pages were looked at, with the book's lock held.
                drop(alive);
                pause(looked * PAUSES, &awaited).await;
                break;
            };
            let account = alive.account_of(&round.server).map(|it| (it, alive.seed));
            drop(alive);
            let results = results(&round, account.as_ref(), &mut connection).await;
            let ran = began.elapsed();
            if let Some(pool) = pool.upgrade() {
                pool.change(|book| book.replayed(&round, &results, (ran, Instant::now())));
                pool.replayed.notify_waiters();
            }
            pause(pause_after(ran) + looked * PAUSES, &awaited).await;
        }
    }
}

/// It ends when a visitor waits.
async fn pause(span: Duration, awaited: &Notify) {
    let _ = timeout(span, awaited.notified()).await;
}

async fn results(
    round: &ReplayRound,
    account: Option<&(DatabaseAccount, u64)>,
    connection: &mut Connection,
) -> Vec<Option<u64>> {
    let mut results = Vec::with_capacity(round.statements.len());
    for (statement, session) in &round.statements {
        let result = match account {
            Some(account) => connection.run(&statement.again, account, session).await,
            None => None,
        };
        results.push(result.map(|it| it.hash));
    }
    results
}

#[cfg(test)]
#[path = "replay/mariadb_tests.rs"]
mod mariadb_tests;
