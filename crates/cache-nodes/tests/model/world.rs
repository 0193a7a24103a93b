//! The state of the model's world, and the possible next events.

use crate::engine::{Engine, ReadAnswer};
use crate::host::{CallStage, CallUnderWay, Epoch, Host, OwnPurge, PurgeStage};
use cache_nodes::{
    Confirmation, ConfirmationState, JoinEffect, LogEntryEffect, PublishAnswer, RenewAnswer, Rule,
};

/// The target of a purge in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LogEntry {
    ThePage,
    AnotherPage,
}

/// How much may happen in one history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    pub nodes: usize,
    pub ticks: u8,
    pub purges: u8,
    /// Purges of other pages, which nothing waits for.
    pub other_purges: u8,
    pub crashes: u8,
    pub failovers: u8,
    pub trims: u8,
    /// How often an engine loses everything.
    pub flushes: u8,
    /// How often a clock may lose or gain a tick; more than one would break the assumption.
    pub odd_ticks: u8,
    /// How often a connection or a call may be lost.
    pub losses: u8,
    pub fetches: u8,
    pub has_disk: bool,
    /// Renewals and joins, as each makes a new beat.
    pub calls: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    left: Bounds,
    pub hosts: Vec<Host>,
    engines: Vec<Engine<Epoch, LogEntry>>,
    next_epoch: Epoch,
    /// The engine that a majority takes for the one in force.
    master: u8,
    next_instance: u64,
    /// The version of the data.
    data: u8,
    /// The version of the newest purge that has returned.
    returned: u8,
}

/// A possible event. The number is that of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    Tick,
    /// All clocks go on but this one.
    SlowTick(usize),
    /// This clock alone goes on.
    FastTick(usize),
    /// A connection to an engine.
    Connect(usize, u8),
    Disconnect(usize),
    SendJoin(usize),
    SendRenew(usize),
    Execute(usize),
    Receive(usize),
    Read(usize),
    /// The data changes, and a purge of the page begins here.
    Write(usize),
    Publish(usize),
    PublishOther(usize),
    Confirm(usize),
    /// A majority is asked and the answer read.
    Judge(usize),
    BeginFetch(usize),
    EndFetch(usize, bool),
    ReadClock(usize),
    WritePurges(usize),
    WritePosition(usize),
    Crash(usize),
    Start(usize),
    /// Another engine takes over, with as much of the log, and the members or none.
    FailOver(u64, bool),
    Trim,
    Flush,
}

/// The events until a world is settled.
pub const SETTLING: [Event; 17] = [
    Event::Connect(0, 0),
    Event::SendJoin(0),
    Event::Execute(0),
    Event::Receive(0),
    Event::Connect(1, 0),
    Event::SendJoin(1),
    Event::Execute(1),
    Event::Receive(1),
    Event::Tick,
    Event::Tick,
    Event::Tick,
    Event::Tick,
    Event::SendRenew(1),
    Event::Execute(1),
    Event::Receive(1),
    Event::BeginFetch(1),
    Event::EndFetch(1, false),
];

impl Event {
    /// A number for each kind, and the node that it concerns.
    pub fn kind(&self) -> (usize, Option<usize>) {
        match *self {
            Event::Tick => (0, None),
            Event::SlowTick(at) => (1, Some(at)),
            Event::FastTick(at) => (2, Some(at)),
            Event::Connect(at, _) => (3, Some(at)),
            Event::Disconnect(at) => (4, Some(at)),
            Event::SendJoin(at) => (5, Some(at)),
            Event::SendRenew(at) => (6, Some(at)),
            Event::Execute(at) => (7, Some(at)),
            Event::Receive(at) => (8, Some(at)),
            Event::Read(at) => (9, Some(at)),
            Event::Write(at) => (10, Some(at)),
            Event::Publish(at) => (11, Some(at)),
            Event::Confirm(at) => (12, Some(at)),
            Event::Judge(at) => (13, Some(at)),
            Event::BeginFetch(at) => (14, Some(at)),
            Event::EndFetch(at, _) => (15, Some(at)),
            Event::ReadClock(at) => (16, Some(at)),
            Event::WritePurges(at) => (17, Some(at)),
            Event::WritePosition(at) => (18, Some(at)),
            Event::Crash(at) => (19, Some(at)),
            Event::Start(at) => (20, Some(at)),
            Event::FailOver(..) => (21, None),
            Event::Trim => (22, None),
            Event::Flush => (23, None),
            Event::PublishOther(at) => (24, Some(at)),
        }
    }
}

/// An answer that breaks the promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldAnswer {
    pub node: usize,
    pub version: u8,
    pub returned: u8,
}

