//! Lowers `error_log`, `access_log`, `log_format` and `open_log_file_cache`.

use std::time::Duration;

use nginx_conf::{Diagnostic, Word, did_you_mean};

use super::Lowering;
use super::level::Level;
use super::template::{has_variables, join};
use super::values::{parameter, seconds, to_u32};
use crate::check::Node;
use crate::model::*;

const LEVELS: [(&str, LogLevel); 14] = [
    ("emerg", LogLevel::Emerg),
    ("alert", LogLevel::Alert),
    ("crit", LogLevel::Crit),
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("notice", LogLevel::Notice),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("debug_core", LogLevel::Debug),
    ("debug_alloc", LogLevel::Debug),
    ("debug_event", LogLevel::Debug),
    ("debug_http", LogLevel::Debug),
    ("debug_mutex", LogLevel::Debug),
    ("debug_mail", LogLevel::Debug),
];

/// Facilities by number (RFC 5424, 6.2.1, under the names of syslog.h).
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock", "authpriv",
    "ftp", "ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];

/// Severities by number.
const SEVERITIES: [&str; 8] = [
    "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug",
];

const LOCAL7: u8 = 23;

/// The longest syslog tag, as in nginx.
const MAX_TAG_BYTES: usize = 32;

/// The buffer of a compressed log without `buffer=`.
const GZIP_BUFFER_BYTES: u64 = 64 << 10;

/// The index of the predefined format in the list of formats.
const COMBINED: LogFormatId = LogFormatId(0);

