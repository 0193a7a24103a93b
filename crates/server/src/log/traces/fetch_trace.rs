//! A fetch for the cache as a trace of its own: it is sent when the fetch has ended, however it does.

use std::sync::Arc;

use parking_lot::Mutex;
use traces::{Attribute, Link, TraceContext};

use super::spans::{self, ParentSpan};
use crate::exchange::tracing::FetchSpan;
use live_state::traces::{FetchKey, Traces};
use upstream_fetch::Trace;

/// Sends its spans when it is dropped.
pub struct FetchTrace {
    exporter: Arc<Traces>,
    context: TraceContext,
    trace: Arc<Mutex<Trace>>,
    span: FetchSpan,
    /// Method, target and host of the request.
    subject: Vec<Attribute>,
    pub(super) caused_by: Option<TraceContext>,
    /// Otherwise it is a part of the visitor's trace only.
    pub(super) is_sent: bool,
    announced: Option<(FetchKey, TraceContext)>,
}

impl FetchTrace {
    pub(super) fn new(
        exporter: Arc<Traces>,
        context: TraceContext,
        (trace, span): (Arc<Mutex<Trace>>, FetchSpan),
        subject: Vec<Attribute>,
    ) -> FetchTrace {
        FetchTrace {
            exporter,
            context,
            trace,
            span,
            subject,
            caused_by: None,
            is_sent: false,
            announced: None,
        }
    }

    pub(super) fn context(&self) -> TraceContext {
        self.context
    }

    /// Lets those who wait for the fetch find it.
    pub(super) fn announce(&mut self, key: FetchKey, shown: TraceContext) {
        self.exporter.under_way.add(key.clone(), shown);
        self.announced = Some((key, shown));
    }

    /// No visitor's trace has it.
    pub(super) fn in_background(&mut self) {
        self.is_sent = true;
        self.subject
            .push(Attribute::flag("mayfly.background", true));
        if let Some((key, _)) = self.announced.take() {
            self.announce(key, self.context);
        }
    }
}

impl Drop for FetchTrace {
    fn drop(&mut self) {
        if let Some((key, shown)) = &self.announced {
            self.exporter.under_way.remove(key, *shown);
        }
        if !self.is_sent {
            return;
        }
        let tries = {
            let trace = self.trace.lock();
            let tries = trace.tries.get(self.span.first_try..);
            tries.unwrap_or_default().to_vec()
        };
        let within = ParentSpan {
            context: self.context,
            parent: None,
            earliest: 0,
        };
        let mut sent = Vec::new();
        spans::put_fetch(&within, &self.span, &tries, &mut sent);
        if let Some(first) = sent.first_mut() {
            first.attributes.append(&mut self.subject);
            first.links.extend(self.caused_by.map(|context| Link {
                context,
                attributes: Vec::new(),
            }));
        }
        self.exporter.send(sent);
    }
}
