//! Batched UDP: whole runs of datagrams in, whole runs of datagrams out.
//!
//! A [`Datapath`] is one socket. It receives into a [`RecvBatch`] and sends a [`SendBatch`], and knows nothing of QUIC.
//! A [`DatapathFactory`] makes them. There are three kinds, and users may bring others, most simply as a
//! [`Carrier`] of single datagrams:
//!
//! - [`linux`]: the kernel's batching (`recvmmsg`, `sendmmsg`) and offloads (UDP GSO and GRO);
//! - [`portable`]: every other system, and Linux too if asked for;
//! - [`memory`]: no socket at all, for tests.
//!
//! What they have in common: they never block unless asked to ([`Datapath::receive_within`]), they tell the ECN codepoint and the address a datagram
//! was sent to and can send from a given address, they forbid fragmentation (RFC 9000 section 14), and
//! they take every failure that concerns one datagram only as the loss of that datagram. IPv4 traffic on
//! a dual-stack socket has IPv4 addresses, never IPv4-mapped ones.
//!
//! # Order of the modules
//!
//! From the bottom: `address`, `config`, `linux` (and `steering`), `portable`, `memory`, `bind`, `factory`,
//! `carrier`. Each may use those before it, and what is declared here.
//!
//! What else is asked of the operating system is in `godwit-os`; only these two crates and the C ABI have `unsafe` code.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod address;
mod bind;
mod carrier;
mod config;
mod factory;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod memory;
pub mod portable;
#[cfg(target_os = "linux")]
pub mod steering;

pub use bind::{BindError, adopt, bind, bind_group, share_port};
pub use carrier::{Carried, Carrier, CarrierFactory};
pub use config::{Backend, DepartureTimes, SocketConfig};
pub use factory::DatapathFactory;

#[cfg(doc)]
use godwit_base::Time;
use godwit_base::{RecvBatch, RecvMeta, SendBatch, SendMeta, SocketId};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::task::Waker;
use std::time::Duration;
use std::{fmt, io};

/// One socket, or what stands in for one.
pub trait Datapath: Send + fmt::Debug {
    /// Receives what is there into the free slots of `batch`, with one system call where the platform
    /// allows. Never blocks.
    ///
    /// # Errors
    /// Only if the socket is unusable. What the network reports about single datagrams is swallowed.
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received>;

    /// As [`Datapath::receive`], but waits until there is something, for about `time`: one system call where waiting for
    /// the socket and receiving from it takes two. A signal ends it early. `None`, at once, from who cannot wait.
    ///
    /// # Errors
    /// As [`Datapath::receive`].
    fn receive_within(&mut self, batch: &mut RecvBatch, time: Duration) -> io::Result<Option<Received>> {
        let _ = (batch, time);
        Ok(None)
    }

    /// Sends the runs of `batch` that belong to this socket, from where `progress` stands to the end or
    /// to the first run of another socket. Never blocks: when the socket takes no more, `progress` says
    /// how far it came, and the same call continues there later. If it takes more and `progress` has not moved, the run
    /// at hand counts as sent, that is, as lost.
    ///
    /// # Errors
    /// Only if the socket is unusable. A run that the system refuses counts as sent, that is, as lost.
    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent>;

    /// The socket's number, found in the metadata of every run.
    fn id(&self) -> SocketId;

    /// The address the socket is bound to.
    fn local_addr(&self) -> SocketAddr;

    /// What this datapath can do at present.
    fn capabilities(&self) -> Capabilities;

    /// What has happened so far.
    fn counters(&self) -> Counters;

    /// Has runs that are to leave later ([`SendMeta::release`]) held back until then from now on, if that can be done
    /// ([`Capabilities::departure_times`]); before, and otherwise, every run leaves at once. `zero` is what the system's
    /// monotonic clock shows at [`Time::ZERO`], in nanoseconds, which may be negative.
    fn keep_departure_times(&mut self, zero: i64) {
        let _ = zero;
    }

    /// A destination for which segmentation offload failed since the last call. The run was sent
    /// nevertheless, split, and runs to this destination are split from now on.
    fn next_gso_refusal(&mut self) -> Option<SocketAddr> {
        None
    }

