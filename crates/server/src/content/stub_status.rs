//! `stub_status`: what the server counts
//! (<https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>).

use std::sync::atomic::Ordering::Relaxed;

use crate::content::own_machine;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;

/// A page of counters.
pub fn handle(request: &mut Request) -> StageEnd {
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
