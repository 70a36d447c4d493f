//! QUIC to one address: whether datagrams come through at all, how fast, and how large.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use godwit::http3::{self, Client};
use godwit::{ClientConfig, Endpoint, TransportConfig};
use http::header::USER_AGENT;
use http::{Request, StatusCode};
use http_body_util::Empty;
use rustls::pki_types::CertificateDer;
use tokio::time::timeout;

use super::LONGEST;
use super::site::Site;
use godwit_text::instant_now;

/// How long the search for the path's MTU is given: a few round trips.
const MTU_SEARCH: Duration = Duration::from_secs(1);

/// What QUIC to an address gave.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) handshake: Duration,
    pub(super) rtt: Duration,
    /// Bytes of UDP payload that came through.
    pub(super) mtu: u16,
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) status: StatusCode,
}

/// Why HTTP/3 did not come about.
#[derive(Debug)]
pub(super) enum Problem {
    /// Not one datagram came back.
    Silent,
    /// Somebody answers, but it did not go well.
    Failed(String),
    /// There is no way to addresses of the family.
    NoRoute(String),
}

/// Makes a connection and one request. Certificates are judged by the caller.
pub(super) async fn reach(site: &Site, address: SocketAddr) -> Result<Reached, Problem> {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let no_route = |error: io::Error| Problem::NoRoute(godwit_text::plain_error(&error));
    let endpoint = Endpoint::client(SocketAddr::new(any, 0)).map_err(no_route)?;
    let reached = over(&endpoint, site, address).await;
    let silent = endpoint.stats().datagrams_received() == 0;
    endpoint.close(http3::ErrorCode::H3_NO_ERROR, b"");
    let _ = timeout(Duration::from_millis(50), endpoint.wait_idle()).await;
    reached.map_err(|problem| if silent { Problem::Silent } else { Problem::Failed(problem) })
}

async fn over(endpoint: &Endpoint, site: &Site, address: SocketAddr) -> Result<Reached, String> {
    let mut transport = TransportConfig::default();
    transport.handshake_timeout = LONGEST;
    let config = ClientConfig::danger_accept_any_certificate().alpn([http3::ALPN]).transport(transport);
    let config = config.build().map_err(|error| error.to_string())?;
    let begun = instant_now();
    let connecting = endpoint.connect(&config, address, &site.host).map_err(|error| error.to_string())?;
    let connection = connecting.await.map_err(|error| error.to_string())?;
    let handshake = begun.elapsed();
    let client = Client::on_connection(connection.clone(), &site.host, http3::Config::default());
    let client = client.map_err(|error| error.to_string())?;
    let request = Request::get(site.url()).header(USER_AGENT, super::site::USER_AGENT_NAME);
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
    let response = match timeout(LONGEST, client.send(request)).await {
        Ok(response) => response.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("no response within {} s", LONGEST.as_secs())),
    };
    let status = response.status();
    tokio::time::sleep(MTU_SEARCH).await;
    let stats = connection.stats();
    let chain = connection.peer_certificates();
    Ok(Reached { handshake, rtt: stats.min_rtt, mtu: stats.mtu, chain, status })
}
