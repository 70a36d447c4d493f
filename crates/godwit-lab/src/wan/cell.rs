//! One emulated network: a rate, a round-trip time, a queue, and what goes wrong in it.

use std::time::Duration;

use godwit_link::{DuplexConfig, Probability, Rate};

use crate::emulate::Figures;

/// A network as MsQuic's matrix describes it. What it says holds for both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Megabits per second, of bytes on the wire ([`godwit_link::IpVersion::wire_len`]).
    pub rate: u32,
    /// The round-trip time without a queue, in milliseconds.
    pub rtt: u32,
    /// The queue in bandwidth-delay products, if it was made of them.
    pub queue_ratio: f64,
    /// Packets in the queue at most.
    pub queue: u32,
    /// One packet of so many is lost at random; 0 is none.
    pub loss: u32,
    /// One packet of so many is held back; 0 is none.
    pub reorder: u32,
    /// For how long, in milliseconds.
    pub delay: u32,
}

impl Cell {
    /// Bits per packet of 1500 bytes, in thousands: how MsQuic counts a bandwidth-delay product in packets.
    const KILOBITS_PER_PACKET: u32 = 12;

    /// A network whose queue is so many bandwidth-delay products. `None` if it would hold less than a packet.
    pub fn with_queue_ratio(rate: u32, rtt: u32, queue_ratio: f64) -> Option<Self> {
        let product = f64::from(rate.saturating_mul(rtt)) / f64::from(Self::KILOBITS_PER_PACKET);
        // A tenth more than asked for, and halves to the even number: so does MsQuic's script.
        let queue = (product * queue_ratio * 1.1).round_ties_even();
        // In the range of u32: the conversion saturates.
        (queue >= 1.0).then_some(Cell {
            rate,
            rtt,
            queue_ratio,
            queue: queue as u32,
            loss: 0,
            reorder: 0,
            delay: 0,
        })
    }

    /// The network with this much lost, and this much held back.
    #[must_use]
    pub fn with(self, loss: u32, (reorder, delay): (u32, u32)) -> Self {
        Cell { loss, reorder, delay, ..self }
    }

    /// The same as figures of a link.
    pub fn figures(&self) -> Figures {
        Figures {
            rate: Some(Rate::megabits(u64::from(self.rate))),
            rtt: Duration::from_millis(u64::from(self.rtt)),
            queue: Some(self.queue as usize),
            loss: one_of(self.loss),
            reorder: one_of(self.reorder),
            delay: Duration::from_millis(u64::from(self.delay)),
        }
    }

    /// The link between client and server.
    pub fn link(&self) -> DuplexConfig {
        self.figures().link()
    }

    /// Bytes that the link carries in this time, on the wire's account.
    pub fn capacity(&self, time: Duration) -> u64 {
        Rate::megabits(u64::from(self.rate)).bytes_in(time)
    }
}

fn one_of(count: u32) -> Probability {
    if count == 0 { Probability::NEVER } else { Probability::new(1.0 / f64::from(count)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_those_of_msquics_script() {
        let queue = |rate, rtt, ratio| Cell::with_queue_ratio(rate, rtt, ratio).map(|cell| cell.queue);
        assert_eq!(queue(50, 5, 5.0), Some(115));
        assert_eq!(queue(5, 5, 1.0), Some(2));
        assert_eq!(queue(5, 5, 0.2), None);
    }
}