impl Lowering<'_> {
    pub fn error_logs(&mut self, level: &Level<'_>) -> Vec<ErrorLog> {
        let nodes = level.all("error_log").to_vec();
        if nodes.is_empty() {
            let default = || self.own_files.unnamed_log("error.log");
            let target = LogTarget::File(self.options.error_log.clone().unwrap_or_else(default));
            return vec![ErrorLog {
                target,
                level: LogLevel::Error,
            }];
        }
        let mut logs = Vec::new();
        for node in nodes {
            let word = node.arg(0);
            let least = match node.args().get(1) {
                Some(word) => self.choice_of(word, &LEVELS),
                None => Some(LogLevel::Error),
            };
            if word.starts_with("memory:") {
                self.invalid(word, "log", "Mayfly cannot log to memory");
                continue;
            }
            if let (Some(target), Some(level)) = (self.log_target(word), least) {
                logs.push(ErrorLog { target, level });
            }
        }
        logs
    }

    fn log_target(&mut self, word: &Word) -> Option<LogTarget> {
        if word.text == "stderr" {
            return Some(LogTarget::Stderr);
        }
        match word.strip_prefix("syslog:") {
            Some(parameters) => self.syslog(word, parameters),
            None => Some(LogTarget::File(self.own_files.logs.join(&word.text))),
        }
    }

    /// `server=ADDRESS[,facility=NAME][,severity=NAME][,tag=TEXT][,nohostname]`
    fn syslog(&mut self, word: &Word, parameters: &str) -> Option<LogTarget> {
        let (mut server, mut tag) = (None, "mayfly".to_owned());
        let (mut facility, mut severity, mut hostname) = (LOCAL7, None, true);
        for part in parameters.split(',') {
            let number = |names: &[&str], value: &str| {
                names
                    .iter()
                    .position(|name| *name == value)
                    .and_then(|at| u8::try_from(at).ok())
            };
            match part.split_once('=') {
                Some(("server", value)) if !value.is_empty() => server = Some(value.to_owned()),
                Some(("facility", value)) => match number(&FACILITIES, value) {
                    Some(found) => facility = found,
                    None => self.error(word.span, format!("unknown syslog facility \"{value}\"")),
                },
                Some(("severity", value)) => match number(&SEVERITIES, value) {
                    Some(found) => severity = Some(found),
                    None => self.error(word.span, format!("unknown syslog severity \"{value}\"")),
                },
                Some(("tag", value)) => {
                    let is_tag = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                    if value.is_empty() || value.len() > MAX_TAG_BYTES || !value.bytes().all(is_tag)
                    {
                        let expected =
                            format!("expected at most {MAX_TAG_BYTES} letters, digits and _");
                        self.invalid(word, "syslog tag", expected);
                    }
                    value.clone_into(&mut tag);
                }
                None if part == "nohostname" => hostname = false,
                _ => self.error(word.span, format!("unknown syslog parameter \"{part}\"")),
            }
        }
        if server.is_none() {
            self.refuse(
                word.span,
                "no syslog server specified",
                "expected syslog:server=ADDRESS",
            );
        }
        Some(LogTarget::Syslog {
            server: server?,
            facility,
            severity,
            tag,
            hostname,
        })
    }

    pub fn log_formats(&mut self, level: &Level<'_>) {
        self.declared.log_formats.push(combined());
        for node in level.own("log_format") {
            let name = node.arg(0);
            if self
                .declared
                .log_formats
                .iter()
                .any(|format| format.name == name.text)
            {
                self.error(
                    name.span,
                    format!("duplicate \"log_format\" name \"{name}\""),
                );
                continue;
            }
            let mut escape = LogEscape::Default;
            let mut texts = node.args().get(1..).unwrap_or_default();
            if let Some((word, value)) = texts
                .first()
                .and_then(|word| Some((word, parameter(word, "escape")?)))
            {
                texts = texts.get(1..).unwrap_or_default();
                escape = match value {
                    "default" => LogEscape::Default,
                    "json" => LogEscape::Json,
                    "none" => LogEscape::None,
                    _ => {
                        self.invalid(word, "escape", "expected default, json or none");
                        LogEscape::Default
                    }
                };
            }
            let template = join(texts.iter().map(|word| self.template(word)));
            self.declared.log_formats.push(LogFormat {
                name: name.text.clone(),
                escape,
                template,
            });
        }
    }

    pub fn access_logs(&mut self, level: &Level<'_>) -> Vec<AccessLog> {
        let nodes = level.all("access_log").to_vec();
        if nodes.is_empty() {
            let target =
                AccessLogTarget::Fixed(LogTarget::File(self.own_files.unnamed_log("access.log")));
            return vec![plain_log(target)];
        }
        if nodes
            .iter()
            .any(|node| node.args().len() == 1 && node.arg(0).text == "off")
        {
            return Vec::new();
        }
        nodes
            .iter()
            .filter_map(|node| self.access_log(node))
            .collect()
    }

    fn access_log(&mut self, node: &Node<'_>) -> Option<AccessLog> {
        let path = node.arg(0);
        let target = if has_variables(path) && !path.starts_with("syslog:") {
            let logs = self.own_files.logs.clone();
            AccessLogTarget::Variable(self.path_template_below(&logs, path))
        } else if path.text == "stderr" {
            // nginx writes a file with this name; here it is the standard error stream.
            AccessLogTarget::Fixed(LogTarget::Stderr)
        } else {
            AccessLogTarget::Fixed(self.log_target(path)?)
        };
        let mut log = plain_log(target);
        for (position, word) in node.args().iter().enumerate().skip(1) {
            self.access_log_parameter(word, position, &mut log)?;
        }
        if log.gzip_level.is_some() && log.buffer_bytes == 0 {
            log.buffer_bytes = GZIP_BUFFER_BYTES;
        }
        if log.flush.is_some() && log.buffer_bytes == 0 {
            self.refuse(
                node.span(),
                "no buffer is defined for access_log",
                "flush= needs buffer= or gzip",
            );
        }
        if log.buffer_bytes > 0 && matches!(log.target, AccessLogTarget::Variable(_)) {
            self.error(node.span(), "buffered logs cannot have variables in name");
        }
        Some(log)
    }

    /// `cache_purge_log PATH [FORMAT] | off`
    pub fn purge_log(&mut self, level: &Level<'_>) -> Option<PurgeLog> {
        let node = level.find("cache_purge_log")?;
        let path = node.arg(0);
        if path.text == "off" {
            return None;
        }
        let format = match node.args().get(1) {
            Some(word) => self.choice_of(
                word,
                &[
                    ("text", PurgeLogFormat::Text),
                    ("json", PurgeLogFormat::Json),
                ],
            )?,
            None => PurgeLogFormat::Text,
        };
        if has_variables(path) {
            self.invalid(path, "log", "expected a path without variables");
            return None;
        }
        let target = self.log_target(path)?;
        Some(PurgeLog { target, format })
    }

    fn access_log_parameter(
        &mut self,
        word: &Word,
        position: usize,
        log: &mut AccessLog,
    ) -> Option<()> {
        if let Some(text) = parameter(word, "buffer") {
            log.buffer_bytes = self.size_in(word, text)?;
        } else if let Some(text) = parameter(word, "flush") {
            log.flush = Some(self.duration_in(word, text)?);
        } else if let Some(text) = parameter(word, "if") {
            log.condition = Some(self.template_in(word, "if=".len(), text));
        } else if word.text == "gzip" {
            log.gzip_level = Some(1);
        } else if let Some(text) = parameter(word, "gzip") {
            match self.number_in(word, text)? {
                level @ 1..=9 => log.gzip_level = Some(to_u32(level)),
                _ => self.invalid(word, "level", "expected 1 to 9"),
            }
        } else if position == 1 {
            log.format = self.format_named(word)?;
        } else {
            self.unknown_parameter(word, word, "access_log", "buffer gzip flush if");
        }
        Some(())
    }

    fn format_named(&mut self, word: &Word) -> Option<LogFormatId> {
        let names: Vec<String> = self
            .declared
            .log_formats
            .iter()
            .map(|format| format.name.clone())
            .collect();
        if let Some(index) = names.iter().position(|name| *name == word.text) {
            return Some(LogFormatId(index));
        }
        let error = Diagnostic::error(word.span, format!("unknown log format \"{word}\""));
        self.report(match did_you_mean(word, names.iter().map(String::as_str)) {
            Some(meant) => error
                .label("no such format")
                .hint(format!("did you mean \"{meant}\"?")),
            None => error.label("no log_format of this name"),
        });
        None
    }

    pub fn open_log_file_cache(&mut self, level: &Level<'_>) -> Option<OpenLogFileCache> {
        let known = "max inactive min_uses valid off";
        let bounds = self.cache_bounds(level, "open_log_file_cache", seconds(10), known)?;
        let cache = OpenLogFileCache {
            max: bounds.max,
            inactive: bounds.inactive,
            min_uses: bounds.min_uses,
            valid: bounds.valid,
        };
        Some(cache).filter(|cache| cache.valid > Duration::ZERO || cache.max > 0)
    }
}

