//! Where a body goes. A file stands under its name only when it is whole: until then it is a hidden file beside
//! it, `.NAME.godwit-XXXXXXXX.part`, which is removed if anything fails. One that a later run may continue is
//! `.NAME.godwit.part`, and stays (see [`super::resume`]).
//!
//! Data is collected and written in large pieces, without copying: a piece is a list of what came.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IoSlice, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::part_name::{kept_part_name, part_name};
use super::resume::{Note, note_path, open_own};
use crate::error::{Error, ErrorKind};
use crate::ranges::Progress;

/// What is collected before it is written, in bytes.
const PIECE: usize = 512 << 10;
/// The same in chunks: one system call takes no more than 1024.
const CHUNKS: usize = 1024;

/// Where a body shall go.
#[derive(Default)]
#[non_exhaustive]
pub enum Destination {
    /// Nowhere: the response's head is all that is wanted.
    #[default]
    Discard,
    /// A file, which stands under this name only when it is whole.
    File(PathBuf),
    /// Somebody who takes it as it comes.
    Writer {
        /// What errors call it.
        name: String,
        /// Where it is written.
        to: Box<dyn Write + Send>,
    },
}

impl fmt::Debug for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Discard => formatter.write_str("Discard"),
            Destination::File(path) => formatter.debug_tuple("File").field(path).finish(),
            Destination::Writer { name, .. } => formatter.debug_tuple("Writer").field(name).finish(),
        }
    }
}

/// A destination that takes data.
pub(super) struct Sink {
    place: Place,
    name: String,
    pending: Vec<Bytes>,
    pending_len: usize,
    written: u64,
}

enum Place {
    Discard,
    /// The standard output, or a file that is no regular one, such as a device.
    Direct(Box<dyn Write + Send>),
    /// A file in the making.
    Part {
        file: File,
        part: Part,
        last: PathBuf,
    },
}

