//! `godwit get`, in a process of its own.

use super::server::FileServer;
use std::process::{Child, Command, Stdio};

/// `godwit get` that trusts the server and has all the time that a busy machine takes.
pub(crate) fn get(server: &FileServer) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_godwit"));
    command.args([
        "get",
        "--http3",
        "--no-alt-svc",
        "--quiet",
        "--connect-timeout",
        "300",
        "--max-time",
        "1800",
        "--cacert",
    ]);
    command.arg(server.certificate());
    for name in ["RUST_LOG", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
        command.env_remove(name);
    }
    // No data folder of a person is looked at.
    command.env("XDG_DATA_HOME", "/nonexistent").env("HOME", "/nonexistent");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A run, killed if the test ends before it.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        Running(Some(command.spawn().unwrap()))
    }

    /// Waits for the end, which must be a good one.
    pub(crate) fn expect_success(mut self) {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.as_ref()), (Some(0), ""));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
