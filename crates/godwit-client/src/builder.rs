//! What a client is built with.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use godwit::resumption::FileSessionStore;

use crate::client::{Client, Defaults};
#[cfg(feature = "dns")]
use crate::dns::{Dns, Means, Whom};
use crate::memory::Memory;
#[cfg(not(feature = "dns"))]
use crate::names::Names;
use crate::names::{Family, Pinned, RESOLUTION_DELAY};
use crate::network::{Network, NetworkOptions};
use crate::proxy::{Proxies, Proxy};
use crate::server::Versions;
use crate::trust::{Roots, RootsError, Trust};

/// For connecting, if nothing else is said.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// For connections without requests, if nothing else is said.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Bytes of a body that are collected, if nothing else is said.
const MAX_COLLECTED: usize = 64 << 20;

/// Builds a [`Client`]: everything has a default, and what cannot be used is told by [`ClientBuilder::build`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    defaults: Defaults,
    proxy: ProxyOption,
    family: Family,
    connect_timeout: Duration,
    failures_hold: Duration,
    idle_timeout: Duration,
    trust: TrustOptions,
    memory: MemoryPlace,
    sessions: Option<PathBuf>,
    early_data: bool,
    pinned: Pinned,
    #[cfg(feature = "dns")]
    dns: Dns,
    resolution_delay: Duration,
    encrypted_client_hello: bool,
}

#[derive(Debug, Default)]
struct TrustOptions {
    files: Vec<PathBuf>,
    pem: Vec<Vec<u8>>,
    roots: Option<Roots>,
    anybody: bool,
}

enum ProxyOption {
    None,
    Url(String),
    Environment,
}

/// Without the URL, which may have a password.
impl fmt::Debug for ProxyOption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ProxyOption::None => "None",
            ProxyOption::Url(_) => "Url(…)",
            ProxyOption::Environment => "Environment",
        })
    }
}

#[derive(Debug)]
enum MemoryPlace {
    None,
    File(PathBuf),
    Cache(PathBuf),
}

/// Why a client cannot be built: what was expected, what came, and what to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// A certificate authority that cannot be used.
    Roots(RootsError),
    /// TLS cannot be used.
    Tls(String),
    /// A proxy that cannot be used.
    Proxy {
        /// Where it was named: "proxy", or a variable of the environment.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A URL for DNS over HTTPS that cannot be used.
    Dns {
        /// The URL.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file of [`ClientBuilder::memory_file`] is something else.
    MemoryFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Roots(error) => error.fmt(formatter),
            BuildError::Proxy { name, problem } => write!(formatter, "{name}: {problem}"),
            BuildError::Dns { url, problem } => {
                write!(formatter, "DNS over HTTPS at {}: {problem}", url.escape_debug())
            }
            BuildError::Tls(problem) => formatter.write_str(problem),
            BuildError::MemoryFile { file, problem } => write!(
                formatter,
                "memory of servers {}: {problem}; give a file that godwit wrote, or one that does not exist yet",
                file.display()
            ),
        }
    }
}

impl std::error::Error for BuildError {}

impl Client {
    /// Begins to build a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }
}

impl Default for ClientBuilder {
    fn default() -> ClientBuilder {
        let defaults = Defaults {
            versions: Versions::Auto,
            max_redirects: 10,
            timeout: None,
            max_collected: MAX_COLLECTED,
            decompression: true,
        };
        ClientBuilder {
            defaults,
            proxy: ProxyOption::None,
            family: Family::Any,
            connect_timeout: CONNECT_TIMEOUT,
            failures_hold: Duration::ZERO,
            idle_timeout: IDLE_TIMEOUT,
            trust: TrustOptions::default(),
            memory: MemoryPlace::None,
            sessions: None,
            early_data: false,
            pinned: Pinned::default(),
            #[cfg(feature = "dns")]
            dns: Dns::default(),
            resolution_delay: RESOLUTION_DELAY,
            encrypted_client_hello: true,
        }
    }
}

impl ClientBuilder {
    /// Which versions of HTTP may be spoken. Default [`Versions::Auto`].
    pub fn versions(mut self, versions: Versions) -> ClientBuilder {
        self.defaults.versions = versions;
        self
    }

    /// How many redirects are followed; with 0 they are what requests come back with. Default 10.
    pub fn max_redirects(mut self, most: u8) -> ClientBuilder {
        self.defaults.max_redirects = most;
        self
    }

    /// The most time until a response is there, with its body. Default as long as it takes.
    pub fn timeout(mut self, limit: Duration) -> ClientBuilder {
        self.defaults.timeout = Some(limit);
        self
    }

    /// The most bytes of a body that [`crate::Response::bytes`] collects. Default 64 MiB.
    pub fn max_collected(mut self, most: usize) -> ClientBuilder {
        self.defaults.max_collected = most;
        self
    }

