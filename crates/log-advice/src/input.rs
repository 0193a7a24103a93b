//! Log files: the oldest first, unpacked where they are compressed, one line after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use flate2::bufread::MultiGzDecoder;

use crate::advice::BadLines;
use crate::entry::{Entry, Fault};
use crate::format::Format;
use crate::line;
use crate::study::Study;

const BUFFER_BYTES: usize = 256 << 10;
/// Longer lines are bad ones: a request's head has no more.
const MAX_LINE_BYTES: usize = 64 << 10;
/// Lines that are looked at for the first time of a file.
const FIRST_LINES: usize = 1000;
/// Entries between two reports of progress.
const REPORT_EVERY: u64 = 1 << 20;

/// The logs that were named.
#[derive(Debug)]
pub struct Input {
    files: Vec<LogFile>,
    format: Option<Format>,
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    bytes: u64,
    begins_at_ms: u64,
}

/// A log that could not be read.
#[derive(Debug)]
pub struct InputError {
    pub path: PathBuf,
    pub error: io::Error,
}

/// Bad lines of one kind.
#[derive(Debug, Default)]
struct Bad {
    lines: u64,
    first: String,
}

impl Input {
    /// Looks into each file; `-` is standard input.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn open(
        paths: impl IntoIterator<Item = PathBuf>,
        format: Option<Format>,
    ) -> Result<Input, InputError> {
        let mut files = Vec::new();
        for path in paths {
            let looked = match path.as_os_str() == "-" {
                true => Ok((0, 0)),
                false => look(&path, format.as_ref()),
            };
            match looked {
                Ok((bytes, begins_at_ms)) => files.push(LogFile {
                    path,
                    bytes,
                    begins_at_ms,
                }),
                Err(error) => return Err(InputError { path, error }),
            }
        }
        // Rotated logs are named from the newest to the oldest.
        files.sort_by_key(|file| file.begins_at_ms);
        Ok(Input { files, format })
    }

    /// Bytes of all files, as they are on the disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Gives every entry to the study, and reports to `progress` now and then how many bytes have been
    /// read.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(
        &self,
        study: &mut Study,
        progress: impl FnMut(u64),
    ) -> Result<Vec<BadLines>, InputError> {
        self.entries(&mut |entry| study.take(entry), progress)
    }

    /// Like [`Input::read`], with a function that takes the entries.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn entries(
        &self,
        take: &mut dyn FnMut(&Entry<'_>),
        mut progress: impl FnMut(u64),
    ) -> Result<Vec<BadLines>, InputError> {
        let mut bad = BTreeMap::new();
        let mut bytes_before = 0;
        for file in &self.files {
            let reported = |bytes| progress(bytes_before + bytes);
            let result = self.read_file(file, take, &mut bad, reported);
            result.map_err(|error| InputError {
                path: file.path.clone(),
                error,
            })?;
            bytes_before += file.bytes;
        }
        let mut bad: Vec<BadLines> = bad
            .into_iter()
            .map(|(fault, bad): (Fault, Bad)| fault.lines(bad.lines, bad.first))
            .collect();
        bad.sort_by_key(|it| std::cmp::Reverse(it.lines));
        Ok(bad)
    }

    fn read_file(
        &self,
        file: &LogFile,
        take: &mut dyn FnMut(&Entry<'_>),
        bad: &mut BTreeMap<Fault, Bad>,
        mut progress: impl FnMut(u64),
    ) -> io::Result<()> {
        let mut reader = lines_of(&file.path)?;
        let mut number = 0_u64;
        let (mut read, mut reported) = (0, 0);
        let mut line = Vec::new();
        while let Some(is_whole) = next_line(&mut reader, &mut line)? {
            number += 1;
            read += line.len() as u64 + 1;
            if read >= reported + REPORT_EVERY {
                reported = read;
                progress(read.min(file.bytes));
            }
            let entry = match is_whole {
                true if line.trim_ascii().is_empty() => continue,
                true => self.entry(&line),
                false => Err(Fault::TooLong),
            };
            match entry {
                Ok(entry) => take(&entry),
                Err(fault) => {
                    let bad = bad.entry(fault).or_default();
                    if bad.lines == 0 {
                        bad.first = format!("{}:{number}", file.path.display());
                    }
                    bad.lines += 1;
                }
            }
        }
        Ok(())
    }

    fn entry<'l>(&self, line: &'l [u8]) -> Result<Entry<'l>, Fault> {
        entry(line, self.format.as_ref())
    }
}

