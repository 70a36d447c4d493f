//! `godwit qlog`: reads traces of connections back and says what happened.
//!
//! - [`reader`]: records out of a file, one at a time, compressed with gzip or not.
//! - [`analysis`]: one trace: what was sent, received and lost; with [`stalls`] (times in which nothing moved, and what
//!   was waited for), [`losses`] (what probably became of the packets) and [`series`] (what is drawn).
//! - [`text`] and [`svg`]: what is shown.
//!
//! A trace may be of any length: nothing is kept per record, and lists have caps.

mod analysis;
mod losses;
mod reader;
mod series;
mod stalls;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::error::{Failure, plain};
use analysis::Analysis;

/// What can be said.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Traces: qlog as JSON text sequences (.sqlog), or the same compressed with gzip
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Draw window, bytes in flight, round-trip time and rate into a file (one trace only)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    if arguments.svg.is_some() && arguments.files.len() != 1 {
        return Err(Failure::new("--svg draws one trace; give one file"));
    }
    let style = crate::output::stdout_style();
    for (number, path) in arguments.files.iter().enumerate() {
        let analysis = read(path)?;
        let mut out = if number == 0 { String::new() } else { "\n".to_owned() };
        text::render(&mut out, path, &analysis, style);
        match io::stdout().write_all(out.as_bytes()) {
            // Whoever closed the pipe has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(Failure::new(format!("standard output: {}", plain(&error)))),
            Ok(()) => {}
        }
        if let Some(drawing) = &arguments.svg {
            draw(path, drawing, &analysis)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Analysis, Failure> {
    let mut records = reader::Records::open(path)?;
    let mut analysis = Analysis::new(records.header(path)?);
    while let Some(event) = records.next_event(path)? {
        analysis.take(&event);
    }
    analysis.finish(records.is_cut_off());
    Ok(analysis)
}

fn draw(trace: &Path, drawing: &Path, analysis: &Analysis) -> Result<(), Failure> {
    let same = |path: &Path| path.canonicalize().ok();
    if same(drawing).is_some() && same(drawing) == same(trace) {
        return Err(Failure::file("cannot draw into", drawing, "it is the trace", "give another name"));
    }
    std::fs::write(drawing, svg::draw(analysis)).map_err(|error| {
        Failure::file("cannot draw into", drawing, plain(&error), "name a file that can be written")
    })
}
