#!/usr/bin/env python3
"""Do the tests of guests with sessions, and of pages that look an address up, find errors in the rules by which they are shared?

Each error of the table below is planted into a copy of the tree, all of them at once, each behind a question
to a file. The program tests that are named for its rule run once for each error, by processes of the server with it.

    scripts/mutations/guests.py [--requests 20000] [NAME...]
"""

import argparse
import os
import subprocess
import sys
import tempfile

import run

# The server clears the environment of the process that serves, so the number of the error stands in a file.
QUESTION = """
/// Is this the error that this run is about?
pub(crate) fn planted_fault(number: u32) -> bool {
    static FAULT: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    let fault = FAULT.get_or_init(|| std::fs::read_to_string("FILE").ok()?.trim().parse().ok());
    *fault == Some(number)
}
"""
PROPERTY = "guests::property"
SERVER = "server/src/content"
TRIALS = f"{SERVER}/through_cache/guest_trials.rs"
OTHERS = f"{SERVER}/through_cache/guest_trials/other_pages.rs"
TWO_ROUNDS = f"{SERVER}/through_cache/guest_trials/two_rounds.rs"
GUESTS = f"{SERVER}/through_cache/guests.rs"
WRITE = f"{SERVER}/pass/guest_write.rs"
SESSION = "guest-pages/src/session.rs"
LOOKUP = "cache_learn::address_lookup"

