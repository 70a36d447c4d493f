//! Writes lines from a thread of its own: whoever takes them may be slow or stop (a full disk, a terminal with
//! Ctrl-S, a pager at the end of a pipe), and no request shall wait for that.
//!
//! Lines are put into a buffer that the thread takes away whole; when it holds its part of [`BUFFER_SIZE`] bytes, further
//! lines are counted instead. What becomes of lines that cannot be written is up to the [`Target`]; they count as well. Each shard
//! has a buffer of its own, so that none waits for another; the thread puts their lines into the order of time.
//!
//! Lines are written within 20 ms, those of that time together: a thread that is woken for each would cost more than what
//! the lines are about. A file is looked after once a second: if it was moved or removed (logrotate), the file of that name
//! is opened anew. SIGUSR1 does so at once.

use std::num::NonZeroU8;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use godwit_os::shard::{self, PerShard};
use godwit_text::instant_now;

use super::target::Target;

/// Bytes of all shards together that wait at most; but [`LEAST_OF_SHARD`] of each.
const BUFFER_SIZE: usize = 4 << 20;
const LEAST_OF_SHARD: usize = 256 << 10;
/// How long a line may wait for others.
const PAUSE: Duration = Duration::from_millis(20);
/// Bytes of a shard that are written without waiting for more.
const PIECE: usize = 64 << 10;
/// How long the last lines may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The thread's letter box. Dropped, what is in it is still written.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// Bytes of each shard that wait at most.
    room: usize,
}

#[derive(Debug, Default)]
struct Shared {
    buffers: PerShard<Mutex<Buffer>>,
    /// Lines that could not be written, and of which nobody has been told.
    failed: AtomicU64,
    wishes: Mutex<Wishes>,
    /// There is something to do.
    work: Condvar,
    /// Something was done.
    done: Condvar,
}

/// The lines of a shard.
#[derive(Debug, Default)]
struct Buffer {
    text: Vec<u8>,
    /// When each line was put here, and where it ends: for lines of shards, of which there may be several.
    lines: Vec<(Instant, usize)>,
    /// Lines that found no room: in all, told to the writing thread, and told to whoever writes.
    lost: u64,
    lost_noted: u64,
    lost_told: u64,
}

/// What the thread is to do.
#[derive(Debug, Default)]
struct Wishes {
    /// There are lines; there are so many that they are not to wait for more.
    lines: bool,
    many: bool,
    /// Flushes asked for, and done.
    asked: u64,
    flushed: u64,
    reopen: bool,
    over: bool,
}

impl Shared {
    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        lock(&self.wishes)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    /// For lines of so many shards.
    pub(super) fn new(target: Target, shards: NonZeroU8) -> Writer {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        // Without a thread there is no log; that is no reason not to serve.
        let _ = std::thread::Builder::new().name("log".to_owned()).spawn(move || work(target, &theirs));
        let room = (BUFFER_SIZE / usize::from(shards.get())).max(LEAST_OF_SHARD);
        Writer { shared, room }
    }

    /// Has a line written, which ends with a line feed. Returns how many lines were lost since the last call on this
    /// shard.
    pub(super) fn write(&self, line: &[u8]) -> u64 {
        let mut buffer = lock(self.shared.buffers.own());
        let before = buffer.text.len();
        let mut wake = false;
        if before + line.len() > self.room {
            buffer.lost += 1;
        } else {
            buffer.text.extend_from_slice(line);
            let after = buffer.text.len();
            if shard::current().is_some() {
                buffer.lines.push((instant_now(), after));
            }
            wake = before == 0 || (before < PIECE && after >= PIECE);
        }
        let lost = buffer.lost - buffer.lost_told;
        buffer.lost_told = buffer.lost;
        let many = buffer.text.len() >= PIECE;
        drop(buffer);
        if wake {
            let mut wishes = self.shared.wishes();
            wishes.lines = true;
            wishes.many |= many;
            drop(wishes);
            self.shared.work.notify_one();
        }
        match self.shared.failed.load(Ordering::Relaxed) {
            0 => lost,
            _ => lost + self.shared.failed.swap(0, Ordering::Relaxed),
        }
    }

    #[cfg(test)]
    pub(super) fn hold(&self) -> impl Sized + '_ {
        lock(self.shared.buffers.own())
    }

    pub(super) fn flush(&self) {
        let mut wishes = self.shared.wishes();
        wishes.asked += 1;
        let wanted = wishes.asked;
        self.shared.work.notify_one();
        let _ = self.shared.done.wait_timeout_while(wishes, FLUSH_TIMEOUT, |wishes| wishes.flushed < wanted);
    }

    pub(super) fn reopen(&self) {
        self.shared.wishes().reopen = true;
        self.shared.work.notify_one();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.wishes().over = true;
        self.shared.work.notify_one();
    }
}

