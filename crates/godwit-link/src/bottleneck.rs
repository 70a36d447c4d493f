//! The queue, who is let into it, and the serialisation behind it.
//!
//! A packet's departure is known when it enters: after everything in front of it. The queue is thus only
//! a ring of departure times, and needs no event of its own.

use crate::codel::CoDelState;
use crate::config::{Aqm, LinkConfig, QueueLimit};
use crate::dual::{self, DualPi2State};
use crate::red::{RedState, Verdict};
use crate::service::{Service, Slot};
use godwit_base::{Ecn, SeededRng, Time};
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug, Clone)]
struct Waiting {
    departs: Time,
    bytes: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Bottleneck {
    service: Option<Service>,
    limit: QueueLimit,
    mark_above: QueueLimit,
    management: Management,
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    /// When the last packet that has left did so.
    emptied: Time,
}

/// Active queue management, with its state.
#[derive(Debug, Clone)]
enum Management {
    None,
    CoDel(CoDelState),
    Red(RedState),
    DualPi2(DualPi2State),
}

/// A packet that found room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passage {
    /// When its first bit is sent.
    pub(crate) begins: Time,
    /// When its last bit is.
    pub(crate) departs: Time,
    pub(crate) marked: bool,
    /// It went through a queue of its own, for low latency.
    pub(crate) low_latency: bool,
}

/// A packet that does not pass the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There was no room.
    Full,
    /// The queue's management dropped it.
    Managed,
}

impl Bottleneck {
    /// What a configuration asks for. Where there is neither rate nor trace there is no queue.
    pub(crate) fn new(config: &LinkConfig, rng: SeededRng) -> Self {
        let service = match (&config.trace, config.rate) {
            (Some(trace), _) => Some(Service::by_trace(trace.clone())),
            (None, Some(rate)) => Some(Service::at_rates(rate, config.rate_steps.clone())),
            (None, None) => None,
        };
        let management = match config.aqm {
            Aqm::None => Management::None,
            Aqm::CoDel(codel) => Management::CoDel(CoDelState::new(codel)),
            Aqm::Red(red) => Management::Red(RedState::new(red, rng)),
            Aqm::DualPi2(dual) => Management::DualPi2(DualPi2State::new(dual, rng)),
        };
        Bottleneck {
            service,
            limit: config.queue,
            mark_above: config.mark_above,
            management,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            emptied: Time::ZERO,
        }
    }

    /// Lets a packet in that occupies `bytes` on the wire. `ecn` is its codepoint.
    pub(crate) fn enter(&mut self, now: Time, bytes: u64, ecn: Ecn) -> Result<Passage, Refused> {
        self.let_go(now);
        let markable = ecn != Ecn::NotEct;
        let idle_since = self.waiting.is_empty().then_some(self.emptied);
        let full = self.would_exceed(self.limit, bytes);
        let mut marked = self.would_exceed(self.mark_above, bytes);
        let Some(service) = &mut self.service else {
            return Ok(Passage { begins: now, departs: now, marked: false, low_latency: false });
        };
        if full {
            return Err(Refused::Full);
        }
        match &mut self.management {
            Management::None => {}
            Management::DualPi2(_) => return self.enter_dual(now, bytes, ecn),
            Management::CoDel(codel) => {
                let begins = service.begins(now);
                if codel.strikes(begins, begins.saturating_since(now), markable) {
                    if !(markable && codel.marks()) {
                        // It is dropped when its turn comes, and waits until then.
                        self.put(begins, bytes);
                        return Err(Refused::Managed);
                    }
                    marked = true;
                }
            }
            Management::Red(red) => {
                let found = (self.waiting_bytes, idle_since);
                match red.judge(now, found, service.packet_time(), markable) {
                    Verdict::Pass => {}
                    Verdict::Mark => marked = true,
                    Verdict::Drop => return Err(Refused::Managed),
                }
            }
        }
        let slot = service.serve(now, bytes);
        self.put(slot.ends, bytes);
        Ok(Passage { begins: slot.begins, departs: slot.ends, marked, low_latency: false })
    }

    /// The same for two queues.
    fn enter_dual(&mut self, now: Time, bytes: u64, ecn: Ecn) -> Result<Passage, Refused> {
        let sending = self.waiting.front().map_or(now, |first| first.departs);
        let (Management::DualPi2(dual), Some(service)) = (&mut self.management, &mut self.service) else {
            return Err(Refused::Full);
        };
        dual.update(now, service.busy_until(now));
        let low_latency = matches!(ecn, Ecn::Ect1 | Ecn::Ce);
        let (verdict, slot) = if low_latency {
            let (packet, takes) = (service.packet_time(), service.takes(bytes));
            let (begins, ends) = dual.overtake(now, sending.min(now + packet), takes);
            let begins = begins.min(service.begins(now));
            let wait = begins.saturating_since(now);
            let verdict = dual.judge_low_latency(wait, dual.is_alone(now));
            (verdict, Slot { begins, ends })
        } else {
            (dual.judge_classic(ecn != Ecn::NotEct), Slot { begins: now, ends: now })
        };
        if verdict == dual::Verdict::Drop {
            return Err(Refused::Managed);
        }
        let last = service.serve(now, bytes);
        let slot = if low_latency { Slot { ends: slot.ends.min(last.ends), ..slot } } else { last };
        if low_latency {
            dual.on_low_latency(slot.ends);
        } else {
            dual.on_classic(slot.ends);
        }
        self.put(slot.ends, bytes);
        let marked = verdict == dual::Verdict::Mark;
        Ok(Passage { begins: slot.begins, departs: slot.ends, marked, low_latency })
    }

    fn put(&mut self, departs: Time, bytes: u64) {
        // Nearly always behind all others.
        let later = self.waiting.iter().rev().take_while(|waiting| waiting.departs > departs).count();
        self.waiting.insert(self.waiting.len() - later, Waiting { departs, bytes });
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
    }

    /// Packets and bytes that are in the queue or being sent.
    pub(crate) fn occupancy(&mut self, now: Time) -> (usize, u64) {
        self.let_go(now);
        self.occupied()
    }

    /// The same as of when a packet entered last.
    pub(crate) fn occupied(&self) -> (usize, u64) {
        (self.waiting.len(), self.waiting_bytes)
    }

    /// How long a packet that enters now waits.
    pub(crate) fn delay(&mut self, now: Time) -> Duration {
        self.service.as_mut().map_or(Duration::ZERO, |service| service.begins(now).saturating_since(now))
    }

    fn let_go(&mut self, now: Time) {
        while let Some(gone) = self.waiting.pop_front_if(|first| first.departs <= now) {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(gone.bytes);
            self.emptied = gone.departs;
        }
    }

    fn would_exceed(&self, limit: QueueLimit, bytes: u64) -> bool {
        match limit {
            _ if self.waiting.is_empty() => false,
            QueueLimit::Unlimited => false,
            QueueLimit::Packets(most) => self.waiting.len() >= most,
            QueueLimit::Bytes(most) => self.waiting_bytes.saturating_add(bytes) > most,
        }
    }
}
