//! Statements of suspect pages are run again, by a task on the thread of the pool.
//!
//! The account is that of `cache_learn_database`. Each session is a connection of its own that may only read, and each
//! statement is a transaction of its own: an open one would show what was there when it began. A server that
//! does not answer in time costs the pages in question, and holds nothing up.

mod session;

use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use learn_record::Outcome;
use learned::{RunAgain, Value};
use mysql_wire::Parameter;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::LearnedPool;
use crate::book::ReplayRound;
use crate::client::{Client, DatabaseAccount};
use crate::replay_time::pause_after;
use crate::told;

pub use session::ReplaySession;

/// After so long without a round the connection is closed.
const IDLE: Duration = Duration::from_secs(20);

/// To log in, and for one statement with what follows it.
const OPENS_WITHIN: Duration = Duration::from_secs(1);
const RUNS_WITHIN: Duration = Duration::from_millis(250);

/// No look at all pages is begun for this many times as long as one takes.
const PAUSES: u32 = 9;

/// Settings that follow the session's own. Names of variables that a server does not have stand in
/// comments for the other one.
const READ_ONLY: [&str; 2] = [
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET autocommit = 1, /*M!100101 max_statement_time = 1, */ /*!50708 max_execution_time = 1000, */ lock_wait_timeout = 1",
];

/// The connection of a pool, in the session in which it read last.
#[derive(Default)]
struct Connection(Option<(Client, Arc<ReplaySession>)>);

/// Runs what the book has, for as long as there is the pool.
pub async fn run(pool: Weak<LearnedPool>, wanted: Arc<Notify>, awaited: Arc<Notify>) {
    let mut connection = Connection::default();
    loop {
        // Without a connection it sleeps.
        let rests = connection.0.is_none() || timeout(IDLE, wanted.notified()).await.is_err();
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
        results.push(result);
    }
    results
}

impl Connection {
    async fn close(&mut self) {
        if let Some((mut client, _)) = self.0.take() {
            let _ = timeout(RUNS_WITHIN, client.quit()).await;
        }
    }

    /// By the connection that is there, or by a new one: the server may have closed the other.
    async fn run(
        &mut self,
        again: &RunAgain,
        (account, seed): &(DatabaseAccount, u64),
        session: &Arc<ReplaySession>,
    ) -> Option<u64> {
        let seed = session.seed.unwrap_or(*seed);
        if let Some((mut client, known)) = self.0.take() {
            if known == *session {
                let ran = timeout(RUNS_WITHIN, run_by(&mut client, again, seed)).await;
                if let Ok(result) = ran.ok()? {
                    self.0 = Some((client, known));
                    return Some(result);
                }
            } else {
                let _ = timeout(RUNS_WITHIN, client.quit()).await;
            }
        }
        let opened = timeout(OPENS_WITHIN, open(account, session)).await;
        let mut client = opened.ok()?.ok()?;
        let ran = timeout(RUNS_WITHIN, run_by(&mut client, again, seed)).await;
        let result = ran.ok()?.ok()?;
        self.0 = Some((client, session.clone()));
        Some(result)
    }
}

async fn open(account: &DatabaseAccount, session: &ReplaySession) -> io::Result<Client> {
    let mut client = Client::open(account, session.collation).await?;
    if let Some(database) = &session.database {
        let name = database.replace('`', "``");
        client.query(&format!("USE `{name}`")).await?;
    }
    // A statement that the server runs for each client, but for those with many rights: it may be another session then.
    let said_to_each = client.query("SELECT @@GLOBAL.init_connect").await?;
    let is_empty = |field: &Option<Vec<u8>>| field.as_ref().is_none_or(Vec::is_empty);
    if !said_to_each.iter().flatten().all(is_empty) {
        return Err(io::Error::other("init_connect is set"));
    }
    let settings = session.settings.iter().map(String::as_str);
    for setting in settings.chain(READ_ONLY) {
        client.query(setting).await?;
    }
    Ok(client)
}

async fn run_by(client: &mut Client, again: &RunAgain, seed: u64) -> io::Result<u64> {
    let mut results = Vec::with_capacity(again.texts.len());
    for text in &again.texts {
        let answer = match &text.values {
            None => client.answer(&text.text, seed).await?,
            Some(values) => {
                let values: Vec<_> = values.iter().map(parameter).collect();
                let sent = client.answer_of_prepared(&text.text, &values, seed);
                sent.await?
            }
        };
        let outcomes = answer.outcomes.iter().map(|outcome| match *outcome {
            mysql_wire::Outcome::Rows { rows, bytes, hash } => Outcome::Rows { rows, bytes, hash },
            mysql_wire::Outcome::Done { changed_rows } => Outcome::Done { changed_rows },
            mysql_wire::Outcome::Failed { code } => Outcome::Failed { code },
        });
        let outcomes: Vec<_> = outcomes.collect();
        if answer.status.is_in_transaction() || !told::is_of_rows(&outcomes) {
            return Err(io::Error::other(
                "there are no rows, or a transaction is open",
            ));
        }
        results.push(told::result_of(&outcomes));
    }
    let result = again.result(&results);
    result.ok_or_else(|| io::Error::other("not all statements were run"))
}

fn parameter(value: &Value) -> Parameter {
    match value {
        Value::Null => Parameter::Null,
        Value::Integer(number) => Parameter::Integer(*number),
        Value::Text(text) => Parameter::Bytes(text.clone()),
        Value::Other => Parameter::Opaque,
    }
}

#[cfg(test)]
#[path = "replay/mariadb_tests.rs"]
mod mariadb_tests;
