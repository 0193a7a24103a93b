//! Background tasks that run while a configuration is in force: DNS names that are resolved again, health checks, and
//! requests that applications want repeated. One set of tasks for the process, on the first worker; a reload ends it and begins
//! another.
//!
//! Invariant: no task keeps a configuration alive that was replaced.

use std::sync::{Arc, Weak};
use std::time::Duration;

use site::LogLevel;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::without_client;
use crate::warming::{audit, repeat};
use crate::worker::WorkersState;
use upstream_fetch::health::Require;
use upstream_fetch::{health, naming};

/// How often pools are asked for their messages.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Runs the tasks of the configuration in force. Never ends.
pub async fn run(shared: Arc<WorkersState>) {
    let mut changes = shared.changes();
    let mut of: Weak<ActiveConfiguration> = Weak::new();
    // Dropping it ends its tasks.
    let mut tasks = JoinSet::new();
    loop {
        {
            let configuration = shared.configuration();
            if !std::ptr::eq(of.as_ptr(), Arc::as_ptr(&configuration)) {
                tasks.abort_all();
                tasks = JoinSet::new();
                of = Arc::downgrade(&configuration);
                begin(&configuration, &mut tasks);
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Writes the messages of pools whose pages are learned into the error log of the main context.
async fn tell_of_pools(configuration: Weak<ActiveConfiguration>) {
    while let Some(configuration) = configuration.upgrade() {
        let (live, logs) = (&configuration.live, &configuration.site.process.error_logs);
        for pool in live.groups.learned().iter().flat_map(|it| it.pools()) {
            for notice in pool.take_notices() {
                let message = format_args!("php_pool \"{}\": {notice}", pool.name());
                live.error_logs.write(logs, LogLevel::Warn, 0, message, "");
            }
        }
        drop(configuration);
        sleep(TELL_EVERY).await;
    }
}

fn begin(configuration: &Arc<ActiveConfiguration>, tasks: &mut JoinSet<()>) {
    let (site, live) = (&configuration.site, &configuration.live);
    for followed in naming::followed(site, live.groups.groups(), &live.names) {
        let logs = site.process.error_logs.clone();
        tasks.spawn(followed.follow(live.error_logs.clone(), logs));
    }
    tasks.spawn(repeat::run(Arc::downgrade(configuration)));
    if live.groups.learned().is_some() {
        tasks.spawn(audit::run(Arc::downgrade(configuration)));
        tasks.spawn(tell_of_pools(Arc::downgrade(configuration)));
    }
    let weak = Arc::downgrade(configuration);
    let require: Require = Arc::new(move |rules, answer| match weak.upgrade() {
        Some(configuration) => without_client::require(&configuration, rules, answer),
        None => Ok(()),
    });
    for check in health::checks(site, live, &require) {
        tasks.spawn(check.run());
    }
}
