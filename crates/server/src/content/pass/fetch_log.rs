//! Error log lines about fetches: their details of the visitor's request and of the upstream.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use fair_queue::Turn;
use parking_lot::Mutex;
use site::{LogLevel, Settings};
use upstream::Group;

use super::page_fetch;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::page_budget::PageBudget;
use crate::exchange::request::Request;
use crate::log::error_log;
use crate::log::error_log::Origin;
use upstream_fetch::{FetchLog, Trace};

/// The request that log lines and `$upstream_*` tell of, which is not always the one that the
/// upstream is sent.
pub struct Visitor {
    pub origin: Origin,
    pub trace: Arc<Mutex<Trace>>,
    /// The turn of a part of a page, until the fetch ends.
    pub turn: Option<Box<dyn Send + Sync>>,
}

impl Visitor {
    /// A fetch begins for `request`. If that is a part of a page, it is counted there.
    ///
    /// # Errors
    /// A status: the page has asked as often as it may.
    pub fn begin_fetch(request: &Request) -> Result<Visitor, u16> {
        Ok(Visitor {
            origin: error_log::origin(request),
            trace: request.trace().clone(),
            turn: page_fetch::begun(request)?,
        })
    }
}

/// Writes the lines of one fetch.
pub struct RequestFetchLog {
    pub configuration: ConfigurationHandle,
    pub settings: Arc<Settings>,
    pub connection: u64,
    pub origin: Origin,
    /// The scheme written before an upstream's address.
    pub scheme: &'static str,
    pub target: Bytes,
    /// The page of fragments that the request is a part of.
    pub page: Option<Arc<PageBudget>>,
}

impl FetchLog for RequestFetchLog {
    fn write(&self, level: LogLevel, upstream: Option<&str>, message: fmt::Arguments<'_>) {
        let logs = &self.settings.error_logs;
        if !error_log::are_logged(logs, level) {
            return;
        }
        let mut context = self.origin.text();
        if let Some(address) = upstream {
            let colon = match address.starts_with("unix:") && !self.target.is_empty() {
                true => ":",
                false => "",
            };
            let target = String::from_utf8_lossy(&self.target);
            context = format!(
                "{context}, upstream: \"{}://{address}{colon}{target}\"",
                self.scheme
            );
        }
        let error_logs = &self.configuration.live.error_logs;
        let write = |message: fmt::Arguments<'_>| {
            error_logs.write(logs, level, self.connection, message, &context);
        };
        match &self.page {
            None => write(message),
            Some(page) => error_log::page_line(page, message, write),
        }
    }

    fn pool_is_busy(&self, group: &Group) {
        let now = clock::now();
        let error_logs = &self.configuration.live.error_logs;
        if error_logs.busy_workers.take(now).is_none() {
            return;
        }
        let servers = group.snapshot(now);
        let workers: usize = servers.iter().filter_map(|server| server.max_conns).sum();
        let waiting = group.queue_length();
        self.write(
            LogLevel::Warn,
            None,
            format_args!(
                "all {workers} PHP workers of \"{}\" are busy and {waiting} requests wait: raise \
                 \"workers\" if memory allows, or find slow scripts with \"slow_log\" of the pool",
                group.name()
            ),
        );
    }

    fn may_tell_of_refusal(&self, turn: &Turn) -> bool {
        let clients = self.configuration.live.groups.clients();
        clients.is_none_or(|clients| clients.may_log(turn, clock::now()))
    }

    fn left_out(&self, group: &Group) {
        count_left_out(&self.configuration, &self.settings, group);
    }
}

/// Counts a background request that was not sent, and logs from time to time how many there
/// were.
pub fn count_left_out(configuration: &ActiveConfiguration, settings: &Settings, group: &Group) {
    let error_logs = &configuration.live.error_logs;
    let Some(count) = error_logs.left_out.count(clock::now()) else {
        return;
    };
    let message = format_args!(
        "upstream \"{}\" is busy: {count} refreshes and mirrored requests were not sent since the \
         last such line (stored pages are shown as long as cache_stale allows, more workers would help)",
        group.name()
    );
    let logs = &settings.error_logs;
    error_logs.write(logs, LogLevel::Warn, 0, message, "");
}
