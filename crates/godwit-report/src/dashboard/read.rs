//! The files of a history, read from a folder and put into the order of their commits.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use godwit_text::{plain_error as plain, read_at_most};

use super::history::Measurement;

/// The most bytes of one file.
const LARGEST_FILE: u64 = 4 << 20;
/// The most bytes of all files together: they are all in memory.
const LARGEST_HISTORY: usize = 256 << 20;
/// The most files of a folder.
const MOST_FILES: usize = 5000;
/// The most figures with a page of their own.
const MOST_FIGURES: usize = 400;
/// The most programs in a history.
const MOST_PROGRAMS: usize = 64;

/// What keeps a history from being shown, in one line.
#[derive(Debug)]
pub struct HistoryError {
    path: PathBuf,
    problem: String,
}

impl HistoryError {
    pub(super) fn new(path: &Path, problem: impl Into<String>) -> HistoryError {
        HistoryError { path: path.to_owned(), problem: problem.into() }
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for HistoryError {}

/// A file of a history.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// The file's name, without its folder: letters, digits, `.`, `-` and `_`.
    pub name: String,
    /// What stands in it, as it stands there.
    pub bytes: Vec<u8>,
    /// What that means.
    pub measurement: Measurement,
}

/// All files of a history, the oldest commit first; at least one.
#[derive(Clone, Debug)]
pub struct History {
    files: Vec<Recorded>,
}

impl History {
    /// Reads every `*.json` of a folder; what else is in it is passed over.
    ///
    /// # Errors
    /// If there is none, if one cannot be read or is not right, or if there is more than a dashboard can show.
    pub fn read(folder: &Path) -> Result<History, HistoryError> {
        let paths = listed(folder, "", ".json", MOST_FILES)?;
        if paths.is_empty() {
            let problem = "holds no measurements; cargo xtask history --bench FILE adds one";
            return Err(HistoryError::new(folder, problem));
        }
        let mut files = Vec::new();
        let mut size: usize = 0;
        for path in paths {
            let bytes = read_file(&path)?;
            size = size.saturating_add(bytes.len());
            if size > LARGEST_HISTORY {
                let problem = format!("holds more than {} MiB of measurements", LARGEST_HISTORY >> 20);
                return Err(HistoryError::new(folder, problem));
            }
            let measurement =
                Measurement::parse(&bytes).map_err(|problem| HistoryError::new(&path, problem))?;
            files.push(Recorded { name: plain_name(&path)?, bytes, measurement });
        }
        History::new(files).map_err(|problem| HistoryError::new(folder, problem))
    }

    fn new(mut files: Vec<Recorded>) -> Result<History, String> {
        files.sort_by(|one, other| order(one).cmp(&order(other)));
        let figures = || files.iter().flat_map(|file| &file.measurement.figures);
        let names = figures().map(|figure| (&figure.scenario, &figure.figure, &figure.unit, figure.better));
        if names.collect::<BTreeSet<_>>().len() > MOST_FIGURES {
            return Err(format!("holds more than {MOST_FIGURES} different figures"));
        }
        let latencies = files.iter().flat_map(|file| &file.measurement.latencies);
        let programs = figures().map(|figure| &figure.program);
        let programs = programs.chain(latencies.map(|latency| &latency.program));
        if programs.collect::<BTreeSet<_>>().len() > MOST_PROGRAMS {
            return Err(format!("holds figures of more than {MOST_PROGRAMS} programs"));
        }
        Ok(History { files })
    }

    /// The files, the oldest commit first.
    #[must_use]
    pub fn files(&self) -> &[Recorded] {
        &self.files
    }
}

/// By commit, then by when it was measured. Whole seconds are enough and compare as letters do.
fn order(file: &Recorded) -> (&str, &str, &str) {
    let seconds = |time: &'_ str| time.len().min(19);
    let Measurement { time, measured, .. } = &file.measurement;
    (
        time.get(..seconds(time)).unwrap_or_default(),
        measured.get(..seconds(measured)).unwrap_or_default(),
        &file.name,
    )
}

/// The files of a folder whose names begin and end like this, by name.
pub(super) fn listed(
    folder: &Path,
    start: &str,
    end: &str,
    most: usize,
) -> Result<Vec<PathBuf>, HistoryError> {
    let failed =
        |error: std::io::Error| HistoryError::new(folder, format!("cannot be read: {}", plain(&error)));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(start) && name.ends_with(end) {
            paths.push(path);
        }
        if paths.len() > most {
            return Err(HistoryError::new(folder, format!("holds more than {most} files *{end}")));
        }
    }
    paths.sort();
    Ok(paths)
}

/// A file's content.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, HistoryError> {
    let read = File::open(path).and_then(|file| read_at_most(file, LARGEST_FILE));
    read.map_err(|error| HistoryError::new(path, format!("cannot be read: {}", plain(&error))))
}

/// The name stands in links, and the file is copied under it.
fn plain_name(path: &Path) -> Result<String, HistoryError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if name.bytes().all(fits) && !name.starts_with('.') && (6..=200).contains(&name.len()) {
        return Ok(name.to_owned());
    }
    let problem = "has a name with other characters than letters, digits, '.', '-' and '_'; rename it";
    Err(HistoryError::new(path, problem))
}
