//! The way in: from a batch of datagrams to the connections they belong to, and to the answers that
//! belong to none.

use super::demux::Target;
use super::first_initial::{Answered, FirstInitial};
use super::foreign::{Foreign, ForeignBatch};
use super::incoming::{GoneIncoming, Incoming, Rejected};
use super::run::{Run, WORTH_LOOKING_AHEAD};
use super::{ConnKey, Endpoint, IncomingKey, negotiate, reflectors, stateless_reset};
use crate::address_token::{NewToken, RetryToken, TokenKind};
use crate::cid::{CidCodec, Route};
use crate::path::PathKey;
use godwit_base::{Ecn, RecvBatch, RecvMeta, Time, WallTime};
use godwit_wire::constants::MIN_INITIAL_DATAGRAM;
use godwit_wire::header::{self, Packet, PacketType};
use godwit_wire::{ConnectionId, TransportErrorCode};

/// Where a datagram came from.
#[derive(Debug, Clone, Copy)]
struct Origin {
    now: Time,
    path: PathKey,
    ecn: Ecn,
    /// It was handed over by another shard or generation, and must not be handed on.
    forwarded: bool,
}

impl Endpoint {
    /// Takes in a batch of received datagrams. `wall` is the time of day, for address tokens.
    ///
    /// Each connection decides once about acknowledging what the batch brought it. Then call
    /// [`Endpoint::next_incoming`] and [`Endpoint::next_event`] until `None`, and
    /// [`Endpoint::transmit`].
    pub fn receive(&mut self, now: Time, wall: WallTime, batch: &mut RecvBatch) {
        while self.receive_some(now, wall, batch) {}
    }

    /// As [`Endpoint::receive`], but stops behind a run that has completed the handshake of a client, which takes long.
    /// True if runs are left for another call: what this end has to say is to be sent before that, so that the servers have
    /// something to do meanwhile. What the batch brings otherwise is taken in at once.
    pub fn receive_some(&mut self, now: Time, wall: WallTime, batch: &mut RecvBatch) -> bool {
        self.clock.set(now, wall);
        self.queues.finished = false;
        while !self.queues.finished
            && let Some((meta, bytes)) = batch.next_run()
        {
            self.on_run(now, false, &meta, bytes);
        }
        self.end_batch(now);
        batch.has_next_run()
    }

    /// Takes in runs that another shard, or another generation of the process, found to be
    /// [foreign](Endpoint::swap_foreign). They are not handed on again: what is not known here is answered as a
    /// forgotten connection's.
    pub fn receive_forwarded<'a>(
        &mut self,
        now: Time,
        wall: WallTime,
        runs: impl Iterator<Item = (RecvMeta, &'a mut [u8])>,
    ) {
        self.clock.set(now, wall);
        for (meta, bytes) in runs {
            self.on_run(now, true, &meta, bytes);
        }
        self.end_batch(now);
    }

    fn on_run(&mut self, now: Time, forwarded: bool, meta: &RecvMeta, bytes: &mut [u8]) {
        let RecvMeta { socket, local, remote, ecn, stride, .. } = *meta;
        let path = PathKey { socket, local, remote };
        let origin = Origin { now, path, ecn, forwarded };
        let (mut run, mut rest) = (Run::new(), bytes);
        while !rest.is_empty() {
            if run.is_at_the_unseen() {
                self.look_ahead(rest, stride, &mut run);
            }
            let (datagram, next) = rest.split_at_mut(stride.min(rest.len()));
            self.on_datagram(&origin, datagram, &mut run);
            run.advance();
            rest = next;
        }
    }

    /// Has the connection of the last datagram look at those that are left.
    fn look_ahead(&self, rest: &[u8], stride: usize, run: &mut Run) {
        let worth = rest.len() > stride.saturating_mul(WORTH_LOOKING_AHEAD - 1);
        let owner = run.last().filter(|_| worth);
        let slot = owner.and_then(|key| Some((key, self.slots.get(key.0)?)));
        run.set_ahead(
            slot.and_then(|(key, slot)| Some((key, slot.connection.machine.masks_ahead(rest, stride)?))),
        );
    }

    /// Exchanges the datagrams for connections of other shards and generations that have gathered for `batch`, which
    /// is to be empty. Whoever knows one of those hands it over with [`Endpoint::receive_forwarded`]; if nobody
    /// does, [`Endpoint::reject_foreign`] is to be called. What is not fetched is dropped when there is too much.
    pub const fn swap_foreign(&mut self, batch: &mut ForeignBatch) {
        std::mem::swap(&mut self.foreign, batch);
    }