impl Sink {
    /// Makes ready to write.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub(super) fn open(destination: Destination) -> Result<Sink, Error> {
        let (place, name) = match destination {
            Destination::Discard => (Place::Discard, String::new()),
            Destination::Writer { name, to } => (Place::Direct(to), name),
            Destination::File(path) => {
                let place = open_file(&path).map_err(|error| Error::creating(&path, &error))?;
                (place, path.display().to_string())
            }
        };
        Ok(Sink { place, name, pending: Vec::new(), pending_len: 0, written: 0 })
    }

    /// Makes ready to go on with what an earlier run has left of `url`, and to leave it if this one fails too.
    ///
    /// # Errors
    /// If the file cannot be made, or somebody else is writing it.
    pub(super) fn open_continued(path: &Path, url: &str) -> Result<Sink, Error> {
        let failed = |error: io::Error| Error::creating(path, &error);
        let last = check_target(path).map_err(failed)?;
        let place = match last {
            Target::Special(file) => Place::Direct(Box::new(file)),
            Target::Regular { last, existing } => {
                let (file, part) = Part::take_up(&last, url).map_err(|error| match error.kind() {
                    io::ErrorKind::WouldBlock => Error::new(
                        ErrorKind::File,
                        format!(
                            "another godwit is fetching {} at this moment; let it finish",
                            path.display()
                        ),
                    ),
                    _ => Error::creating(path, &error),
                })?;
                keep_permissions(&file, existing.as_ref());
                Place::Part { file, part, last }
            }
        };
        let name = path.display().to_string();
        Ok(Sink { place, name, pending: Vec::new(), pending_len: 0, written: 0 })
    }

    /// What is there already, where something may be continued.
    pub(super) fn progress(&self) -> Option<Progress> {
        let Place::Part { file, part, last } = &self.place else { return None };
        let kept = part.kept.as_ref()?;
        if let Some(note) = &kept.note {
            let offset = file.metadata().ok()?.len();
            let validator = Some(note.validator.clone());
            return Some(Progress { offset, validator, length: note.length, coding: None });
        }
        let offset = fs::metadata(last).ok()?.len();
        (offset > 0).then_some(Progress { offset, validator: None, length: None, coding: None })
    }

    /// Begins at the beginning, with something that is recognised by `validator` and has this length, if it is known.
    pub(super) fn start_anew(&mut self, validator: Option<String>, length: Option<u64>) -> Result<(), Error> {
        let Place::Part { file, part, .. } = &mut self.place else { return Ok(()) };
        let Some(kept) = &mut part.kept else { return Ok(()) };
        kept.note = validator.map(|validator| Note { url: kept.url.clone(), validator, length });
        let path = note_path(&part.path);
        let mut begun = || -> io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            match &kept.note {
                Some(note) => note.write(&path),
                None => fs::remove_file(&path).or(Ok(())),
            }
        };
        begun().map_err(|error| Error::writing(&self.name, 0, &error))
    }

    /// Nothing is missing: a part gets its name, and a file that had it is left as it is.
    pub(super) fn already_whole(mut self) -> Result<(), Error> {
        match &self.place {
            Place::Part { part, .. } if part.kept.as_ref().is_some_and(|kept| kept.note.is_none()) => {
                self.place = Place::Discard;
                Ok(())
            }
            _ => self.finish(),
        }
    }

    /// Takes data, and writes when there is enough.
    pub(super) fn push(&mut self, data: Bytes) -> Result<(), Error> {
        if matches!(self.place, Place::Discard) || data.is_empty() {
            return Ok(());
        }
        self.pending_len += data.len();
        self.pending.push(data);
        if self.pending_len >= PIECE || self.pending.len() >= CHUNKS { self.write_pending() } else { Ok(()) }
    }

    /// Writes something that is not part of the body at once.
    pub(super) fn push_aside(&mut self, data: Bytes) -> Result<(), Error> {
        self.pending_len += data.len();
        self.pending.push(data);
        self.write_pending()
    }

    /// To be called when no more data is there for the moment: who reads along sees what there is.
    pub(super) fn on_idle(&mut self) -> Result<(), Error> {
        if matches!(self.place, Place::Direct(_)) { self.write_pending() } else { Ok(()) }
    }

    /// Everything came: the file gets its name.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.write_pending()?;
        match std::mem::replace(&mut self.place, Place::Discard) {
            Place::Part { file, part, last } => {
                drop(file);
                part.rename(&last).map_err(|error| Error::creating(&last, &error))
            }
            Place::Direct(mut to) => {
                to.flush().map_err(|error| Error::writing(&self.name, self.written, &error))
            }
            Place::Discard => Ok(()),
        }
    }

    fn write_pending(&mut self) -> Result<(), Error> {
        let written = match &mut self.place {
            Place::Discard => Ok(()),
            Place::Direct(to) => write_all(to, &self.pending, &mut self.written),
            Place::Part { file, .. } => write_all(file, &self.pending, &mut self.written),
        };
        self.pending.clear();
        self.pending_len = 0;
        written.map_err(|error| Error::writing(&self.name, self.written, &error))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // What a later run may continue shall be as much as possible.
        if matches!(&self.place, Place::Part { part, .. } if part.is_kept()) {
            let _ = self.write_pending();
        }
    }
}

