//! Programs that do not outlive the thread that started them (Linux).

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the program that `command` starts killed when the thread that starts it ends, however that ends. Programs that it
/// starts in turn are not concerned.
pub fn end_with_this_thread(command: &mut Command) {
    let ours = std::process::id();
    let tie = move || {
        // SAFETY: numbers only; the calls are safe to make between fork and exec, for they neither allocate nor lock.
        let parent = unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::getppid()
        };
        // It may have ended before it was asked for.
        if parent.cast_unsigned() == ours { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
    };
    // SAFETY: the closure does nothing but system calls, and what it changes is the child's own.
    unsafe { command.pre_exec(tie) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let start = || {
            let mut command = Command::new("sleep");
            command.arg("1000").stdout(Stdio::piped());
            end_with_this_thread(&mut command);
            command.spawn().unwrap()
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        // The end of its output is the end of the program.
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!child.wait().unwrap().success());
    }
}
