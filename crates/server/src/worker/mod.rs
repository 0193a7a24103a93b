//! Worker threads: each has a tokio runtime of its own, accepts from the listening sockets, and
//! serves the connections that it accepted, unless another worker has fewer (`loads`). They share
//! the configuration in force and the cache, nothing else.

mod accepting;
mod life_sign;
mod loads;
mod shared;
pub mod spare_objects;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::background;
use crate::content::mirror;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::numbers;
use crate::log::{access_log, error_log};

use loads::{AcceptedConnection, WorkerLoads};
pub use shared::{IdlePause, Listening, Patience, Sockets, WorkersState};

/// How long a worker runs before others have their turn, and so how soon it gets its own beside a PHP
/// that computes. Shorter ones cost more changes between the two: cold misses took 3 % more
/// CPU at 0.5 ms and 11 % more at 0.1 ms than at the kernel's 3 ms.
const TIME_SLICE: Duration = Duration::from_micros(500);

/// The threads that serve. They end after a graceful stop, once their connections have ended.
pub struct Workers {
    shared: Arc<WorkersState>,
    loads: Arc<WorkerLoads>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Workers {
    /// Starts `count` workers.
    ///
    /// # Errors
    /// There is no room for another thread.
    pub fn start(shared: &Arc<WorkersState>, count: usize) -> io::Result<Workers> {
        let workers = Workers {
            shared: shared.clone(),
            loads: Arc::new(WorkerLoads::new()),
            threads: Mutex::default(),
        };
        // Before the first of them looks at the listening sockets.
        workers.set_accepting(count);
        workers.add_missing(count)?;
        Ok(workers)
    }

    /// Starts the workers that are missing for a configuration that wants `count`.
    ///
    /// # Errors
    /// There is no room for another thread. Workers that were started rest.
    pub fn add_missing(&self, count: usize) -> io::Result<()> {
        while self.loads.count() < count {
            let (index, inbox) = self.loads.add();
            let context = WorkerContext {
                shared: self.shared.clone(),
                loads: self.loads.clone(),
                index,
            };
            let thread = std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || run(&context, inbox));
            // Else a later reload would take it for one that is there, and give it sockets.
            let thread = thread.inspect_err(|_| self.loads.remove_last())?;
            self.threads.lock().push(thread);
        }
        Ok(())
    }

    /// With the configuration that is put in force next, the first `count` accept. A worker beyond
    /// them serves the connections that it has, and rests afterwards: connections to upstreams
    /// and fetches that others wait for may belong to its thread.
    pub fn set_accepting(&self, count: usize) {
        self.loads.set_accepting(count);
        let workers = &self.shared.configuration().live.stats.workers;
        workers.store(count, Relaxed);
    }

    /// Returns how many threads there are, those included that rest.
    pub fn threads(&self) -> usize {
        self.loads.count()
    }

    /// Waits until all have ended.
    pub fn join(&self) {
        loop {
            let Some(thread) = self.threads.lock().pop() else {
                return;
            };
            // A worker that panicked has logged it; the others go on.
            let _ = thread.join();
        }
    }
}

/// The state that a worker is started with.
#[derive(Clone)]
struct WorkerContext {
    shared: Arc<WorkersState>,
    loads: Arc<WorkerLoads>,
    index: usize,
}

fn run(context: &WorkerContext, inbox: mpsc::Receiver<AcceptedConnection>) {
    let (shared, index) = (&context.shared, context.index);
    clock::keep_readings();
    // If the kernel refuses it, the worker keeps the default time slice.
    let _ = time_slice::set(TIME_SLICE);
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .event_interval(61)
        .on_thread_park(access_log::flush_thread)
        .on_thread_unpark(clock::has_slept)
        .build();
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => {
            error_log::emergency(
                &shared.configuration(),
                format_args!("worker {index} could not start: {error}"),
            );
            return;
        }
    };
    runtime.block_on(async {
        let housekeeping = tokio::spawn(housekeeping(shared.clone()));
        let background = (index == 0).then(|| {
            let sweeping = tokio::spawn(sweep(shared.clone()));
            [sweeping, tokio::spawn(background::run(shared.clone()))]
        });
        let life_sign = tokio::spawn(life_sign::answer(shared.clone()));
        let receiving = tokio::spawn(accepting::receive(shared.clone(), inbox));
        accepting::accept_all(context).await;
        drained(context).await;
        transport::http3::last_words().await;
        receiving.abort();
        housekeeping.abort();
        life_sign.abort();
        for task in background.into_iter().flatten() {
            task.abort();
        }
    });
    access_log::flush_all_thread();
    // No request waits any more for bodies that are still being compressed.
    runtime.shutdown_background();
}

/// Waits until the last connection of the process, and the last mirrored
/// request, has ended.
async fn drained(context: &WorkerContext) {
    // Bounded by the program's own deadline (`worker_shutdown_timeout`).
    while context.loads.is_busy() || mirror::in_flight() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Keeps the thread's own things in order. It only wakes up where there are some.
async fn housekeeping(shared: Arc<WorkersState>) {
    let mut changes = shared.changes();
    let mut rests = shared.rests();
    let lines = access_log::waiting_lines();
    loop {
        let due = async {
            match access_log::next_flush() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            // The first line of a buffer: from here on there is a time to flush it.
            () = lines.notified() => continue,
            _ = rests.changed() => {
                spare_objects::give_back();
                let emptied_bytes = *rests.borrow_and_update();
                if emptied_bytes > 0 {
                    spare_objects::give_back_regions(emptied_bytes);
                }
                continue;
            }
            () = due => {}
        }
        // Lets go of a configuration that a reload has replaced.
        drop(shared.configuration_of_thread());
        access_log::flush_thread();
    }
}

/// Gives back memory that a server at rest does not need. The next requests build it again.
fn give_back(shared: &WorkersState, configuration: &ActiveConfiguration, idle: &IdlePause) {
    configuration.live.shrink();
    if idle.is_new_rest() {
        shared.rest(0);
    }
    // Removed objects were put aside for this thread to reuse.
    spare_objects::give_back();
}

/// Removes state that was not used for a while.
async fn sweep(shared: Arc<WorkersState>) {
    let mut idle = IdlePause::default();
    let mut is_needed = true;
    loop {
        shared.pause(&mut idle, is_needed).await;
        let configuration = shared.configuration();
        let swept = configuration.live.sweep(clock::now());
        is_needed = swept.is_left || !configuration.connections.is_empty();
        if swept.has_removed {
            // There may be more, however long no request has come.
            idle.end();
        } else if idle.is_long() {
            give_back(&shared, &configuration, &idle);
        }
        let logs = &configuration.site.process.error_logs;
        configuration.live.log_disk_events(logs);
        numbers::keep_history(&configuration);
    }
}
