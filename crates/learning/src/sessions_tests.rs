use super::*;

const ALICE: &[u8] = b"alice-alice-alice";
const BOB: &[u8] = b"bob-bob-bob-bob-bob";

fn values<'v>(all: &'v [&'v [u8]]) -> impl Iterator<Item = &'v [u8]> {
    all.iter().copied()
}

/// A run that found and left these contents, by their hashes.
fn run(id: &[u8], before: u64, after: u64) -> RunRecord {
    RunRecord {
        sessions: vec![SeenSession {
            id: id.to_vec(),
            path: "/srv/sessions/sess_x".into(),
            hash_before: before,
            hash_after: after,
            before: None,
            after: None,
            state: FileState::MERE_PRESENCE,
        }],
        ..RunRecord::default()
    }
}

/// The watch of a copy whose request has ended, and left the session as it was.
fn copy_of(sessions: &Sessions, value: &[u8]) -> SessionWatch {
    let visit = sessions.enter(values(&[value])).expect("a session");
    let watch = visit.watch();
    watch.begin();
    sessions.recorded(&run(value, 1, 1), 0);
    assert!(!watch.is_quiet(), "its own request runs");
    visit.settle();
    drop(visit);
    assert!(watch.is_quiet());
    watch
}

#[test]
fn a_copy_is_shown_while_nothing_runs_and_until_its_session_changes() {
    let sessions = Sessions::default();
    let (alice, bob) = (copy_of(&sessions, ALICE), copy_of(&sessions, BOB));
    let reads = sessions.visit(values(&[b"short", ALICE])).expect("a visit");
    assert!(!alice.is_quiet() && !alice.has_moved() && bob.is_quiet());
    sessions.recorded(&run(ALICE, 1, 1), 0);
    reads.settle();
    drop(reads);
    assert!(alice.is_quiet());
    for (name, change) in [
        ("written", run(ALICE, 1, 2)),
        ("written by a program that is not heard", run(ALICE, 3, 3)),
        (
            "removed",
            RunRecord {
                doubtful_sessions: vec![ALICE.to_vec()],
                ..RunRecord::default()
            },
        ),
    ] {
        let alice = copy_of(&sessions, ALICE);
        sessions.recorded(&change, 0);
        assert!(alice.has_moved() && bob.is_quiet(), "{name}");
        // The copies that are made from now on begin with what is known now.
        sessions.recorded(&run(ALICE, 1, 1), 0);
    }
}

#[test]
fn a_request_whose_record_does_not_come_and_a_write_end_all_copies() {
    let sessions = Sessions::default();
    let alice = copy_of(&sessions, ALICE);
    drop(sessions.visit(values(&[ALICE])));
    assert!(alice.has_moved());
    let alice = copy_of(&sessions, ALICE);
    sessions.note_write(values(&[ALICE]));
    assert!(alice.has_moved());
}

/// A run that has set these times, by their names, in a session with others.
fn setting(id: &[u8], names: &[&str]) -> RunRecord {
    let content = |time: i64| -> Vec<u8> {
        let name =
            |name: &&str| format!("{name}|i:{};", if names.contains(name) { time } else { 1 });
        let all = ["seen", "read_at", "other"].iter().map(name);
        all.collect::<String>().into_bytes()
    };
    let mut run = run(id, 1, 1);
    if !names.is_empty() {
        // Whatever the hash: it is that of the last run before.
        run.sessions[0].hash_after = 2;
        run.sessions[0].before = Some(content(NOW - 60));
        run.sessions[0].after = Some(content(NOW));
    }
    run
}

const NOW: i64 = 1_800_000_000;

#[test]
fn a_time_is_no_change_for_a_copy_whose_own_run_sets_it_and_a_change_for_all_others() {
    let sessions = Sessions::default();
    let ran = |run: &RunRecord| {
        sessions.recorded(run, NOW);
        // Each run finds what it says it does.
        sessions
            .states
            .lock()
            .values()
            .for_each(|it| it.file.lock().hash = None);
    };
    let copy = |names: &[&str]| {
        let visit = sessions.enter(values(&[ALICE])).expect("a session");
        let watch = visit.watch();
        watch.begin();
        let run = setting(ALICE, names);
        ran(&run);
        assert!(!watch.has_moved(), "its own run is not known yet");
        obstacle(&sessions, Some(&visit), &run, NOW);
        visit.settle();
        drop(visit);
        watch
    };
    let (timed, plain) = (copy(&["seen"]), copy(&[]));
    assert!(timed.is_quiet() && plain.is_quiet());
    ran(&setting(ALICE, &["seen"]));
    assert!(timed.is_quiet() && plain.has_moved());
    let plain = copy(&[]);
    ran(&setting(ALICE, &["read_at"]));
    assert!(timed.has_moved() && plain.has_moved());
    // More names than are kept.
    let timed = copy(&["seen"]);
    for number in 0..=MAX_TIMES as u64 {
        let states = sessions.states.lock();
        states
            .values()
            .for_each(|it| it.changes.lock().note_time(number));
    }
    let times = |it: &Arc<SessionState>| it.changes.lock().times.len();
    assert!(
        sessions
            .states
            .lock()
            .values()
            .all(|it| times(it) <= MAX_TIMES)
    );
    assert!(timed.has_moved());
}

#[test]
fn a_request_that_began_before_the_first_copy_ends_it() {
    let sessions = Sessions::default();
    let write = sessions.visit(values(&[ALICE])).expect("a visit");
    let bob = copy_of(&sessions, BOB);
    let visit = sessions.enter(values(&[ALICE])).expect("a session");
    let watch = visit.watch();
    watch.begin();
    visit.settle();
    drop(visit);
    assert!(!watch.is_quiet(), "the write runs");
    drop(write);
    assert!(watch.has_moved() && bob.is_quiet());
}

#[test]
fn no_copy_is_made_while_a_request_is_under_way_that_has_no_room() {
    let sessions = Sessions::default();
    let mut held = Vec::new();
    for number in 0..MAX_SESSIONS {
        let name = format!("visitor number {number}");
        held.push(sessions.visit(values(&[name.as_bytes()])).expect("a visit"));
    }
    let unnoted = sessions.visit(values(&[ALICE])).expect("a visit");
    assert_eq!(sessions.states.lock().len(), MAX_SESSIONS);
    drop(held);
    assert!(sessions.enter(values(&[BOB])).is_none());
    drop(unnoted);
    assert!(sessions.enter(values(&[BOB])).is_some());
}

#[test]
fn a_cookie_is_the_session_that_php_decodes_it_to() {
    let sessions = Sessions::default();
    for (value, is_alices) in [
        (&b"%61lice-alice-alice"[..], true),
        (b"alice-alice-%61%6Cice", true),
        (b"alice-alice-alice%00x", true),
        (b"%2561lice-alice-alice", false),
        (b"alice-alice-alice%", false),
        (b"alice-alice-alice%6", false),
        (b"%zzalice-alice-alice", false),
    ] {
        let alice = copy_of(&sessions, ALICE);
        sessions.note_write(values(&[value]));
        assert_eq!(alice.has_moved(), is_alices, "{}", value.escape_ascii());
    }
    assert!(!may_be_session(b"%61%61%61%61%61%61"), "six bytes");
}

#[test]
fn sessions_without_copies_are_forgotten_and_all_are_bounded() {
    let sessions = Sessions::default();
    let watch = copy_of(&sessions, ALICE);
    for number in 0..2 * MAX_SESSIONS {
        let name = format!("visitor number {number}");
        let visit = sessions.enter(values(&[name.as_bytes()])).expect("one");
        visit.settle();
    }
    assert!(sessions.states.lock().len() <= MAX_SESSIONS);
    assert!(watch.is_quiet(), "a session with copies stays");
    let mut held = Vec::new();
    for number in 0..MAX_SESSIONS {
        let name = format!("visitor with a copy {number}");
        let visit = sessions.enter(values(&[name.as_bytes()])).expect("one");
        held.push(visit.watch());
        visit.settle();
    }
    assert!(sessions.states.lock().len() <= MAX_SESSIONS);
    assert!(sessions.enter(values(&[b"short"])).is_none());
    assert!(sessions.enter(values(&[ALICE; MAX_OF_COPY + 1])).is_none());
    drop((watch, held));
    sessions.look();
    assert!(sessions.states.lock().is_empty());
}

#[test]
fn a_file_that_another_program_touches_writes_or_removes_ends_copies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sess_alice");
    std::fs::write(&path, "user|i:1;").unwrap();
    let sessions = Sessions::default();
    let copy = || {
        let alice = copy_of(&sessions, ALICE);
        let mut record = run(ALICE, 1, 1);
        record.sessions[0].path.clone_from(&path);
        record.sessions[0].state = files::state_of(&path).unwrap();
        sessions.recorded(&record, 0);
        alice
    };
    let alice = copy();
    sessions.look();
    assert!(alice.is_quiet());
    std::fs::write(&path, "user|i:22;").unwrap();
    sessions.look();
    assert!(alice.has_moved());
    let alice = copy();
    std::fs::remove_file(&path).unwrap();
    let visit = sessions.visit(values(&[ALICE])).expect("a visit");
    sessions.look();
    assert!(!alice.has_moved(), "the record of the request will say it");
    visit.settle();
    drop(visit);
    sessions.look();
    assert!(alice.has_moved());
}