impl World {
    pub fn new(bounds: Bounds, left_out: Option<Rule>) -> World {
        let hosts = (0..bounds.nodes).map(|at| Host::new(at as u64, left_out));
        World {
            left: bounds,
            hosts: hosts.collect(),
            engines: vec![Engine::new()],
            next_epoch: 0,
            master: 0,
            next_instance: bounds.nodes as u64,
            data: 0,
            returned: 0,
        }
    }

    /// Two nodes that have been members for so long that purges are confirmed, and the second has stored
    /// the page under a lease that has just begun.
    pub fn settled(bounds: Bounds, left_out: Option<Rule>) -> World {
        let plenty = Bounds {
            ticks: 4,
            calls: 3,
            fetches: 1,
            ..bounds
        };
        let mut world = World::new(plenty, left_out);
        for event in SETTLING {
            world.apply(event);
        }
        world.left = bounds;
        world
    }

    /// The first answer that some node would begin now with older data than a purge that returned.
    pub fn old_answer(&self) -> Option<OldAnswer> {
        self.hosts.iter().enumerate().find_map(|(node, host)| {
            let mut old = host.answers().filter(|&version| version < self.returned);
            old.next().map(|version| OldAnswer {
                node,
                version,
                returned: self.returned,
            })
        })
    }

    /// Whether a purge has returned.
    pub fn has_returned(&self) -> bool {
        self.returned > 0
    }

    /// Would some node answer from memory now?
    pub fn has_answer(&self) -> bool {
        self.hosts
            .iter()
            .any(|host| host.answers().next().is_some())
    }

    /// Adds all that may happen now.
    pub fn events(&self, events: &mut Vec<Event>) {
        let left = &self.left;
        if left.ticks > 0 {
            events.push(Event::Tick);
            if left.odd_ticks > 0 {
                events.extend(
                    (0..self.hosts.len()).flat_map(|at| [Event::SlowTick(at), Event::FastTick(at)]),
                );
            }
        }
        if left.failovers > 0 {
            let tip = self.engines[usize::from(self.master)].tip();
            events.extend(
                (0..=tip).flat_map(|tip| [Event::FailOver(tip, true), Event::FailOver(tip, false)]),
            );
        }
        if left.trims > 0 {
            events.push(Event::Trim);
        }
        if left.flushes > 0 {
            events.push(Event::Flush);
        }
        for (at, host) in self.hosts.iter().enumerate() {
            match host.is_up {
                true => self.events_at(at, host, events),
                false => events.push(Event::Start(at)),
            }
        }
    }

    fn events_at(&self, at: usize, host: &Host, events: &mut Vec<Event>) {
        let left = &self.left;
        let mut add = |may: bool, event: Event| {
            if may {
                events.push(event);
            }
        };
        let is_idle = host.call.is_none();
        let is_member = host.node.epoch().is_some();
        match host.engine {
            None => {
                for engine in 0..self.engines.len() as u8 {
                    add(true, Event::Connect(at, engine));
                }
            }
            Some(_) => {
                add(
                    left.losses > 0 || self.is_behind(host),
                    Event::Disconnect(at),
                );
                add(is_idle && !is_member && left.calls > 0, Event::SendJoin(at));
                add(is_idle && is_member && left.calls > 0, Event::SendRenew(at));
            }
        }
        match host.call.as_ref().map(|call| &call.stage) {
            Some(CallStage::JoinSent(_) | CallStage::RenewSent(_)) => add(true, Event::Execute(at)),
            Some(_) => add(true, Event::Receive(at)),
            None => {}
        }
        add(is_member && self.has_entry(host), Event::Read(at));
        add(left.other_purges > 0 && is_member, Event::PublishOther(at));
        add(left.purges > 0 && host.purge.is_none(), Event::Write(at));
        match host.purge.as_ref().map(|purge| &purge.stage) {
            Some(PurgeStage::Applied) => add(is_member, Event::Publish(at)),
            Some(PurgeStage::Published(confirmation)) => {
                let may = confirmation.call(&host.node, host.now()).is_some();
                add(may && host.engine.is_some(), Event::Confirm(at));
            }
            Some(PurgeStage::Answered(..)) => add(true, Event::Judge(at)),
            None => {}
        }
        add(
            left.fetches > 0 && host.fetch.is_none(),
            Event::BeginFetch(at),
        );
        add(host.fetch.is_some(), Event::EndFetch(at, false));
        add(
            host.old_reading != host.clock && !host.holds_fresh(),
            Event::ReadClock(at),
        );
        add(left.crashes > 0, Event::Crash(at));
        if left.has_disk {
            add(host.fetch.is_some(), Event::EndFetch(at, true));
            let applied = host.node.applied().map(|it| (it.epoch, it.position));
            add(applied != host.disk.purged, Event::WritePurges(at));
            add(applied != host.disk.position, Event::WritePosition(at));
        }
    }

