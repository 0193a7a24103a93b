//! One connection: commands and their answers, in the order in which the server gives them.

use std::collections::VecDeque;

use crate::command::{Command, CommandReader};
use crate::reply::{ReplyEnd, ReplyReader};
use crate::table::{Effect, Turn};
use crate::unreadable::Unreadable;

/// Commands that wait for their answers.
pub const MAX_PENDING: usize = 16 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A command was sent in full.
    Asked(&'a Command),
    /// The first command that was not answered yet is answered.
    Answered(ReplyEnd),
}

/// What the answer decides of the connection.
#[derive(Debug)]
enum Pending {
    Nothing,
    /// If it fails, the database is another one than the commands behind it were read with.
    Select,
}

#[derive(Debug, Default)]
pub struct Conversation {
    commands: CommandReader,
    replies: ReplyReader,
    pending: VecDeque<Pending>,
    database: u32,
    /// Between MULTI and its end, where the server runs nothing yet.
    is_queueing: bool,
    has_ended: bool,
    is_unreadable: bool,
}

impl Conversation {
    /// Takes the bytes that the client wrote, in order and without gaps.
    pub fn sent(&mut self, mut bytes: &[u8], see: &mut impl FnMut(Event<'_>)) {
        while !self.is_unreadable {
            let asked = match self.commands.next(&mut bytes) {
                Ok(Some(command)) => self.asks(command, see),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            self.is_unreadable = asked.is_err();
        }
    }

    /// Takes the bytes that the client read, in order and without gaps.
    pub fn received(&mut self, mut bytes: &[u8], see: &mut impl FnMut(Event<'_>)) {
        while !self.is_unreadable {
            let answered = match self.replies.next(&mut bytes) {
                Ok(Some(ReplyEnd::Push)) => Ok(()),
                Ok(Some(end)) => self.is_answered(end, see),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            self.is_unreadable = answered.is_err();
        }
    }

    /// Whether nothing more is read of it.
    pub const fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }

    fn asks(
        &mut self,
        mut command: Command,
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        if self.has_ended || self.pending.len() >= MAX_PENDING {
            return Err(Unreadable);
        }
        let mut pending = Pending::Nothing;
        match command.turn {
            Turn::Select => {
                let number = str::from_utf8(&command.word).ok();
                let number = number.and_then(|it| it.parse().ok());
                self.database = number.ok_or(Unreadable)?;
                pending = Pending::Select;
            }
            Turn::Ends => self.has_ended = true,
            Turn::Unreadable | Turn::Client => return Err(Unreadable),
            Turn::None => {}
        }
        command.database = self.database;
        match &command.name[..] {
            b"MULTI" => self.is_queueing = true,
            b"EXEC" | b"DISCARD" => self.is_queueing = false,
            _ if self.is_queueing => {
                command.effect = Effect::Anything;
                command.keys.clear();
            }
            _ => {}
        }
        self.pending.push_back(pending);
        see(Event::Asked(&command));
        Ok(())
    }

    fn is_answered(
        &mut self,
        end: ReplyEnd,
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        let pending = self.pending.pop_front().ok_or(Unreadable)?;
        see(Event::Answered(end));
        match (pending, end) {
            (Pending::Select, ReplyEnd::Error) => Err(Unreadable),
            _ => Ok(()),
        }
    }
}
