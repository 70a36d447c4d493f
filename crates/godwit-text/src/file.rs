//! Files that people name: what is read of them whole is bounded, so that a device, a pipe without an end or a disk
//! image given by mistake is an error and not the end of the memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most that is read of a configuration, a certificate, a key or a list of authorities, in bytes. The
/// authorities of a whole system are a quarter of a megabyte.
pub const MOST: u64 = 8 << 20;

/// Everything that stands in a file of at most [`MOST`] bytes.
///
/// # Errors
/// If it cannot be read, or is larger.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(File::open(path)?, MOST)
}

/// Everything that comes, if it is at most `most` bytes.
///
/// # Errors
/// As those of reading; `FileTooLarge` if there is more.
pub fn read_at_most(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("it is larger than {}", crate::size(most));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        assert_eq!(read_at_most(&b"abc"[..], 3).unwrap(), b"abc");
        let error = read_at_most(&b"abcd"[..], 3).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (io::ErrorKind::FileTooLarge, "it is larger than 3 B")
        );
        assert!(read_at_most(io::repeat(0), MOST).is_err());
    }
}
