//! The engine of `cache_nodes` as it is used to get certificates for all nodes: their challenge answers, the turn to
//! ask an issuer, and the certificates, sealed.

use std::sync::OnceLock;
use std::time::Duration;

use cache_bus::SharedSecrets;
use site::CacheNodes;

use crate::acme_answers::AcmeAnswerTexts;
use crate::nodes;
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

    async fn connect(&self) -> Result<SharedSecrets, String> {
        // Read each time: files may be replaced.
        let settings = nodes::settings(&self.terms, &TlsFiles::default());
        let settings = settings.map_err(|error| error.to_string())?;
        let connected = SharedSecrets::connect(&settings).await;
        connected.map_err(|error| error.to_string())
    }

    /// Returns the text under a name; `None` if there is none.
    ///
    /// # Errors
    /// The engine does not answer, for this reason.
    pub async fn read(&self, name: NodeSecret) -> Result<Option<Vec<u8>>, String> {
        let read = self.connect().await?.read(&name.parts()).await;
        read.map_err(|error| error.to_string())
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
    ) -> Result<(), String> {
        let secrets = self.connect().await?;
        let written = secrets.write(&name.parts(), bytes, lifetime).await;
        written.map_err(|error| error.to_string())
    }

    /// Whether it is this process's turn, from now on for `lasts`.
    ///
    /// # Errors
    /// The engine does not answer, for this reason.
    pub async fn take_turn(&self, name: NodeSecret, lasts: Duration) -> Result<bool, String> {
        let token = match self.token.get() {
            Some(token) => *token,
            None => {
                let token = cache_bus::turn_token().map_err(|error| error.to_string())?;
                *self.token.get_or_init(|| token)
            }
        };
        let secrets = self.connect().await?;
        let taken = secrets.take_turn(&name.parts(), token, lasts).await;
        taken.map_err(|error| error.to_string())
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
    ) -> Result<bool, String> {
        let secret = serde_json::to_vec(answers).map_err(|error| error.to_string())?;
        let told = self.connect().await?.tell_all(&secret, within).await;
        told.map_err(|error| error.to_string())
    }
}
