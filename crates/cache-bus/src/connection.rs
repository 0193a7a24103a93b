//! Connections to engines and Sentinels: made within a bound, logged in, over TLS where that is asked for.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, RedisConnectionInfo, RedisError, ServerErrorKind};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::settings::{BusSettings, EngineAddress, HostPort, Login};

/// For each address of a name, and for TLS and the login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// For the answer to a call: half of a lease, so that one that is lost does not cost the next.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason why there is no bus for the moment: a sentence for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BusError(pub String);

impl From<io::Error> for BusError {
    fn from(error: io::Error) -> BusError {
        BusError(error.to_string())
    }
}

impl From<RedisError> for BusError {
    fn from(error: RedisError) -> BusError {
        BusError(match error.kind() {
            ErrorKind::Server(ServerErrorKind::ReadOnly) => {
                "the engine is a replica, which takes no purges: name the one that it follows"
                    .to_owned()
            }
            ErrorKind::Server(ServerErrorKind::NoPerm) => format!(
                "the engine's account lacks a right ({error}): docs/several-machines.md lists those it needs"
            ),
            ErrorKind::Server(ServerErrorKind::BusyLoading) => {
                "the engine is loading its data".to_owned()
            }
            _ if error.is_timeout() => "the engine did not answer in time".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// A connection whose driver ends with it.
pub struct Connection {
    pub calls: MultiplexedConnection,
    driver: tokio::task::JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

type BoxedStream = Pin<Box<dyn ByteStream>>;

trait ByteStream: AsyncRead + AsyncWrite + Send {}
impl<S: AsyncRead + AsyncWrite + Send> ByteStream for S {}

/// Connects to an engine at one address.
pub async fn connect(
    settings: &BusSettings,
    engine: &EngineAddress,
) -> Result<Connection, BusError> {
    let stream: BoxedStream = match engine {
        EngineAddress::Unix(path) => {
            let stream = in_time("connection", UnixStream::connect(path)).await?;
            Box::pin(stream.map_err(|error| BusError(format!("{engine}: {error}")))?)
        }
        EngineAddress::Tcp(address) => stream(settings, address).await?,
        EngineAddress::Sentinel { .. } => {
            return Err(BusError(
                "Sentinels are asked for an address first".to_owned(),
            ));
        }
    };
    log_in(stream, &settings.login).await
}

/// Connects to a Sentinel, which has accounts of its own and no databases.
pub async fn connect_sentinel(
    settings: &BusSettings,
    address: &HostPort,
) -> Result<Connection, BusError> {
    let stream = stream(settings, address).await?;
    log_in(stream, &Login::default()).await
}

async fn stream(settings: &BusSettings, address: &HostPort) -> Result<BoxedStream, BusError> {
    let failed = |error: String| BusError(format!("{address}: {error}"));
    let tcp = outgoing::connect(&address.host, address.port, CONNECT_TIMEOUT).await;
    let tcp = tcp.map_err(|error| failed(error.to_string()))?;
    // A delay here would be one of each purge.
    let _ = tcp.set_nodelay(true);
    let Some(tls) = &settings.tls else {
        return Ok(Box::pin(tcp));
    };
    let name = ServerName::try_from(address.host.clone());
    let name = name.map_err(|_| failed("TLS needs the name of a host".to_owned()))?;
    let connector = TlsConnector::from(tls.clone());
    let tls = in_time("TLS", connector.connect(name, tcp)).await?;
    Ok(Box::pin(tls.map_err(|error| failed(error.to_string()))?))
}

async fn log_in(stream: BoxedStream, login: &Login) -> Result<Connection, BusError> {
    let mut info = RedisConnectionInfo::default()
        .set_db(i64::from(login.database))
        // Another right that the account would need.
        .set_skip_set_lib_name();
    if let Some(user) = &login.user {
        info = info.set_username(user);
    }
    if let Some(password) = &login.password {
        info = info.set_password(password);
    }
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(CALL_TIMEOUT));
    let made = MultiplexedConnection::new_with_config(&info, stream, config);
    let (calls, driver) = in_time("login", made).await??;
    let driver = tokio::spawn(driver);
    Ok(Connection { calls, driver })
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> Result<T, BusError> {
    timeout(CONNECT_TIMEOUT, work)
        .await
        .map_err(|_| BusError(format!("no {what} in time")))
}
