//! Writes lines from a thread of its own: whoever takes them may be slow or stop (a full disk, a terminal with
//! Ctrl-S, a pager at the end of a pipe), and no request shall wait for that.
//!
//! Lines are put into a buffer that the thread takes away whole; when it holds [`ROOM`] bytes, further lines are
//! counted instead. A file is written [`PAUSE`] after its first line at the latest. It is looked after once in
//! [`LOOK`]: if it was moved or removed (logrotate), the file of that name is opened anew. SIGUSR1 does so at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::output::instant_now;

/// Bytes that wait at most.
const ROOM: usize = 4 << 20;
/// How long a line for a file may wait for others.
const PAUSE: Duration = Duration::from_millis(20);
/// Bytes that are written without waiting for more.
const PIECE: usize = 64 << 10;
/// Time between two looks whether the file was moved.
const LOOK: Duration = Duration::from_secs(1);
/// How long the last lines may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where lines go.
#[derive(Debug)]
pub(super) enum Target {
    Stdout(io::Stdout),
    File(LogFile),
    #[cfg(test)]
    Test(Gated),
}

/// A file that is appended to.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    looked: Instant,
    /// The last problem that was told.
    failed: bool,
}

impl Target {
    pub(super) fn stdout() -> Target {
        Target::Stdout(io::stdout())
    }

    /// # Errors
    /// If the file can be neither opened nor made.
    pub(super) fn file(path: &Path) -> io::Result<Target> {
        let file = open(path)?;
        Ok(Target::File(LogFile { path: path.to_owned(), file, looked: instant_now(), failed: false }))
    }

    /// How long lines may wait for others.
    fn pause(&self) -> Duration {
        match self {
            Target::File(_) => PAUSE,
            _ => Duration::ZERO,
        }
    }

    /// What was lost since the last call is said where lines are for a person, and otherwise by the metrics.
    fn write(&mut self, text: &[u8], lost: u64) {
        let note = format!("({lost} lines left out: they were not read fast enough)\n");
        let note = if lost > 0 { note.as_bytes() } else { b"" };
        // Whoever read the log may have gone; serving goes on.
        match self {
            Target::Stdout(stdout) => {
                let mut stdout = stdout.lock();
                let _ = stdout
                    .write_all(text)
                    .and_then(|()| stdout.write_all(note))
                    .and_then(|()| stdout.flush());
            }
            Target::File(file) => {
                file.write(text);
                if lost > 0 {
                    tracing::warn!(lost, path = %file.path.display(), "access log: lines left out");
                }
            }
            #[cfg(test)]
            Target::Test(gated) => {
                let _ = gated.write_all(text).and_then(|()| gated.write_all(note));
            }
        }
    }

    fn reopen(&mut self) {
        if let Target::File(file) = self {
            file.reopen();
        }
    }
}

impl LogFile {
    fn write(&mut self, text: &[u8]) {
        if self.looked.elapsed() >= LOOK {
            self.looked = instant_now();
            if self.was_moved() {
                self.reopen();
            }
        }
        if let Err(error) = self.file.write_all(text) {
            // Once, not for every line of a full disk.
            if !std::mem::replace(&mut self.failed, true) {
                let line = format!("godwit: cannot write the access log {}: {error}\n", self.path.display());
                let _ = io::stderr().write_all(line.as_bytes());
            }
        } else {
            self.failed = false;
        }
    }

    fn reopen(&mut self) {
        match open(&self.path) {
            Ok(file) => self.file = file,
            Err(error) => {
                let line =
                    format!("godwit: cannot open the access log {} anew: {error}\n", self.path.display());
                let _ = io::stderr().write_all(line.as_bytes());
            }
        }
    }

    /// Whether the name no longer leads to the file that is open.
    #[cfg(unix)]
    fn was_moved(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let same = |one: std::fs::Metadata, other: std::fs::Metadata| {
            one.dev() == other.dev() && one.ino() == other.ino()
        };
        match (self.file.metadata(), std::fs::metadata(&self.path)) {
            (Ok(open), Ok(named)) => !same(open, named),
            (_, Err(error)) => error.kind() == io::ErrorKind::NotFound,
            (Err(_), _) => false,
        }
    }

    #[cfg(not(unix))]
    fn was_moved(&self) -> bool {
        !self.path.exists()
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

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
    /// Lines that found no room: in all, told to the writing thread, and told to whoever writes.
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
        if state.text.len() + line.len() > ROOM {
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
        let _ = self.0.done.wait_timeout_while(state, PATIENCE, |state| state.flushed < wanted);
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
        if !target.pause().is_zero() {
            let waiting = shared.work.wait_timeout_while(state, target.pause(), |state| state.can_wait());
            state = waiting.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut text, &mut state.text);
        let lost = state.lost - state.lost_noted;
        state.lost_noted = state.lost;
        let (asked, over) = (state.asked, state.over);
        let reopen = std::mem::take(&mut state.reopen);
        drop(state);
        if !text.is_empty() || lost > 0 {
            target.write(&text, lost);
        }
        if reopen {
            target.reopen();
        }
        text.clear();
        // The room of a rush is given back.
        text.shrink_to(PIECE * 2);
        shared.lock().flushed = asked;
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
impl Write for Gated {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let guard = self.0.0.lock().unwrap();
        let mut guard = self.0.1.wait_while(guard, |(open, _)| !*open).unwrap();
        guard.1.push_str(std::str::from_utf8(data).unwrap());
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_reader_who_has_stopped() {
        let to = Gated::default();
        let writer = Writer::new(Target::Test(to.clone()));
        let line = format!("line {}\n", "x".repeat(1000));
        let count = 3 * ROOM / line.len();
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
        let writer = Writer::new(Target::Test(to.clone()));
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
        let writer = Writer::new(Target::file(&path).unwrap());
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

    #[test]
    fn a_log_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, "before\n").unwrap();
        let writer = Writer::new(Target::file(&path).unwrap());
        writer.write(b"after\n");
        writer.flush();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\nafter\n");
        assert!(Target::file(&folder.path().join("none/access.log")).is_err());
    }
}
