//! Reading what the system has of a file in memory, without waiting for a disk (`RWF_NOWAIT`, Linux 4.14).

use std::fs::File;
use std::io;

/// Reads `length` bytes from where the file stands.
///
/// # Errors
/// Of the kind [`io::ErrorKind::WouldBlock`] if they are not all in memory, or the file system does not tell. After any error
/// the file stands where it stood.
#[cfg(target_os = "linux")]
pub(super) fn read(mut file: &File, length: usize) -> io::Result<Vec<u8>> {
    use io::Seek;
    let mut bytes = vec![0; length];
    let mut read = 0;
    let error = loop {
        if read == length {
            return Ok(bytes);
        }
        match fill(file, bytes.get_mut(read..).unwrap_or_default()) {
            // It is shorter than it was: whoever waits sees what is to be done.
            Ok(0) => break io::ErrorKind::WouldBlock.into(),
            Ok(count) => read += count,
            Err(error) => break error,
        }
    };
    file.seek_relative(-i64::try_from(read).unwrap_or(i64::MAX))?;
    Err(error)
}

#[cfg(target_os = "linux")]
fn fill(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};
    /// Where the file stands.
    const HERE: u64 = u64::MAX;
    let mut buffers = [io::IoSliceMut::new(buffer)];
    match retry_on_intr(|| preadv2(file, &mut buffers, HERE, ReadWriteFlags::NOWAIT)) {
        // File systems and sandboxes that do not know of it.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
            Err(io::ErrorKind::WouldBlock.into())
        }
        read => Ok(read?),
    }
}

/// Reads nothing: the system does not tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn read(_: &File, _: usize) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::WouldBlock.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn what_was_written_is_in_memory_and_what_is_missing_is_waited_for() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        file.rewind().unwrap();
        match read(&file, 4) {
            Ok(bytes) => assert_eq!(bytes, b"0123"),
            // A file system that cannot say.
            Err(error) => return assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        let mut next = [0; 2];
        file.read_exact(&mut next).unwrap();
        assert_eq!(&next, b"45", "from where it stands");
        assert_eq!(read(&file, 5).unwrap_err().kind(), io::ErrorKind::WouldBlock, "more than there is");
        assert_eq!(read(&file, 4).unwrap(), b"6789", "it stands where it stood");
        assert!(read(&file, 0).unwrap().is_empty());
    }
}
