//! What MsQuic and the TCP of Windows have reached in the same networks.
//!
//! The means of the last ten runs of the workflow "WAN Perf" of microsoft/msquic that are kept on the branch
//! `performance` of that repository (MIT licence), in percent of each link's rate.

use std::collections::HashMap;

use super::cell::Cell;

const MSQUIC: &str = include_str!("../../data/wan-msquic.csv");

/// How much of a link was used, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// By MsQuic with CUBIC.
    pub cubic: f64,
    /// By MsQuic with BBR.
    pub bbr: f64,
    /// By Windows' TCP.
    pub tcp: f64,
}

impl Reached {
    /// By the better of MsQuic's two controllers.
    pub fn best(&self) -> f64 {
        self.cubic.max(self.bbr)
    }
}

/// Rate, round-trip time, queue, loss, reordering, delay.
pub(super) type Key = [u32; 6];

/// Figures by network.
#[derive(Clone, Debug)]
pub struct Baseline(HashMap<Key, Reached>);

impl Baseline {
    /// Those of MsQuic, for [`super::Matrix::Msquic1230`].
    pub fn msquic() -> Self {
        Baseline(MSQUIC.lines().skip(1).filter_map(row).collect())
    }

    /// What was reached in this network, if it was tried.
    pub fn of(&self, cell: &Cell) -> Option<Reached> {
        self.0.get(&key(cell)).copied()
    }
}

pub(super) const fn key(cell: &Cell) -> Key {
    [cell.rate, cell.rtt, cell.queue, cell.loss, cell.reorder, cell.delay]
}

/// The key of a row: NetMbps, RttMs, QueueRatio, QueuePkts, Loss, Reorder, DelayMs, then others.
pub(super) fn key_of(fields: &[&str]) -> Option<Key> {
    let [rate, rtt, _, queue, loss, reorder, delay, ..] = fields else { return None };
    let mut key = Key::default();
    for (to, from) in key.iter_mut().zip([rate, rtt, queue, loss, reorder, delay]) {
        *to = from.parse().ok()?;
    }
    Some(key)
}

fn row(line: &str) -> Option<(Key, Reached)> {
    let fields: Vec<&str> = line.split(',').collect();
    let [cubic, bbr, tcp] = fields.get(7..)? else { return None };
    let [cubic, bbr, tcp] = [cubic, bbr, tcp].map(|percent| percent.parse().ok());
    Some((key_of(&fields)?, Reached { cubic: cubic?, bbr: bbr?, tcp: tcp? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read() {
        let baseline = Baseline::msquic();
        assert_eq!(baseline.0.len(), 1230);
        let cells = super::super::Matrix::Msquic1230.cells();
        let best: f64 = cells.iter().filter_map(|cell| baseline.of(cell)).map(|reached| reached.best()).sum();
        assert_eq!(format!("{:.1}", best / 1230.0), "63.5");
    }
}
