//! `early_hints`: a 103 of an HTTP upstream (RFC 8297) goes on to the client that
//! waits for the response.
//!
//! A fetch puts what the upstream says into a channel; whoever waits for the fetch
//! in the client's own task writes it. So a fetch that belongs to the cache knows
//! nothing of clients: the one that caused it gets its hints, its followers do not.

use std::pin::pin;

use bytes::Bytes;
use site::{Exchange, Protocol};
use tokio::sync::mpsc;

use crate::content::pass;
use crate::content::policy;
use crate::exchange::request::Request;
use crate::transport::client::{ClientSide, Informational};
use crate::upstreams::fetch::FetchSpec;

/// The status of early hints (RFC 8297 §2).
const EARLY_HINTS: u16 = 103;

/// The fields of a 103.
type Fields = Vec<(Bytes, Bytes)>;

/// As many as an upstream may send before its response. Beyond that the client is
/// slower than several upstreams in turn, and goes without.
const MOST_WAITING: usize = http_client::MAX_INTERIM_RESPONSES as usize;

/// Where a fetch puts hints.
pub struct Hints(mpsc::Sender<Fields>);

impl Hints {
    /// Never waits: the response is not to be late for its hints.
    pub fn send(&self, fields: Fields) {
        let _ = self.0.try_send(fields);
    }
}

/// The client's end, where hints come out.
pub struct EarlyHints {
    hints: mpsc::Receiver<Fields>,
    client: Informational,
}

impl EarlyHints {
    /// Listens to the fetch of `spec`, where its hints may go on to this client.
    pub fn of(request: &Request, client: &ClientSide, spec: &mut FetchSpec) -> Option<EarlyHints> {
        let settings = request.settings();
        let is_wanted = !settings.early_hints.is_empty()
            && matches!(spec.context.pass.protocol, Protocol::Http(_))
            && !request.is_subrequest;
        let client = client.informational().filter(|_| is_wanted)?;
        let (sender, hints) = mpsc::channel(MOST_WAITING);
        spec.hints = Some(Hints(sender));
        Some(EarlyHints { hints, client })
    }

    /// What `waited` comes to; meanwhile and before that, hints are passed on. `None`
    /// when the client did not take one.
    pub async fn while_waiting<T>(
        mut self,
        request: &mut Request,
        exchange: &Exchange,
        waited: impl Future<Output = T>,
    ) -> Option<T> {
        let mut waited = pin!(waited);
        loop {
            tokio::select! {
                biased;
                Some(fields) = self.hints.recv() => {
                    self.pass_on(request, exchange, &fields).await?;
                }
                done = &mut waited => {
                    while let Ok(fields) = self.hints.try_recv() {
                        self.pass_on(request, exchange, &fields).await?;
                    }
                    return Some(done);
                }
            }
        }
    }

    async fn pass_on(
        &self,
        request: &mut Request,
        exchange: &Exchange,
        fields: &Fields,
    ) -> Option<()> {
        let settings = request.settings_held();
        let fields = passed_on(fields, exchange);
        if fields.is_empty() {
            return Some(());
        }
        if !policy::is_any_true(request, &settings.early_hints) {
            return Some(());
        }
        let timeout = settings.connection.send_timeout;
        let sent = self.client.send(EARLY_HINTS, &fields, timeout).await.ok()?;
        request.bytes_sent += sent;
        request.head_bytes_sent += sent;
        Some(())
    }
}

/// The fields that go on to clients.
fn passed_on(fields: &Fields, exchange: &Exchange) -> Fields {
    let is = |name: &[u8], field: &str| name.eq_ignore_ascii_case(field.as_bytes());
    let is_sent = |(name, _): &&(Bytes, Bytes)| {
        pass::is_sent(name, exchange)
            && (exchange.passes_date || !is(name, "date"))
            && (exchange.passes_server || !is(name, "server"))
    };
    fields.iter().filter(is_sent).cloned().collect()
}
