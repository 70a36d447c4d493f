//! The checked settings of a server, as plain values.

use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU8, NonZeroU16};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use godwit_layers::coding::Coding;
use godwit_layers::files::{FolderSettings, Page};
use http::{HeaderName, HeaderValue, Method, StatusCode};

/// Everything that a server needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// UDP and TCP alike; empty for the default.
    pub(crate) listen: Vec<SocketAddr>,
    /// Plain HTTP that leads to HTTPS.
    pub(crate) redirect_http: Vec<SocketAddr>,
    /// Where `/metrics`, `/healthz` and `/readyz` are.
    pub(crate) metrics: Option<SocketAddr>,
    /// Cores that HTTP/3 runs on.
    pub(crate) shards: NonZeroU8,
    /// How long requests under way may take after the first signal; `None`: as fits a terminal or a service.
    pub(crate) drain: Option<Duration>,
    /// Folder for traces of HTTP/3 connections.
    pub(crate) qlog: Option<PathBuf>,
    /// Whether certificates are sent compressed to clients that take them so.
    pub(crate) compress_certificates: bool,
    pub(crate) access_log: AccessLog,
    pub(crate) limits: Limits,
    pub(crate) acme: Option<Acme>,
    pub(crate) certificates: Vec<CertificateFiles>,
    /// Never empty.
    pub(crate) sites: Vec<Site>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            listen: Vec::new(),
            redirect_http: Vec::new(),
            metrics: None,
            shards: NonZeroU8::MIN,
            drain: None,
            qlog: None,
            compress_certificates: true,
            access_log: AccessLog::default(),
            limits: Limits::default(),
            acme: None,
            certificates: Vec::new(),
            sites: Vec::new(),
        }
    }
}

/// The access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessLog {
    pub(crate) target: LogTarget,
    pub(crate) format: LogFormat,
    pub(crate) client_address: ClientAddress,
}

/// Where the lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogTarget {
    /// Nowhere.
    None,
    /// The standard output.
    #[default]
    Stdout,
    File(PathBuf),
}

/// What a line looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Json,
    /// Apache's combined format.
    Combined,
    /// A short line for a person.
    #[default]
    Terminal,
}

/// How much of a client's address is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClientAddress {
    #[default]
    Full,
    /// IPv4 as /24, IPv6 as /48.
    Prefix,
    None,
}

/// What clients may use of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Connections at a time, TCP and QUIC each; at least 1.
    pub(crate) connections: usize,
    /// Of them, those of one IPv4 address or one IPv6 /64; at least 1.
    pub(crate) connections_per_address: usize,
    /// Requests at a time on one connection; at least 1.
    pub(crate) requests_per_connection: u32,
    /// Bytes of a request's header section.
    pub(crate) header_size: u32,
    /// Bytes of a request's body; `None`: no limit.
    pub(crate) body_size: Option<u64>,
    /// For a request's header section to arrive.
    pub(crate) header_timeout: Duration,
    /// Between requests.
    pub(crate) idle_timeout: Duration,
    /// A client that takes (or sends) nothing for so long, though something is to be moved, is dropped.
    pub(crate) send_timeout: Duration,
    /// Bytes in a second that a client has to take (or send) on average over `send_timeout`; 0: no limit.
    pub(crate) minimum_rate: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 10_000,
            connections_per_address: 256,
            requests_per_connection: 100,
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
pub(crate) struct Acme {
    /// URL of the directory.
    pub(crate) directory: String,
    pub(crate) email: Option<String>,
    /// The user has accepted the authority's terms of service.
    pub(crate) accept_terms: bool,
    /// Where account and certificates are kept; `None`: in the user's data folder.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) challenge: Challenge,
    /// A further root certificate to trust the authority by.
    pub(crate) ca: Option<PathBuf>,
}

/// How the authority is shown that a name is ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Challenge {
    #[default]
    TlsAlpn01,
    Http01,
}

/// A certificate chain and its key in PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateFiles {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

/// What is served under some host names.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) tls: SiteTls,
    pub(crate) advertise: Advertise,
    /// `None`: the port of the connection.
    pub(crate) advertise_port: Option<NonZeroU16>,
    pub(crate) advertise_age: Duration,
    pub(crate) server_timing: bool,
    /// In the server's order of preference; empty: none.
    pub(crate) compress: Vec<Coding>,
    pub(crate) response_headers: HeaderRules,
    pub(crate) request_headers: HeaderRules,
    /// Never empty.
    pub(crate) routes: Vec<Route>,
}