fn write_all(to: &mut impl Write, chunks: &[Bytes], total: &mut u64) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = chunks.iter().map(|chunk| IoSlice::new(chunk)).collect();
    let mut rest = slices.as_mut_slice();
    while !rest.is_empty() {
        match to.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                *total += written as u64;
                IoSlice::advance_slices(&mut rest, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn open_file(path: &Path) -> io::Result<Place> {
    match check_target(path)? {
        Target::Special(file) => Ok(Place::Direct(Box::new(file))),
        Target::Regular { last, existing } => {
            let (file, part) = Part::create(&last)?;
            keep_permissions(&file, existing.as_ref());
            Ok(Place::Part { file, part, last })
        }
    }
}

/// What stands at a place now.
enum Target {
    /// No regular file: it is written to as it is.
    Special(File),
    Regular {
        last: PathBuf,
        existing: Option<fs::Metadata>,
    },
}

fn check_target(path: &Path) -> io::Result<Target> {
    // A link stays a link: it is its target that is replaced.
    let last = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(&last).ok();
    match &existing {
        Some(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Some(metadata) if !metadata.is_file() => {
            return Ok(Target::Special(OpenOptions::new().write(true).open(&last)?));
        }
        // A file that may not be written shall not be replaced either.
        Some(_) => drop(OpenOptions::new().write(true).open(&last)?),
        None => {}
    }
    Ok(Target::Regular { last, existing })
}

/// The new file is as readable as the old one; where that is not possible it is still a new file.
fn keep_permissions(file: &File, existing: Option<&fs::Metadata>) {
    if let Some(metadata) = existing {
        let _ = file.set_permissions(metadata.permissions());
    }
}

/// The parts that exist now, for [`remove_unfinished`].
static PARTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn parts() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what unfinished downloads have written and no later run can continue: for a program that ends at once.
/// Otherwise each download does that itself when it is dropped.
pub fn remove_unfinished() {
    for path in &*parts() {
        let _ = fs::remove_file(path);
    }
}

/// A temporary file, removed unless it is renamed or kept for a later run.
struct Part {
    path: PathBuf,
    kept: Option<Kept>,
}

/// What makes a part one that can be continued.
struct Kept {
    url: String,
    /// `None` as long as nothing has come that would be recognised.
    note: Option<Note>,
}

impl Part {
    fn create(last: &Path) -> io::Result<(File, Part)> {
        let name = last.file_name().and_then(OsStr::to_str).unwrap_or("download");
        // Listed before it exists, so that an interruption in between leaves nothing.
        let mut parts = parts();
        loop {
            let mark = RandomState::new().hash_one(last) as u32;
            let path = last.with_file_name(part_name(name, mark));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    parts.insert(path.clone());
                    return Ok((file, Part { path, kept: None }));
                }
            }
        }
    }

    /// The part that an earlier run has left of `url`, or an empty one. Nobody else has it at the same time.
    fn take_up(last: &Path, url: &str) -> io::Result<(File, Part)> {
        let name = last.file_name().and_then(OsStr::to_str).unwrap_or("download");
        let path = last.with_file_name(kept_part_name(name));
        let file = match OpenOptions::new().append(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                open_own(&path, OpenOptions::new().append(true)).map_err(|error| match error.kind() {
                    io::ErrorKind::PermissionDenied => io::Error::new(
                        error.kind(),
                        format!("{} cannot be continued ({error}); remove it, or begin anew", path.display()),
                    ),
                    _ => error,
                })?
            }
            created => created?,
        };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            // Some file systems have no locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let note =
            Note::read(&note_path(&path), url).filter(|_| file.metadata().is_ok_and(|data| data.len() > 0));
        if note.is_none() {
            file.set_len(0)?;
        }
        Ok((file, Part { path, kept: Some(Kept { url: url.to_owned(), note }) }))
    }

    fn is_kept(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.note.is_some())
    }

    fn rename(self, last: &Path) -> io::Result<()> {
        let mut parts = parts();
        fs::rename(&self.path, last)?;
        parts.remove(&self.path);
        if self.kept.is_some() {
            let _ = fs::remove_file(note_path(&self.path));
        }
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if parts().remove(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
        if self.kept.is_some() && !self.is_kept() {
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_file(note_path(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn open(path: &Path) -> Result<Sink, Error> {
        Sink::open(Destination::File(path.to_owned()))
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.bin");
        fs::write(&path, "before").unwrap();
        let mut sink = open(&path).unwrap();
        let mut expected = Vec::new();
        for n in 0..3000_usize {
            let chunk = vec![(n % 256) as u8; n];
            expected.extend_from_slice(&chunk);
            sink.push(Bytes::from(chunk)).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"before");
        let names = entries(folder.path());
        assert!(names.len() == 2 && names[0].starts_with(".x.bin.godwit-"), "{names:?}");
        sink.finish().unwrap();
        assert!(fs::read(&path).unwrap() == expected);
        assert_eq!(entries(folder.path()), ["x.bin"]);
    }

    #[test]
    fn an_unfinished_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut sink = open(&path).unwrap();
        sink.push(Bytes::from(vec![1; 2 * PIECE])).unwrap();
        drop(sink);
        assert!(entries(folder.path()).is_empty());
    }

    #[test]
    fn what_can_be_continued_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let open = |url: &str| Sink::open_continued(&path, url);
        let mut sink = open("https://a/x").unwrap();
        assert_eq!(sink.progress(), None);
        sink.start_anew(Some("\"v1\"".to_owned()), Some(11)).unwrap();
        sink.push(Bytes::from_static(b"hello")).unwrap();
        assert!(open("https://a/x").map(|_| ()).unwrap_err().to_string().contains("another godwit"));
        drop(sink);
        assert_eq!(entries(folder.path()), [".x.godwit.note", ".x.godwit.part"]);

        let mut sink = open("https://a/x").unwrap();
        assert_eq!(
            sink.progress(),
            Some(Progress {
                offset: 5,
                validator: Some("\"v1\"".to_owned()),
                length: Some(11),
                coding: None
            })
        );
        sink.push(Bytes::from_static(b" world")).unwrap();
        sink.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello world");
        assert_eq!(entries(folder.path()), ["x"]);

        // A file under its name may be whole; without a validator nothing is left of a new one.
        let mut sink = open("https://a/x").unwrap();
        assert_eq!(
            sink.progress(),
            Some(Progress { offset: 11, validator: None, length: None, coding: None })
        );
        sink.start_anew(None, None).unwrap();
        sink.push(Bytes::from_static(b"other")).unwrap();
        drop(sink);
        open("https://a/x").unwrap().already_whole().unwrap();
        assert_eq!(entries(folder.path()), ["x"]);
        assert_eq!(fs::read(&path).unwrap(), b"hello world");
    }

    #[cfg(unix)]
    #[test]
    fn a_planted_part_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("x"), folder.path().join("precious"));
        fs::write(&target, "as it was").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join(".x.godwit.part")).unwrap();
        let refused = Sink::open_continued(&path, "https://a/x").map(|_| ()).unwrap_err().to_string();
        assert!(
            refused.contains(".x.godwit.part cannot be continued (it is a link); remove it"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(&target).unwrap(), "as it was");
        // One that leads nowhere is not made.
        fs::remove_file(&target).unwrap();
        assert!(Sink::open_continued(&path, "https://a/x").is_err());
        assert!(!target.exists());
    }

    #[test]
    fn the_part_of_another_url_is_not_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut sink = Sink::open_continued(&path, "https://a/x").unwrap();
        sink.start_anew(Some("\"v1\"".to_owned()), Some(11)).unwrap();
        sink.push(Bytes::from_static(b"hello")).unwrap();
        drop(sink);
        let mut sink = Sink::open_continued(&path, "https://b/x").unwrap();
        assert_eq!(sink.progress(), None);
        sink.start_anew(Some("\"v2\"".to_owned()), None).unwrap();
        sink.push(Bytes::from_static(b"hi")).unwrap();
        sink.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hi");
    }

    #[test]
    fn short_writes_are_continued() {
        struct Stingy(Vec<u8>);
        impl Write for Stingy {
            fn write(&mut self, data: &[u8]) -> io::Result<usize> {
                let length = data.len().min(3);
                self.0.extend_from_slice(&data[..length]);
                Ok(length)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut to = Stingy(Vec::new());
        let chunks = ["hello", "a", "b", "cdef"].map(|text| Bytes::from_static(text.as_bytes()));
        let mut total = 0;
        write_all(&mut to, &chunks, &mut total).unwrap();
        assert_eq!((to.0.as_slice(), total), (&b"helloabcdef"[..], 11));
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| open(path).map(|_| ()).unwrap_err().to_string();
        assert!(message(folder.path()).contains("is a directory"), "{}", message(folder.path()));
        let missing = folder.path().join("no/x");
        assert!(message(&missing).contains("mkdir -p"), "{}", message(&missing));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_said() {
        let mut sink = open(Path::new("/dev/full")).unwrap();
        sink.push(Bytes::from_static(b"x")).unwrap();
        let message = sink.finish().unwrap_err().to_string();
        assert!(message.contains("no room left for /dev/full after 0 B"), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "before").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("target", &link).unwrap();
        let mut sink = open(&link).unwrap();
        sink.push(Bytes::from_static(b"after")).unwrap();
        sink.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"after");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
