//! To whom HTTP/3 is advertised, and when.
//!
//! A response over TCP carries `Alt-Svc` (RFC 7838) if all of this holds: the site wants it for this user
//! ([`users`]), HTTP/3 answered at this server's own port when it was last tried ([`probe`]), and the handshakes that
//! clients begin there are also finished ([`health`]). When the last two no longer hold, `Alt-Svc: clear` takes back
//! what was said before. Until the first probe has passed nothing is said at all.
//!
//! [`evidence`] remembers for a while who was told and who tried: why somebody came by TCP is told from that.

pub mod dns;
pub(crate) mod evidence;
mod health;
pub(crate) mod probe;
mod users;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use godwit::http3::ServerEvent;
use godwit_report::record::{Arm, WhyNotH3};
use http::{HeaderMap, HeaderValue};

use super::client::Client;
use super::metrics::AdvertisementState;
use super::settings;
use evidence::{Evidence, Fact};
use godwit_text::instant_now;
use health::{Health, State};
pub(crate) use users::{User, UserKey};

/// What is advertised at all ports of the program.
#[derive(Debug)]
pub(crate) struct Advertiser {
    ports: Vec<Port>,
    key: UserKey,
    evidence: Evidence,
    /// Addresses that probes are sent from.
    own: Mutex<Vec<IpAddr>>,
    begun: Instant,
}

/// A UDP port with HTTP/3.
#[derive(Debug)]
struct Port {
    number: u16,
    health: Mutex<Health>,
    /// What follows from the health, for reading at every request.
    state: AtomicU8,
}

/// What one site says of HTTP/3.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    share: settings::Advertise,
    port: Option<u16>,
    age: Duration,
    /// Users to whom nothing is to be said may have been told before.
    lowered: bool,
    /// The header for the port that was asked for first.
    value: OnceLock<(u16, HeaderValue)>,
}

/// What one user is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The user, where the choice depends on that or somebody wants to know.
    pub(crate) user: Option<User>,
    /// The side of the roll-out, if there is one.
    pub(crate) arm: Option<Arm>,
    /// The user is to know of HTTP/3.
    wanted: bool,
}

impl Policy {
    /// As configured; `lowered` if the site once advertised to more users than now.
    pub(crate) fn new(site: &settings::Site, lowered: bool) -> Policy {
        Policy {
            share: site.advertise,
            port: site.advertise_port.map(std::num::NonZeroU16::get),
            age: site.advertise_age,
            lowered,
            value: OnceLock::new(),
        }
    }

    /// Part of the users that are told, from 0 to 1.
    pub(crate) fn part(&self) -> f64 {
        match self.share {
            settings::Advertise::Nobody => 0.0,
            settings::Advertise::Percent(percent) => percent / 100.0,
            settings::Advertise::All => 1.0,
        }
    }

    /// `h3=":4433"; ma=86400`.
    fn value(&self, port: u16) -> HeaderValue {
        match self.value.get_or_init(|| (port, self.make(port))) {
            (known, value) if *known == port => value.clone(),
            _ => self.make(port),
        }
    }

    fn make(&self, port: u16) -> HeaderValue {
        let (port, age) = (self.port.unwrap_or(port), self.age.as_secs());
        HeaderValue::try_from(format!("h3=\":{port}\"; ma={age}"))
            .unwrap_or_else(|_| HeaderValue::from_static("clear"))
    }
}

impl Advertiser {
    /// Nothing is said at these ports before a probe has passed.
    pub(crate) fn new(ports: impl IntoIterator<Item = u16>, key: UserKey) -> Advertiser {
        let port =
            |number| Port { number, health: Mutex::default(), state: AtomicU8::new(State::Unproved as u8) };
        Advertiser {
            ports: ports.into_iter().map(port).collect(),
            evidence: Evidence::new(),
            own: Mutex::default(),
            key,
            begun: instant_now(),
        }
    }

    /// What the sender of a request is to be told. `want_user`: somebody wants to know who that is in any case.
    pub(crate) fn choose(
        &self,
        policy: &Policy,
        client: &Client,
        headers: &HeaderMap,
        want_user: bool,
    ) -> Choice {
        let part = match policy.share {
            settings::Advertise::Percent(_) => Some(policy.part()),
            _ => None,
        };
        let user = (want_user || part.is_some()).then(|| self.key.user(client.remote().ip(), headers));
        let arm = part.zip(user).map(|(part, user)| if user.is_in(part) { Arm::On } else { Arm::Off });
        let wanted = match policy.share {
            settings::Advertise::Nobody => false,
            settings::Advertise::Percent(_) => arm == Some(Arm::On),
            settings::Advertise::All => true,
        };
        Choice { user, arm, wanted }
    }