    /// A run refused since the last call because its datagrams are larger than the system sends on that route.
    fn next_too_large(&mut self) -> Option<TooLarge> {
        None
    }

    /// A run refused since the last call, for whatever reason, of a batch that was sent since.
    fn next_refused(&mut self) -> Option<Refused> {
        None
    }

    /// Whether the socket has an error queue, which wakes whoever waits for it (`EPOLLERR`).
    fn reports_errors(&self) -> bool {
        false
    }

    /// Reads the error queue. Other calls do so as well when they meet an error.
    fn receive_errors(&mut self) {}

    /// The next thing that was in the error queue.
    fn next_unreachable(&mut self) -> Option<Unreachable> {
        None
    }

    /// The socket to wait for, if there is one.
    fn socket(&self) -> Option<&UdpSocket>;

    /// Where there is no socket to wait for: has `waker` woken when something can be received.
    fn wake_on_arrival(&self, _waker: &Waker) {}
}

/// Datagrams that the local system refused for their size. They count as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooLarge {
    /// Where they were to go.
    pub remote: SocketAddr,
    /// Their UDP payload in bytes.
    pub size: usize,
    /// The largest UDP payload that goes there, in bytes, if the system tells: Linux does.
    pub max: Option<usize>,
}

impl TooLarge {
    /// Datagrams of `size` bytes to `remote`, of which nobody says what would have passed.
    pub const fn new(remote: SocketAddr, size: usize) -> Self {
        TooLarge { remote, size, max: None }
    }
}

/// A run that the local system did not take, or the rest of one. It counts as lost, but says nothing of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Its number in the batch, from 0.
    pub run: usize,
    /// Datagrams of it that were not sent.
    pub datagrams: usize,
    /// There was no room for it: sending less helps. Otherwise there is no route, it is forbidden, or too large.
    pub congested: bool,
}

impl Refused {
    /// So many datagrams of a run, for another reason than that there was no room.
    pub const fn new(run: usize, datagrams: usize) -> Self {
        Refused { run, datagrams, congested: false }
    }
}

/// What the network, or the system, said of a datagram sent earlier. It proves nothing: who knows the addresses can
/// forge it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreachable {
    /// Where the datagram was to go, if that is where it was not taken; none if it is about something else.
    pub remote: Option<SocketAddr>,
    /// What is said: that the connection was refused (no such port), or the host or network cannot be reached.
    pub kind: io::ErrorKind,
    /// How the datagram began, as far as it is quoted.
    pub quote: Quote,
}

impl Unreachable {
    /// This, of datagrams to `remote`, with nothing quoted.
    pub fn new(remote: Option<SocketAddr>, kind: io::ErrorKind) -> Self {
        Unreachable { remote, kind, quote: Quote::default() }
    }
}

/// The first bytes of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quote {
    bytes: [u8; Quote::MOST],
    len: usize,
}

impl Quote {
    /// Enough for a long header up to the first connection id (RFC 9000 section 17.2).
    const MOST: usize = 32;

    /// What there is of it.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    #[cfg(target_os = "linux")]
    fn space(&mut self) -> &mut [u8] {
        self.len = 0;
        &mut self.bytes
    }

    #[cfg(target_os = "linux")]
    fn set_len(&mut self, len: usize) {
        self.len = len.min(Self::MOST);
    }
}

/// Takes note of what remains of the run at hand, which was refused with `error`, and goes on behind it.
fn note_refused(
    noted: &mut VecDeque<Refused>,
    batch: &SendBatch,
    progress: &mut Progress,
    error: &io::Error,
) {
    // Nobody may ever ask; these are of batches long gone then.
    if noted.len() >= MAX_REFUSED {
        noted.pop_front();
    }
    let rest = batch
        .runs()
        .nth(progress.runs)
        .map_or(0, |(run, _)| run.len.saturating_sub(progress.bytes).div_ceil(run.segment.max(1)));
    noted.push_back(Refused { run: progress.runs, datagrams: rest, congested: is_shortage(error) });
    progress.finish_run();
}

/// Whether memory is short, such as that for what waits to be sent.
fn is_shortage(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(libc::ENOBUFS) {
        return true;
    }
    error.kind() == io::ErrorKind::OutOfMemory
}