# Rule; name; the tests that are to find it; file below crates; what is there; what stands there instead, where FAULT is true for
# the planted error.
FAULTS = (
    ("PHP's default is nobody's word", "private of the application is PHP's", PROPERTY, SESSION,
     "    if !PRIVATE.contains(&control) || has(b\"pragma\") || !has(b\"last-modified\") {",
     "    if !FAULT && (!PRIVATE.contains(&control) || has(b\"pragma\") || !has(b\"last-modified\")) {"),
    ("PHP's default is nobody's word", "no-store of the application is PHP's", PROPERTY, SESSION,
     "    if NOCACHE.contains(&control) {\n",
     "    if FAULT && control == b\"no-store\" { return Some(CacheLimiter::NoCache); }\n    if NOCACHE.contains(&control) {\n"),
    ("a page is shared that does not depend on its session", "an answer that differs is taken for the same", PROPERTY, TRIALS,
     "        let host = guests::named_host(self.request());\n        loop {",
     "        if FAULT { return Ok(true); }\n        let host = guests::named_host(self.request());\n        loop {"),
    ("a page is shared that does not depend on its session", "a page that writes into its session is shared", PROPERTY, TRIALS,
     "            if traces.are_somewhere() {", "            if traces.are_somewhere() && !FAULT {"),
    ("a crowd waits for what is needed", "another page that shows a visit is taken for the same", "guests::crowd", TWO_ROUNDS,
     "            if !self.is_alike(&other, &with) {", "            if !self.is_alike(&other, &with) && !FAULT {"),
    ("a crowd waits for what is needed", "a page that shows who comes back stays shared", "guests::crowd", TWO_ROUNDS,
     "        match traces.are_somewhere() {", "        match traces.are_somewhere() && !FAULT {"),
    ("a page is shared that does not depend on its session", "a number of the session is shown", "guests::corners", TRIALS,
     "        const NOT_SHARED: TrialEnd", "        if FAULT { return Ok(()); }\n        const NOT_SHARED: TrialEnd"),
    ("a page is shared that does not depend on its session", "another page that differs is taken for the same", PROPERTY, OTHERS,
     "        let mut target = target.to_vec();\n", "        if FAULT { return Ok(Some(true)); }\n        let mut target = target.to_vec();\n"),
    ("a page is shared that does not depend on its session", "another page that says nothing at this moment is passed over",
     "guests::features", OTHERS, "            && seen.is_shared_by_new(known)\n", "            && seen.is_shared_by_new(known) && !FAULT\n"),
    ("a page is shared that does not depend on its session", "a page of which another one said nothing stays shared",
     "guests::features", TRIALS, "            for unproven in seen.guests.unproven_by(&known.host, &known.target) {",
     "            for unproven in seen.guests.unproven_by(&known.host, &known.target).into_iter().filter(|_| !FAULT) {"),
    ("a page is shared that does not depend on its session", "an argument whose writes no page shows is shared", "guests::corners", TRIALS,
     "            if has_args && traces.are_everywhere() {", "            if has_args && traces.are_everywhere() && !FAULT {"),
    ("a page is shared that does not depend on its session", "an argument that shows nothing is for no session", "guests::features", OTHERS,
     "            if is_alike\n", "            if is_alike && !FAULT\n"),
    ("a page is shared that does not depend on its session", "a field with a token is shown", "guests::corners", TRIALS,
     "        match self.answers.iter().any(has_in_field) {", "        match self.answers.iter().any(has_in_field) && !FAULT {"),
    ("tokens", "the application's token is shown", PROPERTY, "guest-pages/src/pages.rs",
     "        self.page.form.with_tokens(answer, &self.tokens)",
     "        if FAULT { return self.page.form.find(answer).map(|_| answer.to_vec()); }\n        self.page.form.with_tokens(answer, &self.tokens)"),
    ("tokens", "a write of another site is given a token", PROPERTY, WRITE,
     "    if page.host != guests::named_host(request) || !is_of_same_origin(request) {",
     "    if page.host != guests::named_host(request) || (!is_of_same_origin(request) && !FAULT) {"),
    ("tokens", "a cookie with the server's token reaches the application", "guests::corners", GUESTS,
     ".may_have(b\"cookie\") && has_own_cookie(received) {", ".may_have(b\"cookie\") && has_own_cookie(received) && !FAULT {"),
    ("guests who have a session", "who has written is a guest still", PROPERTY, GUESTS,
     "        _ => known.forget(&marks_of(request)),", "        _ => if !FAULT { known.forget(&marks_of(request)) },"),
    ("guests who have a session", "who has seen a page of their own is a guest still", PROPERTY, GUESTS,
     "                if !pending.iter().all(is_settled) {", "                if !pending.iter().all(is_settled) && !FAULT {"),
    ("a page that looks an address up is shared while none is found", "nobody asks before a page is made", LOOKUP,
     f"{SERVER}/through_cache/learned.rs", "pool.depends_on_address(&name).await;", "pool.depends_on_address(&name).await && !FAULT;"),
    ("a page that looks an address up is shared while none is found", "a page is shown before it is reported", LOOKUP,
     f"{SERVER}/through_cache/learned.rs", "            if own.is_none() {", "            if own.is_none() && !FAULT {"),
    ("a page that looks an address up is shared while none is found", "an address that is found is ignored", LOOKUP, "learning/src/learn_pages.rs",
     "                Some(results) if results.iter().any(|it| it.rows > 0) => {", "                Some(results) if !FAULT && results.iter().any(|it| it.rows > 0) => {"),
    ("a page that looks an address up is shared while none is found", "an address may be part of what is returned", LOOKUP,
     "learned/src/any_address.rs", "    (found > 0 && found == addresses.count()).then_some(lookups)",
     "    (FAULT || (found > 0 && found == addresses.count())).then_some(lookups)"),
)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of the errors; without one, all")
    parser.add_argument("--requests", type=int, default=20_000, help="of the random test")
    args = parser.parse_args()
    wanted = [fault for fault in FAULTS if not args.names or fault[1] in args.names]
    assert wanted, "no error has such a name"
    found = 0
    with tempfile.TemporaryDirectory(prefix="mayfly-mutations-") as tree:
        run.copy(tree)
        # The processes that serve have another account.
        os.chmod(tree, 0o755)
        plant(os.path.join(tree, "crates"))
        programs, refused = run.build(tree, "mayfly")
        assert programs, f"the compiler refuses {refused}"
        program = next(it for it in programs if os.path.basename(it).startswith("program-"))
        for tests in sorted({fault[2] for fault in wanted}):
            assert judge(tree, program, tests, 0, args.requests) == 0, f"{tests} fails without an error"
        for number, fault in enumerate(FAULTS, 1):
            if fault in wanted:
                is_found = judge(tree, program, fault[2], number, args.requests) != 0
                found += is_found
                print(f"{'found' if is_found else 'NOT FOUND'}: {fault[0]}: {fault[1]}", flush=True)
    print(f"{found} of {len(wanted)} planted errors were found")
    sys.exit(found < len(wanted))


def planted(crates):
    """The changed files below `crates`, by their paths."""
    return run.with_errors(crates, ((name, *error) for _, name, _, *error in FAULTS))


def plant(crates):
    """Plants all errors into the crates of a tree."""
    texts = planted(crates)
    question = QUESTION.replace("FILE", number_file(os.path.dirname(crates))).split("\n")
    for crate in {path.split("/")[0] for path in texts}:
        path = f"{crate}/src/lib.rs"
        texts[path] = [*(texts.get(path) or run.read(crates, path)), *question]
    run.write(crates, texts, [])


def number_file(tree):
    return os.path.join(tree, "planted-fault")


def judge(tree, program, tests, number, requests):
    with open(number_file(tree), "w", encoding="utf-8") as file:
        file.write(str(number))
    environment = {**os.environ, "MAYFLY_GUESTS": str(requests)}
    folder = os.path.join(tree, "crates/mayfly")
    return subprocess.run([program, "-q", tests], cwd=folder, env=environment, capture_output=True).returncode


if __name__ == "__main__":
    main()
