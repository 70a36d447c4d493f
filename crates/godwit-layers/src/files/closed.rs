//! A file that is opened anew for each piece, so that whoever is slow to take it holds no descriptor.
//!
//! It is the same file as long as its length and the time of its last change are: those are its entity tag.

use std::fs::{File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::beneath::{Beneath, Entry, Reach};

/// Where a file is, and how far it was read.
#[derive(Debug)]
pub(super) struct ClosedFile {
    root: Arc<Path>,
    path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
    /// The next byte.
    pub(super) at: u64,
}

impl ClosedFile {
    /// What these say of the file at `path` below `root`; it is read from its beginning.
    pub(super) fn new(root: &Arc<Path>, path: PathBuf, metadata: &Metadata) -> ClosedFile {
        let (length, modified) = (metadata.len(), metadata.modified().ok());
        ClosedFile { root: Arc::clone(root), path, length, modified, at: 0 }
    }

    /// The same, in the folder to which links to the root lead now, wherever they will lead later: only the disk tells that.
    ///
    /// # Errors
    /// If that cannot be found out, or is beyond the `reach`.
    pub(super) fn settled(self, reach: Reach) -> io::Result<ClosedFile> {
        if reach == Reach::Memory {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(ClosedFile { root: self.root.canonicalize()?.into(), ..self })
    }

    /// Opens it where it is to be read next. Blocks.
    ///
    /// # Errors
    /// If it is another one by now, or the disk cannot be asked.
    pub(super) fn open(&self) -> io::Result<File> {
        let is_same = |now: &Metadata| now.len() == self.length && now.modified().ok() == self.modified;
        match Beneath::open(&self.root, Reach::Disk)?.entry(&self.path)? {
            Some(Entry::File(mut file, metadata)) if is_same(&metadata) => {
                file.seek(SeekFrom::Start(self.at))?;
                Ok(file)
            }
            _ => Err(io::Error::other("the file changed while it was sent")),
        }
    }
}
