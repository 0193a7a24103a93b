//! The reasons why Apache does not take a line of `.htaccess`.

#[derive(Debug, thiserror::Error)]
pub enum LineMistake {
    /// The form that is expected, or what is wrong with it.
    #[error("{0}")]
    Form(&'static str),
    #[error("{0} may not stand here")]
    Misplaced(String),
    #[error("there is no flag {0}")]
    UnknownFlag(String),
    #[error("R={0} is no status")]
    InvalidStatus(String),
}

impl From<&'static str> for LineMistake {
    fn from(text: &'static str) -> LineMistake {
        LineMistake::Form(text)
    }
}
