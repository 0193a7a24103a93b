//! A UDP socket, and the connections that begin there.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quinn::{Endpoint, EndpointConfig, Incoming, ServerConfig, TransportConfig, VarInt};
use tokio::sync::watch;
use transport_settings::ListenAddress;

use super::closed_peers::ClosedPeers;
use super::closing;
use super::connection::{self, ListenerLink, QuicPhase};
use super::first_packets::FirstPackets;
use super::handshake::{ConfigChooser, HandshakeConfig, InitialCrypto};
use super::routing::{OwnIds, RoutedSocket};
use super::settings::Settings;
use super::unproven::UnprovenAddresses;
use crate::connections::TrackedConnection;
use crate::facts::{ConnectionFacts, LocalAddress, TlsFacts};
use crate::handshake::HandshakeRequest;
use crate::http3::host_key::HostKey;
use crate::service::{Service, Terms};

/// While this many handshakes are under way, any further client must prove its address, whatever
/// `quic_retry` sets: a flood of forged addresses costs no handshakes.
const HANDSHAKES_BEFORE_RETRY: usize = 256;
/// Connections that wait to be accepted, which they are at once; and the bytes kept of their
/// packets meanwhile.
const WAITING_CONNECTIONS: usize = 1024;
const WAITING_BYTES: u64 = 64 * 1024;
const WAITING_BYTES_TOTAL: u64 = 8 * 1024 * 1024;
/// The buffers of all requests of a connection together, in streams' buffers.
const CONNECTION_BUFFERS: u32 = 16;
/// Bytes of responses that are kept until the client acknowledges them.
const SEND_WINDOW_BYTES: u64 = 1024 * 1024;
/// The control stream, two of QPACK, and some of unknown kinds.
const OTHER_STREAMS: u32 = 8;
/// A handshake that is not over when its listener ends may take this much longer. In an upgrade
/// its client may have gone on with the other process, and sends nothing more here.
const HANDSHAKE_AFTER_LISTENER: Duration = Duration::from_secs(5);

/// A socket that is listened on. Dropped, it takes no further connections; existing ones end after
/// their requests under way.
struct Listening<S: Service, G: Send + 'static, A: Fn(&Arc<dyn TrackedConnection>) -> G> {
    endpoint: Endpoint,
    beginning: Beginning<S, A>,
    /// Dropped when the endpoint ends, which its connections observe.
    life: Option<watch::Sender<()>>,
}

impl<S: Service, G: Send + 'static, A: Fn(&Arc<dyn TrackedConnection>) -> G> Drop
    for Listening<S, G, A>
{
    fn drop(&mut self) {
        // Clients that came before are served, but where the runtime itself ends.
        let mut cx = Context::from_waker(Waker::noop());
        while tokio::runtime::Handle::try_current().is_ok()
            && let Poll::Ready(Some(incoming)) = pin!(self.endpoint.accept()).poll(&mut cx)
        {
            self.beginning.begin(incoming);
        }
        self.life = None;
        self.endpoint.set_server_config(None);
        closing::wait_for(self.endpoint.clone());
    }
}

/// The context that each new connection needs.
struct Beginning<S: Service, A> {
    service: Arc<S>,
    address: ListenAddress,
    local: SocketAddr,
    key: HostKey,
    initial: InitialCrypto,
    unproven: Arc<UnprovenAddresses>,
    peers: Arc<ClosedPeers>,
    handshakes: Arc<AtomicUsize>,
    end: watch::Receiver<()>,
    admit: A,
}

