//! What a trace of a connection says.
//!
//! - `analysis`: one trace: what was sent, received and lost; with `stalls` (times in which nothing moved, and what
//!   was waited for), `losses` (what probably became of the packets) and `series` (what is drawn).
//! - `text` and `svg`: what is shown.
//!
//! A trace may be of any length: nothing is kept per record, and lists have caps.

mod analysis;
mod losses;
mod series;
mod stalls;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use std::path::Path;

use godwit_report::qlog::{Records, TraceError};
use godwit_text::Style;

use crate::Error;
pub use analysis::Analysis;

impl Analysis {
    /// Reads a trace: qlog as JSON text sequences, plain or compressed with gzip.
    ///
    /// # Errors
    /// If it is not one, or damaged.
    pub fn read(path: &Path) -> Result<Analysis, Error> {
        Analysis::of(Records::open(path)?).map_err(Error::from)
    }

    pub(crate) fn of(mut records: Records) -> Result<Analysis, TraceError> {
        let mut analysis = Analysis::new(records.header()?);
        while let Some(event) = records.next_event()? {
            analysis.take(&event);
        }
        analysis.finish(records.is_cut_off());
        Ok(analysis)
    }

    /// What was found, for people; the trace is called by its path.
    #[must_use]
    pub fn text(&self, path: &Path, style: Style) -> String {
        let mut out = String::new();
        text::render(&mut out, path, self, style);
        out
    }

    /// Window, bytes in flight, round-trip time and rate over time, as an SVG document.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::draw(self)
    }
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Error {
        Error::new(error.to_string())
    }
}
