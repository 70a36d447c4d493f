//! Files in the user's data folder: written whole or not at all, private keys readable by their owner only.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::Path;

/// Makes the folder (and those above it), closed to other users.
pub(super) fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Takes the folder's lock until the returned file is dropped, so that two servers started together do not both
/// make an authority.
pub(super) fn lock(folder: &Path) -> io::Result<File> {
    let file = private(OpenOptions::new().create(true).truncate(false)).open(folder.join("lock"))?;
    file.lock()?;
    Ok(file)
}

/// Takes the lock that this file stands for; `None` if somebody else has it.
pub(super) fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = private(OpenOptions::new().create(true).truncate(false)).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Eight hexadecimal digits that stand for a text in the name of a file.
pub(super) fn mark(text: &str) -> String {
    let digest = godwit_tls::sha256(text.as_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file readable by its owner only. It replaces an older one in one step.
pub(super) fn write_private(path: &Path, contents: &str) -> io::Result<()> {
    let draft = path.with_extension("new");
    // A draft left behind by a crash may have been made with other permissions.
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private(OpenOptions::new().create_new(true)).open(&draft)?;
    file.write_all(contents.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&draft, path)
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.write(true)
}
