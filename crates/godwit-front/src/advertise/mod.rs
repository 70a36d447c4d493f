//! To whom HTTP/3 is advertised, and when.
//!
//! A response over TCP carries `Alt-Svc` (RFC 7838) if all of this holds: the site wants it for this user
//! ([`users`]), HTTP/3 answered at this server's own port when it was last tried ([`probe`], [`health`]), and it does
//! not fail from the client's network ([`networks`]). When the last two no longer hold, `Alt-Svc: clear` takes back
//! what was said before. Until the first probe has passed nothing is said at all.
//!
//! Nobody off a client's path can have it told anything else: what comes from an address that may be forged counts only
//! together with what the client itself does over TCP, and for its own network alone.
//!
//! [`evidence`] remembers for a while who was told and who tried: why somebody came by TCP is told from that.

pub mod dns;
pub(crate) mod evidence;
mod health;
mod networks;
pub(crate) mod probe;
mod users;

use std::net::IpAddr;
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
use networks::{Handshake, Networks};
pub(crate) use users::{User, UserKey};

/// The TLS alerts with which a client says that it does not accept the certificate (RFC 8446 section 6.2):
/// bad_certificate, unsupported_certificate, certificate_revoked, certificate_expired, certificate_unknown, unknown_ca,
/// bad_certificate_status_response.
const ABOUT_CERTIFICATES: [u8; 7] = [42, 43, 44, 45, 46, 48, 113];

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
    networks: Mutex<Networks>,
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

impl Port {
    fn state(&self) -> State {
        State::of(self.state.load(Ordering::Relaxed))
    }
}