fn work(mut target: Target, shared: &Shared) {
    let mut collected = Collected::default();
    loop {
        let mut wishes = shared.wishes();
        while wishes.is_idle() {
            wishes = shared.work.wait(wishes).unwrap_or_else(PoisonError::into_inner);
        }
        let waiting = shared.work.wait_timeout_while(wishes, PAUSE, |wishes| wishes.can_wait());
        wishes = waiting.unwrap_or_else(PoisonError::into_inner).0;
        // Lines that come from here on are either found below, or wished for anew.
        (wishes.lines, wishes.many) = (false, false);
        let (asked, over) = (wishes.asked, wishes.over);
        let reopen = std::mem::take(&mut wishes.reopen);
        drop(wishes);
        let lost = collected.collect(shared);
        let text = collected.in_order();
        let failed = if text.is_empty() && lost == 0 { 0 } else { target.write(text, lost) };
        if reopen {
            target.reopen();
        }
        collected.clear();
        if failed > 0 {
            shared.failed.fetch_add(failed, Ordering::Relaxed);
        }
        shared.wishes().flushed = asked;
        shared.done.notify_all();
        if over {
            return;
        }
    }
}

/// What the thread has taken away.
#[derive(Debug, Default)]
struct Collected {
    /// Of each shard.
    pieces: Vec<Piece>,
    /// All of it, where there is more than one.
    text: Vec<u8>,
}

#[derive(Debug, Default)]
struct Piece {
    text: Vec<u8>,
    lines: Vec<(Instant, usize)>,
}

impl Collected {
    /// Takes all lines away. Returns how many lines were lost meanwhile.
    fn collect(&mut self, shared: &Shared) -> u64 {
        let (mut lost, mut used) = (0, 0);
        for (_, buffer) in shared.buffers.all() {
            if self.pieces.len() == used {
                self.pieces.push(Piece::default());
            }
            let mut buffer = lock(buffer);
            lost += buffer.lost - buffer.lost_noted;
            buffer.lost_noted = buffer.lost;
            if let Some(piece) = self.pieces.get_mut(used).filter(|_| !buffer.text.is_empty()) {
                std::mem::swap(&mut piece.text, &mut buffer.text);
                std::mem::swap(&mut piece.lines, &mut buffer.lines);
                used += 1;
            }
        }
        lost
    }

    /// All lines in the order in which they came.
    fn in_order(&mut self) -> &[u8] {
        let mut full = self.pieces.iter().filter(|piece| !piece.text.is_empty());
        let (first, second) = (full.next(), full.next());
        if second.is_none() {
            return first.map_or(&[], |piece| &piece.text);
        }
        let mut lines = Vec::new();
        for piece in &self.pieces {
            let mut begin = 0;
            for (at, end) in &piece.lines {
                lines.extend(piece.text.get(begin..*end).map(|line| (Some(*at), line)));
                begin = *end;
            }
            // Of who is no shard.
            lines.extend(piece.text.get(begin..).map(|rest| (None, rest)));
        }
        lines.sort_by_key(|(at, _)| *at);
        lines.into_iter().for_each(|(_, line)| self.text.extend_from_slice(line));
        &self.text
    }

    /// The room of a rush is given back.
    fn clear(&mut self) {
        for piece in &mut self.pieces {
            piece.text.clear();
            piece.text.shrink_to(PIECE * 2);
            piece.lines.clear();
            piece.lines.shrink_to(PIECE / 64);
        }
        self.text.clear();
        self.text.shrink_to(PIECE * 2);
    }
}

impl Wishes {
    fn is_idle(&self) -> bool {
        !self.lines && !self.is_urgent()
    }

    fn can_wait(&self) -> bool {
        !self.many && !self.is_urgent()
    }

    fn is_urgent(&self) -> bool {
        self.asked > self.flushed || self.reopen || self.over
    }
}

/// Takes nothing until its gate is open.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(super) struct Gated(Arc<(Mutex<(bool, String)>, Condvar)>);

#[cfg(test)]
impl Gated {
    fn open(&self) {
        self.0.0.lock().unwrap().0 = true;
        self.0.1.notify_all();
    }

    fn text(&self) -> String {
        self.0.0.lock().unwrap().1.clone()
    }
}

#[cfg(test)]
impl std::io::Write for Gated {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let guard = self.0.0.lock().unwrap();
        let mut guard = self.0.1.wait_while(guard, |(open, _)| !*open).unwrap();
        guard.1.push_str(std::str::from_utf8(data).unwrap());
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use godwit_certificates::Notices;

