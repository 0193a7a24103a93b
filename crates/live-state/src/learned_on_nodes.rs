//! Pages that are learned on several machines (`cache_learn on` and `cache_nodes`): pools report the writes of their
//! programs to the nodes, by the log of purges.

use std::sync::Arc;
use std::time::Duration;

use cache_bus::Bus;
use learning::{Learning, NodesKnow, OtherNodes};

use crate::node_writes::merged;
use crate::nodes::Nodes;

/// Between two looks whether this node has begun.
const LOOK_EACH: Duration = Duration::from_millis(20);

/// Begins to exchange writes between this node and the others, or, without nodes, ends that.
pub fn share(nodes: Option<&Arc<Nodes>>, learning: &Arc<Learning>) {
    if let Some(nodes) = nodes {
        nodes.writes().watch(learning);
    }
    let others = nodes.map(|nodes| Arc::new(Others(nodes.clone())) as Arc<dyn OtherNodes>);
    learning.tell(others.as_ref());
}

/// The other nodes, in the form that pools know.
struct Others(Arc<Nodes>);

impl OtherNodes for Others {
    fn tell(&self, entry: Vec<u8>) -> NodesKnow {
        let nodes = self.0.clone();
        let entry = [&nodes.writes().head()[..], &entry].concat();
        let publish = |bus: &Bus, entry| bus.publish_merged(entry, merged);
        // At once where that is possible, whether it is waited for or not.
        let published = match nodes.bus.get() {
            Some(bus) => Ok(publish(bus, entry)),
            None => Err(entry),
        };
        Box::pin(async move {
            let number = match published {
                Ok(number) => number,
                Err(entry) => publish(begun(&nodes).await, entry),
            };
            begun(&nodes).await.confirmed(number).await;
        })
    }
}

async fn begun(nodes: &Nodes) -> &Bus {
    loop {
        match nodes.bus.get() {
            Some(bus) => return bus,
            None => tokio::time::sleep(LOOK_EACH).await,
        }
    }
}
