//! Waiting for the numbers of a running server: events are counted before a test judges them.

use std::path::Path;
use std::time::Duration;

use numbers::Number;
use testkit::running::RunningServer;

/// Waits until a number of the server is `count` at least.
pub async fn counted(server: &RunningServer, number: Number, count: f64) {
    let socket = server.path("pid.control");
    if !is_counted(&socket, number, count).await {
        panic!("{number:?} is not {count}: {}", server.error_log());
    }
}

/// Whether that comes within a generous time, by the control socket.
pub async fn is_counted(socket: &Path, number: Number, count: f64) -> bool {
    for _ in 0..600 {
        let numbers = control::client::numbers(socket).await.expect("numbers");
        if numbers.sum(number, &[]) >= count {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}
