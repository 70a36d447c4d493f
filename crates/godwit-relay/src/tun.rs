//! A router between two TUN devices: each IPv4 packet arrives at the other one after its time, or not at all.
//!
//! One thread does everything. It sleeps until a packet comes or one is due, but not for the last moment, in which it looks
//! at the clock again and again: what wakes a sleeper takes about as long. A packet that wakes the thread is taken to have
//! come earlier by what waking takes on this machine, which is measured at the beginning. Packets are as large as the devices' MTU, never
//! larger: these leave no segmentation to the reader. Other packets than those of IPv4 are dropped, uncounted: what the system
//! says over IPv6 of its own accord is nobody's.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use godwit_base::Time;
use godwit_link::Delivery;
use godwit_os::tun::TunDevice;
use godwit_os::urgency;
use nix::poll::{PollFd, PollFlags, ppoll};

use crate::{Clock, DelayQueue, Links, Packet, RelayCounters, Way, ip, waking};

/// The largest IP packet that passes, in bytes.
const LARGEST: usize = 1500;
/// Packets taken from one device before the other one's turn.
const TURN: usize = 64;
/// Buffers kept for packets that come.
const MOST_SPARE: usize = 4096;
/// The last moment before something is due, which is not slept through.
const MOMENT: Duration = Duration::from_micros(80);
/// Deliveries that follow each other faster than this are made in batches, with a rest in between.
const BATCH: Duration = Duration::from_micros(100);
const REST: Duration = Duration::from_micros(30);
/// The level of the router's thread among those that run before others: above whoever sends through it.
const URGENCY: u8 = 2;
/// The longest sleep: this often the router looks whether it is still wanted.
const NAP: Duration = Duration::from_millis(50);

/// A running router on a thread of its own, so that what else the program does does not delay packets: where that is
/// permitted, it runs before all other threads of the machine. It is stopped when dropped.
#[derive(Debug)]
pub struct TunRelay {
    wanted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TunRelay {
    /// Routes between the client's and the server's device, over these links.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(
        client: TunDevice,
        server: TunDevice,
        links: impl Links,
        counters: Arc<RelayCounters>,
    ) -> io::Result<TunRelay> {
        let wanted = Arc::new(AtomicBool::new(true));
        let still_wanted = Arc::clone(&wanted);
        let body = move || {
            // An ordinary user's router is an ordinary thread.
            let _ = urgency::run_before_others(URGENCY);
            let mut router = Router {
                client,
                server,
                links,
                clock: Clock::start(),
                counters,
                due: DelayQueue::new(),
                delivered: Time::ZERO,
                spare: Vec::new(),
                waking: waking::typical(),
                asleep: None,
                told: Time::ZERO,
            };
            if let Err(error) = router.run(&still_wanted) {
                tracing::error!(%error, "the router has failed");
            }
        };
        let thread = std::thread::Builder::new().name("router".to_owned()).spawn(body)?;
        Ok(TunRelay { wanted, thread: Some(thread) })
    }
}

impl Drop for TunRelay {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A packet under way. The buffer is as long as any packet may be.
struct UnderWay {
    way: Way,
    bytes: usize,
    buffer: Vec<u8>,
}

struct Router<L> {
    client: TunDevice,
    server: TunDevice,
    links: L,
    clock: Clock,
    counters: Arc<RelayCounters>,
    due: DelayQueue<UnderWay>,
    /// When something was delivered last.
    delivered: Time,
    spare: Vec<Vec<u8>>,
    /// How long it takes to be woken.
    waking: Duration,
    /// Since when the thread slept that was woken just now.
    asleep: Option<Time>,
    /// The time that the links were told last.
    told: Time,
}

impl<L: Links> Router<L> {
    fn run(&mut self, wanted: &AtomicBool) -> io::Result<()> {
        while wanted.load(Ordering::Relaxed) {
            self.deliver();
            let came = [Way::Up, Way::Down].map(|way| self.take_in(way));
            self.asleep = None;
            if came == [false, false] {
                self.sleep()?;
            }
        }
        Ok(())
    }

