//! Threads that must not wait for others.

use std::io;

/// Lets the calling thread run before all ordinary ones whenever it has something to do, and be woken by timers without
/// delay; of several such threads the one with the highest `level`, from 1 to 99. Threads and programs that it starts are
/// ordinary again.
///
/// # Errors
/// Without the privilege (`CAP_SYS_NICE`): timers are exact then all the same, and the thread remains an ordinary one.
/// Always where the system is not Linux.
#[cfg(target_os = "linux")]
pub fn run_before_others(level: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: level.into() };
    // SAFETY: the first call takes numbers only, and of the second the kernel reads one structure, borrowed here. Zero is
    // the calling thread.
    let rc = unsafe {
        // Ordinary threads are woken up to 50 us late, so that several can be woken together.
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the calling thread run before others: not on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn run_before_others(_level: u8) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_urgent_and_those_it_starts_are_not() {
        // The scheduling policy of the calling thread is the 41st field, counted from 1.
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            stat.rsplit_once(") ").unwrap().1.split(' ').nth(38).unwrap().to_owned()
        };
        std::thread::spawn(move || {
            assert_eq!(policy(), "0");
            if run_before_others(1).is_ok() {
                assert_eq!(policy(), libc::SCHED_FIFO.to_string());
                assert_eq!(std::thread::spawn(policy).join().unwrap(), "0");
            }
        })
        .join()
        .unwrap();
    }
}
