//! `early_hints`: a 103 of an HTTP upstream (RFC 8297) goes on to the client that
//! waits for the response.
//!
//! A fetch puts what the upstream says into a channel; whoever waits for the fetch
//! in the client's own task writes it. So a fetch that belongs to the cache knows
//! nothing of clients: the one that caused it gets its hints, its followers do not.

use std::pin::pin;
use std::sync::Arc;

use http1::Version;
use site::{Exchange, Protocol};
use tokio::sync::mpsc;

use super::response::is_sent;
use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::transport::client::ClientSide;
use crate::transport::stream::ClientStream;
use crate::upstreams::fetch::{FetchSpec, HintFields, HintSender};

/// The client's end, where hints come out.
pub struct EarlyHints {
    hints: mpsc::Receiver<HintFields>,
    stream: Arc<ClientStream>,
}

impl EarlyHints {
    /// Listens to the fetch of `spec`, where its hints may go on to this client.
    pub fn of(request: &Request, client: &ClientSide, spec: &mut FetchSpec) -> Option<EarlyHints> {
        let settings = request.settings();
        let is_wanted = !settings.early_hints.is_empty()
            && matches!(spec.context.pass.protocol, Protocol::Http(_))
            && request.head.version() >= Version::Http11
            && !request.is_subrequest;
        let stream = client.stream().filter(|_| is_wanted)?.clone();
        let (sender, hints) = HintSender::channel();
        spec.hints = Some(sender);
        Some(EarlyHints { hints, stream })
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
        fields: &HintFields,
    ) -> Option<()> {
        let settings = request.settings_held();
        let Some(head) = render(fields, exchange) else {
            return Some(());
        };
        if !variable::is_any_true(request, &settings.early_hints) {
            return Some(());
        }
        let deadline = settings.connection.send_timeout;
        let written = tokio::time::timeout(deadline, self.stream.write_all(&head)).await;
        // Part of it may be out, after which nothing else can be sent.
        written.ok()?.ok()?;
        request.bytes_sent += head.len() as u64;
        request.head_bytes_sent += head.len() as u64;
        Some(())
    }
}

/// A 103 with what is passed on of its fields, if that is anything.
fn render(fields: &HintFields, exchange: &Exchange) -> Option<Vec<u8>> {
    let is = |name: &[u8], field: &str| name.eq_ignore_ascii_case(field.as_bytes());
    let mut head = b"HTTP/1.1 103 Early Hints\r\n".to_vec();
    let empty = head.len();
    for (name, value) in fields {
        let is_hidden = !is_sent(name, exchange)
            || is(name, "date") && !exchange.passes_date
            || is(name, "server") && !exchange.passes_server;
        if !is_hidden {
            for part in [&name[..], b": ", &value[..], b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
    }
    if head.len() == empty {
        return None;
    }
    head.extend_from_slice(b"\r\n");
    Some(head)
}
