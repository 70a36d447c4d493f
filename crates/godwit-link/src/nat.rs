//! Network address translation in front of a client, as a server sees it: now and then the client's
//! packets begin to come from another port or address.
//!
//! A mapping is made by a packet from inside. When it is forgotten, at a scheduled time or after a
//! silence, packets from outside to the old address are lost, and the next packet from inside gets a new
//! one. The first mapping keeps the client's own address.

use crate::probability::nanos;
use godwit_base::Time;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Mappings held at most; the oldest makes room.
const MAX_MAPPINGS: usize = 4096;

/// What a rebinding changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Translation {
    /// The port: the translator lost its state.
    Port,
    /// The address and the port: the client moved to another network.
    Address,
}

/// A time at which every mapping is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rebinding {
    /// When.
    pub at: Time,
    /// What changes.
    pub change: Translation,
}

/// When mappings are forgotten. The default is no translation at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NatConfig {
    /// Scheduled times, in any order.
    pub rebindings: Vec<Rebinding>,
    /// A mapping is forgotten after this long without a packet in either direction.
    pub idle_timeout: Option<Duration>,
}

#[derive(Debug, Clone)]
struct Mapping {
    inside: SocketAddr,
    outside: SocketAddr,
    last_used: Time,
}

/// A translator with its mappings.
#[derive(Debug, Clone)]
pub struct Nat {
    /// Latest first, so that the next one due is last.
    schedule: Vec<Rebinding>,
    idle_timeout: Option<Duration>,
    mappings: Vec<Mapping>,
    /// Mappings made so far.
    made: u32,
    /// Changes of address so far.
    moves: u32,
    transparent: bool,
}

impl Nat {
    /// A translator as described.
    pub fn new(config: NatConfig) -> Self {
        let transparent = config.rebindings.is_empty() && config.idle_timeout.is_none();
        let mut schedule = config.rebindings;
        schedule.sort_by_key(|rebinding| std::cmp::Reverse(rebinding.at));
        let idle_timeout = config.idle_timeout;
        Nat { schedule, idle_timeout, mappings: Vec::new(), made: 0, moves: 0, transparent }
    }

    /// Forgets every mapping now, beside the schedule.
    pub fn rebind(&mut self, change: Translation) {
        self.transparent = false;
        // Whoever was seen under its own address without being recorded must not keep it.
        self.made = self.made.max(1);
        self.mappings.clear();
        if change == Translation::Address {
            self.moves = self.moves.wrapping_add(1);
        }
    }

    /// The source address under which a packet from `inside` is seen outside.
    #[inline]
    pub fn outbound(&mut self, now: Time, inside: SocketAddr) -> SocketAddr {
        if self.transparent {
            return inside;
        }
        self.forget(now);
        if let Some(mapping) = self.mappings.iter_mut().find(|mapping| mapping.inside == inside) {
            mapping.last_used = now;
            return mapping.outside;
        }
        if self.mappings.len() >= MAX_MAPPINGS {
            self.mappings.remove(0);
        }
        let outside = self.fresh(inside);
        self.mappings.push(Mapping { inside, outside, last_used: now });
        outside
    }

    /// Who inside gets a packet that arrives for `outside`, or `None` if the translator drops it.
    #[inline]
    pub fn inbound(&mut self, now: Time, outside: SocketAddr) -> Option<SocketAddr> {
        if self.transparent {
            return Some(outside);
        }
        self.forget(now);
        let mapping = self.mappings.iter_mut().find(|mapping| mapping.outside == outside)?;
        mapping.last_used = now;
        Some(mapping.inside)
    }

    fn forget(&mut self, now: Time) {
        while let Some(due) = self.schedule.pop_if(|next| next.at <= now) {
            self.rebind(due.change);
        }
        if let Some(timeout) = self.idle_timeout {
            self.mappings.retain(|mapping| nanos(now - mapping.last_used) < nanos(timeout));
        }
    }

