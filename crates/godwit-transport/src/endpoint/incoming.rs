//! Handshakes that clients have begun and nobody has accepted yet.
//!
//! A first Initial packet makes no connection and no TLS state. Its datagrams are kept, its CRYPTO frames
//! are read far enough to know the server's name and the protocols asked for (the ClientHello may span
//! several packets, which are [acknowledged](super::beginning) meanwhile), and then the application decides. What is
//! kept is bounded by [`Admission`], by [`MAX_DATAGRAMS`], by [`ACCEPT_WITHIN`] and by [`LIFETIME`]; what is read and not
//! kept by [`MAX_FRUITLESS`].

mod hello;

use super::IncomingKey;
use super::admission::Admission;
use super::beginning::{Beginning, Numbers};
use super::first_initial::{Answered, FirstInitial};
use super::sample::Sample;
use super::source::Source;
use super::stray::Strays;
use crate::connection::{BegunInitials, choose_version};
use crate::path::PathKey;
use godwit_base::timer_queue::TimerQueue;
use godwit_base::{Ecn, Slab, Time};
use godwit_tls::client_hello::{ClientHello, Parsed, Peek};
use godwit_tls::keys::{self, LevelKeys};
use godwit_wire::constants::MIN_INITIAL_DATAGRAM;
use godwit_wire::frame::Frames;
use godwit_wire::header::{self, Packet, PacketType};
use godwit_wire::{ConnectionId, Frame, Side, TransportErrorCode};
use hello::open_initials;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::Duration;

/// Datagrams kept for one handshake: an initial window of 0-RTT packets may come with the ClientHello.
const MAX_DATAGRAMS: usize = 16;
/// Beyond that, what the ClientHello is still missing.
const MAX_PIECES: usize = 4;
/// Bytes kept that came early, or behind a complete ClientHello: an initial window, and a little more where packets are
/// large.
const MAX_EARLY: usize = 24 << 10;
/// The same of what a ClientHello may be in.
const MAX_HELLO: usize = 24 << 10;
/// Datagrams that are opened and say nothing new. Each costs keys, a copy and its frames, and the first of the handshake
/// may have proved nothing. A client repeats one or two of them at a time, and ever more slowly: five times in [`LONGEST`].
/// This many would do if it repeated as many as are kept each of three times. Beyond that none is opened, as if it were
/// lost, until the handshake's time is over.
const MAX_FRUITLESS: u16 = 64;
/// Bytes that are read of most ClientHellos, at most.
const HELLO_READ: usize = 4 << 10;
/// How long a handshake waits to be accepted.
const LIFETIME: Duration = Duration::from_secs(10);
/// How long the rest of a ClientHello is waited for: so long after the last packet, for a client whose packets are
/// lost repeats them more and more slowly, but not longer after the first.
const ACCEPT_WITHIN: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(60);

/// A handshake that a client has begun.
#[derive(Debug)]
pub struct Incoming {
    pub(super) first: FirstInitial,
    pub(super) datagrams: Vec<(Ecn, Box<[u8]>)>,
    /// What the ClientHello may be in, in bytes of those, and the others.
    hello_bytes: usize,
    /// What is read of the ClientHello, in bytes of memory.
    read_bytes: usize,
    early_bytes: usize,
    /// Datagrams that said nothing new.
    fruitless: u16,
    peek: Peek,
    hello: Option<ClientHello>,
    /// The Initial keys, once the ClientHello has been read with them: the connection goes on with them.
    keys: Option<Box<LevelKeys>>,
    begun_at: Time,
    /// Why the client has given up, as it says.
    pub(super) closed_with: Option<TransportErrorCode>,
    /// Once it has turned out that one datagram has not all of the ClientHello.
    beginning: Option<Box<Beginning>>,
    /// Datagrams opened so far.
    #[cfg(test)]
    opened: usize,
}

/// An incoming handshake that waits no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GoneIncoming {
    /// Its key, under which nothing is found any more.
    pub key: IncomingKey,
    /// The code with which its client has given up, if that is why (RFC 9000 section 20.1).
    pub closed_with: Option<TransportErrorCode>,
}

