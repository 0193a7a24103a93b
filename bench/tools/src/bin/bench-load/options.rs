//! The command line: one port, one target, then options with one value each.

use bench_tools::targets::{Keys, Request};
use std::time::Duration;

const USAGE: &str = "usage: bench-load PORT TARGET [--connections N] [--idle N] [--seconds S] [--count N] \
    [--rate PER_SECOND] [--per-connection N] [--keys zipf:PAGES | uniform:PAGES | sequence:FIRST] [--method M] \
    [--field \"Name: value\"]... [--status N] [--bytes N] [--wait S]";

/// The options of the measurement: the requests, and the expected answers.
pub struct Options {
    pub port: u16,
    /// `{}` in it stands for the page number.
    pub target: String,
    pub method: String,
    pub fields: Vec<String>,
    pub keys: KeyOrder,
    pub connections: usize,
    /// Connections that ask once and are silent from then on.
    pub idle: usize,
    /// When to stop asking, and after how many requests.
    pub lasts: Duration,
    pub count: u64,
    /// Requests per second, evenly spaced; none: as fast as answers come.
    pub rate: Option<f64>,
    /// Requests after which the server is asked to close a connection.
    pub per_connection: Option<u32>,
    pub status: u16,
    pub body_bytes: Option<u64>,
    /// How long answers that are under way at the end are waited for.
    pub wait: Duration,
}

/// Which page is next.
#[derive(Clone, Copy)]
pub enum KeyOrder {
    Same,
    Sequence(u64),
    Zipf(usize),
    Uniform(u64),
}

impl Options {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let (Some(port), Some(target)) = (words.next(), words.next()) else {
            return Err(USAGE.to_owned());
        };
        let mut options = Options {
            port: number("PORT", &port)?,
            target,
            method: "GET".to_owned(),
            fields: Vec::new(),
            keys: KeyOrder::Same,
            connections: 50,
            idle: 0,
            lasts: Duration::from_secs(1),
            count: u64::MAX,
            rate: None,
            per_connection: None,
            status: 200,
            body_bytes: None,
            wait: Duration::from_secs(10),
        };
        while let Some(name) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| format!("{name} needs a value\n{USAGE}"))?;
            options.set(&name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "--connections" => self.connections = number::<usize>(name, &value)?.max(1),
            "--idle" => self.idle = number(name, &value)?,
            "--seconds" => self.lasts = seconds(name, &value)?,
            "--wait" => self.wait = seconds(name, &value)?,
            "--count" => self.count = number(name, &value)?,
            "--rate" => self.rate = Some(number(name, &value)?),
            "--per-connection" => self.per_connection = Some(number(name, &value)?),
            "--keys" => self.keys = key_order(&value)?,
            "--method" => self.method = value,
            "--field" => self.fields.push(value),
            "--status" => self.status = number(name, &value)?,
            "--bytes" => self.body_bytes = Some(number(name, &value)?),
            _ => return Err(format!("unknown option {name}\n{USAGE}")),
        }
        Ok(())
    }

    pub fn request(&self) -> Request {
        Request::new(&self.method, &self.target, &self.fields)
    }

    pub fn page_keys(&self) -> Keys {
        match self.keys {
            KeyOrder::Same => Keys::Same,
            KeyOrder::Sequence(first) => Keys::Sequence(first),
            KeyOrder::Zipf(pages) => Keys::zipf(pages),
            KeyOrder::Uniform(pages) => Keys::uniform(pages),
        }
    }
}

fn key_order(value: &str) -> Result<KeyOrder, String> {
    match value.split_once(':') {
        Some(("zipf", pages)) => Ok(KeyOrder::Zipf(number("--keys zipf", pages)?)),
        Some(("uniform", pages)) => Ok(KeyOrder::Uniform(number("--keys uniform", pages)?)),
        Some(("sequence", first)) => Ok(KeyOrder::Sequence(number("--keys sequence", first)?)),
        _ => Err(format!(
            "--keys {value}: zipf:PAGES, uniform:PAGES or sequence:FIRST\n{USAGE}"
        )),
    }
}

fn seconds(name: &str, value: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number(name, value)?).map_err(|error| format!("{name}: {error}"))
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{name}: \"{value}\" is not such a number\n{USAGE}"))
}
