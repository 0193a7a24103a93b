//! The reasons why the account of an application's database is not known, for people.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    #[error("no file names an account of a database that is known here")]
    NotNamed,
    /// In a file, or in a line of one.
    #[error("{0}: {1}")]
    At(String, Box<AccountError>),
    #[error("it cannot be read")]
    Unreadable,
    #[error("it names several database servers")]
    SeveralServers,
    #[error("$wgDBtype is not 'mysql' or 'postgres'")]
    OtherMediaWikiDatabase,
    #[error("the database is SQLite, which needs no account")]
    Sqlite,
    #[error("the database is {0}, which is not followed")]
    OtherDatabase(String),
    #[error("{0} is not set once, to a literal")]
    NotLiteral(String),
    #[error("{0} is not set once, to a string in quotes")]
    NotQuoted(&'static str),
    #[error("the URL has no user and host")]
    IncompleteUrl,
    #[error("its host, user and password are not literals of one call")]
    NotOneCall,
    #[error("its database has a slash in its name")]
    SlashInName,
    #[error("{0} has a letter that the configuration cannot have")]
    OddLetter(&'static str),
    #[error("{0} {1}")]
    Host(&'static str, HostError),
    /// Of a file that people write.
    #[error(
        "expected one line: unix:/run/mysqld/mysqld.sock USER PASSWORD, or IP:PORT in place of the socket, or \
         postgres:unix:/run/postgresql/.s.PGSQL.5432/DATABASE"
    )]
    OtherLine,
    #[error("a second account; {}", AccountError::OtherLine)]
    SecondAccount,
}

/// Why no database is known at a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("is this machine, and there is no socket at {0}")]
    NoSocket(String),
    #[error(
        "is a name, which PHP looks up for each page; with {0} there instead, pages can be learned"
    )]
    Name(String),
    #[error("has no port that can be read")]
    InvalidPort,
}

impl AccountError {
    pub(super) fn at(self, place: impl Into<String>) -> AccountError {
        AccountError::At(place.into(), Box::new(self))
    }
}
