//! The answers of a server: results of rows, which are hashed, counts of changed rows, errors.
//!
//! ```text
//! First ─► Definitions ─► (EOF) ─► Rows ─► end ─► First, while more results follow
//! ```

use std::hash::Hasher as _;

use twox_hash::XxHash3_64;

use crate::conversation::Unreadable;
use crate::fields::{length, u8, u16};

/// A command with several statements has a result for each; further ones are counted as left out.
pub const MAX_OUTCOMES: usize = 64;

/// The server's flags of the session at the end of each result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatusFlags(pub u16);

impl StatusFlags {
    pub const fn is_in_transaction(self) -> bool {
        self.0 & 0x0001 != 0
    }

    pub const fn is_autocommit(self) -> bool {
        self.0 & 0x0002 != 0
    }

    pub(crate) const fn has_more_results(self) -> bool {
        self.0 & 0x0008 != 0
    }

    const fn has_cursor(self) -> bool {
        self.0 & 0x0040 != 0
    }

    pub const fn has_no_backslash_escapes(self) -> bool {
        self.0 & 0x0200 != 0
    }

    /// MariaDB alone sends this.
    pub const fn has_ansi_quotes(self) -> bool {
        self.0 & 0x8000 != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A result of rows. The hash is of the definitions of its columns and of its rows in order.
    Rows {
        rows: u64,
        bytes: u64,
        hash: u64,
    },
    /// A statement without rows.
    Done {
        changed_rows: u64,
    },
    Failed {
        code: u16,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandAnswer {
    pub outcomes: Vec<Outcome>,
    /// Outcomes beyond [`MAX_OUTCOMES`].
    pub left_out: u64,
    /// The flags of the last result, unless that is an error.
    pub status: StatusFlags,
}

/// Which form the answer to a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// OK, error, or rows.
    Results,
    /// The number of the prepared statement, definitions of parameters and columns.
    Prepared,
    /// Definitions up to an EOF.
    Definitions,
    /// One packet, whatever is in it.
    OnePacket,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    First,
    /// So many definitions are still to come, and an EOF after them unless it was abolished.
    Definitions {
        left: u64,
        then_rows: bool,
    },
    EndOfDefinitions {
        then_rows: bool,
    },
    Rows,
    UntilEof,
}

/// A prepared statement as its answer describes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PreparedHead {
    pub(crate) id: u32,
    pub(crate) columns: u16,
    pub(crate) parameters: u16,
}

pub(crate) struct AnswerReader {
    form: AnswerForm,
    step: Step,
    without_eof: bool,
    /// The seed of the hashes of results.
    seed: u64,
    /// The hash of the result that is being read, where there is one.
    hash: Option<XxHash3_64>,
    rows: u64,
    bytes: u64,
    /// Whether the payload that is being read belongs to the result; decided by its first byte.
    hashes_payload: bool,
    payload_has_begun: bool,
    pub(crate) prepared: Option<PreparedHead>,
    pub(crate) answer: CommandAnswer,
}

/// After the end of a payload.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Complete,
    /// The server asks for a file of the client.
    WantsFile,
    Cursor,
    Malformed,
}

/// The answer to a statement that was sent as text or executed once it was prepared, for a client that reads packets itself and has not agreed to go
/// without EOF. It equals the answer that [`crate::Conversation`] reads of the same bytes to another client.
pub struct StatementAnswer(AnswerReader);

impl StatementAnswer {
    /// `seed` as for [`crate::Conversation::new`].
    pub fn new(seed: u64) -> Self {
        let status = StatusFlags::default();
        Self(AnswerReader::new(AnswerForm::Results, false, status, seed))
    }

    /// Takes the next packet, which is shorter than the protocol's longest. `Ok(None)`: more follow.
    ///
    /// # Errors
    /// The packet may not follow here.
    pub fn packet(&mut self, payload: &[u8]) -> Result<Option<CommandAnswer>, Unreadable> {
        let is_short = payload.len() < 9;
        match self.0.packet(payload, is_short) {
            Progress::More => Ok(None),
            Progress::Complete => Ok(Some(std::mem::take(&mut self.0.answer))),
            Progress::WantsFile => Err(Unreadable::LocalFile),
            Progress::Cursor => Err(Unreadable::Cursor),
            Progress::Malformed => Err(Unreadable::Malformed),
        }
    }
}

