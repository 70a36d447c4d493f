//! IP packets go from one TUN device to the other, each after its time or not at all.
//!
//! TCP and UDP of the same client port have links of the same random choices. Anything but TCP and UDP over
//! IPv4 is dropped.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use godwit_os::tun::TunDevice;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use crate::{Clock, DelayQueue, RelayCounters, VisitLink, VisitLinks, Way};

/// The largest IP packet that passes, in bytes.
const LARGEST: usize = 1500;
/// Packets taken from one device before the other one's turn.
const TURN: usize = 64;
/// Links kept at most; those of the visits that began first make room.
const MOST_LINKS: usize = 20_000;

/// A visit: the IP protocol and the client's port.
type Key = (u8, u16);

struct Packets {
    client: AsyncFd<TunDevice>,
    server: AsyncFd<TunDevice>,
    links: VisitLinks,
    clock: Clock,
    counters: Arc<RelayCounters>,
    visits: BTreeMap<Key, VisitLink>,
    due: DelayQueue<(Way, Vec<u8>)>,
}

/// A running relay on a thread of its own, so that what else the program does does not delay packets. It is stopped when
/// dropped.
#[derive(Debug)]
pub struct TunRelay {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TunRelay {
    /// Relays between the client's and the server's device.
    ///
    /// # Errors
    /// If there is no runtime or thread to be had.
    pub fn start(
        client: TunDevice,
        server: TunDevice,
        links: VisitLinks,
        counters: Arc<RelayCounters>,
    ) -> io::Result<TunRelay> {
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let body = move || {
            runtime.block_on(async {
                tokio::select! {
                    outcome = relay(client, server, links, counters) => if let Err(error) = outcome {
                        tracing::error!(%error, "the relay has failed");
                    },
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("relay".to_owned()).spawn(body)?;
        Ok(TunRelay { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for TunRelay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Relays until the future is dropped.
async fn relay(
    client: TunDevice,
    server: TunDevice,
    links: VisitLinks,
    counters: Arc<RelayCounters>,
) -> io::Result<()> {
    let (client, server) = (readable(client)?, readable(server)?);
    let (visits, due) = (BTreeMap::new(), DelayQueue::new());
    Packets { client, server, links, clock: Clock::start(), counters, visits, due }.run().await
}

#[expect(deprecated, reason = "its successor is unsafe; a device owns its one descriptor while it lives")]
fn readable(device: TunDevice) -> io::Result<AsyncFd<TunDevice>> {
    AsyncFd::with_interest(device, Interest::READABLE)
}

/// Waits for a packet and reads it.
async fn recv(device: &AsyncFd<TunDevice>, packet: &mut [u8]) -> io::Result<usize> {
    device.async_io(Interest::READABLE, |device| device.recv(packet)).await
}

impl Packets {
    async fn run(mut self) -> io::Result<()> {
        let (mut up, mut down) = (vec![0; LARGEST], vec![0; LARGEST]);
        loop {
            tokio::select! {
                biased;
                () = self.clock.sleep_until(self.due.next()) => self.deliver(),
                read = recv(&self.client, &mut up) => self.turn(Way::Up, read?, &mut up),
                read = recv(&self.server, &mut down) => self.turn(Way::Down, read?, &mut down),
            }
        }
    }

    /// Takes one packet that was read, and what else waits.
    fn turn(&mut self, way: Way, read: usize, buffer: &mut [u8]) {
        let mut len = read;
        for _ in 0..TURN {
            self.pass(way, buffer.get(..len).unwrap_or_default());
            let device = if way == Way::Up { &self.client } else { &self.server };
            match device.get_ref().recv(buffer) {
                Ok(read) => len = read,
                Err(_) => return,
            }
        }
    }

    fn pass(&mut self, way: Way, packet: &[u8]) {
        let Some(key) = visit_of(way, packet) else { return };
        let now = self.clock.now();
        if !self.visits.contains_key(&key) && self.visits.len() >= MOST_LINKS {
            self.visits.pop_first();
        }
        let link = self.visits.entry(key).or_insert_with(|| self.links.of(key.1, now));
        if let Some(at) = link.send(way, now, packet.len(), &self.counters) {
            self.due.push(at, (way, packet.to_vec()));
        }
    }

    fn deliver(&mut self) {
        let now = self.clock.now();
        while let Some((at, (way, packet))) = self.due.pop(now) {
            self.counters.on_delivery(at, now);
            // A device that takes no more has lost the packet.
            let _ = match way {
                Way::Up => self.server.get_ref().send(&packet),
                Way::Down => self.client.get_ref().send(&packet),
            };
        }
    }
}

/// The visit that an IPv4 packet belongs to.
fn visit_of(way: Way, packet: &[u8]) -> Option<Key> {
    const TCP_AND_UDP: [u8; 2] = [6, 17];
    let first = *packet.first()?;
    let protocol = *packet.get(9)?;
    if first >> 4 != 4 || !TCP_AND_UDP.contains(&protocol) {
        return None;
    }
    let header = usize::from(first & 0xf) * 4;
    let client_port = if way == Way::Up { header } else { header.saturating_add(2) };
    let port = packet.get(client_port..client_port.saturating_add(2))?;
    Some((protocol, u16::from_be_bytes(port.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_told_apart_by_the_clients_port() {
        let mut packet = vec![0; 40];
        (packet[0], packet[9]) = (0x46, 6);
        packet[24..28].copy_from_slice(&[0x27, 0x10, 0x01, 0xbb]);
        assert_eq!(visit_of(Way::Up, &packet), Some((6, 10_000)));
        assert_eq!(visit_of(Way::Down, &packet), Some((6, 443)));
        packet[9] = 1;
        assert_eq!(visit_of(Way::Up, &packet), None);
        (packet[0], packet[9]) = (0x60, 17);
        assert_eq!(visit_of(Way::Up, &packet), None);
        assert_eq!(visit_of(Way::Up, &[]), None);
        assert_eq!(visit_of(Way::Up, &[0x4f; 21]), None);
    }
}
