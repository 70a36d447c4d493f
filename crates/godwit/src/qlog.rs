//! Traces of connections in files, one each, as qlog in JSON-SEQ.
//!
//! Connections are traced under their shard's lock, and a disk may take its time: so what they have to say goes to a thread
//! of its own, in pieces, by a queue that never makes anybody wait. A trace for whose next piece there is no room in it, or
//! on the disk, ends there. No file is held open, and [`MOST`] connections at a time are traced, so that strangers who begin
//! connections use up neither descriptors nor memory.

use godwit_transport::observe::{Observer, ObserverFactory};
use godwit_transport::qlog::{Qlog, Sink};
use godwit_transport::{ConnectionId, Side};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Connections that are traced at a time.
const MOST: usize = 1000;
/// Bytes that a connection gathers before they go to the thread.
const PIECE: usize = 16 << 10;
/// Pieces that wait to be written.
const QUEUE: usize = 512;

/// Observers that write each connection's trace to a file in `folder`, named after the connection's first
/// id and the end that is watched, as other QUIC programs do.
pub(crate) fn into_folder(folder: PathBuf) -> ObserverFactory {
    let writer = Arc::new(Writer { folder, traced: AtomicUsize::new(0), running: Mutex::new(None) });
    ObserverFactory::new(move |info| {
        let trace = Trace::begin(&writer, name(info.original_dcid, info.side))?;
        Some(Box::new(Qlog::new(info, sink(trace))) as Box<dyn Observer + Send>)
    })
}

/// What writes the traces of a folder. Whoever has the last of it waits until all is written.
struct Writer {
    folder: PathBuf,
    traced: AtomicUsize,
    /// From the first trace on.
    running: Mutex<Option<Running>>,
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
    /// The way to the thread, which is started if there is none.
    fn queue(&self) -> Option<SyncSender<Piece>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*running {
            return Some(running.queue.clone());
        }
        let (queue, pieces) = sync_channel(QUEUE);
        let folder = self.folder.clone();
        let thread = std::thread::Builder::new().name("godwit-qlog".into());
        match thread.spawn(move || write_all(&folder, &pieces)) {
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
fn write_all(folder: &Path, pieces: &Receiver<Piece>) {
    // Traces that cannot be written, of connections that go on.
    let mut given_up = HashSet::new();
    for piece in pieces {
        let Piece { name, bytes, first, last } = piece;
        if first {
            given_up.remove(&name);
        }
        let written = given_up.contains(&name) || write(&folder.join(&name), &bytes, first);
        if !written {
            given_up.insert(name.clone());
        }
        if last {
            given_up.remove(&name);
        }
    }
}

/// Begins a file, or goes on with it. A full disk ends the trace, not the connection: false.
fn write(path: &Path, bytes: &[u8], first: bool) -> bool {
    let file = if first { File::create(path) } else { OpenOptions::new().append(true).open(path) };
    file.and_then(|mut file| file.write_all(bytes))
        .inspect_err(|error| tracing::warn!(file = %path.display(), %error, "a trace ends here"))
        .is_ok()
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
            tracing::warn!("{MOST} connections are traced already: another one is not");
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
            tracing::warn!(
                file = self.name,
                "a trace ends here: the disk is slower than what is to be traced"
            );
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
    let side = match side {
        Side::Client => "client",
        Side::Server => "server",
    };
    format!("{original_dcid}_{side}.sqlog")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(folder: &str) -> Arc<Writer> {
        let folder = std::env::temp_dir().join(format!("godwit-{folder}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Arc::new(Writer { folder, traced: AtomicUsize::new(0), running: Mutex::new(None) })
    }

    #[test]
    fn all_is_written_when_the_last_of_it_is_gone() {
        let writer = writer("traces");
        let folder = writer.folder.clone();
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
        let folder = writer.folder.clone();
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
    fn so_many_are_traced_at_a_time() {
        let writer = writer("many");
        let mut traces: Vec<Trace> = (0..MOST).filter_map(|_| Trace::begin(&writer, "1".into())).collect();
        assert!(traces.len() == MOST && Trace::begin(&writer, "1".into()).is_none());
        traces.pop();
        assert!(Trace::begin(&writer, "1".into()).is_some());
        // The thread makes files for as long as anybody is traced, and is waited for by the last.
        let folder = writer.folder.clone();
        drop((traces, writer));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