    /// True if [`Endpoint::swap_foreign`] has something to give.
    pub const fn has_foreign(&self) -> bool {
        !self.foreign.is_empty()
    }

    /// Nobody knows the shard or generation that a run of foreign datagrams names: they are answered like those of
    /// a connection of our own that has been forgotten.
    pub fn reject_foreign(&mut self, now: Time, foreign: &Foreign, run: &[u8]) {
        let RecvMeta { socket, local, remote, stride, .. } = foreign.meta;
        for datagram in run.chunks(stride.max(1)) {
            let short_header = datagram.first().is_some_and(|first| !header::is_long(*first));
            if short_header
                && let Some(dcid) = header::peek_dcid(datagram, self.codec.len()).and_then(ConnectionId::new)
            {
                let path = PathKey { socket, local, remote };
                self.send_stateless_reset(now, &path, &dcid, datagram.len());
            }
        }
    }

    #[inline(always)]
    fn on_datagram(&mut self, origin: &Origin, datagram: &mut [u8], run: &mut Run) {
        let Some(dcid) = header::peek_dcid(datagram, self.codec.len()) else {
            return self.demux.discards.count(origin.path.socket);
        };
        match run.owner(dcid) {
            Some(key) => self.deliver(origin, key, datagram, run),
            None => self.on_datagram_of_another(origin, datagram, run),
        }
    }

    /// A datagram that is not for the connection id of the one before it.
    #[inline(never)]
    fn on_datagram_of_another(&mut self, origin: &Origin, datagram: &mut [u8], run: &mut Run) {
        let Some(first) = datagram.first().copied() else { return };
        let Some(dcid) = header::peek_dcid(datagram, self.codec.len()) else { return };
        // Ids of more than 20 bytes exist only in versions that are not spoken here.
        let found = ConnectionId::new(dcid);
        let target = found.and_then(|dcid| self.demux.find(&dcid, header::is_long(first)));
        match (target, found) {
            (Some(Target::Connection(key)), Some(dcid)) => {
                run.set_last(dcid, key);
                self.deliver(origin, key, datagram, run);
            }
            (Some(Target::Incoming(key)), _) => {
                self.make_room_for_hello(key, datagram.len());
                match self.incoming.on_datagram(origin.now, key, &origin.path, origin.ecn, datagram) {
                    Ok(()) => {}
                    Err(Rejected::Full) => drop(self.end_incoming(key, Some(REFUSED))),
                    Err(Rejected::Closed) => drop(self.end_incoming(key, None)),
                    Err(_) => drop(self.end_incoming(key, Some(MALFORMED))),
                }
            }
            _ if header::is_long(first) => {
                let older = found.and_then(|dcid| self.older_generations.find(origin.now, &dcid));
                match older.filter(|_| !origin.forwarded) {
                    Some((generation, shard)) => self.put_aside(origin, generation, shard, datagram),
                    None if self.on_stray_long(origin, datagram) => {}
                    None => self.demux.discards.count(origin.path.socket),
                }
            }
            _ if self.on_stray_short(origin, datagram) => {}
            _ => self.demux.discards.count(origin.path.socket),
        }
    }

    #[inline(always)]
    fn deliver(&mut self, origin: &Origin, key: ConnKey, datagram: &mut [u8], run: &Run) {
        let Some(slot) = self.slots.get_mut(key.0) else { return };
        let Origin { now, path, ecn, .. } = *origin;
        slot.connection.machine.receive_ahead(now, path, ecn, datagram, run.mask(key));
        self.queues.finished |= slot.connection.machine.take_finished();
        if !slot.touched {
            slot.touched = true;
            self.queues.touched.push(key);
        }
    }

    fn end_batch(&mut self, now: Time) {
        let mut touched = std::mem::take(&mut self.queues.touched);
        for key in touched.drain(..) {
            if let Some(slot) = self.slots.get_mut(key.0) {
                slot.touched = false;
                slot.connection.machine.on_batch_end(now);
            }
            self.touch(key);
        }
        // The same allocation serves the next batch.
        self.queues.touched = touched;
        self.acknowledge_beginnings();
    }

