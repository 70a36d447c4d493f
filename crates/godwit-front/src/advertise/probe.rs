//! Whether HTTP/3 answers at this server's own ports: a real QUIC handshake, at the start and then every [`EVERY`].
//!
//! A listener for every address is tried at the loopback addresses and at those that lead outward, where there are
//! any. All of them have to answer within [`TIMEOUT`]. What lies between this machine and its clients is not seen
//! by this: [`super::health`] judges that by their handshakes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use godwit::http3::{ALPN, ErrorCode};
use godwit::{ClientConfig, Endpoint};

use super::SharedAdvertiser;

const EVERY: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Tries the ports of these listeners once, and says so to the advertiser. `name` is what to ask for (SNI).
pub(crate) async fn once(advertiser: &SharedAdvertiser, listeners: &[SocketAddr], name: &str) {
    within(TIMEOUT, advertiser, listeners, name).await;
}

async fn within(patience: Duration, advertiser: &SharedAdvertiser, listeners: &[SocketAddr], name: &str) {
    for listener in listeners {
        let targets = targets(*listener);
        advertiser.own_addresses(targets.iter().map(SocketAddr::ip));
        let mut passed = !targets.is_empty();
        for target in targets {
            passed &= answers(patience, target, name).await;
        }
        advertiser.on_probe(listener.port(), passed);
    }
}

/// Tries them for ever.
pub(crate) async fn regularly(advertiser: SharedAdvertiser, listeners: Vec<SocketAddr>, name: String) {
    loop {
        tokio::time::sleep(EVERY).await;
        once(&advertiser, &listeners, &name).await;
    }
}

/// Where a listener can be reached from here.
fn targets(listener: SocketAddr) -> Vec<SocketAddr> {
    if !listener.ip().is_unspecified() {
        return vec![listener];
    }
    let mut addresses = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
    addresses.extend(outward(Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()));
    if listener.is_ipv6() && UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        addresses.push(Ipv6Addr::LOCALHOST.into());
        let documentation = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        addresses.extend(outward(Ipv6Addr::UNSPECIFIED.into(), documentation.into()));
    }
    addresses.into_iter().map(|address| SocketAddr::new(address, listener.port())).collect()
}

/// The address from which this machine would send to `remote`, if it has a way there. Nothing is sent.
fn outward(any: IpAddr, remote: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((remote, 443)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_unspecified() && !address.is_loopback()).then_some(address)
}

/// Whether a handshake with `target` succeeds.
async fn answers(patience: Duration, target: SocketAddr, name: &str) -> bool {
    match tokio::time::timeout(patience, shake_hands(target, name)).await {
        Ok(Ok(())) => true,
        Ok(Err(problem)) => {
            tracing::warn!(%target, problem, "HTTP/3 does not answer at this server's own port");
            false
        }
        Err(_) => {
            tracing::warn!(%target, "HTTP/3 does not answer in time at this server's own port");
            false
        }
    }
}

async fn shake_hands(target: SocketAddr, name: &str) -> Result<(), String> {
    // From the address itself: to others the firewall may have other rules.
    let endpoint = Endpoint::client(SocketAddr::new(target.ip(), 0)).map_err(|error| error.to_string())?;
    // It is this very server; what its certificate is worth others decide.
    let config = ClientConfig::danger_accept_any_certificate().alpn([ALPN]).resumption(false);
    let config = config.build().map_err(|error| error.to_string())?;
    let connecting = endpoint.connect(&config, target, name).map_err(|error| error.to_string())?;
    let outcome = connecting.await.map(drop).map_err(|error| error.to_string());
    endpoint.close(ErrorCode::H3_NO_ERROR, b"");
    tokio::spawn(async move { endpoint.wait_idle().await });
    outcome
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use godwit::ServerConfig;
    use tokio::net::UdpSocket as TokioUdp;

    use super::super::{Advertiser, UserKey};
    use super::*;

    fn advertiser(port: u16) -> SharedAdvertiser {
        Arc::new(Advertiser::new([port], UserKey::random()))
    }

    #[test]
    fn a_listener_for_all_is_tried_at_all_of_them() {
        let at = |text: &str| targets(text.parse().unwrap());
        assert_eq!(at("192.0.2.7:443"), ["192.0.2.7:443".parse().unwrap()]);
        let all = at("0.0.0.0:443");
        assert_eq!(all[0], "127.0.0.1:443".parse().unwrap());
        assert!(all.iter().all(|target| target.is_ipv4() && target.port() == 443));
        assert!(at("[::]:443").starts_with(&all[..1]));
    }

    #[tokio::test]
    async fn a_server_that_answers_is_advertised() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let config =
            ServerConfig::from_pem(certificate.as_bytes(), key.as_bytes()).alpn([ALPN]).build().unwrap();
        let server = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            while let Some(incoming) = server.accept().await {
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        connection.closed().await;
                    }
                });
            }
        });
        let advertiser = advertiser(address.port());
        assert!(!advertiser.states()[0].open);
        once(&advertiser, &[address], "localhost").await;
        assert!(advertiser.states()[0].open && advertiser.states()[0].reachable);
    }

    #[tokio::test]
    async fn a_port_that_is_silent_is_not() {
        let silent = TokioUdp::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap();
        let advertiser = advertiser(address.port());
        within(Duration::from_millis(50), &advertiser, &[address], "localhost").await;
        assert!(!advertiser.states()[0].open && !advertiser.states()[0].reachable);
    }
}
