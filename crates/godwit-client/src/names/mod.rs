//! Names become places: addresses, from the system (`/etc/hosts`, multicast and whatever else it is set to) or from a
//! name server, and beside them HTTPS records (RFC 9460), which say on the first visit what `Alt-Svc` says on later ones.
//!
//! Both are asked for at once, and addresses never wait for records for longer than [`RESOLUTION_DELAY`].

pub(crate) mod question;
mod record;
mod records;
#[cfg(feature = "dns")]
pub(crate) mod server;
#[cfg(feature = "dns")]
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use godwit_os::route;
use godwit_text::plain_error;
use tokio::time::{sleep, timeout};

pub(crate) use records::Said;

use crate::error::{Error, Remedy};
use crate::explain;
use crate::target::Origin;
use question::{Kind, NoAnswer, Resolver};
use record::Service;
use records::{Asked, Records};

/// How long what is there waits for what else may come (draft-ietf-happy-happyeyeballs-v3 section 4.2).
pub(crate) const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// How long a record is waited for where there is no address.
const RECORD_ALONE: Duration = Duration::from_secs(2);
/// The most addresses of one server.
const MOST_ADDRESSES: usize = 32;

/// Which addresses are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Those that the system gives, in its order, the two families in turn.
    #[default]
    Any,
    /// Those of IPv4.
    V4,
    /// Those of IPv6.
    V6,
}

impl Family {
    fn has(self, address: IpAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }
}

/// Who finds places for names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Whom to ask for addresses; `None`: the system.
    resolver: Option<Arc<dyn Resolver>>,
    records: Option<Arc<Records>>,
    pinned: Pinned,
    family: Family,
}

/// Where hosts are of which nobody is asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pinned {
    /// At any port, with the ports to go to.
    pub(crate) hosts: BTreeMap<String, Vec<SocketAddr>>,
    /// At one port.
    pub(crate) ports: BTreeMap<(String, u16), Vec<IpAddr>>,
}

impl Pinned {
    fn find(&self, host: &str, port: u16) -> Option<Vec<SocketAddr>> {
        let at_port = self.ports.get(&(host.to_owned(), port));
        let at_port = at_port.map(|found| found.iter().map(|found| SocketAddr::new(*found, port)).collect());
        at_port.or_else(|| self.hosts.get(host).cloned())
    }
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// Those of the name in the URL, or of what stands for it; at least one.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Where it is reached over TCP, the preferred first; at least one.
    pub(crate) tcp: Vec<SocketAddr>,
    /// What its HTTPS record says; `None`: it was not asked for, or there was no answer in time.
    pub(crate) said: Option<Arc<Said>>,
}

impl Places {
    /// Of a name that has no record of its own.
    pub(crate) fn of_name(addresses: Vec<SocketAddr>) -> Places {
        Places { tcp: addresses.clone(), addresses, said: None }
    }
}

impl Names {
    /// `resolver` is asked for addresses, and `records` for records, where there are such.
    pub(crate) fn new(
        resolver: Option<Arc<dyn Resolver>>,
        records: Option<Arc<dyn Resolver>>,
        pinned: Pinned,
        family: Family,
    ) -> Names {
        let records = records.map(|resolver| Arc::new(Records::new(resolver)));
        Names { resolver, records, pinned, family }
    }

    /// What the HTTPS record of `origin` says, as far as that is known.
    pub(crate) fn known(&self, origin: &Origin) -> Option<Arc<Said>> {
        self.records.as_ref().filter(|_| self.asks_about(origin))?.known(&origin.host, origin.port)
    }

    /// With which list of keys the record of `origin` wants its name encrypted, over TCP or for HTTP/3.
    pub(crate) fn encryption(&self, origin: &Origin, for_http3: bool) -> Option<Vec<u8>> {
        let said = self.known(origin)?;
        let wanted = |service: &&Service| if for_http3 { service.has_http3() } else { service.has_tcp() };
        said.services().iter().find(wanted)?.ech.clone()
    }

    /// Whether it was said where the server is, whatever DNS says.
    pub(crate) fn is_pinned(&self, origin: &Origin) -> bool {
        self.pinned.find(&origin.host, origin.port).is_some()
    }

    /// Whether somebody has answered questions for records since this was asked last.
    pub(crate) fn take_heard(&self) -> bool {
        self.records.as_ref().is_some_and(|records| records.take_heard())
    }

