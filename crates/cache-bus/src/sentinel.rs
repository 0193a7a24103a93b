//! Sentinels, which name the engine in force. An engine named by less than a majority of all that are configured
//! does not count.

use tokio::task::JoinSet;

use crate::connection::{BusError, Connection, connect_sentinel};
use crate::settings::{BusSettings, HostPort};

/// The Sentinels of a master.
pub struct Sentinels {
    master: String,
    connected: Vec<Connection>,
    /// The number of Sentinels in the configuration, connected or not.
    count: usize,
}

impl Sentinels {
    /// Connects to those that can be reached.
    pub async fn connect(settings: &BusSettings, master: &str, all: &[HostPort]) -> Sentinels {
        let mut connecting = JoinSet::new();
        for address in all {
            let (settings, address) = (settings.clone(), address.clone());
            connecting.spawn(async move { connect_sentinel(&settings, &address).await });
        }
        let connected = connecting.join_all().await.into_iter();
        Sentinels {
            master: master.to_owned(),
            connected: connected.filter_map(Result::ok).collect(),
            count: all.len(),
        }
    }

    /// The engine that a majority names now.
    pub async fn named(&self) -> Result<HostPort, BusError> {
        let mut asking = JoinSet::new();
        for sentinel in &self.connected {
            let mut calls = sentinel.calls.clone();
            let mut question = redis::cmd("SENTINEL");
            question.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.master);
            asking.spawn(async move {
                let named: Option<(String, u16)> = question.query_async(&mut calls).await.ok()?;
                named.map(|(host, port)| HostPort { host, port })
            });
        }
        let votes: Vec<HostPort> = asking.join_all().await.into_iter().flatten().collect();
        majority(&votes, self.count).cloned().ok_or_else(|| {
            BusError(format!(
                "no majority of the {} Sentinels names an engine for \"{}\"",
                self.count, self.master
            ))
        })
    }
}

/// Returns the address for which more than half of `count` have voted.
fn majority(votes: &[HostPort], count: usize) -> Option<&HostPort> {
    let votes_for = |vote: &HostPort| votes.iter().filter(|it| *it == vote).count();
    votes.iter().find(|vote| votes_for(vote) > count / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_of_all_sentinels_have_to_name_the_same_engine() {
        let at = |port| HostPort {
            host: "a".to_owned(),
            port,
        };
        assert_eq!(majority(&[at(1), at(1)], 3), Some(&at(1)));
        assert_eq!(majority(&[at(1), at(2), at(2)], 3), Some(&at(2)));
        assert_eq!(majority(&[at(1)], 3), None);
        assert_eq!(majority(&[at(1), at(2)], 3), None);
        assert_eq!(majority(&[at(1), at(1)], 4), None);
        assert_eq!(majority(&[], 0), None);
    }
}
