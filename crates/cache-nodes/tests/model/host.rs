//! A node as the model has it: the product's [`Node`], one stored page, one fetch, a disk, and the
//! call that is under way.

use cache_nodes::{
    AppliedPurges, BootMillis, ConfirmAnswer, Confirmation, JoinAnswer, JoinCall, LeaseTimes, Node,
    RenewAnswer, RenewCall, Rule, Rules,
};

/// The rules, one of them left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeftOut(pub Option<Rule>);

impl Rules for LeftOut {
    fn hold(&self, rule: Rule) -> bool {
        self.0 != Some(rule)
    }
}

/// The epochs of the model.
pub type Epoch = u8;

/// A lease lasts two ticks. In all of a history clocks lose or gain one tick against each other.
pub const TIMES: LeaseTimes = LeaseTimes {
    lease: 2,
    expiry_wait: 3,
};

/// A call to an engine whose parts are apart in time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallUnderWay {
    /// The clock from before it was sent.
    pub sent_at: BootMillis,
    /// The engine that it was sent to.
    pub engine: u8,
    pub stage: CallStage,
}

/// How far a call has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CallStage {
    JoinSent(JoinCall<Epoch>),
    JoinAnswered(JoinAnswer<Epoch>),
    RenewSent(RenewCall<Epoch>),
    RenewAnswered(Epoch, RenewAnswer),
}

/// A purge that this node was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnPurge {
    /// The version of the data that it came with.
    pub version: u8,
    pub stage: PurgeStage,
}

/// How far a purge has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PurgeStage {
    Applied,
    Published(Confirmation<Epoch>),
    Answered(Confirmation<Epoch>, ConfirmAnswer, u8, bool),
}

/// A fetch under way: the data that it has read, and the purge clock from when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fetch {
    pub version: u8,
    pub began: u8,
}

/// The state that a crash leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    /// The page's version.
    pub stored: Option<u8>,
    /// Purges of the log up to this have reached the disk.
    pub purged: Option<(Epoch, u64)>,
    /// The position that a start begins with.
    pub position: Option<(Epoch, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    pub node: Node<Epoch, LeftOut>,
    pub instance: u64,
    /// The engine that it is connected to.
    pub engine: Option<u8>,
    pub call: Option<CallUnderWay>,
    pub purge: Option<OwnPurge>,
    /// The version of the page in memory.
    pub stored: Option<u8>,
    pub fetch: Option<Fetch>,
    /// Counts the purges here.
    pub purge_clock: u8,
    pub disk: Disk,
    /// The time on its clock.
    pub clock: u8,
    /// A reading that was made some time ago.
    pub old_reading: u8,
    pub is_up: bool,
}

impl Host {
    pub fn new(instance: u64, left_out: Option<Rule>) -> Host {
        Host {
            node: Node::new(TIMES, None, LeftOut(left_out)),
            instance,
            engine: None,
            call: None,
            purge: None,
            stored: None,
            fetch: None,
            purge_clock: 0,
            disk: Disk::default(),
            // A lease of time zero must have ended.
            clock: 1,
            old_reading: 1,
            is_up: true,
        }
    }

    fn holds(&self, rule: Rule) -> bool {
        self.node.rules().hold(rule)
    }

    pub fn now(&self) -> BootMillis {
        BootMillis(u64::from(self.clock))
    }

    /// A purge of the page: the stored page is gone, and fetches that have begun are outdated.
    pub fn apply_purge(&mut self) {
        self.stored = None;
        self.purge_clock += 1;
    }

    /// All that is stored is void, on the disk too.
    pub fn void(&mut self) {
        self.apply_purge();
        self.disk.stored = None;
    }

    /// The log was applied up to `number`.
    pub fn note_applied(&mut self, number: u64) {
        self.node.has_applied(number);
    }

    /// The purges that were applied in memory reach the disk.
    pub fn write_purges(&mut self) {
        let applied = self.node.applied().map(|it| (it.epoch, it.position));
        if applied != self.disk.purged {
            self.disk.purged = applied;
            // A page that was written to the disk since the last purge has seen it.
            if self.disk.stored != self.stored {
                self.disk.stored = None;
            }
        }
    }

    /// The position reaches the disk: where the rule holds, not before the purges.
    pub fn write_position(&mut self) {
        self.disk.position = match self.holds(Rule::PurgesBeforePosition) {
            true => self.disk.purged,
            false => self.node.applied().map(|it| (it.epoch, it.position)),
        };
    }

    pub fn begin_fetch(&mut self, version: u8) {
        self.fetch = Some(Fetch {
            version,
            began: self.purge_clock,
        });
    }

    pub fn is_outdated(&self, fetch: Fetch) -> bool {
        fetch.began != self.purge_clock && self.holds(Rule::FetchOutdated)
    }

    /// The fetch ends: its page is stored, in memory and perhaps on the disk.
    pub fn end_fetch(&mut self, to_disk: bool) {
        let Some(fetch) = self.fetch.take() else {
            return;
        };
        if self.node.may_use(self.now()) && !self.is_outdated(fetch) {
            self.stored = Some(fetch.version);
            if to_disk {
                self.disk.stored = self.stored;
            }
        }
    }

    /// The versions that an answer that begins now may have from memory.
    pub fn answers(&self) -> impl Iterator<Item = u8> {
        let reading = match self.holds(Rule::FreshReading) {
            true => self.now(),
            false => BootMillis(u64::from(self.old_reading)),
        };
        let may_use = self.node.may_use(reading);
        let joined = self.fetch.filter(|&fetch| !self.is_outdated(fetch));
        let joined = joined.map(|fetch| fetch.version);
        [self.stored, joined]
            .into_iter()
            .flatten()
            .filter(move |_| may_use)
    }

    pub fn crash(&mut self) {
        self.is_up = false;
        self.engine = None;
        self.call = None;
        self.purge = None;
        self.stored = None;
        self.fetch = None;
    }

    pub fn start(&mut self, instance: u64) {
        let position = self.disk.position;
        let applied = position.map(|(epoch, position)| AppliedPurges { epoch, position });
        self.node = Node::new(TIMES, applied, *self.node.rules());
        self.instance = instance;
        self.stored = self.disk.stored;
        self.is_up = true;
    }
}

impl Host {
    /// Whether a fresh reading of the clock is made for each answer.
    pub fn holds_fresh(&self) -> bool {
        self.holds(Rule::FreshReading)
    }
}
