//! Reading what the system has of a file in memory, without waiting for a disk (`RWF_NOWAIT`, Linux 4.14).

use std::fs::File;
use std::io;

/// Fills `bytes` with what there is from where the file stands.
///
/// # Errors
/// Of the kind [`io::ErrorKind::WouldBlock`] if they are not all in memory, or the file system does not tell. After any error
/// the file stands where it stood, and `bytes` may have been written to.
#[cfg(target_os = "linux")]
pub(super) fn read(mut file: &File, bytes: &mut [u8]) -> io::Result<()> {
    use io::Seek;
    let mut read = 0;
    let error = loop {
        let rest = bytes.get_mut(read..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        match fill(file, rest) {
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
pub(super) fn read(_: &File, _: &mut [u8]) -> io::Result<()> {
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
        let mut bytes = [0; 4];
        match read(&file, &mut bytes) {
            Ok(()) => assert_eq!(&bytes, b"0123"),
            // A file system that cannot say.
            Err(error) => return assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        let mut next = [0; 2];
        file.read_exact(&mut next).unwrap();
        assert_eq!(&next, b"45", "from where it stands");
        let error = read(&file, &mut [0; 5]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "more than there is");
        read(&file, &mut bytes).unwrap();
        assert_eq!(&bytes, b"6789", "it stands where it stood");
        read(&file, &mut []).unwrap();
    }
}
