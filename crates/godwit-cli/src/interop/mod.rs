//! `godwit interop`: what the QUIC interop runner expects of an implementation.
//!
//! The runner starts a container for either end and says by environment variables what it is to do: `ROLE`,
//! `TESTCASE`, `REQUESTS` (URLs), `SSLKEYLOGFILE` and `QLOGDIR`. Files are served from `/www`, kept in `/downloads`,
//! and the server's certificate is in `/certs`. A test case that is not supported ends the program with code 127.
//!
//! - [`arguments`]: environment and flags, which replace what the environment says.
//! - [`case`]: the test cases, and what each changes.
//! - [`settings`]: TLS and transport for a case.
//! - [`client`] and [`server`]: the two ends, over HTTP/0.9 ([`hq`]) or HTTP/3.
//! - [`files`]: the folder that is served and the one that is filled.

mod arguments;
mod case;
mod client;
mod files;
mod hq;
mod server;
mod settings;

use std::process::ExitCode;
use std::time::Duration;

use godwit::Connection;

use crate::error::{Failure, plain};
pub(crate) use arguments::Arguments;
use arguments::{Role, Task};

/// The exit code by which the runner knows that a test case is not supported.
const UNSUPPORTED: u8 = 127;
/// How long to go on telling the other end that a connection is over.
const FAREWELL: Duration = Duration::from_secs(3);

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let task = match Task::new(arguments)? {
        Ok(task) => task,
        Err(unknown) => {
            eprintln!("godwit: {unknown}");
            return Ok(ExitCode::from(UNSUPPORTED));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("no runtime: {}", plain(&error))))?;
    runtime.block_on(async {
        match task.role {
            Role::Client => client::run(&task).await,
            Role::Server => server::run(&task).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Says what came of a handshake, once it is complete.
async fn announce(connection: &Connection) {
    match connection.connected().await {
        Ok(early) => {
            let how = if connection.is_resumed() { "resumed" } else { "full handshake" };
            println!("connection {}: {how}, 0-RTT {early:?}", connection.id());
        }
        Err(error) => eprintln!("handshake: {error}"),
    }
}
