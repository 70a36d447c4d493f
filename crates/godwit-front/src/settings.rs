//! The checked settings of a server, as plain values.

use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU8, NonZeroU16};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use godwit::Backend;

pub use godwit::Spin;
pub use godwit_layers::coding::Coding;
use godwit_layers::files::{FolderSettings, Page};
use http::{HeaderName, HeaderValue, Method, StatusCode};

use crate::FrontError;
use crate::service::RouteService;

/// Everything that a server needs to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// UDP and TCP alike; empty for the default.
    pub listen: Vec<SocketAddr>,
    /// Plain HTTP that leads to HTTPS.
    pub redirect_http: Vec<SocketAddr>,
    /// Where `/metrics`, `/healthz` and `/readyz` are.
    pub metrics: Option<SocketAddr>,
    /// Threads that answer requests, over HTTP/3 and TCP alike: see [`every_core`]. 1, which is the default here, is none
    /// besides the runtime that the server is started on.
    pub shards: NonZeroU8,
    /// Whether HTTP/3 looks for datagrams before it goes to sleep, which saves being woken and costs its cores. Default off.
    pub spin: Spin,
    /// How long requests under way may take after the first signal; `None`: as fits a terminal or a service.
    pub drain: Option<Duration>,
    /// Folder for traces of HTTP/3 connections.
    pub qlog: Option<PathBuf>,
    /// Whether certificates are sent compressed to clients that take them so.
    pub compress_certificates: bool,
    /// Which requests are answered over HTTP/3 before the handshake is complete, by routes that do not say it themselves.
    pub early_data: EarlyData,
    /// What clients over HTTP/3 are told that they may ask for on any connection whose certificate is for it, such as
    /// `https://static.example.com` (RFC 9412), and for nothing else but the name in the handshake. Empty: they are told
    /// nothing, and look up addresses.
    pub origins: Vec<String>,
    /// Where a line for each request goes.
    pub access_log: AccessLog,
    /// What clients may use.
    pub limits: Limits,
    /// Who issues certificates, for sites that want them so.
    pub acme: Option<Acme>,
    /// Certificates in files.
    pub certificates: Vec<CertificateFiles>,
    /// Never empty.
    pub sites: Vec<Site>,
}

/// A shard for every core that this process may use: its affinity and the quota of its control group count. 255 at most,
/// and 1 where the system does not tell.
pub fn every_core() -> NonZeroU8 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u8::try_from(cores).ok().and_then(NonZeroU8::new).unwrap_or(NonZeroU8::MAX)
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            listen: Vec::new(),
            redirect_http: Vec::new(),
            metrics: None,
            shards: NonZeroU8::MIN,
            spin: Spin::Off,
            drain: None,
            qlog: None,
            compress_certificates: true,
            early_data: EarlyData::default(),
            origins: Vec::new(),
            access_log: AccessLog::default(),
            limits: Limits::default(),
            acme: None,
            certificates: Vec::new(),
            sites: Vec::new(),
        }
    }
}

/// Which requests are answered over HTTP/3 before the handshake is complete, when clients come back (0-RTT). Such a request
/// may be one that somebody has recorded and sends again, though each session is good for one connection only. Others that
/// come so early wait until the handshake is complete (RFC 8470 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EarlyData {
    /// None. Where that is so of all routes, 0-RTT is not accepted.
    #[default]
    Off,
    /// Those whose method is safe (RFC 9110 section 9.2.1).
    Safe,
    /// All: whoever answers looks at [`godwit_body::EarlyData`], or at `Early-Data` behind a proxy, and answers with
    /// status 425 by itself where once must be enough (RFC 8470).
    All,
}

impl EarlyData {
    /// Whether requests of this method are answered before the handshake is complete.
    pub(crate) fn permits(self, method: &Method) -> bool {
        match self {
            EarlyData::Off => false,
            EarlyData::Safe => method.is_safe(),
            EarlyData::All => true,
        }
    }
}

/// The access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessLog {
    /// Where the lines go.
    pub target: LogTarget,
    /// What they look like.
    pub format: LogFormat,
    /// How much of a client's address they tell.
    pub client_address: ClientAddress,
}

/// Where the lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogTarget {
    /// Nowhere.
    None,
    /// The standard output.
    #[default]
    Stdout,
    /// This file, which is appended to.
    File(PathBuf),
}

/// What a line looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFormat {
    /// A JSON object for each request.
    Json,
    /// Apache's combined format.
    Combined,
    /// A short line for a person.
    #[default]
    Terminal,
}