    /// Tells clients what has come of a ClientHello that the batch did not complete.
    fn acknowledge_beginnings(&mut self) {
        while let Some((key, first, answered)) = self.incoming.next_unanswered() {
            let shown = self.shown_at(first.path.local);
            let local_cid = answered.local_cid.unwrap_or_else(|| self.fresh_cid(&shown));
            // Its further packets come to that id.
            self.demux.insert_initial(local_cid, Target::Incoming(key));
            let packet = self.incoming.acknowledgement(key, local_cid);
            if !self.outbox.is_full() {
                self.outbox.push(&first.path, packet);
            }
        }
    }

    /// Nothing leads to an incoming handshake any more.
    pub(super) fn forget_incoming(&mut self, key: IncomingKey, incoming: &Incoming) {
        if let Some(gone) = &mut self.queues.gone {
            gone.push_back(GoneIncoming { key, closed_with: incoming.closed_with });
        }
        for id in incoming.ids().into_iter().flatten() {
            self.demux.remove_initial(&id, Target::Incoming(key));
        }
    }

    /// A short header with an id that is nobody's here.
    fn on_stray_short(&mut self, origin: &Origin, datagram: &[u8]) -> bool {
        let reset = stateless_reset::token_of(datagram)
            .and_then(|token| self.demux.find_reset(origin.path.remote, token))
            .and_then(|key| Some((key, self.slots.get_mut(key.0)?)));
        if let Some((key, slot)) = reset {
            slot.connection.machine.on_stateless_reset(origin.now);
            self.touch(key);
            return true;
        }
        let Some(dcid) = header::peek_dcid(datagram, self.codec.len()).and_then(ConnectionId::new) else {
            return false;
        };
        // Whose it is comes first: else a new process would end the connections of the old one.
        if self.hand_on(origin, &dcid, datagram) {
            return true;
        }
        let is_answered = !reflectors::may_be(&origin.path.remote);
        if is_answered {
            self.send_stateless_reset(origin.now, &origin.path, &dcid, datagram.len());
        }
        is_answered
    }

    /// Puts a datagram aside for another shard if its id says so.
    fn hand_on(&mut self, origin: &Origin, dcid: &ConnectionId, datagram: &[u8]) -> bool {
        let Route::Foreign { shard, generation } = self.codec.route(dcid.as_bytes()) else { return false };
        if origin.forwarded {
            return false;
        }
        self.put_aside(origin, generation, shard, datagram);
        true
    }

    fn put_aside(&mut self, origin: &Origin, generation: u8, shard: u8, datagram: &[u8]) {
        let PathKey { socket, local, remote } = origin.path;
        let len = datagram.len();
        let meta = RecvMeta { socket, local, remote, ecn: origin.ecn, len, stride: len };
        // What there is no room for is lost, as in a full socket.
        let _ = self.foreign.push(Foreign { meta, shard, generation }, datagram);
    }

    fn send_stateless_reset(&mut self, now: Time, path: &PathKey, dcid: &ConnectionId, trigger: usize) {
        if trigger < stateless_reset::SMALLEST_TRIGGER
            || self.outbox.is_full()
            || !self.resets.take(now, self.holdings.source(path.remote.ip()))
        {
            return;
        }
        let token = self.config.secrets.reset_token(dcid);
        self.outbox.push(path, stateless_reset::build(trigger, token, &mut *self.rng));
    }

