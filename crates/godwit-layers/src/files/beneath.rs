//! Files below a folder, opened such that no link leads out of it.
//!
//! On Linux the kernel sees to that while it opens (`openat2` with `RESOLVE_BENEATH`): there is no moment between a look
//! and the opening in which whoever may write in the folder could exchange a link. Where there is no such call (Linux
//! before 5.6, sandboxes that refuse it, other Unix systems), and for links that leave the folder and come back or
//! begin with a slash, the path is freed of links first and then opened name by name, without following any: what was
//! exchanged in the meantime is missing. Elsewhere (Windows) the path is looked at and then opened, and such an exchange
//! is not seen.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A folder, for the time of one answer: it is opened anew for each, so that a folder that was exchanged as a whole, or a
/// link to it, is seen. Links on the way to it are the operator's, and followed.
#[derive(Debug)]
pub(super) struct Beneath<'a> {
    /// Where it is, perhaps through links.
    root: &'a Path,
    #[cfg(unix)]
    folder: std::os::fd::OwnedFd,
}

/// What lies at a path.
#[derive(Debug)]
pub(super) enum Entry {
    /// Opened to be read.
    File(File, Metadata),
    Folder,
}

impl Beneath<'_> {
    /// The folder that is at `root` now. Blocks.
    ///
    /// # Errors
    /// If it is not a folder that can be opened.
    pub(super) fn open(root: &Path) -> io::Result<Beneath<'_>> {
        Ok(Beneath {
            root,
            #[cfg(unix)]
            folder: unix::open_root(root)?,
        })
    }

    /// What lies at a path, or at the end of the links there, unless that is outside. Neither a device nor a pipe is a
    /// page: opening one could block for ever. Blocks.
    ///
    /// # Errors
    /// If the disk cannot be asked: not because there is nothing.
    pub(super) fn entry(&self, relative: &Path) -> io::Result<Option<Entry>> {
        match self.look(relative) {
            Err(error) if is_absence(&error) => Ok(None),
            looked => looked,
        }
    }

    /// Where the links of a path lead, without the root. That may be another one by now: what is opened at this place of the
    /// one that was opened is beneath it all the same.
    fn without_links(&self, relative: &Path) -> io::Result<PathBuf> {
        let root = self.root.canonicalize()?;
        let canonical = root.join(relative).canonicalize()?;
        let inside = canonical.strip_prefix(&root).map_err(|_| io::ErrorKind::NotFound)?;
        Ok(inside.to_owned())
    }

    #[cfg(unix)]
    fn look(&self, relative: &Path) -> io::Result<Option<Entry>> {
        let metadata = self.open_as(relative, unix::LOOK)?.metadata()?;
        if metadata.is_dir() {
            return Ok(Some(Entry::Folder));
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        // It may be another one by now.
        let file = self.open_as(relative, unix::READ)?;
        let metadata = file.metadata()?;
        Ok(metadata.is_file().then_some(Entry::File(file, metadata)))
    }

    #[cfg(not(unix))]
    fn look(&self, relative: &Path) -> io::Result<Option<Entry>> {
        let path = self.root.join(self.without_links(relative)?);
        let metadata = path.metadata()?;
        if !metadata.is_file() {
            return Ok(metadata.is_dir().then_some(Entry::Folder));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        Ok(Some(Entry::File(file, metadata)))
    }
}

#[cfg(unix)]
mod unix {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{Mode, OFlags, openat};
    use rustix::io::Errno;

    use super::{Beneath, File, Path, io};

    /// To be looked at. What has an effect when it is opened is not opened for that where the system can do without.
    #[cfg(target_os = "linux")]
    pub(super) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
    #[cfg(not(target_os = "linux"))]
    pub(super) const LOOK: OFlags = READ;
    /// To be read. A pipe without a writer is not waited for.
    pub(super) const READ: OFlags =
        OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

    pub(super) fn open_root(root: &Path) -> io::Result<OwnedFd> {
        Ok(rustix::fs::open(root, LOOK | OFlags::DIRECTORY, Mode::empty())?)
    }

    impl Beneath<'_> {
        pub(super) fn open_as(&self, relative: &Path, flags: OFlags) -> io::Result<File> {
            match self.open_by_kernel(relative, flags) {
                // It leads out, perhaps only to come back; or folders on the way were moved while the kernel looked; or
                // there is no such call, or a sandbox refuses it.
                Err(Errno::XDEV | Errno::AGAIN | Errno::NOSYS | Errno::PERM) => {
                    self.open_by_name(&self.without_links(relative)?, flags)
                }
                opened => Ok(opened?.into()),
            }
        }

        #[cfg(target_os = "linux")]
        fn open_by_kernel(&self, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
            use rustix::fs::{ResolveFlags, openat2};
            let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            openat2(&self.folder, relative, flags, Mode::empty(), resolve)
        }

        #[cfg(not(target_os = "linux"))]
        fn open_by_kernel(&self, _: &Path, _: OFlags) -> Result<OwnedFd, Errno> {
            Err(Errno::NOSYS)
        }

        /// Without following a link; what is one is refused or, where that is asked for, looked at itself.
        pub(super) fn open_by_name(&self, plain: &Path, flags: OFlags) -> io::Result<File> {
            let mut at = openat(&self.folder, ".", LOOK | OFlags::DIRECTORY, Mode::empty())?;
            let mut names = plain.components().peekable();
            if names.peek().is_none() {
                return Ok(openat(&at, ".", flags, Mode::empty())?.into());
            }
            while let Some(name) = names.next() {
                let flags = if names.peek().is_some() { LOOK | OFlags::DIRECTORY } else { flags };
                at = openat(at.as_fd(), name.as_os_str(), flags | OFlags::NOFOLLOW, Mode::empty())?;
            }
            Ok(at.into())
        }
    }
}

/// Whether an error only says that there is nothing, or nothing for us.
pub(super) fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::NotFound
            | Kind::PermissionDenied
            | Kind::NotADirectory
            | Kind::InvalidFilename
            | Kind::InvalidInput
    ) || is_loop(error)
}

/// Links that lead to each other, or one where none was a moment ago.
#[cfg(unix)]
fn is_loop(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

#[cfg(not(unix))]
fn is_loop(_: &io::Error) -> bool {
    false
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