/// How much of a client's address is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientAddress {
    #[default]
    /// All of it.
    Full,
    /// IPv4 as /24, IPv6 as /48.
    Prefix,
    /// Nothing.
    None,
}

/// What clients may use of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at a time, TCP and QUIC each; at least 1. Once half of them are taken, a network (IPv4 /24, IPv6 /48) gets
    /// no more of them than are left for others, and a /16 or /32 three times as many; but 16 and 32 in any case.
    pub connections: usize,
    /// Of them, those of one IPv4 address or one IPv6 /64 once half of all places are taken, before which everybody gets
    /// one; at least 1.
    pub connections_per_address: usize,
    /// Connections on which nothing is asked for, TCP and QUIC each, half of them of one network (IPv4 /24, IPv6 /48); at
    /// least 1. Of more, the one that has been idle for longest is closed in good order.
    pub idle_connections: usize,
    /// Requests at a time on one connection; at least 1.
    pub requests_per_connection: u32,
    /// Requests on one connection of HTTP/2 or HTTP/3 that a client may give up at once, beyond one for each that it
    /// lets be answered. Then the connection is closed.
    pub abandoned_requests: u32,
    /// How many of them come back in each second.
    pub abandoned_per_second: u32,
    /// Bytes of a request's header section.
    pub header_size: u32,
    /// Bytes of a request's body; `None`: no limit.
    pub body_size: Option<u64>,
    /// For a request's header section to arrive.
    pub header_timeout: Duration,
    /// Between requests.
    pub idle_timeout: Duration,
    /// A client that takes (or sends) nothing for so long, though something is to be moved, is dropped.
    pub send_timeout: Duration,
    /// Bytes in a second that a client has to take (or send, until the response begins) on average over `send_timeout`;
    /// 0: no limit.
    pub minimum_rate: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 10_000,
            connections_per_address: 256,
            idle_connections: 2_000,
            requests_per_connection: 100,
            abandoned_requests: 256,
            abandoned_per_second: 16,
            header_size: 64 << 10,
            body_size: None,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            send_timeout: Duration::from_secs(60),
            minimum_rate: 256,
        }
    }
}

/// Certificates from an authority that speaks ACME (RFC 8555).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acme {
    /// URL of the directory.
    pub directory: String,
    /// Where the authority writes to if something is wrong.
    pub email: Option<String>,
    /// The user has accepted the authority's terms of service.
    pub accept_terms: bool,
    /// Where account and certificates are kept; `None`: in the user's data folder.
    pub folder: Option<PathBuf>,
    /// How names are proved.
    pub challenge: Challenge,
    /// A further root certificate to trust the authority by.
    pub ca: Option<PathBuf>,
}

/// How the authority is shown that a name is ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Challenge {
    #[default]
    /// Within a TLS handshake (RFC 8737).
    TlsAlpn01,
    /// Over plain HTTP (RFC 8555 section 8.3).
    Http01,
}

/// A certificate chain and its key in PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateFiles {
    /// The chain, the server's own certificate first.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl CertificateFiles {
    /// These files.
    pub fn new(chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        CertificateFiles { chain: chain.into(), key: key.into() }
    }
}

/// What is served under some host names.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Site {
    /// The names that it has.
    pub hosts: Vec<HostPattern>,
    /// Where its certificate comes from.
    pub tls: SiteTls,
    /// Who hears of HTTP/3.
    pub advertise: Advertise,
    /// `None`: the port of the connection.
    pub advertise_port: Option<NonZeroU16>,
    /// How long clients may remember that.
    pub advertise_age: Duration,
    /// Whether responses tell how long they took.
    pub server_timing: bool,
    /// In the server's order of preference; empty: none.
    pub compress: Vec<Coding>,
    /// Whether responses are compressed that set a cookie or answer a request with a cookie or `Authorization`, where they
    /// come from upstreams and services and are not `cache-control: public`. Their length could tell strangers secrets
    /// in them (BREACH).
    pub compress_with_credentials: bool,
    /// Changes to responses.
    pub response_headers: HeaderRules,
    /// Changes to requests.
    pub request_headers: HeaderRules,
    /// Never empty.
    pub routes: Vec<Route>,
}

