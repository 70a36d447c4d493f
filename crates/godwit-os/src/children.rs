//! Programs that do not outlive the thread that started them (Linux).

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the program that `command` starts killed when the thread that starts it ends, however that ends, and with it all
/// that it has started: it is the first process in a PID namespace of its own, and the others go with the first. A program
/// that a signal has ended has the code 128 and more, as shells have it.
///
/// Without the privilege for such a namespace (`CAP_SYS_ADMIN`) only the program itself is killed.
pub fn end_with_this_thread(command: &mut Command) {
    let ours = std::process::id();
    let tie = move || {
        end_with_parent()?;
        // SAFETY: the call takes nothing and cannot fail.
        let parent = unsafe { libc::getppid() };
        // It may have ended before it was asked for.
        if parent.cast_unsigned() != ours {
            return Err(io::ErrorKind::NotConnected.into());
        }
        // SAFETY: no memory is handed over.
        if unsafe { libc::unshare(libc::CLONE_NEWPID) } == 0 { be_followed() } else { Ok(()) }
    };
    // SAFETY: the closure does nothing but system calls that are safe to make between fork and exec: it neither allocates
    // nor locks. What it changes are the child's own.
    unsafe { command.pre_exec(tie) };
}

fn end_with_parent() -> io::Result<()> {
    // SAFETY: numbers only.
    let rc = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Forks, and returns in the child, which is the first process of the new namespace. The parent, which has to stay outside,
/// waits for it and ends as it does.
fn be_followed() -> io::Result<()> {
    // SAFETY: this process has one thread, for it is between fork and exec; the child goes on where this one is.
    let first = unsafe { libc::fork() };
    if first < 0 {
        return Err(io::Error::last_os_error());
    }
    if first == 0 {
        return end_with_parent();
    }
    let mut status = 0;
    // SAFETY: what is closed belongs to this process alone and is not used again: it only waits. (Whoever started it
    // waits for the end of one of these descriptors.) The kernel writes one number, borrowed here. Ending without unwinding
    // or flushing is what a process between fork and exec may do.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
        while libc::waitpid(first, &raw mut status, 0) < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                libc::_exit(1);
            }
        }
        libc::_exit(match libc::WIFSIGNALED(status) {
            true => libc::WTERMSIG(status).saturating_add(128),
            false => libc::WEXITSTATUS(status),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user;
    use std::io::Read;
    use std::process::Stdio;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdout(Stdio::piped());
        end_with_this_thread(&mut command);
        command
    }

    #[test]
    fn a_program_ends_with_the_thread_that_started_it_and_takes_its_own_along() {
        let line = if user::is_root() { "sleep 1000; true" } else { "exec sleep 1000" };
        let start = move || shell(line).spawn().unwrap();
        let mut child = std::thread::spawn(start).join().unwrap();
        // The end of its output is the end of all that have it.
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn output_and_codes_come_through() {
        let output = shell("echo said; exit 7").output().unwrap();
        assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"said\n"[..], Some(7)));
        let mut missing = Command::new("/nonexistent");
        end_with_this_thread(&mut missing);
        assert_eq!(missing.spawn().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
