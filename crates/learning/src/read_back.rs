//! Pages that are read from disk, after a restart or once they have left memory: a task on the thread of the pool finds
//! out whether what they were made of may be as it was, and hands them to the book, where replays decide.
//!
//! ```text
//! server: a record on disk ─► PageToReadBack ─► files and scripts as they were ─► the server's tables and last writes
//!                                                  ─► book, in doubt ─► replays ─► shown
//! ```
//!
//! The bytes come from a folder that anything may have been written to: they are decoded as those of a worker are, and name
//! neither the page nor the account by which the server is asked.

use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use learn_record::{MadeOf, Record};
use tokio::sync::mpsc;

use crate::book::{Missing, PageReadBack};
use crate::client::DatabaseAccount;
use crate::digest::Digest;
use crate::files::state_of;
use crate::mark::{Marks, PageMark};
use crate::pages::PageName;
use crate::record::{FileState, RunRecord, SeenFile, ServerName};
use crate::{LearnedPool, on_disk, php_report, poll, schema_reader};

/// Pages that wait for their turn. Others are made anew.
pub const MAX_WAITING: usize = 64;

/// The tables are read, the last writes asked for, and the tables read again since they may have changed before that; others may
/// put them in doubt meanwhile.
const MAX_QUESTIONS: usize = 6;

/// After an error, no page waits for the server for so long.
const PAUSE: Duration = Duration::from_secs(1);

/// A page that was read.
pub struct PageToReadBack {
    name: PageName,
    bytes: Vec<u8>,
    age: Duration,
    left: Duration,
    mark: Arc<PageMark>,
    _awake: Awake,
}

/// While a page is read back, the pool looks about.
struct Awake(Arc<Marks>);

impl Awake {
    fn begin(marks: &Arc<Marks>) -> Awake {
        marks.begin_fetch();
        Awake(marks.clone())
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.0.end_fetch();
    }
}

impl LearnedPool {
    /// Stands for what runs PHP, where pages are written to disk.
    pub(crate) fn lasts(&self) -> Option<u64> {
        *self.lasts.lock()
    }

    /// The bytes that are written beside a page, if it can be proved to be good at another time. `began`: its fetch, in Unix nanoseconds.
    pub(crate) fn made_of(&self, page: (u32, u64), began: i64, report: &[u8]) -> Option<Vec<u8>> {
        let php = self.lasts()?;
        let texts = on_disk::statements_to_run(&Record::decode(report).ok()?)?;
        let book = self.book.lock();
        let known = book.page_to_write(page);
        let known = known.filter(|known| known.texts == texts)?;
        let made_of = MadeOf {
            pool: self.name.as_bytes(),
            php,
            server: known.server,
            seed: self.seed,
            began,
            digest: known.digest,
            lasts_seconds: u32::try_from(known.lasts.as_secs()).unwrap_or(u32::MAX),
            address: known.address.as_bytes(),
            scripts: on_disk::shortened(&book.scripts()),
            record: report,
        };
        made_of.encode(Digest::of)
    }

    /// A page that was stored so long ago, and is read back by [`LearnedPool::read_back`]; what it was made of is in these bytes.
    /// `None`: pages are not read back, or this one is not kept any longer.
    pub fn to_read_back(
        self: &Arc<Self>,
        name: Vec<u8>,
        bytes: &[u8],
        age: Duration,
    ) -> Option<PageToReadBack> {
        self.lasts()?;
        let left = on_disk::left(&MadeOf::decode(bytes, Digest::of)?, age)?;
        Some(PageToReadBack {
            name: name.into(),
            bytes: bytes.to_vec(),
            age,
            left,
            mark: Arc::new(PageMark::of_disk(self, self.next_fetch())),
            _awake: Awake::begin(&self.marks),
        })
    }

    /// The page is stored again, and may be shown as soon as its mark allows it. If too many wait, it never will be.
    pub fn read_back(&self, page: PageToReadBack) {
        if let Err(page) = self.read_backs.try_send(page) {
            page.into_inner().mark.give_up();
        }
    }
}

impl PageToReadBack {
    /// For how much longer it may be shown, whatever else is found: it may depend on the time.
    pub const fn left(&self) -> Duration {
        self.left
    }

    /// Says whether the page may be shown.
    pub fn mark(&self) -> &Arc<PageMark> {
        &self.mark
    }
}

