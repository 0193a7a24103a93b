//! Other programs' writes to a PostgreSQL.
//!
//! The numbers of transactions say at once whether anything was committed; which tables were written is counted in statistics,
//! which a process of the server passes on a while after its COMMIT, or when it ends. So all tables count as written if a
//! transaction was committed while a process may hold counts back: before version 15, always.
//!
//! TRUNCATE and what else exchanges all rows gives a table a new file. Definitions are compared by the numbers of the
//! transactions that wrote them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{PollAnswer, TableState};
use crate::client::{DatabaseAccount, TextRow};
use crate::digest::Digest;
use crate::postgres::{self, PostgresClient};

/// The engine of a table whose writes are counted.
pub(super) const ENGINE: &str = "PostgreSQL";

/// From this version on, a process that ends passes its counts on before it is gone.
const PASSES_COUNTS_ON: u32 = 150_000;

/// A process may be gone after so long.
const SHORT_WHILE: Duration = Duration::from_millis(250);

/// Asked first: what is committed later is seen by the next poll.
const COMMITTED: &str = "SELECT pg_current_snapshot()::text";

/// Processes that may hold counts back: an idle one passes them on after ten seconds, or after a minute if it could not.
/// Another Mayfly, which only reads, may ask at the same time.
const HOLDERS: &str = "SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND usesysid IS NOT NULL AND pid <> pg_backend_pid()
      AND COALESCE(application_name, '') <> 'mayfly' AND COALESCE(backend_type, '') NOT IN ('walsender', 'parallel worker')
      AND NOT COALESCE(state = 'idle' AND state_change < clock_timestamp() - interval '61 seconds', false)";

/// The version, for how long it has been running, whether it repeats what another one writes, whether it counts, when it
/// began to count, and which server and database it is.
const SERVER: &str = "SELECT current_setting('server_version_num'),
      floor(extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()))::bigint,
      pg_is_in_recovery(), current_setting('track_counts'),
      concat_ws(' ', (SELECT stats_reset FROM pg_stat_bgwriter),
        (SELECT stats_reset FROM pg_stat_database WHERE datname = current_database())),
      concat_ws(' ', (SELECT system_identifier FROM pg_control_system()),
        (SELECT oid FROM pg_database WHERE datname = current_database()))";

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
      UNION ALL SELECT concat_ws(' ', 'setting', setdatabase, setrole, xmin) FROM pg_db_role_setting
    ) AS definitions (it)";

/// Asks a server for these tables.
///
/// # Errors
/// The error of the system or the server, and that nothing can be seen there.
pub(super) async fn ask(account: &DatabaseAccount, tables: &[Arc<str>]) -> io::Result<PollAnswer> {
    postgres::within(async {
        let mut client = PostgresClient::open(account).await?;
        let committed = client.query(COMMITTED).await?;
        let mut holders = client.query(HOLDERS).await?;
        if !holders.is_empty() {
            // Most are connections of a page that ends soon.
            tokio::time::sleep(SHORT_WHILE).await;
            let still = client.query(HOLDERS).await?;
            holders.retain(|holder| still.contains(holder));
        }
        let server = client.query(SERVER).await?;
        let definitions = client.query(DEFINITIONS).await?;
        let states = match question(tables) {
            Some(question) => client.query(&question).await?,
            None => Vec::new(),
        };
        client.quit().await;
        let answers = [&committed[..], &server, &definitions];
        read(answers, &states, (tables, !holders.is_empty()))
            .ok_or_else(|| io::Error::other("the answer has other columns than were asked for"))?
    })
    .await
}

/// `None`: no table is asked for.
fn question(tables: &[Arc<str>]) -> Option<String> {
    let names: Vec<_> = tables.iter().filter_map(|it| it.split_once('.')).collect();
    let mut question = String::from(
        "SELECT n.nspname, c.relname, c.relkind, c.oid, concat_ws(' ', pg_stat_get_tuples_inserted(c.oid),
           pg_stat_get_tuples_updated(c.oid), pg_stat_get_tuples_deleted(c.oid)), c.relfilenode
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE (n.nspname, c.relname) IN (",
    );
    for (at, (schema, name)) in names.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(question, "{comma}('{schema}', '{name}')");
    }
    question.push(')');
    (!names.is_empty()).then_some(question)
}