    /// A long header with an id that is nobody's here: a new client, or a packet come too late. False if it is good for nothing.
    fn on_stray_long(&mut self, origin: &Origin, datagram: &[u8]) -> bool {
        let quic = datagram.first().is_some_and(|first| header::has_quic_bit(*first));
        match header::parse(datagram, self.codec.len()) {
            Ok(Packet::UnknownVersion { dcid, scid, .. }) => {
                let ids = datagram.get(dcid).zip(datagram.get(scid));
                ids.is_some_and(|(dcid, scid)| self.send_versions(&origin.path, dcid, scid, datagram.len()))
            }
            Ok(Packet::Long { version, dcid, scid, .. }) if !self.config.versions.contains(&version) => {
                self.send_versions(&origin.path, dcid.as_bytes(), scid.as_bytes(), datagram.len())
            }
            // Packets of the versions spoken here have the QUIC bit set, or are none (RFC 9000 section 17.2).
            Ok(packet @ Packet::Long { .. }) if !quic && !self.may_lack_quic_bit(&packet, datagram) => false,
            Ok(Packet::Long { packet_type: PacketType::Initial, version, dcid, scid, token, .. }) => {
                let first = FirstInitial {
                    path: origin.path,
                    source: self.holdings.source(origin.path.remote.ip()),
                    version,
                    client_dcid: dcid,
                    original_dcid: dcid,
                    retry_scid: None,
                    peer_scid: scid,
                    validated: false,
                    saved: None,
                };
                self.on_first_initial(origin, first, datagram.get(token).unwrap_or_default(), datagram)
            }
            Ok(Packet::Long { packet_type: PacketType::Handshake, dcid, .. }) => {
                self.hand_on(origin, &dcid, datagram)
            }
            Ok(Packet::Long { packet_type: PacketType::ZeroRtt, dcid, .. }) if self.accepts_early() => {
                self.incoming.keep_stray(dcid, origin.path, origin.ecn, datagram);
                true
            }
            // 0-RTT that nobody accepts, Retry and Version Negotiation for nobody: the senders, if they mean it,
            // send again. A Version Negotiation is never answered (RFC 9000 section 6.1).
            Ok(_) | Err(_) => false,
        }
    }

    /// Whether a client may clear the QUIC bit of this packet before it has our transport parameters: one that has
    /// had them earlier, and shows a token of then (RFC 9287 section 3.1).
    fn may_lack_quic_bit(&self, packet: &Packet, datagram: &[u8]) -> bool {
        let of_all = self.server.as_ref().map(|server| server.transport.grease_quic_bit);
        let permitted = of_all.unwrap_or(self.config.accepts_each);
        permitted
            && match packet {
                Packet::Long { packet_type: PacketType::Initial, token, .. } => {
                    datagram.get(token.clone()).and_then(TokenKind::of) == Some(TokenKind::NewToken)
                }
                Packet::Long { packet_type, .. } => *packet_type == PacketType::ZeroRtt,
                _ => false,
            }
    }

    fn accepts_early(&self) -> bool {
        let of_all = self.server.as_ref().map(|server| server.tls.max_early_data_size > 0);
        self.accepting && of_all.unwrap_or(self.config.accepts_each)
    }

    /// Whether clients may connect at all.
    fn is_server(&self) -> bool {
        self.server.is_some() || self.config.accepts_each
    }

    fn send_versions(&mut self, path: &PathKey, dcid: &[u8], scid: &[u8], trigger: usize) -> bool {
        let is_answered = self.is_server()
            && trigger >= MIN_INITIAL_DATAGRAM
            && !self.outbox.is_full()
            && !reflectors::may_be(&path.remote);
        if is_answered {
            let versions = &self.config.versions;
            self.outbox.push(path, negotiate::version_negotiation(dcid, scid, versions, &mut *self.rng));
        }
        is_answered
    }

    /// False if it is good for nothing.
    fn on_first_initial(
        &mut self,
        origin: &Origin,
        mut first: FirstInitial,
        token: &[u8],
        datagram: &[u8],
    ) -> bool {
        let long_enough = first.client_dcid.len() >= CidCodec::MIN_LEN;
        if !self.is_server() || datagram.len() < MIN_INITIAL_DATAGRAM || !long_enough {
            return false;
        }
        if reflectors::may_be(&first.path.remote) {
            // It may be of another worker's connection all the same: that of a new client is authentic by itself.
            return !Incoming::is_authentic(first, datagram)
                && self.hand_on(origin, &first.client_dcid, datagram);
        }
        let source = first.source;
        let always = self.server.as_ref().is_some_and(|server| server.retry);
        let wants_retry = always || self.incoming.is_strained(source) || self.has_many_half_open(source);
        if let Err(Refused) = self.check_token(&mut first, token) {
            // The token may be damaged rather than wrong: then the packet is not authentic either, and the
            // client's next one will do.
            let is_authentic = Incoming::is_authentic(first, datagram);
            if is_authentic {
                self.send_close(&first, &Answered::default(), INVALID_TOKEN);
            }
            return is_authentic;
        }
        if !self.accepting {
            self.send_close(&first, &Answered::default(), REFUSED);
            return true;
        }
        if wants_retry && !first.validated {
            // Should it be an Initial of another shard's connection: that client ignores the Retry.
            self.send_retry(&first);
            return true;
        }
        if !self.has_room_for_half_open(origin.now, source) {
            return false;
        }
        let mut begun = self.incoming.begin(origin.now, first, origin.ecn, datagram);
        if first.validated
            && begun == Err(Rejected::Full)
            && let Some(key) = self.incoming.in_the_way(source)
        {
            self.turn_away(key);
            begun = self.incoming.begin(origin.now, first, origin.ecn, datagram);
        }
        match begun {
            Ok(key) => self.demux.insert_initial(first.client_dcid, Target::Incoming(key)),
            Err(Rejected::Forged) => return self.hand_on(origin, &first.client_dcid, datagram),
            // Whoever proves its address has a right to the place of one who has not.
            Err(Rejected::Full) if !first.validated => self.send_retry(&first),
            Err(Rejected::Full | Rejected::Closed) => return false,
            Err(Rejected::Malformed) => self.send_close(&first, &Answered::default(), MALFORMED),
        }
        true
    }