/// Takes them one after the other, for as long as there is the pool.
pub async fn run(pool: Weak<LearnedPool>, mut pages: mpsc::Receiver<PageToReadBack>) {
    let mut failed = None;
    while let Some(page) = pages.recv().await {
        let Some(pool) = pool.upgrade() else {
            return;
        };
        match take(&pool, &page, &mut failed).await {
            Some(number) => page.mark.enter(number),
            None => page.mark.give_up(),
        }
        pool.replayed.notify_waiters();
        pool.want_replays();
        pool.marks.wake();
    }
}

async fn take(
    pool: &Arc<LearnedPool>,
    page: &PageToReadBack,
    failed: &mut Option<Instant>,
) -> Option<u32> {
    let made_of = MadeOf::decode(&page.bytes, Digest::of)?;
    let is_of_pool = made_of.pool == pool.name.as_bytes() && pool.lasts() == Some(made_of.php);
    let record = Record::decode(made_of.record).ok().filter(|_| is_of_pool)?;
    let read = PageReadBack {
        name: page.name.clone(),
        fetch: page.mark.fetch(),
        digest: made_of.digest,
        address: String::from_utf8_lossy(made_of.address).into_owned(),
        age: page.age,
        left: page.left,
        server: made_of.server,
        began: made_of.began,
        scripts: on_disk::scripts(&made_of)?,
        asked: page.mark.asked(),
    };
    let run = run_of(pool, &record, made_of.seed);
    // Also the files that the pool knows: while it rests, none is looked at.
    are_as_they_were([&run.files[..], &read.scripts].concat()).await?;
    let mut has_polled = false;
    for _ in 0..MAX_QUESTIONS {
        // How its statements are read depends on what the server gives to each session.
        let run = run_of(pool, &record, made_of.seed);
        let missing = match pool.change(|book| book.read_back(&read, &run, Instant::now())) {
            Ok(number) => return Some(number),
            Err(missing) => missing,
        };
        let server = run.statements.first().map(|it| it.server.clone())?;
        let account = pool.account_of(&server)?;
        // A table that is still not among those that are polled never is.
        let is_polled_in_vain = missing == Missing::Poll && has_polled;
        has_polled |= missing == Missing::Poll;
        if missing == Missing::Refused
            || is_polled_in_vain
            || failed.is_some_and(|at| at.elapsed() < PAUSE)
        {
            return None;
        }
        let asked = match missing {
            Missing::Poll => ask_for_writes(pool, &server, &account).await,
            Missing::Schema | Missing::Refused => ask_for_tables(pool, &server, &account).await,
        };
        if asked.is_err() {
            *failed = Some(Instant::now());
            return None;
        }
    }
    None
}

/// The run of the record, with statements that are run again under its seed.
fn run_of(pool: &LearnedPool, record: &Record<'_>, seed: u64) -> RunRecord {
    let mut run = php_report::run(record, &|server| pool.modes(server));
    for statement in &mut run.statements {
        if let Some(session) = &mut statement.again_in {
            Arc::make_mut(session).seed = Some(seed).filter(|seed| *seed != pool.seed);
        }
    }
    run
}

/// A disk may take its time.
async fn are_as_they_were(files: Vec<SeenFile>) -> Option<()> {
    let looked = tokio::task::spawn_blocking(move || {
        let mut files = files.iter();
        files.all(|file| FileState::is_same(file.state, state_of(&file.path)))
    });
    looked.await.ok()?.then_some(())
}

async fn ask_for_tables(
    pool: &Arc<LearnedPool>,
    server: &ServerName,
    account: &DatabaseAccount,
) -> io::Result<()> {
    let to_ask = pool.book.lock().to_ask(server, Instant::now());
    let (definitions, ..) = to_ask.ok_or(io::ErrorKind::NotFound)?;
    let read = schema_reader::read(account).await?;
    pool.change(|book| book.set_schema(server, Ok(read), definitions, Instant::now()));
    Ok(())
}

async fn ask_for_writes(
    pool: &Arc<LearnedPool>,
    server: &ServerName,
    account: &DatabaseAccount,
) -> io::Result<()> {
    let (began, now) = (Instant::now(), clock::now());
    let to_ask = pool.book.lock().to_ask(server, began);
    let (_, tables, window) = to_ask.ok_or(io::ErrorKind::NotFound)?;
    let mut poller = poll::Poller::default();
    let answer = poller.ask(account, &tables, window).await?;
    pool.change(|book| book.polled(server, answer, (&tables[..], began)));
    pool.marks.note_polled(now + poll::holds());
    Ok(())
}
