//! Traces of connections in files, one each, as qlog in JSON-SEQ.
//!
//! Connections are traced under their shard's lock, and a disk may take its time: so what they have to say goes to a thread
//! of its own, in pieces, by a queue that never makes anybody wait. A trace for whose next piece there is no room in it, or
//! on the disk, ends there. No file is held open, and [`MOST`] connections at a time are traced, so that strangers who begin
//! connections use up neither descriptors nor memory; where that is wished, the oldest traces are removed
//! ([`QlogFolder::keep`]), so that they do not use up the disk either. What goes wrong is told by the thread, once and not for every trace.

mod kept;

use godwit_transport::observe::{Observer, ObserverFactory};
use godwit_transport::qlog::{Qlog, Sink};
use godwit_transport::{ConnectionId, Side};
use kept::{Kept, Most};
use std::collections::HashSet;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Connections that are traced at a time.
const MOST: usize = 1000;
/// Bytes that a connection gathers before they go to the thread.
const PIECE: usize = 16 << 10;
/// Pieces that wait to be written.
const QUEUE: usize = 512;

/// How the names of traces end, by the end that is watched.
const CLIENT: &str = "_client.sqlog";
const SERVER: &str = "_server.sqlog";

/// Pieces written one after the other before it is said that traces are written again.
const WELL_AGAIN: u32 = 4;

/// A folder for traces: see `EndpointBuilder::qlog_dir`.
#[derive(Clone)]
pub struct QlogFolder {
    path: PathBuf,
    most: Option<Most>,
    tell: Arc<dyn Fn(&QlogNews) + Send + Sync>,
}

/// What becomes of traces, for whoever looks after them.
#[derive(Debug)]
#[non_exhaustive]
pub enum QlogNews {
    /// They cannot be written, as from now on: no room on the disk, no folder, no descriptor. Traces that have been begun end
    /// here.
    Failing(io::Error),
    /// Those that are begun now are written.
    Restored,
    /// The disk is slower than what is to be traced: traces end early. Told once.
    TooSlow,
    /// So many connections are traced that others are not. Told once.
    TooMany,
}

impl fmt::Display for QlogNews {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QlogNews::Failing(error) => {
                write!(
                    formatter,
                    "traces cannot be written ({error}): connections are not traced until they can"
                )
            }
            QlogNews::Restored => formatter.write_str("traces are written again"),
            QlogNews::TooSlow => {
                formatter.write_str("the disk is slower than what is to be traced: traces end early")
            }
            QlogNews::TooMany => {
                write!(formatter, "{MOST} connections are traced at a time: the others are not")
            }
        }
    }
}

impl QlogFolder {
    /// This folder, which must exist. News of it are warnings by `tracing`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let folder = path.clone();
        QlogFolder {
            path,
            most: None,
            tell: Arc::new(move |news| tracing::warn!(folder = %folder.display(), "{news}")),
        }
    }

    /// Has `tell` called with news, in place of warnings, from the thread that writes.
    #[must_use]
    pub fn on_news(mut self, tell: impl Fn(&QlogNews) + Send + Sync + 'static) -> Self {
        self.tell = Arc::new(tell);
        self
    }

    /// Keeps the newest traces, `files` of them at most and so many bytes in all; by default all are kept. Of too many the
    /// oldest are removed, whoever has written them, and even while their connections go on: the folder is for traces alone.
    /// Files with other names are left alone.
    #[must_use]
    pub fn keep(mut self, files: usize, bytes: u64) -> Self {
        self.most = Some(Most { files, bytes });
        self
    }

    /// Observers that write each connection's trace to a file of its own, named after the connection's first id and the
    /// end that is watched, as other QUIC programs do.
    pub(crate) fn observers(self) -> ObserverFactory {
        let writer = Arc::new(Writer::new(self));
        ObserverFactory::new(move |info| {
            let trace = Trace::begin(&writer, name(info.original_dcid, info.side))?;
            Some(Box::new(Qlog::new(info, sink(trace))) as Box<dyn Observer + Send>)
        })
    }
}

