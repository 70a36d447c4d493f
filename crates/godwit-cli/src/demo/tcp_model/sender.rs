//! The sending half of one end: what is on its way, what is lost, and how much may be sent.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use godwit_base::Time;
use godwit_recovery::RttEstimator;
use godwit_recovery::congestion::{Acked, Algorithm, Controller};

/// Bytes of data in a full segment: 1500 less the headers of IPv4 and of TCP with timestamps.
pub(super) const SEGMENT: u16 = 1448;
/// The first time-out (RFC 6298 section 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// A time-out is at least this much longer than the round trip (Linux).
const RTO_MARGIN: Duration = Duration::from_millis(200);
/// What a tail probe waits beyond two round trips if only one segment is on its way (Linux).
const LONE_PROBE_MARGIN: Duration = Duration::from_millis(200);
/// The same if there are more: two ticks of a kernel's clock.
const PROBE_MARGIN: Duration = Duration::from_millis(2);
/// Segments held above a gap that prove it a loss at once (RFC 8985 section 6.2).
const DUPLICATE_THRESHOLD: usize = 3;

/// What the receiver says.
#[derive(Clone, Debug, Default)]
pub(super) struct Ack {
    /// Everything below has come.
    pub(super) below: u64,
    /// And these ranges above it.
    pub(super) held: Vec<(u64, u64)>,
    /// The stamp of the segment it answers.
    pub(super) echo: Option<Time>,
}

impl Ack {
    fn covers(&self, start: u64, end: u64) -> bool {
        end <= self.below || self.held.iter().any(|(from, to)| *from <= start && end <= *to)
    }
}

/// Why the timer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// A segment sent before one that arrived is overdue.
    Overdue,
    /// A tail loss probe (RFC 8985 section 7).
    Probe,
    Retransmission,
}

#[derive(Debug)]
struct Sent {
    start: u64,
    data: Bytes,
    at: Time,
    again: bool,
    held: bool,
    /// It is lost and waits to be sent again.
    lost: bool,
    /// It was lost once.
    was_lost: bool,
}

impl Sent {
    fn end(&self) -> u64 {
        self.start + self.data.len() as u64
    }
}

#[derive(Debug)]
pub(super) struct Sender {
    unsent: VecDeque<Bytes>,
    unsent_bytes: usize,
    sent: VecDeque<Sent>,
    next: u64,
    congestion: Controller,
    rtt: RttEstimator,
    /// The end of what was sent when the window was last reduced, until it is acknowledged.
    recovery: Option<u64>,
    reduced_at: Time,
    /// Of the segments that arrived, the one sent last: when, its end, and its round trip.
    latest: Option<(Time, u64, Duration)>,
    overdue_at: Option<Time>,
    /// What the probe or retransmission timer counts from.
    armed_at: Time,
    timeouts: u32,
    probed: bool,
    probe_due: bool,
    /// The end of what was sent when a probe repeated its last segment, until it is known what became of that.
    probe_end: Option<u64>,
}

impl Sender {
    pub(super) fn new() -> Sender {
        Sender {
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            sent: VecDeque::new(),
            next: 0,
            congestion: Controller::new(Algorithm::Cubic, SEGMENT),
            rtt: RttEstimator::new(INITIAL_RTO),
            recovery: None,
            reduced_at: Time::ZERO,
            latest: None,
            overdue_at: None,
            armed_at: Time::ZERO,
            timeouts: 0,
            probed: false,
            probe_due: false,
            probe_end: None,
        }
    }

    pub(super) fn write(&mut self, data: Bytes) {
        if !data.is_empty() {
            self.unsent_bytes += data.len();
            self.unsent.push_back(data);
        }
    }

    /// Bytes that are not acknowledged.
    pub(super) fn backlog(&self) -> usize {
        self.unsent_bytes + self.sent.iter().map(|sent| sent.data.len()).sum::<usize>()
    }

    /// The handshake is over; it measured the round trip.
    pub(super) fn on_open(&mut self, now: Time, echo: Option<Time>) {
        if let Some(echo) = echo {
            self.rtt.on_sample(now, now.saturating_since(echo), Duration::ZERO);
        }
        self.armed_at = now;
    }

