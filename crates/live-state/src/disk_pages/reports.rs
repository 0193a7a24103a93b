//! Reports about the pages on disk: their state, and the lines that the error log gets.

use std::sync::Arc;

use disk_tier::{TierEvent, TierState};
use http_cache::Zone;
use site::{ErrorLog, LogLevel};

use super::{DiskPages, FolderState};
use crate::error_log::ErrorLogs;

/// Whether pages are kept on disk now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskState {
    Serving,
    /// The pages there are shown, and none are written.
    ReadOnly(String),
    /// The disk is slow: neither, for a while.
    Resting,
    Off(String),
}

impl DiskState {
    pub fn word(&self) -> &'static str {
        match self {
            DiskState::Serving => "serving",
            DiskState::ReadOnly(_) => "read-only",
            DiskState::Resting => "resting",
            DiskState::Off(_) => "off",
        }
    }

    /// Why, where it does not serve.
    pub fn why(&self) -> Option<&str> {
        match self {
            DiskState::Serving => None,
            DiskState::ReadOnly(why) | DiskState::Off(why) => Some(why),
            DiskState::Resting => Some("the disk is slow"),
        }
    }
}

impl DiskPages {
    /// Whether pages are kept there now.
    pub fn state(&self) -> DiskState {
        match &*self.state.read() {
            FolderState::Waiting(waiting) => {
                let why = waiting.why.as_deref().unwrap_or("it is not open yet");
                DiskState::Off(why.to_owned())
            }
            FolderState::GivenUp | FolderState::Stopped => {
                DiskState::Off("it is closed".to_owned())
            }
            FolderState::Open(open) => match open.tier.state() {
                TierState::Serving => DiskState::Serving,
                TierState::ReadOnly(why) => DiskState::ReadOnly(why),
                TierState::JournalFailing(why) => {
                    DiskState::Off(format!("purges cannot be written: {why}"))
                }
                TierState::Resting => DiskState::Resting,
                TierState::Off => DiskState::Off("it is closed".to_owned()),
            },
        }
    }

    /// Returns the lines about events since the last call, with their levels.
    fn news(&self) -> Vec<(LogLevel, String)> {
        let Some(open) = self.open() else {
            return Vec::new();
        };
        let events = open.tier.take_events().into_iter();
        let mut news: Vec<(LogLevel, String)> = events
            .map(|event| (level_of(&event), self.line(format_args!("{event}"))))
            .collect();
        if let Some((count, why)) = open.tickets.take_failures() {
            let line = self.line(format_args!(
                "{count} purges hold in memory and are not on the disk: {why}"
            ));
            news.push((LogLevel::Error, line));
        }
        news
    }
}

/// How much an event matters.
pub(super) fn level_of(event: &TierEvent) -> LogLevel {
    match event {
        TierEvent::Loaded { .. }
        | TierEvent::SegmentScanned { .. }
        | TierEvent::WritingResumed
        | TierEvent::JournalResumed => LogLevel::Notice,
        TierEvent::JournalFailed { .. } => LogLevel::Error,
        _ => LogLevel::Warn,
    }
}

/// Logs events of the zones' folders.
pub fn log_events(zones: &[Arc<Zone>], logs: &[ErrorLog], error_logs: &ErrorLogs) {
    for pages in zones.iter().filter_map(|zone| DiskPages::of(zone)) {
        for (level, line) in pages.news() {
            error_logs.write(logs, level, 0, format_args!("{line}"), "");
        }
    }
}