impl Incoming {
    fn new(now: Time, first: FirstInitial) -> Self {
        let (datagrams, peek) = (Vec::new(), Peek::new());
        let (hello_bytes, read_bytes, early_bytes) = (0, 0, 0);
        Incoming {
            first,
            datagrams,
            hello_bytes,
            read_bytes,
            early_bytes,
            fruitless: 0,
            peek,
            hello: None,
            keys: None,
            begun_at: now,
            closed_with: None,
            beginning: None,
            #[cfg(test)]
            opened: 0,
        }
    }

    /// How the client has been answered so far.
    pub(super) fn answered(&self) -> Answered {
        self.beginning.as_ref().map(|beginning| beginning.answered).unwrap_or_default()
    }

    /// True if the client can still be asked to prove its address: it has not, and has had no other answer.
    pub fn may_retry(&self) -> bool {
        !self.first.validated && self.answered().packets == 0
    }

    /// The Initial keys of a version, if the ClientHello has been read with them.
    pub(super) fn take_keys(&mut self, version: u32) -> Option<LevelKeys> {
        let keys = self.keys.take()?;
        (version == self.first.version).then_some(*keys)
    }

    /// What the connection has to know of it.
    pub(super) fn take_begun(&mut self) -> Option<BegunInitials> {
        self.beginning.take().map(|beginning| beginning.into_begun())
    }

    /// The beginning of a ClientHello came, and is to be acknowledged. True if that was not known yet.
    fn on_beginning(&mut self, now: Time, numbers: &Numbers, ecn: Ecn, kept: bool) -> bool {
        let beginning = self.beginning.get_or_insert_with(|| Box::new(Beginning::new()));
        beginning.on_packets(now, numbers, ecn, kept);
        !std::mem::replace(&mut beginning.due, true)
    }

    /// True if the first packet of a datagram was made by who knows the version's Initial keys.
    pub(super) fn is_authentic(first: FirstInitial, datagram: &[u8]) -> bool {
        let mut incoming = Incoming::new(Time::ZERO, first);
        incoming.peek(datagram, &mut Numbers::default()) != Peeked::Forged
    }

    /// The client's address, which may be forged unless it is [validated](Incoming::is_validated).
    pub fn remote(&self) -> SocketAddr {
        self.first.path.remote
    }

    /// The path on which the client came.
    pub fn path(&self) -> &PathKey {
        &self.first.path
    }

    /// The name of the server that the client asks for, if it gave one.
    pub fn server_name(&self) -> Option<&str> {
        self.hello.as_ref()?.server_name.as_deref()
    }

    /// The application protocols that the client offers, in its order of preference.
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> {
        self.hello.iter().flat_map(|hello| &hello.alpn).map(Vec::as_slice)
    }

    /// True if a token has proved the client's address: a Retry would prove nothing more.
    pub fn is_validated(&self) -> bool {
        self.first.validated
    }

    /// The QUIC version of the client's packets.
    pub fn version(&self) -> u32 {
        self.first.version
    }

    /// The version with which to answer: `wanted` if the client offers it, else the client's own. A client
    /// with 0-RTT data keeps its version.
    pub(super) fn choose_version(&self, wanted: Option<u32>) -> u32 {
        let hello = self.hello.as_ref().filter(|hello| !hello.early_data);
        choose_version(self.first.version, wanted, hello.and_then(|hello| hello.versions.as_ref()))
    }

    /// Keeps a datagram in which a part of the ClientHello is, and what is read of it. False if there is no room.
    fn keep(&mut self, admission: &mut Admission, ecn: Ecn, datagram: Box<[u8]>) -> bool {
        let read = self.peek.held().saturating_sub(self.read_bytes);
        let room = admission.has_room_for(datagram.len(), read)
            && admission.charge(datagram.len())
            && admission.charge_read(read);
        if room {
            self.hello_bytes = self.hello_bytes.saturating_add(datagram.len());
            self.read_bytes = self.read_bytes.saturating_add(read);
            self.datagrams.push((ecn, datagram));
        }
        room
    }

