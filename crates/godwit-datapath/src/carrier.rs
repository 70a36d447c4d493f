//! Data paths that carry one datagram after the other: a program that brings one writes two short functions.
//!
//! A [`Carrier`] knows datagrams and addresses. Runs, batches, progress and counters, which make sockets of the
//! operating system fast, are seen to here: [`Carried`] is the [`Datapath`] over it, [`carried_by`] the factory.

use crate::{Capabilities, Counters, Datapath, DatapathFactory, Progress, Received, Sent};
use godwit_base::{Ecn, RecvBatch, RecvMeta, SendBatch, SocketId};
use std::net::{SocketAddr, UdpSocket};
use std::task::Waker;
use std::{fmt, io};

/// What carries datagrams, one by one. Nothing of it may block.
pub trait Carrier: Send + fmt::Debug {
    /// Sends a datagram to `remote`.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where there is no room for it now: it is offered again. With any other error it
    /// counts as lost.
    fn send(&mut self, datagram: &[u8], remote: SocketAddr) -> io::Result<()>;

    /// Writes the datagram that comes next into `buffer`; its length, and where it comes from. One of 0 bytes is
    /// passed over.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where there is none. After [`io::ErrorKind::ConnectionReset`] or
    /// [`io::ErrorKind::ConnectionRefused`], with which systems report on datagrams sent earlier, it is asked again;
    /// any other error ends the endpoint.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Where it can be reached. Asked once.
    ///
    /// # Errors
    /// If it is not known: then nothing comes of the endpoint.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// The socket to wait for, if there is one: readable when there is something to receive.
    fn socket(&self) -> Option<&UdpSocket> {
        None
    }

    /// Where there is no socket to wait for: has `waker` woken when something can be received.
    fn wake_on_arrival(&self, waker: &Waker) {
        let _ = waker;
    }
}

/// The data path over a [`Carrier`].
#[derive(Debug)]
pub struct Carried<C> {
    id: SocketId,
    local: SocketAddr,
    carrier: C,
    counters: Counters,
}

impl<C: Carrier> Carried<C> {
    /// Datagrams go by way of `carrier`; the data path has the number `id`.
    ///
    /// # Errors
    /// If the carrier does not know its address.
    pub fn new(id: SocketId, carrier: C) -> io::Result<Self> {
        Ok(Carried { id, local: carrier.local_addr()?, carrier, counters: Counters::default() })
    }

