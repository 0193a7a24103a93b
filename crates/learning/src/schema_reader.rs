//! The tables of a database server, asked for with an account of the configuration.

use std::io;
use std::sync::Arc;

use learned::{PostgresQuery, PostgresSchemaBuilder, Schema, SchemaBuilder, SchemaQuery};

use crate::client::{self, DatabaseAccount, TextRow};
use crate::digest::Digest;
use crate::postgres;

/// The settings that each new session has.
const MODES: &str = "SELECT @@global.sql_mode";

/// Which server it is, and what else pages may be made of that no statement is run again for.
const IDENTITY: &str = "SELECT @@global.version, @@global.version_comment, @@global.hostname, @@global.port, @@global.datadir,
  @@global.server_id, @@global.lower_case_table_names, @@global.read_only";

/// The same of a PostgreSQL.
const POSTGRES_SERVER: &str =
    "SELECT version(), (SELECT system_identifier FROM pg_control_system()), current_database()";

/// The tables of a server, as it describes them.
pub struct ReadSchema {
    pub schema: Arc<Schema>,
    /// `@@global.sql_mode`
    pub modes: String,
    /// The digest of all that it returned.
    pub digest: u64,
}

/// Asks a server.
///
/// # Errors
/// The system or the server reports an error.
pub async fn read(account: &DatabaseAccount) -> io::Result<ReadSchema> {
    if postgres::parts(&account.server).is_some() {
        return read_postgres(account).await;
    }
    let mut questions = vec![MODES, IDENTITY];
    questions.extend(SchemaQuery::ALL.iter().map(|query| query.sql()));
    let mut answers = client::ask(account, &questions).await?.into_iter();
    let modes = answers.next().unwrap_or_default();
    let modes = modes.into_iter().flatten().flatten().next();
    let modes = String::from_utf8_lossy(&modes.unwrap_or_default()).into_owned();
    let mut digest = Digest::default();
    digest.read(modes.as_bytes());
    for field in answers.next().unwrap_or_default().iter().flatten() {
        digest.read(field.as_deref().unwrap_or_default());
        digest.read(&[0]);
    }
    let mut builder = SchemaBuilder::default();
    for (query, rows) in SchemaQuery::ALL.into_iter().zip(answers) {
        for row in &rows {
            add(&mut builder, query, row, &mut digest)?;
        }
    }
    let schema = builder.finish();
    let schema = schema.ok_or_else(|| io::Error::other("there are too many tables"))?;
    Ok(ReadSchema {
        schema: Arc::new(schema),
        modes,
        digest: digest.finish(),
    })
}

async fn read_postgres(account: &DatabaseAccount) -> io::Result<ReadSchema> {
    let mut questions = vec![POSTGRES_SERVER];
    questions.extend(PostgresQuery::ALL.iter().map(|query| query.sql()));
    let mut answers = client::ask(account, &questions).await?.into_iter();
    let mut digest = Digest::default();
    for row in &answers.next().unwrap_or_default() {
        read_fields(row, &mut digest)?;
    }
    let mut builder = PostgresSchemaBuilder::default();
    for (query, rows) in PostgresQuery::ALL.into_iter().zip(answers) {
        for row in &rows {
            if !builder.row(query, &read_fields(row, &mut digest)?) {
                return Err(other_columns());
            }
        }
    }
    let schema = builder.finish();
    let schema = schema.ok_or_else(|| io::Error::other("there are too many tables"))?;
    Ok(ReadSchema {
        schema: Arc::new(schema),
        modes: String::new(),
        digest: digest.finish(),
    })
}

fn add(
    builder: &mut SchemaBuilder,
    query: SchemaQuery,
    row: &TextRow,
    digest: &mut Digest,
) -> io::Result<()> {
    match builder.row(query, &read_fields(row, digest)?) {
        true => Ok(()),
        false => Err(other_columns()),
    }
}

fn read_fields<'a>(row: &'a TextRow, digest: &mut Digest) -> io::Result<Vec<&'a str>> {
    let fields = row
        .iter()
        .map(|field| str::from_utf8(field.as_deref().unwrap_or_default()));
    let fields: Vec<&str> = fields
        .collect::<Result<_, _>>()
        .map_err(|_| io::Error::other("a name of a table is no UTF-8"))?;
    for field in &fields {
        digest.read(field.as_bytes());
        digest.read(&[0]);
    }
    Ok(fields)
}

fn other_columns() -> io::Error {
    io::Error::other("the answer has other columns than were asked for")
}