    /// Keeps a datagram that came early, if there is room.
    fn keep_early(&mut self, admission: &mut Admission, ecn: Ecn, datagram: Box<[u8]>) {
        let bytes = self.early_bytes.saturating_add(datagram.len());
        if bytes <= MAX_EARLY && admission.charge_early(datagram.len()) {
            self.early_bytes = bytes;
            self.datagrams.push((ecn, datagram));
        }
    }
}

/// What a datagram did to a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peeked {
    /// No packet in it is authentic.
    Forged,
    /// There is no sense in what it says; the handshake cannot go on.
    Malformed,
    /// The client gives up, or somebody on its path says so in its name: nobody can tell (RFC 9000 section 21.1.1).
    Closed,
    /// The ClientHello is not complete.
    Partial,
    /// The ClientHello is complete.
    Complete,
}

/// Why a datagram does not begin a handshake, or ends one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejected {
    /// No packet in it is authentic: it may belong to a connection of another shard.
    Forged,
    /// There is no room for another handshake.
    Full,
    /// There is no sense in what it says.
    Malformed,
    /// The client gives up.
    Closed,
}

/// Those whose ClientHello is not complete, in the order in which they began.
#[derive(Debug, Default)]
struct Incomplete {
    /// May hold keys of others: no more than there are of these, and a few.
    keys: VecDeque<IncomingKey>,
    count: usize,
    sample: Sample,
}

impl Incomplete {
    fn enter(&mut self, key: IncomingKey) {
        self.keys.push_back(key);
        self.count = self.count.saturating_add(1);
    }

    /// One is complete, or gone.
    fn leave(&mut self, entries: &Slab<Incoming>) {
        self.count = self.count.saturating_sub(1);
        let is_other = |key: &IncomingKey| entries.get(key.0).is_none_or(|incoming| incoming.hello.is_some());
        while self.keys.pop_front_if(|key| is_other(key)).is_some() {}
        if self.keys.len() > self.count.saturating_mul(2).saturating_add(64) {
            self.keys.retain(|key| !is_other(key));
        }
    }
}

/// The handshakes that wait.
#[derive(Debug)]
pub(super) struct IncomingSet {
    entries: Slab<Incoming>,
    expiry: TimerQueue<IncomingKey>,
    /// Complete, and not yet shown to the application. May hold keys of handshakes that are gone.
    ready: VecDeque<IncomingKey>,
    incomplete: Incomplete,
    /// They have got the beginning of a ClientHello, to be acknowledged. May hold keys of handshakes that are gone.
    unanswered: Vec<IncomingKey>,
    admission: Admission,
    strays: Strays,
}

