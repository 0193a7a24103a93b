//! Makes the requests that applications want made again and again (`live_state::repeats`), each in its turn. They stand
//! in the line of refreshes, go through `allow` and `deny` without an address, and reach the same content as a visitor.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use shared_request::Class;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use super::visit;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::own_visit::Purpose;
use crate::service::own_visit::{self, AskedUrl};
use live_state::repeats::Turn;

/// Requests that are under way at the same time. Visitors have all other workers of PHP.
const AT_ONCE: usize = 2;
/// More of an answer is not read.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Longer than cron jobs of sites take; beyond it, the places are for the requests of others.
const MAX_TURN: Duration = Duration::from_secs(60);

/// Runs as long as the configuration is in force.
pub async fn run(configuration: Weak<ActiveConfiguration>) {
    let Some(repeats) = configuration.upgrade().map(|it| it.live.repeats.clone()) else {
        return;
    };
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() >= AT_ONCE {
            under_way.join_next().await;
        }
        while under_way.try_join_next().is_some() {}
        match repeats.take(Instant::now()) {
            Ok(turn) => {
                let Some(configuration) = configuration.upgrade() else {
                    return;
                };
                under_way.spawn(make(configuration, turn));
            }
            Err(Some(due_at)) => {
                tokio::select! {
                    () = sleep_until(due_at.into()) => {}
                    () = repeats.added() => {}
                }
            }
            Err(None) => repeats.added().await,
        }
    }
}

async fn make(configuration: Arc<ActiveConfiguration>, mut turn: Turn) {
    let configuration = ConfigurationHandle::new(configuration);
    let asked = AskedUrl {
        url: &turn.url,
        method: "GET",
        client: None,
        fields: visit::fields(Class::Desktop),
    };
    // A site that a reload has taken away has no such request any more.
    let Ok(request) = own_visit::of_url(&configuration, &asked, Purpose::Read) else {
        turn.is_answered = true;
        return;
    };
    let read = timeout(MAX_TURN, visit::read(request, MAX_ANSWER_BYTES));
    turn.is_answered = matches!(read.await, Ok(Ok((status, _))) if status < 500);
}
