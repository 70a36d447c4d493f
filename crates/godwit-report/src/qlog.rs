//! Records out of a trace of a QUIC connection (qlog): JSON texts, each between a record separator and a line feed
//! (RFC 7464), plain or compressed with gzip, one at a time.
//!
//! A trace may be of any length: nothing is kept of what was read.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;
use godwit_text::plain_error as plain;
use serde_json::Value;

/// A record may be as long as this: a packet's frames are far shorter.
const LONGEST: u64 = 4 << 20;
const RECORD_SEPARATOR: u8 = 0x1e;
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Seconds in the longest trace that is believed: a hundred years.
const LATEST: f64 = 3.2e9;

/// A trace that cannot be read, in a sentence that says what to do.
#[derive(Debug)]
pub struct TraceError {
    path: PathBuf,
    problem: String,
    remedy: &'static str,
}

impl fmt::Display for TraceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot read {}: {}; {}", self.path.display(), self.problem, self.remedy)
    }
}

impl std::error::Error for TraceError {}

/// One event.
#[derive(Debug)]
pub struct Event {
    /// Since the first event.
    pub time: Duration,
    /// Such as `packet_sent`, without the name space.
    pub name: String,
    /// What it says besides.
    pub data: Value,
}

/// A trace that is being read.
pub struct Records {
    path: PathBuf,
    input: Box<dyn BufRead>,
    buffer: Vec<u8>,
    number: u64,
    cut_off: bool,
    times: Times,
}

/// What the times of a trace count from, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Times {
    /// A moment that is about that of the first event.
    #[default]
    Start,
    /// Another, which may be long ago: the time of the first event, once it is known.
    Epoch(Option<f64>),
    /// The event before, whose time this is.
    Previous(f64),
}

impl Times {
    /// As the trace says in its common fields, in the words of newer or older drafts of the format.
    fn of(header: &Value) -> Times {
        let text = |pointer: &str| header.pointer(pointer).and_then(Value::as_str);
        let clock = text("/trace/common_fields/reference_time/clock_type");
        match text("/trace/common_fields/time_format") {
            Some("relative_to_previous_event" | "delta") => Times::Previous(0.0),
            Some("relative") => Times::Start,
            Some("absolute") => Times::Epoch(None),
            _ if clock == Some("system") => Times::Epoch(None),
            _ => Times::Start,
        }
    }

    /// The time since the beginning.
    fn since_start(&mut self, time: f64) -> f64 {
        match self {
            Times::Start => time,
            // Events may be a little out of order.
            Times::Epoch(first) => (time - *first.get_or_insert(time)).max(0.0),
            Times::Previous(last) => {
                *last += time;
                *last
            }
        }
    }
}

impl Records {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(path: &Path) -> Result<Records, TraceError> {
        let failed = |error: std::io::Error| TraceError {
            path: path.to_owned(),
            problem: plain(&error),
            remedy: "give a trace that can be read",
        };
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        let compressed = file.fill_buf().map_err(failed)?.starts_with(&GZIP);
        let input: Box<dyn BufRead> =
            if compressed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
        Ok(Records::new(path, input))
    }

    /// Reads from somewhere else, which errors call `path`.
    #[must_use]
    pub fn new(path: &Path, input: Box<dyn BufRead>) -> Records {
        let (path, times) = (path.to_owned(), Times::default());
        Records { path, input, buffer: Vec::new(), number: 0, cut_off: false, times }
    }

    /// The trace's description, which comes first.
    ///
    /// # Errors
    /// If it is not that of a qlog trace.
    pub fn header(&mut self) -> Result<Value, TraceError> {
        let path = self.path.clone();
        let expected = || TraceError {
            path: path.clone(),
            problem: "it is not a qlog trace of JSON text sequences".to_owned(),
            remedy: "give a file such as godwit writes (.sqlog)",
        };
        let header = self.next().map_err(|_| expected())?.ok_or_else(expected)?;
        let format = header.get("serialization_format").or_else(|| header.get("qlog_format"));
        let known = format.and_then(Value::as_str).is_some_and(|format| {
            format.eq_ignore_ascii_case("application/qlog+json-seq")
                || format.eq_ignore_ascii_case("JSON-SEQ")
        });
        self.times = Times::of(&header);
        if known { Ok(header) } else { Err(expected()) }
    }

    /// The next event; none at the end.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn next_event(&mut self) -> Result<Option<Event>, TraceError> {
        while let Some(mut record) = self.next()? {
            let time = record.get("time").and_then(Value::as_f64);
            // Also those that are passed over count.
            let time =
                time.filter(|time| *time >= 0.0).map_or(-1.0, |time| self.times.since_start(time) / 1e3);
            let name = record.get("name").and_then(Value::as_str).unwrap_or_default();
            // Others than QUIC's are of no interest here; a colon stands behind the name space.
            let Some((_, name)) = name.split_once(':').filter(|(space, _)| !space.starts_with("http")) else {
                continue;
            };
            if !(0.0..LATEST).contains(&time) {
                return Err(self.broken("an event has no time, or an impossible one"));
            }
            let name = name.to_owned();
            let data = record.get_mut("data").map(Value::take).unwrap_or_default();
            return Ok(Some(Event { time: Duration::from_secs_f64(time), name, data }));
        }
        Ok(None)
    }

    /// Whether the file ends within a record: its writer did not come to its end.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    fn next(&mut self) -> Result<Option<Value>, TraceError> {
        loop {
            self.buffer.clear();
            let read = self.input.by_ref().take(LONGEST).read_until(b'\n', &mut self.buffer);
            match read {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                // What has been read so far is worth something.
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    self.cut_off = true;
                    return Ok(None);
                }
                Err(error) => return Err(self.broken(&plain(&error))),
            }
            self.number += 1;
            let whole = self.buffer.ends_with(b"\n");
            let text = self.buffer.trim_ascii();
            let text = text.strip_prefix(&[RECORD_SEPARATOR]).unwrap_or(text).trim_ascii();
            if text.is_empty() {
                continue;
            }
            return match serde_json::from_slice(text) {
                Ok(record) => Ok(Some(record)),
                Err(_) if !whole && self.buffer.len() < LONGEST as usize => {
                    self.cut_off = true;
                    Ok(None)
                }
                Err(_) => Err(self.broken("a record is not JSON")),
            };
        }
    }

    fn broken(&self, problem: &str) -> TraceError {
        TraceError {
            path: self.path.clone(),
            problem: format!("record {}: {problem}", self.number),
            remedy: "the file is damaged or not a trace",
        }
    }
}