/// Takes connections from the socket of `address` until it is dropped. `admit` is called with
/// each, and its result lives as long.
///
/// # Errors
/// The socket cannot be used.
pub async fn listen<S: Service, G: Send + 'static>(
    service: Arc<S>,
    socket: UdpSocket,
    address: ListenAddress,
    key: HostKey,
    admit: impl Fn(&Arc<dyn TrackedConnection>) -> G,
) -> io::Result<()> {
    let local = socket.local_addr()?;
    let initial = InitialCrypto::new()?;
    let nobody: ConfigChooser = Arc::new(|_| None);
    let config = HandshakeConfig {
        initial: initial.clone(),
        choose: nobody,
    };
    let mut config = ServerConfig::new(Arc::new(config), Arc::new(key.token_key()));
    config
        .max_incoming(WAITING_CONNECTIONS)
        .incoming_buffer_size(WAITING_BYTES)
        .incoming_buffer_size_total(WAITING_BYTES_TOTAL);
    let tokio = quinn::default_runtime().ok_or_else(|| io::Error::other("not in a task"))?;
    let unproven = Arc::new(UnprovenAddresses::default());
    let socket = Arc::new(RoutedSocket::new(tokio.wrap_udp_socket(socket)?, local));
    let peers = Arc::new(ClosedPeers::default());
    let socket = FirstPackets::new(socket, unproven.clone(), peers.clone());
    let mut endpoint = EndpointConfig::new(Arc::new(key.reset_key()));
    endpoint.cid_generator(|| Box::new(OwnIds::of_this_process()));
    let endpoint =
        Endpoint::new_with_abstract_socket(endpoint, Some(config), Arc::new(socket), tokio)?;
    let (life, end) = watch::channel(());
    let listening = Listening {
        endpoint,
        beginning: Beginning {
            service,
            address,
            local,
            key,
            initial,
            unproven,
            peers,
            handshakes: Arc::new(AtomicUsize::new(0)),
            end,
            admit,
        },
        life: Some(life),
    };
    while let Some(incoming) = listening.endpoint.accept().await {
        listening.beginning.begin(incoming);
        // A handshake begins with a signature, and however many clients wait for theirs: between
        // two of them all others have their turn.
        tokio::task::yield_now().await;
    }
    Ok(())
}

impl<S: Service, G: Send + 'static, A: Fn(&Arc<dyn TrackedConnection>) -> G> Beginning<S, A> {
    fn begin(&self, incoming: Incoming) {
        let peer = incoming.remote_address();
        if !incoming.remote_address_validated() && !self.unproven.knows(peer) {
            // The packets sent to it would not be counted.
            return validate_address(incoming);
        }
        let (service, handshakes) = (&self.service, &self.handshakes);
        let Some(opening) = Opening::of(service, incoming, &self.address, self.local, handshakes)
        else {
            return;
        };
        let phase = Arc::new(QuicPhase::new());
        let tracked: Arc<dyn TrackedConnection> = phase.clone();
        let guard = (self.admit)(&tracked);
        let config = opening.config(&self.initial, &self.key);
        let (end, live) = (self.end.clone(), self.peers.enter(peer));
        let mut serving = Box::pin(async move {
            let listener = ListenerLink { phase: &phase, end };
            opening.serve(config, listener).await;
            drop((guard, live));
        });
        // Polled here, so that it is one at a time; a pending one is polled anew by its own task.
        let mut cx = Context::from_waker(Waker::noop());
        if serving.as_mut().poll(&mut cx).is_pending() {
            tokio::spawn(serving);
        }
    }
}

/// A connection that begins.
struct Opening<S: Service> {
    service: Arc<S>,
    incoming: Incoming,
    facts: ConnectionFacts,
    memory: S::Memory,
    terms: Arc<S::Terms>,
    settings: Settings,
    handshake: Handshake,
}

/// Counts a handshake while it lives.
struct Handshake(Arc<AtomicUsize>);

impl Drop for Handshake {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S: Service> Opening<S> {
    /// `None`: it is not to be served, or has to show first that its address is its own.
    fn of(
        service: &Arc<S>,
        incoming: Incoming,
        address: &ListenAddress,
        local: SocketAddr,
        handshakes: &Arc<AtomicUsize>,
    ) -> Option<Opening<S>> {
        let under_way = handshakes.load(Ordering::Relaxed);
        if under_way >= HANDSHAKES_BEFORE_RETRY && !incoming.remote_address_validated() {
            // Before anything is made for it.
            validate_address(incoming);
            return None;
        }
        let ip = incoming.local_ip().unwrap_or(local.ip());
        let local = LocalAddress::Ip(SocketAddr::new(ip, local.port()));
        let peer = incoming.remote_address();
        let mut facts = ConnectionFacts::new(Some(peer), local, clock::now());
        facts.scheme = "https";
        let mut memory = service.memory(address.clone());
        let Some(terms) = service.terms(&facts, &mut memory) else {
            incoming.refuse();
            return None;
        };
        let settings = terms.http3();
        if settings.validates_addresses && !incoming.remote_address_validated() {
            validate_address(incoming);
            return None;
        }
        handshakes.fetch_add(1, Ordering::Relaxed);
        Some(Opening {
            service: service.clone(),
            incoming,
            facts,
            memory,
            terms: Arc::new(terms),
            settings,
            handshake: Handshake(handshakes.clone()),
        })
    }

