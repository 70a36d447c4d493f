//! Reads logs and sketch files: what they are is told from how they begin.
//!
//! Plain logs are cut into ranges that all cores take in turn; a line belongs to the range in which it begins.
//! Everything else (compressed logs, sketches, pipes, the standard input) is opened once and read from front to back
//! by one thread, because what has been read from a pipe is gone. Memory is one buffer and one summary for each
//! thread, whatever the size of the files.

mod identity;
mod lines;
mod stream;
#[cfg(test)]
mod tests;
mod work;

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::dimension::Metric;
use crate::summary::{Refused, SKETCH_FILE_START, Summary};
use identity::Identity;
use lines::Tally;
use stream::GZIP_START;

/// How much of a log one thread takes at a time.
const RANGE: u64 = 32 << 20;

/// Where something to read comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// The standard input: one log or sketch.
    StandardInput,
}

impl Source {
    /// Whether it is this file, perhaps by another name.
    #[must_use]
    pub fn is(&self, path: &Path) -> bool {
        let Source::File(own) = self else { return false };
        own.canonicalize().is_ok_and(|own| path.canonicalize().is_ok_and(|path| own == path))
    }
}

impl From<OsString> for Source {
    /// A file's name, or `-`.
    fn from(name: OsString) -> Source {
        if name == "-" { Source::StandardInput } else { Source::File(name.into()) }
    }
}

impl fmt::Display for Source {
    /// For a terminal: what a name holds beside letters and signs that can be seen is escaped.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Source::File(path) = self else { return formatter.write_str("standard input") };
        path.to_string_lossy().chars().try_for_each(|character| match character {
            // Those that turn the direction of writing, and line ends that are no control characters.
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
                write!(formatter, "{}", character.escape_unicode())
            }
            _ if character.is_control() => write!(formatter, "{}", character.escape_default()),
            _ => formatter.write_char(character),
        })
    }
}

/// Why a source cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system refused.
    Io(io::Error),
    /// Its compressed data end too soon, or are damaged.
    Compressed {
        /// Whether they end too soon.
        cut_off: bool,
        /// Lines that were read before.
        lines: u64,
    },
    /// It is a sketch file that cannot be used.
    Sketch(Refused),
    /// It is a log in the combined format, which has no times.
    Combined,
    /// No line of it is a line of the JSON log.
    Foreign,
    /// The same file was given twice.
    Twice,
}

/// A source that cannot be read.
#[derive(Debug)]
pub struct ReadError {
    /// Which one.
    pub source: Source,
    /// Why.
    pub problem: Problem,
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.source)?;
        match &self.problem {
            Problem::Io(error) => write!(formatter, "{error}; check the name and the permissions"),
            Problem::Compressed { cut_off, lines } => {
                let what = if *cut_off { "end too soon" } else { "are damaged" };
                let lines = if *lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
                write!(
                    formatter,
                    "the compressed data {what}, after {lines}; copy the file again once it is complete, or take \
                     what there is: gzip -dc FILE | godwit report -"
                )
            }
            Problem::Sketch(refused @ Refused::Newer(_)) => write!(formatter, "{refused}; update this program"),
            Problem::Sketch(refused) => write!(formatter, "{refused}; write it again with --sketch"),
            Problem::Combined => formatter.write_str(
                "this is a log in the combined format, which has no times; let the server write format = \"json\"",
            ),
            Problem::Foreign => formatter.write_str(
                "no line is one of the server's JSON access log; give the file of `godwit serve --access-log FILE`",
            ),
            Problem::Twice => formatter.write_str("given twice, so that it would count twice; name it once"),
        }
    }
}

impl std::error::Error for ReadError {}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenLine {
    /// Where it stands.
    pub source: Source,
    /// Its number, from 1.
    pub line: u64,
}

/// What was read.
#[derive(Debug)]
pub struct Outcome {
    /// All of it together.
    pub summary: Summary,
    /// The first broken line of the first source that has one.
    pub broken: Option<BrokenLine>,
}

