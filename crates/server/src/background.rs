//! What runs beside requests for as long as a configuration is in force: names
//! that are followed, and health checks. One set of tasks for the process, on
//! the first worker; a reload ends it and begins another.
//!
//! Invariant: no task keeps a configuration alive that was replaced.

use std::sync::{Arc, Weak};

use tokio::task::JoinSet;

use crate::health;
use crate::runtime::Runtime;
use crate::worker::Shared;

/// Runs the tasks of whatever configuration is in force. Never ends.
pub async fn run(shared: Arc<Shared>) {
    let mut changes = shared.changes();
    let mut of: Weak<Runtime> = Weak::new();
    // Dropped with what it holds: that ends the tasks.
    let mut tasks = JoinSet::new();
    loop {
        {
            let runtime = shared.runtime();
            if !std::ptr::eq(of.as_ptr(), Arc::as_ptr(&runtime)) {
                tasks.abort_all();
                tasks = JoinSet::new();
                of = Arc::downgrade(&runtime);
                begin(&runtime, &mut tasks);
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

fn begin(runtime: &Arc<Runtime>, tasks: &mut JoinSet<()>) {
    for followed in runtime.names.followed(&runtime.site, &runtime.groups) {
        tasks.spawn(followed.follow(Arc::downgrade(runtime)));
    }
    for check in health::checks(runtime) {
        tasks.spawn(check.run());
    }
}
