//! What the tests have in common.

use godwit::{
    Backend, ClientConfig, ClientConfigBuilder, Connection, ConnectionError, Endpoint, EndpointBuilder,
    ServerConfig, ServerConfigBuilder, SocketConfig, TransportConfig,
};
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::LazyLock;
use std::time::Duration;

/// A certificate for localhost, issued by itself, with its key; both in PEM format.
pub(crate) static CERTIFICATE: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes())
});

/// How a test reaches its peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Net {
    pub(crate) backend: Backend,
    pub(crate) v6: bool,
}

impl Net {
    pub(crate) const NATIVE_V4: Net = Net { backend: Backend::Native, v6: false };
    pub(crate) const NATIVE_V6: Net = Net { backend: Backend::Native, v6: true };
    pub(crate) const PORTABLE_V4: Net = Net { backend: Backend::Portable, v6: false };
    pub(crate) const PORTABLE_V6: Net = Net { backend: Backend::Portable, v6: true };

    /// Any free port of the loopback interface.
    pub(crate) fn any_port(self) -> SocketAddr {
        let ip: IpAddr = if self.v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        SocketAddr::new(ip, 0)
    }

    /// Settings of sockets.
    pub(crate) fn socket(self) -> SocketConfig {
        let mut socket = SocketConfig::default();
        socket.backend = self.backend;
        socket
    }

    pub(crate) fn builder(self) -> EndpointBuilder {
        Endpoint::builder().socket(self.socket()).bind(self.any_port())
    }

    /// Of an endpoint that asks what the network says of what did not arrive.
    #[cfg(target_os = "linux")]
    pub(crate) fn reporting(self) -> EndpointBuilder {
        let mut socket = self.socket();
        socket.report_unreachable = true;
        self.builder().socket(socket)
    }

    pub(crate) fn server(self) -> Endpoint {
        self.server_with(server_config())
    }

    pub(crate) fn server_with(self, config: ServerConfig) -> Endpoint {
        self.builder().server(config).build().unwrap()
    }

    pub(crate) fn client(self) -> Endpoint {
        self.builder().build().unwrap()
    }

    /// A client and a server that are connected.
    pub(crate) async fn pair(self) -> Pair {
        self.pair_with(TransportConfig::default(), TransportConfig::default()).await
    }

    pub(crate) async fn pair_with(self, client: TransportConfig, server: TransportConfig) -> Pair {
        self.try_pair(client, server).await.unwrap()
    }

    pub(crate) async fn try_pair(
        self,
        client: TransportConfig,
        server: TransportConfig,
    ) -> Result<Pair, ConnectionError> {
        let server_endpoint = self.server_with(server_builder().transport(server).build().unwrap());
        let client_endpoint = self.client();
        let config = client_builder().transport(client).build().unwrap();
        let addr = server_endpoint.local_addr().unwrap();
        let connecting = client_endpoint.connect(&config, addr, "localhost").unwrap();
        let accepting = async { server_endpoint.accept().await.unwrap().await };
        let (client, server) = tokio::join!(connecting, accepting);
        Ok(Pair { client: client?, server: server?, client_endpoint, server_endpoint })
    }
}

pub(crate) struct Pair {
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) client_endpoint: Endpoint,
    pub(crate) server_endpoint: Endpoint,
}

pub(crate) fn server_builder() -> ServerConfigBuilder {
    let (certificate, key) = &*CERTIFICATE;
    ServerConfig::from_pem(certificate, key).alpn(["test"])
}

pub(crate) fn server_config() -> ServerConfig {
    server_builder().build().unwrap()
}

pub(crate) fn client_builder() -> ClientConfigBuilder {
    ClientConfig::with_roots_pem(&CERTIFICATE.0).alpn(["test"])
}

pub(crate) fn client_config() -> ClientConfig {
    client_builder().build().unwrap()
}

/// Settings with which an unanswered handshake ends soon.
pub(crate) fn impatient() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.handshake_timeout = Duration::from_millis(150);
    transport
}

/// Runs a test on a runtime: one thread for IPv4, two workers for IPv6.
pub(crate) fn run<F: Future<Output = ()>>(net: Net, test: impl FnOnce(Net) -> F) {
    if net.v6 && UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return crate::alone::cannot_be_tested("this system has no IPv6");
    }
    let mut builder = if net.v6 {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    builder.worker_threads(2).enable_all().build().unwrap().block_on(test(net));
}

/// Sends everything back, stream by stream, until the connection is over.
pub(crate) async fn echo(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::spawn(async move {
            while let Some(chunk) = recv.read_chunk(usize::MAX).await? {
                send.write_chunk(chunk).await?;
            }
            send.finish()?;
            Ok::<_, std::io::Error>(())
        });
    }
}

/// Bytes that are easy to make and unlikely to come about by accident.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(step).collect()
}

/// Runs each test over both datapaths, IPv4 and IPv6.
macro_rules! on_every_net {
    ($($test:ident),* $(,)?) => {$(
        mod $test {
            use crate::support::{Net, run};

            #[test]
            fn native_v4() {
                run(Net::NATIVE_V4, super::$test);
            }

            #[test]
            fn native_v6() {
                run(Net::NATIVE_V6, super::$test);
            }

            #[test]
            fn portable_v4() {
                run(Net::PORTABLE_V4, super::$test);
            }

            #[test]
            fn portable_v6() {
                run(Net::PORTABLE_V6, super::$test);
            }
        }
    )*};
}
pub(crate) use on_every_net;
