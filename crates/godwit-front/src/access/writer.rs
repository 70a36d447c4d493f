//! Writes lines from a thread of its own: whoever takes them may be slow or stop (a full disk, a terminal with
//! Ctrl-S, a pager at the end of a pipe), and no request shall wait for that.
//!
//! Lines are put into a buffer that the thread takes away whole; when it holds [`BUFFER_SIZE`] bytes, further lines are
//! counted instead. What becomes of lines that cannot be written is up to the [`Target`]; they count as well.
//!
//! Lines are written within 20 ms, those of that time together: a thread that is woken for each would cost more than what
//! the lines are about. A file is looked after once a second: if it was moved or removed (logrotate), the file of that name
//! is opened anew. SIGUSR1 does so at once.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::target::Target;

/// Bytes that wait at most.
const BUFFER_SIZE: usize = 4 << 20;
/// How long a line may wait for others.
const PAUSE: Duration = Duration::from_millis(20);
/// Bytes that are written without waiting for more.
const PIECE: usize = 64 << 10;
/// How long the last lines may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The thread's letter box. Dropped, what is in it is still written.
#[derive(Debug)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to do.
    work: Condvar,
    /// Something was done.
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    text: Vec<u8>,
    /// Lines that found no room or could not be written: in all, told to the writing thread, and told to whoever
    /// writes.
    lost: u64,
    lost_noted: u64,
    lost_told: u64,
    /// Flushes asked for, and done.
    asked: u64,
    flushed: u64,
    reopen: bool,
    over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    pub(super) fn new(target: Target) -> Writer {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        // Without a thread there is no log; that is no reason not to serve.
        let _ = std::thread::Builder::new().name("log".to_owned()).spawn(move || work(target, &theirs));
        Writer(shared)
    }

    /// Has a line written, which ends with a line feed. Returns how many lines were lost since the last call.
    pub(super) fn write(&self, line: &[u8]) -> u64 {
        let mut state = self.0.lock();
        if state.text.len() + line.len() > BUFFER_SIZE {
            state.lost += 1;
        } else {
            let wake =
                state.text.is_empty() || (state.text.len() < PIECE && state.text.len() + line.len() >= PIECE);
            state.text.extend_from_slice(line);
            if wake {
                self.0.work.notify_one();
            }
        }
        let lost = state.lost - state.lost_told;
        state.lost_told = state.lost;
        lost
    }

    pub(super) fn flush(&self) {
        let mut state = self.0.lock();
        state.asked += 1;
        let wanted = state.asked;
        self.0.work.notify_one();
        let _ = self.0.done.wait_timeout_while(state, FLUSH_TIMEOUT, |state| state.flushed < wanted);
    }

    pub(super) fn reopen(&self) {
        self.0.lock().reopen = true;
        self.0.work.notify_one();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.work.notify_one();
    }
}

fn work(mut target: Target, shared: &Shared) {
    let mut text = Vec::new();
    loop {
        let mut state = shared.lock();
        while state.is_idle() {
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let waiting = shared.work.wait_timeout_while(state, PAUSE, |state| state.can_wait());
        state = waiting.unwrap_or_else(PoisonError::into_inner).0;
        std::mem::swap(&mut text, &mut state.text);
        let lost = state.lost - state.lost_noted;
        state.lost_noted = state.lost;
        let (asked, over) = (state.asked, state.over);
        let reopen = std::mem::take(&mut state.reopen);
        drop(state);
        let failed = if text.is_empty() && lost == 0 { 0 } else { target.write(&text, lost) };
        if reopen {
            target.reopen();
        }
        text.clear();
        // The room of a rush is given back.
        text.shrink_to(PIECE * 2);
        let mut state = shared.lock();
        state.flushed = asked;
        // The target knows of these.
        state.lost += failed;
        state.lost_noted += failed;
        drop(state);
        shared.done.notify_all();
        if over {
            return;
        }
    }
}

impl State {
    fn is_idle(&self) -> bool {
        self.text.is_empty() && !self.is_urgent()
    }

    fn can_wait(&self) -> bool {
        self.text.len() < PIECE && !self.is_urgent()
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
        let writer = Writer::new(Target::test(to.clone()));
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
    fn what_was_said_is_written_when_flushed_and_when_dropped() {
        let to = Gated::default();
        to.open();
        let writer = Writer::new(Target::test(to.clone()));
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
    fn a_file_that_was_moved_is_opened_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
        let writer = Writer::new(Target::file(&path, Notices::ignored()).unwrap());
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
        let writer =
            Writer::new(Target::file(std::path::Path::new("/dev/full"), Notices::ignored()).unwrap());
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
        let writer = Writer::new(Target::file(&path, Notices::ignored()).unwrap());
        writer.write(b"after\n");
        writer.flush();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\nafter\n");
        assert!(Target::file(&folder.path().join("none/access.log"), Notices::ignored()).is_err());
    }
}
