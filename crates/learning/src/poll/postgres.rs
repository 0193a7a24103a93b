//! Other programs' writes to a PostgreSQL.
//!
//! The numbers of transactions say at once whether anything was committed; which tables were written is counted in statistics,
//! which a process of the server passes on a while after its COMMIT, or when it ends. So all tables count as written if a
//! transaction was committed while a process may hold counts back: before version 15, always.
//!
//! TRUNCATE and what else exchanges all rows gives a table a new file. Definitions are compared by the numbers of the
//! transactions that wrote them.
//!
//! While no transaction is committed, the former answer stands: neither tables nor definitions are asked for. Definitions are
//! not asked for either while no row of the catalogs was written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{PollAnswer, TableState, other_columns};
use crate::client::{self, DatabaseAccount, TextRow};
use crate::digest::Digest;
use crate::failpoint;
use crate::postgres::PostgresClient;

/// The engine of a table whose writes are counted.
pub(super) const ENGINE: &str = "PostgreSQL";

/// From this version on, a process that ends passes its counts on before it is gone.
const PASSES_COUNTS_ON: u32 = 150_000;

/// A process may be gone after so long.
const SHORT_WHILE: Duration = Duration::from_millis(250);

/// Polls by one connection. It is closed then, because DROP DATABASE waits for five seconds until all others have left.
const MAX_POLLS: u32 = 4;

/// Processes that may hold counts back: an idle one passes them on after ten seconds, or after a minute if it could not.
/// Another Mayfly, which only reads, may ask at the same time.
const HOLDERS: &str = "SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND usesysid IS NOT NULL AND pid <> pg_backend_pid()
      AND COALESCE(application_name, '') <> 'mayfly' AND COALESCE(backend_type, '') NOT IN ('walsender', 'parallel worker')
      AND NOT COALESCE(state = 'idle' AND state_change < clock_timestamp() - interval '61 seconds', false)";

/// When the server began to count.
macro_rules! counted_since {
    () => {
        "concat_ws(' ', (SELECT stats_reset FROM pg_stat_bgwriter),
          (SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()))"
    };
}

/// Asked first: what is committed later is seen by the next poll. The numbers of transactions, the version, for how long the
/// server has been running, whether it repeats what another one writes, whether it counts, since when, and
/// which server and database it is.
const SERVER: &str = concat!(
    "SELECT pg_current_snapshot()::text, current_setting('server_version_num'),
      floor(extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()))::bigint,
      pg_is_in_recovery(), current_setting('track_counts'), ",
    counted_since!(),
    ", concat_ws(' ', (SELECT system_identifier FROM pg_control_system()),
        (SELECT oid FROM pg_database WHERE datname = current_database()))"
);

/// How often rows of the catalogs of [`DEFINITIONS`] were written, and a number for the settings of databases and accounts, which
/// are shared: a process of another database may hold back their counts.
const CATALOGS: &str = "SELECT string_agg(concat_ws(' ', oid, pg_stat_get_tuples_inserted(oid), pg_stat_get_tuples_updated(oid),
      pg_stat_get_tuples_deleted(oid)), ',' ORDER BY oid),
      (SELECT sum(hashtextextended(concat_ws(' ', setdatabase, setrole, xmin), 0)) FROM pg_db_role_setting)
    FROM pg_class WHERE oid IN ('pg_class'::regclass, 'pg_attribute'::regclass, 'pg_attrdef'::regclass, 'pg_constraint'::regclass,
      'pg_index'::regclass, 'pg_inherits'::regclass, 'pg_trigger'::regclass, 'pg_rewrite'::regclass, 'pg_policy'::regclass,
      'pg_proc'::regclass, 'pg_operator'::regclass, 'pg_cast'::regclass, 'pg_enum'::regclass, 'pg_namespace'::regclass)";