impl<P: Into<PathBuf>> From<P> for QlogFolder {
    fn from(path: P) -> Self {
        QlogFolder::new(path)
    }
}

impl fmt::Debug for QlogFolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("QlogFolder").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What writes the traces of a folder. Whoever has the last of it waits until all is written.
struct Writer {
    folder: QlogFolder,
    traced: AtomicUsize,
    shortfalls: Arc<Shortfalls>,
    /// From the first trace on.
    running: Mutex<Option<Running>>,
}

/// What the thread is to tell of, when it has something to write.
#[derive(Debug, Default)]
struct Shortfalls {
    too_slow: AtomicBool,
    too_many: AtomicBool,
}

struct Running {
    queue: SyncSender<Piece>,
    thread: JoinHandle<()>,
}

/// Something to be written.
struct Piece {
    /// The trace's file.
    name: String,
    bytes: Vec<u8>,
    /// It is the first of a trace, and
    first: bool,
    /// the last.
    last: bool,
}

impl Writer {
    fn new(folder: QlogFolder) -> Self {
        Writer { folder, traced: AtomicUsize::new(0), shortfalls: Arc::default(), running: Mutex::new(None) }
    }

    /// The way to the thread, which is started if there is none.
    fn queue(&self) -> Option<SyncSender<Piece>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*running {
            return Some(running.queue.clone());
        }
        let (queue, pieces) = sync_channel(QUEUE);
        let (folder, shortfalls) = (self.folder.clone(), Arc::clone(&self.shortfalls));
        let thread = std::thread::Builder::new().name("godwit-qlog".into());
        match thread.spawn(move || write_all(folder, &shortfalls, &pieces)) {
            Ok(thread) => {
                *running = Some(Running { queue: queue.clone(), thread });
                Some(queue)
            }
            Err(error) => {
                tracing::warn!(%error, "no thread for traces: a connection is not traced");
                None
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { queue, thread }) = running {
            drop(queue);
            let _ = thread.join();
        }
    }
}

/// The thread: as long as somebody may have something to write.
fn write_all(folder: QlogFolder, shortfalls: &Shortfalls, pieces: &Receiver<Piece>) {
    // Traces that cannot be written, of connections that go on.
    let mut given_up = HashSet::new();
    let mut told = Told { tell: folder.tell, failing: None, too_slow: false, too_many: false };
    let mut kept = Kept::of(&folder.path, folder.most);
    for Piece { name, bytes, first, last } in pieces {
        told.look(shortfalls);
        if first {
            given_up.remove(&name);
            kept.forget(&name);
        }
        // What was removed while its connection goes on is not begun anew.
        if !given_up.contains(&name) && (first || kept.has(&name)) {
            let outcome = write(&folder.path.join(&name), &bytes, first);
            match &outcome {
                Ok(()) => kept.add(&name, bytes.len() as u64),
                Err(_) => drop(given_up.insert(name.clone())),
            }
            told.note(outcome);
            while let Some(oldest) = kept.too_much() {
                // It may be gone by itself.
                let _ = std::fs::remove_file(folder.path.join(&oldest));
            }
        }
        if last {
            given_up.remove(&name);
        }
    }
}

/// What has been said, so that it is not said for every trace.
struct Told {
    tell: Arc<dyn Fn(&QlogNews) + Send + Sync>,
    /// Writing fails, but for so many pieces that were written of late.
    failing: Option<u32>,
    too_slow: bool,
    too_many: bool,
}

impl Told {
    fn note(&mut self, outcome: io::Result<()>) {
        match (outcome, &mut self.failing) {
            (Ok(()), None) => {}
            (Ok(()), Some(written)) => {
                *written = written.saturating_add(1);
                if *written >= WELL_AGAIN {
                    self.failing = None;
                    (self.tell)(&QlogNews::Restored);
                }
            }
            (Err(_), Some(written)) => *written = 0,
            (Err(error), failing @ None) => {
                *failing = Some(0);
                (self.tell)(&QlogNews::Failing(error));
            }
        }
    }

