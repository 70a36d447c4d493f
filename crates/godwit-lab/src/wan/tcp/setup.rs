//! Certificates, servers and clients' settings of the testbed.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use godwit::http3;
use godwit::resumption::MemorySessions;
use godwit::{ClientConfig, ClientConfigBuilder, Endpoint, ServerConfig, TransportConfig, crypto_provider};
use godwit_text::plain_error as plain;
use http::Request;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::NamedGroup;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket};
use tokio_rustls::TlsAcceptor;

use super::contender::{Contender, Dialer, connector};
use super::service::{Origin, Service, Uploads};
use super::settings::{NAME, NETWORKS, Options, QUIC_PORT, TCP_PORTS};
use crate::{Error, namespaces};

/// Certificates in the chain that nobody needs, so that it is as long as those on the web: 3 kB.
const PADDING_CERTIFICATES: usize = 7;
/// Windows of HTTP/2 so large that TCP's own are what counts.
const WINDOW: u32 = 1 << 30;
/// A handshake that takes longer has failed.
const HANDSHAKE: Duration = Duration::from_secs(60);

fn failed(what: &str, error: &dyn Display) -> Error {
    Error::new(format!("cannot prepare {what}: {error}"))
}

/// The server's certificates and key, made for this run.
pub(super) struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    pub(super) fn make() -> Result<Identity, Error> {
        let make = |name: &str| {
            rcgen::generate_simple_self_signed([name.to_owned()])
                .map_err(|error| Error::new(format!("cannot make a certificate: {error}")))
        };
        let own = make(NAME)?;
        let mut chain = vec![own.cert.der().clone()];
        for number in 0..PADDING_CERTIFICATES {
            chain.push(make(&format!("padding-{number}.invalid"))?.cert.der().clone());
        }
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der())
            .map_err(|error| Error::new(format!("cannot use a key: {error}")))?;
        Ok(Identity { chain, key })
    }

    /// Full handshakes only, and whole certificates.
    fn server_tls(&self) -> Result<rustls::ServerConfig, Error> {
        let mut tls = rustls::ServerConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(self.chain.clone(), self.key.clone_key())
            })
            .map_err(|error| failed("TLS", &error))?;
        tls.send_tls13_tickets = 0;
        tls.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        tls.cert_compressors = Vec::new();
        Ok(tls)
    }

    /// What a client of QUIC believes, and offers.
    fn quic_client(&self, options: &Options) -> Result<ClientConfigBuilder, Error> {
        let mut provider = crypto_provider().as_ref().clone();
        provider.kx_groups.retain(|group| options.post_quantum || group.name() == NamedGroup::X25519);
        let provider = Arc::new(provider);
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| failed("TLS", &error))?;
        let tls = tls.with_root_certificates(self.roots()?).with_no_client_auth();
        Ok(ClientConfig::from_rustls(tls).certificate_compression(false))
    }

    fn roots(&self) -> Result<rustls::RootCertStore, Error> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in self.chain.iter().take(1) {
            roots.add(certificate.clone()).map_err(|error| failed("TLS", &error))?;
        }
        Ok(roots)
    }
}

fn transport(options: &Options) -> TransportConfig {
    let mut transport = options.transport.clone();
    transport.handshake_timeout = HANDSHAKE;
    transport
}

/// Serves from a thread of its own, which stays in this thread's namespace. When this returns, everything listens.
pub(super) fn serve(
    identity: &Identity,
    options: &Options,
    uploads: Uploads,
    origin: SocketAddr,
) -> Result<(), Error> {
    let mut tls = identity.server_tls()?;
    let quic = ServerConfig::from_rustls(tls.clone())
        .alpn([http3::ALPN])
        .certificate_compression(false)
        .transport(transport(options))
        .build()
        .map_err(|error| failed("the server", &error))?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let service = Service { uploads, origin: Some(Origin::new(origin)) };
    on_a_thread("server", move || {
        for number in 0..NETWORKS {
            let address = SocketAddr::from((namespaces::SERVER, QUIC_PORT + number));
            let endpoint = Endpoint::server(quic.clone(), address)?;
            let service = service.clone();
            tokio::spawn(async move {
                let answer = move |request: Request<http3::Body>| service.clone().answer(request);
                http3::Server::new().serve(&endpoint, tower::service_fn(answer)).await;
            });
        }
        for (control, port) in TCP_PORTS {
            let socket = TcpSocket::new_v4()?;
            SockRef::from(&socket).set_tcp_congestion(control.as_bytes())?;
            socket.bind((namespaces::SERVER, port).into())?;
            tokio::spawn(accept(socket.listen(4096)?, Some(acceptor.clone()), service.clone()));
        }
        Ok(())
    })
}

