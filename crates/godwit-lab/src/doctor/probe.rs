//! What one address of a site answers, over TCP and over QUIC: each is asked for the page once, by itself, and whatever
//! certificate it shows is taken. Others judge.

use std::net::SocketAddr;
use std::time::Duration;

use godwit_client::{Client, Error, Response, TriedOutcome, Versions};
use http::header::{ALT_SVC, DATE, SERVER, USER_AGENT};
use http::{HeaderValue, StatusCode, Version};
use rustls::ProtocolVersion;
use rustls::pki_types::CertificateDer;

use super::LONGEST;
use super::site::{Site, USER_AGENT_NAME};

/// How long the search for the path's MTU is given: a few round trips.
const MTU_SEARCH: Duration = Duration::from_secs(1);

/// What a server says of itself over TCP.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) version: Option<ProtocolVersion>,
    pub(super) protocol: Version,
    /// TCP's handshake: about one round trip.
    pub(super) connected: Duration,
    pub(super) status: StatusCode,
    pub(super) alt_svc: Vec<String>,
    /// How it names itself.
    pub(super) server: Option<String>,
    pub(super) date: Option<String>,
}

/// What QUIC to an address gave.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) handshake: Duration,
    pub(super) rtt: Duration,
    /// Of QUIC.
    pub(super) version: u32,
    /// Bytes of UDP payload that came through.
    pub(super) mtu: u16,
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) status: StatusCode,
    /// How it names itself.
    pub(super) server: Option<String>,
}

/// Why there is no answer over TCP.
#[derive(Debug)]
pub(super) struct TcpProblem {
    /// What came of the address, if it came to that.
    pub(super) outcome: Option<TriedOutcome>,
    pub(super) text: String,
}

/// Why HTTP/3 did not come about.
#[derive(Debug)]
pub(super) enum Problem {
    /// Not one datagram came back.
    Silent,
    /// The machine says that nobody listens on the port.
    Refused,
    /// Somebody answers, but it did not go well.
    Failed(String),
    /// There is no way to addresses of the family.
    NoRoute(String),
}

/// Asks one address over TCP.
///
/// # Errors
/// What did not work.
pub(super) async fn over_tcp(site: &Site, address: SocketAddr) -> Result<Answer, TcpProblem> {
    let client = client(site, address, Versions::Tcp).map_err(|text| TcpProblem { outcome: None, text })?;
    let response = ask(&client, site).await.map_err(|error| TcpProblem {
        outcome: error.tried().first().map(|tried| tried.outcome),
        text: error.text().to_owned(),
    })?;
    let (route, headers) = (response.route(), response.headers());
    Ok(Answer {
        chain: route.certificates(),
        version: route.tls_version(),
        protocol: response.version(),
        connected: route.rtt(),
        status: response.status(),
        alt_svc: headers.get_all(ALT_SVC).iter().map(text).collect(),
        server: headers.get(SERVER).map(text),
        date: headers.get(DATE).map(text),
    })
}

/// Asks one address over QUIC, and looks how large its datagrams may be.
///
/// # Errors
/// Why there is no answer.
pub(super) async fn over_quic(site: &Site, address: SocketAddr) -> Result<Reached, Problem> {
    let client = client(site, address, Versions::Http3).map_err(Problem::Failed)?;
    let response = ask(&client, site).await.map_err(|error| problem(&error))?;
    let route = response.route();
    let Some(connection) = route.quic() else { return Err(Problem::Failed("it is no QUIC".to_owned())) };
    tokio::time::sleep(MTU_SEARCH).await;
    let stats = connection.stats();
    let reached = Reached {
        handshake: route.connect.map(|(_, handshake)| handshake).unwrap_or_default(),
        rtt: stats.min_rtt,
        version: connection.version(),
        mtu: stats.mtu,
        chain: route.certificates(),
        status: response.status(),
        server: response.headers().get(SERVER).map(text),
    };
    client.close().await;
    Ok(reached)
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Reaches the site at this address alone.
fn client(site: &Site, address: SocketAddr, versions: Versions) -> Result<Client, String> {
    let client = Client::builder()
        .addresses(&site.host, [address])
        .versions(versions)
        .danger_accept_any_certificate()
        .max_redirects(0)
        .connect_timeout(LONGEST)
        .timeout(2 * LONGEST);
    client.build().map_err(|error| error.to_string())
}

async fn ask(client: &Client, site: &Site) -> Result<Response, Error> {
    client.get(site.url()).header(USER_AGENT, USER_AGENT_NAME).send().await
}

fn problem(error: &Error) -> Problem {
    match error.tried().first() {
        Some(tried) => match tried.outcome {
            TriedOutcome::Silent => Problem::Silent,
            TriedOutcome::NobodyListens => Problem::Refused,
            TriedOutcome::NoWay => Problem::NoRoute(tried.text.clone()),
            _ => Problem::Failed(tried.text.clone()),
        },
        None => Problem::Failed(error.text().to_owned()),
    }
}
