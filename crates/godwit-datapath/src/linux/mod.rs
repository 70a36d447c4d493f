//! UDP over the Linux kernel with its batching and offloads.
//!
//! A run is sent with one message of `sendmmsg`, cut by the kernel (UDP GSO); what arrives comes merged
//! (UDP GRO), several runs for one `recvmmsg`. Segmentation can fail although the kernel has it: for a
//! route over a device without checksum offload (`EIO`), or for a segment above its MTU (`EINVAL`). Then the
//! same run is sent again datagram by datagram, and the destination is remembered.

mod cmsg;
mod departures;
mod errors;
mod field;
mod probe;
pub(crate) mod route;
mod sockaddr;
pub(crate) mod sys;

use crate::{
    Capabilities, Counters, Datapath, Piece, Progress, Received, Refused, Sent, SocketConfig, TooLarge,
    Unreachable, address,
};
use cmsg::Control;
use departures::Departures;
use errors::ErrorQueue;
use godwit_base::{RecvBatch, RecvMeta, SendBatch, SendMeta, SocketId};
use probe::Offload;
use sockaddr::Name;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;
use sys::{Incoming, MAX_MESSAGES, Outgoing, Patience};

/// Destinations remembered for which segmentation fails; beyond these it is given up altogether.
const MAX_REFUSALS: usize = 32;

/// The shortest time that receiving waits where it may.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(1);

/// A UDP socket with offloads.
#[derive(Debug)]
pub struct LinuxSocket {
    id: SocketId,
    socket: UdpSocket,
    local: SocketAddr,
    offload: Offload,
    buffers: (usize, usize),
    /// How long receiving waits where it may, once it has been asked to.
    patience: Option<Duration>,
    incoming: Box<[Incoming]>,
    outgoing: Box<[(Name, Control)]>,
    counters: Counters,
    drops: u32,
    split_for: Vec<IpAddr>,
    refusals: VecDeque<SocketAddr>,
    too_large: VecDeque<TooLarge>,
    refused: VecDeque<Refused>,
    errors: ErrorQueue,
    departures: Departures,
}

impl LinuxSocket {
    /// Takes over a bound socket and sets the options that a datapath needs.
    ///
    /// # Errors
    /// If the kernel refuses an option that cannot be done without.
    pub fn new(id: SocketId, socket: UdpSocket, config: &SocketConfig) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        set_options(&socket, local.is_ipv6(), config.only_v6)?;
        let errors = match config.report_unreachable {
            true => ErrorQueue::switch_on(&socket, local.is_ipv6(), config.only_v6)?,
            false => ErrorQueue::found_on(&socket, local.is_ipv6()),
        };
        let departures = Departures::of(&socket, config);
        request_busy_poll(&socket, config.busy_poll);
        let measured = probe::offload();
        let gro =
            config.gro && measured.gro && sys::set_option(&socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
        let gso_segments = if config.gso { measured.gso_segments } else { 1 };
        Ok(LinuxSocket {
            id,
            local,
            offload: Offload { gso_segments, gro },
            buffers: crate::config::granted_buffers(&socket),
            socket,
            patience: None,
            incoming: (0..MAX_MESSAGES).map(|_| Incoming::default()).collect(),
            outgoing: (0..MAX_MESSAGES).map(|_| Default::default()).collect(),
            counters: Counters::default(),
            drops: 0,
            split_for: Vec::new(),
            refusals: VecDeque::new(),
            too_large: VecDeque::new(),
            refused: VecDeque::new(),
            errors,
            departures,
        })
    }

    fn meta_of(&mut self, at: usize) -> Option<RecvMeta> {
        let incoming = self.incoming.get(at)?;
        let info = incoming.control.read();
        if let Some(drops) = info.drops {
            self.counters.kernel_drops += u64::from(drops.wrapping_sub(self.drops));
            self.drops = drops;
        }
        if incoming.truncated {
            self.counters.truncated += 1;
            return None;
        }
        Some(RecvMeta {
            socket: self.id,
            local: info.local,
            remote: address::normalise(incoming.name.addr()?),
            ecn: info.ecn,
            len: incoming.len,
            stride: info.stride.unwrap_or(incoming.len).min(incoming.len),
        })
    }

