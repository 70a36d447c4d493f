//! The file of the memory: JSON, only for the user's own eyes as it tells which servers were visited.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use godwit_text::plain_error;

use super::contents::Contents;

/// A file larger than this was not written by this program.
const MAX_LENGTH: u64 = 4 << 20;

/// What the file holds; nothing if there is none yet.
pub(super) fn read(path: &Path) -> Result<Contents, String> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contents::default()),
        Err(error) => return Err(plain_error(&error)),
    };
    let mut text = String::new();
    let read = file.take(MAX_LENGTH.saturating_add(1)).read_to_string(&mut text);
    let length = read.map_err(|error| plain_error(&error))?;
    if text.trim().is_empty() {
        return Ok(Contents::default());
    }
    if length as u64 > MAX_LENGTH {
        return Err("it is something else: too large".to_owned());
    }
    serde_json::from_str(&text).map_err(|error| format!("it is something else: {error}"))
}

/// Replaces the file by a new one, or makes it.
pub(super) fn write(path: &Path, contents: &Contents) -> Result<(), String> {
    let text = serde_json::to_string(contents).map_err(|error| error.to_string())?;
    let written = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let temporary = path.with_extension(format!("{:08x}.part", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&temporary)?;
        file.write_all(text.as_bytes())?;
        drop(file);
        fs::rename(&temporary, path).inspect_err(|_| drop(fs::remove_file(&temporary)))
    };
    written().map_err(|error| plain_error(&error))
}
