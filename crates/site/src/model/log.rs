//! Targets, levels and formats of the error log and the access log.

use std::path::PathBuf;
use std::time::Duration;

use super::ids::LogFormatId;
use super::template::Template;

/// Levels of `error_log`, most severe first (order matters: `Error <= Warn`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Emerg,
    Alert,
    Crit,
    Error,
    Warn,
    Notice,
    Info,
    Debug,
}

impl LogLevel {
    /// The word in `error_log` and, in brackets, in log lines.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Emerg => "emerg",
            LogLevel::Alert => "alert",
            LogLevel::Crit => "crit",
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Notice => "notice",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        }
    }
}

/// The destination of log lines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogTarget {
    File(PathBuf),
    Stderr,
    Syslog {
        /// `host:port` or `unix:/path`.
        server: String,
        facility: u8,
        severity: Option<u8>,
        tag: String,
        hostname: bool,
    },
}

/// `error_log TARGET [LEVEL]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLog {
    pub target: LogTarget,
    pub level: LogLevel,
}

/// `log_format NAME [escape=...] ...`.
#[derive(Debug, Clone)]
pub struct LogFormat {
    pub name: String,
    pub escape: LogEscape,
    pub template: Template,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEscape {
    Default,
    Json,
    None,
}

/// `access_log PATH [FORMAT] [buffer=SIZE] [gzip[=LEVEL]] [flush=TIME] [if=CONDITION]`.
#[derive(Debug, Clone)]
pub struct AccessLog {
    pub target: AccessLogTarget,
    pub format: LogFormatId,
    /// 0: each line is written at once.
    pub buffer_bytes: u64,
    pub flush: Option<Duration>,
    pub gzip_level: Option<u32>,
    pub condition: Option<Template>,
}

#[derive(Debug, Clone)]
pub enum AccessLogTarget {
    Fixed(LogTarget),
    /// A path with variables.
    Variable(Template),
}

/// `cache_purge_log PATH [FORMAT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeLog {
    pub target: LogTarget,
    pub format: PurgeLogFormat,
}

/// How a line about a purge is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeLogFormat {
    /// For people.
    Text,
    /// One object of JSON each.
    Json,
}

/// `open_log_file_cache`, for log paths with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenLogFileCache {
    pub max: usize,
    pub inactive: Duration,
    pub min_uses: u32,
    pub valid: Duration,
}