    /// Finds `origin`. `patience`: how long addresses wait for records, and whom to tell that it was in vain.
    ///
    /// # Errors
    /// If there is no address.
    pub(crate) async fn find(
        &self,
        origin: &Origin,
        patience: impl Fn(SocketAddr) -> Duration,
        on_missed: impl Fn(SocketAddr),
    ) -> Result<Places, Error> {
        let mut asked = self.ask(origin);
        let mut addresses = pin!(self.addresses(origin, &origin.host, origin.port));
        let (found, said) = tokio::select! {
            biased;
            found = &mut addresses => {
                let first = found.as_ref().ok().and_then(|found| found.first().copied());
                let limit = first.map_or(RECORD_ALONE, &patience);
                let is_awaited = asked.is_coming() && !limit.is_zero();
                let said = timeout(limit, asked.said()).await.unwrap_or_default();
                if let (Some(first), None, true) = (first, &said, is_awaited) {
                    on_missed(first);
                }
                (found, said)
            }
            said = asked.said(), if asked.is_coming() => {
                let hints = self.hints(origin, said.as_deref());
                let found = match hints.is_empty() {
                    true => addresses.await,
                    false => timeout(RESOLUTION_DELAY, addresses).await.unwrap_or(Ok(hints)),
                };
                (found, said)
            }
        };
        let plain = found.as_ref().map(Vec::as_slice).unwrap_or_default();
        let services = said.as_deref().map_or(&[][..], Said::services);
        let mut tcp = self.places(origin, services, Service::has_tcp, plain).await;
        let mut addresses = match found {
            Err(error) if tcp.is_empty() => return Err(error),
            Err(_) => tcp.clone(),
            Ok(addresses) => addresses,
        };
        addresses.truncate(MOST_ADDRESSES);
        tcp.extend(addresses.iter().copied());
        let tcp = without_repetitions(tcp);
        Ok(Places { addresses, tcp, said })
    }

    /// Where HTTP/3 of `origin` is that was asked for: where the record says, and then at the addresses of the name.
    pub(crate) async fn http3_places(&self, origin: &Origin, plain: &[SocketAddr]) -> Vec<SocketAddr> {
        let said = self.known(origin);
        let services = said.as_deref().map_or(&[][..], Said::services);
        let mut places = self.places(origin, services, Service::has_http3, plain).await;
        places.extend(plain);
        without_repetitions(places)
    }

    /// The addresses of `host`, which is `origin`'s, a proxy's or that of an alternative.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn addresses(
        &self,
        origin: &Origin,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, Error> {
        let found: Vec<SocketAddr> = match (self.pinned.find(host, port), host.parse::<IpAddr>()) {
            (Some(pinned), _) => pinned,
            // An IPv4 address in IPv6 notation is reached over IPv4: IPv6 sockets here do IPv6 only.
            (None, Ok(address)) => vec![SocketAddr::new(address.to_canonical(), port)],
            (None, Err(_)) => self.look_up(host, port).await?,
        };
        let wanted = found.into_iter().filter(|address| self.family.has(address.ip()));
        let addresses = without_repetitions(wanted.collect());
        match (addresses.is_empty(), self.family) {
            (false, _) => Ok(addresses),
            (true, Family::Any) => Err(explain::unknown_host(host, "it has no address")),
            (true, Family::V4) => Err(explain::no_address_of(origin, "IPv4", Remedy::AllowIpv6)),
            (true, Family::V6) => Err(explain::no_address_of(origin, "IPv6", Remedy::AllowIpv4)),
        }
    }

    /// The addresses of `host`, which is an alternative of `origin`'s. If that stands in the record of `origin` with hints, these
    /// stand in for addresses that do not come soon, for this origin and nobody else who has that name.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn alternative(
        &self,
        origin: &Origin,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, Error> {
        let asked = self.addresses(origin, host, port);
        let said = self.known(origin);
        let services = said.as_deref().map_or(&[][..], Said::services);
        let named = services.iter().filter(|service| service.target.as_deref() == Some(host));
        let hints = named.flat_map(|service| &service.hints).filter(|hint| self.family.has(**hint));
        let hints: Vec<_> = hints.map(|hint| SocketAddr::new(*hint, port)).collect();
        if hints.is_empty() {
            return asked.await;
        }
        match timeout(RESOLUTION_DELAY, asked).await {
            Ok(Ok(found)) => Ok(found),
            _ => Ok(hints),
        }
    }

    async fn look_up(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
        let asked = async {
            match self.resolver.as_deref().filter(|_| !is_local(host)) {
                None => {
                    let found = tokio::net::lookup_host((host, port)).await;
                    found.map(Iterator::collect::<Vec<_>>).map_err(|error| plain_error(&error))
                }
                Some(resolver) => {
                    let found = both_families(resolver, host, self.family).await;
                    let found = found.map_err(|problem| problem.to_string())?;
                    Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
                }
            }
        };
        asked.await.map_err(|problem: String| explain::unknown_host(host, &problem))
    }

    /// Records are not asked for where only this machine or this link is meant, nor where somebody has said where the
    /// server is.
    fn asks_about(&self, origin: &Origin) -> bool {
        origin.secure
            && origin.address().is_none()
            && origin.host.contains('.')
            && !is_local(&origin.host)
            && self.pinned.find(&origin.host, origin.port).is_none()
    }

