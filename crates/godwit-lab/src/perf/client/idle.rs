//! Connections on which nothing happens.

use super::{Measured, Window};
use crate::Error;
use godwit::Connection;
use serde::Serialize;
use std::time::Duration;
use tokio::task::JoinSet;

/// The pause after which either end shows that it is still there: less than the idle timeout of both.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// What became of connections on which nothing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Idle {
    /// How many were opened.
    pub opened: u32,
    /// How many of them had ended by the end of the time.
    pub died: u32,
}

/// Lets the time pass.
pub(super) async fn run(window: Window) -> Result<Measured, Error> {
    window.pass(&mut JoinSet::new()).await?;
    Ok(window.close(None, None))
}

/// What has become of them.
pub(super) fn outcome(connections: &[Connection]) -> Idle {
    let died = connections.iter().filter(|connection| connection.close_reason().is_some()).count();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Idle { opened: count(connections.len()), died: count(died) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::options::{ServerOptions, Tuning};
    use crate::perf::protocol::ALPN;
    use crate::perf::{settings, tls};
    use godwit::Endpoint;

    #[tokio::test]
    async fn those_that_have_ended_have_died() {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut options = ServerOptions::default();
        let tls = tls::server(&mut options).unwrap();
        let server = Endpoint::server(settings::server(tls, &options).unwrap(), any).unwrap();
        let client = Endpoint::client(any).unwrap();
        let config = settings::client(None, ALPN, Tuning::default(), None).unwrap();
        let mut ends = Vec::new();
        for _ in 0..3 {
            let connecting = client.connect(&config, server.local_addr().unwrap(), "localhost").unwrap();
            let accepting = async { server.accept().await.unwrap().await };
            let (ours, theirs) = tokio::join!(connecting, accepting);
            ends.push((ours.unwrap(), theirs.unwrap()));
        }
        ends[1].1.close(0_u32, b"");
        ends[1].0.closed().await;
        let ours: Vec<_> = ends.iter().map(|(ours, _)| ours.clone()).collect();
        assert_eq!(outcome(&ours), Idle { opened: 3, died: 1 });
    }
}
