//! How the processes of a master leave: asked first, then ended, then killed, each for a bounded time.

use std::time::Duration;

use rustix::process::{Signal, kill_process};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::launch::Log;
use crate::master::{Master, signal_group, to_pid};
use crate::probe::{group_members, is_group_member};
use crate::state::Event;

/// Between TERM and KILL. php-fpm's workers die of TERM at once; one that does
/// not is stuck in the kernel.
const TERM_TO_KILL: Duration = Duration::from_secs(2);

/// How long processes are killed; nothing that obeys takes this long.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// The pause between two looks at whether a process that is not our child has ended: short at first,
/// since idle workers leave at once. (A process descriptor would notify us, but tokio's safe functions
/// cannot await one.)
const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(2);
/// The longest pause, for workers that finish a long request.
const LOOK_AGAIN_LAST: Duration = Duration::from_millis(200);

/// Lets the processes of a master that lives or died leave: QUIT (finish your
/// request), after `drain` TERM, then KILL.
pub(crate) async fn retire(
    mut master: Master,
    drain: Duration,
    mut hurry: watch::Receiver<bool>,
    log: Log,
) {
    if master.has_exited() {
        signal_group(master.pid, Signal::QUIT);
    } else if let Some(pid) = to_pid(master.pid) {
        // The master passes it on and waits for its workers.
        let _ = kill_process(pid, Signal::QUIT);
    }
    let (is_quiet, overran) = tokio::select! {
        () = all_ended(&mut master) => (true, false),
        () = sleep(drain) => (false, true),
        _ = hurry.wait_for(|is_fast| *is_fast) => (false, false),
    };
    if !is_quiet {
        signal_groups(&master, Signal::TERM);
        if timeout(TERM_TO_KILL, all_ended(&mut master)).await.is_err() {
            // Again and again, but not for ever: a process that has left the group
            // can bring others into it.
            let _ = timeout(KILL_PATIENCE, killed(&mut master)).await;
        }
    }
    master.is_over = true;
    log(Event::Retired {
        generation: master.generation,
        forced: !is_quiet,
        overran,
    });
}

/// Kills the processes of the group until all have ended.
async fn killed(master: &mut Master) {
    loop {
        signal_groups(master, Signal::KILL);
        if timeout(LOOK_AGAIN_LAST, all_ended(master)).await.is_ok() {
            return;
        }
    }
}

/// Waits until the master and every member of its group have ended.
async fn all_ended(master: &mut Master) {
    master.exited().await;
    master.let_guard_go();
    let mut pause = LOOK_AGAIN_FIRST;
    loop {
        // Mostly the group is empty but for the shell: a master leaves after its workers.
        let mut members = master.groups().map(group_members).concat();
        if members.is_empty() {
            return;
        }
        while !members.is_empty() {
            sleep(pause).await;
            pause = (pause * 2).min(LOOK_AGAIN_LAST);
            members.retain(|pid| {
                master
                    .groups()
                    .iter()
                    .any(|group| is_group_member(*pid, *group))
            });
        }
    }
}

fn signal_groups(master: &Master, signal: Signal) {
    master
        .groups()
        .into_iter()
        .for_each(|group| signal_group(group, signal));
}
