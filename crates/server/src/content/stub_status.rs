//! `stub_status`: what the server counts
//! (<https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>).

use std::sync::atomic::Ordering::Relaxed;

use site::Builtin as B;
use transport::connections::Census;

use crate::content::own_machine;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;

pub const VARIABLES: Variables = &[
    (
        B::ConnectionsActive,
        Of(|request, out| put_count(request, out, |census| census.active)),
    ),
    (
        B::ConnectionsReading,
        Of(|request, out| put_count(request, out, |census| census.reading)),
    ),
    (
        B::ConnectionsWaiting,
        Of(|request, out| put_count(request, out, |census| census.waiting)),
    ),
    (
        B::ConnectionsWriting,
        Of(|request, out| put_count(request, out, |census| census.writing)),
    ),
];

fn put_count(request: &Request, out: &mut Vec<u8>, count: fn(&Census) -> usize) -> bool {
    let census = request.configuration.connections.census();
    out.extend_from_slice(count(&census).to_string().as_bytes());
    true
}

/// A page of counters.
pub fn handle(request: &Request) -> StageEnd {
    if !request.route.method.is_read() {
        return StageEnd::Status(405);
    }
    if let Some(refused) = own_machine::refuses_look(request) {
        return refused;
    }
    let stats = &request.configuration.live.stats;
    let census = request.configuration.connections.census();
    let page = format!(
        "Active connections: {} \nserver accepts handled requests\n {} {} {} \n\
         Reading: {} Writing: {} Waiting: {} \n",
        census.active,
        stats.accepted.load(Relaxed),
        stats.handled.load(Relaxed),
        stats.requests.sum(),
        census.reading,
        census.writing,
        census.waiting,
    );
    StageEnd::Reply(Box::new(Reply::new(200, b"text/plain", page)))
}
