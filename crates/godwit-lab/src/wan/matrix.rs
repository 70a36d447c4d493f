//! Which networks are tried: MsQuic's matrices, in the order of its script.

use std::fmt;
use std::str::FromStr;

use super::cell::Cell;

/// A set of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Matrix {
    /// The 1230 of MsQuic's workflow until early 2023.
    #[default]
    Msquic1230,
    /// The 324 of its workflow since then.
    Msquic324,
    /// 60 of the 1230, spread over them, for a first look.
    Smoke,
    /// The 45 of the 1230 that have 50 Mbit/s and a round trip of 5 ms: those of which MsQuic says most, row by row.
    Msquic50x5,
}

/// Networks in [`Matrix::Smoke`].
const SMOKE: usize = 60;
/// From one of them to the next, in the 1230: about the golden section of these, so that any number of them in a row
/// is spread evenly.
const SMOKE_STEP: usize = 761;
/// The longest queue that MsQuic's emulator can have, in packets.
const LONGEST_QUEUE: u32 = 100_000;
const QUEUE_RATIOS: [f64; 3] = [0.2, 1.0, 5.0];
const LOSSES: [u32; 3] = [0, 1000, 10_000];

impl Matrix {
    /// All of them.
    pub const ALL: [Matrix; 4] = [Matrix::Msquic1230, Matrix::Msquic324, Matrix::Smoke, Matrix::Msquic50x5];

    /// Its name: `msquic-1230`, `msquic-324`, `smoke` or `msquic-50x5`.
    pub const fn name(self) -> &'static str {
        match self {
            Matrix::Msquic1230 => "msquic-1230",
            Matrix::Msquic324 => "msquic-324",
            Matrix::Smoke => "smoke",
            Matrix::Msquic50x5 => "msquic-50x5",
        }
    }

    /// The networks.
    pub fn cells(self) -> Vec<Cell> {
        match self {
            Matrix::Msquic1230 => product(
                &[5, 10, 20, 50, 100, 200, 1000],
                &[5, 50, 200, 500],
                &[(0, 0), (1000, 5), (1000, 10), (10_000, 5), (10_000, 10)],
            ),
            Matrix::Msquic324 => {
                product(&[10, 50, 100, 1000], &[5, 50, 200], &[(0, 0), (1000, 5), (1000, 10)])
            }
            Matrix::Smoke => {
                let all = Matrix::Msquic1230.cells();
                let at = |step: usize| step.saturating_mul(SMOKE_STEP) % all.len().max(1);
                (0..SMOKE).filter_map(|step| all.get(at(step)).copied()).collect()
            }
            Matrix::Msquic50x5 => {
                let all = Matrix::Msquic1230.cells().into_iter();
                all.filter(|cell| (cell.rate, cell.rtt) == (50, 5)).collect()
            }
        }
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Matrix {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Matrix::ALL.into_iter().find(|matrix| matrix.name() == name).ok_or_else(|| {
            let names = Matrix::ALL.map(Matrix::name).join(", ");
            format!("there is no such matrix; expected one of {names}")
        })
    }
}

fn product(rates: &[u32], rtts: &[u32], held_back: &[(u32, u32)]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &rate in rates {
        for &rtt in rtts {
            let links = QUEUE_RATIOS.iter().filter_map(|ratio| Cell::with_queue_ratio(rate, rtt, *ratio));
            for link in links.filter(|link| link.queue <= LONGEST_QUEUE) {
                for loss in LOSSES {
                    cells.extend(held_back.iter().map(|held_back| link.with(loss, *held_back)));
                }
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::super::baseline::Baseline;
    use super::*;

    #[test]
    fn the_matrices_have_their_sizes_and_no_network_twice() {
        for (matrix, size) in [(Matrix::Msquic1230, 1230), (Matrix::Msquic324, 324), (Matrix::Smoke, 60)]
            .into_iter()
            .chain([(Matrix::Msquic50x5, 45)])
        {
            let cells = matrix.cells();
            assert_eq!((cells.len(), matrix.name().parse()), (size, Ok(matrix)));
            assert!(cells.iter().enumerate().all(|(at, cell)| !cells[..at].contains(cell)));
        }
    }

    #[test]
    fn every_network_is_one_that_msquic_was_measured_in() {
        let baseline = Baseline::msquic();
        assert!(Matrix::Msquic1230.cells().iter().all(|cell| baseline.of(cell).is_some()));
        assert!(Matrix::Smoke.cells().iter().all(|cell| baseline.of(cell).is_some()));
    }
}