    fn ask(&self, origin: &Origin) -> Asked {
        match self.records.as_ref().filter(|_| self.asks_about(origin)) {
            Some(records) => records.ask(&origin.host, origin.port),
            None => Asked::Never,
        }
    }

    /// Addresses of the name itself that its record names.
    fn hints(&self, origin: &Origin, said: Option<&Said>) -> Vec<SocketAddr> {
        let services = said.map_or(&[][..], Said::services);
        let own = services.iter().filter(|service| service.target.is_none());
        let hints = own.flat_map(|service| &service.hints).copied();
        let wanted = hints.filter(|address| self.family.has(*address));
        without_repetitions(wanted.map(|address| SocketAddr::new(address, origin.port)).collect())
    }

    /// The addresses of those services that are `wanted`, in their order. `plain`: those of the name itself. Hints stand in for
    /// addresses of a service's name that do not come soon, and count for nobody else who has that name.
    ///
    /// Where the system says that the name is on this machine or in this network, as a file of its may, public records do not
    /// send anybody elsewhere.
    async fn places(
        &self,
        origin: &Origin,
        services: &[Service],
        wanted: impl Fn(&Service) -> bool,
        plain: &[SocketAddr],
    ) -> Vec<SocketAddr> {
        let mut places = Vec::new();
        let is_at_home = self.resolver.is_none() && plain.iter().any(|place| is_at_home(place.ip()));
        for service in services.iter().filter(|service| wanted(service)) {
            let port = service.port.unwrap_or(origin.port);
            match &service.target {
                None => places.extend(plain.iter().map(|place| SocketAddr::new(place.ip(), port))),
                Some(_) if is_at_home => {}
                Some(target) => {
                    // Who has other addresses does not wait long for these.
                    let is_alone = places.is_empty() && plain.is_empty() && service.hints.is_empty();
                    let limit = if is_alone { RECORD_ALONE } else { RESOLUTION_DELAY };
                    let found = timeout(limit, self.addresses(origin, target, port)).await;
                    let found: Vec<_> = found.into_iter().flatten().flatten().collect();
                    let hints =
                        service.hints.iter().filter(|hint| found.is_empty() && self.family.has(**hint));
                    places.extend(hints.map(|hint| SocketAddr::new(*hint, port)));
                    places.extend(found);
                }
            }
            if places.len() >= MOST_ADDRESSES {
                break;
            }
        }
        places
    }
}

/// Addresses of this machine, its link, or a network that is not the Internet (RFC 6890).
fn is_at_home(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

/// Names of this machine and of its link (RFC 6761, RFC 6762), of which no name server is asked.
fn is_local(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    ["localhost", "local", "onion"].contains(&last)
}

/// The addresses of both families: when those of one are there, the others are waited for a little.
async fn both_families(resolver: &dyn Resolver, host: &str, family: Family) -> Result<Vec<IpAddr>, NoAnswer> {
    let of_kind = async |kind| resolver.ask(host, kind).await.map(|answer| answer.addresses);
    match family {
        Family::V4 => return of_kind(Kind::A).await,
        Family::V6 => return of_kind(Kind::Aaaa).await,
        Family::Any => {}
    }
    let (mut v4, mut v6) = (pin!(of_kind(Kind::A)), pin!(of_kind(Kind::Aaaa)));
    let is_there = |found: &Result<Vec<IpAddr>, NoAnswer>| found.as_ref().is_ok_and(|all| !all.is_empty());
    let (v4, v6) = tokio::select! {
        found = &mut v6 => {
            let limit = sleep(if is_there(&found) { RESOLUTION_DELAY } else { Duration::MAX });
            tokio::select! { other = v4 => (other, found), () = limit => (Ok(Vec::new()), found) }
        }
        found = &mut v4 => {
            let limit = sleep(if is_there(&found) { RESOLUTION_DELAY } else { Duration::MAX });
            tokio::select! { other = v6 => (found, other), () = limit => (found, Ok(Vec::new())) }
        }
    };
    match (v4, v6) {
        (Err(problem), Err(_)) => Err(problem),
        (v4, v6) => {
            let mut all = v6.unwrap_or_default();
            all.extend(v4.unwrap_or_default());
            // Where there is no way, not first: the system's own answers are in such an order (RFC 6724).
            all.sort_by_key(|address| route::local_address(SocketAddr::new(*address, 443)).is_none());
            Ok(all)
        }
    }
}

fn without_repetitions(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let mut kept: Vec<SocketAddr> = Vec::with_capacity(addresses.len());
    for address in addresses {
        if !kept.contains(&address) {
            kept.push(address);
        }
    }
    kept
}