impl Advertiser {
    /// Nothing is said at these ports before a probe has passed.
    pub(crate) fn new(ports: impl IntoIterator<Item = u16>, key: UserKey) -> Advertiser {
        let port = |number| Port {
            number,
            health: Mutex::default(),
            networks: Mutex::default(),
            state: AtomicU8::new(State::Unproved as u8),
        };
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
        match (choice.wanted, self.state_for(port, client.remote().ip())) {
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

    /// Why a request came by TCP, as far as that is known. If because an attempt of HTTP/3 has failed, that counts.
    pub(crate) fn why_not_h3(&self, policy: &Policy, choice: Choice, client: &Client) -> Option<WhyNotH3> {
        let (port, address) = (client.local().port(), client.remote().ip());
        if !choice.wanted || self.state_for(port, address) != State::Open {
            return Some(WhyNotH3::NotAdvertised);
        }
        self.reason(policy.age, choice.user, port, address)
    }

    fn reason(&self, age: Duration, user: Option<User>, port: u16, address: IpAddr) -> Option<WhyNotH3> {
        let (hash, now) = (self.key.address(address), self.begun.elapsed());
        let user = user.filter(|user| user.is_certain()).map(User::hash);
        let why = self.evidence.why(hash, user, age, now);
        if why == Some(WhyNotH3::AttemptFailed) && self.evidence.take_failure(hash, now) {
            self.on_handshake(port, address, Handshake::Unanswered);
        }
        why
    }

    /// Notes that a user's request came over HTTP/3.
    pub(crate) fn used(&self, choice: Choice) {
        if let Some(user) = choice.user.filter(|user| user.is_certain()) {
            self.evidence.note(user.hash(), Fact::Told, self.begun.elapsed());
        }
    }

    /// Takes in what the HTTP/3 server at a port tells.
    pub(crate) fn on_quic(&self, port: u16, event: &ServerEvent) {
        match event {
            ServerEvent::HandshakeBegun { remote, .. } | ServerEvent::Retried { remote, .. } => {
                self.on_attempt(remote.ip());
            }
            ServerEvent::HandshakeFinished { remote, .. } => self.on_finished(port, remote.ip()),
            ServerEvent::HandshakeFailed { remote, validated, alert, .. } => {
                self.on_failed(port, remote.ip(), *validated, *alert);
            }
            _ => {}
        }
    }

    fn on_attempt(&self, address: IpAddr) {
        self.evidence.note(self.key.address(address), Fact::Attempt, self.begun.elapsed());
    }

    fn on_finished(&self, port: u16, address: IpAddr) {
        self.evidence.note(self.key.address(address), Fact::Finished, self.begun.elapsed());
        self.on_handshake(port, address, Handshake::Finished);
    }

    fn on_failed(&self, port: u16, address: IpAddr, validated: bool, alert: Option<u8>) {
        // Else anybody could say so in anybody's name. Who has read the certificate and does not like it has been reached.
        if validated && !alert.is_some_and(|alert| ABOUT_CERTIFICATES.contains(&alert)) {
            self.on_handshake(port, address, Handshake::Failed);
        }
    }

    fn on_handshake(&self, port: u16, address: IpAddr, outcome: Handshake) {
        // Probes come from this machine, and prove nothing about clients.
        let address = address.to_canonical();
        if address.is_loopback() || lock(&self.own).contains(&address) {
            return;
        }
        if let Some(port) = self.port(port) {
            lock(&port.networks).on_handshake(address, self.begun.elapsed(), outcome);
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
        let Some(port) = self.port(port) else { return };
        let mut health = lock(&port.health);
        health.on_probe(passed);
        let (before, after) = (port.state(), health.state());
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

    /// How things stand at each port.
    pub(crate) fn states(&self) -> Vec<AdvertisementState> {
        let state = |port: &Port| AdvertisementState {
            port: port.number,
            reachable: lock(&port.health).is_reachable(),
            open: port.state() == State::Open,
            failing_networks: lock(&port.networks).failing(self.begun.elapsed()),
        };
        self.ports.iter().map(state).collect()
    }

    /// What whoever is at this address is to be told at this port.
    fn state_for(&self, port: u16, address: IpAddr) -> State {
        let Some(port) = self.port(port) else { return State::Unproved };
        match port.state() {
            State::Open if lock(&port.networks).fails(address, self.begun.elapsed()) => State::Withdrawn,
            state => state,
        }
    }

    fn port(&self, number: u16) -> Option<&Port> {
        self.ports.iter().find(|port| port.number == number)
    }
}

/// Shared by everything that serves.
pub(crate) type SharedAdvertiser = Arc<Advertiser>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: u16 = 443;
    const DAY: Duration = Duration::from_secs(86_400);

    fn advertiser() -> Advertiser {
        let advertiser = Advertiser::new([PORT], UserKey::random());
        advertiser.on_probe(PORT, true);
        advertiser
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    impl Advertiser {
        /// A client was told over TCP, an attempt in its name has led to nothing, and it comes by TCP again.
        fn comes_back(&mut self, address: IpAddr) -> Option<WhyNotH3> {
            self.wait(1);
            self.evidence.note(self.key.address(address), Fact::Told, self.begun.elapsed());
            self.on_attempt(address);
            self.on_failed(PORT, address, false, None);
            self.wait(60);
            self.reason(DAY, None, PORT, address)
        }

        fn wait(&mut self, seconds: u64) {
            self.begun = self.begun.checked_sub(Duration::from_secs(seconds)).unwrap();
        }

        fn tells(&self, address: &str) -> bool {
            self.state_for(PORT, ip(address)) == State::Open
        }
    }

    #[test]
    fn strangers_switch_nothing_off() {
        let advertiser = advertiser();
        for host in 0..=255 {
            for _ in 0..10 {
                let forged = IpAddr::from([192, 0, 2, host]);
                advertiser.on_attempt(forged);
                advertiser.on_failed(PORT, forged, false, None);
            }
        }
        assert!(advertiser.tells("198.51.100.1") && advertiser.tells("192.0.2.7"));
        assert_eq!(advertiser.states()[0].failing_networks, 0);
    }

    #[test]
    fn a_network_from_which_it_fails_is_not_told_and_others_are() {
        let mut advertiser = advertiser();
        for host in 1..=5 {
            assert!(advertiser.tells("192.0.2.7"));
            let address = IpAddr::from([192, 0, 2, host]);
            assert_eq!(advertiser.comes_back(address), Some(WhyNotH3::AttemptFailed));
        }
        assert!(!advertiser.tells("192.0.2.7") && advertiser.tells("198.51.100.1"));
        assert_eq!(advertiser.states()[0].failing_networks, 1);
        for host in 1..=5 {
            advertiser.on_failed(PORT, IpAddr::from([198, 51, 100, host]), true, None);
        }
        assert!(!advertiser.tells("198.51.100.1"));
        assert!(advertiser.states()[0].open, "others are told");
    }

    #[test]
    fn one_host_switches_off_its_own_alone() {
        let mut advertiser = advertiser();
        for _ in 0..5 {
            assert!(advertiser.tells("192.0.2.1"));
            advertiser.comes_back(ip("192.0.2.1"));
            (0..100).for_each(|_| advertiser.on_failed(PORT, ip("192.0.2.1"), true, None));
        }
        assert!(!advertiser.tells("192.0.2.1") && advertiser.tells("192.0.2.7"));
    }

    #[test]
    fn who_refuses_the_certificate_says_nothing_of_the_network() {
        let advertiser = advertiser();
        for host in 0..=255 {
            let unknown_ca = Some(48);
            advertiser.on_failed(PORT, IpAddr::from([192, 0, 2, host]), true, unknown_ca);
        }
        assert!(advertiser.tells("192.0.2.1"));
    }

    #[test]
    fn packets_in_others_names_withdraw_nothing_from_where_it_works() {
        let mut advertiser = advertiser();
        advertiser.on_finished(PORT, ip("192.0.2.200"));
        for host in 0..15 {
            advertiser.comes_back(IpAddr::from([192, 0, 2, host]));
        }
        assert!(advertiser.tells("192.0.2.7"));
    }

    #[test]
    fn this_machine_says_nothing_of_clients() {
        let advertiser = advertiser();
        advertiser.own_addresses([ip("192.0.2.1")]);
        for own in ["192.0.2.1", "127.0.0.1", "::ffff:127.0.0.1"] {
            (0..10).for_each(|_| advertiser.on_failed(PORT, ip(own), true, None));
            assert!(advertiser.tells(own), "{own}");
        }
    }
}
