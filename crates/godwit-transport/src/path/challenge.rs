//! Path validation (RFC 9000 section 8.2): challenges that we send, and answers to the peer's.

use crate::packet::PacketBuilder;
use godwit_base::Time;
use godwit_wire::{Frame, NoRoom};
use std::collections::VecDeque;
use std::time::Duration;

/// A path being validated. Every attempt carries new random data; an answer to any of the last few
/// attempts counts.
#[derive(Debug)]
pub(super) struct Challenge {
    /// The last attempts, newest first; at most [`Challenge::REMEMBERED`].
    attempts: VecDeque<Attempt>,
    due: bool,
    interval: Duration,
    retry_at: Time,
    expires: Time,
}

#[derive(Debug, Clone, Copy)]
struct Attempt {
    data: [u8; 8],
    expanded: bool,
    sent_at: Time,
}

/// What an answer proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// The peer receives at the address, but the datagram was too small to prove the path MTU.
    Address,
    /// The peer receives at the address datagrams of full size.
    Path,
}

impl Challenge {
    const REMEMBERED: usize = 4;
    /// The probe timeout of a path of which nothing is known: RFC 9000 section 8.2.4 wants validation
    /// to be given up no sooner than after three of these. (An RTT of 333 ms, a variance of half of it.)
    const INITIAL_PTO: Duration = Duration::from_millis(999);
    const SHORTEST_INTERVAL: Duration = Duration::from_millis(20);

    /// A challenge to be sent at once. `pto` is the present probe timeout.
    pub(super) fn new(now: Time, pto: Duration) -> Box<Self> {
        let limit = pto.max(Self::INITIAL_PTO).saturating_mul(3);
        Box::new(Challenge {
            attempts: VecDeque::new(),
            due: true,
            interval: pto.clamp(Self::SHORTEST_INTERVAL, Self::INITIAL_PTO),
            retry_at: Time::MAX,
            expires: now + limit,
        })
    }

    pub(super) const fn is_due(&self) -> bool {
        self.due
    }

    /// Writes a PATH_CHALLENGE if one is due. `expanded` says whether its datagram will have full size.
    pub(super) fn write<T>(&mut self, expanded: bool, packet: &mut PacketBuilder<'_, T>) -> bool {
        if !self.due {
            return false;
        }
        let mut data = [0; 8];
        packet.rng().fill(&mut data);
        if let Err(NoRoom) = packet.put_once(&Frame::PathChallenge { data }) {
            return false;
        }
        let now = packet.now();
        self.attempts.truncate(Self::REMEMBERED.saturating_sub(1));
        self.attempts.push_front(Attempt { data, expanded, sent_at: now });
        self.due = false;
        self.retry_at = now + self.interval;
        self.interval = self.interval.saturating_mul(2);
        true
    }

    /// What a PATH_RESPONSE with `data` proves, if anything, and when the question was sent.
    pub(super) fn on_response(&self, data: [u8; 8]) -> Option<(Proof, Time)> {
        let attempt = self.attempts.iter().find(|attempt| attempt.data == data)?;
        Some((if attempt.expanded { Proof::Path } else { Proof::Address }, attempt.sent_at))
    }

    pub(super) fn deadline(&self) -> Time {
        if self.due { self.expires } else { self.retry_at.min(self.expires) }
    }

    /// True if the peer has not answered in time; otherwise the next attempt may have become due.
    pub(super) fn on_timeout(&mut self, now: Time) -> bool {
        self.due |= now >= self.retry_at;
        now >= self.expires
    }
}

/// PATH_RESPONSE frames to be sent on the path on which the challenges came. Most paths are never challenged, and have no
/// memory for that.
#[derive(Debug, Default)]
pub(super) struct Responses(Option<Box<Challenged>>);

#[derive(Debug, Default)]
struct Challenged {
    /// Oldest first; at most [`Responses::MAX`].
    data: VecDeque<[u8; 8]>,
    /// While the path is not active: when another round begins, and how many were taken in this one.
    round: (Time, u8),
}

impl Responses {
    /// A peer that challenges faster than it can be answered gets answers to the newest challenges.
    const MAX: usize = 4;
    /// Answers on a path that is not active in a probe timeout: an initial congestion window (RFC 9002 section 7.2) of
    /// datagrams. Nobody is told what becomes of them, so no congestion controller can say how many may be sent.
    const MAX_PER_ROUND: u8 = 10;

    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|challenged| challenged.data.is_empty())
    }

    pub(super) fn push(&mut self, data: [u8; 8]) {
        self.0.get_or_insert_default().push(data);
    }

    /// As [`Responses::push`], on a path that is not active. What is too much is dropped: the peer, if it means it, asks
    /// again (RFC 9000 section 8.2.1). `pto` is the present probe timeout.
    pub(super) fn push_within_bounds(&mut self, now: Time, data: [u8; 8], pto: Duration) {
        let challenged = self.0.get_or_insert_default();
        let (begins, taken) = &mut challenged.round;
        if now >= *begins {
            (*begins, *taken) = (now + pto, 0);
        }
        if *taken < Self::MAX_PER_ROUND {
            *taken = taken.saturating_add(1);
            challenged.push(data);
        }
    }

    /// Writes as many as fit. Each is sent once: if it is lost, the peer asks again (section 13.3).
    pub(super) fn write<T>(&mut self, packet: &mut PacketBuilder<'_, T>) -> bool {
        let Some(Challenged { data: waiting, .. }) = self.0.as_deref_mut() else { return false };
        let mut wrote = false;
        while let Some(data) = waiting.front().copied() {
            if let Err(NoRoom) = packet.put_once(&Frame::PathResponse { data }) {
                break;
            }
            waiting.pop_front();
            wrote = true;
        }
        wrote
    }
}

impl Challenged {
    fn push(&mut self, data: [u8; 8]) {
        if self.data.contains(&data) {
            return;
        }
        if self.data.len() >= Responses::MAX {
            self.data.pop_front();
        }
        self.data.push_back(data);
    }
}
