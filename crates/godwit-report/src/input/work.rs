//! The jobs of a report, on all threads.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::lines::{Lines, Tally};
use super::stream::{self, Found};
use super::{Job, Part, Problem, ReadError, Source};
use crate::dimension::Metric;
use crate::summary::Summary;

/// What all jobs have given.
pub(super) struct Done {
    pub(super) summary: Summary,
    /// By job; empty for sketches.
    pub(super) tallies: Vec<Tally>,
    /// In the order of their jobs.
    pub(super) sketches: Vec<Summary>,
}

/// The jobs on all threads.
pub(super) fn work(
    jobs: &[Job],
    sources: &[Source],
    metrics: &[Metric],
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Done, ReadError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let failure = Mutex::new(None);
    let worker = || {
        let mut summary = Summary::new(metrics);
        let mut lines = Lines::new();
        let mut findings = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else { break };
            let Some(source) = sources.get(job.source) else { break };
            match run(job, source, &mut lines, &mut summary, progress) {
                Ok(found) => findings.push((number, found)),
                Err(problem) => {
                    failed.store(true, Ordering::Relaxed);
                    let error = ReadError { source: source.clone(), problem };
                    failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
        (summary, findings)
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
    Ok(gather(results, jobs.len(), metrics))
}

fn gather(results: Vec<(Summary, Vec<(usize, Found)>)>, jobs: usize, metrics: &[Metric]) -> Done {
    let mut summary: Option<Summary> = None;
    let mut tallies = vec![Tally::default(); jobs];
    let mut sketches = Vec::new();
    for (part, findings) in results {
        match &mut summary {
            Some(summary) => summary.merge(&part),
            None => summary = Some(part),
        }
        for (number, found) in findings {
            match found {
                Found::Log(tally) => {
                    if let Some(place) = tallies.get_mut(number) {
                        *place = tally;
                    }
                }
                Found::Sketch(sketch) => sketches.push((number, *sketch)),
            }
        }
    }
    sketches.sort_by_key(|(number, _)| *number);
    Done {
        summary: summary.unwrap_or_else(|| Summary::new(metrics)),
        tallies,
        sketches: sketches.into_iter().map(|(_, sketch)| sketch).collect(),
    }
}

fn run(
    job: &Job,
    source: &Source,
    lines: &mut Lines,
    summary: &mut Summary,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Found, Problem> {
    match (&job.part, source) {
        (Part::Range(from, to), Source::File(path)) => {
            let file = open_at(path, from.saturating_sub(1))?;
            lines.read_range(file, *from, *to, summary, progress).map(Found::Log)
        }
        (Part::Whole, Source::File(path)) => {
            let file = open_at(path, 0)?;
            // Of other things nobody knows how much there is.
            let counts = file.metadata().is_ok_and(|metadata| metadata.is_file());
            let progress: &(dyn Fn(u64) + Sync) = if counts { progress } else { &|_| {} };
            stream::read(Counted(file, progress), lines, summary)
        }
        (_, Source::StandardInput) => stream::read(io::stdin().lock(), lines, summary),
    }
}

fn open_at(path: &Path, offset: u64) -> Result<File, Problem> {
    let mut file = File::open(path).map_err(Problem::Io)?;
    if offset > 0 {
        file.seek(SeekFrom::Start(offset)).map_err(Problem::Io)?;
    }
    Ok(file)
}

/// Tells how much of a file was read.
struct Counted<'a>(File, &'a (dyn Fn(u64) + Sync));

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.0.read(buffer)?;
        (self.1)(length as u64);
        Ok(length)
    }
}
