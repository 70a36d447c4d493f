//! The file itself: the lock beside it, reading, and exchanging it as a whole.

use super::content::Content;
use super::{beside, format};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How often another process's lock is waited for, and for how long each time.
const ATTEMPTS: (u32, Duration) = (50, Duration::from_millis(2));

/// A file and its lock. Problems are told in one line.
#[derive(Debug)]
pub(super) struct Access {
    path: PathBuf,
    lock: PathBuf,
    /// How often the file was exchanged.
    #[cfg(test)]
    pub(super) exchanged: std::sync::atomic::AtomicUsize,
}

/// What was found.
enum Found {
    Content(Content),
    /// Not ours to overwrite.
    Foreign,
}

impl Access {
    pub(super) fn new(path: &Path) -> Self {
        Access {
            path: path.to_owned(),
            lock: beside(path, ".lock"),
            #[cfg(test)]
            exchanged: Default::default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it can be used.
    pub(super) fn check(&self) -> Result<(), String> {
        let _lock = self.lock().map_err(|error| self.problem(&error.to_string()))?;
        self.read().map(|_| ())
    }

    /// What there is. Reading takes no lock: the file is exchanged in one step.
    pub(super) fn read(&self) -> Result<Content, String> {
        match self.find()? {
            Found::Content(content) => Ok(content),
            Found::Foreign => Err(self.problem("not a file of sessions, or one of a newer version")),
        }
    }

    /// Changes what there is. Nothing is written if `change` gives nothing.
    pub(super) fn change<R>(
        &self,
        change: impl FnOnce(&mut Content) -> Option<R>,
    ) -> Result<Option<R>, String> {
        // Released when it is dropped, or with the process.
        let _lock = self.lock().map_err(|error| self.problem(&error.to_string()))?;
        let mut content = self.read()?;
        let Some(given) = change(&mut content) else { return Ok(None) };
        self.write(&format::encode(&mut content)).map_err(|error| self.problem(&error.to_string()))?;
        Ok(Some(given))
    }

    fn find(&self) -> Result<Found, String> {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|file| {
            if is_exposed(&file.metadata()?) {
                // Somebody else may have read it, or written it: none of it is to be used.
                return Ok(());
            }
            file.take(format::MAX_FILE.saturating_add(1)).read_to_end(&mut bytes).map(|_| ())
        });
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other.map_err(|error| self.problem(&error.to_string()))?,
        }
        Ok(match format::decode(&bytes) {
            Ok(content) => Found::Content(content),
            Err(format::Unreadable::Foreign) => Found::Foreign,
            Err(format::Unreadable::Damaged) => {
                tracing::warn!("{}: damaged; it begins anew", self.path.display());
                Found::Content(Content::default())
            }
        })
    }

    fn lock(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        private(&mut options);
        let file = options.open(&self.lock)?;
        let (times, pause) = ATTEMPTS;
        for _ in 0..times {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => thread::sleep(pause),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process does not release it"))
    }

    /// Only with the lock: there is one name for what is not complete.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        self.exchanged.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let new = beside(&self.path, ".new");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        private(&mut options);
        // A process that was killed may have left one; whatever has this name is not written into.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = options.open(&new).and_then(|mut file| file.write_all(bytes));
        let exchanged = written.and_then(|()| fs::rename(&new, &self.path));
        exchanged.inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })
    }

    fn problem(&self, what: &str) -> String {
        format!("{}: {what}", self.path.display())
    }
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn private(_: &mut OpenOptions) {}

/// Whether others than the owner may do anything with the file.
#[cfg(unix)]
fn is_exposed(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_exposed(_: &fs::Metadata) -> bool {
    false
}
