//! Whether two sources are the same, whatever their names: symbolic and hard links, `/dev/stdin`.

#[cfg(unix)]
use std::fs::{File, Metadata};
use std::path::PathBuf;

use super::Source;

/// Equal for sources that would give the same lines twice.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// The number of a device, and that of a file or pipe on it.
    #[cfg(unix)]
    Node(u64, u64),
    Name(PathBuf),
    StandardInput,
}

impl Identity {
    pub(super) fn of(source: &Source) -> Identity {
        #[cfg(unix)]
        if let Some(node) = node(source) {
            return node;
        }
        match source {
            Source::File(path) => Identity::Name(path.canonicalize().unwrap_or_else(|_| path.clone())),
            Source::StandardInput => Identity::StandardInput,
        }
    }
}

#[cfg(unix)]
fn node(source: &Source) -> Option<Identity> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let metadata = match source {
        Source::File(path) => std::fs::metadata(path).ok()?,
        Source::StandardInput => of_standard_input()?,
    };
    // Other things, such as terminals, have more than one reader.
    let counts = metadata.is_file() || metadata.file_type().is_fifo();
    counts.then(|| Identity::Node(metadata.dev(), metadata.ino()))
}

#[cfg(unix)]
fn of_standard_input() -> Option<Metadata> {
    use std::os::fd::AsFd;
    File::from(std::io::stdin().as_fd().try_clone_to_owned().ok()?).metadata().ok()
}
