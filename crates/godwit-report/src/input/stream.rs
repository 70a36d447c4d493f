//! Sources that are read from front to back. How they begin is looked at without seeking: they may be pipes.

use std::io::{self, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::Problem;
use super::lines::{Lines, Tally};
use crate::summary::{SKETCH_FILE_START, Summary};

pub(super) const GZIP_START: &[u8] = &[0x1f, 0x8b];
/// More than any summary needs.
const SKETCH_FILE_LIMIT: u64 = 1 << 30;
/// Compressed bytes that are taken at a time.
const PIECE: usize = 1 << 18;

/// What was in a source.
#[derive(Debug)]
pub(super) enum Found {
    /// Lines, which were added to the summary.
    Log(Tally),
    Sketch(Box<Summary>),
}

/// Reads a log or a sketch, compressed or not.
pub(super) fn read(input: impl Read, lines: &mut Lines, summary: &mut Summary) -> Result<Found, Problem> {
    let (start, input) = peek(input).map_err(Problem::Io)?;
    if !start.starts_with(GZIP_START) {
        return read_plain(&start, input, lines, summary);
    }
    let before = summary.lines;
    let decoder = MultiGzDecoder::new(BufReader::with_capacity(PIECE, input));
    let read = match peek(decoder) {
        Ok((start, decoder)) => read_plain(&start, decoder, lines, summary),
        Err(error) => Err(Problem::Io(error)),
    };
    read.map_err(|problem| of_compressed(problem, summary.lines.saturating_sub(before)))
}

fn read_plain(
    start: &[u8],
    mut input: impl Read,
    lines: &mut Lines,
    summary: &mut Summary,
) -> Result<Found, Problem> {
    if start != SKETCH_FILE_START {
        return lines.read_all(input, summary, &|_| {}).map(Found::Log);
    }
    let mut whole = Vec::new();
    input.by_ref().take(SKETCH_FILE_LIMIT).read_to_end(&mut whole).map_err(Problem::Io)?;
    Ok(Found::Sketch(Box::new(Summary::decode(&whole).map_err(Problem::Sketch)?)))
}

/// What a decoder says of its data, as opposed to what the system says of a file.
fn of_compressed(problem: Problem, lines: u64) -> Problem {
    let Problem::Io(error) = &problem else { return problem };
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Problem::Compressed { cut_off: true, lines },
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            Problem::Compressed { cut_off: false, lines }
        }
        _ => problem,
    }
}

/// How `input` begins, and all of it.
fn peek<R: Read>(mut input: R) -> io::Result<(Vec<u8>, impl Read)> {
    let mut start = Vec::new();
    input.by_ref().take(SKETCH_FILE_START.len() as u64).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(input)))
}
