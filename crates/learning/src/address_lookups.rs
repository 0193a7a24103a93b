//! Pages that look the visitor's address up may be shown to others while no address would be found: the database is asked
//! for the rows of any address ([`learned::lookups_by_any_address`]).
//!
//! ```text
//! page that was made ─► its lookups ─► task ─► no row: what they return is among what the page was made of
//!                                         └─► a row, or no answer: the page is that visitor's
//! request for such a page, not in memory ─► its lookups ─► task ─► no row: any visitor may be given the page
//! ```
//!
//! A question is answered by what the server says after it was put. Questions that are put meanwhile wait for the next round,
//! in which each lookup runs once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use learned::{RunAgain, RunIn};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::client::DatabaseAccount;
use crate::record::SentStatement;
use crate::replay::connection::{Connection, ReplayResult};

/// Lookups of one pool: an application has a few. Pages with others are each visitor's own.
const MAX_LOOKUPS: usize = 32;

/// Pages whose lookups are known. With more, the others count as having all of them.
const MAX_PAGES: usize = 100_000;

/// Questions that wait. Further ones have no answer.
pub const MAX_QUESTIONS: usize = 4096;

/// After so long without a question the connection is closed.
const IDLE: Duration = Duration::from_secs(20);

const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// The lookups of a question, and the place for their results, which are empty if one failed.
pub struct Question {
    lookups: Vec<SentStatement>,
    answer: oneshot::Sender<Vec<ReplayResult>>,
}

/// The lookups of the pages of one pool.
pub struct AddressLookups {
    known: Mutex<KnownLookups>,
    hasher: RandomState,
    questions: mpsc::Sender<Question>,
}

#[derive(Default)]
struct KnownLookups {
    lookups: Vec<SentStatement>,
    /// By the hash of the page's key: its lookups, a bit for each.
    pages: HashMap<u64, u32>,
    is_full: bool,
}

impl AddressLookups {
    pub fn new() -> (AddressLookups, mpsc::Receiver<Question>) {
        let (questions, received) = mpsc::channel(MAX_QUESTIONS);
        let lookups = AddressLookups {
            known: Mutex::default(),
            hasher: RandomState::new(),
            questions,
        };
        (lookups, received)
    }

    /// Notes that a page has these lookups. `false`: there are too many.
    pub fn note(&self, key: &[u8], lookups: &[SentStatement]) -> bool {
        let mut known = self.known.lock();
        let mut bits = 0;
        for lookup in lookups {
            let place = known.lookups.iter().position(|it| is_same(it, lookup));
            let place = place.unwrap_or(known.lookups.len());
            if place == MAX_LOOKUPS {
                return false;
            }
            if place == known.lookups.len() {
                known.lookups.push(lookup.clone());
            }
            bits |= 1 << place;
        }
        let page = self.hasher.hash_one(key);
        if known.pages.len() >= MAX_PAGES && !known.pages.contains_key(&page) {
            known.is_full = true;
        } else {
            // Variants of a page may have other ones.
            *known.pages.entry(page).or_default() |= bits;
        }
        true
    }

    /// The lookups that a page had when it was made.
    pub fn of(&self, key: &[u8]) -> Vec<SentStatement> {
        let known = self.known.lock();
        if known.lookups.is_empty() {
            return Vec::new();
        }
        let bits = match known.pages.get(&self.hasher.hash_one(key)) {
            Some(bits) => *bits,
            None if known.is_full => u32::MAX,
            None => 0,
        };
        let lookups = known.lookups.iter().enumerate();
        let lookups = lookups.filter(|(place, _)| bits & (1 << place) != 0);
        lookups.map(|(_, lookup)| lookup.clone()).collect()
    }

    /// Puts a question; the results are those of each lookup, or none.
    pub fn ask(
        &self,
        lookups: Vec<SentStatement>,
    ) -> impl Future<Output = Option<Vec<ReplayResult>>> + Send + use<> {
        let (answer, answered) = oneshot::channel();
        let count = lookups.len();
        // A question for which there is no room is dropped, and its place for results with it.
        let _ = self.questions.try_send(Question { lookups, answer });
        async move {
            let answered = timeout(ANSWERED_WITHIN, answered);
            let results = answered.await.ok()?.ok()?;
            (results.len() == count).then_some(results)
        }
    }
}

