//! The "perf" protocol over stacks that are asked what there is to do.

use crate::{Measure, Outcome, Requests, Timings, Work, ZEROS, next_chunk};
use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What is read from a stream in one go.
const BUFFER: usize = 64 << 10;

/// What came of reading.
pub enum Read {
    Data { len: usize, end: bool },
    Blocked,
}

/// The streams of a connection.
pub trait Streams {
    /// Opens one, unless the peer allows no more for now.
    fn open(&mut self) -> Result<Option<u64>>;
    /// What there is goes to `take`: by way of `buffer` if the stack does not show it where it is.
    fn read(&mut self, id: u64, buffer: &mut [u8], take: impl FnOnce(&[u8])) -> Result<Read>;
    /// How much of it was taken; the end only counts if all was. None if nothing is taken for now; once a stream
    /// takes less than it was given, the stack says when it takes more.
    fn write(&mut self, id: u64, data: Bytes, end: bool) -> Result<Option<usize>>;
    /// Wants no more of a stream.
    fn stop(&mut self, id: u64);
}

/// Answers that a server has under way on a connection.
#[derive(Default)]
pub struct Answers {
    open: HashMap<u64, Answer>,
    buffer: Vec<u8>,
}

#[derive(Default)]
struct Answer {
    head: [u8; 8],
    have: usize,
    /// Once the request is here, what is left to send.
    left: Option<u64>,
}

impl Answers {
    /// A stream has something to read.
    pub fn readable(&mut self, streams: &mut impl Streams, id: u64) {
        self.buffer.resize(BUFFER, 0);
        let answer = self.open.entry(id).or_default();
        loop {
            // A client that has measured enough stops its streams: an error here is the normal end of a run.
            let take = |data: &[u8]| {
                let taken = data.len().min(answer.head.len() - answer.have);
                answer.head[answer.have..answer.have + taken].copy_from_slice(&data[..taken]);
                answer.have += taken;
            };
            match streams.read(id, &mut self.buffer, take) {
                Ok(Read::Data { end, .. }) => {
                    if end {
                        answer.left = Some(u64::from_be_bytes(answer.head));
                        return self.writable(streams, id);
                    }
                }
                Ok(Read::Blocked) => return,
                Err(_) => return drop(self.open.remove(&id)),
            }
        }
    }

    /// A stream may take something.
    pub fn writable(&mut self, streams: &mut impl Streams, id: u64) {
        let Some(left) = self.open.get_mut(&id).and_then(|answer| answer.left.as_mut()) else { return };
        loop {
            let chunk = next_chunk(*left);
            let end = chunk.len() as u64 == *left;
            match streams.write(id, Bytes::from_static(chunk), end) {
                Ok(Some(len)) if len == chunk.len() && end => break,
                Ok(Some(len)) => {
                    *left -= len as u64;
                    if len < chunk.len() {
                        return;
                    }
                }
                Ok(None) => return,
                Err(_) => break,
            }
        }
        self.open.remove(&id);
    }
}

/// A client's work on one connection.
pub struct Client {
    kind: Kind,
    buffer: Vec<u8>,
}

enum Kind {
    Download(Bulk),
    Upload(Bulk),
    Requests { requests: Requests, message: Bytes, timings: Timings, open: HashMap<u64, Open> },
}

struct Bulk {
    start: Instant,
    time: Duration,
    bytes: u64,
    stream: Option<u64>,
    took: Option<Duration>,
    head_sent: bool,
}

struct Open {
    start: Instant,
    sent: usize,
    received: u64,
}

impl Client {
    /// Begins now.
    pub fn new(options: &Measure) -> Result<Self> {
        let bulk =
            |time| Bulk { start: Instant::now(), time, bytes: 0, stream: None, took: None, head_sent: false };
        let kind = match options.work {
            Work::Download(time) => Kind::Download(bulk(time)),
            Work::Upload(time) => Kind::Upload(bulk(time)),
            Work::Requests(requests) => Kind::Requests {
                requests,
                message: requests.message().into(),
                timings: Timings::begin(requests.time),
                open: HashMap::new(),
            },
            _ => bail!("no work for a connection"),
        };
        Ok(Self { kind, buffer: vec![0; BUFFER] })
    }

