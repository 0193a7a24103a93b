//! The engine of `cache_nodes` as it is used to get certificates for all nodes: their challenge answers, the turn to
//! ask an issuer, and the certificates, sealed.

use std::sync::OnceLock;
use std::time::Duration;

use cache_bus::SharedSecrets;
use site::CacheNodes;

use crate::acme_answers::AcmeAnswerTexts;
use crate::nodes::{self, NodesError};
use crate::tls_files::TlsFiles;

/// The engine. Questions are rare: each has a connection of its own.
pub struct AcmeNodes {
    terms: CacheNodes,
    token: OnceLock<u64>,
}

/// The name of a secret of the nodes.
pub struct NodeSecret(pub Vec<String>);

impl NodeSecret {
    fn parts(&self) -> Vec<&[u8]> {
        self.0.iter().map(String::as_bytes).collect()
    }
}

impl AcmeNodes {
    pub fn new(terms: CacheNodes) -> AcmeNodes {
        AcmeNodes {
            terms,
            token: OnceLock::new(),
        }
    }

    async fn connect(&self) -> Result<SharedSecrets, NodesError> {
        // Read each time: files may be replaced.
        let settings = nodes::settings(&self.terms, &TlsFiles::default())?;
        Ok(SharedSecrets::connect(&settings).await?)
    }

    /// Returns the text under a name; `None` if there is none.
    ///
    /// # Errors
    /// The engine does not answer, for this reason.
    pub async fn read(&self, name: NodeSecret) -> Result<Option<Vec<u8>>, NodesError> {
        Ok(self.connect().await?.read(&name.parts()).await?)
    }

    /// Writes it for all nodes, for this time.
    ///
    /// # Errors
    /// The engine does not take it, for this reason.
    pub async fn write(
        &self,
        name: NodeSecret,
        bytes: &[u8],
        lifetime: Duration,
    ) -> Result<(), NodesError> {
        let secrets = self.connect().await?;
        Ok(secrets.write(&name.parts(), bytes, lifetime).await?)
    }

    /// Whether it is this process's turn, from now on for `lasts`.
    ///
    /// # Errors
    /// The engine does not answer, for this reason.
    pub async fn take_turn(&self, name: NodeSecret, lasts: Duration) -> Result<bool, NodesError> {
        let token = match self.token.get() {
            Some(token) => *token,
            None => {
                let token = cache_bus::turn_token()?;
                *self.token.get_or_init(|| token)
            }
        };
        let secrets = self.connect().await?;
        Ok(secrets.take_turn(&name.parts(), token, lasts).await?)
    }

    /// Lets all nodes show issuers these answers as well, for a while. Returns whether all do after this time at
    /// most.
    ///
    /// # Errors
    /// The engine does not take it, for this reason.
    pub async fn tell_answers(
        &self,
        answers: &AcmeAnswerTexts,
        within: Duration,
    ) -> Result<bool, NodesError> {
        let secret = serde_json::to_vec(answers)?;
        Ok(self.connect().await?.tell_all(&secret, within).await?)
    }
}