impl Site {
    /// Everything at every host with the defaults.
    pub fn catch_all(handler: Handler) -> Site {
        Site {
            hosts: vec![HostPattern::Any],
            tls: SiteTls::Local,
            advertise: Advertise::All,
            advertise_port: None,
            advertise_age: Duration::from_secs(86_400),
            server_timing: true,
            compress: vec![Coding::Zstd, Coding::Brotli, Coding::Gzip],
            compress_with_credentials: false,
            response_headers: HeaderRules::default(),
            request_headers: HeaderRules::default(),
            routes: vec![Route {
                path: PathPattern::Prefix("/".to_owned()),
                methods: Vec::new(),
                strip_prefix: None,
                early_data: None,
                handler,
            }],
        }
    }
}

impl Settings {
    /// How much there is: `1 site, 2 routes, 0 certificates`.
    #[must_use]
    pub fn counts(&self) -> String {
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            number => format!("{number} {what}s"),
        };
        let routes = self.sites.iter().map(|site| site.routes.len()).sum();
        let (sites, certificates) = (self.sites.len(), self.certificates.len());
        format!(
            "{}, {}, {}",
            count(sites, "site"),
            count(routes, "route"),
            count(certificates, "certificate")
        )
    }

    /// Whether any route answers anything before a handshake is complete, so that 0-RTT is to be accepted.
    #[must_use]
    pub fn accepts_early_data(&self) -> bool {
        let mut routes = self.sites.iter().flat_map(|site| &site.routes);
        routes.any(|route| route.early_data.unwrap_or(self.early_data) != EarlyData::Off)
    }

    /// What the first of its routes leads to: a folder, servers, or something else.
    #[must_use]
    pub fn first_in_words(&self) -> Option<String> {
        match &self.sites.first()?.routes.first()?.handler {
            Handler::Files(files) => Some(files.folder.display().to_string()),
            Handler::Proxy(proxy) => Some(proxy.upstreams.join(", ")),
            _ => None,
        }
    }
}

/// The ways to the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Datapath {
    /// The best this system has.
    #[default]
    Auto,
    /// Linux: batches with segmentation offload.
    Linux,
    /// Any system.
    Portable,
}

impl Datapath {
    /// What makes the sockets.
    ///
    /// # Errors
    /// If this system does not have it.
    pub fn backend(self) -> Result<Backend, FrontError> {
        match self {
            Datapath::Linux if !cfg!(target_os = "linux") => Err(FrontError::new(
                "--datapath linux is for Linux only; leave it out for the best there is here",
            )),
            Datapath::Auto | Datapath::Linux => Ok(Backend::Native),
            Datapath::Portable => Ok(Backend::Portable),
        }
    }
}

impl FromStr for Datapath {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Datapath, Self::Err> {
        match name {
            "auto" => Ok(Datapath::Auto),
            "linux" => Ok(Datapath::Linux),
            "portable" => Ok(Datapath::Portable),
            _ => Err("expected one of auto, linux, portable"),
        }
    }
}

/// Which host names a site has. Names are in lower case and ASCII (IDNs in their `xn--` form), without
/// a port; addresses are without brackets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HostPattern {
    /// Every name that is not named elsewhere.
    Any,
    /// This name.
    Exact(String),
    /// One label before this name: `*.example.com` is `Wildcard("example.com")`.
    Wildcard(String),
}

impl std::fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HostPattern::Any => formatter.write_str("*"),
            HostPattern::Exact(name) => formatter.write_str(name),
            HostPattern::Wildcard(name) => write!(formatter, "*.{name}"),
        }
    }
}

/// Where a site's certificate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SiteTls {
    /// One of [`Settings::certificates`].
    Files,
    /// An authority that speaks ACME.
    Acme,
    /// The authority of this machine's own.
    Local,
}

/// To whom HTTP/3 is advertised.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Advertise {
    /// Nobody hears of it.
    Nobody,
    /// Part of the users, more than 0 and less than 100 percent.
    Percent(f64),
    /// Everybody does.
    All,
}

/// Changes to a header section: first what is removed, then what is set, then what is added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaderRules {
    /// In place of what there is under these names.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Beside what there is.
    pub add: Vec<(HeaderName, HeaderValue)>,
    /// What is taken out.
    pub remove: Vec<HeaderName>,
}

/// What answers a part of a site.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Route {
    /// Which paths it is for.
    pub path: PathPattern,
    /// Empty: every method.
    pub methods: Vec<Method>,
    /// Taken off the path before it goes to files or upstream.
    pub strip_prefix: Option<String>,
    /// Which requests it answers before the handshake is complete; `None`: as [`Settings::early_data`] says.
    pub early_data: Option<EarlyData>,
    /// What it does.
    pub handler: Handler,
}

