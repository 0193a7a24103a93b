//! Reads a folder through and reports its content. Nothing is changed and no lock is taken, so that it works beside
//! a server, whose unfinished segment then counts as such.

use crate::error::TierError;
use crate::form::segment::{HEADER_BYTES, SegmentHeader, SegmentOpening, segment_number};
use crate::form::{footer, journal, record};
use crate::journal::history::JournalHistory;
use crate::listing::{ListingSource, SegmentListing};
use crate::purge::LogPosition;
use crate::start::{io_error, is_ours};
use crate::storage::{Storage, StorageFile};
use bytes::BytesMut;
use std::fmt;
use std::io;
use std::path::Path;

/// The content of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderReport {
    pub segments: Vec<SegmentReport>,
    pub journals: usize,
    /// Purges that are kept.
    pub purges: usize,
    /// How far the purges of other machines are among them.
    pub position: Option<LogPosition>,
    /// Descriptions of the damage in the journals.
    pub journal_damage: Vec<String>,
    /// Records with an earlier stamp are void.
    pub floor: u64,
    /// The number of the last start.
    pub last_start: u32,
    /// Names of files that are not of a cache.
    pub foreign: Vec<String>,
}

/// The content of a file with the name of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    pub name: String,
    pub bytes: u64,
    pub finding: SegmentFinding,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentFinding {
    Records {
        zone: u64,
        fingerprint: u64,
        start: u16,
        whole: u64,
        /// Records whose purges are not known any more.
        void: u64,
        damaged: u64,
        end: SegmentEnd,
    },
    /// It is of another form, damaged at its begin, or cannot be read: this is why.
    Skipped(String),
    Foreign,
}

/// How a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentEnd {
    /// With a footer.
    Finished,
    /// It is written to, or was when the server was killed. So many bytes behind the last record are of none: torn,
    /// damaged, or just being written.
    Unfinished { unread: u64 },
    /// With a footer that is damaged. Its records are found by walking through the segment.
    DamagedFooter,
}

impl SegmentEnd {
    fn is_whole(self) -> bool {
        matches!(
            self,
            SegmentEnd::Finished | SegmentEnd::Unfinished { unread: 0 }
        )
    }
}

impl fmt::Display for SegmentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentEnd::Finished => f.write_str("finished"),
            SegmentEnd::Unfinished { unread: 0 } => f.write_str("not finished"),
            SegmentEnd::Unfinished { unread } => {
                write!(f, "not finished, {unread} bytes at its end damaged")
            }
            SegmentEnd::DamagedFooter => f.write_str("finished, its footer damaged"),
        }
    }
}

impl FolderReport {
    /// Records that are whole and not void.
    #[must_use]
    pub fn records(&self) -> u64 {
        let of = |segment: &SegmentReport| match segment.finding {
            SegmentFinding::Records { whole, void, .. } => whole - void,
            _ => 0,
        };
        self.segments.iter().map(of).sum()
    }

    /// Whether all is undamaged.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_whole = |segment: &SegmentReport| match segment.finding {
            SegmentFinding::Records { damaged, end, .. } => damaged == 0 && end.is_whole(),
            SegmentFinding::Skipped(_) => false,
            SegmentFinding::Foreign => true,
        };
        self.journal_damage.is_empty() && self.segments.iter().all(is_whole)
    }
}

impl fmt::Display for FolderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            writeln!(f, "{segment}")?;
        }
        writeln!(
            f,
            "{} journals: {} purges, start {}, floor {:#x}",
            self.journals, self.purges, self.last_start, self.floor
        )?;
        if let Some(LogPosition { log, number }) = &self.position {
            let log = String::from_utf8_lossy(log);
            writeln!(f, "purges of other machines: up to {number} of log {log}")?;
        }
        for damage in &self.journal_damage {
            writeln!(f, "damaged: {damage}")?;
        }
        for name in &self.foreign {
            writeln!(f, "{name}: not of a cache")?;
        }
        write!(f, "{} records are of use", self.records())
    }
}

impl fmt::Display for SegmentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} bytes, ", self.name, self.bytes)?;
        match &self.finding {
            SegmentFinding::Foreign => f.write_str("not of a cache"),
            SegmentFinding::Skipped(reason) => write!(f, "skipped: {reason}"),
            SegmentFinding::Records {
                zone,
                fingerprint,
                start,
                whole,
                void,
                damaged,
                end,
            } => write!(
                f,
                "{whole} records ({void} void), {damaged} damaged, {end}, start {start}, zone {zone:#x}, \
                 configuration {fingerprint:#x}"
            ),
        }
    }
}