/// One number for all definitions. The rows of tables themselves are written by VACUUM as well, so that their columns count.
const DEFINITIONS: &str = "SELECT sum(hashtextextended(it, 0)) FROM (
      SELECT concat_ws(' ', 'class', oid, relname, relnamespace, relkind, relowner, relrowsecurity, relhasrules, relhastriggers,
        relispartition, relacl) FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't'
      UNION ALL SELECT concat_ws(' ', 'attribute', attrelid, attnum, a.xmin) FROM pg_attribute a
        JOIN pg_class c ON c.oid = attrelid WHERE attrelid >= 16384 AND attnum > 0 AND relpersistence <> 't' AND relkind <> 'i'
      UNION ALL SELECT concat_ws(' ', 'attrdef', oid, xmin) FROM pg_attrdef
      UNION ALL SELECT concat_ws(' ', 'constraint', oid, xmin) FROM pg_constraint WHERE oid >= 16384
      UNION ALL SELECT concat_ws(' ', 'index', indexrelid, xmin) FROM pg_index WHERE indexrelid >= 16384
      UNION ALL SELECT concat_ws(' ', 'inherits', inhrelid, inhparent, xmin) FROM pg_inherits
      UNION ALL SELECT concat_ws(' ', 'trigger', oid, xmin) FROM pg_trigger
      UNION ALL SELECT concat_ws(' ', 'rewrite', oid, xmin) FROM pg_rewrite WHERE ev_class >= 16384
      UNION ALL SELECT concat_ws(' ', 'policy', oid, xmin) FROM pg_policy
      UNION ALL SELECT concat_ws(' ', 'proc', oid, xmin) FROM pg_proc WHERE oid >= 16384
      UNION ALL SELECT concat_ws(' ', 'operator', oid, xmin) FROM pg_operator WHERE oid >= 16384
      UNION ALL SELECT concat_ws(' ', 'cast', oid, xmin) FROM pg_cast WHERE oid >= 16384
      UNION ALL SELECT concat_ws(' ', 'enum', oid, xmin) FROM pg_enum
      UNION ALL SELECT concat_ws(' ', 'namespace', oid, xmin) FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'
    ) AS definitions (it)";

/// The row of [`SERVER`].
#[derive(Clone, PartialEq, Eq)]
struct ServerState {
    snapshot: String,
    version: u32,
    uptime: u64,
    counted_since: String,
    identity: String,
}

/// What the next poll of a server uses again.
#[derive(Default)]
pub(super) struct KeptPoll {
    connection: Option<KeptConnection>,
    answer: Option<KeptAnswer>,
}

struct KeptConnection {
    client: PostgresClient,
    account: DatabaseAccount,
    /// How often it was used.
    polls: u32,
}

struct KeptAnswer {
    server: ServerState,
    tables: Vec<Arc<str>>,
    answer: PollAnswer,
    definitions: Definitions,
}

/// The rows of [`CATALOGS`], and those of [`DEFINITIONS`], which were asked for later.
struct Definitions {
    catalogs: Vec<TextRow>,
    number: Vec<TextRow>,
}

impl KeptPoll {
    /// Asks a server for these tables.
    ///
    /// # Errors
    /// The error of the system or the server, and that nothing can be seen there.
    pub(super) async fn ask(
        &mut self,
        account: &DatabaseAccount,
        tables: &[Arc<str>],
    ) -> io::Result<PollAnswer> {
        // An error leaves nothing that may be used again.
        let kept = std::mem::take(self);
        client::within(async {
            let mut connection = match kept.connection {
                Some(connection) if connection.account == *account => connection,
                _ => KeptConnection {
                    client: PostgresClient::open(account).await?,
                    account: account.clone(),
                    polls: 0,
                },
            };
            connection.polls += 1;
            let client = &mut connection.client;
            let server = server_state(&client.query(SERVER).await?)?;
            let former = kept.answer.filter(|it| server.continues(&it.server));
            let kept = match former {
                Some(former) if former.stands(&server, tables) => KeptAnswer {
                    answer: PollAnswer {
                        uptime: server.uptime,
                        ..former.answer
                    },
                    server,
                    ..former
                },
                former => ask_for_tables(client, server, tables, former).await?,
            };
            let answer = kept.answer.clone();
            self.answer = Some(kept);
            // A balancer may send the next connection to another server.
            if connection.polls < MAX_POLLS && client.is_direct() {
                self.connection = Some(connection);
            } else {
                client.quit().await;
            }
            Ok(answer)
        })
        .await
    }
}

impl KeptAnswer {
    /// Nothing was committed since that could make the answer to these tables another one: the numbers of transactions stand still.
    fn stands(&self, server: &ServerState, tables: &[Arc<str>]) -> bool {
        self.server.snapshot == server.snapshot && self.tables == tables
    }
}

impl ServerState {
    /// It is the same run of the same server, which has counted all the while.
    fn continues(&self, before: &ServerState) -> bool {
        let of_before = ServerState {
            snapshot: before.snapshot.clone(),
            uptime: before.uptime,
            ..self.clone()
        };
        of_before == *before && before.uptime <= self.uptime
    }
}

