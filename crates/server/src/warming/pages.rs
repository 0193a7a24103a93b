//! Requests for a page that a user names: stored ahead of visitors, or read for its content.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use control::{Refusal, WarmReport, WarmResult};
use shared_request::Class;
use tokio::time::{Instant, sleep};

use super::visit::{self, VisitResult, visit};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::own_visit::Purpose;
use crate::service::own_visit::{self, AskedUrl};

/// How long a page waits for visitors. After that the caller gets an error, and may ask
/// again.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether visitors still wait.
const PAUSE: Duration = Duration::from_millis(50);

/// Has the page of a URL stored. Waits while visitors stand in line for any upstream.
pub async fn warm(configuration: Arc<ActiveConfiguration>, url: &str) -> WarmReport {
    let began = Instant::now();
    let configuration = ConfigurationHandle::new(configuration);
    let mut report = WarmReport {
        url: url.to_owned(),
        result: WarmResult::Busy,
        status: None,
        reason: None,
        milliseconds: 0.0,
    };
    let fields = visit::fields(Class::Desktop);
    let is_page = own_visit::of_url(&configuration, &page(url, fields), Purpose::Warm).map(drop);
    if let Err(why) = is_page {
        report.result = WarmResult::Refused;
        report.reason = Some(why.to_string());
    } else {
        let visited = patient_visit(&configuration, url, began + PATIENCE).await;
        let (result, status, reason) = match visited {
            VisitResult::Fresh { status } => (WarmResult::Fresh, Some(status), None),
            VisitResult::Stored { status } => (WarmResult::Stored, Some(status), None),
            VisitResult::NotStored { status, why } => (WarmResult::NotStored, status, Some(why)),
            VisitResult::Busy | VisitResult::OtherPage => (WarmResult::Busy, None, None),
        };
        report.result = result;
        report.status = status;
        report.reason = reason.map(|it| it.word().to_owned());
    }
    report.milliseconds = (began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
    report
}

async fn patient_visit(
    configuration: &ConfigurationHandle,
    url: &str,
    deadline: Instant,
) -> VisitResult {
    loop {
        if !do_visitors_wait(configuration) {
            let page = page(url, visit::fields(Class::Desktop));
            let made = own_visit::of_url(configuration, &page, Purpose::Warm);
            let Ok(mut request) = made else {
                return VisitResult::Busy;
            };
            let visited = visit(&mut request).await;
            if visited != VisitResult::Busy {
                return visited;
            }
        }
        if Instant::now() >= deadline {
            return VisitResult::Busy;
        }
        sleep(PAUSE).await;
    }
}

/// Reads the page of a URL, if it is a page of this server and no longer than `max_bytes`.
///
/// # Errors
/// The reason why it cannot be read.
pub async fn read(
    configuration: Arc<ActiveConfiguration>,
    url: &str,
    max_bytes: usize,
) -> Result<Bytes, Refusal> {
    let deadline = Instant::now() + PATIENCE;
    let configuration = ConfigurationHandle::new(configuration);
    // No visitor gets it: it need not be compressed.
    let fields: Vec<_> = visit::fields(Class::Desktop)
        .into_iter()
        .filter(|(name, _)| name != "accept-encoding")
        .collect();
    loop {
        let request = own_visit::of_url(&configuration, &page(url, fields.clone()), Purpose::Read)?;
        match visit::read(request, max_bytes).await {
            Ok((200, Some(bytes))) => return Ok(bytes),
            Ok((200, None)) => {
                let why = format!("expected a whole answer of at most {max_bytes} bytes");
                return Err(Refusal::new(502, why));
            }
            Ok((status, _)) => {
                return Err(Refusal::new(502, format!("the server answers {status}")));
            }
            Err(_) if Instant::now() < deadline => sleep(PAUSE).await,
            Err(_) => {
                return Err(Refusal {
                    retry_after: Some(1),
                    ..Refusal::new(503, "visitors come first: the server is busy")
                });
            }
        }
    }
}

/// Does any visitor stand in line for an upstream?
fn do_visitors_wait(configuration: &ActiveConfiguration) -> bool {
    let groups = configuration.live.groups.groups();
    groups.iter().any(|group| group.queue_length() > 0)
}

fn page(url: &str, fields: Vec<(String, Vec<u8>)>) -> AskedUrl<'_> {
    AskedUrl {
        url,
        method: "GET",
        client: None,
        fields,
    }
}