/// How many bytes there are to read, where that is known.
pub fn total_size(sources: &[Source]) -> u64 {
    let size = |source: &Source| match source {
        Source::File(path) => std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
        Source::StandardInput => 0,
    };
    sources.iter().map(size).sum()
}

/// Reads everything, on so many threads, and keeps these metrics. `progress` hears of bytes as they were read.
///
/// # Errors
///
/// The first source that cannot be read.
pub fn read(
    sources: &[Source],
    metrics: &[Metric],
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Outcome, ReadError> {
    refuse_twins(sources)?;
    let mut plan = Plan { jobs: Vec::new() };
    for (number, source) in sources.iter().enumerate() {
        plan.add(number, source).map_err(|problem| ReadError { source: source.clone(), problem })?;
    }
    let work::Done { mut summary, tallies, sketches } =
        work::work(&plan.jobs, sources, metrics, threads.max(1), progress)?;
    let broken = first_broken(&plan.jobs, &tallies, sources)?;
    let only_sketches = sketches.len() == plan.jobs.len();
    for (place, sketch) in sketches.into_iter().enumerate() {
        if place == 0 && only_sketches {
            summary = sketch;
        } else {
            summary.merge(&sketch);
        }
    }
    Ok(Outcome { summary, broken })
}

fn refuse_twins(sources: &[Source]) -> Result<(), ReadError> {
    let mut seen = Vec::new();
    for source in sources {
        let identity = Identity::of(source);
        if seen.contains(&identity) {
            return Err(ReadError { source: source.clone(), problem: Problem::Twice });
        }
        seen.push(identity);
    }
    Ok(())
}

/// One thread's next piece of work.
#[derive(Debug)]
struct Job {
    source: usize,
    part: Part,
}

#[derive(Debug)]
enum Part {
    /// The lines of a plain log that begin between two offsets.
    Range(u64, u64),
    /// Everything, from front to back.
    Whole,
}

struct Plan {
    jobs: Vec<Job>,
}

impl Plan {
    fn add(&mut self, number: usize, source: &Source) -> Result<(), Problem> {
        let size = match source {
            Source::File(path) => plain_size(path)?,
            Source::StandardInput => None,
        };
        match size {
            Some(size) => {
                let ranges = (0..size).step_by(RANGE as usize);
                let ranges = ranges.map(|from| Part::Range(from, from.saturating_add(RANGE).min(size)));
                self.jobs.extend(ranges.map(|part| Job { source: number, part }));
            }
            None => self.jobs.push(Job { source: number, part: Part::Whole }),
        }
        Ok(())
    }
}

/// The size of a plain log, which can be read from any place. A pipe is left alone.
fn plain_size(path: &Path) -> Result<Option<u64>, Problem> {
    let metadata = std::fs::metadata(path).map_err(Problem::Io)?;
    if metadata.is_dir() {
        return Err(Problem::Io(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    let mut start = Vec::new();
    let file = File::open(path).map_err(Problem::Io)?;
    file.take(SKETCH_FILE_START.len() as u64).read_to_end(&mut start).map_err(Problem::Io)?;
    let is_plain = start != SKETCH_FILE_START && !start.starts_with(GZIP_START);
    // What has no size (files of /proc) may yet have lines.
    Ok((is_plain && (metadata.len() > 0 || start.is_empty())).then_some(metadata.len()))
}

/// The first broken line, with its number in the whole file; an error for a source without a good line.
fn first_broken(
    jobs: &[Job],
    tallies: &[Tally],
    sources: &[Source],
) -> Result<Option<BrokenLine>, ReadError> {
    let mut first = None;
    for (number, source) in sources.iter().enumerate() {
        let (mut lines, mut good) = (0, 0);
        let mut broken = None;
        for (_, tally) in jobs.iter().zip(tallies).filter(|(job, _)| job.source == number) {
            broken = broken.or_else(|| tally.first_broken.map(|line| lines + line));
            lines += tally.lines;
            good += tally.lines - tally.broken;
        }
        if lines > 0 && good == 0 {
            return Err(ReadError { source: source.clone(), problem: Problem::Foreign });
        }
        first = first.or_else(|| broken.map(|line| BrokenLine { source: source.clone(), line }));
    }
    Ok(first)
}
