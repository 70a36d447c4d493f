//! Batches between the endpoint that writes them and the sockets that send them, in the order in which they were written.
//!
//! Without [`SealingThreads`] there is one at a time. With them batches are smaller, and several are under way: while the
//! threads protect the packets of some, the shard sends those before them and writes those behind them.

use crate::workers::{Fetched, Job, Offered, Workers};
use godwit_base::SendBatch;
use godwit_datapath::Progress;
use godwit_transport::{BatchWriters, NotProtected, UnprotectedRuns};
use std::collections::VecDeque;
use std::sync::Arc;
use std::{fmt, io};

/// Bytes sent at once: four of the largest runs.
const BATCH_BYTES: usize = 4 * (1 << 16);
/// Batches sent before it is looked whether something was received: acknowledgements must not wait until a whole congestion
/// window is out.
const BATCHES_AT_ONCE: usize = 4;
/// With threads a batch is one of the largest runs, so that there is soon something to protect, and as much is sent at once.
const PIECE_BYTES: usize = 1 << 16;
const PIECES_AT_ONCE: usize = BATCHES_AT_ONCE * BATCH_BYTES / PIECE_BYTES;
/// Batches that are under way at most with threads.
const PIECES_UNDER_WAY: usize = 4;

/// Threads that protect packets for shards, so that a connection that sends much has more than the core of its shard. They
/// may be of several shards; those of clones are the same. They end with the last shard that has them.
#[derive(Clone)]
pub struct SealingThreads {
    workers: Arc<Workers<Box<Batch>>>,
}

impl SealingThreads {
    /// The most that are started.
    pub const MOST: usize = 64;

    /// Starts `count` threads, 1 to [`SealingThreads::MOST`], which may run on the cores on which the caller may.
    ///
    /// # Errors
    /// If there are no threads to be had.
    pub fn start(count: usize) -> io::Result<Self> {
        let workers = Workers::start("godwit-seal", count.clamp(1, Self::MOST))?;
        Ok(SealingThreads { workers: Arc::new(workers) })
    }
}

impl fmt::Debug for SealingThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingThreads(..)")
    }
}

/// A batch with what belongs to it.
pub(crate) struct Batch {
    pub(crate) datagrams: SendBatch,
    /// How far it has been sent.
    pub(crate) progress: Progress,
    pub(crate) writers: BatchWriters,
    pub(crate) unprotected: UnprotectedRuns,
    /// Its packets could not be protected: it must not be sent.
    pub(crate) failed: Option<NotProtected>,
}

impl Batch {
    fn new(bytes: usize) -> Box<Self> {
        Box::new(Batch {
            datagrams: SendBatch::new(bytes),
            progress: Progress::default(),
            writers: BatchWriters::default(),
            unprotected: UnprotectedRuns::new(),
            failed: None,
        })
    }

    fn clear(&mut self) {
        self.datagrams.clear();
        self.progress = Progress::default();
        self.unprotected.clear();
        self.failed = None;
    }

    /// Protects what is not protected yet. If that was begun before and not ended, it has failed.
    pub(crate) fn protect(&mut self) {
        if !self.unprotected.is_empty() {
            self.failed = self.unprotected.protect(&mut self.datagrams).err();
        }
    }
}

impl Job for Box<Batch> {
    fn work(&mut self) {
        self.protect();
    }
}

/// A batch on its way.
enum Piece {
    /// It can be sent.
    Ready(Box<Batch>),
    /// It was given to the threads, with so many runs to protect.
    Given(Offered<Box<Batch>>, u64),
}

/// See the module.
pub(crate) struct Outgoing {
    pieces: VecDeque<Piece>,
    /// Memory for the next.
    #[expect(clippy::vec_box, reason = "they come from boxes, which threads hand to one another")]
    spare: Vec<Box<Batch>>,
    threads: Option<SealingThreads>,
    /// Runs that the threads have protected.
    runs_protected: u64,
}

impl Outgoing {
    pub(crate) fn new() -> Self {
        Outgoing {
            pieces: VecDeque::with_capacity(1),
            spare: vec![Batch::new(BATCH_BYTES)],
            ..Self::without_memory()
        }
    }

    /// Without memory for anything: what is to be written first takes its own.
    pub(crate) const fn without_memory() -> Self {
        Outgoing { pieces: VecDeque::new(), spare: Vec::new(), threads: None, runs_protected: 0 }
    }