    /// The `Alt-Svc` header of a response over TCP, if it is to have one.
    pub(crate) fn alt_svc(&self, policy: &Policy, choice: Choice, client: &Client) -> Option<HeaderValue> {
        let port = client.local().port();
        let clear = HeaderValue::from_static("clear");
        match (choice.wanted, self.state(port)) {
            (true, State::Open) => Some(policy.value(port)),
            (true, State::Withdrawn) => Some(clear),
            (false, _) if policy.lowered => Some(clear),
            _ => None,
        }
    }

    /// Notes that the client is being told of HTTP/3.
    pub(crate) fn told(&self, choice: Choice, client: &Client) {
        let now = self.begun.elapsed();
        self.evidence.note(self.key.address(client.remote().ip()), Fact::Told, now);
        if let Some(user) = choice.user.filter(|user| user.is_certain()) {
            self.evidence.note(user.hash(), Fact::Told, now);
        }
    }

    /// Why a request came by TCP, as far as that is known.
    pub(crate) fn why_not_h3(&self, policy: &Policy, choice: Choice, client: &Client) -> Option<WhyNotH3> {
        if !choice.wanted || self.state(client.local().port()) != State::Open {
            return Some(WhyNotH3::NotAdvertised);
        }
        let address = self.key.address(client.remote().ip());
        let user = choice.user.filter(|user| user.is_certain()).map(User::hash);
        self.evidence.why(address, user, policy.age, self.begun.elapsed())
    }

    /// Notes that a user's request came over HTTP/3.
    pub(crate) fn used(&self, choice: Choice) {
        if let Some(user) = choice.user.filter(|user| user.is_certain()) {
            self.evidence.note(user.hash(), Fact::Told, self.begun.elapsed());
        }
    }

    /// Takes in what the HTTP/3 server at a port tells.
    pub(crate) fn on_quic(&self, port: u16, event: &ServerEvent) {
        let (remote, fact) = match event {
            ServerEvent::HandshakeBegun { remote, .. } | ServerEvent::Retried { remote, .. } => {
                (remote, Fact::Attempt)
            }
            ServerEvent::HandshakeFinished { remote, .. } => (remote, Fact::Finished),
            ServerEvent::HandshakeFailed { remote, .. } => return self.on_handshake(port, *remote, false),
            _ => return,
        };
        self.evidence.note(self.key.address(remote.ip()), fact, self.begun.elapsed());
        if fact == Fact::Finished {
            self.on_handshake(port, *remote, true);
        }
    }

    fn on_handshake(&self, port: u16, remote: SocketAddr, finished: bool) {
        // Probes come from this machine, and prove nothing about clients.
        let address = remote.ip().to_canonical();
        if !address.is_loopback() && !lock(&self.own).contains(&address) {
            self.change(port, |health, now| health.on_handshake(now, finished));
        }
    }

    /// Names addresses that probes are sent from: handshakes from there say nothing about clients.
    fn own_addresses(&self, addresses: impl IntoIterator<Item = IpAddr>) {
        let mut own = lock(&self.own);
        for address in addresses {
            if !own.contains(&address) {
                own.push(address);
            }
        }
    }

    /// A probe has passed at a port, or failed.
    pub(crate) fn on_probe(&self, port: u16, passed: bool) {
        self.change(port, |health, now| health.on_probe(now, passed));
    }

    /// How things stand at each port.
    pub(crate) fn states(&self) -> Vec<AdvertisementState> {
        let state = |port: &Port| {
            let reachable = lock(&port.health).is_reachable();
            AdvertisementState { port: port.number, reachable, open: self.state(port.number) == State::Open }
        };
        self.ports.iter().map(state).collect()
    }

    fn state(&self, port: u16) -> State {
        let port = self.ports.iter().find(|it| it.number == port);
        port.map_or(State::Unproved, |port| State::of(port.state.load(Ordering::Relaxed)))
    }

    fn change(&self, port: u16, change: impl FnOnce(&mut Health, Duration)) {
        let Some(port) = self.ports.iter().find(|it| it.number == port) else { return };
        let now = self.begun.elapsed();
        let mut health = lock(&port.health);
        change(&mut health, now);
        let (before, after) = (State::of(port.state.load(Ordering::Relaxed)), health.state(now));
        port.state.store(after as u8, Ordering::Relaxed);
        drop(health);
        match (before, after) {
            (State::Open, State::Withdrawn) => {
                tracing::warn!(port = port.number, "HTTP/3 is no longer advertised: it fails");
            }
            (before, State::Open) if before != State::Open => {
                tracing::info!(port = port.number, "HTTP/3 is advertised");
            }
            _ => {}
        }
    }
}

/// Shared by everything that serves.
pub(crate) type SharedAdvertiser = Arc<Advertiser>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