fn read(
    [committed, server, definitions]: [&[TextRow]; 3],
    states: &[TextRow],
    (tables, is_held_back): (&[Arc<str>], bool),
) -> Option<io::Result<PollAnswer>> {
    let first = |rows: &[TextRow]| -> Option<Vec<u8>> { rows.first()?.first()?.clone() };
    let text = |field: &Option<Vec<u8>>| String::from_utf8(field.clone().unwrap_or_default()).ok();
    let fields: Vec<String> = server.first()?.iter().map(text).collect::<Option<_>>()?;
    let [version, uptime, is_standby, counts, counted_since, identity] = &fields[..] else {
        return None;
    };
    if is_standby != "f" {
        return Some(Err(io::Error::other(
            "a standby, whose writes are those of another server",
        )));
    }
    if counts != "on" {
        return Some(Err(io::Error::other("track_counts is off")));
    }
    let digest = |bytes: &[u8]| {
        let mut digest = Digest::default();
        digest.read(bytes);
        digest.finish()
    };
    let definitions = digest(&first(definitions).unwrap_or_default());
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
            size: Some(
                [
                    &file.clone().unwrap_or_default(),
                    &b" "[..],
                    counted_since.as_bytes(),
                ]
                .concat(),
            ),
            is_recent: false,
        };
        Some((format!("{}.{}", text(schema)?, text(name)?).into(), state))
    });
    let version: u32 = version.parse().ok()?;
    Some(Ok(PollAnswer {
        gate: Some(digest(&first(committed)?)),
        uptime: uptime.parse().ok()?,
        alterations: 0,
        holds_counts_back: is_held_back || version < PASSES_COUNTS_ON,
        identity: identity.clone(),
        is_read_only: false,
        definitions: schemas
            .map(|(schema, _)| (schema.to_owned(), definitions))
            .collect::<BTreeMap<_, _>>(),
        tables: states.collect::<Option<_>>()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[&str]) -> TextRow {
        fields
            .iter()
            .map(|it| Some(it.as_bytes().to_vec()))
            .collect()
    }

    fn answer(server: &[&str], is_held_back: bool) -> Option<io::Result<PollAnswer>> {
        let (committed, definitions) = ([row(&["5:7:6"])], [row(&["-12"])]);
        let states = [
            row(&["public", "post", "r", "16385", "1 0 0", "16400"]),
            row(&["public", "far", "f", "16386", "0 0 0", "0"]),
        ];
        let tables = [Arc::from("public.post"), Arc::from("public.far")];
        let server = [row(server)];
        read(
            [&committed, &server, &definitions],
            &states,
            (&tables, is_held_back),
        )
    }

    #[test]
    fn a_server_that_counts_is_read_and_others_are_not() {
        let of = |version: &'static str| [version, "60", "f", "on", "since", "77 5"];
        let read = answer(&of("150018"), false).unwrap().unwrap();
        assert_eq!((read.uptime, &*read.identity), (60, "77 5"));
        assert!(!read.holds_counts_back);
        let state = &read.tables["public.post"];
        assert_eq!(state.size.as_deref(), Some(&b"16400 since"[..]));
        assert!(state.is_polled_engine() && !read.tables["public.far"].is_polled_engine());
        assert_eq!(read.definitions.len(), 1);
        assert!(
            answer(&of("150018"), true)
                .unwrap()
                .unwrap()
                .holds_counts_back
        );
        assert!(
            answer(&of("140012"), false)
                .unwrap()
                .unwrap()
                .holds_counts_back
        );
        for (at, value, why) in [(2, "t", "standby"), (3, "off", "track_counts")] {
            let mut server = of("150018");
            server[at] = value;
            let error = answer(&server, false).unwrap().unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
        assert!(answer(&["150018"], false).is_none());
    }

    #[test]
    fn tables_are_asked_for_by_schema_and_name() {
        assert_eq!(question(&[]), None);
        let question = question(&[Arc::from("a.b"), Arc::from("c.D")]).unwrap();
        assert!(
            question.ends_with("IN (('a', 'b'), ('c', 'D'))"),
            "{question}"
        );
    }
}