/// The answer to COM_STMT_PREPARE, for the same client.
pub struct PrepareAnswer(AnswerReader);

impl Default for PrepareAnswer {
    fn default() -> Self {
        let status = StatusFlags::default();
        Self(AnswerReader::new(AnswerForm::Prepared, false, status, 0))
    }
}

impl PrepareAnswer {
    /// Takes the next packet. `Ok(None)`: more follow. In the end there is the number of the statement and how many
    /// parameters it has, or none for an error.
    ///
    /// # Errors
    /// The packet may not follow here.
    pub fn packet(&mut self, payload: &[u8]) -> Result<Option<Option<(u32, u16)>>, Unreadable> {
        match self.0.end(payload, payload.len() < 9) {
            Progress::More => Ok(None),
            Progress::Complete => Ok(Some(self.0.prepared.map(|it| (it.id, it.parameters)))),
            _ => Err(Unreadable::Malformed),
        }
    }
}

impl AnswerReader {
    pub(crate) fn new(form: AnswerForm, without_eof: bool, status: StatusFlags, seed: u64) -> Self {
        let step = if form == AnswerForm::Definitions {
            Step::UntilEof
        } else {
            Step::First
        };
        Self {
            form,
            step,
            without_eof,
            seed,
            hash: None,
            rows: 0,
            bytes: 0,
            hashes_payload: false,
            payload_has_begun: false,
            prepared: None,
            answer: CommandAnswer {
                status,
                ..CommandAnswer::default()
            },
        }
    }

    /// A whole payload.
    pub(crate) fn packet(&mut self, payload: &[u8], is_short: bool) -> Progress {
        if !payload.is_empty() {
            self.part(payload, is_short);
        }
        self.end(payload, is_short)
    }

    /// Takes some bytes of a payload; `is_short` means that the payload has fewer bytes than an EOF may have.
    pub(crate) fn part(&mut self, part: &[u8], is_short: bool) {
        if !self.payload_has_begun {
            self.payload_has_begun = true;
            self.hashes_payload = match self.step {
                Step::Definitions { then_rows, .. } => then_rows,
                Step::Rows => part[0] < 0xfe || (part[0] == 0xfe && !is_short),
                _ => false,
            };
        }
        if self.hashes_payload
            && let Some(hash) = &mut self.hash
        {
            hash.write(part);
            self.bytes += part.len() as u64;
        }
    }

    /// The payload is complete; `head` are its first bytes, `is_short` as for [`Self::part`].
    pub(crate) fn end(&mut self, head: &[u8], is_short: bool) -> Progress {
        if self.hashes_payload
            && let Some(hash) = &mut self.hash
        {
            // Two rows `ab` and `c` are not the rows `a` and `bc`.
            hash.write(&self.bytes.to_le_bytes());
        }
        self.payload_has_begun = false;
        self.hashes_payload = false;
        let first = head.first().copied();
        match (self.form, self.step) {
            (AnswerForm::OnePacket, _) => self.one_packet(head),
            (AnswerForm::Prepared, Step::First) => self.prepared_head(head),
            (_, Step::First) => self.first(head),
            (_, Step::Definitions { left, then_rows }) => {
                self.step = match left.saturating_sub(1) {
                    0 if self.without_eof => return self.after_definitions(then_rows),
                    0 => Step::EndOfDefinitions { then_rows },
                    left => Step::Definitions { left, then_rows },
                };
                Progress::More
            }
            (_, Step::EndOfDefinitions { then_rows }) => match first {
                Some(0xfe) if is_short => {
                    if eof_status(head).is_some_and(StatusFlags::has_cursor) {
                        return Progress::Cursor;
                    }
                    self.after_definitions(then_rows)
                }
                _ => Progress::Malformed,
            },
            (_, Step::Rows | Step::UntilEof) => match first {
                Some(0xff) => self.failed(head),
                Some(0xfe) if is_short => self.end_of_rows(head),
                Some(_) => {
                    self.rows += 1;
                    Progress::More
                }
                None => Progress::Malformed,
            },
        }
    }

    fn one_packet(&mut self, head: &[u8]) -> Progress {
        match head.first() {
            Some(0xff) => return self.failed(head),
            Some(0x00) => {
                if let Some((_, status)) = ok(head) {
                    self.answer.status = status;
                }
            }
            Some(0xfe) => {
                if let Some(status) = eof_status(head) {
                    self.answer.status = status;
                }
            }
            _ => {}
        }
        Progress::Complete
    }

