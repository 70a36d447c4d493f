//! Programs that say something and end, waited for, but not for ever.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether a program has ended.
const STEP: Duration = Duration::from_millis(20);

/// Why a program has not said what was waited for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Its output has ended.
    Ended,
    /// The time is over.
    TooLong,
}

/// What `find` makes of the first line of a program's output that it takes, within this time. All that comes after it is read
/// and thrown away: the program never waits for a reader, nor is it left without one.
pub(crate) fn line<T>(
    out: impl Read + Send + 'static,
    limit: Duration,
    find: impl Fn(&str) -> Option<T>,
) -> Result<T, Silence> {
    let until = Instant::now() + limit;
    let (said, lines) = channel();
    thread::spawn(move || {
        let (mut out, mut line) = (BufReader::new(out), Vec::new());
        while out.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if said.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
            line.clear();
        }
        drop(said);
        std::io::copy(&mut out, &mut std::io::sink())
    });
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some(found) = find(&line) {
                    return Ok(found);
                }
            }
            Err(RecvTimeoutError::Timeout) => return Err(Silence::TooLong),
            Err(RecvTimeoutError::Disconnected) => return Err(Silence::Ended),
        }
    }
}

/// How a program has ended, if it does within this time; otherwise it is killed.
pub(crate) fn end(child: &mut Child, limit: Duration) -> Result<ExitStatus, String> {
    let until = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("did not end within {} s", limit.as_secs()));
        }
        thread::sleep(STEP);
    }
}

/// The beginning of a command that ends with status 124 or 137 if it takes longer.
pub(crate) fn within(seconds: u64) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=1").arg(seconds.to_string());
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    const LONG: Duration = Duration::from_secs(60);

    fn start(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn what_is_said_after_the_line_is_read_as_well() {
        let mut child = start("echo one; echo two && head -c 1000000 /dev/zero");
        let found =
            line(child.stdout.take().unwrap(), LONG, |line| line.strip_prefix("tw").map(str::to_owned));
        assert_eq!(found.as_deref(), Ok("o\n"));
        assert!(end(&mut child, LONG).unwrap().success());
    }

    #[test]
    fn who_says_nothing_is_not_waited_for() {
        let nothing = |_: &str| None::<()>;
        let mut child = start("exec sleep 1000");
        let out = child.stdout.take().unwrap();
        assert_eq!(line(out, Duration::from_millis(1), nothing), Err(Silence::TooLong));
        assert_eq!(end(&mut child, Duration::ZERO).unwrap_err(), "did not end within 0 s");
        let mut child = start("echo something else");
        assert_eq!(line(child.stdout.take().unwrap(), LONG, nothing), Err(Silence::Ended));
        assert!(end(&mut child, LONG).unwrap().success());
    }
}
