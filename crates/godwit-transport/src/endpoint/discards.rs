//! How many datagrams were dropped at each socket because they belong to nobody and deserve no answer.

use godwit_base::SocketId;

/// Sockets that are remembered at most; beyond that the one that was heard of first is forgotten.
const MOST: usize = 256;

/// Counts of dropped datagrams. There are few sockets, so they are looked for one after the other.
#[derive(Debug, Default)]
pub(super) struct Discards(Vec<(SocketId, u64)>);

impl Discards {
    /// One more at this socket.
    #[cold]
    pub(super) fn count(&mut self, socket: SocketId) {
        if let Some((_, count)) = self.0.iter_mut().find(|(at, _)| *at == socket) {
            *count = count.saturating_add(1);
            return;
        }
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push((socket, 1));
    }

    /// How many there were at this socket.
    pub(super) fn at(&self, socket: SocketId) -> u64 {
        self.0.iter().find(|(at, _)| *at == socket).map_or(0, |(_, count)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_socket_has_its_count_and_there_are_not_too_many() {
        let mut discards = Discards::default();
        for socket in [1, 2, 1] {
            discards.count(SocketId(socket));
        }
        assert_eq!([0, 1, 2].map(|socket| discards.at(SocketId(socket))), [0, 2, 1]);
        (10..10 + MOST as u32).for_each(|socket| discards.count(SocketId(socket)));
        assert_eq!((discards.0.len(), discards.at(SocketId(1))), (MOST, 0));
    }
}