impl IncomingSet {
    pub(super) fn new(most: usize) -> Self {
        IncomingSet {
            entries: Slab::new(),
            expiry: TimerQueue::new(),
            ready: VecDeque::new(),
            incomplete: Incomplete::default(),
            unanswered: Vec::new(),
            admission: Admission::new(most),
            strays: Strays::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// The ids that the clients chose for their first packets.
    pub(super) fn client_ids(&self) -> impl Iterator<Item = ConnectionId> {
        self.entries.iter().map(|(_, incoming)| incoming.first.client_dcid)
    }

    /// True if strangers from there should prove it first.
    pub(super) fn is_strained(&self, source: Source) -> bool {
        self.admission.is_strained(source)
    }

    /// Who should give way to a client from `source` that has proved it: of those that are looked at and stand in its way the
    /// one that has waited longest for the rest of its ClientHello. Those come first who have not proved anything, and then
    /// those of whose network there are most.
    pub(super) fn in_the_way(&mut self, source: Source) -> Option<IncomingKey> {
        let IncomingSet { entries, incomplete: Incomplete { keys, sample, .. }, admission, .. } = self;
        let ledger = &admission.ledger;
        let looked_at = sample.of(keys.len()).filter_map(|at| keys.get(at));
        let incomplete =
            looked_at.filter_map(|key| Some((*key, entries.get(key.0)?))).filter(|(_, incoming)| {
                incoming.hello.is_none() && ledger.stands_in_the_way(source, incoming.first.source)
            });
        let first = incomplete.min_by_key(|(_, incoming)| {
            let validated = incoming.is_validated();
            let neighbours = if validated { ledger.held_by_neighbours(incoming.first.source) } else { 0 };
            (validated, Reverse(neighbours), incoming.begun_at)
        });
        first.map(|(key, _)| key)
    }

    pub(super) fn get(&self, key: IncomingKey) -> Option<&Incoming> {
        self.entries.get(key.0)
    }

    /// Keeps a new handshake.
    pub(super) fn begin(
        &mut self,
        now: Time,
        first: FirstInitial,
        ecn: Ecn,
        datagram: &[u8],
    ) -> Result<IncomingKey, Rejected> {
        let (mut incoming, mut numbers) = (Incoming::new(now, first), Numbers::default());
        match incoming.peek(datagram, &mut numbers) {
            Peeked::Forged => return Err(Rejected::Forged),
            Peeked::Malformed => return Err(Rejected::Malformed),
            Peeked::Closed => return Err(Rejected::Closed),
            Peeked::Partial => {
                incoming.on_beginning(now, &numbers, ecn, true);
            }
            Peeked::Complete => {}
        }
        if !self.admission.admit(first.source) {
            return Err(Rejected::Full);
        }
        if !incoming.keep(&mut self.admission, ecn, datagram.into()) {
            self.admission.leave(first.source, 0, 0);
            return Err(Rejected::Full);
        }
        for (ecn, early) in self.strays.take(&first.client_dcid, &first.path) {
            incoming.keep_early(&mut self.admission, ecn, early);
        }
        let complete = incoming.hello.is_some();
        let key = IncomingKey(self.entries.insert(incoming));
        if complete {
            self.expiry.set(key, Some(now + LIFETIME));
            self.ready.push_back(key);
        } else {
            self.expiry.set(key, Some(now + ACCEPT_WITHIN));
            self.unanswered.push(key);
            self.incomplete.enter(key);
        }
        Ok(key)
    }

    /// A datagram that begins with a 0-RTT packet came, but no Initial packet with this id yet.
    pub(super) fn keep_stray(&mut self, dcid: ConnectionId, path: PathKey, ecn: Ecn, datagram: &[u8]) {
        self.strays.keep(dcid, path, ecn, datagram);
    }

    /// Where a client comes from that has proved it, if there is no room for so many bytes more of its ClientHello, and to read
    /// it.
    pub(super) fn lacks_room(&self, key: IncomingKey, bytes: usize) -> Option<Source> {
        let incoming = self.entries.get(key.0).filter(|incoming| incoming.hello.is_none())?;
        (incoming.is_validated() && !self.admission.has_room_for(bytes, HELLO_READ))
            .then_some(incoming.first.source)
    }

    /// A further datagram came for a handshake. What there is no room for is dropped; `Err` if the
    /// handshake cannot go on.
    pub(super) fn on_datagram(
        &mut self,
        now: Time,
        key: IncomingKey,
        path: &PathKey,
        ecn: Ecn,
        datagram: &[u8],
    ) -> Result<(), Rejected> {
        let Some(incoming) = self.entries.get_mut(key.0) else { return Ok(()) };
        let is_full = incoming.datagrams.len() >= MAX_DATAGRAMS;
        let most = if incoming.hello.is_some() { MAX_DATAGRAMS } else { MAX_DATAGRAMS + MAX_PIECES };
        if !incoming.first.path.matches(path) {
            return Ok(());
        }
        if incoming.hello.is_some() && incoming.is_farewell(datagram) {
            return Err(Rejected::Closed);
        }
        if incoming.datagrams.len() >= most {
            return Ok(());
        }
        if incoming.hello.is_some() || begins_early(datagram) {
            // Only the connection can tell whether 0-RTT packets are authentic.
            if !is_full {
                incoming.keep_early(&mut self.admission, ecn, datagram.into());
            }
            return Ok(());
        }
        let hello_bytes = incoming.hello_bytes.saturating_add(datagram.len());
        if hello_bytes > MAX_HELLO || incoming.fruitless >= MAX_FRUITLESS {
            return Ok(());
        }
        let (known, mut numbers) = (incoming.peek.received(), Numbers::default());
        let peeked = incoming.peek(datagram, &mut numbers);
        let kept = match peeked {
            Peeked::Malformed => return Err(Rejected::Malformed),
            Peeked::Closed => return Err(Rejected::Closed),
            Peeked::Complete => true,
            // One that says nothing new must not take the room of what is missing; nor must a damaged one.
            Peeked::Partial => incoming.peek.received() > known,
            Peeked::Forged => false,
        };
        incoming.fruitless = incoming.fruitless.saturating_add(u16::from(!kept));
        if peeked == Peeked::Forged {
            return Ok(());
        }
        if kept && !incoming.keep(&mut self.admission, ecn, datagram.into()) {
            // The connection would never see what the client is told has come.
            if peeked == Peeked::Complete {
                self.incomplete.leave(&self.entries);
            }
            return Err(Rejected::Full);
        }
        match peeked {
            Peeked::Complete => {
                self.expiry.set(key, Some(now + LIFETIME));
                self.ready.push_back(key);
                self.incomplete.leave(&self.entries);
            }
            Peeked::Partial => {
                self.expiry.set(key, Some((now + ACCEPT_WITHIN).min(incoming.begun_at + LONGEST)));
                if incoming.on_beginning(now, &numbers, ecn, kept) {
                    self.unanswered.push(key);
                }
            }
            Peeked::Malformed | Peeked::Closed | Peeked::Forged => {}
        }
        Ok(())
    }

    /// The next handshake whose ClientHello is complete.
    pub(super) fn next_ready(&mut self) -> Option<IncomingKey> {
        while let Some(key) = self.ready.pop_front() {
            if self.entries.contains(key.0) {
                return Some(key);
            }
        }
        None
    }

    /// The next handshake whose beginning is to be acknowledged, with its first packet and how the client has been
    /// answered before. Nobody waits for more of the others.
    pub(super) fn next_unanswered(&mut self) -> Option<(IncomingKey, FirstInitial, Answered)> {
        while let Some(key) = self.unanswered.pop() {
            if let Some(incoming) = self.entries.get(key.0)
                && incoming.hello.is_none()
            {
                return Some((key, incoming.first, incoming.answered()));
            }
        }
        None
    }

    /// Acknowledges what has come of a ClientHello, as `local_cid`.
    pub(super) fn acknowledgement(&mut self, key: IncomingKey, local_cid: ConnectionId) -> Option<Vec<u8>> {
        let incoming = self.entries.get_mut(key.0)?;
        let beginning = incoming.beginning.as_mut()?;
        beginning.answered.local_cid = Some(local_cid);
        beginning.acknowledgement(&incoming.first)
    }

    /// Those whose ClientHello is not complete, as they are counted and as they are; and how many were looked at so far.
    #[cfg(test)]
    pub(super) fn incomplete(&self) -> (usize, usize, usize) {
        let there = self.entries.iter().filter(|(_, incoming)| incoming.hello.is_none()).count();
        (self.incomplete.count, there, self.incomplete.sample.looked_at)
    }

    /// Datagrams opened so far of those that wait.
    #[cfg(test)]
    pub(super) fn opened(&self) -> usize {
        self.entries.iter().map(|(_, incoming)| incoming.opened).sum()
    }

    /// Keys that are held for [`IncomingSet::next_ready`].
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// Entries of the queue of those whose ClientHello is not complete.
    #[cfg(test)]
    pub(super) fn incomplete_queued(&self) -> usize {
        self.incomplete.keys.len()
    }

    pub(super) fn remove(&mut self, key: IncomingKey) -> Option<Incoming> {
        let incoming = self.entries.remove(key.0)?;
        self.expiry.set(key, None);
        if incoming.hello.is_none() {
            self.incomplete.leave(&self.entries);
        }
        self.admission.leave(incoming.first.source, incoming.hello_bytes, incoming.early_bytes);
        self.admission.release_read(incoming.read_bytes);
        // An application that does not look for what waits must not make the queue of it grow.
        if self.ready.len() > self.entries.len().saturating_mul(2).saturating_add(64) {
            let entries = &self.entries;
            self.ready.retain(|key| entries.contains(key.0));
        }
        Some(incoming)
    }

    pub(super) fn deadline(&mut self) -> Option<Time> {
        self.expiry.next_deadline()
    }

    /// Takes out a handshake that has waited too long. Call until `None`.
    pub(super) fn pop_expired(&mut self, now: Time) -> Option<(IncomingKey, Incoming)> {
        let key = self.expiry.pop_expired(now)?;
        self.remove(key).map(|incoming| (key, incoming))
    }
}

/// Whether the first packet of a datagram is a 0-RTT packet.
fn begins_early(datagram: &[u8]) -> bool {
    matches!(header::parse(datagram, 0), Ok(Packet::Long { packet_type: PacketType::ZeroRtt, .. }))
}

impl Incoming {
    /// Reads the CRYPTO frames of a datagram's Initial packets, in a copy: the connection will decrypt
    /// the datagram in place again.
    fn peek(&mut self, datagram: &[u8], numbers: &mut Numbers) -> Peeked {
        if datagram.len() < MIN_INITIAL_DATAGRAM {
            return Peeked::Forged;
        }
        let FirstInitial { version, client_dcid, .. } = self.first;
        let ids = self.ids();
        let Some(keys) = keys::initial(version, &client_dcid, Side::Server) else { return Peeked::Forged };
        #[cfg(test)]
        {
            self.opened = self.opened.saturating_add(1);
        }
        let mut peeked = Peeked::Forged;
        let decisive = open_initials(&keys, &ids, &mut datagram.to_vec(), |number, payload| {
            numbers.push(number);
            peeked = self.peek_frames(payload);
            if peeked == Peeked::Partial { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if decisive.is_break() && peeked == Peeked::Complete {
            self.keys = Some(Box::new(keys));
        }
        peeked
    }

    /// Whether the client gives up, in a datagram that came after its whole ClientHello. Of those as few are opened as of others
    /// that say nothing new.
    fn is_farewell(&mut self, datagram: &[u8]) -> bool {
        let ids = self.ids();
        let Some(keys) = self.keys.as_deref().filter(|_| !begins_early(datagram)) else { return false };
        if self.fruitless >= MAX_FRUITLESS || datagram.len() < MIN_INITIAL_DATAGRAM {
            return false;
        }
        self.fruitless = self.fruitless.saturating_add(1);
        let found = open_initials(keys, &ids, &mut datagram.to_vec(), |_, payload| {
            let mut frames = Frames::new(payload);
            match frames.find(|frame| matches!(frame, Ok(Frame::ConnectionClose { .. }))) {
                Some(Ok(Frame::ConnectionClose { code, .. })) => ControlFlow::Break(code),
                _ => ControlFlow::Continue(()),
            }
        });
        self.closed_with = found.break_value();
        self.closed_with.is_some()
    }

    fn peek_frames(&mut self, payload: &[u8]) -> Peeked {
        for frame in Frames::new(payload) {
            let parsed = match frame {
                Ok(Frame::Crypto { offset, data }) => self.peek.on_crypto(offset, data),
                Ok(Frame::ConnectionClose { code, .. }) => {
                    self.closed_with = Some(code);
                    return Peeked::Closed;
                }
                Ok(frame) if frame.permitted_in(PacketType::Initial) => continue,
                Ok(_) | Err(_) => return Peeked::Malformed,
            };
            match parsed {
                Ok(Parsed::NeedMore) => {}
                Ok(Parsed::Complete(hello)) => {
                    self.hello = Some(hello);
                    // What was collected is not needed any more: the datagrams have it.
                    self.peek = Peek::new();
                    return Peeked::Complete;
                }
                Ok(Parsed::Malformed) | Err(_) => return Peeked::Malformed,
            }
        }
        Peeked::Partial
    }
}
