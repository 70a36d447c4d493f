//! The addresses of a server are tried in the order the system gives them, and while one does not answer, the next
//! is begun (after RFC 8305).

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Refusal;

/// How long one address is waited for before the next one is tried besides (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// Tries addresses in their order: the next one is begun when [`HEAD_START`] has passed or an attempt has failed.
/// The first to succeed ends the others; `None` if none did. `refusals` says what became of those that failed.
pub(super) async fn race<T, F>(
    addresses: &[SocketAddr],
    mut attempt: impl FnMut(SocketAddr) -> F,
    refusals: &mut Vec<(SocketAddr, Refusal)>,
) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Refusal>> + Send + 'static,
{
    let mut running = JoinSet::new();
    let mut waiting = addresses.iter().copied();
    loop {
        if let Some(address) = waiting.next() {
            let attempt = attempt(address);
            running.spawn(async move { attempt.await.map_err(|refusal| (address, refusal)) });
        } else if running.is_empty() {
            return None;
        }
        let ended = if waiting.len() == 0 {
            running.join_next().await
        } else {
            timeout(HEAD_START, running.join_next()).await.unwrap_or_default()
        };
        match ended {
            Some(Ok(Ok(connection))) => return Some(connection),
            Some(Ok(Err(refusal))) => refusals.push(refusal),
            Some(Err(_)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// Ports below 10 refuse, below 20 never answer, others answer with the port.
    async fn scripted(address: SocketAddr) -> Result<u16, Refusal> {
        match address.port() {
            0..10 => Err(Refusal::NobodyListens),
            10..20 => std::future::pending().await,
            port => Ok(port),
        }
    }

    /// The winner, and the ports that refused.
    fn run(ports: &[u16]) -> (Option<u16>, Vec<u16>) {
        let addresses: Vec<SocketAddr> = ports.iter().copied().map(address).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut refusals = Vec::new();
        let winner = runtime.block_on(race(&addresses, scripted, &mut refusals));
        (winner, refusals.iter().map(|(address, _)| address.port()).collect())
    }

    #[test]
    fn the_first_to_answer_wins() {
        assert_eq!(run(&[20, 21]).0, Some(20));
        assert_eq!(run(&[1, 2, 20]), (Some(20), vec![1, 2]));
        assert_eq!(run(&[10, 11, 20]), (Some(20), vec![]));
        assert_eq!(run(&[10, 1, 20]), (Some(20), vec![1]));
    }

    #[test]
    fn all_refusals_are_kept() {
        assert_eq!(run(&[1, 2]), (None, vec![1, 2]));
        assert_eq!(run(&[]), (None, vec![]));
    }
}