/// Runs refused that are remembered until they are asked for.
const MAX_REFUSED: usize = 64;

/// Takes note of datagrams of `size` bytes that were refused. What the route carries is asked once for all that are
/// refused at a time, because asking costs a socket.
fn note_too_large(noted: &mut VecDeque<TooLarge>, local: Option<IpAddr>, remote: SocketAddr, size: usize) {
    let remote = address::normalise(remote);
    let mut known = noted.iter().filter(|known| known.remote == remote).peekable();
    let max = known.peek().map(|known| known.max);
    if noted.len() < MAX_TOO_LARGE && !known.any(|known| known.size == size) {
        let max = max.unwrap_or_else(|| route_max(local, remote));
        noted.push_back(TooLarge { remote, size, max });
    }
}

/// The largest UDP payload that goes to `remote`, in bytes. Without Linux nobody tells: the search finds it by trying.
fn route_max(local: Option<IpAddr>, remote: SocketAddr) -> Option<usize> {
    #[cfg(target_os = "linux")]
    return linux::route::max_payload(address::source(local, remote), remote);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (local, remote);
        None
    }
}

/// Runs refused for their size that are remembered until they are asked for.
const MAX_TOO_LARGE: usize = 32;

/// The outcome of [`Datapath::receive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Received {
    /// Runs added to the batch.
    pub runs: usize,
    /// Whether more may be waiting. If false, the socket is empty: waiting for readability is right.
    pub more: bool,
}

impl Received {
    /// This outcome.
    #[inline]
    pub const fn new(runs: usize, more: bool) -> Self {
        Received { runs, more }
    }
}

/// The outcome of [`Datapath::send`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Everything that belongs to this socket was sent.
    Done,
    /// The socket takes no more at present: wait until it is writable.
    Blocked,
}

/// How much of a [`SendBatch`] has been sent. Begins at the default; [`Datapath::send`] moves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Runs dealt with completely.
    pub runs: usize,
    /// Bytes sent of the run after those.
    bytes: usize,
    /// The run at hand is sent datagram by datagram, because segmentation offload failed on it.
    split: bool,
}

impl Progress {
    /// Which socket has to send next, or `None` if all of `batch` has been sent.
    pub fn next_socket(&self, batch: &SendBatch) -> Option<SocketId> {
        batch.runs().nth(self.runs).map(|(run, _)| run.meta.socket)
    }

    /// The next run of `batch`, if it belongs to the socket `id`: for data paths that send whole runs. Those that cut
    /// runs to pieces keep account of that themselves.
    pub fn next_run<'a>(&self, batch: &'a SendBatch, id: SocketId) -> Option<(SendMeta, usize, &'a [u8])> {
        let (run, bytes) = batch.runs().nth(self.runs).filter(|(run, _)| run.meta.socket == id)?;
        Some((run.meta, run.segment, bytes))
    }

    /// The run at hand is dealt with: it was sent, or it is lost.
    pub fn finish_run(&mut self) {
        *self = Progress { runs: self.runs + 1, bytes: 0, split: false };
    }

    fn advance(&mut self, piece: &Piece<'_>) {
        if piece.ends_run {
            self.finish_run();
        } else {
            self.bytes += piece.payload.len();
        }
    }
}

/// A part of a run that goes out with one system call or one message of it.
#[derive(Debug, Clone, Copy)]
struct Piece<'a> {
    meta: SendMeta,
    payload: &'a [u8],
    segment: usize,
    ends_run: bool,
}

impl Piece<'_> {
    fn is_segmented(&self) -> bool {
        self.payload.len() > self.segment
    }

    /// The size of its datagrams; the last may have less.
    fn datagram_size(&self) -> usize {
        self.segment.min(self.payload.len())
    }

    fn datagrams(&self) -> usize {
        self.payload.len().div_ceil(self.segment)
    }
}

