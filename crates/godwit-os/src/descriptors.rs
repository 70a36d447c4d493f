//! The process's files and sockets: how many it may have open, and passing some of them on to a program that it
//! starts.

#[cfg(unix)]
use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    os::unix::process::CommandExt,
    process::Command,
    sync::{Mutex, PoisonError},
};

/// Raises the limit as far as the system permits without a privilege, and returns what it is then; `None` if it
/// cannot be learned. Programs that use `select` must not do this: it cannot deal with large descriptors.
#[cfg(unix)]
pub fn raise_limit() -> Option<u64> {
    let mut limit = limits()?;
    let before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the kernel reads one structure, to which the pointer points.
    let raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0;
    Some(if raised { limit.rlim_cur } else { before })
}

/// Raises the limit: there is none here.
#[cfg(not(unix))]
pub fn raise_limit() -> Option<u64> {
    None
}

/// How many the process may have now; `None` if it cannot be learned.
#[cfg(unix)]
pub fn limit() -> Option<u64> {
    limits().map(|limits| limits.rlim_cur)
}

/// How many the process may have: there is no limit here.
#[cfg(not(unix))]
pub fn limit() -> Option<u64> {
    None
}

#[cfg(unix)]
fn limits() -> Option<libc::rlimit> {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one structure, to which the pointer points.
    (unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) } == 0).then_some(limits)
}

/// Passes `descriptors` on to the program that `command` starts, under the numbers that they have here. No other
/// program that is started meanwhile gets them. `command` owns them from now on: they are closed with it.
#[cfg(unix)]
pub fn pass_to(command: &mut Command, descriptors: Vec<OwnedFd>) {
    let keep = move || {
        for descriptor in &descriptors {
            // SAFETY: the descriptor is owned by this closure, hence open. No memory is handed over.
            if unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure does nothing but system calls that are safe to make there: it
    // neither allocates nor locks. What it changes are the child's own descriptors.
    unsafe { command.pre_exec(keep) };
}

/// Takes over a descriptor that the process was started with, by its number. It is not passed on any further.
///
/// # Errors
/// If there is none with this number, or it is one that this process itself has opened or taken over already: those
/// are marked as not to be passed on.
#[cfg(unix)]
pub fn take_over(number: RawFd) -> io::Result<OwnedFd> {
    /// Two who ask for the same must not both get it.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if number <= libc::STDERR_FILENO {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: no memory is handed over, and what is no descriptor is refused.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    if flags & libc::FD_CLOEXEC != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // SAFETY: as above.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and nobody in this process owns it: all that Rust opens is marked as not to
    // be passed on, and so is from now on what was returned here before.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_program_gets_what_is_passed_to_it_and_nothing_else() {
        let (mut ours, theirs) = std::io::pipe().unwrap();
        let (other, _end) = UnixStream::pair().unwrap();
        let number = theirs.as_raw_fd();
        // Not every shell knows descriptors above 9 by their number.
        let script = format!("printf hello >/proc/self/fd/{number}; ls /proc/self/fd");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        pass_to(&mut command, vec![theirs.into()]);
        let output = command.output().unwrap();
        drop(command);
        let open = String::from_utf8(output.stdout).unwrap();
        assert!(!open.lines().any(|open| open == other.as_raw_fd().to_string()), "{open}");
        // The end shows that nobody has the other end any more, this process included.
        let mut said = String::new();
        ours.read_to_string(&mut said).unwrap();
        assert_eq!(said, "hello");
    }

    #[test]
    fn only_what_was_passed_to_this_process_is_taken_over() {
        let (own, _end) = UnixStream::pair().unwrap();
        assert_eq!(take_over(own.as_raw_fd()).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(take_over(1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(take_over(1_000_000).is_err());
        assert!(take_over(-1).is_err());
    }

    #[test]
    fn the_limit_is_what_the_system_says_afterwards() {
        let raised = raise_limit().unwrap();
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        let soft = line.split_whitespace().nth(3).unwrap();
        assert_eq!(raised.to_string(), soft);
        assert_eq!((raise_limit(), limit()), (Some(raised), Some(raised)));
    }
}
