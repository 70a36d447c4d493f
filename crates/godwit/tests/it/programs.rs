//! The examples as the programs that they are, for whoever runs them.

use crate::support::CERTIFICATE;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// A program that does not outlive its test.
pub(crate) struct Guard(pub(crate) Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Cargo builds examples beside the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let path = path.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is missing: cargo build -p godwit --examples", path.display());
    path
}

/// The tests' certificate and its key, as files.
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    _folder: TempDir,
}

impl Identity {
    pub(crate) fn write() -> Identity {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        std::fs::write(&certificate, &CERTIFICATE.0).unwrap();
        std::fs::write(&key, &CERTIFICATE.1).unwrap();
        Identity { certificate, key, _folder: folder }
    }
}

/// A server that runs.
pub(crate) struct Server {
    pub(crate) process: Guard,
    /// Where it listens.
    pub(crate) addr: String,
    /// What it says after that.
    pub(crate) output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts it, and waits for its first line.
    pub(crate) fn start(command: &mut Command) -> Server {
        let mut process = Guard(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut output = BufReader::new(process.0.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let addr = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Server { process, addr, output }
    }
}

/// What a program says that ends well.
pub(crate) fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
