//! The upstream's side of a tunnel (`Upgrade`).

use transport::tunnel::{FarSide, UpgradedConnection};

use upstream_fetch::UpstreamBody;

/// An upstream that has agreed to switch protocols.
pub struct UpgradedUpstream(pub Box<UpstreamBody>);

impl UpgradedConnection for UpgradedUpstream {
    fn open(self: Box<Self>) -> Option<FarSide> {
        let idle = self.0.settings().read_timeout;
        let (stream, received, end) = self.0.into_tunnel()?;
        Some(FarSide {
            stream: Box::new(stream),
            received,
            idle,
            end: Box::new(move |moved| end.note(moved.to_upstream, moved.to_client)),
        })
    }
}
