//! Who speaks for both ends: when, how often and how far from the truth; and TLS for both that lets it.

use crate::frames::{KINDS, Speaker, Temper};
use crate::heap;
use crate::said::Said;
use godwit_base::{Rng, SeededRng};
use godwit_sim::tampering;
use godwit_transport::tls::deterministic;
use godwit_transport::tls::resumption::EarlySessions;
use godwit_wire::Side;
use godwit_wire::header::PacketType;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const ALPN: &[u8] = b"mutator";
/// Packets that two endpoints seal in a seed, at most. Those that go on for ever reach it, in virtual time or at one
/// instant.
const MOST_SEALED: u64 = 60_000;

/// What was done.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    /// Packets of both ends.
    pub(crate) sealed: u64,
    /// Those changed, by sender and type: Initial, 0-RTT, Handshake, 1-RTT.
    changed: [[u64; 4]; 2],
    made: [u64; KINDS],
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
        self.sealed += other.sealed;
        let theirs = other.changed.iter().flatten().chain(&other.made);
        for (mine, theirs) in self.changed.iter_mut().flatten().chain(&mut self.made).zip(theirs) {
            *mine += theirs;
        }
    }

    pub(crate) fn assert_everything_was_said(&self) {
        assert!(self.made.iter().all(|made| *made > 20), "frames of every kind: {self:?}");
        let [client, server] = self.changed;
        assert!(
            client.iter().all(|changed| *changed > 0),
            "in packets of every type by the client: {self:?}"
        );
        let zero_rtt = column(PacketType::ZeroRtt);
        let servers = server.iter().enumerate().filter(|(space, _)| *space != zero_rtt);
        assert!(servers.clone().all(|(_, changed)| *changed > 0), "and by the server: {self:?}");
    }
}

struct Middle {
    rng: SeededRng,
    /// By the client and by the server.
    said: [Said; 2],
    temper: Temper,
    /// Of a hundred packets of the client and of the server.
    percent: [u64; 2],
    /// The same before there are 1-RTT keys.
    percent_before: [u64; 2],
    counts: Counts,
}

thread_local! {
    static MIDDLE: RefCell<Middle> = RefCell::new(Middle {
        rng: SeededRng::new(0),
        said: Default::default(),
        temper: Temper::Gentle,
        percent: [0; 2],
        percent_before: [0; 2],
        counts: Counts::default(),
    });
}

/// Everything from now on follows from `seed`.
pub(crate) fn begin(seed: u64) {
    MIDDLE.with_borrow_mut(|middle| {
        middle.rng = SeededRng::new(seed);
        middle.counts = Counts::default();
    });
}

/// What was done since; nothing more is, and nothing remembered.
pub(crate) fn end() -> Counts {
    MIDDLE.with_borrow_mut(|middle| {
        middle.said = Default::default();
        middle.percent = [0; 2];
        middle.percent_before = [0; 2];
        middle.counts.clone()
    })
}

/// A connection begins: it is spoken for in another way than the one before.
pub(crate) fn next_connection() {
    MIDDLE.with_borrow_mut(|middle| {
        let rng = &mut middle.rng;
        middle.said = Default::default();
        middle.temper = if rng.below(3) == 0 { Temper::Reckless } else { Temper::Gentle };
        let often = [2, 5, 10, 25, 60, 100][rng.below(6) as usize];
        middle.percent = match rng.below(4) {
            0 => [often, 0],
            1 => [0, often],
            _ => [often, often],
        };
        let often = [0, 0, 0, 3, 10, 40][rng.below(6) as usize];
        middle.percent_before = [often, often];
    });
}

/// The middle sees what `sender` is about to send, and perhaps says something else.
pub(crate) fn speak(sender: Side, packet: PacketType, payload: &mut [u8]) {
    heap::look();
    MIDDLE.with_borrow_mut(|middle| {
        let counts = &mut middle.counts;
        counts.sealed += 1;
        assert!(counts.sealed < MOST_SEALED, "they never stop sending: {counts:?}");
        let who = usize::from(sender == Side::Server);
        let percent = if packet == PacketType::OneRtt { middle.percent } else { middle.percent_before };
        // What is early is said on top of a handshake that may well go wrong: it is worth more.
        let percent = if packet == PacketType::ZeroRtt { middle.percent } else { percent };
        if middle.rng.below(100) < percent[who] {
            counts.changed[who][column(packet)] += 1;
            let [client, server] = &mut middle.said;
            let (said, heard) = if who == 0 { (client, server) } else { (server, client) };
            Speaker {
                sender,
                packet,
                rng: &mut middle.rng,
                said,
                heard,
                temper: middle.temper,
                made: &mut counts.made,
            }
            .rewrite(payload);
        }
    });
}

/// The type of the packet with this header, which is not an Initial packet's.
fn type_of(header: &[u8]) -> PacketType {
    match header[0] {
        first if first & 0x80 == 0 => PacketType::OneRtt,
        // Version 1 (RFC 9000, section 17.2).
        first if first & 0x30 == 0x10 => PacketType::ZeroRtt,
        _ => PacketType::Handshake,
    }
}

/// Where packets of a type are counted.
fn column(packet: PacketType) -> usize {
    match packet {
        PacketType::Initial => 0,
        PacketType::ZeroRtt => 1,
        PacketType::Handshake => 2,
        _ => 3,
    }
}

/// Cipher suites live as long as the program: there is one provider for each side.
static PROVIDERS: LazyLock<[Arc<CryptoProvider>; 2]> = LazyLock::new(|| {
    [Side::Client, Side::Server].map(|sender| {
        let mut one = deterministic::client_config(&[ALPN]).crypto_provider().as_ref().clone();
        one.cipher_suites.truncate(1);
        let change: tampering::Change =
            Arc::new(move |header, payload| speak(sender, type_of(header), payload));
        Arc::new(tampering::provider(&one, &change))
    })
});

#[derive(Debug)]
struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(deterministic::NOW)))
    }
}

/// TLS of both roles, with 0-RTT.
pub(crate) fn configs() -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let [for_client, for_server] = PROVIDERS.clone();
    let mut roots = RootCertStore::empty();
    roots.add(deterministic::authority()).unwrap();
    let versions = &[&rustls::version::TLS13];
    let mut client = ClientConfig::builder_with_details(for_client, Arc::new(FixedTime))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.resumption = Resumption::disabled();
    client.alpn_protocols = vec![ALPN.to_vec()];
    client.enable_early_data = true;
    let mut server = ServerConfig::builder_with_details(for_server, Arc::new(FixedTime))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(deterministic::certificates(), deterministic::key())
        .unwrap();
    server.session_storage = Arc::new(EarlySessions::new(8));
    server.send_tls13_tickets = 1;
    server.max_early_data_size = u32::MAX;
    server.alpn_protocols = vec![ALPN.to_vec()];
    (Arc::new(client), Arc::new(server))
}