/// Serves as the origin behind a server, from a thread of its own.
pub(super) fn serve_origin(address: SocketAddr) -> Result<(), Error> {
    on_a_thread("origin", move || {
        let socket = TcpSocket::new_v4()?;
        socket.bind(address)?;
        tokio::spawn(accept(socket.listen(4096)?, None, Service::default()));
        Ok(())
    })
}

/// What else the machine does is not to be measured: it would hold up HTTP/3, which is in this process, more than TCP, which
/// is in the kernel. Where that is not permitted, the machine should be idle.
pub(super) fn hurry() {
    let _ = godwit_os::urgency::run_before_others(1);
}

/// Runs what `begin` spawns, on a thread, until the process ends.
fn on_a_thread(
    name: &'static str,
    begin: impl FnOnce() -> std::io::Result<()> + Send + 'static,
) -> Result<(), Error> {
    let (ready, begun) = std::sync::mpsc::channel();
    let body = move || {
        hurry();
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let outcome = begin();
            let works = outcome.is_ok();
            let _ = ready.send(outcome);
            if works {
                std::future::pending::<()>().await;
            }
        });
    };
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    spawned.map_err(|error| failed("a thread", &plain(&error)))?;
    let begun = begun.recv().map_err(|error| failed("a server", &error))?;
    begun.map_err(|error| failed("a server", &plain(&error)))
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, service: Service) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, service) = (tls.clone(), service.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            match tls {
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve_http2(TokioIo::new(stream), service).await;
                    }
                }
                None => serve_http2(TokioIo::new(stream), service).await,
            }
        });
    }
}

async fn serve_http2(stream: impl hyper::rt::Read + hyper::rt::Write + Unpin + 'static, service: Service) {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
    builder.max_concurrent_streams(10_000);
    let answer = service_fn(move |request| {
        let service = service.clone();
        async move { service.answer(request).await }
    });
    let _ = builder.serve_connection(stream, answer).await;
}

/// By contender and network.
type Table = BTreeMap<(Contender, u16), Dialer>;

/// What contenders connect with.
#[derive(Debug)]
pub(super) struct Dialers(Table);

impl Dialers {
    pub(super) fn new(identity: &Identity, options: &Options) -> Result<Dialers, Error> {
        let mut table = Table::new();
        for (contender, (control, port)) in
            [Contender::TcpCubic, Contender::TcpBbr].into_iter().zip(TCP_PORTS)
        {
            let mut tls = rustls::ClientConfig::builder_with_provider(crypto_provider())
                .with_protocol_versions(&[&rustls::version::TLS13])
                .map_err(|error| failed("TLS", &error))?
                .with_root_certificates(identity.roots()?)
                .with_no_client_auth();
            tls.alpn_protocols = vec![b"h2".to_vec()];
            tls.resumption = rustls::client::Resumption::disabled();
            let tls = connector(tls);
            for network in 0..NETWORKS {
                let server = SocketAddr::from((namespaces::SERVER, port));
                table.insert((contender, network), Dialer::Tcp { tls: tls.clone(), control, server });
            }
        }
        for network in 0..NETWORKS {
            for contender in [Contender::Http3, Contender::Http3Known] {
                let config = identity.quic_client(options)?.alpn([http3::ALPN]).transport(transport(options));
                let config = match contender {
                    Contender::Http3Known => config.sessions(Arc::new(MemorySessions::default())),
                    _ => config.resumption(false),
                };
                let config = config.build().map_err(|error| failed("the clients", &error))?;
                let server = SocketAddr::from((namespaces::SERVER, QUIC_PORT + network));
                table.insert((contender, network), Dialer::Quic { config, server });
            }
        }
        Ok(Dialers(table))
    }

    pub(super) fn of(&self, contender: Contender, network: u16) -> Option<Dialer> {
        self.0.get(&(contender, network)).cloned()
    }
}
