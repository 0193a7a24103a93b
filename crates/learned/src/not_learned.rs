//! Why a page is not learned, in the words of logs, metrics and `explain`.

/// Why what a statement returned, or a page with it, cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotLearned {
    /// The statement is not understood.
    Syntax,
    /// One statement is too complex: it has too many nested queries or conditions.
    TooLong,
    SeveralStatements,
    /// A comment whose text the server executes.
    ExecutableComment,
    /// The session's characters or modes.
    SessionMode,
    /// READ UNCOMMITTED: what was read may never have been written.
    Isolation,
    /// No table or view that is known: a view that is not understood, or of another server.
    UnknownTable,
    TemporaryTable,
    UnknownFunction,
    UserVariable,
    SystemVariable,
    Clock,
    Chance,
    /// A value that belongs to the connection: found rows, the last number.
    Connection,
    /// GET_LOCK, FOR UPDATE, LOCK IN SHARE MODE.
    Lock,
    TooManyShapes,
    /// The page itself writes, and the server returns to it how many rows that changed.
    OwnWrite,
    TooManyStatements,
    /// All statements of the page together.
    RecordTooLong,
    /// Data that the page read was written while the page was made.
    WrittenMeanwhile,
    TooManyPages,
}

impl NotLearned {
    pub const ALL: [Self; 21] = [
        Self::Syntax,
        Self::TooLong,
        Self::SeveralStatements,
        Self::ExecutableComment,
        Self::SessionMode,
        Self::Isolation,
        Self::UnknownTable,
        Self::TemporaryTable,
        Self::UnknownFunction,
        Self::UserVariable,
        Self::SystemVariable,
        Self::Clock,
        Self::Chance,
        Self::Connection,
        Self::Lock,
        Self::TooManyShapes,
        Self::OwnWrite,
        Self::TooManyStatements,
        Self::RecordTooLong,
        Self::WrittenMeanwhile,
        Self::TooManyPages,
    ];

    /// The word for logs and metrics.
    pub const fn word(self) -> &'static str {
        self.words().0
    }

    /// A sentence for people.
    pub const fn sentence(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Syntax => ("syntax", "a statement is not understood"),
            Self::TooLong => (
                "too-long",
                "a statement has too many queries within queries, or too many conditions",
            ),
            Self::SeveralStatements => (
                "several-statements",
                "several statements were sent as one text",
            ),
            Self::ExecutableComment => (
                "executable-comment",
                "a statement has a comment that the server executes (/*! */, /*M! */) or a hint",
            ),
            Self::SessionMode => (
                "session-mode",
                "the session's characters or sql_mode change how statements are read",
            ),
            Self::Isolation => ("isolation", "the session reads what is not committed"),
            Self::UnknownTable => (
                "unknown-table",
                "a statement reads what is no table, nor a view that is understood",
            ),
            Self::TemporaryTable => ("temporary-table", "the session has temporary tables"),
            Self::UnknownFunction => (
                "unknown-function",
                "a statement calls a function that may return or do anything",
            ),
            Self::UserVariable => ("user-variable", "a statement uses a variable such as @a"),
            Self::SystemVariable => (
                "system-variable",
                "a statement reads settings or the state of the server",
            ),
            Self::Clock => (
                "clock",
                "a statement reads the clock (NOW()), or has the present time among its values",
            ),
            Self::Chance => ("chance", "a statement uses chance (RAND(), UUID())"),
            Self::Connection => (
                "connection",
                "a statement reads what belongs to the connection (LAST_INSERT_ID())",
            ),
            Self::Lock => (
                "lock",
                "a statement takes or asks for a lock (FOR UPDATE, GET_LOCK())",
            ),
            Self::TooManyShapes => (
                "too-many-shapes",
                "the site has too many kinds of statements",
            ),
            Self::OwnWrite => ("own-write", "the page itself writes to the database"),
            Self::TooManyStatements => ("too-many-statements", "the page runs too many statements"),
            Self::RecordTooLong => (
                "record-too-long",
                "the statements of the page are too long together",
            ),
            Self::WrittenMeanwhile => (
                "written-meanwhile",
                "what the page reads was written while the page was made",
            ),
            Self::TooManyPages => ("too-many-pages", "too many pages are learned already"),
        }
    }
}
