//! The `Crawl-delay` lines of a site's robots.txt, read as it is served: from a file, or from the first
//! bytes of an upstream's answer.

use std::sync::Arc;

use fair_queue::{CrawlDelays, MAX_ROBOTS_BYTES};
use http_semantics::same_name;
use live_state::client_table::ClientTable;
use transport::open_file::OpenFile;
use upstream_fetch::FetchedResponse;

use crate::exchange::request::Request;

const PATH: &[u8] = b"/robots.txt";

/// The site whose robots.txt is served.
pub struct RobotsOfSite {
    clients: Arc<ClientTable>,
    host: Box<[u8]>,
}

impl RobotsOfSite {
    /// `None`: the request asks for another page, or the file was read a moment ago.
    pub fn asked_for(request: &Request) -> Option<Self> {
        let clients = request.configuration.live.groups.clients()?;
        let host = request.received.host();
        let is_due =
            request.received.target() == PATH && clients.is_robots_due(host, request.now());
        is_due.then(|| Self {
            clients: clients.clone(),
            host: host.into(),
        })
    }

    /// An upstream has answered. The lines in the first bytes are read, which are all of a short file.
    pub async fn read_response(&self, fetched: &mut FetchedResponse) {
        let mut fields = fetched.fields.iter();
        let is_coded = fields.any(|(name, _)| same_name(name, b"content-encoding"));
        if fetched.status == 200
            && !is_coded
            && let Some(bytes) = fetched.body.first_bytes().await
        {
            let lines = memchr::memrchr(b'\n', bytes).map_or(&b""[..], |end| &bytes[..end]);
            self.note(lines);
        }
    }

    /// A file is sent. It is read by another thread.
    pub fn read_file(self, file: Arc<OpenFile>, length: u64) {
        let length = usize::try_from(length).unwrap_or(MAX_ROBOTS_BYTES);
        tokio::task::spawn_blocking(move || {
            let mut text = vec![0; length.min(MAX_ROBOTS_BYTES)];
            if file.read_exact_at(&mut text, 0).is_ok() {
                self.note(&text);
            }
        });
    }

    fn note(&self, robots: &[u8]) {
        let delays = CrawlDelays::read(robots);
        self.clients
            .set_crawl_delays(&self.host, delays, clock::now());
    }
}
