//! Where lines go, and what is left of them when that fails: on a full disk, at a pipe whose reader has gone.
//!
//! What could not be written is lost and counted. A line may be torn then; what follows begins on a line of its own,
//! also when it was an earlier process whose line was torn.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use godwit_certificates::Notices;
use godwit_text::{instant_now, plain_error};

/// Time between two looks whether the file was moved.
const LOOK: Duration = Duration::from_secs(1);
/// Time between two attempts at something that others have told not to wait (a terminal shared with them).
const RETRY: Duration = Duration::from_millis(10);

/// Where lines go.
#[derive(Debug)]
pub(super) struct Target {
    output: Output,
    file: Option<LogFile>,
    /// Lines lost since writing has failed; `None` while it does not.
    failing: Option<u64>,
    /// For whoever looks after the server.
    notices: Notices,
}

/// A file that is appended to.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    /// The same as the output's.
    file: File,
    looked: Instant,
}

impl Target {
    pub(super) fn stdout(notices: Notices) -> Target {
        Target::on(standard_output(), notices)
    }

    fn on(out: Box<dyn Write + Send>, notices: Notices) -> Target {
        Target { output: Output { out, torn: false }, file: None, failing: None, notices }
    }

    /// # Errors
    /// If the file can be neither opened nor made.
    pub(super) fn file(path: &Path, notices: Notices) -> io::Result<Target> {
        let (output, file) = open(path)?;
        let file = LogFile { path: path.to_owned(), file, looked: instant_now() };
        Ok(Target { output, file: Some(file), failing: None, notices })
    }

    /// For tests: `out` is as the standard output.
    #[cfg(test)]
    pub(super) fn test(out: impl Write + Send + 'static) -> Target {
        Target::on(Box::new(out), Notices::ignored())
    }

    /// Writes lines and returns how many of them were lost. That `left_out` lines were lost before is said where
    /// lines are for a person, and otherwise by the metrics.
    pub(super) fn write(&mut self, text: &[u8], left_out: u64) -> u64 {
        self.look();
        let (lost, problem) = self.output.write(text);
        if left_out > 0 && problem.is_none() {
            match &self.file {
                Some(file) => {
                    tracing::warn!(left_out, path = %file.path.display(), "access log: lines left out")
                }
                None => {
                    let note = format!("({left_out} lines left out: they were not read fast enough)\n");
                    let _ = self.output.write(note.as_bytes());
                }
            }
        }
        match problem {
            Some(error) => self.on_failure(&error, lost),
            None => self.on_success(),
        }
        lost
    }

    /// It is said once, not for every line of a full disk.
    fn on_failure(&mut self, error: &io::Error, lost: u64) {
        let before = self.failing.replace(self.failing.unwrap_or(0).saturating_add(lost));
        // Whoever read the log may have gone; serving goes on.
        if before.is_none() && error.kind() != io::ErrorKind::BrokenPipe {
            self.notices.say(&format!(
                "cannot write {self}: {}; its lines are lost until that is mended",
                plain_error(error)
            ));
        }
    }

    fn on_success(&mut self) {
        if let Some(lost) = self.failing.take() {
            self.notices.say(&format!("{self} is written again; lines that were lost: {lost}"));
        }
    }

    /// Opens the file anew if it was moved.
    fn look(&mut self) {
        let Some(file) = self.file.as_mut().filter(|file| file.looked.elapsed() >= LOOK) else { return };
        file.looked = instant_now();
        if file.was_moved() {
            self.reopen();
        }
    }

