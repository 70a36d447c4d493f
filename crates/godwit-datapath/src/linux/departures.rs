//! Departure times: the kernel holds packets back until they are to leave (`SO_TXTIME`).
//!
//! The times are of the system's monotonic clock, which needs no privilege and is the one that `fq` goes by. A run that is
//! sent with segmentation offload leaves as a whole. What has no time leaves when it is sent, and so before what is held
//! back: whoever sends sees to the order.

use super::sys;
use crate::config::{DepartureTimes, SocketConfig};
use godwit_base::Time;
use std::net::UdpSocket;

/// What becomes of departure times on a socket.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Departures {
    /// The kernel takes them, and may be expected to keep them.
    possible: bool,
    /// They are told to it: what its clock shows at [`Time::ZERO`], in nanoseconds.
    zero: Option<i64>,
}

impl Departures {
    /// Sets the option, if that is asked for and of any use.
    pub(super) fn of(socket: &UdpSocket, config: &SocketConfig) -> Self {
        let wanted = match config.departure_times {
            DepartureTimes::Off => false,
            DepartureTimes::Auto => are_kept(config.interface.as_deref()),
            DepartureTimes::On => true,
        };
        let possible = wanted && sys::set_departure_clock(socket).is_ok();
        Departures { possible, zero: None }
    }

    pub(super) const fn is_possible(&self) -> bool {
        self.possible
    }

    /// Has times told to the kernel from now on.
    pub(super) const fn begin(&mut self, zero: i64) {
        if self.possible {
            self.zero = Some(zero);
        }
    }

    /// What the kernel is to be told for what leaves at `at`: nothing if times are not told.
    #[inline]
    pub(super) fn on_system_clock(&self, at: Time) -> Option<u64> {
        at.as_nanos().checked_add_signed(self.zero?)
    }
}

fn are_kept(interface: Option<&str>) -> bool {
    let kept = godwit_os::queueing::keeps_departure_times(interface);
    tracing::debug!(?kept, ?interface, "asked whether the kernel keeps departure times");
    kept.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_by_the_systems_clock_once_it_is_known() {
        let mut departures = Departures { possible: true, zero: None };
        let at = Time::from_nanos(5_000);
        assert_eq!(departures.on_system_clock(at), None);
        departures.begin(-4_000);
        assert_eq!(departures.on_system_clock(at), Some(1_000));
        assert_eq!(departures.on_system_clock(Time::ZERO), None, "before the system was started");
        let mut impossible = Departures::default();
        impossible.begin(0);
        assert_eq!(impossible.on_system_clock(at), None);
    }
}