    use super::*;

    #[test]
    fn nobody_waits_for_a_reader_who_has_stopped() {
        let to = Gated::default();
        let writer = Writer::new(Target::test(to.clone()), NonZeroU8::MIN);
        let line = format!("line {}\n", "x".repeat(1000));
        let count = 3 * BUFFER_SIZE / line.len();
        let mut lost: u64 = (0..count).map(|_| writer.write(line.as_bytes())).sum();
        assert_eq!(to.text(), "", "and still this goes on");
        assert!(lost > 0);
        to.open();
        while !to.text().contains("lines left out") {
            writer.flush();
        }
        lost += writer.write(b"");
        writer.flush();
        let text = to.text();
        let written = text.lines().filter(|line| line.starts_with("line ")).count() as u64;
        assert_eq!(written + lost, count as u64, "every line is written or counted");
        let omitted: u64 = text
            .lines()
            .filter_map(|line| line.strip_prefix('(')?.split(' ').next()?.parse::<u64>().ok())
            .sum();
        assert_eq!(omitted, lost);
    }

    #[test]
    fn shards_have_room_together() {
        let line = [b'x'; 1000];
        for (shards, room) in [(1, 4 << 20), (4, 1 << 20), (255, 256 << 10)] {
            let writer = Writer::new(Target::test(Gated::default()), NonZeroU8::new(shards).unwrap());
            let before_it_is_full =
                || (0..).find(|_| writer.write(&line) > 0).map_or(0, |lines| lines * line.len());
            // What the thread has taken away already, if it has, is as much at most.
            let taken = before_it_is_full();
            assert!((room - line.len()..=2 * room).contains(&taken), "{shards}: {taken}");
        }
    }

    #[test]
    fn what_was_said_is_written_when_flushed_and_when_dropped() {
        let to = Gated::default();
        to.open();
        let writer = Writer::new(Target::test(to.clone()), NonZeroU8::MIN);
        writer.write(b"a\n");
        writer.write(b"b\n");
        writer.flush();
        assert_eq!(to.text(), "a\nb\n");
        writer.write(b"c\n");
        drop(writer);
        while to.text() != "a\nb\nc\n" {
            std::thread::yield_now();
        }
    }

    #[test]
    fn lines_of_several_shards_are_in_the_order_of_time() {
        let to = Gated::default();
        let writer = Writer::new(Target::test(to.clone()), NonZeroU8::MIN);
        // The thread is kept from taking any of them away.
        writer.write(b"first\n");
        let kept = lock(writer.shared.buffers.of_or(None, Default::default));
        let mut expected = String::from("first\n");
        for number in 0..300_u32 {
            let line = format!("line {number}\n");
            expected.push_str(&line);
            let write = || {
                shard::enter((number % 3) as u8);
                writer.write(line.as_bytes());
            };
            std::thread::scope(|scope| scope.spawn(write).join().unwrap());
        }
        to.open();
        drop(kept);
        while to.text().len() < expected.len() {
            writer.flush();
        }
        assert_eq!(to.text(), expected);
    }

    #[test]
    fn a_file_that_was_moved_is_opened_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
        let writer = Writer::new(Target::file(&path, Notices::ignored()).unwrap(), NonZeroU8::MIN);
        writer.write(b"one\n");
        writer.flush();
        std::fs::rename(&path, &moved).unwrap();
        writer.write(b"still the old\n");
        writer.flush();
        writer.reopen();
        writer.flush();
        writer.write(b"new\n");
        writer.flush();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
        assert!(std::fs::read_to_string(&moved).unwrap().starts_with("one\n"));
        // Without being told it is noticed as well.
        std::fs::remove_file(&path).unwrap();
        while !path.exists() {
            std::thread::sleep(Duration::from_millis(20));
            writer.write(b"later\n");
            writer.flush();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let writer = Writer::new(
            Target::file(std::path::Path::new("/dev/full"), Notices::ignored()).unwrap(),
            NonZeroU8::MIN,
        );
        let mut lost = writer.write(b"one\n") + writer.write(b"two\n");
        writer.flush();
        lost += writer.write(b"");
        assert_eq!(lost, 2);
    }

    #[test]
    fn a_log_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, "before\n").unwrap();
        let writer = Writer::new(Target::file(&path, Notices::ignored()).unwrap(), NonZeroU8::MIN);
        writer.write(b"after\n");
        writer.flush();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\nafter\n");
        assert!(Target::file(&folder.path().join("none/access.log"), Notices::ignored()).is_err());
    }
}