    /// Begins what is to be begun.
    pub fn go_on(&mut self, streams: &mut impl Streams) -> Result<()> {
        match &mut self.kind {
            Kind::Download(bulk) => {
                if bulk.stream.is_none() {
                    bulk.stream = streams.open()?;
                    let Some(id) = bulk.stream else { return Ok(()) };
                    let sent = streams.write(id, Bytes::from_static(&[0xff; 8]), true)?;
                    ensure!(sent == Some(8), "a new stream takes no eight bytes");
                }
            }
            Kind::Upload(bulk) => {
                if bulk.stream.is_none() {
                    bulk.stream = streams.open()?;
                    if let Some(id) = bulk.stream {
                        return self.writable(streams, id);
                    }
                }
            }
            Kind::Requests { requests, message, timings, open } => {
                while open.len() < requests.streams && timings.goes_on() {
                    let Some(id) = streams.open()? else { break };
                    let start = Instant::now();
                    let sent = streams.write(id, message.clone(), true)?.unwrap_or(0);
                    open.insert(id, Open { start, sent, received: 0 });
                }
            }
        }
        Ok(())
    }

    /// A stream has something to read.
    pub fn readable(&mut self, streams: &mut impl Streams, id: u64) -> Result<()> {
        loop {
            let (len, end) = match streams.read(id, &mut self.buffer, |_| {})? {
                Read::Data { len, end } => (len, end),
                Read::Blocked => return Ok(()),
            };
            match &mut self.kind {
                Kind::Download(bulk) => {
                    ensure!(!end, "the server ended the download");
                    bulk.bytes += len as u64;
                    if bulk.start.elapsed() >= bulk.time {
                        bulk.took = Some(bulk.start.elapsed());
                        streams.stop(id);
                        return Ok(());
                    }
                }
                Kind::Upload(bulk) => {
                    ensure!(len == 0, "the server answers an upload with {len} bytes");
                    if end {
                        bulk.took = Some(bulk.start.elapsed());
                        return Ok(());
                    }
                }
                Kind::Requests { requests, timings, open, .. } => {
                    let Some(request) = open.get_mut(&id) else { return Ok(()) };
                    request.received += len as u64;
                    if end {
                        let (came, wanted) = (request.received, requests.response);
                        ensure!(came == wanted, "{came} bytes came, {wanted} were asked for");
                        timings.record(request.start);
                        open.remove(&id);
                        return self.go_on(streams);
                    }
                }
            }
        }
    }

    /// A stream may take something.
    pub fn writable(&mut self, streams: &mut impl Streams, id: u64) -> Result<()> {
        match &mut self.kind {
            Kind::Upload(bulk) if bulk.stream == Some(id) && bulk.took.is_none() => {
                if !bulk.head_sent {
                    bulk.head_sent = streams.write(id, Bytes::from_static(&[0; 8]), false)? == Some(8);
                    ensure!(bulk.head_sent, "a new stream takes no eight bytes");
                }
                while bulk.start.elapsed() < bulk.time {
                    let Some(len) = streams.write(id, Bytes::from_static(&ZEROS), false)? else {
                        return Ok(());
                    };
                    bulk.bytes += len as u64;
                    if len < ZEROS.len() {
                        return Ok(());
                    }
                }
                streams.write(id, Bytes::new(), true)?;
            }
            Kind::Requests { message, open, .. } => {
                if let Some(request) = open.get_mut(&id).filter(|request| request.sent < message.len()) {
                    request.sent += streams.write(id, message.slice(request.sent..), true)?.unwrap_or(0);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether everything is measured.
    pub fn is_done(&self) -> bool {
        match &self.kind {
            Kind::Download(bulk) | Kind::Upload(bulk) => bulk.took.is_some(),
            Kind::Requests { timings, open, .. } => open.is_empty() && !timings.goes_on(),
        }
    }

    /// What came of it.
    pub fn outcome(self) -> Outcome {
        match self.kind {
            Kind::Download(bulk) => Outcome::download(bulk.bytes, bulk.took.unwrap_or_default()),
            Kind::Upload(bulk) => Outcome::upload(bulk.bytes, bulk.took.unwrap_or_default()),
            Kind::Requests { timings, .. } => Outcome::requests(timings),
        }
    }
}
