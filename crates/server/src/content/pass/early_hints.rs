//! `early_hints`: the informational responses of an HTTP upstream, such as 103 (RFC 8297), go on to the client that
//! waits for the response.
//!
//! A fetch puts the informational responses into a channel; the client's own task, which waits for the fetch, writes
//! them. So a fetch that belongs to the cache knows nothing of clients: the client that caused it gets its hints, its
//! followers do not.

use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use site::{Exchange, Protocol};
use tokio::sync::mpsc;
use transport::client::{ClientSide, Informational};

use super::response::is_sent;
use crate::exchange::request::Request;
use crate::exchange::variable;
use upstream_fetch::{FetchSpec, Hint, HintSender};

/// Early hints (RFC 8297 §2); without fields, they say nothing.
const EARLY_HINTS: u16 = 103;

/// The client's end, where hints come out.
pub struct EarlyHints {
    hints: mpsc::Receiver<Hint>,
    client: Informational,
}

impl EarlyHints {
    /// Listens to the fetch of `spec`, where its hints may go on to this client.
    pub fn of(request: &Request, client: &ClientSide, spec: &mut FetchSpec) -> Option<EarlyHints> {
        let settings = request.settings();
        let is_wanted = !settings.early_hints.is_empty()
            && matches!(spec.context.pass.protocol, Protocol::Http(_))
            && !request.route.is_subrequest();
        let client = client.informational().filter(|_| is_wanted)?;
        let (sender, hints) = HintSender::channel();
        spec.hints = Some(sender);
        Some(EarlyHints { hints, client })
    }

    /// Returns the result of `waited`, and passes hints on before and meanwhile. `None` if the client could not be
    /// written to.
    pub async fn while_waiting<T>(
        mut self,
        request: &Request,
        exchange: &Exchange,
        waited: impl Future<Output = T>,
    ) -> Option<T> {
        let mut waited = pin!(waited);
        loop {
            tokio::select! {
                biased;
                Some(hint) = self.hints.recv() => {
                    self.pass_on(request, exchange, &hint).await?;
                }
                done = &mut waited => {
                    while let Ok(hint) = self.hints.try_recv() {
                        self.pass_on(request, exchange, &hint).await?;
                    }
                    return Some(done);
                }
            }
        }
    }

    async fn pass_on(&self, request: &Request, exchange: &Exchange, hint: &Hint) -> Option<()> {
        let settings = request.settings();
        let fields = passed_on(&hint.fields, exchange);
        if fields.is_empty() && hint.status == EARLY_HINTS {
            return Some(());
        }
        if !variable::is_any_true(request, &settings.early_hints) {
            return Some(());
        }
        let timeout = settings.connection.send_timeout;
        let sent = self.client.send(hint.status, &fields, timeout).await.ok()?;
        request.delivery.bytes_sent.fetch_add(sent, Relaxed);
        request.delivery.head_bytes_sent.fetch_add(sent, Relaxed);
        Some(())
    }
}

/// The fields that go on to clients.
fn passed_on(fields: &[(Bytes, Bytes)], exchange: &Exchange) -> Vec<(Bytes, Bytes)> {
    let is = |name: &[u8], field: &str| name.eq_ignore_ascii_case(field.as_bytes());
    let is_passed_on = |(name, _): &&(Bytes, Bytes)| {
        is_sent(name, exchange)
            && (exchange.passes_date || !is(name, "date"))
            && (exchange.passes_server || !is(name, "server"))
    };
    fields.iter().filter(is_passed_on).cloned().collect()
}
