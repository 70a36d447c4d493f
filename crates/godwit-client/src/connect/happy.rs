//! Happy eyeballs (RFC 8305): the addresses of a server are tried in the order that the system gives them, the two
//! families in turn, and while one does not answer, the next is begun.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long one address is waited for before the next one is tried besides (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// Tries addresses in their order: the next one is begun when [`HEAD_START`] has passed or an attempt has failed.
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
    let mut running = JoinSet::new();
    let mut waiting = in_turn(addresses).into_iter();
    loop {
        if let Some(address) = waiting.next() {
            let attempt = attempt(address);
            running.spawn(async move { attempt.await.map_err(|error| (address, error)) });
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
            Some(Ok(Err(failure))) => failures.push(failure),
            Some(Err(_)) | None => {}
        }
    }
}

/// The families in turn, beginning with that of the first address (RFC 8305 section 4).
fn in_turn(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let of_family = |is_v4| addresses.iter().copied().filter(move |address| address.is_ipv4() == is_v4);
    let (mut ones, mut others) = (of_family(first_is_v4), of_family(!first_is_v4));
    let mut mixed = Vec::with_capacity(addresses.len());
    while mixed.len() < addresses.len() {
        mixed.extend(ones.next());
        mixed.extend(others.next());
    }
    mixed
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
    fn families_take_turns() {
        let all = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        let mixed = in_turn(&all(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]));
        assert_eq!(mixed, all(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]));
    }

    #[test]
    fn all_refusals_are_kept() {
        assert_eq!(run(&[1, 2]), (None, vec![1, 2]));
        assert_eq!(run(&[]), (None, vec![]));
    }
}