    /// The next segment, if the window permits one: first what was lost, then what is new.
    pub(super) fn transmit(&mut self, now: Time) -> Option<(u64, Bytes)> {
        let probe = std::mem::take(&mut self.probe_due);
        let room = self.congestion.window().saturating_sub(self.in_flight());
        let fits = |len: usize| probe || len as u64 <= room;
        if let Some(position) = self.sent.iter().position(|sent| sent.lost) {
            return match self.sent.get(position) {
                Some(lost) if fits(lost.data.len()) => self.resend(position, now),
                _ => None,
            };
        }
        let len = self.unsent_bytes.min(usize::from(SEGMENT));
        if len > 0 && fits(len) {
            return Some(self.send_new(len, now));
        }
        if probe && len == 0 {
            self.probe_end = Some(self.next);
            return self.resend(self.sent.len().checked_sub(1)?, now);
        }
        None
    }

    fn resend(&mut self, position: usize, now: Time) -> Option<(u64, Bytes)> {
        if position == 0 {
            self.armed_at = now;
        }
        let sent = self.sent.get_mut(position)?;
        (sent.lost, sent.again, sent.at) = (false, true, now);
        Some((sent.start, sent.data.clone()))
    }

    fn send_new(&mut self, len: usize, now: Time) -> (u64, Bytes) {
        let mut data = BytesMut::with_capacity(len);
        while let Some(first) = self.unsent.front_mut() {
            let piece = first.split_to(first.len().min(len - data.len()));
            data.extend_from_slice(&piece);
            if !first.has_remaining() {
                self.unsent.pop_front();
            }
            if data.len() == len {
                break;
            }
        }
        self.unsent_bytes -= len;
        if self.sent.is_empty() || self.may_probe() {
            self.armed_at = now;
        }
        let (start, data) = (self.next, data.freeze());
        self.next += len as u64;
        self.sent.push_back(Sent {
            start,
            data: data.clone(),
            at: now,
            again: false,
            held: false,
            lost: false,
            was_lost: false,
        });
        (start, data)
    }

    /// Bytes on their way, as far as is known.
    fn in_flight(&self) -> u64 {
        let flying = self.sent.iter().filter(|sent| !sent.held && !sent.lost);
        flying.map(|sent| sent.data.len() as u64).sum()
    }

    pub(super) fn on_ack(&mut self, now: Time, ack: &Ack) {
        let in_flight = self.in_flight();
        let (mut bytes, mut fresh) = (0_u64, 0_u64);
        let mut largest_sent_at = Time::ZERO;
        for sent in self.sent.iter_mut().filter(|sent| !sent.held && ack.covers(sent.start, sent.end())) {
            (sent.held, sent.lost) = (true, false);
            let len = sent.data.len() as u64;
            bytes += len;
            largest_sent_at = largest_sent_at.max(sent.at);
            if sent.at > self.reduced_at {
                fresh += len;
            }
            // An answer to the first copy says nothing about the second.
            let answers = !sent.again || ack.echo.is_some_and(|echo| echo >= sent.at);
            let key = (sent.at, sent.start);
            if answers && self.latest.is_none_or(|(at, start, _)| (at, start) < key) {
                self.latest = Some((sent.at, sent.start, now.saturating_since(sent.at)));
            }
        }
        let before = self.sent.len();
        while self.sent.pop_front_if(|first| first.end() <= ack.below).is_some() {}
        if self.sent.len() < before {
            (self.armed_at, self.timeouts, self.probed) = (now, 0, false);
        }
        self.judge_probe(now, ack.below, bytes);
        if self.recovery.is_some_and(|end| ack.below >= end) {
            self.recovery = None;
            // What was lost in the meantime is a congestion of its own.
            if self.sent.iter().any(|sent| sent.was_lost && !sent.held) {
                self.reduce(now);
            }
        }
        if bytes > 0 {
            let sample = ack.echo.map(|echo| now.saturating_since(echo));
            if let Some(sample) = sample {
                self.rtt.on_sample(now, sample, Duration::ZERO);
            }
            let window = self.congestion.window();
            let used =
                if self.congestion.is_slow_start() { in_flight * 2 } else { in_flight + u64::from(SEGMENT) };
            self.congestion.on_ack(&Acked {
                now,
                bytes: fresh,
                largest_sent_at,
                rtt_sample: sample,
                rtt: &self.rtt,
                bytes_in_flight: in_flight,
                window_used: used >= window,
            });
        }
        self.find_losses(now);
    }