/// The content before and after; `None` is what is as it was.
fn seen(path: &str, before: Option<&[u8]>, hashes: (u64, u64)) -> SeenSession {
    SeenSession {
        id: path.as_bytes().to_vec(),
        path: path.into(),
        hash_before: hashes.0,
        hash_after: hashes.1,
        before: before.map(<[u8]>::to_vec),
        after: Some(Vec::new()),
        state: FileState::MERE_PRESENCE,
    }
}

#[test]
fn sessions_begin_with_a_run_that_finds_nothing_in_them_but_what_it_wrote() {
    let new = || seen("new", Some(b""), (0, 1));
    for (name, seen, began) in [
        ("none", vec![], true),
        ("a new one", vec![new()], true),
        (
            "one that stays empty",
            vec![seen("new", None, (0, 0))],
            true,
        ),
        (
            "a known one",
            vec![seen("old", Some(b"a|i:1;"), (5, 6))],
            false,
        ),
        (
            "opened again",
            vec![new(), seen("new", Some(b"a|i:1;"), (1, 2))],
            true,
        ),
        (
            "written in between",
            vec![new(), seen("new", Some(b"b|i:1;"), (7, 8))],
            false,
        ),
        (
            "two",
            vec![new(), seen("old", Some(b"a|i:1;"), (5, 6))],
            false,
        ),
    ] {
        let run = RunRecord {
            sessions: seen,
            ..RunRecord::default()
        };
        assert_eq!(began_with(&run), began, "{name}");
    }
}
