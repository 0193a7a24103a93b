//! Certificates that several machines have in common (`cache_nodes` with a key file): one of them asks the issuer, all
//! give the issuer the challenge answers, and all get the certificate. The engine keeps it sealed.

use std::time::{Duration, SystemTime};

use acme::{CertificateRequest, ChallengeAnswer, Machines, MachinesAnswer};
use live_state::acme_nodes::{AcmeNodes, NodeSecret};
use site::CacheNodes;

use crate::processes::certificates::answer_texts;

/// Until all nodes show an answer. A node that takes no part has ended, or has no lease.
const PRESENTED_WITHIN: Duration = Duration::from_secs(3);

/// The certificates of one issuer.
pub struct NodeCertificates {
    nodes: AcmeNodes,
    issuer: String,
}

impl NodeCertificates {
    pub fn new(nodes: CacheNodes, issuer: &str) -> NodeCertificates {
        NodeCertificates {
            nodes: AcmeNodes::new(nodes),
            issuer: issuer.to_owned(),
        }
    }

    /// All nodes give this answer for a while.
    ///
    /// # Errors
    /// One of them does not present it, or may not.
    pub async fn present(&self, answer: ChallengeAnswer) -> Result<(), String> {
        let texts = answer_texts([answer]);
        match self.nodes.tell_answers(&texts, PRESENTED_WITHIN).await {
            Ok(true) => Ok(()),
            Ok(false) => Err("not all nodes show an issuer yet what it wants to see".to_owned()),
            Err(message) => Err(format!(
                "other nodes cannot be told what an issuer wants to see: {message}"
            )),
        }
    }

    fn secret(&self, request: &CertificateRequest) -> NodeSecret {
        let mut name = vec![self.issuer.clone(), format!("{:?}", request.key)];
        name.extend_from_slice(&request.names);
        NodeSecret(name)
    }
}

impl Machines for NodeCertificates {
    fn certificate<'a>(
        &'a self,
        request: &'a CertificateRequest,
    ) -> MachinesAnswer<'a, Option<Vec<u8>>> {
        Box::pin(async move { Ok(self.nodes.read(self.secret(request)).await?) })
    }

    fn turn<'a>(
        &'a self,
        request: &'a CertificateRequest,
        lasts: Duration,
    ) -> MachinesAnswer<'a, bool> {
        Box::pin(async move { Ok(self.nodes.take_turn(self.secret(request), lasts).await?) })
    }

    fn give<'a>(
        &'a self,
        request: &'a CertificateRequest,
        pem: &'a [u8],
        not_after: SystemTime,
    ) -> MachinesAnswer<'a, ()> {
        let lifetime = not_after
            .duration_since(SystemTime::now())
            .unwrap_or_default();
        Box::pin(async move {
            Ok(self
                .nodes
                .write(self.secret(request), pem, lifetime)
                .await?)
        })
    }
}
