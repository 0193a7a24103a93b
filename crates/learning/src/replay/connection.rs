//! The connection by which statements are run again, in the session in which they read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use learn_record::Outcome;
use learned::{RunAgain, Value};
use mysql_wire::Parameter;
use tokio::time::timeout;

use super::session::ReplaySession;
use crate::client::{Client, DatabaseAccount};
use crate::php_report;

/// To log in, and for one statement with what follows it.
const OPENS_WITHIN: Duration = Duration::from_secs(1);
const RUNS_WITHIN: Duration = Duration::from_millis(250);

/// Settings that follow the session's own. Names of variables that a server does not have stand in
/// comments for the other one.
const READ_ONLY: [&str; 2] = [
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET autocommit = 1, /*M!100101 max_statement_time = 1, */ /*!50708 max_execution_time = 1000, */ lock_wait_timeout = 1",
];

/// What a statement returned, when it was run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayResult {
    pub rows: u64,
    pub hash: u64,
}

/// The connection of a pool, in the session in which it read last.
#[derive(Default)]
pub struct Connection(Option<(Client, Arc<ReplaySession>)>);

impl Connection {
    pub const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    pub async fn close(&mut self) {
        if let Some((mut client, _)) = self.0.take() {
            let _ = timeout(RUNS_WITHIN, client.quit()).await;
        }
    }

    /// By the connection that is there, or by a new one: the server may have closed the other.
    pub async fn run(
        &mut self,
        again: &RunAgain,
        (account, seed): &(DatabaseAccount, u64),
        session: &Arc<ReplaySession>,
    ) -> Option<ReplayResult> {
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
    // A worker may report any setting: none writes.
    let settings = std::iter::once(READ_ONLY[0]).chain(settings);
    for setting in settings.chain(READ_ONLY) {
        client.query(setting).await?;
    }
    Ok(client)
}

async fn run_by(client: &mut Client, again: &RunAgain, seed: u64) -> io::Result<ReplayResult> {
    let mut results = Vec::with_capacity(again.texts.len());
    let mut rows = 0;
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
        if answer.status.is_in_transaction() || !php_report::is_of_rows(&outcomes) {
            return Err(io::Error::other(
                "there are no rows, or a transaction is open",
            ));
        }
        rows += php_report::rows_of(&outcomes);
        results.push(php_report::result_of(&outcomes));
    }
    let hash = again.result(&results);
    let hash = hash.ok_or_else(|| io::Error::other("not all statements were run"))?;
    Ok(ReplayResult { rows, hash })
}

fn parameter(value: &Value) -> Parameter {
    match value {
        Value::Null => Parameter::Null,
        Value::Integer(number) => Parameter::Integer(*number),
        Value::Text(text) => Parameter::Bytes(text.clone()),
        Value::Other => Parameter::Opaque,
    }
}
