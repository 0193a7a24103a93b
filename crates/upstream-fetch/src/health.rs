//! Health checks: every server of a group is sent a request now and then, and the
//! group gets the result.
//!
//! ```text
//! Check::run --- one task for each server ---> watch_server
//!   every interval: probe -> verdict::judge -> Streak -> Group::set_health
//! ```
//!
//! A check opens connections of its own, apart from those of requests: it does not
//! count for `max_conns` and takes no place in line.

mod verdict;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fastcgi::ParamsEncoder;
use site::{
    Bind, Content, HealthCheck, LogLevel, MatchRules, Pass, Protocol, Proxy, ProxyVersion, Root,
    Site,
};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use transport::request_body::RequestBody;
use upstream::{Endpoint, Group, Health, LocalEnd, Stream, Watch};
use upstream_exchange::Event;

use crate::exchange;
use crate::{HttpRequest, OutgoingBody, UpstreamRequest};
use live_state::LiveState;
use live_state::error_log::ErrorLogs;
use server_base::random;

pub use verdict::HealthAnswer;

/// Bytes of a body that a check reads at most; nginx's bound.
const MAX_BODY_BYTES: usize = 256 << 10;
/// How often the list of servers is looked at for new ones.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// One `health_check` line at work.
pub struct Check {
    group: Arc<Group>,
    /// Its number among the checks of this group.
    number: usize,
    settings: HealthCheck,
    rules: Option<MatchRules>,
    request: UpstreamRequest,
    pass: Arc<Pass>,
    error_logs: Arc<ErrorLogs>,
    require: Require,
}

/// Evaluates the `require` of a `match` for an answer.
pub type Require = Arc<dyn Fn(&MatchRules, &HealthAnswer) -> Result<(), FailedCheck> + Send + Sync>;