    fn look(&mut self, shortfalls: &Shortfalls) {
        let Told { tell, too_slow, too_many, .. } = self;
        for (told, flag, news) in [
            (too_slow, &shortfalls.too_slow, QlogNews::TooSlow),
            (too_many, &shortfalls.too_many, QlogNews::TooMany),
        ] {
            if !*told && flag.load(Ordering::Relaxed) {
                *told = true;
                tell(&news);
            }
        }
    }
}

/// Begins a file, or goes on with it. A full disk ends the trace, not the connection.
fn write(path: &Path, bytes: &[u8], first: bool) -> io::Result<()> {
    let mut file = if first { File::create(path) } else { OpenOptions::new().append(true).open(path) }?;
    file.write_all(bytes)
}

/// The trace of one connection.
struct Trace {
    /// Above the writer: when that is dropped the thread has to see that nothing more will come.
    queue: SyncSender<Piece>,
    writer: Arc<Writer>,
    name: String,
    gathered: Vec<u8>,
    /// Nothing of it is with the thread.
    first: bool,
    /// The queue had no room for a piece.
    broken: bool,
}

impl Trace {
    fn begin(writer: &Arc<Writer>, name: String) -> Option<Self> {
        let queue = writer.queue()?;
        if writer.traced.fetch_add(1, Ordering::Relaxed) >= MOST {
            writer.traced.fetch_sub(1, Ordering::Relaxed);
            writer.shortfalls.too_many.store(true, Ordering::Relaxed);
            return None;
        }
        Some(Trace {
            writer: Arc::clone(writer),
            queue,
            name,
            gathered: Vec::new(),
            first: true,
            broken: false,
        })
    }

    fn add(&mut self, record: &[u8]) {
        if self.broken {
            return;
        }
        self.gathered.extend_from_slice(record);
        if self.gathered.len() >= PIECE {
            self.pass_on(false);
        }
    }

