//! `mayfly nodes`: the servers that share purges, as their engine knows them, and how one that hangs is expelled.

use std::fmt::Write as _;
use std::time::Duration;

use live_state::nodes::{self, KnownNode, KnownNodes};
use serde::Serialize;
use site::CacheNodes;

use crate::cli::{Flags, NodesArgs};
use crate::config::{self, Invocation};
use command_line::{Exit, complain, print, printable};

/// Between two looks at the nodes: each renews its lease twice meanwhile.
const WATCHED_FOR: Duration = Duration::from_millis(1100);

/// A node as it is shown.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct NodeReport {
    id: u64,
    name: String,
    /// Purges that it has not applied.
    behind: u64,
    state: NodeState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum NodeState {
    Serves,
    /// It renews its lease, and has applied nothing between two looks although there was something.
    Hangs,
    /// It did not renew its lease.
    Silent,
    Expelled,
}

impl NodeState {
    fn text(self) -> &'static str {
        match self {
            NodeState::Serves => "holds a lease",
            NodeState::Hangs => "holds a lease and applies no purges: they wait for it",
            NodeState::Silent => "does not renew its lease: the next purge removes it",
            NodeState::Expelled => "expelled: restart it",
        }
    }
}

pub fn run(args: &NodesArgs) -> Exit {
    let flags = Flags::of_configuration(args.conf.as_ref(), args.prefix_folder.as_ref());
    let site = match config::judge(Invocation::from_flags(&flags).read()) {
        Ok(accepted) => accepted.site,
        Err(rejected) => {
            config::show(&rejected.diagnostics, &rejected.sources);
            return Exit::Refused;
        }
    };
    let Some(terms) = &site.http.cache_nodes else {
        let message =
            "the configuration has no cache_nodes: this server shares purges with no other";
        return complain(Exit::Refused, message);
    };
    let text = match &args.expel {
        Some(node) => expel(terms, node),
        None => watch(terms).map(|reports| match args.json {
            // Texts and numbers are always JSON.
            true => serde_json::to_string_pretty(&reports).unwrap_or_default() + "\n",
            false => table(&reports),
        }),
    };
    match text {
        Ok(text) => print(&text),
        Err(why) => complain(Exit::Refused, &why),
    }
}

/// Looks at the nodes twice.
fn watch(terms: &CacheNodes) -> Result<Vec<NodeReport>, String> {
    nodes::administer(terms, async |engine| {
        let before = engine.nodes().await?;
        tokio::time::sleep(WATCHED_FOR).await;
        Ok(reports(&before, &engine.nodes().await?))
    })
    .map_err(|error| error.to_string())
}

fn reports(before: &KnownNodes, now: &KnownNodes) -> Vec<NodeReport> {
    let report = |node: &KnownNode| {
        let earlier = before.nodes.iter().find(|it| it.instance == node.instance);
        let has_renewed = earlier.is_none_or(|earlier| earlier.beat < node.beat);
        let stands_still = earlier
            .is_some_and(|earlier| node.position < before.tip && earlier.position == node.position);
        NodeReport {
            id: node.instance,
            name: node.name.chars().map(printable).collect(),
            behind: now.tip.saturating_sub(node.position),
            state: match node.is_expelled {
                true => NodeState::Expelled,
                false if !has_renewed => NodeState::Silent,
                false if stands_still => NodeState::Hangs,
                false => NodeState::Serves,
            },
        }
    };
    now.nodes.iter().map(report).collect()
}

fn table(reports: &[NodeReport]) -> String {
    let width = reports.iter().map(|it| it.name.chars().count()).max();
    let width = width.unwrap_or_default().max("NODE".len());
    let mut text = format!("{:<width$}  {:>20}  {:>7}  STATE\n", "NODE", "ID", "BEHIND");
    for report in reports {
        let (name, state) = (&report.name, report.state.text());
        let _ = writeln!(
            text,
            "{name:<width$}  {:>20}  {:>7}  {state}",
            report.id, report.behind
        );
    }
    text
}

fn expel(terms: &CacheNodes, wanted: &str) -> Result<String, String> {
    nodes::administer(terms, async |engine| {
        let known = engine.nodes().await?;
        let node = match the_one(&known, wanted) {
            Ok(node) => node,
            Err(why) => return Ok(Err(why)),
        };
        Ok(match engine.expel(node.instance).await? {
            true => Ok(format!(
                "Expelled {}. Purges wait for the rest of its lease, two seconds at most.\n",
                node.name
            )),
            false => Err(format!("{} has left meanwhile", node.name)),
        })
    })
    .map_err(|error| error.to_string())?
}

/// The node that is meant.
fn the_one<'a>(known: &'a KnownNodes, wanted: &str) -> Result<&'a KnownNode, String> {
    let is_meant = |node: &&KnownNode| node.name == wanted || node.instance.to_string() == wanted;
    let meant: Vec<&KnownNode> = known.nodes.iter().filter(is_meant).collect();
    let names = |nodes: &mut dyn Iterator<Item = String>| nodes.collect::<Vec<_>>().join("; ");
    match &meant[..] {
        [node] => Ok(node),
        [] => {
            let all = names(&mut known.nodes.iter().map(|node| node.name.clone()));
            Err(format!(
                "there is no node \"{wanted}\"; the engine knows: {all}"
            ))
        }
        several => {
            let ids = names(&mut several.iter().map(|node| node.instance.to_string()));
            Err(format!(
                "several nodes have the name \"{wanted}\"; write one of their ids: {ids}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(instance: u64, beat: u64, position: u64) -> KnownNode {
        KnownNode {
            instance,
            beat,
            position,
            name: format!("web{}", instance / 10),
            is_expelled: instance == 40,
        }
    }

    fn known(tip: u64, nodes: impl IntoIterator<Item = KnownNode>) -> KnownNodes {
        KnownNodes {
            tip,
            nodes: nodes.into_iter().collect(),
        }
    }

    #[test]
    fn a_node_hangs_that_renews_and_applies_nothing_although_there_is_something() {
        let before = known(
            5,
            [
                node(10, 1, 5),
                node(20, 1, 3),
                node(30, 1, 3),
                node(40, 1, 3),
            ],
        );
        let all = [
            node(10, 3, 5),
            node(20, 3, 3),
            node(30, 1, 3),
            node(40, 1, 3),
            node(50, 1, 7),
        ];
        let states = |now: &KnownNodes| -> Vec<(u64, NodeState)> {
            let reports = reports(&before, now);
            reports.iter().map(|it| (it.behind, it.state)).collect()
        };
        assert_eq!(
            states(&known(7, all)),
            [
                (2, NodeState::Serves),
                (4, NodeState::Hangs),
                (4, NodeState::Silent),
                (4, NodeState::Expelled),
                (0, NodeState::Serves),
            ]
        );
    }

    #[test]
    fn one_node_is_meant_by_its_name_or_its_number() {
        let known = known(1, [node(10, 1, 1), node(20, 1, 1), node(21, 1, 1)]);
        assert_eq!(the_one(&known, "web1"), Ok(&known.nodes[0]));
        assert_eq!(the_one(&known, "21"), Ok(&known.nodes[2]));
        let unknown = the_one(&known, "web9").unwrap_err();
        assert!(unknown.contains("web1; web2; web2"), "{unknown}");
        let several = the_one(&known, "web2").unwrap_err();
        assert!(several.contains("20; 21"), "{several}");
    }
}
