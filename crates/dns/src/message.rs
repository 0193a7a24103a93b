//! Questions to bytes and bytes to replies. Pure: bytes in, values out.

use std::net::IpAddr;

use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::{Name, RData, RecordType};

use crate::error::Fault;

/// Aliases followed inside one message; the rest is left to the next question.
const MAX_CHAIN: usize = 16;

/// The record type of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RecordKind {
    A,
    Aaaa,
    Ptr,
    Srv,
}

impl RecordKind {
    fn record_type(self) -> RecordType {
        match self {
            Self::A => RecordType::A,
            Self::Aaaa => RecordType::AAAA,
            Self::Ptr => RecordType::PTR,
            Self::Srv => RecordType::SRV,
        }
    }
}

/// One SRV record (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// Lower is asked first.
    pub priority: u16,
    /// Share among those of one priority.
    pub weight: u16,
    /// The port on which the server listens.
    pub port: u16,
    /// Its name, lower case.
    pub target: String,
}

/// A question with the number that its answer must carry.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    name: Name,
    kind: RecordKind,
    id: u16,
    /// The datagram as sent.
    pub bytes: Vec<u8>,
}

/// The reply of a name server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Records(Records),
    Fault(Fault),
    /// To be asked again over TCP.
    Truncated,
}

/// The useful part of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Records {
    pub addresses: Vec<IpAddr>,
    pub services: Vec<Service>,
    /// Lower case.
    pub hosts: Vec<String>,
    /// The name that the one asked for is an alias of.
    pub alias: Option<String>,
    /// The smallest of all records, in seconds.
    pub ttl: u32,
}

impl Question {
    /// `None`: no such name can be asked for (RFC 1035 §2.3.4).
    pub fn new(name: &str, kind: RecordKind) -> Option<Self> {
        let mut name = Name::from_ascii(name).ok()?;
        name.set_fqdn(true);
        // Brings a random number along.
        let mut message = Message::query();
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(name.clone(), kind.record_type()));
        Some(Self {
            name,
            kind,
            id: message.metadata.id,
            bytes: message.to_vec().ok()?,
        })
    }

    /// The reply in `bytes`; `None` if they are malformed, the answer to something
    /// else, or an error that does not concern the name. Such a datagram is passed
    /// over, as nginx does: it may be forged.
    pub fn reply(&self, bytes: &[u8]) -> Option<Reply> {
        let message = Message::from_vec(bytes).ok()?;
        let head = &message.metadata;
        let [query] = &message.queries[..] else {
            return None;
        };
        let is_ours = head.id == self.id
            && head.message_type == MessageType::Response
            && head.op_code == OpCode::Query
            && query.query_type() == self.kind.record_type()
            && query.name().to_lowercase() == self.name.to_lowercase();
        if !is_ours {
            return None;
        }
        if head.truncation {
            return Some(Reply::Truncated);
        }
        match u16::from(head.response_code) {
            0 => {}
            1 => return None,
            code => return Fault::from_code(code).map(Reply::Fault),
        }
        Some(Reply::Records(self.records(&message)))
    }

    fn records(&self, message: &Message) -> Records {
        let mut records = Records {
            ttl: u32::MAX,
            ..Records::default()
        };
        for record in &message.answers {
            // The owner does not matter: a server that follows aliases names the
            // last one.
            match (self.kind, &record.data) {
                (RecordKind::A, RData::A(address)) => records.addresses.push(address.0.into()),
                (RecordKind::Aaaa, RData::AAAA(address)) => {
                    records.addresses.push(address.0.into())
                }
                (RecordKind::Srv, RData::SRV(service)) => records.services.push(Service {
                    priority: service.priority,
                    weight: service.weight,
                    port: service.port,
                    target: shown(&service.target),
                }),
                (RecordKind::Ptr, RData::PTR(host)) => records.hosts.push(shown(&host.0)),
                (_, RData::CNAME(_)) => {}
                _ => continue,
            }
            records.ttl = records.ttl.min(record.ttl);
        }
        records.alias = self.alias(message);
        records
    }

    /// The end of the chain of aliases that begins at the name asked for.
    fn alias(&self, message: &Message) -> Option<String> {
        let mut name = self.name.to_lowercase();
        let mut end = None;
        for _ in 0..MAX_CHAIN {
            let next = message
                .answers
                .iter()
                .find_map(|record| match &record.data {
                    RData::CNAME(target) if record.name.to_lowercase() == name => Some(&target.0),
                    _ => None,
                });
            let Some(next) = next else { break };
            name = next.to_lowercase();
            end = Some(shown(next));
        }
        end
    }
}

