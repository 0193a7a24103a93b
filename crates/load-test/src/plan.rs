//! The plan of a run: every address looked up, every request written.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tls_client::{Connector, Settings as TlsSettings};

use crate::replay::Replay;
use command_line::{Target, is_this_machine};

/// How requests come.
#[derive(Debug)]
pub enum Load {
    /// Each visitor asks again when it has its answer.
    Closed,
    /// A fixed rate of requests in a second, whatever becomes of them.
    Open { rate: f64 },
    /// The times of a log.
    Replay(Replay),
}

/// The settings of a test, beside its URLs.
#[derive(Debug)]
pub struct Settings {
    pub load: Load,
    pub duration: Duration,
    /// During this time, the rate or the connections grow.
    pub ramp: Duration,
    /// How long a request may take.
    pub timeout: Duration,
    /// Connections at the same time at most.
    pub connections: usize,
    /// Whole lines: `Accept-Language: de`.
    pub fields: Vec<String>,
    /// Visitors send the cookies that they were given.
    pub cookies: bool,
    /// A visitor leaves after this many requests, and another one comes.
    pub requests_per_visitor: Option<u32>,
    /// Also hosts that are not this machine.
    pub anywhere: bool,
}

/// A server that is asked.
#[derive(Clone)]
pub struct Origin {
    pub address: SocketAddr,
    pub tls: Option<(Connector, String)>,
}

/// One request: where it goes, and its bytes up to where fields may be added.
#[derive(Debug, Clone)]
pub struct Request {
    pub origin: usize,
    pub bytes: Vec<u8>,
    pub is_head: bool,
    /// The index of its URL.
    pub url: usize,
}

/// Everything that a run needs.
pub struct Plan {
    pub settings: Settings,
    pub origins: Vec<Origin>,
    /// One for each URL; of a replay, one for each different request.
    pub requests: Vec<Request>,
    /// URLs as reports name them.
    pub urls: Vec<String>,
    /// Sums of weights up to each request.
    weights: Vec<u64>,
}

/// The reason why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("no URL is named")]
    NoUrl,
    /// A replay has one URL.
    #[error("a replay takes the paths from the log: expected one URL, of the server")]
    SeveralUrls,
    #[error("{0}: {1}")]
    Unknown(String, std::io::Error),
    /// Another machine.
    #[error(
        "{0} is {1}, which is not this machine; load on a server of others is an attack. If it is yours, --yes-this-is-mine says so"
    )]
    NotHere(String, IpAddr),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("{0:?}: expected a field such as \"Accept-Language: de\"")]
    BadField(String),
}

impl Plan {
    /// # Errors
    /// The reason why there is no plan.
    pub fn new(targets: &[Target], settings: Settings) -> Result<Plan, PlanError> {
        if targets.is_empty() {
            return Err(PlanError::NoUrl);
        }
        if let Some(field) = settings.fields.iter().find(|field| !is_field(field)) {
            return Err(PlanError::BadField(field.clone()));
        }
        let mut plan = Plan {
            origins: Vec::new(),
            requests: Vec::new(),
            urls: targets.iter().map(Target::url).collect(),
            weights: Vec::new(),
            settings,
        };
        let mut sum = 0;
        for (url, target) in targets.iter().enumerate() {
            let origin = plan.origin(target)?;
            sum += u64::from(target.weight);
            plan.weights.push(sum);
            let head = Head {
                method: "GET",
                target: &target.target,
                authority: &target.authority,
                user_agent: None,
            };
            let bytes = head.bytes(&plan.settings.fields);
            plan.requests.push(Request {
                origin,
                bytes,
                is_head: false,
                url,
            });
        }
        if let (Load::Replay(replay), [target]) = (&plan.settings.load, targets) {
            let requests = replay.requests.iter().map(|replayed| Request {
                origin: 0,
                bytes: Head {
                    method: if replayed.is_head { "HEAD" } else { "GET" },
                    target: &replayed.target,
                    authority: &target.authority,
                    user_agent: replayed.user_agent.as_deref(),
                }
                .bytes(&plan.settings.fields),
                is_head: replayed.is_head,
                url: 0,
            });
            plan.requests = requests.collect();
        } else if matches!(plan.settings.load, Load::Replay(_)) {
            return Err(PlanError::SeveralUrls);
        }
        Ok(plan)
    }

