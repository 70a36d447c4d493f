//! How many files and sockets the process may have open.

/// Raises the limit as far as the system permits without a privilege, and returns what it is then; `None` if it
/// cannot be learned. Programs that use `select` must not do this: it cannot deal with large descriptors.
#[cfg(unix)]
pub fn raise_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one structure, to which the pointer points.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return None;
    }
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_what_the_system_says_afterwards() {
        let raised = raise_limit().unwrap();
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        let soft = line.split_whitespace().nth(3).unwrap();
        assert_eq!(raised.to_string(), soft);
        assert_eq!(raise_limit(), Some(raised));
    }
}
