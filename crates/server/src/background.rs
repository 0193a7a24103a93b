//! What runs beside requests for as long as a configuration is in force: names
//! that are followed, and health checks. One set of tasks for the process, on
//! the first worker; a reload ends it and begins another.
//!
//! Invariant: no task keeps a configuration alive that was replaced.

use std::sync::{Arc, Weak};

use tokio::task::JoinSet;

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::upstreams::health;
use crate::worker::Shared;

/// Runs the tasks of whatever configuration is in force. Never ends.
pub async fn run(shared: Arc<Shared>) {
    let mut changes = shared.changes();
    let mut of: Weak<ActiveConfiguration> = Weak::new();
    // Dropped with what it holds: that ends the tasks.
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

fn begin(configuration: &Arc<ActiveConfiguration>, tasks: &mut JoinSet<()>) {
    for followed in configuration
        .names
        .followed(&configuration.site, &configuration.groups)
    {
        tasks.spawn(followed.follow(Arc::downgrade(configuration)));
    }
    for check in health::checks(configuration) {
        tasks.spawn(check.run());
    }
}
