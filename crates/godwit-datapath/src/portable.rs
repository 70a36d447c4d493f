//! UDP through `quinn-udp`: for every system, with whatever offload it has.
//!
//! On Linux it can be chosen with [`crate::Backend::Portable`], so that what other systems run is tested
//! there as well.
//!
//! A datagram that is too large for the local route is refused everywhere. What does go there is told on Linux only:
//! elsewhere the standard library has no question for it, and the path-MTU search goes on by halves.

use crate::{
    Capabilities, Counters, Datapath, Piece, Progress, Received, Refused, Sent, SocketConfig, TooLarge,
    address,
};
use godwit_base::{Ecn, RecvBatch, RecvMeta, SendBatch, SendMeta, SocketId};
use quinn_udp::{EcnCodepoint, Transmit, UdpSockRef, UdpSocketState};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

const MAX_RUNS: usize = 16;

/// A UDP socket driven by `quinn-udp`.
#[derive(Debug)]
pub struct PortableSocket {
    id: SocketId,
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    gso: bool,
    gro: bool,
    buffers: (usize, usize),
    counters: Counters,
    refusal: Option<SocketAddr>,
    too_large: VecDeque<TooLarge>,
    refused: VecDeque<Refused>,
}

impl PortableSocket {
    /// Takes over a bound socket.
    ///
    /// # Errors
    /// If the system refuses an option that cannot be done without.
    pub fn new(id: SocketId, socket: UdpSocket, config: &SocketConfig) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        make_room_for_ecn(&socket);
        let gro = state.gro_segments() > 1 && (config.gro || !switch_gro_off(&socket));
        Ok(PortableSocket {
            id,
            local: socket.local_addr()?,
            state,
            gso: config.gso,
            gro,
            buffers: crate::config::granted_buffers(&socket),
            socket,
            counters: Counters::default(),
            refusal: None,
            too_large: VecDeque::new(),
            refused: VecDeque::new(),
        })
    }

    fn segments(&self) -> usize {
        if self.gso { self.state.max_gso_segments().clamp(1, SendBatch::MAX_SEGMENTS) } else { 1 }
    }

    fn meta_of(&self, meta: &quinn_udp::RecvMeta) -> Option<RecvMeta> {
        (meta.len > 0 && meta.stride > 0).then(|| RecvMeta {
            socket: self.id,
            local: meta.dst_ip.map(|ip| ip.to_canonical()),
            remote: address::normalise(meta.addr),
            ecn: meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_tos(ecn as u8)),
            len: meta.len,
            stride: meta.stride.min(meta.len),
        })
    }

    fn send_piece(&self, piece: &Piece<'_>) -> io::Result<()> {
        let transmit = Transmit {
            destination: address::for_socket(piece.meta.remote, self.local.is_ipv6()),
            ecn: EcnCodepoint::from_bits(piece.meta.ecn.bits()),
            contents: piece.payload,
            segment_size: piece.is_segmented().then_some(piece.segment),
            src_ip: address::source(piece.meta.local, piece.meta.remote),
        };
        self.state.try_send(UdpSockRef::from(&self.socket), &transmit)
    }

    fn on_sent(&mut self, piece: &Piece<'_>, progress: &mut Progress) {
        self.counters.send_calls += 1;
        self.counters.datagrams_sent += piece.datagrams() as u64;
        if progress.split && progress.bytes == 0 {
            self.counters.gso_refusals += 1;
            self.refusal = Some(piece.meta.remote);
        }
        progress.advance(piece);
    }

    fn on_failed(
        &mut self,
        batch: &SendBatch,
        piece: &Piece<'_>,
        error: &io::Error,
        progress: &mut Progress,
    ) {
        if quinn_udp::is_msg_size_err(error) {
            self.counters.too_large += 1;
            let SendMeta { local, remote, .. } = piece.meta;
            crate::note_too_large(&mut self.too_large, local, remote, piece.datagram_size());
            crate::note_refused(&mut self.refused, batch, progress, error);
        } else if piece.is_segmented() {
            progress.split = true;
        } else {
            self.counters.refused += 1;
            tracing::debug!(remote = %piece.meta.remote, %error, "a datagram was refused");
            crate::note_refused(&mut self.refused, batch, progress, error);
        }
    }
}

impl Datapath for PortableSocket {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        let mut metas = [quinn_udp::RecvMeta::default(); MAX_RUNS];
        let mut slots = batch.free_slots().iter_mut();
        let asked = slots.len().min(MAX_RUNS).min(quinn_udp::BATCH_SIZE);
        if asked == 0 {
            return Ok(Received { runs: 0, more: true });
        }
        let mut vectors: [IoSliceMut<'_>; MAX_RUNS] =
            std::array::from_fn(|_| IoSliceMut::new(slots.next().map_or(&mut [], |slot| &mut slot[..])));
        let socket = UdpSockRef::from(&self.socket);
        let (Some(places), Some(found)) = (vectors.get_mut(..asked), metas.get_mut(..asked)) else {
            return Ok(Received { runs: 0, more: true });
        };
        let received = match self.state.recv(socket, places, found) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::default()),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
            // A report about a datagram sent earlier, consumed by this very call.
            Err(_) => return Ok(Received { runs: 0, more: true }),
        };
        self.counters.receive_calls += 1;
        let runs = crate::push_runs(batch, received, |at| {
            let meta = self.meta_of(metas.get(at)?)?;
            self.counters.on_run(&meta);
            Some(meta)
        });
        Ok(Received { runs, more: received == asked })
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        loop {
            let segments = self.segments();
            let Some(piece) = crate::pieces(batch, *progress, self.id, |_| segments).next() else {
                return Ok(Sent::Done);
            };
            match self.send_piece(&piece) {
                Ok(()) => self.on_sent(&piece, progress),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        self.counters.send_blocked += 1;
                        return Ok(Sent::Blocked);
                    }
                    io::ErrorKind::BrokenPipe | io::ErrorKind::NotConnected => return Err(error),
                    _ => self.on_failed(batch, &piece, &error, progress),
                },
            }
        }
    }

    fn id(&self) -> SocketId {
        self.id
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "portable",
            gso_segments: self.segments(),
            gro: self.gro,
            ecn: true,
            packet_info: cfg!(any(unix, windows)),
            may_fragment: self.state.may_fragment(),
            departure_times: false,
            recv_buffer: self.buffers.0,
            send_buffer: self.buffers.1,
        }
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn next_gso_refusal(&mut self) -> Option<SocketAddr> {
        self.refusal.take()
    }

    fn next_refused(&mut self) -> Option<Refused> {
        self.refused.pop_front()
    }

    fn next_too_large(&mut self) -> Option<TooLarge> {
        self.too_large.pop_front()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        Some(&self.socket)
    }
}

/// `quinn-udp` turns receive timestamps on, and has room for 96 bytes of control messages: beside the size of
/// merged datagrams and the packet info no room is left for the ECN codepoint. Nobody asks for the time.
#[cfg(target_os = "linux")]
fn make_room_for_ecn(socket: &UdpSocket) {
    let _ = crate::linux::sys::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0);
}

#[cfg(not(target_os = "linux"))]
fn make_room_for_ecn(_: &UdpSocket) {}

#[cfg(target_os = "linux")]
fn switch_gro_off(socket: &UdpSocket) -> bool {
    crate::linux::sys::set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 0).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn switch_gro_off(_: &UdpSocket) -> bool {
    false
}