    /// Whether responses may come compressed (gzip, deflate, br, zstd), which the user does not notice: `Content-Encoding`
    /// and `Content-Length` are taken out, the body comes as it is meant. Requests that have `Accept-Encoding` or `Range`
    /// by themselves, and those with HEAD, get what the server sends. Default true, with the feature `decompression`.
    pub fn decompression(mut self, taken_off: bool) -> ClientBuilder {
        self.defaults.decompression = taken_off;
        self
    }

    /// All requests go through this HTTP proxy, `http://user:password@host:port`: https in a tunnel. HTTP/3 does
    /// not go through, and is not tried.
    pub fn proxy(self, url: impl Into<String>) -> ClientBuilder {
        ClientBuilder { proxy: ProxyOption::Url(url.into()), ..self }
    }

    /// Requests go through the proxies that the environment names: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, but for the
    /// hosts of NO_PROXY.
    pub fn proxy_from_environment(self) -> ClientBuilder {
        ClientBuilder { proxy: ProxyOption::Environment, ..self }
    }

    /// Which addresses are used. Default [`Family::Any`].
    pub fn family(self, family: Family) -> ClientBuilder {
        ClientBuilder { family, ..self }
    }

    /// Reaches `host` at these addresses, at their ports, in place of those that DNS would name: a server that DNS does
    /// not know yet, or one of several.
    pub fn addresses(
        mut self,
        host: impl Into<String>,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> ClientBuilder {
        self.pinned.hosts.insert(host.into().to_ascii_lowercase(), addresses.into_iter().collect());
        self
    }

    /// Reaches `host` at this address where a URL names this port, in place of what DNS would say: the HTTPS record of
    /// such a host is not asked for either. Several are tried in their order.
    pub fn resolve(mut self, host: impl Into<String>, port: u16, address: IpAddr) -> ClientBuilder {
        let key = (host.into().to_ascii_lowercase(), port);
        self.pinned.ports.entry(key).or_default().push(address);
        self
    }

    /// Whether DNS is asked for HTTPS records too (RFC 9460), by which the very first request to a server can go over
    /// HTTP/3. The question goes to the name servers that the system is set to, beside that for addresses, which does
    /// not wait for it for longer than [`ClientBuilder::resolution_delay`]. Default true, with the feature `dns`; without it they are never asked for.
    #[cfg(feature = "dns")]
    pub fn https_records(mut self, asked: bool) -> ClientBuilder {
        self.dns.records = asked;
        self
    }

    /// How long a server's addresses wait for its HTTPS record, where the name server has answered in time before. Default
    /// 50 ms.
    #[cfg(feature = "dns")]
    pub fn resolution_delay(self, limit: Duration) -> ClientBuilder {
        ClientBuilder { resolution_delay: limit, ..self }
    }

    /// Whether the name of a server whose HTTPS record tells how is encrypted in the handshake (Encrypted Client Hello, RFC
    /// 9849), over TCP and over QUIC. It is of use where the question to DNS is encrypted too
    /// ([`ClientBuilder::dns_over_https`]). Default true, with aws-lc-rs; ring cannot.
    #[cfg(feature = "dns")]
    pub fn encrypted_client_hello(self, encrypted: bool) -> ClientBuilder {
        ClientBuilder { encrypted_client_hello: encrypted, ..self }
    }

    /// Asks this name server, in place of what the system does (`/etc/hosts` included).
    #[cfg(feature = "dns")]
    pub fn dns_server(mut self, server: SocketAddr) -> ClientBuilder {
        self.dns.whom = Whom::Server(server);
        self
    }

    /// Asks for names by DNS over HTTPS (RFC 8484) at this URL, `https://dns.example/dns-query`, in place of what the
    /// system does (`/etc/hosts` included). The server of the URL is found as the system does, or by
    /// [`ClientBuilder::resolve`].
    #[cfg(feature = "dns")]
    pub fn dns_over_https(mut self, url: impl Into<String>) -> ClientBuilder {
        self.dns.whom = Whom::Https(url.into());
        self
    }

    /// The most time for finding a server's addresses, and the same again for connecting. Default 10 s.
    pub fn connect_timeout(self, limit: Duration) -> ClientBuilder {
        ClientBuilder { connect_timeout: limit, ..self }
    }

    /// For how long a server that could not be reached is not tried again. Default zero: only those who waited for
    /// it share the failure.
    pub fn failures_hold(self, time: Duration) -> ClientBuilder {
        ClientBuilder { failures_hold: time, ..self }
    }

    /// For how long the connections to a server are kept after its last response has been read. While requests are
    /// under way they are kept alive; afterwards a client that lives long would otherwise hold them, and those over
    /// QUIC send a packet every 10 s, as long as the servers do not close them. Default 90 s.
    pub fn idle_timeout(self, time: Duration) -> ClientBuilder {
        ClientBuilder { idle_timeout: time, ..self }
    }

    /// Trusts the certificate authorities in this file (PEM) besides the system's, and a server that shows one of these
    /// certificates as its own (see [`Roots`]).
    pub fn root_file(mut self, file: impl Into<PathBuf>) -> ClientBuilder {
        self.trust.files.push(file.into());
        self
    }

    /// Trusts these certificate authorities (PEM) besides the system's.
    pub fn root_pem(mut self, pem: impl Into<Vec<u8>>) -> ClientBuilder {
        self.trust.pem.push(pem.into());
        self
    }

    /// Trusts these certificate authorities instead of the system's.
    pub fn roots(mut self, roots: impl Into<Roots>) -> ClientBuilder {
        self.trust.roots = Some(roots.into());
        self
    }

    /// Accepts any certificate: anybody on the way can then read and change everything. For tests.
    pub fn danger_accept_any_certificate(mut self) -> ClientBuilder {
        self.trust.anybody = true;
        self
    }

    /// Keeps in this file which servers offer HTTP/3 and where UDP works, which is otherwise forgotten with the
    /// client. [`Client::close`] writes it.
    pub fn memory_file(self, file: impl Into<PathBuf>) -> ClientBuilder {
        ClientBuilder { memory: MemoryPlace::File(file.into()), ..self }
    }

    /// The same in a file of the client's own: if something else is in it, it is overwritten.
    pub fn memory_cache(self, file: impl Into<PathBuf>) -> ClientBuilder {
        ClientBuilder { memory: MemoryPlace::Cache(file.into()), ..self }
    }

    /// Keeps in this file what HTTP/3 connections of later clients begin faster with; whoever can read the file can
    /// read those.
    pub fn session_file(self, file: impl Into<PathBuf>) -> ClientBuilder {
        ClientBuilder { sessions: Some(file.into()), ..self }
    }

    /// Where the file of sessions permits it, safe requests go out before the handshake (0-RTT); somebody on the way
    /// may send them again. Default false.
    pub fn early_data(self, early_data: bool) -> ClientBuilder {
        ClientBuilder { early_data, ..self }
    }

    /// Builds the client.
    ///
    /// # Errors
    /// If a file cannot be used.
    pub fn build(self) -> Result<Client, BuildError> {
        let memory = match self.memory {
            MemoryPlace::None => Memory::forgetful(),
            MemoryPlace::Cache(file) => Memory::in_cache(file),
            MemoryPlace::File(file) => {
                Memory::in_file(file.clone()).map_err(|problem| BuildError::MemoryFile { file, problem })?
            }
        };
        let (trust, proxies) = (self.trust.build()?, self.proxy.build()?);
        #[cfg(feature = "dns")]
        let names = {
            let means = Means {
                trust: trust.clone(),
                proxies: proxies.clone(),
                pinned: self.pinned,
                family: self.family,
                connect_timeout: self.connect_timeout,
            };
            self.dns.names(means).map_err(|(url, problem)| BuildError::Dns { url, problem })?
        };
        #[cfg(not(feature = "dns"))]
        let names = Names::new(None, None, self.pinned, self.family);
        let network = Network::new(NetworkOptions {
            trust,
            connect_timeout: self.connect_timeout,
            failures_hold: self.failures_hold,
            idle_timeout: self.idle_timeout,
            proxies,
            memory,
            sessions: self.sessions.map(|file| Arc::new(FileSessionStore::open(&file))),
            early_data: self.early_data,
            names,
            resolution_delay: self.resolution_delay,
            encrypted_client_hello: self.encrypted_client_hello,
        });
        Ok(Client::new(network, self.defaults))
    }
}

impl ProxyOption {
    fn build(self) -> Result<Proxies, BuildError> {
        match self {
            ProxyOption::None => Ok(Proxies::default()),
            ProxyOption::Url(url) => Proxy::parse(&url)
                .map(Proxies::all)
                .map_err(|problem| BuildError::Proxy { name: "proxy".to_owned(), problem }),
            ProxyOption::Environment => Proxies::from_variables(|name| std::env::var_os(name))
                .map_err(|(name, problem)| BuildError::Proxy { name, problem }),
        }
    }
}

impl TrustOptions {
    fn build(self) -> Result<Trust, BuildError> {
        if self.anybody {
            return Ok(Trust::Anybody);
        }
        let mut roots = Roots::with_files(&self.files).map_err(BuildError::Roots)?;
        if let Some(instead) = self.roots {
            roots = instead;
        }
        for pem in &self.pem {
            roots.add_pem(pem).map_err(BuildError::Roots)?;
        }
        Trust::in_roots(&roots).map_err(|error| BuildError::Tls(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_told_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        std::fs::write(&file, "something else").unwrap();
        let message = |builder: ClientBuilder| builder.build().err().unwrap().to_string();
        let roots = message(Client::builder().root_file(&file));
        assert!(roots.contains("no BEGIN CERTIFICATE in it; give a PEM file"), "{roots}");
        let memory = message(Client::builder().memory_file(&file));
        assert!(memory.contains("it is something else"), "{memory}");
        assert!(Client::builder().memory_cache(&file).build().is_ok());
    }
}