    /// Looked up once, and asked at this address ever after.
    fn origin(&mut self, target: &Target) -> Result<usize, PlanError> {
        let unknown = |error| PlanError::Unknown(target.host.clone(), error);
        let addresses = (&*target.host, target.port).to_socket_addrs();
        let addresses: Vec<SocketAddr> = addresses.map_err(unknown)?.collect();
        // Servers of this machine often listen on IPv4 alone.
        let address = addresses
            .iter()
            .find(|it| it.is_ipv4())
            .or(addresses.first());
        let address = *address.ok_or_else(|| unknown(std::io::ErrorKind::NotFound.into()))?;
        if !self.settings.anywhere && !is_this_machine(address.ip()) {
            return Err(PlanError::NotHere(target.host.clone(), address.ip()));
        }
        let tls = match target.is_tls {
            true => {
                let settings = TlsSettings {
                    send_name: true,
                    ..TlsSettings::default()
                };
                let connector = Connector::new(&settings);
                let connector = connector.map_err(|error| PlanError::Tls(error.to_string()))?;
                Some((connector, target.host.clone()))
            }
            false => None,
        };
        let is_known = |it: &Origin| {
            it.address == address
                && it.tls.as_ref().map(|(_, name)| name) == tls.as_ref().map(|(_, name)| name)
        };
        match self.origins.iter().position(is_known) {
            Some(known) => Ok(known),
            None => {
                self.origins.push(Origin { address, tls });
                Ok(self.origins.len() - 1)
            }
        }
    }

    /// The request for a number that was drawn.
    #[must_use]
    pub fn draw(&self, random: u64) -> usize {
        let all = self.weights.last().copied().unwrap_or(1).max(1);
        let drawn = random % all;
        self.weights.partition_point(|sum| *sum <= drawn)
    }
}

struct Head<'a> {
    method: &'a str,
    target: &'a str,
    authority: &'a str,
    user_agent: Option<&'a str>,
}

impl Head<'_> {
    /// Without the empty line at the end.
    fn bytes(&self, fields: &[String]) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        let names = |name: &str| {
            fields.iter().any(|field| {
                let start = field.split(':').next().unwrap_or_default();
                start.eq_ignore_ascii_case(name)
            })
        };
        if !names("host") {
            head += &format!("Host: {}\r\n", self.authority);
        }
        if !names("user-agent") {
            head += &format!(
                "User-Agent: {}\r\n",
                self.user_agent.unwrap_or("mayfly-bench")
            );
        }
        for field in fields {
            head += field;
            head += "\r\n";
        }
        head.into_bytes()
    }
}

fn is_field(field: &str) -> bool {
    let Some((name, value)) = field.split_once(':') else {
        return false;
    };
    let is_token = |it: u8| it.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&it);
    let framing = ["content-length", "transfer-encoding", "connection"];
    !name.is_empty()
        && name.bytes().all(is_token)
        && !value.chars().any(char::is_control)
        && !framing.iter().any(|it| name.eq_ignore_ascii_case(it))
}

#[cfg(test)]
pub fn settings_for_tests(load: Load) -> Settings {
    Settings {
        load,
        duration: Duration::from_secs(1),
        ramp: Duration::ZERO,
        timeout: Duration::from_secs(5),
        connections: 4,
        fields: Vec::new(),
        cookies: false,
        requests_per_visitor: None,
        anywhere: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_drawn_by_weight() {
        let targets = ["1@http://127.0.0.1:1/a", "3@http://127.0.0.1:1/b"];
        let targets = targets.map(|it| Target::parse(it).unwrap());
        let plan = Plan::new(&targets, settings_for_tests(Load::Closed)).unwrap();
        let drawn: Vec<usize> = (0..8).map(|number| plan.draw(number)).collect();
        assert_eq!(drawn, [0, 1, 1, 1, 0, 1, 1, 1]);
        assert_eq!(plan.origins.len(), 1);
    }

    #[test]
    fn other_machines_are_refused_unless_they_are_said_to_be_ours() {
        let target = [Target::parse("http://192.0.2.1/").unwrap()];
        let refused = Plan::new(&target, settings_for_tests(Load::Closed)).err();
        let message = refused.unwrap().to_string();
        assert!(message.contains("--yes-this-is-mine"), "{message}");
        let settings = Settings {
            anywhere: true,
            ..settings_for_tests(Load::Closed)
        };
        assert!(Plan::new(&target, settings).is_ok());
    }

    #[test]
    fn fields_are_added_and_replace_the_usual_ones() {
        let target = [Target::parse("http://127.0.0.1:1/a").unwrap()];
        let settings = Settings {
            fields: vec!["host: b".to_owned(), "A: c".to_owned()],
            ..settings_for_tests(Load::Closed)
        };
        let plan = Plan::new(&target, settings).unwrap();
        let bytes = String::from_utf8_lossy(&plan.requests[0].bytes).into_owned();
        assert_eq!(
            bytes,
            "GET /a HTTP/1.1\r\nUser-Agent: mayfly-bench\r\nhost: b\r\nA: c\r\n"
        );
        for field in ["nothing", ": a", "A: b\r\nC: d", "Content-Length: 5"] {
            let settings = Settings {
                fields: vec![field.to_owned()],
                ..settings_for_tests(Load::Closed)
            };
            assert!(Plan::new(&target, settings).is_err(), "{field}");
        }
    }
}
