//! The exporter of traces (`otel_exporter`), which a reload keeps if its settings stay the same, and
//! the fetches under way that are recorded: requests that wait for one link to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use site::{ErrorLog, LogLevel, OtelExporter, Site};
use traces::{
    Attribute, Counts, Endpoint, Exporter, Report, Settings, Span, TraceContext, TrustedPem,
    bounded,
};

use crate::build_error::BuildError;
use crate::error_log::ErrorLogs;
use crate::tls_files::TlsFiles;

/// More fetches under way than that are not found by those who wait for them.
const MAX_UNDER_WAY: usize = 4096;

/// The exporter of spans.
pub struct Traces {
    exporter: Exporter,
    teller: Teller,
    pub under_way: UnderWay,
}

impl Traces {
    /// Builds the exporter for `site`, or returns the previous one if it has the same settings.
    ///
    /// # Errors
    /// The file of `trusted_certificate` cannot be read.
    pub fn build(
        site: &Site,
        files: &TlsFiles,
        counts: &Arc<Counts>,
        previous: Option<&Arc<Traces>>,
    ) -> Result<Option<Arc<Traces>>, BuildError> {
        let Some(exporter) = &site.http.otel_exporter else {
            return Ok(None);
        };
        let settings = settings(exporter, files)?;
        let same = previous.filter(|it| *it.exporter.settings() == settings);
        if let Some(same) = same {
            return Ok(Some(same.clone()));
        }
        let teller = Teller::default();
        let report = Box::new(teller.clone());
        Ok(Some(Arc::new(Traces {
            exporter: Exporter::new(settings, counts.clone(), report),
            teller,
            under_way: UnderWay::default(),
        })))
    }

    /// From now on, lines go to these logs.
    pub fn tell(&self, error_logs: &Arc<ErrorLogs>, logs: &[ErrorLog]) {
        *self.teller.0.lock() = Some((error_logs.clone(), logs.to_vec()));
    }

    pub fn send(&self, spans: Vec<Span>) {
        self.exporter.send(spans);
    }

    /// Sends the waiting spans. The thread that calls this waits for it.
    pub fn finish(&self, within: Duration) {
        self.exporter.finish(within);
    }
}

fn settings(exporter: &OtelExporter, files: &TlsFiles) -> Result<Settings, BuildError> {
    let trusted = match &exporter.trusted {
        Some(path) => Some(TrustedPem(files.bytes(path).map_err(|error| {
            BuildError::Tls(format!(
                "cannot load certificate \"{}\": {error}",
                path.display()
            ))
        })?)),
        None => None,
    };
    let attributes = exporter.resource.iter();
    let endpoint = &exporter.endpoint;
    Ok(Settings {
        endpoint: Endpoint {
            host: endpoint.host.clone(),
            port: endpoint.port,
            is_tls: endpoint.is_tls,
            path: endpoint.path.clone(),
        },
        interval: exporter.interval,
        batch_size: exporter.batch_size,
        batch_count: exporter.batch_count,
        trusted,
        fields: exporter.fields.clone(),
        resource: attributes
            .map(|(name, value)| Attribute::text(name.clone(), bounded(value.as_bytes())))
            .collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Writes lines of the exporter to the error log of the configuration in force.
#[derive(Clone, Default)]
struct Teller(Arc<Mutex<Option<LogTargets>>>);

type LogTargets = (Arc<ErrorLogs>, Vec<ErrorLog>);

impl Report for Teller {
    fn trouble(&self, message: &str) {
        let to = self.0.lock().clone();
        if let Some((error_logs, logs)) = to {
            let message = format_args!("otel_exporter: {message}");
            error_logs.write(&logs, LogLevel::Error, 0, message, "");
        }
    }
}

/// The key of a fetch: the zone, and the cache key in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FetchKey {
    zone: usize,
    key: Box<[u8]>,
}

impl FetchKey {
    pub fn new(zone: &Arc<http_cache::Zone>, key: &[u8]) -> FetchKey {
        FetchKey {
            zone: Arc::as_ptr(zone).addr(),
            key: key.into(),
        }
    }
}

/// Recorded fetches for the cache that have not ended.
#[derive(Default)]
pub struct UnderWay(Mutex<HashMap<FetchKey, TraceContext>>);

impl UnderWay {
    pub fn add(&self, key: FetchKey, span: TraceContext) {
        let mut fetches = self.0.lock();
        if fetches.len() < MAX_UNDER_WAY {
            fetches.insert(key, span);
        }
    }

    pub fn find(&self, key: &FetchKey) -> Option<TraceContext> {
        self.0.lock().get(key).copied()
    }

    /// A fetch has ended; one for the same key may have begun after it.
    pub fn remove(&self, key: &FetchKey, span: TraceContext) {
        let mut fetches = self.0.lock();
        if fetches.get(key) == Some(&span) {
            fetches.remove(key);
        }
    }
}
