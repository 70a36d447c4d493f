//! Threads that must not wait for others.

use std::io;
use std::process::Command;

/// Lets the calling thread run before all ordinary ones whenever it has something to do, and be woken by timers without
/// delay; of several such threads the one with the highest `level`, from 1 to 99. Threads and programs that it starts are
/// ordinary again.
///
/// # Errors
/// Without the privilege (`CAP_SYS_NICE`): timers are exact then all the same, and the thread remains an ordinary one.
/// Always where the system is not Linux.
#[cfg(target_os = "linux")]
pub fn run_before_others(level: u8) -> io::Result<()> {
    set(level, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK)
}

/// Has the program that `command` starts, with all its threads, run before all ordinary ones. Without the privilege it is
/// an ordinary one.
#[cfg(target_os = "linux")]
pub fn start_before_others(command: &mut Command, level: u8) {
    use std::os::unix::process::CommandExt;

    let hurry = move || {
        let _ = set(level, libc::SCHED_FIFO);
        Ok(())
    };
    // SAFETY: the closure does nothing but system calls that are safe to make between fork and exec: it neither allocates
    // nor locks.
    unsafe { command.pre_exec(hurry) };
}

#[cfg(target_os = "linux")]
fn set(level: u8, policy: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: level.into() };
    // SAFETY: the first call takes numbers only, and of the second the kernel reads one structure, borrowed here. Zero is
    // the calling thread.
    let rc = unsafe {
        // Ordinary threads are woken up to 50 us late, so that several can be woken together.
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        libc::sched_setscheduler(0, policy, &raw const parameters)
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

/// Has a program run before others: not on this system, where it is an ordinary one.
#[cfg(not(target_os = "linux"))]
pub fn start_before_others(_command: &mut Command, _level: u8) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::alone::cannot_be_tested;

    #[test]
    fn a_program_is_urgent_with_what_it_starts_where_that_is_permitted() {
        let policy = |urgent| {
            let mut command = Command::new("sh");
            command.args(["-c", "sh -c 'cat /proc/self/stat'"]);
            if urgent {
                start_before_others(&mut command, 1);
            }
            let stat = String::from_utf8(command.output().unwrap().stdout).unwrap();
            stat.trim().rsplit_once(") ").unwrap().1.split(' ').nth(38).unwrap().to_owned()
        };
        let permitted = std::thread::spawn(|| run_before_others(1).is_ok()).join().unwrap();
        let expected = if permitted { libc::SCHED_FIFO.to_string() } else { "0".to_owned() };
        assert_eq!([policy(false), policy(true)], ["0".to_owned(), expected]);
    }

    #[test]
    fn a_thread_is_urgent_and_those_it_starts_are_not() {
        // The scheduling policy of the calling thread is the 41st field, counted from 1.
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            stat.rsplit_once(") ").unwrap().1.split(' ').nth(38).unwrap().to_owned()
        };
        std::thread::spawn(move || {
            assert_eq!(policy(), "0");
            if let Err(error) = run_before_others(1) {
                return cannot_be_tested(error);
            }
            assert_eq!(policy(), libc::SCHED_FIFO.to_string());
            assert_eq!(std::thread::spawn(policy).join().unwrap(), "0");
        })
        .join()
        .unwrap();
    }
}