async fn ask_for_tables(
    client: &mut PostgresClient,
    server: ServerState,
    tables: &[Arc<str>],
    former: Option<KeptAnswer>,
) -> io::Result<KeptAnswer> {
    let mut holders = client.query(HOLDERS).await?;
    if !holders.is_empty() {
        // Most are connections of a page that ends soon.
        tokio::time::sleep(SHORT_WHILE).await;
        let still = client.query(HOLDERS).await?;
        holders.retain(|holder| still.contains(holder));
    }
    let is_held_back = counts_are_held_back(&server, &holders);
    let catalogs = client.query(CATALOGS).await?;
    // Counts are there once their rows can be seen: the number was made of all that these counts tell of.
    let number = match former.map(|it| it.definitions) {
        Some(former) if former.catalogs == catalogs && !is_held_back => former.number,
        _ => client.query(DEFINITIONS).await?,
    };
    let definitions = Definitions { catalogs, number };
    let states = match question(tables) {
        Some(question) => client.query(&question).await?,
        None => Vec::new(),
    };
    let answer = read(&server, &definitions, &states, (tables, is_held_back));
    Ok(KeptAnswer {
        answer: answer.ok_or_else(other_columns)?,
        server,
        tables: tables.to_vec(),
        definitions,
    })
}

fn counts_are_held_back(server: &ServerState, holders: &[TextRow]) -> bool {
    server.version < PASSES_COUNTS_ON || !holders.is_empty() && !failpoint::is("counts")
}

/// `None`: no table is asked for.
fn question(tables: &[Arc<str>]) -> Option<String> {
    let names: Vec<_> = tables.iter().filter_map(|it| it.split_once('.')).collect();
    let mut question = String::from(
        "SELECT n.nspname, c.relname, c.relkind, c.oid, concat_ws(' ', pg_stat_get_tuples_inserted(c.oid),
           pg_stat_get_tuples_updated(c.oid), pg_stat_get_tuples_deleted(c.oid)), concat_ws(' ', c.relfilenode, ",
    );
    question.push_str(counted_since!());
    question.push_str(
        ") FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE (n.nspname, c.relname) IN (",
    );
    for (at, (schema, name)) in names.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(question, "{comma}('{schema}', '{name}')");
    }
    question.push(')');
    (!names.is_empty()).then_some(question)
}

fn server_state(rows: &[TextRow]) -> io::Result<ServerState> {
    let texts = || -> Option<Vec<String>> { rows.first()?.iter().map(text).collect() };
    let fields = texts().ok_or_else(other_columns)?;
    let [
        snapshot,
        version,
        uptime,
        is_standby,
        counts,
        counted_since,
        identity,
    ] = &fields[..]
    else {
        return Err(other_columns());
    };
    if is_standby != "f" {
        let message = "a standby, whose writes are those of another server";
        return Err(io::Error::other(message));
    }
    if counts != "on" {
        return Err(io::Error::other("track_counts is off"));
    }
    Ok(ServerState {
        snapshot: snapshot.clone(),
        version: version.parse().map_err(|_| other_columns())?,
        uptime: uptime.parse().map_err(|_| other_columns())?,
        counted_since: counted_since.clone(),
        identity: identity.clone(),
    })
}

fn read(
    server: &ServerState,
    definitions: &Definitions,
    states: &[TextRow],
    (tables, is_held_back): (&[Arc<str>], bool),
) -> Option<PollAnswer> {
    let digest = |bytes: &[u8]| {
        let mut digest = Digest::default();
        digest.read(bytes);
        digest.finish()
    };
    let number = definitions.number.first()?.first()?.clone();
    let settings = definitions.catalogs.first()?.get(1)?.clone();
    let both = [number.unwrap_or_default(), settings.unwrap_or_default()];
    let definitions = digest(&both.join(&b' '));
    let schemas = tables.iter().filter_map(|it| it.split_once('.'));
    let states = states.iter().map(|row| {
        let [schema, name, kind, number, counts, file] = &row[..] else {
            return None;
        };
        let is_counted = matches!(kind.as_deref(), Some(b"r" | b"p" | b"m"));
        let state = TableState {
            engine: if is_counted { ENGINE } else { "no table" }.to_owned(),
            updated: counts.clone(),
            created: number.clone(),
            size: file.clone(),
            is_recent: false,
        };
        Some((format!("{}.{}", text(schema)?, text(name)?).into(), state))
    });
    Some(PollAnswer {
        gate: Some(digest(server.snapshot.as_bytes())),
        uptime: server.uptime,
        alterations: 0,
        holds_counts_back: is_held_back,
        identity: server.identity.clone(),
        is_read_only: false,
        definitions: schemas
            .map(|(schema, _)| (schema.to_owned(), definitions))
            .collect::<BTreeMap<_, _>>(),
        tables: states.collect::<Option<_>>()?,
    })
}

fn text(field: &Option<Vec<u8>>) -> Option<String> {
    String::from_utf8(field.clone().unwrap_or_default()).ok()
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