    /// What a client's token proves (RFC 9000 section 8.1.3). A token that is not ours is as good as none;
    /// a Retry token that does not hold is refused.
    fn check_token(&mut self, first: &mut FirstInitial, token: &[u8]) -> Result<(), Refused> {
        let (secrets, remote, wall) = (&self.config.secrets, first.path.remote, self.clock.wall);
        match TokenKind::of(token) {
            Some(TokenKind::Retry) => {
                let token = RetryToken::open(secrets, token, remote, wall).map_err(|_| Refused)?;
                first.original_dcid = token.original_dcid;
                first.retry_scid = Some(first.client_dcid);
                first.validated = true;
            }
            Some(TokenKind::NewToken) => {
                if let Ok(content) = NewToken::open(secrets, token, remote.ip(), wall)
                    && self.config.used_tokens.take(wall, token)
                {
                    first.validated = true;
                    first.saved = content.path;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Gives up an incoming handshake, with a close or silently.
    pub(super) fn end_incoming(&mut self, key: IncomingKey, answer: Option<Answer>) -> bool {
        let Some(incoming) = self.incoming.remove(key) else { return false };
        self.forget_incoming(key, &incoming);
        if let Some(answer) = answer {
            self.send_close(&incoming.first, &incoming.answered(), answer);
        }
        true
    }

    /// Has others give way to a handshake that goes on, if its client has proved its address and there is no room left.
    fn make_room_for_hello(&mut self, key: IncomingKey, bytes: usize) {
        while let Some(source) = self.incoming.lacks_room(key, bytes)
            && let Some(other) = self.incoming.in_the_way(source).filter(|other| *other != key)
        {
            self.turn_away(other);
        }
    }

    /// Ends a handshake for which there is no place. Its client will come again with all it has sent, unless it was told that
    /// a part has come: then it would wait in vain, and is told the rest.
    pub(super) fn turn_away(&mut self, key: IncomingKey) {
        let told = self.incoming.get(key).is_some_and(|incoming| incoming.answered().packets > 0);
        self.end_incoming(key, told.then_some(REFUSED));
    }

    pub(super) fn send_close(&mut self, first: &FirstInitial, answered: &Answered, (code, reason): Answer) {
        if !self.outbox.is_full() {
            let close = negotiate::close(first, answered, code, reason);
            self.outbox.push(&first.path, close);
        }
    }

    pub(super) fn send_retry(&mut self, first: &FirstInitial) {
        if self.outbox.is_full() {
            return;
        }
        let FirstInitial { path, version, original_dcid, peer_scid, .. } = *first;
        let retry_scid = self.fresh_cid(&self.shown_at(path.local));
        let token = RetryToken { remote: path.remote, original_dcid, issued: self.clock.wall };
        let secrets = &self.config.secrets;
        let retry = negotiate::retry(version, &peer_scid, &retry_scid, &token, secrets, &mut *self.rng);
        self.outbox.push_retry(&path, retry);
    }
}

/// A Retry token that does not hold.
struct Refused;

/// The code and the reason of a close without a connection.
pub(super) type Answer = (TransportErrorCode, &'static str);

pub(super) const REFUSED: Answer = (TransportErrorCode::CONNECTION_REFUSED, "no new connections");
const INVALID_TOKEN: Answer = (TransportErrorCode::INVALID_TOKEN, "the token does not hold");
const MALFORMED: Answer = (TransportErrorCode::PROTOCOL_VIOLATION, "the first flight makes no sense");
