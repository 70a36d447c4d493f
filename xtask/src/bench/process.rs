//! The processes that are measured: where they run, what they use.

use crate::patience::{self, Silence};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a client may take beyond its time, in seconds.
pub(super) const GRACE: u64 = 20;
/// How long a server may take to say where it listens.
const STARTING: Duration = Duration::from_secs(30);
/// How often it is looked whether a server can be reached.
const STEP: Duration = Duration::from_millis(10);
/// What a server is given to be done with a client that has gone.
const SETTLING: Duration = Duration::from_millis(100);

/// A program on a core of its own.
pub(super) fn on_core(core: &str, program: &Path, words: &[String]) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program).args(words);
    command
}

/// A server on core 0. It ends with the value.
pub(super) struct Server {
    process: Child,
    pub(super) address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts it and waits for the line that tells its address.
    pub(super) fn start(program: &Path, words: &[String]) -> Result<Self, String> {
        Self::start_within(STARTING, program, words)
    }

    fn start_within(limit: Duration, program: &Path, words: &[String]) -> Result<Self, String> {
        Self::telling_within(limit, on_core("0", program, words))
    }

    /// Starts a command and waits for the line that tells its address.
    pub(super) fn telling(command: Command) -> Result<Self, String> {
        Self::telling_within(STARTING, command)
    }

    /// Starts a command that was told its address, and waits until it can be reached there.
    pub(super) fn told(mut command: Command, address: &str) -> Result<Self, String> {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let process = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let mut server = Self { process, address: address.to_owned() };
        let until = Instant::now() + STARTING;
        while TcpStream::connect(address).is_err() {
            if server.process.try_wait().map_err(|error| error.to_string())?.is_some() {
                return Err(reason(&errors_of(&mut server.process), "the server has ended"));
            }
            if Instant::now() > until {
                return Err(format!("the server does not listen at {address}"));
            }
            std::thread::sleep(STEP);
        }
        server.read_errors();
        Ok(server)
    }

    fn telling_within(limit: Duration, mut command: Command) -> Result<Self, String> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let out = child.stdout.take();
        let mut server = Self { process: child, address: String::new() };
        let address = out.map_or(Err(Silence::Ended), |out| patience::line(out, limit, address));
        server.address = address.map_err(|silence| {
            if silence == Silence::TooLong {
                return format!("the server has not said within {} s where it listens", limit.as_secs());
            }
            let _ = server.process.kill();
            let said = errors_of(&mut server.process);
            reason(&said, "the server does not say where it listens")
        })?;
        server.read_errors();
        Ok(server)
    }

    /// It may write: nobody must wait for a reader.
    fn read_errors(&mut self) {
        let errors = self.process.stderr.take();
        errors.map(|mut errors| std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink())));
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// What all its threads have run so far, in seconds.
    pub(super) fn cpu(&self) -> Result<f64, String> {
        let folder = format!("/proc/{}/task", self.id());
        let threads = fs::read_dir(&folder).map_err(|_| "the server has ended".to_owned())?;
        let ran = |file: std::path::PathBuf| first_number(&fs::read_to_string(file).ok()?);
        let all = threads.flatten().filter_map(|thread| ran(thread.path().join("schedstat")));
        Ok(all.sum::<f64>() / 1e9)
    }
}

/// The address on loopback that a line tells.
fn address(line: &str) -> Option<String> {
    let rest = line.get(line.find("127.0.0.1:")?..)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ':');
    Some(rest.get(..end.unwrap_or(rest.len()))?.to_owned())
}