/// Which paths a route is for; the longest match counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PathPattern {
    /// This path alone.
    Exact(String),
    /// Every path that begins so: `/api/*` is `Prefix("/api/")`.
    Prefix(String),
}

/// What a route does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Handler {
    /// Pages inside the program.
    Pages(&'static [Page]),
    /// A folder.
    Files(FolderSettings),
    /// Other servers.
    Proxy(Box<Proxy>),
    /// Another address.
    Redirect {
        /// A template: `https://www.{host}{path}{query}`.
        to: String,
        /// One of 3xx.
        status: StatusCode,
    },
    /// Always the same.
    Respond(Respond),
    /// Whatever a program brings.
    Service(RouteService),
}

/// A fixed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Respond {
    /// The status of the answer.
    pub status: StatusCode,
    /// Its content; may be empty.
    pub body: String,
    /// The type of the content.
    pub content_type: Option<HeaderValue>,
}

impl Respond {
    /// This status with this content, whose type is not said.
    pub fn new(status: StatusCode, body: impl Into<String>) -> Self {
        Respond { status, body: body.into(), content_type: None }
    }
}

/// Upstream servers, and how they are used.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Proxy {
    /// URLs `http://`, `https://` or `h2c://` with host and port only; never empty.
    pub upstreams: Vec<String>,
    /// For a connection to be made.
    pub connect_timeout: Duration,
    /// For the head of the response.
    pub response_timeout: Duration,
    /// For the next piece of the response's body; `None`: for ever.
    pub body_timeout: Option<Duration>,
    /// For an unused connection.
    pub idle_timeout: Duration,
    /// Unused connections kept for each upstream, by each shard.
    pub max_idle: usize,
    /// Connections to each upstream, at least 1; `None`: as many as there are descriptors for.
    pub max_connections: Option<usize>,
    /// What clients of one network (IPv4 /24, IPv6 /48) may have of those, in percent: 1 to 100, and 100 is no limit.
    pub network_share: u8,
    /// How often a request is sent again that may be.
    pub retries: u32,
    /// Which upstream is next.
    pub balance: Balance,
    /// What it is told as `Host`.
    pub host: UpstreamHost,
    /// Whether `Forwarded` and `X-Forwarded-*` are sent.
    pub forwarded: bool,
    /// Whose own such headers are kept.
    pub trust_forwarded: Vec<Network>,
    /// How its certificate is checked.
    pub tls: UpstreamTls,
    /// How it is watched, if it is.
    pub health: Option<Health>,
}

impl Proxy {
    /// To these servers, with the defaults.
    pub fn to(upstreams: Vec<String>) -> Proxy {
        Proxy {
            upstreams,
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(60),
            body_timeout: Some(Duration::from_secs(300)),
            idle_timeout: Duration::from_secs(90),
            max_idle: 256,
            max_connections: None,
            network_share: 25,
            retries: 1,
            balance: Balance::RoundRobin,
            host: UpstreamHost::Keep,
            forwarded: true,
            trust_forwarded: Vec::new(),
            tls: UpstreamTls::default(),
            health: None,
        }
    }
}

/// How an upstream's certificate is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamTls {
    /// Root certificates in place of the system's.
    pub ca: Option<PathBuf>,
    /// The name in place of the URL's host.
    pub name: Option<String>,
    /// Not at all.
    pub insecure: bool,
}

/// Which upstream is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Balance {
    /// One after the other.
    RoundRobin,
    /// The one with the fewest requests under way.
    LeastRequests,
}

/// What the upstream is told as `Host`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamHost {
    /// What the client has said.
    Keep,
    /// The upstream's own name.
    Upstream,
    /// This name.
    Name(String),
}

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Network {
    /// The first of them.
    pub address: IpAddr,
    /// At most 32 or 128.
    pub prefix: u8,
}

impl Network {
    /// The addresses whose first `prefix` bits are those of `address`.
    pub const fn new(address: IpAddr, prefix: u8) -> Self {
        Network { address, prefix }
    }
}

/// How upstreams are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// What is asked for.
    pub path: String,
    /// How often.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Good answers in a row until it is used again.
    pub healthy: u32,
    /// Bad answers in a row until it is no longer used.
    pub unhealthy: u32,
    /// What a good answer has.
    pub status: StatusCode,
}