    fn config(&self, initial: &InitialCrypto, key: &HostKey) -> Arc<ServerConfig> {
        let (service, terms) = (self.service.clone(), self.terms.clone());
        let handshake = HandshakeConfig {
            initial: initial.clone(),
            choose: Arc::new(move |name| {
                // Issuers of certificates come over TCP.
                let for_validation = false;
                service.tls(
                    &terms,
                    HandshakeRequest {
                        name,
                        for_validation,
                    },
                )
            }),
        };
        let mut config = ServerConfig::new(Arc::new(handshake), Arc::new(key.token_key()));
        config.transport_config(Arc::new(transport(&self.settings)));
        Arc::new(config)
    }

    async fn serve(self, config: Arc<ServerConfig>, listener: ListenerLink<'_>) {
        let Opening {
            service,
            incoming,
            mut facts,
            memory,
            terms,
            settings,
            handshake,
        } = self;
        let connecting = async { incoming.accept_with(config)?.await };
        let ends = connection::end_of_listener(service.stopping(), listener.end.clone());
        let connected = tokio::select! {
            connected = connecting => Some(connected),
            () = handshake_deadline(settings.first_request_timeout, ends) => None,
        };
        let failed = match connected {
            Some(Ok(connection)) => {
                drop(handshake);
                let tls = connection.handshake_data();
                let tls = tls.and_then(|facts| facts.downcast::<TlsFacts>().ok());
                if let Some(mut tls) = tls {
                    service.judge_client(&terms, &mut tls);
                    facts.tls = Some(tls);
                }
                drop(terms);
                return connection::serve(service, connection, facts, memory, settings, listener)
                    .await;
            }
            Some(Err(error)) => format!("SSL_do_handshake() failed ({error})"),
            None => "client timed out (110: Connection timed out)".to_owned(),
        };
        service.report_failed_handshake(&terms, &facts, &failed);
    }
}

/// Resolves when a handshake has taken too long, by itself or after the end of its listener.
async fn handshake_deadline(timeout: Duration, listener_ends: impl Future<Output = ()>) {
    let after_listener = async {
        listener_ends.await;
        tokio::time::sleep(HANDSHAKE_AFTER_LISTENER).await;
    };
    // Which of the two it was makes no difference.
    let _ = tokio::time::timeout(timeout, after_listener).await;
}

/// Sends a Retry packet: the client has to show that its address is its own.
fn validate_address(incoming: Incoming) {
    // One that may not be sent a Retry comes with a token that this server did not make.
    if let Err(refused) = incoming.retry() {
        refused.into_incoming().refuse();
    }
}

/// QUIC's own limits.
fn transport(settings: &Settings) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let idle = settings.idle_timeout;
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(settings.max_concurrent_streams))
        .max_concurrent_uni_streams(VarInt::from_u32(OTHER_STREAMS))
        .stream_receive_window(VarInt::from_u32(settings.stream_buffer_bytes))
        .receive_window(VarInt::from_u32(
            settings
                .stream_buffer_bytes
                .saturating_mul(CONNECTION_BUFFERS)
                .min(1 << 30),
        ))
        .send_window(SEND_WINDOW_BYTES)
        .max_idle_timeout(idle.try_into().ok())
        // A request may take its time; who has gone does not answer, and is given up.
        .keep_alive_interval(Some(idle / 2).filter(|pause| *pause > Duration::ZERO))
        .datagram_receive_buffer_size(None)
        .enable_segmentation_offload(settings.segmentation_offload);
    transport
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_handshake_has_its_timeout_and_less_once_its_listener_has_ended() {
        let timeout = Duration::from_secs(60);
        let began = Instant::now();
        handshake_deadline(timeout, std::future::pending()).await;
        assert_eq!(began.elapsed(), timeout);
        let began = Instant::now();
        let ends = tokio::time::sleep(Duration::from_secs(2));
        handshake_deadline(timeout, ends).await;
        assert_eq!(began.elapsed(), Duration::from_secs(7));
        let began = Instant::now();
        handshake_deadline(Duration::from_secs(1), std::future::ready(())).await;
        assert_eq!(began.elapsed(), Duration::from_secs(1));
    }
}