fn entry<'l>(line: &'l [u8], format: Option<&Format>) -> Result<Entry<'l>, Fault> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match format {
        Some(format) => format.entry(line),
        None => line::parse(line),
    }
}

/// How long the file is, and when its first entry was written.
fn look(path: &std::path::Path, format: Option<&Format>) -> io::Result<(u64, u64)> {
    let metadata = std::fs::metadata(path)?;
    // Bytes read from a pipe are gone.
    if !metadata.is_file() {
        return Ok((0, 0));
    }
    let mut reader = lines_of(path)?;
    let mut line = Vec::new();
    for _ in 0..FIRST_LINES {
        match next_line(&mut reader, &mut line)? {
            None => break,
            Some(_) => {
                if let Ok(entry) = entry(&line, format) {
                    return Ok((metadata.len(), entry.at_ms));
                }
            }
        }
    }
    Ok((metadata.len(), 0))
}

fn lines_of(path: &std::path::Path) -> io::Result<Box<dyn BufRead>> {
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, source);
    match reader.fill_buf()?.starts_with(b"\x1f\x8b") {
        true => Ok(Box::new(BufReader::with_capacity(
            BUFFER_BYTES,
            MultiGzDecoder::new(reader),
        ))),
        false => Ok(Box::new(reader)),
    }
}

/// The next line without its end; `Some(false)` for one that is too long, of which nothing is kept.
fn next_line(reader: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    let mut is_whole = true;
    loop {
        let available = match reader.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            let is_end = line.is_empty() && is_whole;
            return Ok((!is_end).then_some(is_whole));
        }
        let end = memchr::memchr(b'\n', available);
        let piece = available.get(..end.unwrap_or(available.len()));
        let piece = piece.unwrap_or_default();
        let taken = piece.len() + usize::from(end.is_some());
        if line.len() + piece.len() > MAX_LINE_BYTES {
            is_whole = false;
            line.clear();
        } else if is_whole {
            line.extend_from_slice(piece);
        }
        reader.consume(taken);
        if end.is_some() {
            return Ok(Some(is_whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Rules;
    use std::io::Write;

    fn line(second: u32, path: &str) -> String {
        format!(
            "::1 - - [23/Nov/2026:11:22:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"x\"\n"
        )
    }

    #[test]
    fn rotated_and_compressed_logs_are_read_from_the_oldest_on() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("log"), folder.path().join("log.1.gz"));
        std::fs::write(&new, format!("nonsense\n\n{}", line(30, "/b"))).unwrap();
        let mut packed =
            flate2::write::GzEncoder::new(File::create(&old).unwrap(), flate2::Compression::fast());
        packed.write_all(line(10, "/a").as_bytes()).unwrap();
        packed.finish().unwrap();
        let input = Input::open([new.clone(), old], None).unwrap();
        let mut study = Study::new(Rules::default());
        let bad = input.read(&mut study, |_| ()).unwrap();
        let [bad] = &bad[..] else { panic!("{bad:?}") };
        assert_eq!(
            (bad.lines, &*bad.first),
            (1, &*format!("{}:1", new.display()))
        );
        let advice = study.advice();
        assert_eq!(advice.lines, 2);
        assert!((advice.to - advice.from - 20.999).abs() < 1e-3);
    }

    #[test]
    fn a_line_without_end_is_one_bad_line_and_takes_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let long = "x".repeat(MAX_LINE_BYTES * 3);
        std::fs::write(&path, format!("{long}\n{}{long}", line(1, "/"))).unwrap();
        let input = Input::open([path], None).unwrap();
        let mut study = Study::new(Rules::default());
        let bad = input.read(&mut study, |_| ()).unwrap();
        assert_eq!((bad.len(), bad[0].lines, &*bad[0].what), (1, 2, "too long"));
        assert_eq!(study.advice().lines, 1);
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Input::open([PathBuf::from("/nowhere/log")], None).unwrap_err();
        assert_eq!(error.path, PathBuf::from("/nowhere/log"));
    }
}
