//! Files below a folder, opened such that no link leads out of it.
//!
//! On Linux the kernel sees to that while it opens (`openat2` with `RESOLVE_BENEATH`): there is no moment between a look
//! and the opening in which whoever may write in the folder could exchange a link. Where there is no such call (Linux
//! before 5.6, sandboxes that refuse it, other Unix systems), and for links that leave the folder and come back or
//! begin with a slash, the path is freed of links first and then opened name by name, without following any: what was
//! exchanged in the meantime is missing. Whoever may not wait for a disk [reaches](Reach) to the memory only, where the kernel
//! does all of it or nothing. Elsewhere (Windows) the path is looked at and then opened, and such an exchange
//! is not seen.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// How far to reach for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// To the disk, or whatever else a file system has: for that a thread has to wait.
    Disk,
    /// To what the system has in memory. Anything else is an error of the kind [`io::ErrorKind::WouldBlock`]: all that is on
    /// another machine or in a program's hands, as its file system is, and everything where the system does not tell the two
    /// apart (`RESOLVE_CACHED`, Linux 5.12).
    Memory,
}

/// A folder, for the time of one answer: it is opened anew for each, so that a folder that was exchanged as a whole, or a
/// link to it, is seen. Links on the way to it are the operator's, and followed.
#[derive(Debug)]
pub(super) struct Beneath<'a> {
    /// Where it is, perhaps through links.
    root: &'a Path,
    reach: Reach,
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
    /// The folder that is at `root` now.
    ///
    /// # Errors
    /// If it is not a folder that can be opened, or is beyond the `reach`.
    pub(super) fn open(root: &Path, reach: Reach) -> io::Result<Beneath<'_>> {
        if reach == Reach::Memory && !cfg!(unix) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Beneath {
            root,
            reach,
            #[cfg(unix)]
            folder: unix::open_root(root, reach)?,
        })
    }

    /// How far this reaches.
    pub(super) fn reach(&self) -> Reach {
        self.reach
    }

    /// What lies at a path, or at the end of the links there, unless that is outside. Neither a device nor a pipe is a
    /// page: opening one could block for ever.
    ///
    /// # Errors
    /// If the disk cannot be asked, or that is beyond the reach: not because there is nothing.
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

    use super::{Beneath, File, Path, Reach, io, kernel};

    /// To be looked at. What has an effect when it is opened is not opened for that where the system can do without.
    #[cfg(target_os = "linux")]
    pub(super) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
    #[cfg(not(target_os = "linux"))]
    pub(super) const LOOK: OFlags = READ;
    /// To be read. A pipe without a writer is not waited for.
    pub(super) const READ: OFlags =
        OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

    pub(super) fn open_root(root: &Path, reach: Reach) -> io::Result<OwnedFd> {
        let flags = LOOK | OFlags::DIRECTORY;
        match reach {
            Reach::Disk => Ok(rustix::fs::open(root, flags, Mode::empty())?),
            Reach::Memory => {
                let root = kernel::open_known(root, flags).map_err(not_known)?;
                if kernel::is_at_hand(&root) { Ok(root) } else { Err(io::ErrorKind::WouldBlock.into()) }
            }
        }
    }

    /// The error of what reaches to the memory only: whatever could be tried in another way has to be waited for.
    fn not_known(error: Errno) -> io::Error {
        match error {
            Errno::XDEV | Errno::AGAIN | Errno::NOSYS | Errno::PERM | Errno::INVAL => {
                io::ErrorKind::WouldBlock.into()
            }
            error => error.into(),
        }
    }

    impl Beneath<'_> {
        pub(super) fn open_as(&self, relative: &Path, flags: OFlags) -> io::Result<File> {
            let path = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
            match kernel::open_beneath(&self.folder, path, flags, self.reach) {
                Err(error) if self.reach == Reach::Memory => Err(not_known(error)),
                // It leads out, perhaps only to come back; or folders on the way were moved while the kernel looked; or
                // there is no such call, or a sandbox refuses it.
                Err(Errno::XDEV | Errno::AGAIN | Errno::NOSYS | Errno::PERM) => {
                    self.open_by_name(&self.without_links(relative)?, flags)
                }
                opened => Ok(opened?.into()),
            }
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

/// How the kernel follows paths, where it can be told.
#[cfg(target_os = "linux")]
mod kernel {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstatfs, openat2};
    use rustix::io::Errno;

    use super::{Path, Reach};

    /// `RESOLVE_CACHED`: nothing is waited for, and `EAGAIN` said instead.
    const CACHED: ResolveFlags = ResolveFlags::from_bits_retain(0x20);

    pub(super) fn open_known(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        openat2(CWD, path, flags, Mode::empty(), CACHED)
    }

    /// File systems that ask nobody but a disk of this machine, by their magic numbers (`statfs(2)`, `linux/magic.h`): ext4,
    /// xfs, btrfs, tmpfs, overlayfs, f2fs, ZFS, bcachefs, erofs, squashfs, ramfs. On others opening what is known, and asking for
    /// its size, may have to wait for another machine or a program.
    const AT_HAND: [u32; 11] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x794c_7630,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
        0xe0f5_e1e2,
        0x7371_7368,
        0x8584_58f6,
    ];

    /// Whether opening what is known here waits for nothing.
    pub(super) fn is_at_hand(folder: &impl AsFd) -> bool {
        // The type has as many bits as the system's words; the numbers have 32.
        fstatfs(folder).is_ok_and(|about| AT_HAND.contains(&(about.f_type as u32)))
    }

    pub(super) fn open_beneath(
        folder: &impl AsFd,
        relative: &Path,
        flags: OFlags,
        reach: Reach,
    ) -> Result<OwnedFd, Errno> {
        // What is mounted below may be of another kind.
        let known =
            if reach == Reach::Memory { CACHED | ResolveFlags::NO_XDEV } else { ResolveFlags::empty() };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | known;
        openat2(folder, relative, flags, Mode::empty(), resolve)
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod kernel {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::OFlags;
    use rustix::io::Errno;

    use super::{Path, Reach};

    pub(super) fn open_known(_: &Path, _: OFlags) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }

    pub(super) fn is_at_hand(_: &impl AsFd) -> bool {
        false
    }

    pub(super) fn open_beneath(_: &impl AsFd, _: &Path, _: OFlags, _: Reach) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
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