    /// A probe that repaired a loss hides it: the window is reduced when a later acknowledgement shows that only one
    /// of the two copies came (RFC 8985 section 7.4).
    fn judge_probe(&mut self, now: Time, below: u64, bytes: u64) {
        let Some(end) = self.probe_end.filter(|end| below >= *end) else { return };
        if below > end {
            self.probe_end = None;
            self.congestion.on_congestion(now);
            self.reduced_at = now;
        } else if bytes == 0 {
            self.probe_end = None;
        }
    }

    /// RACK (RFC 8985 section 6.2).
    fn find_losses(&mut self, now: Time) {
        self.overdue_at = None;
        let Some((at, start, rtt)) = self.latest else { return };
        let held = self.sent.iter().filter(|sent| sent.held).count();
        let certain = held >= DUPLICATE_THRESHOLD || self.recovery.is_some();
        let patience = if certain { Duration::ZERO } else { self.rtt.min() / 4 };
        let mut found = false;
        for sent in self
            .sent
            .iter_mut()
            .filter(|sent| !sent.held && !sent.lost && (sent.at, sent.start) < (at, start))
        {
            let deadline = sent.at + rtt + patience;
            if deadline <= now {
                (sent.lost, sent.was_lost, found) = (true, true, true);
            } else {
                self.overdue_at = Some(self.overdue_at.map_or(deadline, |other| other.min(deadline)));
            }
        }
        if found && self.recovery.is_none() {
            self.reduce(now);
        }
    }

    fn reduce(&mut self, now: Time) {
        self.congestion.on_congestion(now);
        self.recovery = Some(self.next);
        self.reduced_at = now;
    }

    fn may_probe(&self) -> bool {
        let held = self.sent.iter().any(|sent| sent.held);
        !self.probed && self.recovery.is_none() && self.timeouts == 0 && !held
    }

    fn retransmission_timeout(&self) -> Duration {
        let timeout = self.rtt.smoothed() + (self.rtt.variation() * 4).max(RTO_MARGIN);
        timeout.saturating_mul(1 << self.timeouts.min(7))
    }

    fn probe_timeout(&self) -> Duration {
        let margin = if self.sent.len() == 1 { LONE_PROBE_MARGIN } else { PROBE_MARGIN };
        (self.rtt.smoothed() * 2 + margin).min(self.retransmission_timeout())
    }

    /// When to act next, and why.
    pub(super) fn timer(&self) -> Option<(Time, Alarm)> {
        if self.sent.is_empty() {
            return None;
        }
        let tail = if self.may_probe() {
            (self.armed_at + self.probe_timeout(), Alarm::Probe)
        } else {
            (self.armed_at + self.retransmission_timeout(), Alarm::Retransmission)
        };
        match self.overdue_at {
            Some(at) if at <= tail.0 => Some((at, Alarm::Overdue)),
            _ => Some(tail),
        }
    }

    /// Does what is due; true if something may have to be sent.
    pub(super) fn on_time(&mut self, now: Time) -> bool {
        let Some((_, alarm)) = self.timer().filter(|(at, _)| *at <= now) else { return false };
        match alarm {
            Alarm::Overdue => self.find_losses(now),
            Alarm::Probe => {
                (self.probed, self.probe_due, self.armed_at) = (true, true, now);
            }
            Alarm::Retransmission => {
                for sent in self.sent.iter_mut().filter(|sent| !sent.held) {
                    (sent.lost, sent.was_lost) = (true, true);
                }
                if self.recovery.is_none() {
                    self.reduce(now);
                }
                self.congestion.on_persistent_congestion();
                (self.reduced_at, self.armed_at) = (now, now);
                self.timeouts += 1;
            }
        }
        true
    }
}
