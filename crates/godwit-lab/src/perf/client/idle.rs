//! Connections on which nothing happens.

use super::link::Link;
use crate::Error;
use crate::perf::window::{Measured, Plan};
use godwit_os::heap;
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

/// Lets the time pass, and counts which of the connections have ended.
pub(super) async fn run(mut links: Vec<Link>, plan: &Plan) -> Result<Measured, Error> {
    // What the handshakes have left would be taken for the connections'.
    heap::give_back();
    let window = plan.open();
    window.pass(&mut JoinSet::new()).await?;
    let mut measured = window.close(None, None);
    measured.died = died(&mut links);
    Ok(measured)
}

fn died(links: &mut [Link]) -> u32 {
    let ended = links.iter_mut().filter_map(|link| link.has_ended().then_some(()));
    u32::try_from(ended.count()).unwrap_or(u32::MAX)
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
        let mut ours: Vec<_> = ends.iter().map(|(ours, _)| Link::Quic(ours.clone())).collect();
        assert_eq!(died(&mut ours), 1);
    }
}
