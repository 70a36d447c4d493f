//! An endpoint of the QUIC interop runner.
//!
//! The runner starts a container for either end and says what it is to do; a program puts that into a [`Task`]. Files
//! are served from one folder, fetched ones kept in another, and the server's certificate is in a third.
//!
//! - `case`: the test cases, and what each changes.
//! - `settings`: TLS and transport for a case.
//! - `client` and `server`: the two ends, over HTTP/0.9 (`hq`) or HTTP/3.
//! - `files`: the folder that is served and the one that is filled.

mod case;
mod client;
mod files;
mod hq;
mod server;
mod settings;
mod task;

use std::time::Duration;

use godwit::Connection;

pub use case::{Case, Role, Unsupported};
pub use task::{Notice, Task, Watch};

use crate::Error;

/// How long to go on telling the other end that a connection is over.
const CLOSING: Duration = Duration::from_secs(3);

/// Does what the task says: a client until everything is fetched, a server until `end`.
///
/// # Errors
/// If anything could not be fetched, or the server cannot listen.
pub async fn run(task: &Task, end: impl Future<Output = ()>) -> Result<(), Error> {
    match task.role {
        Role::Client => client::run(task).await,
        Role::Server => server::run(task, end).await,
    }
}

/// Says what came of a handshake, once it is complete.
async fn announce(watch: &Watch, connection: &Connection) {
    match connection.connected().await {
        Ok(early) => {
            let how = if connection.is_resumed() { "resumed" } else { "full handshake" };
            watch(Notice::new(format!("connection {}: {how}, 0-RTT {early:?}", connection.id())));
        }
        Err(error) => watch(Notice::problem(format!("handshake: {error}"))),
    }
}
