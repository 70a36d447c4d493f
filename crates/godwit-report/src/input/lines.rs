//! Lines out of a stream, in one buffer that is used again and again.

use std::io::{self, Read};

use memchr::memchr;

use super::Problem;
use crate::summary::Summary;

/// A line may be as long as this; longer ones count as broken.
const BUFFER: usize = 1 << 20;

/// What one part of a source held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) lines: u64,
    pub(super) broken: u64,
    /// The number of the first broken line in this part, from 1.
    pub(super) first_broken: Option<u64>,
}

impl Tally {
    fn count(&mut self, good: bool) {
        self.lines += 1;
        if !good {
            self.broken += 1;
            self.first_broken.get_or_insert(self.lines);
        }
    }
}

/// The buffer of one thread.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: Vec<u8>,
}

impl Lines {
    pub(super) fn new() -> Lines {
        Lines { buffer: vec![0; BUFFER] }
    }

    /// Reads a stream to its end.
    pub(super) fn read_all(
        &mut self,
        input: impl Read,
        summary: &mut Summary,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Tally, Problem> {
        self.read_range(input, 0, u64::MAX, summary, progress)
    }

    /// Reads the lines that begin from offset `from` to before `to`. The input stands one byte before `from`
    /// (unless that is 0), because only that byte tells whether a line begins at `from`.
    pub(super) fn read_range(
        &mut self,
        mut input: impl Read,
        from: u64,
        to: u64,
        summary: &mut Summary,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Tally, Problem> {
        let mut tally = Tally::default();
        // Offset of the buffer's first byte, and how much of it is filled.
        let mut base = from.saturating_sub(1);
        let mut filled = 0;
        let mut skipping = from > 0;
        loop {
            let length = read_some(&mut input, self.buffer.get_mut(filled..).unwrap_or_default())?;
            if length == 0 {
                if filled > 0 && !skipping && base < to {
                    self.last_line(filled, summary, &mut tally)?;
                }
                return Ok(tally);
            }
            filled += length;
            progress(length as u64);
            let mut start = 0;
            while let Some(line_length) = self.buffer.get(start..filled).and_then(|rest| memchr(b'\n', rest))
            {
                let line = self.buffer.get(start..start + line_length).unwrap_or_default();
                if skipping {
                    skipping = false;
                } else if base + start as u64 >= to {
                    return Ok(tally);
                } else {
                    count(line, summary, &mut tally)?;
                }
                start += line_length + 1;
            }
            self.buffer.copy_within(start..filled, 0);
            base += start as u64;
            filled -= start;
            if filled == self.buffer.len() {
                if !skipping && base < to {
                    summary.lines += 1;
                    summary.broken += 1;
                    tally.count(false);
                }
                skipping = true;
                base += filled as u64;
                filled = 0;
            }
        }
    }

    /// A last line without a line end: a server may be writing it right now, so that half a line is no fault.
    fn last_line(&self, filled: usize, summary: &mut Summary, tally: &mut Tally) -> Result<(), Problem> {
        let line = self.buffer.get(..filled).unwrap_or_default();
        if tally.lines == 0 || crate::line::Facts::read(line).is_some() {
            count(line, summary, tally)?;
        }
        Ok(())
    }
}

fn read_some(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, Problem> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(Problem::Io),
        }
    }
}

#[inline]
fn count(line: &[u8], summary: &mut Summary, tally: &mut Tally) -> Result<(), Problem> {
    if line.is_empty() {
        tally.lines += 1;
        return Ok(());
    }
    let good = summary.add_line(line);
    if !good && tally.lines == tally.broken && is_combined(line) {
        return Err(Problem::Combined);
    }
    tally.count(good);
    Ok(())
}

/// `ADDRESS - - [21/Nov/2026:23:21:41 +0000] "GET / HTTP/1.1" 200 …`
fn is_combined(line: &[u8]) -> bool {
    let date = memchr(b'[', line).and_then(|start| line.get(start + 1..));
    let dated = date.is_some_and(|date| date.get(2) == Some(&b'/') && date.get(6) == Some(&b'/'));
    dated && line.first() != Some(&b'{') && memchr::memmem::find(line, b"] \"").is_some()
}
