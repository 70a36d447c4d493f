//! Happy eyeballs (RFC 8305) without a socket or a clock: which address of a server is tried when.

use std::net::SocketAddr;
use std::time::Duration;

/// How long one address is waited for before the next one is tried besides (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Begin with this address, and ask again.
    Try(SocketAddr),
    /// Nothing until an attempt ends, or until this time.
    Wait(Option<Duration>),
    /// All have failed.
    GiveUp,
}

/// The addresses of a server. Times are counted from any moment.
#[derive(Debug)]
pub(crate) struct Addresses {
    waiting: std::vec::IntoIter<SocketAddr>,
    running: usize,
    /// When the next one is tried, if nothing happens.
    next_at: Duration,
}

impl Addresses {
    pub(crate) fn new(addresses: &[SocketAddr]) -> Addresses {
        Addresses { waiting: in_turn(addresses).into_iter(), running: 0, next_at: Duration::ZERO }
    }

    /// What is to be done at `now`.
    pub(crate) fn next(&mut self, now: Duration) -> Next {
        if (now >= self.next_at || self.running == 0)
            && let Some(address) = self.waiting.next()
        {
            self.running += 1;
            self.next_at = now.saturating_add(HEAD_START);
            return Next::Try(address);
        }
        match (self.running, self.waiting.len()) {
            (0, _) => Next::GiveUp,
            (_, 0) => Next::Wait(None),
            _ => Next::Wait(Some(self.next_at)),
        }
    }

    /// An attempt has failed at `now`: the next one is not waited for.
    pub(crate) fn on_failure(&mut self, now: Duration) {
        self.running = self.running.saturating_sub(1);
        self.next_at = now;
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
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn all(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_take_turns() {
        let mixed = in_turn(&all(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]));
        assert_eq!(mixed, all(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]));
    }

    #[test]
    fn the_next_one_begins_when_one_has_failed_or_had_its_time() {
        let list = all(&["[::1]:1", "1.1.1.1:1", "[::2]:1"]);
        let mut addresses = Addresses::new(&list);
        assert_eq!(addresses.next(MS(0)), Next::Try(list[0]));
        assert_eq!(addresses.next(MS(0)), Next::Wait(Some(MS(250))));
        assert_eq!(addresses.next(MS(250)), Next::Try(list[1]));
        addresses.on_failure(MS(300));
        assert_eq!(addresses.next(MS(300)), Next::Try(list[2]));
        assert_eq!(addresses.next(MS(300)), Next::Wait(None));
        addresses.on_failure(MS(400));
        assert_eq!(addresses.next(MS(400)), Next::Wait(None));
        addresses.on_failure(MS(500));
        assert_eq!(addresses.next(MS(500)), Next::GiveUp);
        assert_eq!(Addresses::new(&[]).next(MS(0)), Next::GiveUp);
    }
}