    fn prepared_head(&mut self, mut head: &[u8]) -> Progress {
        if head.first() == Some(&0xff) {
            return self.failed(head);
        }
        let bytes = &mut head;
        let read = (|| {
            (u8(bytes)? == 0).then_some(())?;
            let id = crate::fields::u32(bytes)?;
            Some(PreparedHead {
                id,
                columns: u16(bytes)?,
                parameters: u16(bytes)?,
            })
        })();
        let Some(prepared) = read else {
            return Progress::Malformed;
        };
        self.prepared = Some(prepared);
        match (prepared.parameters, prepared.columns) {
            (0, 0) => return Progress::Complete,
            (0, columns) => {
                self.step = Step::Definitions {
                    left: columns.into(),
                    then_rows: false,
                }
            }
            (parameters, _) => {
                self.step = Step::Definitions {
                    left: parameters.into(),
                    then_rows: false,
                }
            }
        }
        Progress::More
    }

    fn first(&mut self, mut head: &[u8]) -> Progress {
        match head.first() {
            Some(0x00) => {
                let Some((changed_rows, status)) = ok(head) else {
                    return Progress::Malformed;
                };
                self.outcome(Outcome::Done { changed_rows });
                self.after_result(status)
            }
            Some(0xff) => self.failed(head),
            Some(0xfb) => Progress::WantsFile,
            _ => match length(&mut head) {
                Some(columns @ 1..=65_535) => {
                    self.hash = Some(XxHash3_64::with_seed(self.seed));
                    (self.rows, self.bytes) = (0, 0);
                    self.step = Step::Definitions {
                        left: columns,
                        then_rows: true,
                    };
                    Progress::More
                }
                _ => Progress::Malformed,
            },
        }
    }

    fn after_definitions(&mut self, then_rows: bool) -> Progress {
        if then_rows {
            self.step = Step::Rows;
            return Progress::More;
        }
        // After the parameters of a prepared statement come its columns.
        match &mut self.prepared {
            Some(prepared) if prepared.parameters > 0 && prepared.columns > 0 => {
                self.step = Step::Definitions {
                    left: prepared.columns.into(),
                    then_rows: false,
                };
                prepared.columns = 0;
                Progress::More
            }
            _ => Progress::Complete,
        }
    }

    fn end_of_rows(&mut self, head: &[u8]) -> Progress {
        // If EOF was abolished, an OK packet with its number stands in its place.
        let status = if self.without_eof {
            ok(head).map(|(_, status)| status)
        } else {
            eof_status(head)
        };
        let Some(status) = status else {
            return Progress::Malformed;
        };
        if self.step == Step::UntilEof {
            self.answer.status = status;
            return Progress::Complete;
        }
        let hash = self.hash.take().map_or(0, |hash| hash.finish());
        self.outcome(Outcome::Rows {
            rows: self.rows,
            bytes: self.bytes,
            hash,
        });
        self.after_result(status)
    }

    fn after_result(&mut self, status: StatusFlags) -> Progress {
        self.answer.status = status;
        self.step = Step::First;
        if status.has_more_results() {
            Progress::More
        } else {
            Progress::Complete
        }
    }

    fn failed(&mut self, head: &[u8]) -> Progress {
        let Some(code) = head
            .get(1..3)
            .map(|code| u16::from_le_bytes([code[0], code[1]]))
        else {
            return Progress::Malformed;
        };
        self.outcome(Outcome::Failed { code });
        Progress::Complete
    }

    fn outcome(&mut self, outcome: Outcome) {
        if self.answer.outcomes.len() < MAX_OUTCOMES {
            self.answer.outcomes.push(outcome);
        } else {
            self.answer.left_out += 1;
        }
    }
}

/// Changed rows and status of an OK packet.
fn ok(mut head: &[u8]) -> Option<(u64, StatusFlags)> {
    let bytes = &mut head;
    u8(bytes)?;
    let changed_rows = length(bytes)?;
    length(bytes)?;
    Some((changed_rows, StatusFlags(u16(bytes)?)))
}

fn eof_status(head: &[u8]) -> Option<StatusFlags> {
    let status = head.get(3..5)?;
    Some(StatusFlags(u16::from_le_bytes([status[0], status[1]])))
}