fn is_same(one: &SentStatement, other: &SentStatement) -> bool {
    one.text == other.text && one.server == other.server && one.again_in == other.again_in
}

/// Answers questions, for as long as there is the pool. `account_of` names the account of a server, and the seed of results.
pub async fn run(
    account_of: impl Fn(&str) -> Option<(DatabaseAccount, u64)>,
    mut questions: mpsc::Receiver<Question>,
) {
    let mut connection = Connection::default();
    loop {
        let next = match connection.is_open() {
            true => timeout(IDLE, questions.recv()).await,
            false => Ok(questions.recv().await),
        };
        let first = match next {
            Ok(Some(first)) => first,
            Ok(None) => return connection.close().await,
            Err(_) => {
                connection.close().await;
                continue;
            }
        };
        let mut asked = vec![first];
        while let Ok(question) = questions.try_recv() {
            asked.push(question);
        }
        let mut results: Vec<(SentStatement, Option<ReplayResult>)> = Vec::new();
        for lookup in asked.iter().flat_map(|it| &it.lookups) {
            let has_failed = results.iter().any(|(_, result)| result.is_none());
            if has_failed || results.iter().any(|(it, _)| is_same(it, lookup)) {
                continue;
            }
            let account = account_of(&lookup.server);
            let result = run_lookup(account, &mut connection, lookup).await;
            results.push((lookup.clone(), result));
        }
        for question in asked {
            let result = |lookup: &SentStatement| {
                let result = results.iter().find(|(it, _)| is_same(it, lookup));
                result.and_then(|(_, result)| *result)
            };
            let all: Option<Vec<_>> = question.lookups.iter().map(result).collect();
            // Who has asked may be gone.
            let _ = question.answer.send(all.unwrap_or_default());
        }
    }
}

async fn run_lookup(
    account: Option<(DatabaseAccount, u64)>,
    connection: &mut Connection,
    lookup: &SentStatement,
) -> Option<ReplayResult> {
    let session = lookup.again_in.as_ref()?;
    let run_in = RunIn {
        session: 0,
        is_prepared: false,
    };
    let again = RunAgain::of(&lookup.text, &[], run_in)?;
    connection.run(&again, &account?, session).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::tests::reads;

    fn lookup(text: &str) -> SentStatement {
        reads(&[text]).statements.remove(0)
    }

    fn texts(lookups: &[SentStatement]) -> Vec<String> {
        let texts = lookups.iter().map(|it| String::from_utf8_lossy(&it.text));
        texts.map(Into::into).collect()
    }

    #[test]
    fn a_page_has_the_lookups_of_all_its_variants_and_no_other() {
        let (lookups, _questions) = AddressLookups::new();
        assert!(lookups.note(b"one", &[lookup("a"), lookup("b")]));
        assert!(lookups.note(b"two", &[lookup("b")]));
        assert!(lookups.note(b"two", &[lookup("c")]));
        assert_eq!(texts(&lookups.of(b"one")), ["a", "b"]);
        assert_eq!(texts(&lookups.of(b"two")), ["b", "c"]);
        assert!(lookups.of(b"three").is_empty());
        lookups.known.lock().is_full = true;
        assert_eq!(texts(&lookups.of(b"three")), ["a", "b", "c"]);
    }

    #[test]
    fn lookups_beyond_the_bound_are_refused() {
        let (lookups, _questions) = AddressLookups::new();
        for number in 0..MAX_LOOKUPS {
            assert!(lookups.note(b"page", &[lookup(&number.to_string())]));
        }
        assert!(!lookups.note(b"page", &[lookup("one more")]));
        assert!(lookups.note(b"page", &[lookup("0")]));
        assert_eq!(lookups.of(b"page").len(), MAX_LOOKUPS);
    }

    #[tokio::test]
    async fn a_question_that_nobody_answers_has_no_results() {
        let (lookups, questions) = AddressLookups::new();
        let asked = lookups.ask(vec![lookup("a")]);
        drop(questions);
        assert!(asked.await.is_none());
        assert!(lookups.ask(vec![lookup("a")]).await.is_none());
    }
}
