//! A model of a TCP connection between two hosts, as a Linux kernel would run it: what carries HTTP/2 where the
//! kernel's own packets cannot be led over a bad link.
//!
//! It is driven from outside in any time, real or virtual: bytes are written at one side and read at the other,
//! and in between segments cross the link model and are lost there. What is modelled: the handshake with its
//! initial time-out of 1 s (RFC 6298), an initial window of ten segments (RFC 6928), CUBIC (RFC 9438) with HyStart++,
//! selective acknowledgements and RACK-TLP (RFC 2018, RFC 8985), timestamps (RFC 7323), retransmission time-outs of
//! at least 200 ms beyond the round trip, which double (as Linux has them), and delivery in order.
//!
//! Where the model deviates from the kernel it does so in TCP's favour: receivers acknowledge every segment at once
//! and tell everything they hold, windows are not closed by slow readers or reset after a pause, and a lost SYN or a
//! time-out leaves a window of two segments or more.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use godwit_base::Time;

use super::delay::DelayQueue;
use super::links::{Tally, VisitLink, Way};
use receiver::Receiver;
use sender::{Ack, Sender};

/// Headers of IPv4 and TCP with timestamps, in bytes.
const HEADERS: usize = 52;
/// An IP packet that opens a connection, in bytes.
const SYN_SIZE: usize = 60;
/// What one block of a selective acknowledgement takes, in bytes.
const SACK_SIZE: usize = 8;
/// The most of those blocks that count towards a packet's size.
const SACKS_COUNTED: usize = 4;
/// The first time-out of the handshake (RFC 6298 section 2.1); it doubles.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    fn way(self) -> Way {
        match self {
            Side::Client => Way::Up,
            Side::Server => Way::Down,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Syn,
    SynAck,
    Other,
}

/// What crosses the link.
#[derive(Debug)]
struct Segment {
    kind: Kind,
    /// Where the data begins, and the data.
    data: Option<(u64, Bytes)>,
    ack: Ack,
    /// When it was sent.
    stamp: Time,
}

impl Segment {
    fn ip_len(&self) -> usize {
        let data = self.data.as_ref().map_or(0, |(_, data)| data.len());
        match self.kind {
            Kind::Syn | Kind::SynAck => SYN_SIZE,
            Kind::Other => HEADERS + data + SACK_SIZE * self.ack.held.len().min(SACKS_COUNTED),
        }
    }
}

/// One host's part of the connection.
#[derive(Debug)]
struct End {
    open: bool,
    /// When SYN or SYN-ACK is sent (again), while the handshake is under way.
    handshake_at: Option<Time>,
    handshakes_sent: u32,
    sender: Sender,
    receiver: Receiver,
    /// The stamp of the segment that came last.
    recent: Option<Time>,
}

impl End {
    fn new() -> End {
        let (sender, receiver) = (Sender::new(), Receiver::default());
        End { open: false, handshake_at: None, handshakes_sent: 0, sender, receiver, recent: None }
    }

    fn next(&self) -> Option<Time> {
        let sender = if self.open { self.sender.timer().map(|(at, _)| at) } else { None };
        self.handshake_at.into_iter().chain(sender).min()
    }

    fn ack(&self) -> Ack {
        Ack { below: self.receiver.next(), held: self.receiver.held(), echo: self.recent }
    }
}

/// A connection with both its ends and the link between them.
#[derive(Debug)]
pub(super) struct Connection {
    link: VisitLink,
    tally: Arc<Tally>,
    wire: DelayQueue<(Side, Segment)>,
    client: End,
    server: End,
}

impl Connection {
    /// A connection that the client begins to open now.
    pub(super) fn open(link: VisitLink, tally: Arc<Tally>, now: Time) -> Connection {
        let (mut client, server) = (End::new(), End::new());
        client.handshake_at = Some(now);
        let mut connection = Connection { link, tally, wire: DelayQueue::new(), client, server };
        connection.advance(now);
        connection
    }