    pub(super) fn reopen(&mut self) {
        let Some(file) = &mut self.file else { return };
        match open(&file.path) {
            Ok((output, opened)) => (self.output, file.file) = (output, opened),
            Err(error) => {
                self.notices.say(&format!(
                    "cannot open the access log {} anew: {}",
                    file.path.display(),
                    plain_error(&error)
                ));
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(formatter, "the access log {}", file.path.display()),
            None => formatter.write_str("the access log to the standard output"),
        }
    }
}

impl LogFile {
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

fn open(path: &Path) -> io::Result<(Output, File)> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    // Addresses and paths are nobody's business but the owner's and their group's, whatever the process was started with.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    let file = options.open(path)?;
    let out = Box::new(file.try_clone()?);
    Ok((Output { out, torn: ends_torn(path) }, file))
}

/// Whether a file ends within a line. What cannot be read is taken for whole.
fn ends_torn(path: &Path) -> bool {
    let last = || -> io::Result<u8> {
        if !std::fs::metadata(path)?.is_file() {
            return Ok(b'\n');
        }
        let (mut file, mut last) = (File::open(path)?, [0]);
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    last().is_ok_and(|last| last != b'\n')
}

/// Not through the library's buffer, which would not say how much of it was written.
#[cfg(unix)]
fn standard_output() -> Box<dyn Write + Send> {
    use std::os::fd::AsFd;
    match io::stdout().as_fd().try_clone_to_owned() {
        Ok(descriptor) => Box::new(File::from(descriptor)),
        Err(_) => Box::new(io::stdout()),
    }
}

#[cfg(not(unix))]
fn standard_output() -> Box<dyn Write + Send> {
    Box::new(io::stdout())
}

/// Writes lines, and knows whether the last of them is whole.
struct Output {
    out: Box<dyn Write + Send>,
    /// The last line has no end.
    torn: bool,
}

impl Output {
    /// How many lines were lost, and why.
    fn write(&mut self, text: &[u8]) -> (u64, Option<io::Error>) {
        let mut written = 0;
        let outcome = self.write_on(text, &mut written);
        let rest = text.get(written..).unwrap_or_default();
        let Some(error) = outcome.and_then(|()| self.out.flush()).err() else { return (0, None) };
        let lost = rest.iter().filter(|byte| **byte == b'\n').count() as u64;
        // Only its end is missing, and that will be written.
        let only_end = self.torn && written > 0 && rest.first() == Some(&b'\n');
        (lost.saturating_sub(u64::from(only_end)), Some(error))
    }

    fn write_on(&mut self, text: &[u8], written: &mut usize) -> io::Result<()> {
        if self.torn {
            self.write_some(b"\n")?;
        }
        while let Some(rest) = text.get(*written..).filter(|rest| !rest.is_empty()) {
            *written += self.write_some(rest)?;
        }
        Ok(())
    }

    fn write_some(&mut self, text: &[u8]) -> io::Result<usize> {
        loop {
            match self.out.write(text) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => {
                    let last = length.checked_sub(1).and_then(|last| text.get(last));
                    self.torn = last.is_some_and(|last| *last != b'\n');
                    return Ok(length);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(RETRY),
                Err(error) => return Err(error),
            }
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Output").field("torn", &self.torn).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A disk with room for so many bytes.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Disk {
        fn make_room(&self, bytes: usize) {
            self.0.lock().unwrap().0 += bytes;
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().1.clone()).unwrap()
        }
    }

    impl Write for Disk {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let mut disk = self.0.lock().unwrap();
            let length = data.len().min(disk.0);
            if length == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.0 -= length;
            disk.1.extend_from_slice(&data[..length]);
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn after_a_full_disk_lines_begin_anew_and_the_lost_are_counted() {
        let disk = Disk::default();
        let mut target = Target::test(disk.clone());
        disk.make_room(9);
        assert_eq!(target.write(b"first\nsecond\nthird\n", 0), 2);
        assert_eq!(target.write(b"fourth\n", 0), 1);
        disk.make_room(1);
        assert_eq!(target.write(b"fifth\n", 0), 1, "there is room for a line end only");
        disk.make_room(100);
        assert_eq!(target.write(b"sixth\n", 0), 0);
        assert_eq!(disk.text(), "first\nsec\nsixth\n");
    }

    #[test]
    fn every_line_is_written_whole_or_counted_wherever_the_disk_is_full() {
        let lines = "one\ntwo\nthree\n";
        for room in 0..=lines.len() {
            let disk = Disk::default();
            let mut target = Target::test(disk.clone());
            disk.make_room(room);
            let lost = target.write(lines.as_bytes(), 0);
            disk.make_room(100);
            assert_eq!(target.write(b"four\n", 0), 0);
            let text = disk.text();
            assert!(text.ends_with("\nfour\n") || text == "four\n", "{text:?}");
            let whole =
                text.lines().filter(|line| ["one", "two", "three", "four"].contains(line)).count() as u64;
            assert_eq!(whole + lost, 4, "{room}: {text:?}");
        }
    }

    #[test]
    fn a_line_that_another_process_left_torn_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        for (before, after) in [("whole\n", "whole\nnew\n"), ("tor", "tor\nnew\n"), ("", "new\n")] {
            std::fs::write(&path, before).unwrap();
            assert_eq!(Target::file(&path, Notices::ignored()).unwrap().write(b"new\n", 0), 0);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
        }
    }

    #[cfg(unix)]
    #[test]
    fn others_may_not_read_a_log_that_is_made_here() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let mut target = Target::file(&path, Notices::ignored()).unwrap();
        assert_eq!(mode() & 0o137, 0, "{:o}", mode());
        assert_eq!(mode() & 0o600, 0o600);
        // Also after somebody has moved it; what the operator has made stays as it is.
        std::fs::remove_file(&path).unwrap();
        target.reopen();
        assert_eq!(mode() & 0o137, 0, "{:o}", mode());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        target.reopen();
        assert_eq!(mode(), 0o644);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_that_is_full_loses_all() {
        let mut target = Target::file(Path::new("/dev/full"), Notices::ignored()).unwrap();
        assert_eq!(target.write(b"a\nb\n", 0), 2);
        assert_eq!((target.write(b"c\n", 3), target.failing), (1, Some(3)));
    }
}