    /// Whether it is connected to an engine that is no longer in force. It may go at no cost.
    fn is_behind(&self, host: &Host) -> bool {
        host.engine.is_some_and(|engine| engine != self.master)
    }

    fn has_entry(&self, host: &Host) -> bool {
        let (Some(engine), Some(applied)) = (host.engine, host.node.applied()) else {
            return false;
        };
        let engine = &self.engines[usize::from(engine)];
        !matches!(
            engine.read(&applied.epoch, applied.position),
            ReadAnswer::Nothing
        )
    }

    /// Makes it happen.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::Tick => self.tick(|_| 1),
            Event::SlowTick(slow) => self.odd_tick(|at| u8::from(at != slow)),
            Event::FastTick(fast) => self.odd_tick(|at| 1 + u8::from(at == fast)),
            Event::FailOver(tip, keeps_members) => {
                self.left.failovers -= 1;
                let epoch = self.new_epoch();
                let former = &self.engines[usize::from(self.master)];
                let replica = former.fail_over(epoch, tip, keeps_members);
                self.master = self.engines.len() as u8;
                self.engines.push(replica);
            }
            Event::Trim => {
                self.left.trims -= 1;
                self.engines[usize::from(self.master)].trim();
            }
            Event::Flush => {
                self.left.flushes -= 1;
                self.engines[usize::from(self.master)].lose_all();
            }
            Event::Write(at) => {
                self.left.purges -= 1;
                self.data += 1;
                self.hosts[at].purge = Some(OwnPurge {
                    version: self.data,
                    stage: PurgeStage::Applied,
                });
                self.hosts[at].apply_purge();
                // Its own journal is written before anything else about the purge.
                self.hosts[at].disk.stored = None;
            }
            Event::BeginFetch(at) => {
                self.left.fetches -= 1;
                let data = self.data;
                self.hosts[at].begin_fetch(data);
            }
            Event::EndFetch(at, to_disk) => self.hosts[at].end_fetch(to_disk),
            Event::ReadClock(at) => self.hosts[at].old_reading = self.hosts[at].clock,
            Event::WritePurges(at) => self.hosts[at].write_purges(),
            Event::WritePosition(at) => self.hosts[at].write_position(),
            Event::Crash(at) => {
                self.left.crashes -= 1;
                self.hosts[at].crash();
            }
            Event::Start(at) => {
                self.hosts[at].start(self.next_instance);
                self.next_instance += 1;
            }
            Event::Connect(at, engine) => self.hosts[at].engine = Some(engine),
            Event::Disconnect(at) => {
                if !self.is_behind(&self.hosts[at]) {
                    self.left.losses -= 1;
                }
                self.disconnect(at);
            }
            Event::SendJoin(at) | Event::SendRenew(at) => self.send(at),
            Event::Execute(at) => self.execute(at),
            Event::Receive(at) => self.receive(at),
            Event::Read(at) => self.read(at),
            Event::Publish(at) => self.publish(at),
            Event::PublishOther(at) => {
                self.left.other_purges -= 1;
                let host = &self.hosts[at];
                if let (Some(engine), Some(epoch)) = (host.engine, host.node.epoch()) {
                    let engine = &mut self.engines[usize::from(engine)];
                    let _ = engine.publish(epoch, LogEntry::AnotherPage);
                }
            }
            Event::Confirm(at) => self.confirm(at),
            Event::Judge(at) => self.judge(at),
        }
    }

    fn tick(&mut self, by: impl Fn(usize) -> u8) {
        self.left.ticks -= 1;
        for (at, host) in self.hosts.iter_mut().enumerate() {
            host.clock += by(at);
        }
    }

    fn odd_tick(&mut self, by: impl Fn(usize) -> u8) {
        self.left.odd_ticks -= 1;
        self.tick(by);
    }

    fn disconnect(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        host.engine = None;
        host.call = None;
        host.node.leave();
    }

    fn send(&mut self, at: usize) {
        self.left.calls -= 1;
        let host = &mut self.hosts[at];
        let sent_at = host.now();
        let stage = match host.node.renew() {
            Some(call) => CallStage::RenewSent(call),
            None => CallStage::JoinSent(host.node.join()),
        };
        host.call = host.engine.map(|engine| CallUnderWay {
            sent_at,
            engine,
            stage,
        });
    }

    fn new_epoch(&mut self) -> Epoch {
        self.next_epoch += 1;
        self.next_epoch
    }

    fn execute(&mut self, at: usize) {
        let new_epoch = self.new_epoch();
        let host = &mut self.hosts[at];
        let Some(call) = &mut host.call else { return };
        let engine = &mut self.engines[usize::from(call.engine)];
        call.stage = match &call.stage {
            CallStage::JoinSent(join) => {
                CallStage::JoinAnswered(engine.join(host.instance, join, new_epoch))
            }
            CallStage::RenewSent(renew) => {
                CallStage::RenewAnswered(renew.epoch, engine.renew(host.instance, renew))
            }
            answered => answered.clone(),
        };
    }

    fn receive(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let Some(call) = host.call.take() else { return };
        let now = host.now();
        let is_in_force = call.engine == self.master;
        match call.stage {
            CallStage::JoinAnswered(answer) => {
                match host.node.joined(answer, is_in_force, call.sent_at, now) {
                    JoinEffect::Keep => {}
                    JoinEffect::Void { tip } => {
                        host.void();
                        host.note_applied(tip);
                    }
                    JoinEffect::Leave => self.disconnect(at),
                }
            }
            CallStage::RenewAnswered(epoch, answer) => {
                host.node
                    .renewed(&epoch, answer, is_in_force, call.sent_at, now);
                if !is_in_force && answer == RenewAnswer::Renewed && host.node.epoch().is_none() {
                    self.disconnect(at);
                }
            }
            CallStage::JoinSent(_) | CallStage::RenewSent(_) => {}
        }
    }

    fn read(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let (Some(engine), Some(applied)) = (host.engine, host.node.applied()) else {
            return;
        };
        let engine = &self.engines[usize::from(engine)];
        match engine.read(&applied.epoch, applied.position) {
            ReadAnswer::Entry(number, entry) => {
                match host.node.entry(number) {
                    LogEntryEffect::Apply if entry == LogEntry::ThePage => host.apply_purge(),
                    LogEntryEffect::Apply => {}
                    LogEntryEffect::VoidAndApply => host.void(),
                    LogEntryEffect::Known => {}
                }
                host.note_applied(number);
            }
            ReadAnswer::OtherEpoch => host.node.leave(),
            ReadAnswer::Nothing => {}
        }
    }

    fn publish(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let (Some(engine), Some(&epoch)) = (host.engine, host.node.epoch()) else {
            return;
        };
        match self.engines[usize::from(engine)].publish(&epoch, LogEntry::ThePage) {
            PublishAnswer::Published(entry) => {
                if let Some(purge) = &mut host.purge {
                    let mut confirmation = Confirmation::new(epoch, entry);
                    confirmation.raise(entry + published_later(at));
                    purge.stage = PurgeStage::Published(confirmation);
                }
            }
            PublishAnswer::OtherEpoch => host.node.leave(),
        }
    }

    /// `confirm` is executed; its result is judged later.
    fn confirm(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let (Some(engine), Some(purge)) = (host.engine, &mut host.purge) else {
            return;
        };
        let PurgeStage::Published(confirmation) = &purge.stage else {
            return;
        };
        let now = cache_nodes::BootMillis(u64::from(host.clock));
        let Some(call) = confirmation.call(&host.node, now) else {
            return;
        };
        let was_in_force = engine == self.master;
        let answer =
            self.engines[usize::from(engine)].confirm(host.instance, &call, host.node.rules());
        purge.stage = PurgeStage::Answered(confirmation.clone(), answer, engine, was_in_force);
    }

    fn judge(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let now = host.now();
        let Some(mut purge) = host.purge.take() else {
            return;
        };
        let PurgeStage::Answered(mut confirmation, answer, engine, _) = purge.stage else {
            return;
        };
        let is_in_force = engine == self.master;
        match confirmation.answered(&answer, is_in_force, &host.node, now) {
            ConfirmationState::Confirmed => {
                self.returned = self.returned.max(purge.version);
                return;
            }
            ConfirmationState::Waiting(by_all)
                if by_all + published_later(at) >= confirmation.entry() =>
            {
                self.returned = self.returned.max(purge.version);
                return;
            }
            ConfirmationState::Waiting(_) => purge.stage = PurgeStage::Published(confirmation),
            ConfirmationState::JoinFirst => {
                purge.stage = PurgeStage::Published(confirmation);
                host.node.leave();
            }
            ConfirmationState::PublishAgain => purge.stage = PurgeStage::Applied,
        }
        host.purge = Some(purge);
    }
}

/// Every other node asks for an entry after the one of its purge, as if it had published another since: its own entry
/// is confirmed by the way.
fn published_later(at: usize) -> u64 {
    at as u64 % 2
}