/// The reason why a server did not pass a check.
#[derive(Debug, thiserror::Error)]
pub enum FailedCheck {
    #[error("connecting failed: {0}")]
    Connect(io::Error),
    #[error("it did not answer in time")]
    Timeout,
    #[error("it closed the connection")]
    Closed,
    #[error(transparent)]
    Exchange(#[from] exchange::Error),
    /// There is no `match`, and the status is not from 200 to 399.
    #[error("status {0}")]
    Status(u16),
    #[error("status {0} does not match")]
    OtherStatus(u16),
    #[error("header \"{0}\" does not match")]
    OtherHeader(String),
    #[error("body does not match")]
    OtherBody,
    #[error("\"require\" could not be evaluated")]
    NotEvaluated,
    #[error("a required variable is empty or \"0\"")]
    EmptyVariable,
}

/// Gives every group the checks that watch it. `previous`: the groups of the
/// configuration before, whose health outlives the reload.
pub fn watch(site: &Site, groups: &[Arc<Group>], previous: &[Arc<Group>]) {
    for (index, group) in groups.iter().enumerate() {
        let checks = site.http.health_checks.iter();
        let of_group = checks.filter(|check| check.group.0 == index);
        let watches: Vec<Watch> = of_group
            .map(|check| Watch {
                mandatory: check.mandatory,
                persistent: check.persistent,
            })
            .collect();
        let former = previous.iter().find(|former| former.name() == group.name());
        let healthy = former.map_or_else(Vec::new, |former| former.healthy_endpoints());
        group.watch(watches, |endpoint| healthy.contains(endpoint));
    }
}

/// The checks of a configuration.
pub fn checks(site: &Site, live: &LiveState, require: &Require) -> Vec<Check> {
    let http = &site.http;
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    let lines = http.health_checks.iter().filter_map(|settings| {
        let number = numbers.entry(settings.group.0).or_default();
        *number += 1;
        let Content::Pass(pass) = &settings.settings.content else {
            return None;
        };
        Some(Check {
            group: live.groups.groups().get(settings.group.0)?.clone(),
            number: *number - 1,
            rules: settings
                .matching
                .and_then(|id| http.matches.get(id.0).cloned()),
            request: upstream_request(settings, pass)?,
            pass: pass.clone(),
            settings: settings.clone(),
            error_logs: live.error_logs.clone(),
            require: require.clone(),
        })
    });
    lines.collect()
}

impl Check {
    /// Keeps a task for each server of the group, as they come and go.
    pub async fn run(self) {
        let check = Arc::new(self);
        let mut tasks = JoinSet::new();
        let mut watched: HashMap<(usize, Endpoint), AbortHandle> = HashMap::new();
        loop {
            let servers = check.group.snapshot(clock::now());
            let present = |server: usize, endpoint: &Endpoint| {
                servers
                    .iter()
                    .any(|it| it.server == server && it.endpoint == *endpoint)
            };
            watched.retain(|(server, endpoint), task| {
                let stays = present(*server, endpoint);
                if !stays {
                    task.abort();
                }
                stays
            });
            for server in &servers {
                if server.standing == upstream::Standing::Down {
                    continue;
                }
                watched
                    .entry((server.server, server.endpoint.clone()))
                    .or_insert_with(|| {
                        let (check, endpoint) = (check.clone(), server.endpoint.clone());
                        tasks.spawn(check.watch_server(server.server, endpoint))
                    });
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    async fn watch_server(self: Arc<Self>, server: usize, endpoint: Endpoint) {
        let mut streak = Streak::new(self.settings.fails, self.settings.passes);
        let mut kept = None;
        loop {
            sleep(self.delay()).await;
            let outcome = self.probe(&endpoint, &mut kept).await;
            if let Some(health) = streak.count(outcome.is_ok()) {
                self.group
                    .set_health(server, &endpoint, self.number, health, clock::now());
                self.log(&endpoint, health, outcome.err());
            }
            sleep(self.settings.interval).await;
        }
    }

    /// Some part of `jitter`.
    fn delay(&self) -> Duration {
        let [one, two, ..] = random::bytes16();
        self.settings.jitter * u32::from(u16::from_le_bytes([one, two])) / u32::from(u16::MAX)
    }

    /// Sends one check.
    async fn probe(
        &self,
        endpoint: &Endpoint,
        kept: &mut Option<KeptConnection>,
    ) -> Result<(), FailedCheck> {
        if let Some(connection) = kept.take().filter(|kept| self.may_use(kept)) {
            match self.ask(connection, kept).await {
                // The kept connection may have been closed in the meantime.
                Err(_) => {}
                Ok(answer) => return self.judge(&answer),
            }
        }
        let connect_timeout = self.pass.exchange.connect_timeout;
        let stream = at_port(endpoint, self.settings.port)
            .connect(self.local_end(), connect_timeout)
            .await
            .map_err(FailedCheck::Connect)?;
        let fresh = KeptConnection {
            stream,
            born: Instant::now(),
        };
        let answer = self.ask(fresh, kept).await?;
        self.judge(&answer)
    }

    /// Binds the local end as requests do, unless its address is a variable of
    /// theirs.
    fn local_end(&self) -> LocalEnd {
        LocalEnd {
            address: match &self.pass.exchange.bind {
                Some(Bind::To(address)) => Some(*address),
                Some(Bind::Named(_)) | None => None,
            },
            probes: self.pass.exchange.socket_keepalive,
        }
    }

    fn may_use(&self, kept: &KeptConnection) -> bool {
        let limit = self.settings.keepalive_time;
        limit.is_some_and(|limit| kept.born.elapsed() < limit)
    }

    async fn ask(
        &self,
        connection: KeptConnection,
        kept: &mut Option<KeptConnection>,
    ) -> Result<HealthAnswer, FailedCheck> {
        let exchange = &self.pass.exchange;
        let head_limit = usize::try_from(exchange.head_bytes).unwrap_or(usize::MAX);
        let body = OutgoingBody::replay(&RequestBody::None);
        let born = connection.born;
        let mut under_way = self
            .request
            .start(connection.stream, false, false, head_limit, body);
        let mut answer = HealthAnswer::default();
        loop {
            let event = timeout(exchange.read_timeout, under_way.next())
                .await
                .map_err(|_| FailedCheck::Timeout)??;
            match event {
                Some(Event::Head(head)) => {
                    answer.status = head.status;
                    answer.fields = head.fields;
                }
                Some(Event::Data(bytes)) => {
                    let room = MAX_BODY_BYTES - answer.body.len();
                    answer
                        .body
                        .extend_from_slice(&bytes[..bytes.len().min(room)]);
                    // Enough was seen; the rest is not waited for.
                    if answer.body.len() == MAX_BODY_BYTES {
                        return Ok(answer);
                    }
                }
                Some(Event::End { .. }) => {
                    if self.settings.keepalive_time.is_some() {
                        *kept = under_way
                            .into_stream()
                            .map(|stream| KeptConnection { stream, born });
                    }
                    return Ok(answer);
                }
                Some(_) => {}
                None => return Err(FailedCheck::Closed),
            }
        }
    }

    fn judge(&self, answer: &HealthAnswer) -> Result<(), FailedCheck> {
        match &self.rules {
            None => verdict::usual(answer),
            Some(rules) => {
                verdict::judge(rules, answer)?;
                match rules.require.is_empty() {
                    true => Ok(()),
                    false => (self.require)(rules, answer),
                }
            }
        }
    }

    fn log(&self, endpoint: &Endpoint, health: Health, reason: Option<FailedCheck>) {
        let (level, state) = match health {
            Health::Unhealthy => (LogLevel::Warn, "unhealthy"),
            _ => (LogLevel::Notice, "healthy"),
        };
        let while_ = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        self.error_logs.write(
            &self.settings.settings.error_logs,
            level,
            0,
            format_args!(
                "peer is {state}{while_}, health check \"{}\" of peer {endpoint} in upstream \"{}\"",
                String::from_utf8_lossy(&self.settings.uri),
                self.group.name()
            ),
            "",
        );
    }
}

/// A connection between two checks (`keepalive_time`).
struct KeptConnection {
    stream: Stream,
    born: Instant,
}

/// Checks in a row with the same outcome.
#[derive(Debug)]
struct Streak {
    /// How many it takes.
    fails: u32,
    passes: u32,
    /// Failed or passed in a row so far.
    count: u32,
    is_failing: bool,
    /// The result that the group got last.
    reported: Option<Health>,
}

impl Streak {
    fn new(fails: u32, passes: u32) -> Streak {
        Streak {
            fails,
            passes,
            count: 0,
            is_failing: false,
            reported: None,
        }
    }

    /// Counts an outcome, and returns the new health if that changes. The first
    /// check alone decides where nothing is known: `mandatory` waits for one check.
    fn count(&mut self, passed: bool) -> Option<Health> {
        if self.is_failing == passed {
            self.count = 0;
            self.is_failing = !passed;
        }
        self.count = self.count.saturating_add(1);
        let needed = match (self.reported, passed) {
            (None, true) => 1,
            (_, true) => self.passes,
            (_, false) => self.fails,
        };
        let health = if passed {
            Health::Healthy
        } else {
            Health::Unhealthy
        };
        if self.count < needed || self.reported == Some(health) {
            return None;
        }
        self.reported = Some(health);
        Some(health)
    }
}

fn at_port(endpoint: &Endpoint, port: Option<u16>) -> Endpoint {
    match (endpoint, port) {
        (Endpoint::Tcp(address), Some(port)) => {
            let mut address = *address;
            address.set_port(port);
            Endpoint::Tcp(address)
        }
        _ => endpoint.clone(),
    }
}

/// The request of a check in its protocol's terms; `None` if the location's settings
/// allow none.
fn upstream_request(check: &HealthCheck, pass: &Pass) -> Option<UpstreamRequest> {
    match &pass.protocol {
        Protocol::FastCgi(fastcgi) => {
            let root = match &check.settings.files.root {
                Root::Root(root) | Root::Alias(root) => root.as_constant().unwrap_or(b""),
            };
            let (path, args) = http_semantics::split_query(&check.uri);
            let args = args.unwrap_or_default();
            let script = [root, path].concat();
            let mut params = ParamsEncoder::new();
            let usual: [(&[u8], &[u8]); 9] = [
                (b"SCRIPT_FILENAME", &script),
                (b"SCRIPT_NAME", path),
                (b"DOCUMENT_URI", path),
                (b"DOCUMENT_ROOT", root),
                (b"REQUEST_URI", &check.uri),
                (b"QUERY_STRING", args),
                (b"REQUEST_METHOD", b"GET"),
                (b"SERVER_PROTOCOL", b"HTTP/1.1"),
                (b"GATEWAY_INTERFACE", b"CGI/1.1"),
            ];
            for (name, value) in usual {
                params.push(name, value);
            }
            for param in &fastcgi.params {
                let is_usual = usual.iter().any(|(name, _)| **name == *param.name);
                if let Some(value) = param.value.as_constant().filter(|_| !is_usual) {
                    params.push(&param.name, value);
                }
            }
            Some(UpstreamRequest::FastCgi {
                params: params.finish().ok()?,
                keep_conn: check.keepalive_time.is_some(),
            })
        }
        Protocol::Http(proxy) => Some(UpstreamRequest::Http(http_request(check, proxy))),
        // Refused when the configuration is read.
        Protocol::Memcached(_) => None,
    }
}

fn http_request(check: &HealthCheck, proxy: &Proxy) -> HttpRequest {
    let keep_alive = check.keepalive_time.is_some();
    let mut head = BytesMut::new();
    head.extend_from_slice(b"GET ");
    head.extend_from_slice(&check.uri);
    head.extend_from_slice(match proxy.version {
        ProxyVersion::Http10 => b" HTTP/1.0\r\n",
        ProxyVersion::Http11 => b" HTTP/1.1\r\n",
    });
    let mut put = |name: &[u8], value: &[u8]| {
        for part in [name, b": ", value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    };
    let host = field(proxy, b"host").unwrap_or(&proxy.host);
    put(b"Host", if host.is_empty() { b"localhost" } else { host });
    put(
        b"Connection",
        if keep_alive { b"keep-alive" } else { b"close" },
    );
    for line in &proxy.fields {
        let is_put = line.name.eq_ignore_ascii_case(b"host")
            || line.name.eq_ignore_ascii_case(b"connection");
        // Most variables have no value without a client.
        if let Some(value) = line.value.as_constant()
            && !is_put
            && !value.is_empty()
        {
            put(&line.name, value);
        }
    }
    head.extend_from_slice(b"\r\n");
    HttpRequest {
        head: head.freeze(),
        target: b"GET ".len()..b"GET ".len() + check.uri.len(),
        framing: http_client::BodyFraming::None,
        keep_alive,
        allow_upgrade: false,
    }
}

/// The value that `proxy_set_header` gives a field, if it is a text.
fn field<'a>(proxy: &'a Proxy, name: &[u8]) -> Option<&'a [u8]> {
    let mut lines = proxy.fields.iter();
    let line = lines.find(|line| line.name.eq_ignore_ascii_case(name))?;
    line.value.as_constant().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_fails_and_passes_in_a_row_to_change_what_is_known() {
        let (well, ill) = (Some(Health::Healthy), Some(Health::Unhealthy));
        type Case<'a> = (&'a str, u32, u32, &'a [(bool, Option<Health>)]);
        #[rustfmt::skip]
        let cases: [Case; 4] = [
            ("a first pass is news", 3, 3, &[(true, well), (true, None)]),
            ("one of each", 1, 1, &[(false, ill), (true, well), (false, ill)]),
            ("a pass in between begins anew", 2, 1, &[(false, None), (true, well), (false, None), (false, ill)]),
            ("several passes to come back", 1, 3, &[(false, ill), (true, None), (true, None), (true, well)]),
        ];
        for (name, fails, passes, checks) in cases {
            let mut streak = Streak::new(fails, passes);
            for (passed, reported) in checks {
                assert_eq!(streak.count(*passed), *reported, "{name}");
            }
        }
    }

    #[test]
    fn the_port_of_checks_replaces_that_of_addresses_only() {
        let tcp = Endpoint::Tcp("127.0.0.1:80".parse().unwrap());
        let unix = Endpoint::Unix("/run/a".into());
        assert_eq!(at_port(&tcp, Some(81)).to_string(), "127.0.0.1:81");
        assert_eq!(at_port(&tcp, None), tcp);
        assert_eq!(at_port(&unix, Some(81)), unix);
    }
}