    fn receive_with(&mut self, batch: &mut RecvBatch, patience: Patience) -> io::Result<Received> {
        let slots = batch.free_slots();
        let asked = slots.len().min(MAX_MESSAGES);
        if asked == 0 {
            return Ok(Received { runs: 0, more: true });
        }
        let received = match sys::receive_messages(&self.socket, slots, &mut self.incoming, patience) {
            Ok(received) => received,
            Err(error) => {
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.errors.read(&self.socket);
                }
                return nothing_received(error);
            }
        };
        self.counters.receive_calls += 1;
        let runs = crate::push_runs(batch, received, |at| {
            let meta = self.meta_of(at).filter(|meta| meta.len > 0)?;
            self.counters.on_run(&meta);
            Some(meta)
        });
        Ok(Received { runs, more: received == asked })
    }

    fn segments_to(&self, remote: SocketAddr) -> usize {
        if self.split_for.contains(&remote.ip()) { 1 } else { self.offload.gso_segments }
    }

    /// Sends as many of the pieces as one system call takes. `None` if there are none left.
    fn send_some(&mut self, batch: &SendBatch, progress: &mut Progress) -> Option<io::Result<()>> {
        let mut chosen: [Option<Piece<'_>>; MAX_MESSAGES] = [None; MAX_MESSAGES];
        let mut count = 0;
        let mut outgoing = std::mem::take(&mut self.outgoing);
        let pieces = crate::pieces(batch, *progress, self.id, |remote| self.segments_to(remote));
        for ((piece, place), (name, control)) in pieces.zip(&mut chosen).zip(&mut outgoing) {
            name.set(address::for_socket(piece.meta.remote, self.local.is_ipv6()));
            let segment = piece.is_segmented().then(|| u16::try_from(piece.segment).unwrap_or(u16::MAX));
            let remote = address::normalise(piece.meta.remote);
            let source = address::source(piece.meta.local, remote);
            control.write(remote.is_ipv4(), piece.meta.traffic_class(), source, segment);
            if let Some(at) = piece.meta.release.and_then(|at| self.departures.on_system_clock(at)) {
                control.push_departure(at);
            }
            *place = Some(piece);
            count += 1;
        }
        let result = self.send_chosen(chosen.get(..count)?, &outgoing);
        self.outgoing = outgoing;
        let first = chosen.first().copied().flatten()?;
        Some(match result {
            Ok(sent) => {
                self.counters.send_calls += 1;
                if sent < count {
                    // What ended it may have been the error of an earlier datagram, which nobody is told of again.
                    self.errors.read(&self.socket);
                }
                for piece in chosen.iter().take(sent).flatten() {
                    self.on_sent(piece, progress);
                }
                Ok(())
            }
            Err(error) => self.on_failed(batch, &first, error, progress),
        })
    }

    fn send_chosen(&self, pieces: &[Option<Piece<'_>>], outgoing: &[(Name, Control)]) -> io::Result<usize> {
        let Some(((name, control), Some(first))) = outgoing.first().zip(pieces.first().copied()) else {
            return Ok(0);
        };
        let mut messages = [Outgoing { name, control, payload: first.payload }; MAX_MESSAGES];
        let mut count = 0;
        for ((message, (name, control)), piece) in
            messages.iter_mut().zip(outgoing).zip(pieces.iter().flatten())
        {
            *message = Outgoing { name, control, payload: piece.payload };
            count += 1;
        }
        sys::send_messages(&self.socket, messages.get(..count).unwrap_or_default())
    }

    fn on_sent(&mut self, piece: &Piece<'_>, progress: &mut Progress) {
        self.counters.datagrams_sent += piece.datagrams() as u64;
        if progress.split && progress.bytes == 0 {
            self.on_gso_refused(piece.meta.remote);
        }
        progress.advance(piece);
    }

    /// The first datagram of a run went out that could not be sent as a whole: segmentation is to blame.
    fn on_gso_refused(&mut self, remote: SocketAddr) {
        self.counters.gso_refusals += 1;
        if self.split_for.len() >= MAX_REFUSALS {
            self.offload.gso_segments = 1;
        } else {
            self.split_for.push(remote.ip());
        }
        if self.refusals.len() < MAX_REFUSALS {
            self.refusals.push_back(remote);
        }
        tracing::debug!(%remote, "UDP segmentation offload refused; sending single datagrams");
    }

    /// Only errors that stop the socket are passed on; `WouldBlock` is one of them.
    fn on_failed(
        &mut self,
        batch: &SendBatch,
        piece: &Piece<'_>,
        error: io::Error,
        progress: &mut Progress,
    ) -> io::Result<()> {
        if error.kind() != io::ErrorKind::WouldBlock && self.errors.read(&self.socket) {
            // It may be about a datagram sent earlier, to somebody else: this one is tried again.
            return Ok(());
        }
        match error.raw_os_error() {
            Some(libc::EIO | libc::EINVAL) if piece.is_segmented() => progress.split = true,
            Some(libc::EMSGSIZE) => {
                self.counters.too_large += 1;
                let SendMeta { local, remote, .. } = piece.meta;
                crate::note_too_large(&mut self.too_large, local, remote, piece.datagram_size());
                crate::note_refused(&mut self.refused, batch, progress, &error);
            }
            // `EAGAIN` asks to wait; the others mean that there is no socket any more.
            Some(libc::EAGAIN | libc::EBADF | libc::ENOTSOCK | libc::EPIPE) => return Err(error),
            _ => {
                self.counters.refused += 1;
                tracing::debug!(remote = %piece.meta.remote, %error, "a datagram was refused");
                crate::note_refused(&mut self.refused, batch, progress, &error);
            }
        }
        Ok(())
    }
}

impl Datapath for LinuxSocket {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        self.receive_with(batch, Patience::None)
    }

    fn receive_within(&mut self, batch: &mut RecvBatch, time: Duration) -> io::Result<Option<Received>> {
        // A time of zero would be without end.
        let time = time.max(SHORTEST_PATIENCE);
        if self.patience != Some(time) {
            if !sys::set_patience(&self.socket, time)? {
                return Ok(None);
            }
            self.patience = Some(time);
        }
        self.receive_with(batch, Patience::OfSocket).map(Some)
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        loop {
            match self.send_some(batch, progress) {
                None => return Ok(Sent::Done),
                Some(Ok(())) => {}
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.counters.send_blocked += 1;
                    return Ok(Sent::Blocked);
                }
                Some(Err(error)) => return Err(error),
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
            name: "linux",
            gso_segments: self.offload.gso_segments,
            gro: self.offload.gro,
            ecn: true,
            packet_info: true,
            may_fragment: false,
            departure_times: self.departures.is_possible(),
            recv_buffer: self.buffers.0,
            send_buffer: self.buffers.1,
        }
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn keep_departure_times(&mut self, zero: i64) {
        self.departures.begin(zero);
    }

    fn next_gso_refusal(&mut self) -> Option<SocketAddr> {
        self.refusals.pop_front()
    }

    fn next_too_large(&mut self) -> Option<TooLarge> {
        self.too_large.pop_front()
    }

    fn next_refused(&mut self) -> Option<Refused> {
        self.refused.pop_front()
    }

    fn reports_errors(&self) -> bool {
        self.errors.is_on()
    }

    fn receive_errors(&mut self) {
        self.errors.read(&self.socket);
    }

    fn next_unreachable(&mut self) -> Option<Unreachable> {
        self.errors.next()
    }

    fn socket(&self) -> Option<&UdpSocket> {
        Some(&self.socket)
    }
}

/// Errors that the network caused are consumed by having been reported: asking again is right.
fn nothing_received(error: io::Error) -> io::Result<Received> {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(Received::default()),
        Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::EINVAL) => Err(error),
        _ => Ok(Received { runs: 0, more: true }),
    }
}