/// A log without parameters.
fn plain_log(target: AccessLogTarget) -> AccessLog {
    AccessLog {
        target,
        format: COMBINED,
        buffer_bytes: 0,
        flush: None,
        gzip_level: None,
        condition: None,
    }
}

/// `$remote_addr - $remote_user [$time_local] "$request" $status
/// $body_bytes_sent "$http_referer" "$http_user_agent"`
fn combined() -> LogFormat {
    let text = |text: &str| Part::Literal(text.as_bytes().into());
    let builtin = |builtin| Part::Variable(Variable::Builtin(builtin));
    let field = |name: &str| Part::Variable(Variable::RequestField(name.as_bytes().into()));
    let parts = vec![
        builtin(Builtin::RemoteAddr),
        text(" - "),
        builtin(Builtin::RemoteUser),
        text(" ["),
        builtin(Builtin::TimeLocal),
        text("] \""),
        builtin(Builtin::Request),
        text("\" "),
        builtin(Builtin::Status),
        text(" "),
        builtin(Builtin::BodyBytesSent),
        text(" \""),
        field("referer"),
        text("\" \""),
        field("user_agent"),
        text("\""),
    ];
    LogFormat {
        name: "combined".to_owned(),
        escape: LogEscape::Default,
        template: Template { parts },
    }
}