/// Reads a folder through: each record with its check sums.
///
/// # Errors
/// The folder cannot be listed.
pub fn verify(path: &Path, storage: &dyn Storage) -> Result<FolderReport, TierError> {
    let mut listed = storage.list(path).map_err(io_error("list", path))?;
    listed.sort_by(|one, other| one.name.cmp(&other.name));
    let history = JournalHistory::read(storage, path, &listed);
    let void_all = if history.is_void() { u64::MAX } else { 0 };
    let floor = history.floor.max(void_all);
    let mut report = FolderReport {
        journals: history.files.len(),
        purges: history.purges.len(),
        position: history.position,
        floor,
        last_start: history.last_start,
        journal_damage: history.damage,
        ..FolderReport::default()
    };
    for file in listed {
        match (segment_number(&file.name), file.len) {
            (Some(number), Some(bytes)) => {
                let opened = storage.open(&path.join(&file.name));
                let finding = opened.and_then(|open| finding(&*open, number, floor));
                report.segments.push(SegmentReport {
                    name: file.name,
                    bytes,
                    finding: finding
                        .unwrap_or_else(|error| SegmentFinding::Skipped(error.to_string())),
                });
            }
            _ if is_ours(&file) => {}
            _ => report.foreign.push(file.name),
        }
    }
    Ok(report)
}

fn finding(file: &dyn StorageFile, number: u64, floor: u64) -> io::Result<SegmentFinding> {
    let mut header = [0; HEADER_BYTES];
    let count = file.read_at(&mut header, 0)?;
    let header = match SegmentHeader::read(&header[..count]) {
        SegmentOpening::Header(header) => header,
        SegmentOpening::OtherForm(form) => {
            return Ok(SegmentFinding::Skipped(format!("form {form}")));
        }
        SegmentOpening::Damaged => return Ok(SegmentFinding::Skipped("damaged".to_owned())),
        SegmentOpening::Foreign => return Ok(SegmentFinding::Foreign),
    };
    let listing = SegmentListing::read(file, number)?;
    let (mut whole, mut void) = (0, 0);
    for entry in &listing.entries {
        if is_whole(file, entry)? {
            whole += 1;
            void += u64::from(entry.stamp < floor);
        }
    }
    Ok(SegmentFinding::Records {
        zone: header.zone,
        fingerprint: header.fingerprint,
        start: header.start,
        whole,
        void,
        damaged: listing.entries.len() as u64 - whole,
        end: match listing.source {
            ListingSource::Footer => SegmentEnd::Finished,
            ListingSource::Scan { unread } => SegmentEnd::Unfinished { unread },
            ListingSource::DamagedFooter(_) => SegmentEnd::DamagedFooter,
        },
    })
}

fn is_whole(file: &dyn StorageFile, entry: &footer::FooterEntry) -> io::Result<bool> {
    let (at, len) = entry.range();
    if at + len as u64 > file.byte_len()? {
        return Ok(false);
    }
    let mut bytes = BytesMut::zeroed(len);
    if file.read_at(&mut bytes, at)? < len {
        return Ok(false);
    }
    Ok(record::is_whole(&bytes.freeze()))
}

/// Reads any bytes as a record, as a segment's begin and footer, and as a journal.
#[doc(hidden)]
pub fn fuzz_form(bytes: &[u8]) {
    let shared = bytes::Bytes::copy_from_slice(bytes);
    let _ = record::RecordHead::read(&shared);
    let _ = record::is_whole(&shared);
    let _ = SegmentHeader::read(bytes);
    let _ = footer::Trailer::read(bytes, 0, bytes.len() as u64);
    let _ = footer::FooterBlock::read(bytes, 0, 0);
    // Check sums keep a fuzzer out: each unit is tried with the right one as well.
    let mut sealed = bytes.to_vec();
    for (number, unit) in (0..).zip(sealed.chunks_exact_mut(crate::form::UNIT)) {
        if number == 0 || unit[..4] == [0xff; 4] {
            crate::form::seal(unit);
        }
        if let Some(unit) = unit.first_chunk() {
            let _ = journal::read_unit(unit, number);
        }
    }
    let mut history = JournalHistory::default();
    history.add_file(1, bytes);
    history.add_file(2, &sealed);
}