impl Site {
    /// Everything at every host with the defaults.
    pub(crate) fn catch_all(handler: Handler) -> Site {
        Site {
            hosts: vec![HostPattern::Any],
            tls: SiteTls::Local,
            advertise: Advertise::All,
            advertise_port: None,
            advertise_age: Duration::from_secs(86_400),
            server_timing: true,
            compress: vec![Coding::Zstd, Coding::Brotli, Coding::Gzip],
            response_headers: HeaderRules::default(),
            request_headers: HeaderRules::default(),
            routes: vec![Route {
                path: PathPattern::Prefix("/".to_owned()),
                methods: Vec::new(),
                strip_prefix: None,
                handler,
            }],
        }
    }
}

/// Which host names a site has. Names are in lower case and ASCII (IDNs in their `xn--` form), without
/// a port; addresses are without brackets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostPattern {
    /// Every name that is not named elsewhere.
    Any,
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
pub(crate) enum SiteTls {
    /// One of [`Settings::certificates`].
    Files,
    Acme,
    /// The authority of this machine's own.
    Local,
}

/// To whom HTTP/3 is advertised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Advertise {
    Nobody,
    /// Part of the users, more than 0 and less than 100 percent.
    Percent(f64),
    All,
}

/// Changes to a header section: first what is removed, then what is set, then what is added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderRules {
    pub(crate) set: Vec<(HeaderName, HeaderValue)>,
    pub(crate) add: Vec<(HeaderName, HeaderValue)>,
    pub(crate) remove: Vec<HeaderName>,
}

/// What answers a part of a site.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) path: PathPattern,
    /// Empty: every method.
    pub(crate) methods: Vec<Method>,
    /// Taken off the path before it goes to files or upstream.
    pub(crate) strip_prefix: Option<String>,
    pub(crate) handler: Handler,
}

/// Which paths a route is for; the longest match counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathPattern {
    Exact(String),
    /// Every path that begins so: `/api/*` is `Prefix("/api/")`.
    Prefix(String),
}

/// What a route does.
#[derive(Clone, Debug)]
pub(crate) enum Handler {
    /// Pages inside the program.
    Pages(&'static [Page]),
    Files(FolderSettings),
    Proxy(Box<Proxy>),
    Redirect {
        to: String,
        status: StatusCode,
    },
    Respond(Respond),
}

/// A fixed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Respond {
    pub(crate) status: StatusCode,
    pub(crate) body: String,
    pub(crate) content_type: Option<HeaderValue>,
}

/// Upstream servers, and how they are used.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    /// URLs `http://`, `https://` or `h2c://` with host and port only; never empty.
    pub(crate) upstreams: Vec<String>,
    pub(crate) connect_timeout: Duration,
    /// For the head of the response.
    pub(crate) response_timeout: Duration,
    /// For an unused connection.
    pub(crate) idle_timeout: Duration,
    /// Unused connections kept for each upstream.
    pub(crate) max_idle: usize,
    /// Connections to each upstream, at least 1; `None`: as many as there are descriptors for.
    pub(crate) max_connections: Option<usize>,
    pub(crate) retries: u32,
    pub(crate) balance: Balance,
    pub(crate) host: UpstreamHost,
    /// Whether `Forwarded` and `X-Forwarded-*` are sent.
    pub(crate) forwarded: bool,
    /// Whose own such headers are kept.
    pub(crate) trust_forwarded: Vec<Network>,
    pub(crate) tls: UpstreamTls,
    pub(crate) health: Option<Health>,
}

impl Proxy {
    pub(crate) fn to(upstreams: Vec<String>) -> Proxy {
        Proxy {
            upstreams,
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(90),
            max_idle: 64,
            max_connections: None,
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
pub(crate) struct UpstreamTls {
    /// Root certificates in place of the system's.
    pub(crate) ca: Option<PathBuf>,
    /// The name in place of the URL's host.
    pub(crate) name: Option<String>,
    /// Not at all.
    pub(crate) insecure: bool,
}

/// Which upstream is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balance {
    RoundRobin,
    LeastRequests,
}

/// What the upstream is told as `Host`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamHost {
    Keep,
    Upstream,
    Name(String),
}

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) address: IpAddr,
    /// At most 32 or 128.
    pub(crate) prefix: u8,
}

/// How upstreams are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) path: String,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    /// Good answers in a row until it is used again.
    pub(crate) healthy: u32,
    /// Bad answers in a row until it is no longer used.
    pub(crate) unhealthy: u32,
    pub(crate) status: StatusCode,
}
