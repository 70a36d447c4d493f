//! Pinning threads to cores.

use std::io;

/// Lets the calling thread run on `core` only (numbered as the system does).
///
/// # Errors
/// If there is no such core, if this process may not use it, or if the system cannot pin threads.
#[cfg(target_os = "linux")]
pub fn pin_current_thread(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such core"));
    }
    // SAFETY: a CPU set is an array of integers, for which all bits zero is a value; `core` is below its
    // size; and the kernel reads a set of the size it is told.
    let rc = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the calling thread run on `core` only (numbered as the system does).
///
/// # Errors
/// Always: this system cannot pin threads.
#[cfg(not(target_os = "linux"))]
pub fn pin_current_thread(_core: usize) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "threads cannot be pinned on this system"))
}

/// The cores this thread may run on, in ascending order. Empty if the system does not tell.
#[cfg(target_os = "linux")]
pub fn allowed_cores() -> Vec<usize> {
    // SAFETY: a CPU set is an array of integers, for which all bits zero is a value; the kernel writes at
    // most the size it is told; and every index asked for is below `CPU_SETSIZE`.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    }
}

/// The cores this thread may run on. This system does not tell.
#[cfg(not(target_os = "linux"))]
pub fn allowed_cores() -> Vec<usize> {
    Vec::new()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_pinned() {
        std::thread::spawn(|| {
            let last = *allowed_cores().last().unwrap();
            pin_current_thread(last).unwrap();
            assert_eq!(allowed_cores(), [last]);
            assert!(pin_current_thread(100_000).is_err());
        })
        .join()
        .unwrap();
    }
}