    /// An address not given out before: the client's own for the first mapping, then new ports, and after
    /// a move an address of another network.
    fn fresh(&mut self, inside: SocketAddr) -> SocketAddr {
        let number = self.made;
        self.made = self.made.wrapping_add(1);
        if number == 0 && self.moves == 0 {
            return inside;
        }
        // A prime step walks through all 40,000 ports before one comes again.
        let port = 20_000 + (u64::from(number) * 7_919 + u64::from(inside.port())) % 40_000;
        SocketAddr::new(moved(inside.ip(), self.moves), port as u16)
    }
}

fn moved(address: IpAddr, moves: u32) -> IpAddr {
    if moves == 0 {
        return address;
    }
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            let far = u32::from_be_bytes([a, b ^ 0x80, c, d]);
            IpAddr::V4(Ipv4Addr::from(far.wrapping_add(moves.wrapping_sub(1))))
        }
        IpAddr::V6(v6) => {
            let far = u128::from(v6) ^ 1 << 64;
            IpAddr::V6(Ipv6Addr::from(far.wrapping_add(u128::from(moves.wrapping_sub(1)))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn client() -> SocketAddr {
        "10.0.0.1:5000".parse().unwrap()
    }

    fn at(time: Time, change: Translation) -> Rebinding {
        Rebinding { at: time, change }
    }

    #[test]
    fn without_a_schedule_nothing_is_translated() {
        let mut nat = Nat::new(NatConfig::default());
        assert_eq!(nat.outbound(Time::MAX, client()), client());
        assert_eq!(nat.inbound(Time::MAX, client()), Some(client()));
    }

    #[test]
    fn rebinding_changes_the_port_and_kills_the_old_one() {
        let rebindings = vec![at(ms(20), Translation::Address), at(ms(10), Translation::Port)];
        let mut nat = Nat::new(NatConfig { rebindings, idle_timeout: None });
        assert_eq!(nat.outbound(ms(0), client()), client());
        assert_eq!(nat.inbound(ms(9), client()), Some(client()));
        // The old mapping is dead before the new one is made.
        assert_eq!(nat.inbound(ms(10), client()), None);
        let second = nat.outbound(ms(11), client());
        assert_eq!(second.ip(), client().ip());
        assert_ne!(second.port(), client().port());
        assert_eq!(nat.outbound(ms(12), client()), second);
        assert_eq!(nat.inbound(ms(12), second), Some(client()));
        let third = nat.outbound(ms(25), client());
        assert_ne!(third.ip(), client().ip());
        assert_eq!(nat.inbound(ms(25), second), None);
        assert_eq!(nat.inbound(ms(25), third), Some(client()));
    }

    #[test]
    fn silence_ends_a_mapping_and_traffic_keeps_it() {
        let mut nat =
            Nat::new(NatConfig { rebindings: vec![], idle_timeout: Some(Duration::from_millis(30)) });
        let first = nat.outbound(ms(0), client());
        assert_eq!(nat.inbound(ms(29), first), Some(client()));
        assert_eq!(nat.outbound(ms(58), client()), first);
        assert_ne!(nat.outbound(ms(88), client()), first);
        assert_eq!(nat.inbound(ms(89), first), None);
    }

    #[test]
    fn a_rebinding_by_hand_is_like_a_scheduled_one() {
        let mut nat = Nat::new(NatConfig::default());
        assert_eq!(nat.outbound(ms(0), client()), client());
        nat.rebind(Translation::Port);
        assert_eq!(nat.inbound(ms(1), client()), None);
        assert_ne!(nat.outbound(ms(1), client()), client());
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs many rounds, of which each does the same")]
    fn addresses_do_not_come_again_soon() {
        for client in [client(), "[fd00::1]:443".parse().unwrap()] {
            let mut nat = Nat::new(NatConfig::default());
            let mut seen = BTreeSet::new();
            for round in 0..20_000_u64 {
                assert!(seen.insert(nat.outbound(ms(round), client)), "round {round}");
                nat.rebind(if round % 1_000 == 999 { Translation::Address } else { Translation::Port });
            }
        }
    }
}