    /// What the next free slot has been filled with; `None` if there is nothing.
    fn receive_into(&mut self, slot: &mut [u8]) -> io::Result<Option<RecvMeta>> {
        loop {
            match self.carrier.receive(slot) {
                Ok((0, _)) => {}
                Ok((len, remote)) => {
                    let socket = self.id;
                    let meta = RecvMeta { socket, local: None, remote, ecn: Ecn::NotEct, len, stride: len };
                    return Ok(Some(meta));
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

impl<C: Carrier> Datapath for Carried<C> {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        let before = batch.len();
        while let Some(slot) = batch.free_slots().first_mut() {
            let Some(meta) = self.receive_into(slot)? else {
                return Ok(Received { runs: batch.len() - before, more: false });
            };
            batch.push(meta);
            self.counters.runs_received += 1;
            self.counters.datagrams_received += 1;
        }
        Ok(Received { runs: batch.len() - before, more: true })
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        for piece in crate::pieces(batch, *progress, self.id, |_| 1) {
            match self.carrier.send(piece.payload, piece.meta.remote) {
                Ok(()) => self.counters.datagrams_sent += 1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.counters.send_blocked += 1;
                    return Ok(Sent::Blocked);
                }
                Err(_) => self.counters.refused += 1,
            }
            progress.advance(&piece);
        }
        Ok(Sent::Done)
    }

    fn id(&self) -> SocketId {
        self.id
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new("carried")
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn socket(&self) -> Option<&UdpSocket> {
        self.carrier.socket()
    }

    fn wake_on_arrival(&self, waker: &Waker) {
        self.carrier.wake_on_arrival(waker);
    }
}

type Make = dyn Fn(SocketId, SocketAddr) -> io::Result<Box<dyn Datapath>> + Send + Sync;

/// Makes a [`Carrier`] for each address that an endpoint is bound to.
pub struct CarrierFactory(Box<Make>);

impl CarrierFactory {
    /// Asks `make` for the carrier of each address. Address and port may be unspecified.
    pub fn new<C: Carrier + 'static>(
        make: impl Fn(SocketAddr) -> io::Result<C> + Send + Sync + 'static,
    ) -> Self {
        CarrierFactory(Box::new(move |id, addr| Ok(Box::new(Carried::new(id, make(addr)?)?))))
    }
}

impl DatapathFactory for CarrierFactory {
    fn bind(&self, id: SocketId, addr: SocketAddr) -> io::Result<Box<dyn Datapath>> {
        (self.0)(id, addr)
    }
}

impl fmt::Debug for CarrierFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CarrierFactory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::SendMeta;
    use std::collections::VecDeque;

    /// Gives back what it is sent, and has room for so much.
    #[derive(Debug)]
    struct Echo {
        room: usize,
        kept: VecDeque<Vec<u8>>,
        reports: u32,
    }

    impl Carrier for Echo {
        fn send(&mut self, datagram: &[u8], remote: SocketAddr) -> io::Result<()> {
            match (remote.port(), self.kept.len() < self.room) {
                (1, _) => Err(io::ErrorKind::HostUnreachable.into()),
                (_, false) => Err(io::ErrorKind::WouldBlock.into()),
                (_, true) => {
                    self.kept.push_back(datagram.to_vec());
                    Ok(())
                }
            }
        }

        fn receive(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
            if self.reports > 0 {
                self.reports -= 1;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            let datagram = self.kept.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
            buffer[..datagram.len()].copy_from_slice(&datagram);
            Ok((datagram.len(), self.local_addr()?))
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            Ok("192.0.2.1:443".parse().unwrap())
        }
    }

    fn received(carried: &mut Carried<Echo>, slots: usize) -> (Vec<u8>, Received) {
        let mut batch = RecvBatch::new(slots, 2000);
        let received = carried.receive(&mut batch).unwrap();
        assert!(batch.runs().all(|(meta, bytes)| meta.socket == SocketId(3) && meta.len == bytes.len()));
        (batch.runs().map(|(_, bytes)| bytes[0]).collect(), received)
    }

    #[test]
    fn datagrams_go_one_by_one_and_wait_for_room() {
        let echo = Echo { room: 2, kept: VecDeque::new(), reports: 1 };
        let mut carried = Carried::new(SocketId(3), echo).unwrap();
        let mut batch = SendBatch::new(10_000);
        for (first, port) in [(1, 9), (50, 1), (60, 9)] {
            let room = batch.reserve(1000).unwrap();
            room[..1000].fill(first);
            room[1000..2000].fill(first + 1);
            room[2000..2500].fill(first + 2);
            let remote = SocketAddr::from(([192, 0, 2, 2], port));
            let meta = SendMeta {
                socket: SocketId(3),
                local: None,
                remote,
                ecn: Ecn::NotEct,
                dscp: 0,
                release: None,
            };
            batch.commit(2500, 1000, meta);
        }
        let mut progress = Progress::default();
        let mut came = Vec::new();
        while carried.send(&batch, &mut progress).unwrap() == Sent::Blocked {
            let (datagrams, outcome) = received(&mut carried, 10);
            assert_eq!(outcome, Received { runs: 2, more: false });
            came.extend(datagrams);
        }
        carried.carrier.kept.push_front(Vec::new());
        let (datagrams, outcome) = received(&mut carried, 1);
        assert_eq!(outcome, Received { runs: 1, more: true }, "one slot, of which it is not known");
        came.extend(datagrams);
        came.extend(received(&mut carried, 10).0);
        assert_eq!(came, [1, 2, 3, 60, 61, 62], "each once, and none of those that were refused");
        let counters = carried.counters();
        assert_eq!((counters.datagrams_sent, counters.refused, counters.datagrams_received), (6, 3, 6));
    }

    #[test]
    fn a_broken_carrier_is_told_of() {
        #[derive(Debug)]
        struct Broken;
        impl Carrier for Broken {
            fn send(&mut self, _: &[u8], _: SocketAddr) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn receive(&mut self, _: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn local_addr(&self) -> io::Result<SocketAddr> {
                Ok("192.0.2.1:443".parse().unwrap())
            }
        }
        let factory = CarrierFactory::new(|_| Ok(Broken));
        let mut datapath = factory.bind(SocketId(0), "[::]:0".parse().unwrap()).unwrap();
        let error = datapath.receive(&mut RecvBatch::new(1, 2000)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
