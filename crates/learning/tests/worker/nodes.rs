//! Other machines (`cache_nodes`): a process waits until they know what it has written.

use std::io::{ErrorKind, Read};
use std::sync::{Arc, mpsc};

use learn_record::{Acknowledgement, Hello, Message};
use learning::{NodesKnow, OtherNodes, PageVerdict};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::peers::{
    Pool, Worker, hello, is_shown, outcome, statement, verdict, wait, write, written,
};

/// Nodes that know an entry once the test says so.
struct TestNodes {
    entries: Mutex<mpsc::Sender<Vec<u8>>>,
    known: Arc<Semaphore>,
}

impl OtherNodes for TestNodes {
    fn tell(&self, entry: Vec<u8>) -> NodesKnow {
        self.entries.lock().send(entry).unwrap();
        let known = self.known.clone();
        Box::pin(async move { known.acquire().await.unwrap().forget() })
    }
}

struct SentEntries {
    entries: mpsc::Receiver<Vec<u8>>,
    known: Arc<Semaphore>,
}

impl SentEntries {
    /// What is told. The process waits until it is known.
    fn next(&self, worker: &Worker, number: u64) -> Vec<u8> {
        let entry = wait(|| self.entries.try_recv().ok());
        worker.0.set_nonblocking(true).unwrap();
        let early = (&worker.0).read(&mut [0; 64]).unwrap_err();
        assert_eq!(early.kind(), ErrorKind::WouldBlock);
        worker.0.set_nonblocking(false).unwrap();
        self.known.add_permits(1);
        assert_eq!(worker.answer(), Some(number));
        entry
    }
}

fn tell_nodes(pool: &Pool) -> SentEntries {
    let (sender, entries) = mpsc::channel();
    let known = Arc::new(Semaphore::new(0));
    let nodes: Arc<dyn OtherNodes> = Arc::new(TestNodes {
        entries: Mutex::new(sender),
        known: known.clone(),
    });
    pool.learning.tell(Some(&nodes));
    SentEntries { entries, known }
}

#[test]
fn a_process_goes_on_once_all_nodes_know_what_it_has_written() {
    let pool = Pool::begin();
    let sent = tell_nodes(&pool);
    let worker = pool.worker();
    worker.say(&write(1));
    let mut packet = [0; 64];
    let read = (&worker.0).read(&mut packet).unwrap();
    let answer = Acknowledgement::decode(&packet[..read]).unwrap();
    // Other nodes look at the database each second, and show nothing two seconds later.
    assert!(answer.number == 1 && answer.hold_milliseconds > 2000);
    worker.say(&written(1));
    let entry = sent.next(&worker, 1);
    // What is told there concerns a page that is being fetched here.
    let other = Pool::begin();
    let fetch = other.pool.begin(None);
    is_shown(fetch.mark());
    other.learning.written_elsewhere(&entry);
    assert_eq!(verdict(fetch.mark()), PageVerdict::Outdated);
}

#[test]
fn a_transaction_is_told_at_its_end_however_it_ends() {
    let pool = Pool::begin();
    let sent = tell_nodes(&pool);
    let worker = pool.worker();
    let mut number = 0;
    let mut run = |text, is_open, is_told| {
        number += 1;
        worker.say(&statement(number, text));
        assert_eq!(worker.answer(), Some(number));
        worker.say(&outcome(number, is_open));
        match is_told {
            true => drop(sent.next(&worker, number)),
            false => assert_eq!(worker.answer(), Some(number)),
        }
    };
    run(b"BEGIN", true, false);
    run(b"DELETE FROM post", true, false);
    run(b"COMMIT", false, true);
    run(b"BEGIN", true, false);
    run(b"COMMIT", false, false);
    // Each of these ends one transaction and begins the next.
    for text in [&b"COMMIT AND CHAIN"[..], b"BEGIN"] {
        run(b"DELETE FROM post", true, false);
        run(text, true, true);
    }
}

#[test]
fn a_process_that_was_heard_by_another_program_may_have_written_anything_everywhere() {
    let pool = Pool::begin();
    let sent = tell_nodes(&pool);
    let worker = pool.worker();
    worker.say(&Message::Hello(Hello {
        is_again: true,
        ..hello()
    }));
    let entry = sent.next(&worker, 0);
    assert_eq!(entry, [1, 0], "everything, anywhere");
}

#[test]
fn a_process_that_ends_while_it_waits_for_nodes_holds_up_nothing() {
    let pool = Pool::begin();
    let sent = tell_nodes(&pool);
    let worker = pool.worker();
    let fetch = pool.pool.begin(None);
    worker.say(&write(1));
    assert_eq!(worker.answer(), Some(1));
    worker.say(&written(1));
    wait(|| sent.entries.try_recv().ok());
    drop(worker);
    // Its end is counted at some moment from here on; a fetch that begins later is shown.
    wait(|| {
        fetch.mark().begin();
        (verdict(fetch.mark()) == PageVerdict::Good).then_some(())
    });
    pool.learning.tell(None);
    let worker = pool.worker();
    worker.say(&write(1));
    worker.say(&written(1));
    assert_eq!((worker.answer(), worker.answer()), (Some(1), Some(1)));
}
