//! Happy eyeballs (RFC 8305): the addresses of a server are tried in the order that the system gives them, the two
//! families in turn, and while one does not answer, the next is begun. [`Addresses`] says which when; this does it.

use std::future::Future;
use std::net::SocketAddr;

use godwit_text::instant_now;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::addresses::{Addresses, Next};

/// Tries addresses in their order: the next one is begun when one had its time or has failed.
/// The first to succeed ends the others; `None` if none did. `failures` says what became of those that failed.
pub(crate) async fn race_addresses<T, E, F>(
    addresses: &[SocketAddr],
    mut attempt: impl FnMut(SocketAddr) -> F,
    failures: &mut Vec<(SocketAddr, E)>,
) -> Option<T>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let begun = instant_now();
    let mut running = JoinSet::new();
    let mut addresses = Addresses::new(addresses);
    loop {
        let until = match addresses.next(begun.elapsed()) {
            Next::Try(address) => {
                let attempt = attempt(address);
                running.spawn(async move { attempt.await.map_err(|error| (address, error)) });
                continue;
            }
            Next::Wait(until) => until,
            Next::GiveUp => return None,
        };
        let ended = match until {
            None => running.join_next().await,
            Some(until) => {
                let wait = until.saturating_sub(begun.elapsed());
                timeout(wait, running.join_next()).await.unwrap_or_default()
            }
        };
        match ended {
            Some(Ok(Ok(connection))) => return Some(connection),
            Some(Ok(Err(failure))) => {
                failures.push(failure);
                addresses.on_failure(begun.elapsed());
            }
            Some(Err(_)) => addresses.on_failure(begun.elapsed()),
            None => {}
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
    async fn scripted(address: SocketAddr) -> Result<u16, ()> {
        match address.port() {
            0..10 => Err(()),
            10..20 => std::future::pending().await,
            port => Ok(port),
        }
    }

    /// The winner, and the ports that refused.
    fn run(ports: &[u16]) -> (Option<u16>, Vec<u16>) {
        let addresses: Vec<SocketAddr> = ports.iter().copied().map(address).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut failures = Vec::new();
        let winner = runtime.block_on(race_addresses(&addresses, scripted, &mut failures));
        (winner, failures.iter().map(|(address, _)| address.port()).collect())
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