/// The name under which the host names of an address are asked for (RFC 1035 §3.5, RFC 3596 §2.5).
pub(crate) fn reverse_name(address: IpAddr) -> String {
    let mut name = String::new();
    match address {
        IpAddr::V4(address) => {
            for byte in address.octets().iter().rev() {
                name.push_str(&format!("{byte}."));
            }
            name.push_str("in-addr.arpa");
        }
        IpAddr::V6(address) => {
            for byte in address.octets().iter().rev() {
                name.push_str(&format!("{:x}.{:x}.", byte & 15, byte >> 4));
            }
            name.push_str("ip6.arpa");
        }
    }
    name
}

/// Lower case, without the last dot.
fn shown(name: &Name) -> String {
    let text = name.to_lowercase().to_ascii();
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(question: &Question, change: impl FnOnce(&mut Message)) -> Vec<u8> {
        let mut message = Message::response(question.id, OpCode::Query);
        message.add_query(Query::query(
            question.name.clone(),
            question.kind.record_type(),
        ));
        change(&mut message);
        message.to_vec().unwrap()
    }

    #[test]
    fn only_the_answer_to_this_very_question_counts() {
        let question = Question::new("A.example.net", RecordKind::A).unwrap();
        let other = Question::new("b.example.net", RecordKind::A).unwrap();
        let fine = answer(&question, |_| {});
        let empty = Records {
            ttl: u32::MAX,
            ..Records::default()
        };
        assert_eq!(question.reply(&fine), Some(Reply::Records(empty)));
        let cases = [
            ("another number", answer(&question, |m| m.metadata.id ^= 1)),
            ("a question", question.bytes.clone()),
            ("another name", {
                let mut theirs = other.clone();
                theirs.id = question.id;
                answer(&theirs, |_| {})
            }),
            (
                "no question in it",
                answer(&question, |m| m.queries.clear()),
            ),
            (
                "a format error",
                answer(&question, |m| {
                    m.metadata.response_code = hickory_proto::op::ResponseCode::FormErr;
                }),
            ),
            ("cut", fine[..fine.len() - 3].to_vec()),
            ("nothing", Vec::new()),
        ];
        for (name, bytes) in cases {
            assert_eq!(question.reply(&bytes), None, "{name}");
        }
    }

    #[test]
    fn the_name_of_an_address_has_its_parts_from_the_last_to_the_first() {
        let of = |address: &str| reverse_name(address.parse().unwrap());
        assert_eq!(of("192.0.2.17"), "17.2.0.192.in-addr.arpa");
        let tail = "0.".repeat(23) + "8.b.d.0.1.0.0.2.ip6.arpa";
        assert_eq!(of("2001:db8::a"), format!("a.{tail}"));
    }

    #[test]
    fn names_that_cannot_be_are_not_asked_for() {
        let label = "a".repeat(64);
        let long = ["a".repeat(63).as_str(); 5].join(".");
        for name in [label.as_str(), long.as_str(), "a..b"] {
            assert!(Question::new(name, RecordKind::A).is_none(), "{name}");
        }
        assert!(Question::new("a_b.example", RecordKind::A).is_some());
    }
}