    /// Large runs are given to `threads` from now on.
    pub(crate) fn set_threads(&mut self, threads: SealingThreads) {
        self.threads = Some(threads);
        self.spare = vec![Batch::new(PIECE_BYTES)];
    }

    pub(crate) const fn has_threads(&self) -> bool {
        self.threads.is_some()
    }

    pub(crate) const fn runs_protected(&self) -> u64 {
        self.runs_protected
    }

    /// How many batches are written in one turn.
    pub(crate) const fn at_once(&self) -> usize {
        if self.has_threads() { PIECES_AT_ONCE } else { BATCHES_AT_ONCE }
    }

    /// How many may be under way when another is written.
    pub(crate) const fn before_another(&self) -> usize {
        if self.has_threads() { PIECES_UNDER_WAY - 1 } else { 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// An empty batch, to be filled.
    pub(crate) fn empty(&mut self) -> Box<Batch> {
        let bytes = if self.has_threads() { PIECE_BYTES } else { BATCH_BYTES };
        self.spare.pop().unwrap_or_else(|| Batch::new(bytes))
    }

    /// One that is not needed any more.
    pub(crate) fn recycle(&mut self, mut batch: Box<Batch>) {
        batch.clear();
        self.spare.push(batch);
    }

    /// One that was filled. If there is `more` behind it, the threads may protect it meanwhile.
    pub(crate) fn push(&mut self, mut batch: Box<Batch>, more: bool) {
        if let Some(threads) = self.threads.as_ref().filter(|_| more && !batch.unprotected.is_empty()) {
            let runs = batch.unprotected.len() as u64;
            batch = match threads.workers.offer(batch) {
                Ok(offered) => {
                    self.pieces.push_back(Piece::Given(offered, runs));
                    return;
                }
                Err(batch) => batch,
            };
        }
        batch.protect();
        self.pieces.push_back(Piece::Ready(batch));
    }

    /// The first batch, if it can be sent; with `wait`, if there is one.
    pub(crate) fn take_first(&mut self, wait: bool) -> Option<Box<Batch>> {
        match self.pieces.pop_front()? {
            Piece::Ready(batch) => Some(batch),
            Piece::Given(offered, runs) if wait => Some(self.fetched(&offered, runs)),
            Piece::Given(offered, runs) => {
                if let Some(batch) = offered.if_done() {
                    return Some(self.worked(batch, runs));
                }
                self.pieces.push_front(Piece::Given(offered, runs));
                None
            }
        }
    }

    /// Puts back what [`Outgoing::take_first`] gave and could not be sent.
    pub(crate) fn put_back(&mut self, batch: Box<Batch>) {
        self.pieces.push_front(Piece::Ready(batch));
    }

    /// Waits until no thread has anything of this shard: keys and connections may change then as ever.
    pub(crate) fn fetch_all(&mut self) {
        for _ in 0..self.pieces.len() {
            let batch = match self.pieces.pop_front() {
                Some(Piece::Given(offered, runs)) => self.fetched(&offered, runs),
                Some(Piece::Ready(batch)) => batch,
                None => break,
            };
            self.pieces.push_back(Piece::Ready(batch));
        }
    }

    /// What was given to the threads, protected. While one of them is at it, what waits behind it is protected here.
    fn fetched(&mut self, offered: &Offered<Box<Batch>>, runs: u64) -> Box<Batch> {
        while !offered.is_done() && self.protect_one_that_waits() {}
        match offered.fetch() {
            Fetched::Worked(batch) => self.worked(batch, runs),
            Fetched::NotBegun(mut batch) => {
                batch.protect();
                batch
            }
        }
    }

    /// What a thread has had. If it has not come to the end with it, that has failed.
    fn worked(&mut self, mut batch: Box<Batch>, runs: u64) -> Box<Batch> {
        batch.protect();
        if batch.failed.is_none() {
            self.runs_protected = self.runs_protected.wrapping_add(runs);
        }
        batch
    }

    /// False if none waits.
    fn protect_one_that_waits(&mut self) -> bool {
        for piece in &mut self.pieces {
            if let Piece::Given(offered, _) = piece
                && let Some(batch) = offered.if_not_begun()
            {
                // It is put in its place before, lest its work panics and it is waited for.
                *piece = Piece::Ready(batch);
                if let Piece::Ready(batch) = piece {
                    batch.protect();
                }
                return true;
            }
        }
        false
    }
}
