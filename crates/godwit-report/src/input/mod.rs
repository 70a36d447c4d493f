//! Reads logs and sketch files: what they are is told from how they begin.
//!
//! Plain logs are cut into ranges that all cores take in turn; a line belongs to the range in which it begins.
//! Compressed logs (gzip) and the standard input are read from front to back, each by one thread. Memory is one
//! buffer and one summary for each thread, whatever the size of the files.

mod lines;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flate2::read::MultiGzDecoder;

use crate::dimension::Metric;
use crate::summary::{Refused, SKETCH_FILE_START, Summary};
use lines::{Lines, Tally};

/// How much of a log one thread takes at a time.
const RANGE: u64 = 32 << 20;
/// More than any summary needs.
const SKETCH_FILE_LIMIT: u64 = 1 << 30;
const GZIP_START: &[u8] = &[0x1f, 0x8b];

/// Where something to read comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// The standard input: one log.
    StandardInput,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => write!(formatter, "{}", path.display()),
            Source::StandardInput => formatter.write_str("standard input"),
        }
    }
}

/// Why a source cannot be read.
#[derive(Debug)]
pub enum Problem {
    /// The operating system refused.
    Io(io::Error),
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
    let mut plan = Plan { jobs: Vec::new(), sketches: Vec::new() };
    for (number, source) in sources.iter().enumerate() {
        plan.add(number, source).map_err(|problem| ReadError { source: source.clone(), problem })?;
    }
    let (mut summary, tallies) = work(&plan.jobs, sources, metrics, threads.max(1), progress)?;
    let broken = first_broken(&plan.jobs, &tallies, sources)?;
    let only_sketches = plan.jobs.is_empty();
    for (place, sketch) in plan.sketches.into_iter().enumerate() {
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
        let name = match source {
            Source::File(path) => Some(path.canonicalize().unwrap_or_else(|_| path.clone())),
            Source::StandardInput => None,
        };
        if seen.contains(&name) {
            return Err(ReadError { source: source.clone(), problem: Problem::Twice });
        }
        seen.push(name);
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
    /// The lines that begin between two offsets.
    Range(u64, u64),
    Gzip,
    Standard,
}

struct Plan {
    jobs: Vec<Job>,
    sketches: Vec<Summary>,
}

impl Plan {
    fn add(&mut self, number: usize, source: &Source) -> Result<(), Problem> {
        let Source::File(path) = source else {
            self.jobs.push(Job { source: number, part: Part::Standard });
            return Ok(());
        };
        let mut file = File::open(path).map_err(Problem::Io)?;
        let metadata = file.metadata().map_err(Problem::Io)?;
        if metadata.is_dir() {
            return Err(Problem::Io(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if !metadata.is_file() {
            self.jobs.push(Job { source: number, part: Part::Range(0, u64::MAX) });
            return Ok(());
        }
        let mut start = Vec::new();
        file.by_ref().take(SKETCH_FILE_START.len() as u64).read_to_end(&mut start).map_err(Problem::Io)?;
        if start == SKETCH_FILE_START {
            let mut rest = start;
            file.take(SKETCH_FILE_LIMIT).read_to_end(&mut rest).map_err(Problem::Io)?;
            self.sketches.push(Summary::decode(&rest).map_err(Problem::Sketch)?);
        } else if start.starts_with(GZIP_START) {
            self.jobs.push(Job { source: number, part: Part::Gzip });
        } else {
            let size = metadata.len();
            let ranges = (0..size).step_by(RANGE as usize);
            let ranges = ranges.map(|from| Part::Range(from, from.saturating_add(RANGE).min(size)));
            self.jobs.extend(ranges.map(|part| Job { source: number, part }));
        }
        Ok(())
    }
}

/// The jobs on all threads. Tallies come back by job.
fn work(
    jobs: &[Job],
    sources: &[Source],
    metrics: &[Metric],
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(Summary, Vec<Tally>), ReadError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let failure = Mutex::new(None);
    let worker = || {
        let mut summary = Summary::new(metrics);
        let mut lines = Lines::new();
        let mut tallies = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else { break };
            let Some(source) = sources.get(job.source) else { break };
            match run(job, source, &mut lines, &mut summary, progress) {
                Ok(tally) => tallies.push((number, tally)),
                Err(problem) => {
                    failed.store(true, Ordering::Relaxed);
                    let error = ReadError { source: source.clone(), problem };
                    failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
        (summary, tallies)
    };
    let results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(jobs.len())).map(|_| scope.spawn(worker)).collect();
        let mut results = vec![worker()];
        // A report that silently lacks a part of its data would be worse than none.
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        results.extend(others.into_iter().map(join));
        results
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(error);
    }
    let mut summary: Option<Summary> = None;
    let mut tallies = vec![Tally::default(); jobs.len()];
    for (part, numbered) in results {
        match &mut summary {
            Some(summary) => summary.merge(&part),
            None => summary = Some(part),
        }
        for (number, tally) in numbered {
            if let Some(place) = tallies.get_mut(number) {
                *place = tally;
            }
        }
    }
    Ok((summary.unwrap_or_else(|| Summary::new(metrics)), tallies))
}

fn run(
    job: &Job,
    source: &Source,
    lines: &mut Lines,
    summary: &mut Summary,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Tally, Problem> {
    match (&job.part, source) {
        (Part::Range(from, to), Source::File(path)) => {
            let file = open_at(path, from.saturating_sub(1))?;
            lines.read_range(file, *from, *to, summary, progress)
        }
        (Part::Gzip, Source::File(path)) => {
            let file = open_at(path, 0)?;
            let decoder = MultiGzDecoder::new(io::BufReader::with_capacity(1 << 18, Counted(file, progress)));
            lines.read_all(decoder, summary, &|_| {})
        }
        (_, Source::StandardInput | Source::File(_)) => {
            let mut input = io::stdin().lock();
            let mut start = [0; 2];
            let length = fill(&mut input, &mut start).map_err(Problem::Io)?;
            let start = start.get(..length).unwrap_or_default();
            let whole = start.chain(input);
            if start == GZIP_START {
                lines.read_all(MultiGzDecoder::new(io::BufReader::new(whole)), summary, progress)
            } else {
                lines.read_all(whole, summary, progress)
            }
        }
    }
}

fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.read(rest)? {
            0 => break,
            length => filled += length,
        }
    }
    Ok(filled)
}

fn open_at(path: &Path, offset: u64) -> Result<File, Problem> {
    let mut file = File::open(path).map_err(Problem::Io)?;
    if offset > 0 {
        file.seek(SeekFrom::Start(offset)).map_err(Problem::Io)?;
    }
    Ok(file)
}

/// Tells how much of a compressed file was read.
struct Counted<'a>(File, &'a (dyn Fn(u64) + Sync));

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.0.read(buffer)?;
        (self.1)(length as u64);
        Ok(length)
    }
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
