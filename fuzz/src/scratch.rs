//! Files for what reads files: in memory where the system has such a place.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A folder of this thread's own.
pub fn folder() -> PathBuf {
    let shared = Path::new("/dev/shm");
    let base = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let thread = format!("{:?}", std::thread::current().id());
    let number: String = thread.chars().filter(char::is_ascii_digit).collect();
    base.join(format!("godwit-fuzz-{}-{number}", std::process::id()))
}

/// The only file of the folder, which only its owner can read.
pub fn file(name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    let _ = fs::remove_file(&path);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    io::Write::write_all(&mut options.open(&path)?, bytes)?;
    Ok(path)
}

/// Removes the folder.
pub fn clear() {
    let _ = fs::remove_dir_all(folder());
}
