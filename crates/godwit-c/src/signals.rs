//! Signals that the threads of the library do not want.
//!
//! A connection over TCP that the other side has closed answers a write with SIGPIPE, which ends the process unless somebody has
//! seen to it. Programs in Rust do so from the start. In a program in C that is the program's decision; but on the library's own
//! threads the signal, which is sent to the thread that writes, can be kept out without anybody noticing.

use std::mem::MaybeUninit;

/// Keeps SIGPIPE from this thread, and from those that it starts.
pub(crate) fn keep_out_sigpipe() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is filled before it is used, and the former one is not asked for.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeWriter, Write};

    /// What a write to a pipe that nobody reads says; it says nothing if it ends the process.
    fn write_in_vain(mut to: PipeWriter) -> std::io::ErrorKind {
        to.write_all(b"x").unwrap_err().kind()
    }

    #[test]
    fn a_write_in_vain_is_an_error_and_not_the_end() {
        let written = std::thread::spawn(|| {
            keep_out_sigpipe();
            // SAFETY: this is what the signal does in programs that do not say otherwise.
            let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
            let (from, to) = std::io::pipe().unwrap();
            drop(from);
            let kind = write_in_vain(to);
            // SAFETY: it was so before.
            unsafe { libc::signal(libc::SIGPIPE, before) };
            kind
        });
        assert_eq!(written.join().unwrap(), std::io::ErrorKind::BrokenPipe);
    }
}