    /// Passes on what was gathered, without waiting.
    fn pass_on(&mut self, last: bool) {
        let (name, bytes) = (self.name.clone(), std::mem::take(&mut self.gathered));
        let piece = Piece { name, bytes, first: std::mem::take(&mut self.first), last };
        if self.queue.try_send(piece).is_err() {
            self.broken = true;
            self.writer.shortfalls.too_slow.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if !self.broken {
            self.pass_on(true);
        }
        self.writer.traced.fetch_sub(1, Ordering::Relaxed);
    }
}

fn sink(mut trace: Trace) -> Sink {
    Box::new(move |record| trace.add(record))
}

fn name(original_dcid: ConnectionId, side: Side) -> String {
    let end = match side {
        Side::Client => CLIENT,
        Side::Server => SERVER,
    };
    format!("{original_dcid}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(folder: &str) -> Arc<Writer> {
        let folder = std::env::temp_dir().join(format!("godwit-{folder}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Arc::new(Writer::new(folder.into()))
    }

    #[test]
    fn all_is_written_when_the_last_of_it_is_gone() {
        let writer = writer("traces");
        let folder = writer.folder.path.clone();
        let mut traces: Vec<Trace> =
            (0..3).map(|number| Trace::begin(&writer, number.to_string()).unwrap()).collect();
        let record = [b'x'; 1000];
        (0..100).for_each(|_| traces.iter_mut().for_each(|trace| trace.add(&record)));
        drop(traces);
        drop(writer);
        let lengths: Vec<u64> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(lengths, [100_000; 3]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_disk_that_takes_nothing_stops_nobody_and_uses_up_no_memory() {
        let writer = writer("stuck");
        let folder = writer.folder.path.clone();
        // Nobody fetches from this queue.
        let (queue, pieces) = sync_channel(2);
        let mut trace = Trace::begin(&writer, "1".into()).unwrap();
        trace.queue = queue;
        (0..1000).for_each(|_| trace.add(&[b'x'; PIECE]));
        assert!(trace.broken && trace.gathered.capacity() <= PIECE);
        drop((trace, pieces));
        assert_eq!(writer.traced.load(Ordering::Relaxed), 0);
        // A folder that is gone.
        std::fs::remove_dir_all(&folder).unwrap();
        let mut trace = Trace::begin(&writer, "2".into()).unwrap();
        (0..10).for_each(|_| trace.add(&[b'x'; PIECE]));
        drop((trace, writer));
        assert!(!folder.exists());
    }

    #[test]
    fn the_newest_are_kept() {
        let (sender, news) = std::sync::mpsc::channel();
        let before = writer("kept");
        let path = before.folder.path.clone();
        std::fs::write(path.join("notes"), vec![b'x'; 100_000]).unwrap();
        let folder = QlogFolder::new(&path).keep(3, 100_000);
        let folder = folder.on_news(move |news| sender.send(news.to_string()).unwrap());
        let writer = Arc::new(Writer::new(folder));
        let begin = |number: u32| Trace::begin(&writer, format!("{number}{SERVER}")).unwrap();
        let mut long = begin(0);
        long.add(&[b'x'; PIECE]);
        for number in 1..100 {
            begin(number).add(b"x");
        }
        long.add(&[b'x'; PIECE]);
        drop((long, begin(100)));
        drop((before, writer));
        let mut names: Vec<_> =
            std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["100_server.sqlog", "98_server.sqlog", "99_server.sqlog", "notes"]);
        assert_eq!(news.try_iter().collect::<Vec<_>>(), Vec::<String>::new());
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn what_goes_wrong_is_told_once() {
        let news = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&news);
        let folder = std::env::temp_dir().join(format!("godwit-news-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let telling = move |news: &QlogNews| heard.lock().unwrap().push(news.to_string());
        let writer = Arc::new(Writer::new(QlogFolder::new(&folder).on_news(telling)));
        let trace = || {
            let mut trace = Trace::begin(&writer, "1".into()).unwrap();
            trace.add(b"x");
        };
        // There is no folder, then there is one, then there is none again.
        (0..10).for_each(|_| trace());
        let heard = |words: &str| news.lock().unwrap().iter().any(|news| news.contains(words));
        while !heard("cannot be written") {
            std::thread::yield_now();
        }
        std::fs::create_dir(&folder).unwrap();
        while !heard("written again") {
            trace();
        }
        // The thread may have files to make yet of what it was given.
        while folder.exists() {
            let _ = std::fs::remove_dir_all(&folder);
        }
        writer.shortfalls.too_many.store(true, Ordering::Relaxed);
        (0..10).for_each(|_| trace());
        drop(writer);
        let mut news = news.lock().unwrap();
        // The thread is not always fast enough for so many.
        news.retain(|news| !news.starts_with("the disk is slower"));
        let begin = ["traces cannot", "traces are written again", "1000 connections", "traces cannot"];
        assert_eq!(news.len(), begin.len(), "{news:?}");
        for begin in begin {
            assert!(news.iter().any(|news| news.starts_with(begin)), "{begin} in {news:?}");
        }
    }

    #[test]
    fn so_many_are_traced_at_a_time() {
        let writer = writer("many");
        let mut traces: Vec<Trace> = (0..MOST).filter_map(|_| Trace::begin(&writer, "1".into())).collect();
        assert!(traces.len() == MOST && Trace::begin(&writer, "1".into()).is_none());
        traces.pop();
        assert!(Trace::begin(&writer, "1".into()).is_some());
        // The thread makes files for as long as anybody is traced, and is waited for by the last.
        let folder = writer.folder.path.clone();
        drop((traces, writer));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
