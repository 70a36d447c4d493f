//! `godwit qlog`: reads traces of connections back and says what happened. What is found is `godwit-lab`'s.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use godwit_lab::qlog::Analysis;

use crate::error::Failure;
use crate::output::{self, print_while_read, stdout_style};

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
    let style = stdout_style();
    for (number, path) in arguments.files.iter().enumerate() {
        let analysis = Analysis::read(path)?;
        let between = if number == 0 { "" } else { "\n" };
        let text = format!("{between}{}", analysis.text(path, style));
        if !print_while_read(text.as_bytes())? {
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(drawing) = &arguments.svg {
            draw(path, drawing, &analysis)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn draw(trace: &Path, drawing: &Path, analysis: &Analysis) -> Result<(), Failure> {
    let same = |path: &Path| path.canonicalize().ok();
    if same(drawing).is_some() && same(drawing) == same(trace) {
        return Err(Failure::file("cannot draw into", drawing, "it is the trace", "give another name"));
    }
    output::write(drawing, analysis.svg())
}