    /// Bytes for the other side. The present has been told with [`Connection::advance`] before.
    pub(super) fn write(&mut self, side: Side, now: Time, data: Bytes) {
        self.end(side).sender.write(data);
        self.transmit(side, now);
    }

    /// What has arrived at this side and comes next.
    pub(super) fn read(&mut self, side: Side) -> Option<Bytes> {
        self.end(side).receiver.read()
    }

    /// Bytes written at this side that are not acknowledged.
    pub(super) fn backlog(&self, side: Side) -> usize {
        match side {
            Side::Client => self.client.sender.backlog(),
            Side::Server => self.server.sender.backlog(),
        }
    }

    /// When [`Connection::advance`] has something to do.
    pub(super) fn next(&self) -> Option<Time> {
        [self.wire.next(), self.client.next(), self.server.next()].into_iter().flatten().min()
    }

    /// Does everything that is due, each thing as of its own time.
    pub(super) fn advance(&mut self, now: Time) {
        while let Some(at) = self.next().filter(|at| *at <= now) {
            if let Some((due, (to, segment))) = self.wire.pop(at) {
                self.tally.on_delivery(due, now);
                self.on_segment(to, at, segment);
                continue;
            }
            for side in [Side::Client, Side::Server] {
                self.on_time(side, at);
            }
        }
    }

    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn on_time(&mut self, side: Side, now: Time) {
        let end = self.end(side);
        if end.handshake_at.is_some_and(|at| at <= now) {
            self.shake(side, now);
            return;
        }
        if end.open && end.sender.on_time(now) {
            self.transmit(side, now);
        }
    }

    /// Sends SYN or SYN-ACK, and again after a time-out.
    fn shake(&mut self, side: Side, now: Time) {
        let end = self.end(side);
        let wait = FIRST_TIMEOUT.saturating_mul(1 << end.handshakes_sent.min(7));
        end.handshake_at = Some(now + wait);
        end.handshakes_sent += 1;
        let kind = if side == Side::Client { Kind::Syn } else { Kind::SynAck };
        let ack = end.ack();
        self.send(side, now, Segment { kind, data: None, ack, stamp: now });
    }

    fn send(&mut self, from: Side, now: Time, segment: Segment) {
        if let Some(at) = self.link.send(from.way(), now, segment.ip_len(), &self.tally) {
            self.wire.push(at, (from.other(), segment));
        }
    }

    /// Sends what the window permits.
    fn transmit(&mut self, side: Side, now: Time) {
        loop {
            let end = self.end(side);
            if !end.open {
                return;
            }
            let Some(data) = end.sender.transmit(now) else { return };
            let ack = end.ack();
            self.send(side, now, Segment { kind: Kind::Other, data: Some(data), ack, stamp: now });
        }
    }

    fn on_segment(&mut self, to: Side, now: Time, segment: Segment) {
        let end = self.end(to);
        end.recent = Some(segment.stamp);
        match (segment.kind, to) {
            (Kind::Syn, Side::Server) if !end.open => return self.shake(to, now),
            (Kind::Syn, _) => return,
            (Kind::SynAck, _) => {
                self.on_open(to, now, segment.ack.echo);
                self.acknowledge(to, now);
            }
            (Kind::Other, _) => {
                self.on_open(to, now, segment.ack.echo);
                let end = self.end(to);
                end.sender.on_ack(now, &segment.ack);
                if let Some((start, data)) = segment.data {
                    end.receiver.on_data(start, data);
                    self.acknowledge(to, now);
                }
            }
        }
        self.transmit(to, now);
    }

    /// The handshake is over for this side, if it was not before.
    fn on_open(&mut self, side: Side, now: Time, echo: Option<Time>) {
        let end = self.end(side);
        if !end.open {
            end.open = true;
            end.handshake_at = None;
            end.sender.on_open(now, echo);
        }
    }

    fn acknowledge(&mut self, side: Side, now: Time) {
        let ack = self.end(side).ack();
        self.send(side, now, Segment { kind: Kind::Other, data: None, ack, stamp: now });
    }
}