/// The next pieces of `batch` for the socket `id`, where `segments` says how many datagrams may go in one
/// piece to a destination.
fn pieces<'a>(
    batch: &'a SendBatch,
    progress: Progress,
    id: SocketId,
    segments: impl Fn(SocketAddr) -> usize,
) -> impl Iterator<Item = Piece<'a>> {
    batch.runs().skip(progress.runs).take_while(move |(run, _)| run.meta.socket == id).enumerate().flat_map(
        move |(at, (run, bytes))| {
            let (start, split) = if at == 0 { (progress.bytes, progress.split) } else { (0, false) };
            let most = if split { 1 } else { segments(run.meta.remote).max(1) };
            let rest = bytes.get(start..).unwrap_or_default();
            let step = run.segment.saturating_mul(most);
            let last = rest.len().div_ceil(step).saturating_sub(1);
            rest.chunks(step).enumerate().map(move |(chunk, payload)| Piece {
                meta: run.meta,
                payload,
                segment: run.segment,
                ends_run: chunk == last,
            })
        },
    )
}

/// What a datapath can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Which datapath it is: `"linux"`, `"portable"`, `"memory"`, or what one of another kind calls itself.
    pub name: &'static str,
    /// The most datagrams that one send carries; 1 is no segmentation offload.
    pub gso_segments: usize,
    /// Whether received datagrams may come merged.
    pub gro: bool,
    /// Whether ECN codepoints are sent and received.
    pub ecn: bool,
    /// Whether the local address is told and can be chosen.
    pub packet_info: bool,
    /// Whether datagrams may be fragmented on their way, because the system does not let us forbid it.
    pub may_fragment: bool,
    /// Whether runs can be held back until they are to leave: see [`Datapath::keep_departure_times`].
    pub departure_times: bool,
    /// Bytes granted for receiving, 0 if unknown.
    pub recv_buffer: usize,
    /// Bytes granted for sending, 0 if unknown.
    pub send_buffer: usize,
}

impl Capabilities {
    /// Those of a data path called `name` that has nothing but sending and receiving.
    pub const fn new(name: &'static str) -> Self {
        Capabilities {
            name,
            gso_segments: 1,
            gro: false,
            ecn: false,
            packet_info: false,
            may_fragment: false,
            departure_times: false,
            recv_buffer: 0,
            send_buffer: 0,
        }
    }
}

/// What a datapath has done. All figures only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// System calls that received something.
    pub receive_calls: u64,
    /// Runs received.
    pub runs_received: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Runs received that did not fit their slot and were dropped.
    pub truncated: u64,
    /// Datagrams the kernel dropped because the receive buffer was full, where it tells.
    pub kernel_drops: u64,
    /// System calls that sent something.
    pub send_calls: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Times that the socket took no more.
    pub send_blocked: u64,
    /// Destinations for which segmentation offload failed.
    pub gso_refusals: u64,
    /// Runs refused for their size: searches for the path MTU that went too far.
    pub too_large: u64,
    /// Runs refused otherwise: no route, forbidden by a filter, no memory.
    pub refused: u64,
}

impl Counters {
    fn on_run(&mut self, run: &RecvMeta) {
        self.runs_received += 1;
        self.datagrams_received += run.len.div_ceil(run.stride) as u64;
    }
}

/// Takes over the runs that lie in the first `received` free slots, as far as `meta_of` knows what they are. Returns how
/// many these are.
#[inline]
fn push_runs(
    batch: &mut RecvBatch,
    received: usize,
    mut meta_of: impl FnMut(usize) -> Option<RecvMeta>,
) -> usize {
    let before = batch.len();
    let mut skipped = 0;
    for at in 0..received {
        let Some(meta) = meta_of(at) else {
            skipped += 1;
            continue;
        };
        // A run that is left out leaves a gap: the next ones move down.
        if skipped > 0 {
            batch.free_slots().swap(0, skipped);
        }
        batch.push(meta);
    }
    batch.len().saturating_sub(before)
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.receive_calls += other.receive_calls;
        self.runs_received += other.runs_received;
        self.datagrams_received += other.datagrams_received;
        self.truncated += other.truncated;
        self.kernel_drops += other.kernel_drops;
        self.send_calls += other.send_calls;
        self.datagrams_sent += other.datagrams_sent;
        self.send_blocked += other.send_blocked;
        self.gso_refusals += other.gso_refusals;
        self.too_large += other.too_large;
        self.refused += other.refused;
    }
}

#[cfg(test)]
mod tests;