    /// Sleeps until a packet comes, or the moment before one is due.
    fn sleep(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let left = self.due.next().map(|at| at.saturating_since(now));
        let mut nap = left.map_or(NAP, |left| left.saturating_sub(MOMENT).min(NAP));
        if nap.is_zero() {
            if now.saturating_since(self.delivered) > BATCH {
                std::hint::spin_loop();
                return Ok(());
            }
            nap = REST;
        }
        let mut devices =
            [&self.client, &self.server].map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN));
        match ppoll(&mut devices, Some(nap.into()), None) {
            Ok(ready) => self.asleep = (ready > 0).then_some(now),
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Takes what waits at a device, up to a turn of it, and says whether there was anything.
    fn take_in(&mut self, way: Way) -> bool {
        for taken in 0..TURN {
            let mut buffer = self.spare.pop().unwrap_or_else(|| vec![0; LARGEST]);
            let device = if way == Way::Up { &self.client } else { &self.server };
            let Ok(len) = device.recv(&mut buffer) else {
                self.give_back(buffer);
                return taken > 0;
            };
            match ip::read(way, buffer.get(..len).unwrap_or_default()) {
                Some(packet) => self.pass(packet, buffer),
                None => self.give_back(buffer),
            }
        }
        true
    }

    /// When a packet came that is read now.
    fn came(&mut self) -> Time {
        let now = self.clock.now();
        let came = match self.asleep {
            Some(since) if now.saturating_since(since) > self.waking => now - self.waking,
            Some(since) => since,
            None => now,
        };
        self.told = came.max(self.told);
        self.told
    }

    fn pass(&mut self, packet: Packet, mut buffer: Vec<u8>) {
        let came = self.came();
        let outcome = self.links.send(packet, came);
        self.counters.packets.fetch_add(1, Ordering::Relaxed);
        let mut deliveries = outcome.deliveries();
        let Some(first) = deliveries.next() else {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            return self.give_back(buffer);
        };
        if first.ecn != packet.ecn {
            ip::mark(&mut buffer, first.ecn);
        }
        let copy = deliveries.next().map(|copy| (copy, buffer.clone()));
        self.push(packet, first, buffer);
        if let Some((copy, buffer)) = copy {
            self.push(packet, copy, buffer);
        }
    }

    fn push(&mut self, packet: Packet, delivery: Delivery, mut buffer: Vec<u8>) {
        if let Some(corruption) = delivery.corruption {
            corruption.apply(buffer.get_mut(..packet.bytes).unwrap_or_default());
        }
        self.due.push(delivery.at, UnderWay { way: packet.way, bytes: packet.bytes, buffer });
    }

    /// Delivers what is due.
    fn deliver(&mut self) {
        let mut now = self.clock.now();
        while let Some((at, packet)) = self.due.pop(now) {
            self.counters.on_delivery(at, now);
            let device = if packet.way == Way::Up { &self.server } else { &self.client };
            // A device that takes no more has lost the packet.
            let _ = device.send(packet.buffer.get(..packet.bytes).unwrap_or_default());
            self.give_back(packet.buffer);
            self.delivered = now;
            now = self.clock.now();
        }
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < MOST_SPARE {
            self.spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::sync::Mutex;
    use std::time::Instant;

    use godwit_link::{DuplexConfig, LinkConfig, Outcome};
    use godwit_os::namespaces::{self, Network};

    use super::*;
    use crate::OneLink;
    use crate::alone::cannot_be_tested;

    /// Remembers the sizes of all packets.
    struct Watched(OneLink, Arc<Mutex<Vec<usize>>>);

    impl Links for Watched {
        fn send(&mut self, packet: Packet, now: Time) -> Outcome {
            self.1.lock().unwrap().push(packet.bytes);
            self.0.send(packet, now)
        }
    }

    /// A megabyte over the kernel's TCP, where the system permits that: every packet is one of an Ethernet, and nothing is
    /// faster than the link.
    #[test]
    fn what_crosses_is_no_larger_and_no_faster_than_the_link_permits() {
        const DELAY: Duration = Duration::from_millis(10);
        let [server, client] = [Ipv4Addr::new(10, 79, 0, 1), Ipv4Addr::new(10, 79, 0, 2)];
        let crossing = move || {
            let home = Network::current().unwrap();
            if let Err(error) = namespaces::enter_network() {
                return cannot_be_tested(error);
            }
            let server_device = match TunDevice::open("godwit-test", server, 24, 1500) {
                Ok(device) => device,
                Err(error) => return cannot_be_tested(error),
            };
            let listener = TcpListener::bind((server, 4000)).unwrap();
            namespaces::enter_network().unwrap();
            let client_device = TunDevice::open("godwit-test", client, 24, 1500).unwrap();
            let (sizes, counters) = (Arc::<Mutex<Vec<usize>>>::default(), Arc::<RelayCounters>::default());
            let link = DuplexConfig::symmetric(LinkConfig::delayed(DELAY));
            let links = Watched(OneLink::new(link, 1), Arc::clone(&sizes));
            let relay = TunRelay::start(client_device, server_device, links, Arc::clone(&counters)).unwrap();
            #[expect(
                clippy::disallowed_methods,
                reason = "that real packets take their time is what is tested"
            )]
            let began = Instant::now();
            let mut sender = TcpStream::connect((server, 4000)).unwrap();
            let (mut receiver, _) = listener.accept().unwrap();
            let sending = std::thread::spawn(move || sender.write_all(&[7; 1 << 20]).unwrap());
            let mut received = Vec::new();
            receiver.read_to_end(&mut received).unwrap();
            sending.join().unwrap();
            assert!(began.elapsed() >= 3 * DELAY, "SYN, SYN and ACK, data: {:?}", began.elapsed());
            drop(relay);
            let sizes = sizes.lock().unwrap();
            assert_eq!((received.len(), sizes.iter().max()), (1 << 20, Some(&1500)));
            let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
            assert_eq!((of(&counters.packets), of(&counters.dropped)), (sizes.len() as u64, 0));
            assert!(counters.lateness(1000) > Duration::ZERO);
            home.enter().unwrap();
        };
        std::thread::spawn(crossing).join().unwrap();
    }
}