fn set_options(socket: &UdpSocket, v6: bool, only_v6: bool) -> io::Result<()> {
    let set = |level, name, value| sys::set_option(socket, level, name, value);
    if v6 {
        set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        set(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
        set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
        // Probing alone lets the kernel fragment what is larger than the device's MTU.
        set(libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1)?;
    } else {
        set(libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
    }
    if !only_v6 {
        // Dual-stack sockets take these for their IPv4 side.
        set(libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
        set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
    }
    // Counting drops is a convenience.
    let _ = set(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    Ok(())
}

/// Has the kernel look at the network card itself, as far as it permits that.
fn request_busy_poll(socket: &UdpSocket, time: Duration) {
    let Ok(micros @ 1..) = i32::try_from(time.as_micros()) else { return };
    for (name, value) in [(libc::SO_BUSY_POLL, micros), (libc::SO_PREFER_BUSY_POLL, 1)] {
        if let Err(error) = sys::set_option(socket, libc::SOL_SOCKET, name, value) {
            tracing::debug!(%error, name, "the kernel refuses to look at the network card itself");
        }
    }
}

/// Has a socket send through an interface, which needs no privilege; what comes in is not restricted.
pub(crate) fn send_through(socket: &socket2::Socket, interface: &str) -> io::Result<()> {
    // The name is a file name here.
    if interface.contains('/') || interface.starts_with('.') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let index = std::fs::read_to_string(format!("/sys/class/net/{interface}/ifindex"))?;
    let index: i32 = index.trim().parse().map_err(io::Error::other)?;
    // The kernel wants network byte order.
    let index = index.to_be();
    if socket.domain()? == socket2::Domain::IPV6 {
        sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_IF, index)?;
    }
    // Dual-stack sockets take it for their IPv4 side.
    sys::set_option(socket, libc::IPPROTO_IP, libc::IP_UNICAST_IF, index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::{Ecn, RecvBatch};

    /// What the kernel says of a device without checksum offload (`EIO`), and of one with a small MTU (`EINVAL`).
    #[test]
    fn a_run_that_cannot_be_segmented_goes_out_in_single_datagrams() {
        for errno in [libc::EIO, libc::EINVAL] {
            let id = SocketId(3);
            let config = SocketConfig::default();
            let bind = || UdpSocket::bind("127.0.0.1:0").and_then(|it| LinuxSocket::new(id, it, &config));
            let (mut client, mut server) = (bind().expect("a socket"), bind().expect("a socket"));
            client.offload.gso_segments = 64;
            let meta = SendMeta {
                socket: id,
                local: None,
                remote: server.local,
                ecn: Ecn::NotEct,
                dscp: 0,
                release: None,
            };
            let mut batch = SendBatch::new(1 << 16);
            batch.reserve(1000).expect("room")[..2500].fill(7);
            batch.commit(2500, 1000, meta);
            let mut progress = Progress::default();
            let first = crate::pieces(&batch, progress, id, |_| 64).next().expect("a piece");
            assert!(first.is_segmented());
            let error = io::Error::from_raw_os_error(errno);
            client.on_failed(&batch, &first, error, &mut progress).expect("it can be dealt with");
            assert_eq!(client.send(&batch, &mut progress).expect("loopback takes it"), Sent::Done);
            assert_eq!((client.counters.gso_refusals, client.counters.refused), (1, 0));
            assert_eq!(client.next_gso_refusal(), Some(server.local));
            assert_eq!(client.segments_to(server.local), 1, "nor is anything segmented that follows");
            let mut received = RecvBatch::new(8, 1 << 16);
            while server.receive(&mut received).is_ok_and(|received| received.more) {}
            assert_eq!(received.runs().map(|(_, bytes)| bytes.len()).sum::<usize>(), 2500);
        }
    }

    #[test]
    fn checksums_are_verified_before_anybody_waits() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(!sys::has_filter(&socket));
        assert!(sys::set_patience(&socket, Duration::from_millis(10)).unwrap());
        assert!(sys::has_filter(&socket));
    }

    #[test]
    fn the_kernel_looks_at_the_card_where_that_is_asked_for_and_permitted() {
        let bound = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let asked = |option, value| sys::set_option(bound(), libc::SOL_SOCKET, option, value).is_ok();
        let permitted = [asked(libc::SO_BUSY_POLL, 70), asked(libc::SO_PREFER_BUSY_POLL, 1)];
        let set = |micros| {
            let config = SocketConfig { busy_poll: Duration::from_micros(micros), ..SocketConfig::default() };
            let socket = LinuxSocket::new(SocketId(0), bound(), &config).unwrap().socket;
            [libc::SO_BUSY_POLL, libc::SO_PREFER_BUSY_POLL]
                .map(|name| sys::option(&socket, libc::SOL_SOCKET, name).unwrap_or(0))
        };
        let plain = set(0);
        let expected = |at: usize, value| if permitted[at] { value } else { plain[at] };
        assert_eq!(set(70), [expected(0, 70), expected(1, 1)]);
    }
}