/// What a program that has ended has said of what went wrong.
pub(super) fn errors_of(process: &mut Child) -> String {
    process.stderr.take().map(std::io::read_to_string).and_then(Result::ok).unwrap_or_default()
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Memory that a process holds, in KiB.
pub(super) fn memory(id: u32) -> Result<f64, String> {
    let text =
        fs::read_to_string(format!("/proc/{id}/status")).map_err(|_| "a process has ended".to_owned())?;
    resident(&text).ok_or_else(|| "the system does not tell what memory a process holds".to_owned())
}

fn resident(status: &str) -> Option<f64> {
    first_number(status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?)
}

/// What a client has said, and what it and its server have used.
pub(super) struct Ran {
    pub(super) text: String,
    /// In seconds.
    pub(super) client: f64,
    pub(super) server: f64,
}

/// Runs a client on core 1 to its end.
pub(super) fn client(server: &Server, program: &Path, words: &[String], seconds: f64) -> Result<Ran, String> {
    let (before, children) = (server.cpu()?, children()?);
    let limit = seconds.ceil() as u64 + GRACE;
    let mut command = patience::within(limit);
    command.args(["taskset", "-c", "1"]).arg(program).args(words);
    let output = command.output().map_err(|error| format!("timeout: {error}"))?;
    let client = self::children()? - children;
    std::thread::sleep(SETTLING);
    match output.status.code() {
        Some(0) => {}
        Some(124 | 137) => return Err(format!("its client did not end within {limit} s")),
        _ => return Err(reason(&String::from_utf8_lossy(&output.stderr), "its client has failed")),
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Ran { text, client, server: server.cpu()? - before })
}

/// What children that have ended have used, and theirs, in seconds.
fn children() -> Result<f64, String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6)
}

/// Why a program says it has failed: in a line that begins so, or else in the last that it wrote.
pub(super) fn reason(text: &str, otherwise: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("note:"));
    let is_error = |line: &&str| ["error:", "Error:", "peer:"].iter().any(|word| line.starts_with(word));
    let said = lines.clone().rfind(is_error).or_else(|| lines.next_back());
    said.unwrap_or(otherwise).chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_stands_in_the_status_of_a_process() {
        assert_eq!(resident("Name:\tgodwit\nVmHWM:\t  9000 kB\nVmRSS:\t    8192 kB\n"), Some(8192.0));
        assert_eq!(resident("Name:\tgodwit\n"), None);
        assert!(memory(std::process::id()).unwrap() > 0.0);
    }

    #[test]
    fn addresses_stand_in_lines_and_in_urls() {
        assert_eq!(address("listening on 127.0.0.1:4433, UDP and TCP").as_deref(), Some("127.0.0.1:4433"));
        assert_eq!(address("  https://127.0.0.1:80/\n").as_deref(), Some("127.0.0.1:80"));
        assert_eq!(address("ready"), None);
    }

    #[test]
    fn a_server_that_ends_before_it_can_be_reached_is_a_failure_with_its_words() {
        let words = ["-c".to_owned(), "echo 'Error: no such key' >&2".to_owned()];
        let failure = Server::told(on_core("0", Path::new("sh"), &words), "127.0.0.1:1").err().unwrap();
        assert_eq!(failure, "Error: no such key");
    }

    #[test]
    fn a_failure_says_why() {
        assert_eq!(reason("one\nError: two\n\nStack backtrace:\n0: main\n", "x"), "Error: two");
        assert_eq!(reason("one\ntwo\nnote: run with RUST_BACKTRACE=1\n", "x"), "two");
        assert_eq!(reason("\n", "nothing was said"), "nothing was said");
    }

    #[test]
    fn a_server_that_says_no_address_is_a_failure_with_its_words() {
        let words = ["-c".to_owned(), "echo 'Error: no such key' >&2".to_owned()];
        let failure = Server::start(Path::new("sh"), &words).err().unwrap();
        assert_eq!(failure, "Error: no such key");
    }

    #[test]
    fn a_server_that_says_nothing_is_not_waited_for() {
        let words = ["1000".to_owned()];
        let failure =
            Server::start_within(Duration::from_millis(1), Path::new("sleep"), &words).err().unwrap();
        assert_eq!(failure, "the server has not said within 0 s where it listens");
    }
}
